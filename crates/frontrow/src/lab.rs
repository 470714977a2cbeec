//! `frontrow-lab`: experiments on stock kernels in emulated machines.

mod ageing;
pub mod ahead;
pub mod collect;
pub(crate) mod device;
pub mod exec;
pub mod hot_cold;
mod kernel;
mod modules;
pub mod powercut;
pub mod shard;
pub mod torture;

use crate::atomic_file;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json as json_of, plain, print_text, table_options};
use crate::program::own_commit;
use crate::progress;
use crate::seeds::Seeds;
use ::lab::{Cache, Error, Keep, Name, Request, Shell, Sources, Watcher};
use ageing::Ageing;
use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use kernel::Choice as KernelChoice;
use liblzma::read::XzDecoder;
use modules::Modules;
use record::{
    Experiment, Policy, ResultFile, Scale, Shard, Summary, html, markdown, picture, repeat, table,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, thread};

/// List all experiments
#[derive(clap::Args)]
pub struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show an experiment or a result
#[derive(clap::Args)]
pub struct Show {
    /// Name of an experiment or path of its .toml file, a directory with a result.json, or a result
    /// file, also compressed by xz
    what: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the result as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print all figures of the result, and its bars
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    details: bool,
    /// Print only whether its figures are those of this other result, and what went in differently
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["json", "markdown", "details"])]
    against: Option<PathBuf>,
}

/// Open a shell in a guest with all modules loaded and the device mounted
#[derive(clap::Args)]
pub struct OpenShell {
    #[command(flatten)]
    kernel: KernelChoice,
    #[arg(long, default_value = "emmc", help = device::values_or_fresh())]
    device: String,
    /// Policy at the start
    #[arg(long, default_value = "mq-deadline")]
    policy: Policy,
    /// Additional programs, such as fio,blktrace,strace
    #[arg(long, value_delimiter = ',', value_name = "PROGRAM,…")]
    with: Vec<String>,
    /// Number of CPUs
    #[arg(long, default_value_t = 2)]
    cpus: u32,
}

/// Run an experiment and print its table
#[derive(clap::Args)]
pub struct Run {
    /// Name of the experiment, of which `frontrow-lab list` shows all, or the path of a file that
    /// ends in .toml
    experiment: String,
    #[command(flatten)]
    kernel: KernelChoice,
    #[arg(long, help = device::values_or_fresh() + " [default: the experiment's]")]
    device: Option<String>,
    /// Run these policies instead of the experiment's
    #[arg(long, value_delimiter = ',', value_name = "POLICY,…")]
    policy: Vec<String>,
    #[command(flatten)]
    modules: Modules,
    /// Run one guest for each policy and each of these seeds: A..B (inclusive), or one number
    #[arg(long, default_value = "1..5", value_name = "A..B")]
    seeds: Seeds,
    /// Sizes: demo, full (the papers' sizes), or a fraction of full such as 0.1
    #[arg(long, default_value = "demo")]
    scale: Scale,
    /// Number of concurrent guests [default: one for each core]
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Run only these workloads
    #[arg(long, value_delimiter = ',', value_name = "WORKLOAD,…")]
    workload: Vec<String>,
    /// Run only these loads
    #[arg(long, value_delimiter = ',', value_name = "LOAD,…")]
    load: Vec<String>,
    /// Block trace for experiments that replay one
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Keep the results of finished guests, so that the same command continues after an
    /// interruption
    #[arg(long)]
    keep: bool,
    /// Run only every Nth guest, from the Ith on, and write the figures to --out for
    /// `frontrow-lab join`; when a guest fails, the others go on
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with_all = ["json", "early", "details", "prepare"])]
    shard: Option<Shard>,
    /// Only fetch and build what the guests need, such as the kernel; start none
    #[arg(long)]
    prepare: bool,
    /// Print the table, and write picture.svg, also when the first seed's guests are done
    #[arg(long, conflicts_with = "json")]
    early: bool,
    #[command(flatten)]
    output: Output,
}

/// Where a result goes.
#[derive(clap::Args)]
struct Output {
    /// Write result.json, report.html and picture.svg to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the result as JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Print all figures and bars
    #[arg(long, conflicts_with = "json")]
    details: bool,
}

impl Output {
    fn make_directory(&self) -> Result<(), Failure> {
        match &self.out {
            Some(out) => fs::create_dir_all(out).map_err(|error| Failure::unwritable(out, &error)),
            None => Ok(()),
        }
    }

