//! `frontrow bench`: the lab's workloads in a directory of one's own, and two
//! runs side by side.

mod compare;
mod place;
mod sides;
mod spread;
mod target;

use crate::atomic_file::AtomicFile;
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::print::{json, print_text, table_options};
use crate::progress::left;
use crate::seeds::Seeds;
use ::doctor::fleet;
use clap::builder::{PossibleValue, PossibleValuesParser};
use place::Place;
use record::workload::WORKLOADS;
use record::{Inputs, ResultFile, Row, Run, Scale, number};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use target::Target;
use workload::{Footprint, RunRequest};

/// Bytes to leave free on the file system.
const SPARE_BYTES: u64 = 64 << 20;

/// Above this number of written bytes a user at a terminal is asked first: flash wears out.
const ASKED_BYTES: u64 = 2_000_000_000;

/// Mount point of tracefs.
const TRACEFS: &str = "/sys/kernel/tracing";

/// Measure file operations in a directory while another task keeps the device busy
///
/// All files are written in a new directory below DIR, which is removed at the end, also after
/// Ctrl-C.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// A directory on the device to measure
    #[arg(value_name = "DIR", required = true)]
    directory: Option<PathBuf>,

    #[command(flatten)]
    options: Options,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Compare two results of `frontrow bench --out`
    Compare(compare::Args),
}

#[derive(clap::Args)]
struct Options {
    /// Foreground workload
    #[arg(long, value_delimiter = ',', value_name = "NAME,…",
          default_value = "m1,m2,m3,m4", value_parser = names(own_workloads()))]
    workload: Vec<String>,

    /// Background load
    #[arg(long, value_delimiter = ',', value_name = "NAME,…",
          default_value = "idle,writer", value_parser = names(record::load::listed()))]
    load: Vec<String>,

    /// Sizes: demo, full (the papers' sizes), or a fraction of full such as 0.1
    #[arg(long, default_value = "demo")]
    scale: Scale,

    /// Run once for each of these seeds: A..B (inclusive), or one number [default: from 1 on, three
    /// to ten runs, until the result is precise enough; none beyond three after a minute]
    #[arg(long, value_name = "A..B")]
    seeds: Option<Seeds>,

    /// Run everything with `frontrow on` and with `frontrow off`, in turns, and compare the two. It needs
    /// root, and is on or off afterwards as before
    #[arg(long = "with", value_name = "on,off", value_parser = ["on,off", "off,on"], conflicts_with_all = ["out", "fleet"])]
    sides: Option<String>,

    /// Also write the result to this file, for `compare`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    fleet: Fleet,

    /// Do not ask before writing many bytes
    #[arg(long)]
    yes: bool,

    /// Print the result as JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Names and descriptions of the workloads that run outside the lab.
fn own_workloads() -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = WORKLOADS.iter().filter(|it| !it.only_in_the_lab);
    own.map(|it| (it.name, it.title))
}

fn names(entries: impl Iterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    PossibleValuesParser::new(entries.map(|(name, title)| PossibleValue::new(name).help(title)))
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    match (args.action, args.directory) {
        (Some(Action::Compare(args)), _) => compare::run(args),
        (None, Some(directory)) => measure(&directory, &args.options),
        (None, None) => Err(Failure::new(Exit::Usage, "bench needs a directory")),
    }
}

