//! `frontrow-lab replay`: traces, played through the flash core, onto a device or in a directory.

mod account;
mod recorded;
mod roles;

use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::lab::device;
use crate::print::{json, plain, print_text};
use crate::progress;
use ::replay::flash::Counters;
use ::replay::{
    Account, Calls, Columns, Config, Error, Fill, Format, Input, OnDirectory, Options, Pace, Part,
    Place, Recording, Target, Times, Trace,
};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::Sources;
use record::number::{count, with_unit};
use roles::{Play, RoleArgs};
use serde::Serialize;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sys::PathError;

/// Replay traces: through the emulated flash device, onto a device or file, or in a directory
///
/// Without --onto the trace goes through the flash core in this process, as fast as it can be
/// computed, and the result has the bytes that flash would program. Addresses that the trace does
/// not touch are removed, so the device need only be as large as the touched ones.
///
/// System calls (of strace or of `frontrow iopro record`) are repeated in the directory that --onto
/// names. All paths of the trace are below it, and no other file is touched. Data that the trace
/// reads before writing are written first. On a device or a file, the reads, writes and flushes of
/// the calls are replayed without a cache.
///
/// Every result has one account of the trace: events that were read, played, changed and left out,
/// by kind. Where too much of a trace is not played, nothing is.
#[derive(clap::Args)]
pub struct Args {
    /// Traces, played one after the other; they may be pipes, - for standard input, and packed by gzip,
    /// xz or zstd
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Format of the traces: phone (MobileBlockIOTraces), blkparse (its text), fio (write_iolog), strace
    /// (best with -f -ttt -T -y), biosnoop, ftrace (also of atrace and perf script) or csv.
    /// Without it the first line tells; iopro recordings are recognized
    #[arg(long, value_parser = formats())]
    format: Option<Format>,

    /// Columns of a table in text, as time=COLUMN:UNIT,op=COLUMN,offset=COLUMN:UNIT,size=COLUMN:UNIT.
    /// A column is its name in the first line, or its number. Also thread and device; units are s, ms,
    /// us, ns, filetime, bytes, sectors, kb, pages. Or a public set: msr, spc, alibaba, cloudphysics
    #[arg(long, value_name = "COLUMNS", value_parser = Columns::parse)]
    columns: Option<Columns>,

    /// Play the requests of this device of a trace that has several, as the trace writes it: 8,16 in
    /// blkparse's
    #[arg(long, value_name = "DEVICE")]
    trace_device: Option<String>,

    /// Refuse to play if more of the trace's reads, writes and flushes would be left out
    #[arg(long, value_name = "PERCENT", default_value = "50%", value_parser = percent)]
    allow_left_out: f64,

    /// When an operation is issued: when another one ends, at its time in the trace, or after the
    /// previous one of its thread
    #[arg(long, default_value = "closed")]
    pace: PaceName,

    /// Number of concurrent operations, for --pace closed
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,

    /// With --pace mixed, keep a thread's pauses of up to this time; after a longer pause, wait for
    /// the operation's time in the trace
    #[arg(long, value_name = "MS", default_value_t = 100)]
    think: u64,

    /// Skip this many seconds from the start of the trace
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = seconds)]
    from: f64,

    /// Play only this many seconds after that
    #[arg(long, value_name = "S", value_parser = seconds)]
    length: Option<f64>,

    /// Divide all times of the trace by this factor
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    speed: f64,

    /// Number of repetitions
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    loops: u32,

    #[command(flatten)]
    flash: OnFlash,

    #[command(flatten)]
    file: OnFile,

    #[command(flatten)]
    roles: RoleArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct OnFlash {
    #[arg(long, default_value = "ufs", conflicts_with = "onto",
          help = format!("The emulated device: {}", device::values()))]
    device: String,
    /// Part of the device that holds the trace's data, which are written first
    #[arg(long, value_name = "PERCENT", default_value_t = 80, conflicts_with = "onto",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    fill: u32,
    /// Flash capacity beyond the size of the device
    #[arg(long, value_name = "PERCENT", default_value_t = 7, conflicts_with = "onto",
          value_parser = clap::value_parser!(u32).range(0..=1000))]
    spare: u32,
}