    /// Writes the result to --out, and prints it.
    fn deliver(&self, result: &ResultFile) -> Result<(), Failure> {
        if let Some(out) = &self.out {
            write(out, result)?;
        }
        print(result, self.json, self.details)
    }
}

/// Magic bytes of an xz file.
const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";

/// Runs an experiment.
pub fn run(args: Run) -> Result<(), Failure> {
    let sources = Sources::here();
    let experiment = chosen(sources.experiment(&args.experiment)?, &args)?;
    args.modules.refuse_unused(&experiment.policies)?;
    let device = sources.device(args.device.as_ref().unwrap_or(&experiment.device))?;
    // Better now than after minutes.
    args.output.make_directory()?;
    let stop = catch_signals()?;
    let cache = Cache::of_user()?;
    let request = Request {
        experiment,
        device,
        kernel: args.kernel.find(&cache)?,
        seeds: args.seeds.all().collect(),
        scale: args.scale,
        jobs: args.jobs.map_or_else(cores, Into::into),
        trace: args.trace,
    };
    let guests = request.seeds.len() * request.experiment.policies.len();
    let keep = Keep::new(&cache, &tell_that_it_was_kept).with_room_for(guests);
    let keep = args.keep.then_some(&keep);
    let progress = Progress::new(args.early.then_some(Early {
        out: args.output.out.as_deref(),
        details: args.output.details,
    }));
    if args.prepare {
        let prepared = ::lab::prepare(&cache, &sources, &request, &progress, &stop);
        return Ok(prepared?);
    }
    if let (Some(shard), Some(out)) = (args.shard, &args.output.out) {
        let file = ::lab::run_shard(&cache, &sources, &request, shard, keep, &progress, &stop);
        progress.end();
        let mut file = file?;
        name_commit(&mut file.result);
        return shard::finish(out, &file);
    }
    let result = ::lab::run(&cache, &sources, &request, keep, &progress, &stop);
    progress.end();
    let mut result = result?;
    name_commit(&mut result);
    args.output.deliver(&result)
}

fn name_commit(result: &mut ResultFile) {
    if let Some(commit) = own_commit() {
        result.inputs.items.insert("commit".to_owned(), commit);
    }
}

/// Says that a guest was not run, as the same had run before.
fn tell_that_it_was_kept() {
    eprintln!("the verdict of the same guest was kept");
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}

/// Opens a shell.
pub fn open_shell(args: OpenShell) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let (sources, cache) = (Sources::here(), Cache::of_user()?);
    let shell = Shell {
        kernel: args.kernel.find(&cache)?,
        device: sources.device(&args.device)?,
        policy: args.policy,
        programs: args.with,
        cpus: args.cpus,
    };
    let ageing = Ageing::default();
    Ok(::lab::shell(
        &cache,
        &sources,
        &shell,
        &|written, all| ageing.hear(written, all),
        &stop,
    )?)
}

/// The experiment, restricted by the command line.
fn chosen(mut experiment: Experiment, args: &Run) -> Result<Experiment, Failure> {
    if !args.policy.is_empty() {
        let policies = args.policy.iter().map(|name| args.modules.policy(name));
        experiment.policies = policies.collect::<Result<_, _>>()?;
        let runs = |name: &String| experiment.policies.iter().any(|it| it.name() == name);
        experiment.baselines.retain(runs);
    }
    let wanted =
        |names: &[String], name: &str| names.is_empty() || names.iter().any(|it| it == name);
    let runs = experiment.runs.iter();
    let known: Vec<_> = runs
        .map(|run| format!("{} {}", run.workload, run.load))
        .collect();
    experiment.runs.retain(|run| {
        wanted(&args.workload, run.workload.name) && wanted(&args.load, run.load.name())
    });
    if experiment.runs.is_empty() {
        return Err(Failure::new(
            Exit::Usage,
            format_args!(
                "experiment {} has no such run; it has {}",
                experiment.name,
                known.join(", ")
            ),
        ));
    }
    Ok(experiment)
}

fn write(out: &Path, result: &ResultFile) -> Result<(), Failure> {
    for (name, text) in [
        ("result.json", json_of(result)?),
        ("report.html", html::render(result)),
    ] {
        atomic_file::write(&out.join(name), text)?;
    }
    write_picture(out, result)
}