fn measure(directory: &Path, options: &Options) -> Result<(), Failure> {
    let runs = pairs(options)?;
    let target = Target::of(directory)?;
    let mut footprint = footprint(&runs, options)?;
    if options.sides.is_some() {
        footprint.written_bytes *= 2;
    }
    let out = options.out.as_deref().map(AtomicFile::create).transpose()?;
    let partition = options.fleet.begin(Path::new("/"), [&fleet::BENCH])?;
    check_space(directory, &target, footprint)?;
    let place = Place::create(directory)?;
    announce(&target, footprint, options);
    if footprint.written_bytes > ASKED_BYTES && !options.yes && !agrees()? {
        place.remove()?;
        return Err(Failure::new(
            Exit::Refused,
            "nothing was written: choose a smaller --scale, or fewer --workload and --load",
        ));
    }

    let stop = catch_signals()?;
    if options.sides.is_some() {
        let compared = sides::measure(directory, &place, &runs, options, &stop);
        place.remove()?;
        return compared;
    }
    let written_before = target.written_bytes();
    let rows = perform(&place, &runs, &target, options, &stop)?;
    place.remove()?;
    let result = of_rows(rows, &target, options);
    tell_spread(&result, options);
    if let (Some(before), Some(after)) = (written_before, target.written_bytes()) {
        eprintln!(
            "{} was written to {} meanwhile, by all.",
            number::bytes(after - before),
            target.device
        );
    }

    if let Some(partition) = partition {
        let rows = fleet::bench(&result, &partition.origin);
        partition.write([rows])?;
    }
    if let Some(out) = out {
        out.write(json(&result)?)?;
    }
    print(&result, options)
}

fn of_rows(rows: Vec<Row>, target: &Target, options: &Options) -> ResultFile {
    ResultFile {
        experiment: "bench".to_owned(),
        kernel: target.kernel.clone(),
        device: target.device.clone(),
        scale: options.scale,
        stock_default: target.stock_default.clone(),
        baselines: Vec::new(),
        bars: Vec::new(),
        inputs: Inputs {
            items: target.inputs(),
        },
        rows,
    }
}

/// All pairs of workload and load that measure something.
fn pairs(options: &Options) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    let mut refused = None;
    for workload in &options.workload {
        for load in &options.load {
            let run =
                Run::named(workload, load).map_err(|error| Failure::new(Exit::Usage, error))?;
            match workload::check(&run) {
                Ok(()) if runs.contains(&run) => {}
                Ok(()) => runs.push(run),
                Err(error) => refused = Some(error),
            }
        }
    }
    match (runs.is_empty(), refused) {
        (true, Some(error)) => Err(Failure::new(Exit::Usage, error)),
        _ => Ok(runs),
    }
}

/// Most bytes of free space that a run needs, and the bytes that the minimum number of runs writes.
fn footprint(runs: &[Run], options: &Options) -> Result<Footprint, Failure> {
    let mut all = Footprint::default();
    for run in runs {
        let one = workload::footprint(run, options.scale).map_err(failed)?;
        all.disk_bytes = all.disk_bytes.max(one.disk_bytes);
        all.written_bytes += one.written_bytes.saturating_mul(options.least_rounds());
    }
    Ok(all)
}

fn check_space(directory: &Path, target: &Target, needed: Footprint) -> Result<(), Failure> {
    let needed_bytes = needed.disk_bytes + SPARE_BYTES;
    match target.free_bytes >= needed_bytes {
        true => Ok(()),
        false => Err(Failure::new(
            Exit::DiskFull,
            format_args!(
                "{} has {} free and the largest run needs {}: choose a smaller --scale, \
                 other --load or another directory",
                directory.display(),
                number::bytes(target.free_bytes),
                number::bytes(needed_bytes),
            ),
        )),
    }
}

fn announce(target: &Target, footprint: Footprint, options: &Options) {
    eprintln!(
        "Up to {} will be written to {}, and up to {} of it kept there meanwhile.",
        number::bytes(footprint.written_bytes),
        target.device,
        number::bytes(footprint.disk_bytes),
    );
    if options.seeds.is_none() && options.sides.is_none() {
        let (least, most) = (spread::LEAST, spread::SEEDS.count());
        eprintln!(
            "That is in {least} rounds. If they do not agree there are more, {most} at most, and \
             none that begins after a minute."
        );
    }
    if tracefs().is_none() {
        eprintln!("Time in dirty throttling is not told apart: that needs root and tracefs.");
    }
}

/// Asks a user at a terminal for confirmation; scripts only get the message.
fn agrees() -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(true);
    }
    eprint!("Go on? [y/N] ");
    let mut answer = String::new();
    stdin.read_line(&mut answer).map_err(|error| {
        Failure::new(
            Exit::Internal,
            format_args!("cannot read the answer: {error}"),
        )
    })?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

