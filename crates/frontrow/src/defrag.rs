//! `frontrow defrag`: whether fragmentation hurts, and repairing what does.

mod physical;
mod words;

use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::iopro::linked;
use crate::print::{json, plain, print_text};
use crate::progress;
use ::iopro::report::reads_of_files;
use ::iopro::store::Store;
use ::layout::defrag::{
    Choice, Error, Finding, Found, Hot, Identity, Measure, Moved, Pace, Physical, ReadTime,
    Refusal, Remap, Survey, Tally,
};
use clap::ValueEnum;
use indicatif::ProgressBar;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use sys::PathError;

/// Check whether fragmentation slows down reads of the files below PATH, and move slow files
///
/// Files are read and compared with the time that their size should take on this device. Only slow
/// files are moved, those with the most time saved per byte first. Files may be in use, and are
/// consistent at every moment, also after Ctrl-C or a power cut.
#[derive(clap::Args)]
pub struct Args {
    /// A file, or a directory with all files below it on the same file system
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Only check; works on f2fs, xfs and btrfs, too
    #[arg(long)]
    check: bool,

    /// Move files whose reads take at least this many times as long as they should [default: 1.25,
    /// or 1 if the device remaps]
    #[arg(long, value_name = "X", value_parser = factor)]
    factor: Option<f64>,

    /// Move only files that were read in this recording of `frontrow iopro`, most read first
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,

    /// Move each file that has more extents than necessary, without measuring
    #[arg(long, conflicts_with_all = ["factor", "check", "recording"])]
    all: bool,

    /// How to move: remap if the device can change addresses without copying (simflash can),
    /// otherwise copy; or physical, which spreads data over the device's dies
    #[arg(long, default_value = "auto")]
    mode: Mode,

    /// Move (or let the device program) at most this many megabytes per second
    #[arg(long, value_name = "MB/S", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: Option<u64>,

    /// Move (or let the device program) at most this many megabytes
    #[arg(long, value_name = "MB")]
    limit: Option<u64>,

    /// Read at most this many megabytes for measuring
    #[arg(long, value_name = "MB", default_value_t = 2000)]
    read: u64,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    /// Root directory of the system whose devices are used
    #[arg(long, hide = true, default_value = "/")]
    sysroot: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Remap if the device can, otherwise copy
    Auto,
    /// Copy the data
    Copy,
    /// Remap, or leave the file
    Remap,
    /// Let the device spread over all dies those of the 50 most read files that lie on half of the
    /// dies or fewer. A device that defragments itself (UFS Host Initiated Defrag) does this for
    /// all of its data
    Physical,
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1.0..=1e6).contains(&factor) => Ok(factor),
        _ => Err("give a number from 1 to 1000000".to_owned()),
    }
}

/// Output of a check or a repair.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    filesystem: String,
    all: Tally,
    /// Fragmented files, those with the most time to save first.
    fragmented: Vec<Finding>,
    /// Whether read times could be measured.
    measured: bool,
    /// Files on half of the device's dies or fewer, if the device reports dies.
    #[serde(skip_serializing_if = "Option::is_none")]
    unspread: Option<Vec<Finding>>,
    /// Size of the files that are worth moving, in bytes.
    worth_moving_bytes: u64,
    worth_moving_files: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<Repair>,
}

/// Files that were moved, and files that were left.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Repair {
    /// Whether the device was asked to remap.
    remapped: bool,
    /// Bytes that the device remapped instead of programming them.
    elided_bytes: u64,
    moved_bytes: u64,
    moved: Vec<MovedFile>,
    left: Vec<LeftFile>,
}

#[derive(Debug, Serialize)]
pub(crate) struct MovedFile {
    path: PathBuf,
    #[serde(flatten)]
    moved: Moved,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_before: Option<ReadTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_after: Option<ReadTime>,
}

#[derive(Debug, Serialize)]
pub(crate) struct LeftFile {
    path: PathBuf,
    reason: String,
    #[serde(skip)]
    refusal: Refusal,
}

const MEGABYTE: u64 = 1_000_000;
const PAGE_BYTES: u64 = sys::device::janus::PAGE_BYTES;

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    let stop = catch_signals()?;
    match args.mode {
        Mode::Physical => physical::run(&args, &stop),
        Mode::Auto | Mode::Copy | Mode::Remap => logical(&args, &stop),
    }
}

fn bar() -> ProgressBar {
    progress::bar("{wide_bar} {pos}/{len} {msg}, {eta} left")
}