fn write_picture(out: &Path, result: &ResultFile) -> Result<(), Failure> {
    match picture::render(&Summary::of(result)) {
        Some(picture) => Ok(atomic_file::write(&out.join("picture.svg"), picture)?),
        None => Ok(()),
    }
}

fn print(result: &ResultFile, json: bool, details: bool) -> Result<(), Failure> {
    if json {
        return print_text(&json_of(result)?);
    }
    match table::overview::render(result, table_options()).filter(|_| !details) {
        Some(overview) => print_text(&(overview + "All figures: --details, or the report.\n")),
        None => print_text(&table::render(result, table_options())),
    }
}

/// Prints the experiments.
pub fn list(args: List) -> Result<(), Failure> {
    let (experiments, unreadable) = Sources::here().experiments()?;
    if args.json {
        print_text(&json_of(&experiments)?)?;
    } else {
        let lines = experiments.iter();
        let lines = lines.map(|it| format!("{:12} {}\n", it.name, it.title));
        print_text(&lines.collect::<String>())?;
    }
    let errors: Vec<String> = unreadable.iter().map(Error::to_string).collect();
    match errors.as_slice() {
        [] => Ok(()),
        errors => Err(Failure::new(Exit::Usage, errors.join("\n"))),
    }
}

/// Prints an experiment or a result.
pub fn show(args: Show) -> Result<(), Failure> {
    let Show {
        what,
        json,
        markdown,
        details,
        against,
    } = args;
    if let Some(path) = result_of(Path::new(&what)) {
        let result = read_result(&path)?;
        if let Some(earlier) = against {
            let earlier = read_result(&result_of(&earlier).unwrap_or(earlier))?;
            return print_text(&(repeat::told(&result, &earlier) + "\n"));
        }
        return match markdown {
            true => print_text(&markdown::render(&result)),
            false => print(&result, json, details),
        };
    }
    if markdown || against.is_some() {
        return Err(Failure::new(
            Exit::Usage,
            format_args!(
                "{what} is no result: give the directory of `frontrow-lab run --out`, or a file like docs/results/kept/*.json.xz"
            ),
        ));
    }
    let experiment = Sources::here().experiment(&what)?;
    if json {
        return print_text(&json_of(&experiment)?);
    }
    print_text(&description(&experiment))
}

fn description(experiment: &Experiment) -> String {
    let mut lines = vec![
        format!("{}: {}", experiment.name, experiment.title),
        format!("policies: {}", names(&experiment.policies)),
        format!("device:   {}", experiment.device),
        format!("memory:   {} MiB", experiment.memory_mib),
        format!(
            "limit:    {} s of a guest's time",
            experiment.limit_virtual_s
        ),
        format!("mount:    {}", experiment.mount_options.join(",")),
    ];
    let set = experiment.sysctls.iter().chain(&experiment.writes);
    lines.extend(set.map(|(name, value)| format!("set:      {name} = {value}")));
    let runs = experiment.runs.iter();
    lines.extend(runs.map(|run| format!("run:      {} {}", run.workload, run.load)));
    let mut told: Vec<&str> = Vec::new();
    for run in &experiment.runs {
        if !told.contains(&run.workload.name) {
            told.push(run.workload.name);
            lines.push(format!("{}: {}", run.workload, run.workload.title));
        }
    }
    lines.join("\n") + "\n"
}

fn names(policies: &[Policy]) -> String {
    let names: Vec<&str> = policies.iter().map(Policy::name).collect();
    names.join(", ")
}

/// Path of the result file `what`, which is the file or its directory.
fn result_of(what: &Path) -> Option<PathBuf> {
    let in_directory = what.join("result.json");
    if in_directory.is_file() {
        return Some(in_directory);
    }
    let name = what.to_string_lossy();
    let is_result = name.ends_with(".json") || name.ends_with(".json.xz");
    is_result.then(|| what.to_owned())
}

fn read_result(path: &Path) -> Result<ResultFile, Failure> {
    let text = read_unpacked(path).map_err(|error| Failure::unreadable(path, &error))?;
    serde_json::from_slice(&text).map_err(|error| {
        let shown = path.display();
        let sentence = format_args!("{shown} is no result of an experiment: {error}");
        Failure::new(Exit::Usage, sentence)
    })
}