#[derive(clap::Args)]
struct OnFile {
    /// Block device, file or directory to replay onto, in real time; a missing file (or directory,
    /// for system calls) is made
    #[arg(long, value_name = "PATH")]
    onto: Option<PathBuf>,
    /// Overwrite the device or file (all of its data are lost), or in a directory the files of the
    /// trace
    #[arg(long, requires = "onto")]
    overwrite: bool,
    /// Use the page cache instead of direct I/O
    #[arg(long, requires = "onto")]
    buffered: bool,
    /// Write all addresses that the trace touches before it starts; flash reads unwritten pages
    /// without delay
    #[arg(long, requires = "onto")]
    prepare: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PaceName {
    Closed,
    Open,
    Mixed,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(|name| Format::named(&name).ok_or("no such format"))
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds".to_owned()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("give a share such as 1%, up to 100%".to_owned()),
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && (1e-6..=1e9).contains(&speed) => Ok(speed),
        _ => Err("give a number from 0.000001 to 1000000000".to_owned()),
    }
}

/// Result of a replay through the flash core.
#[derive(Serialize)]
struct FlashReport<'a> {
    device: String,
    #[serde(flatten)]
    result: ::replay::OnFlash,
    #[serde(flatten)]
    account: &'a Account,
    /// Of this computer, without reading the trace.
    host_ns: u64,
    page_operations_per_host_s: f64,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    let mut recordings = Vec::new();
    for path in &args.traces {
        recordings.push(read(path, &args)?);
    }
    let pace = match args.pace {
        PaceName::Closed => Pace::Closed { depth: args.depth },
        PaceName::Open => Pace::Open,
        PaceName::Mixed => Pace::Mixed {
            think_ns: args.think.saturating_mul(1_000_000),
        },
    };
    if let (Some(path), [Recording::Calls(_)]) = (&args.file.onto, recordings.as_slice())
        && (path.is_dir() || path.symlink_metadata().is_err())
        && let Some(Recording::Calls(calls)) = recordings.pop()
    {
        return print_text(&plain(&onto_directory(calls, pace, &args, path)?));
    }
    if args.file.onto.as_ref().is_some_and(|it| it.is_dir()) {
        return Err(Failure::new(
            Exit::Usage,
            "a directory takes system calls, of one trace at a time: name a device or a file",
        ));
    }
    let mut trace = Trace::default();
    for recording in recordings {
        trace.append(recording.into_blocks());
    }
    let trace = in_window(trace, &args)?.at_speed(args.speed);
    account::check(trace.account(), args.allow_left_out)?;
    let text = match &args.file.onto {
        Some(path) => onto_file(&trace, pace, &args, path)?,
        None => onto_flash(&trace, pace, &args)?,
    };
    print_text(&plain(&text))
}

/// Reads a trace, which is opened once: a pipe has each byte once.
fn read(path: &Path, args: &Args) -> Result<Recording, Failure> {
    let input = Input::open(path).map_err(|error| failed(error.into()))?;
    if input.begins_with(recorded::MAGIC) {
        return Ok(Recording::Calls(recorded::read(input)?));
    }
    let options = Options {
        format: args.format,
        columns: args.columns.clone(),
        device: args.trace_device.clone(),
    };
    ::replay::read(input, &options).map_err(failed)
}

fn in_window(trace: Trace, args: &Args) -> Result<Trace, Failure> {
    if args.from == 0.0 && args.length.is_none() {
        return Ok(trace);
    }
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let length_ns = args.length.map_or(u64::MAX, ns);
    let trace = trace.window(ns(args.from), length_ns);
    match trace.operations().is_empty() {
        true => Err(Failure::new(
            Exit::Usage,
            "nothing happened in that time of the trace: choose another --from or --length",
        )),
        false => Ok(trace),
    }
}