impl Options {
    /// Seeds of all possible runs.
    fn seeds(&self) -> Seeds {
        self.seeds.unwrap_or(spread::SEEDS)
    }

    /// Minimum number of runs.
    fn least_rounds(&self) -> u64 {
        self.seeds.map_or(spread::LEAST, Seeds::count)
    }
}

fn perform(
    place: &Place,
    runs: &[Run],
    target: &Target,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Vec<Row>, Failure> {
    let rounds = options.least_rounds();
    let mut count = (runs.len() as u64).saturating_mul(rounds);
    let began = Instant::now();
    let mut rows = Vec::new();
    let mut index = 0;
    for (round, seed) in (0..).zip(options.seeds().all()) {
        if round >= rounds {
            if began.elapsed() >= spread::PATIENCE || is_settled(&rows, target, options) {
                break;
            }
            count += runs.len() as u64;
        }
        for run in runs {
            index += 1;
            let name = record::title::short(run.workload.name, run.load.name());
            let left = left(began.elapsed(), index - 1, count);
            eprintln!("[{index}/{count}] {name}, seed {seed}{left}");
            rows.extend(perform_one(place, run, target, options, seed, stop)?);
        }
    }
    Ok(rows)
}

fn is_settled(rows: &[Row], target: &Target, options: &Options) -> bool {
    spread::noisy(&of_rows(rows.to_vec(), target, options)).is_empty()
}

/// Prints the precision of the means, if it decided the number of runs.
fn tell_spread(result: &ResultFile, options: &Options) {
    if options.seeds.is_none() {
        eprintln!("{}", spread::sentence(result));
    }
}

fn perform_one(
    place: &Place,
    run: &Run,
    target: &Target,
    options: &Options,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Vec<Row>, Failure> {
    let directory = place.fresh()?;
    let mut watch = workload::Watch::new(&target.disk);
    let mut request = RunRequest {
        run,
        dir: &directory,
        device: None,
        seed,
        scale: options.scale,
        loader: workload::Loader::Demand,
        upkeep: workload::Upkeep::NoDefrag,
        tracefs: tracefs(),
        background_cgroups: &[],
        screen_cgroups: &[],
        background_is_idle_class: false,
        stop,
        observer: &mut watch,
    };
    let mut measurements = workload::run(&mut request).map_err(failed)?;
    measurements.extend(watch.figures(run));
    Ok(measurements
        .into_iter()
        .map(|it| Row {
            workload: run.workload.to_string(),
            load: run.load.to_string(),
            policy: target.policy.clone(),
            metric: it.metric,
            unit: it.unit.to_owned(),
            seed,
            value: it.value,
            histogram: it.histogram,
            series: it.series,
        })
        .collect())
}

/// Mount point of tracefs, if this process can make a trace instance there.
fn tracefs() -> Option<&'static Path> {
    let root = rustix::process::geteuid().is_root();
    let path = Path::new(TRACEFS);
    (root && path.join("instances").is_dir()).then_some(path)
}

pub(crate) fn catch_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|error| {
            Failure::new(
                Exit::Internal,
                format_args!("cannot catch signals: {error}"),
            )
        })?;
    }
    Ok(stop)
}

fn failed(error: workload::Error) -> Failure {
    let exit = match &error {
        workload::Error::Interrupted => Exit::Interrupted,
        workload::Error::NoSpace { .. } => Exit::DiskFull,
        workload::Error::Interface { .. } => Exit::Unsupported,
        workload::Error::Io { source, .. } => source.into(),
        _ => Exit::Internal,
    };
    Failure::new(exit, error)
}

fn print(result: &ResultFile, options: &Options) -> Result<(), Failure> {
    match options.json {
        true => print_text(&json(result)?),
        false => print_text(&record::table::render(result, table_options())),
    }
}

/// A map without empty values.
fn items<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