/// Content of a file, decompressed if it is an xz file.
fn read_unpacked(path: &Path) -> io::Result<Vec<u8>> {
    let packed = fs::read(path)?;
    if !packed.starts_with(XZ_MAGIC) {
        return Ok(packed);
    }
    let mut unpacked = Vec::new();
    XzDecoder::new(packed.as_slice()).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error {
            Error::Scheduler(error) => return crate::sched::failure(error),
            Error::Module(error) => return crate::sched::failure(error.into()),
            Error::Usage(_) => Exit::Usage,
            Error::Kernel(_) => Exit::Unsupported,
            Error::NoTool { .. } | Error::NoArchive | Error::Package { .. } => Exit::Missing,
            Error::Guest(_) => Exit::Guest,
            Error::Interrupted => Exit::Interrupted,
            Error::File(_) | Error::Tool { .. } | Error::Spec(_) => Exit::Internal,
        };
        Failure::new(exit, error)
    }
}

/// How the first seed's figures are shown while the other seeds' guests run.
struct Early<'a> {
    out: Option<&'a Path>,
    details: bool,
}

impl Early<'_> {
    fn show(&self, result: &ResultFile) -> Result<(), Failure> {
        print_text("\nOne run of each policy; the other seeds follow.\n")?;
        print(result, false, self.details)?;
        self.out.map_or(Ok(()), |out| write_picture(out, result))
    }
}

/// Progress of the guests: bars on a terminal, otherwise a line for each guest.
struct Progress<'a> {
    bars: MultiProgress,
    total: ProgressBar,
    ageing: Ageing,
    guests: Mutex<BTreeMap<String, ProgressBar>>,
    drawn: bool,
    early: Option<Early<'a>>,
}

impl Progress<'_> {
    fn new(early: Option<Early>) -> Progress {
        let bars = MultiProgress::new();
        let total = bars.add(ProgressBar::new(0));
        total.set_style(
            style("{wide_bar} {pos}/{len} guests, {elapsed}{left}").with_key("left", left),
        );
        Progress {
            bars,
            total,
            ageing: Ageing::default(),
            guests: Mutex::default(),
            drawn: std::io::stderr().is_terminal(),
            early,
        }
    }

    fn end(&self) {
        self.total.finish_and_clear();
        let _ = self.bars.clear();
    }

    fn bar(&self, guest: &Name) -> Option<ProgressBar> {
        let mut guests = self.guests.lock().ok()?;
        let bar = guests.entry(label(guest)).or_insert_with(|| {
            let bar = self.bars.insert_before(&self.total, ProgressBar::new(0));
            bar.set_style(style("{prefix:24} {bar:20} {pos}/{len} {msg}"));
            bar.set_prefix(label(guest));
            bar
        });
        Some(bar.clone())
    }
}

fn label(guest: &Name) -> String {
    format!("{} seed {}", guest.policy, guest.seed)
}

/// Estimated from finished guests; None before the first one ends.
fn left(state: &ProgressState, out: &mut dyn Write) {
    let (done, all) = (state.pos(), state.len().unwrap_or_default());
    // A bar that cannot be drawn is no reason to fail.
    let _ = out.write_str(&progress::left(state.elapsed(), done, all));
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Watcher for Progress<'_> {
    fn begins(&self, guests: usize) {
        self.total.set_length(guests as u64);
        self.total
            .enable_steady_tick(std::time::Duration::from_secs(1));
    }

    fn ages(&self, written: u64, all: u64) {
        self.ageing.hear(written, all);
    }

    fn progress(&self, guest: &Name, index: usize, count: usize, text: &str) {
        if let Some(bar) = self.bar(guest) {
            bar.set_length(count as u64);
            bar.set_position(index as u64);
            bar.set_message(text.to_owned());
        }
    }

    fn done(&self, guest: &Name, rows: usize) {
        if let Some(bar) = self.bar(guest) {
            bar.finish_and_clear();
        }
        self.total.inc(1);
        if !self.drawn {
            let (done, all) = (self.total.position(), self.total.length().unwrap_or(0));
            eprintln!("[{done}/{all}] {}: {rows} figures", label(guest));
        }
    }

    fn failed(&self, guest: &Name, error: &Error) {
        if let Some(bar) = self.bar(guest) {
            bar.finish_and_clear();
        }
        self.total.inc(1);
        let said = plain(&error.to_string());
        self.bars.suspend(|| eprintln!("{}: {said}", label(guest)));
    }

    fn first_seed(&self, result: &ResultFile) {
        if let Some(early) = &self.early {
            // All seeds' figures follow, and fail where these do.
            let _ = self.bars.suspend(|| early.show(result));
        }
    }
}