fn onto_directory(
    calls: Calls,
    pace: Pace,
    args: &Args,
    path: &std::path::Path,
) -> Result<String, Failure> {
    if args.file.buffered {
        return Err(Failure::new(
            Exit::Usage,
            "in a directory, files are opened with the flags of the trace: omit --buffered",
        ));
    }
    if args.from != 0.0 || args.length.is_some() {
        return Err(Failure::new(
            Exit::Usage,
            "in a directory, calls depend on those before them: omit --from and --length, or play onto a file",
        ));
    }
    account::check(calls.account(), args.allow_left_out)?;
    let place = Place {
        path: path.to_owned(),
        overwrite: args.file.overwrite,
    };
    let stop = catch_signals()?;
    let bar = progress::bar("{wide_bar} {pos}/{len} bytes that the trace reads, {eta} left");
    let mut prepared = |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    };
    let calls = calls.at_speed(args.speed);
    let result = ::replay::on_directory(&calls, pace, args.loops, &place, &mut prepared, &stop);
    bar.finish_and_clear();
    let result = result.map_err(failed)?;
    let account = calls.account();
    match args.json {
        true => json(&Accounted { result, account }),
        false => Ok(directory_text(&result, path) + &account::text(account)),
    }
}

/// A result with the account of its trace.
#[derive(Serialize)]
struct Accounted<'a, R> {
    #[serde(flatten)]
    result: R,
    #[serde(flatten)]
    account: &'a Account,
}

fn directory_text(result: &OnDirectory, path: &std::path::Path) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} calls in {} in {}, after {} were written that they read",
        count(result.operations as f64),
        path.display(),
        with_unit(result.elapsed_ns as f64, "ns"),
        record::number::bytes(result.prepared_bytes),
    );
    let times = result.times.iter().map(|(kind, times)| (*kind, times));
    times_text(&mut text, times);
    late_text(&mut text, result.late_operations, result.latest_ns);
    if let Some(first) = &result.first_unlike {
        let _ = writeln!(
            text,
            "{} ended otherwise than in the trace, the first with {first}",
            count(result.unlike_operations as f64),
        );
    }
    text
}

fn onto_flash(trace: &Trace, pace: Pace, args: &Args) -> Result<String, Failure> {
    let device = Sources::here().device(&args.flash.device)?;
    let config = Config::of_profile(&device.simflash).map_err(|error| failed(error.into()))?;
    let fill = Fill {
        fill_percent: args.flash.fill,
        spare_percent: args.flash.spare,
    };
    let stop = catch_signals()?;
    let total = trace.operations().len() as u64 * u64::from(args.loops);
    let bar = progress::bar("{wide_bar} {pos}/{len} operations, {eta} left");
    bar.set_length(total);
    let begun = Instant::now();
    let result = ::replay::on_flash(
        trace,
        pace,
        args.loops,
        &config,
        fill,
        &mut |done| bar.set_position(done),
        &stop,
    );
    let host_ns = begun.elapsed().as_nanos() as u64;
    bar.finish_and_clear();
    let result = result.map_err(failed)?;
    let report = FlashReport {
        device: device.name,
        page_operations_per_host_s: result.page_operations as f64 * 1e9 / host_ns as f64,
        host_ns,
        result,
        account: trace.account(),
    };
    match args.json {
        true => json(&report),
        false => Ok(flash_text(&report) + &account::text(trace.account())),
    }
}

fn onto_file(
    trace: &Trace,
    pace: Pace,
    args: &Args,
    path: &std::path::Path,
) -> Result<String, Failure> {
    refuse_name_of_disk(path)?;
    let target = Target {
        path: path.to_owned(),
        overwrite: args.file.overwrite,
        buffered: args.file.buffered,
        prepare: args.file.prepare,
        claimed: false,
    };
    if !args.roles.foreground.is_empty() {
        return args.roles.play(&Play {
            trace,
            pace,
            loops: args.loops,
            target,
            json: args.json,
        });
    }
    let stop = catch_signals()?;
    let part = Part::all(trace);
    let result = ::replay::on_file(part, pace, args.loops, &target, || Ok(()), &stop);
    let result = result.map_err(failed)?;
    let account = trace.account();
    match args.json {
        true => json(&Accounted { result, account }),
        false => Ok(file_text(&result, path) + &account::text(account)),
    }
}

/// Other commands accept `vda` for a disk; here it would be a file name.
fn refuse_name_of_disk(path: &Path) -> Result<(), Failure> {
    let is_name = path.components().count() == 1 && !path.starts_with(".") && !path.exists();
    if !is_name || !Path::new("/sys/class/block").join(path).exists() {
        return Ok(());
    }
    let name = path.display();
    Err(Failure::new(
        Exit::Usage,
        format_args!("{name} is a disk's name: give /dev/{name} for the disk, ./{name} for a file"),
    ))
}