/// The survey of the path, and what measured the files of `found`; None with `--all`, or where no
/// file can be measured.
fn surveyed(
    args: &Args,
    physical: Option<&Physical>,
    found: Found,
    bar: &ProgressBar,
    stop: &AtomicBool,
) -> Result<(Survey, Option<Measure>), Failure> {
    let mut survey = Survey::with(&args.path, physical, stop).map_err(failed)?;
    if let Some(recording) = &args.recording {
        survey.heat(&hot(recording)?);
    }
    let mut measure = match args.all {
        true => None,
        false => survey.measure(),
    };
    if let Some(measure) = &mut measure {
        bar.set_message("files measured");
        let budget_bytes = args.read.saturating_mul(MEGABYTE);
        survey
            .read(found, measure, budget_bytes, &mut shown(bar), stop)
            .map_err(failed)?;
    }
    Ok((survey, measure))
}

/// Most bytes to move, `--limit`.
fn limit_bytes(args: &Args) -> u64 {
    args.limit
        .map_or(u64::MAX, |it| it.saturating_mul(MEGABYTE))
}

/// Defragmentation of addresses (modes auto, copy and remap).
fn logical(args: &Args, stop: &AtomicBool) -> Result<(), Failure> {
    // Which dies files are on is said where that costs nothing but asking.
    let physical = match args.check {
        true => Physical::of(&args.path).unwrap_or_default(),
        false => None,
    };
    let bar = bar();
    let (mut survey, mut measure) =
        surveyed(args, physical.as_ref(), Found::Fragmented, &bar, stop)?;
    survey
        .fragmented
        .sort_by_key(|it| std::cmp::Reverse(it.read.map_or(0, |read| read.excess_ns())));
    let remap = remap(args)?;
    let choice = Choice {
        least_factor: args
            .factor
            .unwrap_or_else(|| Choice::usual_factor(remap.is_some())),
        limit_bytes: limit_bytes(args),
    };
    let chosen = match args.all {
        true => within(&survey.fragmented, choice.limit_bytes),
        false => ::layout::defrag::choose(&survey.fragmented, choice),
    };
    let mut report = Report {
        filesystem: survey.filesystem.to_string(),
        all: survey.all,
        measured: measure.is_some(),
        unspread: physical.map(|_| std::mem::take(&mut survey.unspread)),
        worth_moving_bytes: chosen.iter().map(|it| it.size_bytes).sum(),
        worth_moving_files: chosen.len() as u64,
        repair: None,
        fragmented: Vec::new(),
    };
    if !args.check {
        bar.set_message("files moved");
        let elided_before = elided_pages(remap.as_ref())?;
        let mut repair = Repair {
            remapped: remap.is_some(),
            ..Repair::default()
        };
        let mut pace = Pace::new(args.rate.map(|it| it * MEGABYTE));
        let count = chosen.len() as u64;
        for (done, finding) in chosen.iter().enumerate() {
            shown(&bar)(done as u64, count);
            one(&mut repair, finding, remap.as_ref(), &mut pace, stop);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        settle(&repair)?;
        if stop.load(Ordering::Relaxed) {
            bar.finish_and_clear();
            return Err(interrupted(repair.moved.len()));
        }
        repair.elided_bytes = (elided_pages(remap.as_ref())? - elided_before) * PAGE_BYTES;
        read_again(&mut repair, measure.as_mut(), stop)?;
        report.repair = Some(repair);
    }
    bar.finish_and_clear();
    report.fragmented = survey.fragmented;
    match args.json {
        true => print_text(&json(&report)?)?,
        false => print_text(&plain(&words::text(&report, &args.path, args.check)))?,
    }
    let left = report.repair.as_ref().and_then(|it| it.left.first());
    refused_alone(left, args)
}

/// Files that were read in the recording.
fn hot(recording: &Path) -> Result<Hot, Failure> {
    let store = Store::temporary().map_err(|error| linked::failed(&error))?;
    let store = linked::link((linked::open(recording)?, recording), None, store)?;
    let files = reads_of_files(&store).map_err(|error| linked::failed(&error))?;
    Ok(Hot::new(files.into_iter().map(|it| {
        let device = (it.device.major(), it.device.minor());
        let inode = it.inode;
        (Identity { device, inode }, it.bytes)
    })))
}

/// The first files that fit the limit.
fn within(findings: &[Finding], limit_bytes: u64) -> Vec<&Finding> {
    let mut left = limit_bytes;
    let fits = |it: &&Finding| {
        let fits = it.size_bytes <= left;
        left -= if fits { it.size_bytes } else { 0 };
        fits
    };
    findings.iter().filter(fits).collect()
}

/// The device's remap command, if wanted and supported.
fn remap(args: &Args) -> Result<Option<Remap>, Failure> {
    let remap = match args.mode {
        Mode::Copy | Mode::Physical => return Ok(None),
        // Who only looks need not be allowed to command the device.
        Mode::Auto if args.check => Remap::of(&args.path).unwrap_or_default(),
        Mode::Auto | Mode::Remap => Remap::of(&args.path).map_err(failed)?,
    };
    match (args.mode, &remap) {
        (Mode::Remap, None) => Err(Failure::new(
            Exit::Unsupported,
            format_args!(
                "the device of {} cannot give data another address: use --mode copy",
                args.path.display()
            ),
        )),
        _ => Ok(remap),
    }
}

fn elided_pages(remap: Option<&Remap>) -> Result<u64, Failure> {
    let pages = remap.map_or(Ok(0), Remap::elided_pages);
    pages.map_err(|error| {
        Failure::new(
            Exit::Internal,
            format_args!("cannot read the device's counters: {error}"),
        )
    })
}

fn one(
    repair: &mut Repair,
    finding: &Finding,
    remap: Option<&Remap>,
    pace: &mut Pace,
    stop: &AtomicBool,
) {
    match ::layout::defrag::repair(Path::new("/"), &finding.path, remap, pace, stop) {
        Ok(moved) => {
            repair.moved_bytes += moved.bytes;
            repair.moved.push(MovedFile {
                path: finding.path.clone(),
                moved,
                read_before: finding.read,
                read_after: None,
            });
        }
        Err(refusal) => repair.left.push(LeftFile {
            path: finding.path.clone(),
            reason: refusal.to_string(),
            refusal,
        }),
    }
}

/// Flushes, so that files that are reported as moved are, also after a crash.
fn settle(repair: &Repair) -> Result<(), Failure> {
    let Some(last) = repair.moved.last() else {
        return Ok(());
    };
    ::layout::defrag::settle(&last.path).map_err(|error| {
        let path = last.path.display();
        Failure::new(
            Exit::Internal,
            format_args!("cannot say whether all that was moved is in flash: {path}: {error}"),
        )
    })
}

fn read_again(
    repair: &mut Repair,
    measure: Option<&mut ::layout::defrag::Measure>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let Some(measure) = measure else {
        return Ok(());
    };
    for file in &mut repair.moved {
        file.read_after = measure.file(&file.path, stop).ok();
        if stop.load(Ordering::Relaxed) {
            return Err(failed(Error::Interrupted));
        }
    }
    Ok(())
}

fn interrupted(files: usize) -> Failure {
    Failure::new(
        Exit::Interrupted,
        format_args!("interrupted after {files} files: every file is whole; run it again to go on"),
    )
}

/// A single file that could not be moved is an error; among several it is a line of output.
fn refused_alone(left: Option<&LeftFile>, args: &Args) -> Result<(), Failure> {
    let Some(LeftFile { refusal, .. }) = left else {
        return Ok(());
    };
    if args.path.is_dir() {
        return Ok(());
    }
    let exit = match refusal {
        Refusal::Filesystem(_) | Refusal::Unsupported | Refusal::NoExtents => Exit::Unsupported,
        Refusal::Permission => Exit::Permission,
        Refusal::NoSpace | Refusal::Quota => Exit::DiskFull,
        Refusal::System(_) => Exit::Internal,
        _ => Exit::Refused,
    };
    let path = args.path.display();
    Err(Failure::new(
        exit,
        format_args!("{path} was left where it is: {refusal}"),
    ))
}

fn shown(bar: &ProgressBar) -> impl FnMut(u64, u64) {
    |done, count| {
        bar.set_length(count);
        bar.set_position(done);
    }
}

fn failed(error: Error) -> Failure {
    let exit = match &error {
        Error::Interrupted => Exit::Interrupted,
        Error::NoLayout { .. } => Exit::Unsupported,
        Error::Device { .. } | Error::DeviceStopped => Exit::Internal,
        Error::DeviceBusy => Exit::Refused,
        // A link, which is not followed.
        Error::Io(PathError { source, .. }) if source.raw_os_error() == Some(libc::ELOOP) => {
            Exit::Usage
        }
        Error::Io(PathError { source, .. }) => source.into(),
    };
    Failure::new(exit, error)
}