fn file_text(result: &::replay::OnFile, path: &Path) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} operations onto {} in {}",
        count(result.operations as f64),
        path.display(),
        with_unit(result.elapsed_ns as f64, "ns"),
    );
    times_text(&mut text, result.times.iter());
    late_text(&mut text, result.late_operations, result.latest_ns);
    text
}

fn late_text(text: &mut String, late_operations: u64, latest_ns: u64) {
    if late_operations > 0 {
        let _ = writeln!(
            text,
            "{} operations were issued late, by up to {}: the times are of a load that lagged",
            count(late_operations as f64),
            with_unit(latest_ns as f64, "ns"),
        );
    }
}

fn flash_text(report: &FlashReport<'_>) -> String {
    let result = &report.result;
    let counters = &result.counters;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} operations ({} pages of 4 KB) on {} of {} MB, {} % full and {} % spare, in {} of its time",
        count(result.operations as f64),
        count(result.page_operations as f64),
        report.device,
        count((result.capacity_bytes / 1_000_000) as f64),
        result.fill.fill_percent,
        result.fill.spare_percent,
        with_unit(result.virtual_ns as f64, "ns"),
    );
    times_text(&mut text, result.times.iter());
    if let Some(amplification) = result.write_amplification {
        let _ = writeln!(
            text,
            "write amplification {amplification:.3}: {} pages written, {} programmed for them, {} moved by\n  \
             garbage collection, {} for the log, {} for the map, {} of padding; {} erases",
            count(counters.host_write_pages as f64),
            count(counters.programmed_pages as f64),
            count(counters.collected_pages as f64),
            count(counters.log_pages as f64),
            count(counters.map_pages as f64),
            count(counters.padded_pages as f64),
            count(counters.erases as f64),
        );
    }
    inner_text(&mut text, counters);
    let _ = writeln!(
        text,
        "every page that was read held what was written to it; {} of this computer's time",
        with_unit(report.host_ns as f64, "ns"),
    );
    text
}

/// Statistics that only some devices have: map in flash, write buffer, suspension.
fn inner_text(text: &mut String, counters: &Counters) {
    let of = |part: u64, all: u64| 100.0 * part as f64 / all as f64;
    if counters.map_look_ups > 0 {
        let _ = writeln!(
            text,
            "{} look-ups in the map, {:.1} % of them not in the device's RAM",
            count(counters.map_look_ups as f64),
            of(counters.map_misses, counters.map_look_ups),
        );
    }
    if counters.buffered_pages + counters.folded_pages > 0 {
        let _ = writeln!(
            text,
            "{} pages programmed in the write buffer, {} moved out of it",
            count(counters.buffered_pages as f64),
            count(counters.folded_pages as f64),
        );
    }
    if counters.suspensions > 0 {
        let _ = writeln!(
            text,
            "{} programs and erases suspended for reads",
            count(counters.suspensions as f64),
        );
    }
}

fn times_text<'a>(text: &mut String, times: impl Iterator<Item = (&'static str, &'a Times)>) {
    for (kind, times) in times {
        let _ = writeln!(
            text,
            "  {kind:<8} {:>9}   mean {:>8}   99th percentile {:>8}   longest {:>8}",
            count(times.count as f64),
            with_unit(times.mean_ns, "ns"),
            with_unit(times.p99_ns as f64, "ns"),
            with_unit(times.max_ns as f64, "ns"),
        );
    }
}

fn failed(error: Error) -> Failure {
    let Error::Io(PathError { path, source, .. }) = &error else {
        let exit = match &error {
            Error::Interrupted => Exit::Interrupted,
            Error::Wrong { .. } | Error::Failed(_) | Error::Stuck => Exit::Internal,
            Error::TooSmall { .. } => Exit::Refused,
            _ => Exit::Usage,
        };
        return Failure::new(exit, error);
    };
    let path = path.display();
    match source.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(
            Exit::Refused,
            format_args!("{path} is there already: --overwrite destroys all that is on it"),
        ),
        io::ErrorKind::ResourceBusy => Failure::new(
            Exit::Refused,
            format_args!("{path} is in use: unmount what is on it"),
        ),
        io::ErrorKind::InvalidInput => Failure::new(
            Exit::Unsupported,
            format_args!("{path} takes no direct I/O: add --buffered"),
        ),
        _ => Failure::new(source.into(), error),
    }
}
