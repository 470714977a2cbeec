//! `frontrow lab`: experiments on stock kernels in emulated machines.

mod ageing;
mod exec;
mod kernel;
mod powercut;
mod torture;

use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json as json_of, print_text, table_options};
use crate::progress;
use crate::seeds::Seeds;
use crate::whole;
use ::lab::{Cache, Error, Name, Request, Shell, Sources, Watcher};
use ageing::Ageing;
use clap::Subcommand;
use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use kernel::Choice as KernelChoice;
use record::{Experiment, ResultFile, Scale, Summary, html, markdown, picture, table};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, thread};

/// Run experiments on stock kernels in emulated machines
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run an experiment and print its table
    Run(Run),
    /// List the experiments
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what an experiment does, or the result in a directory
    Show {
        /// An experiment's name, or a directory with a result.json
        what: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print the result in a directory as Markdown
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        /// Print all of the result's figures, and what was promised
        #[arg(long, conflicts_with_all = ["json", "markdown"])]
        details: bool,
    },
    /// Try what the kernel modules withstand: changes, faults and races under load
    Torture(torture::Torture),
    /// Cut the power of a phone at any operation, and see what is left of its files
    ///
    /// A guest uses a small phone and defragments it, and the device writes down what it is told.
    /// That is played again here, by the same flash core, as often as the power is cut. That is at
    /// each program and erase of the defragmentation, and at random points of all of it. After each
    /// cut the device recovers, e2fsck replays the journal and finds nothing else, and all files
    /// that nobody was changing are read.
    Powercut(powercut::PowerCut),
    /// Open a shell in a guest with all modules loaded and the device mounted
    Shell(OpenShell),
    /// Run a command in a guest with the device mounted, and bring out what it leaves
    ///
    /// It runs in the device's file system. What it puts into /out goes to the directory of
    /// --out, and so do the files `stdout` and `stderr`. `frontrow` is there too.
    Exec(exec::Exec),
}

#[derive(clap::Args)]
struct OpenShell {
    #[command(flatten)]
    kernel: KernelChoice,
    /// emmc, emmc-cqe, ufs, ufs3, sd, usb-stick, usb-stick-slow, nvme-dramless, zero, or the path of a profile that ends in .toml; `:fresh` behind it: new, not aged
    #[arg(long, default_value = "emmc")]
    device: String,
    /// The policy it starts with
    #[arg(long, default_value = "mq-deadline")]
    policy: String,
    /// More programs, such as fio,blktrace,strace
    #[arg(long, value_delimiter = ',', value_name = "PROGRAM,…")]
    with: Vec<String>,
    /// CPUs
    #[arg(long, default_value_t = 2)]
    cpus: u32,
}

#[derive(clap::Args)]
struct Run {
    /// The experiment; `frontrow lab list` names them
    experiment: String,
    #[command(flatten)]
    kernel: KernelChoice,
    /// emmc, emmc-cqe, ufs, ufs3, sd, usb-stick, usb-stick-slow, nvme-dramless, zero, or the path of a profile that ends in .toml; `:fresh` behind it: new, not aged [default: the experiment's]
    #[arg(long)]
    device: Option<String>,
    /// Only these policies instead of all the experiment's
    #[arg(long, value_delimiter = ',', value_name = "POLICY,…")]
    policy: Vec<String>,
    /// One guest for each of these seeds and each policy: A..B, both included, or one number
    #[arg(long, default_value = "1..5", value_name = "A..B")]
    seeds: Seeds,
    /// How large the runs are: demo, full (the papers' sizes), or a part of full such as 0.1
    #[arg(long, default_value = "demo")]
    scale: Scale,
    /// Guests at once [default: one for each core]
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Only these workloads
    #[arg(long, value_delimiter = ',', value_name = "WORKLOAD,…")]
    workload: Vec<String>,
    /// Only these loads
    #[arg(long, value_delimiter = ',', value_name = "LOAD,…")]
    load: Vec<String>,
    /// The block trace that the experiment plays, where it plays one
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Keep the result of each guest that is done: if the run is interrupted, the same command goes on
    #[arg(long)]
    keep: bool,
    /// Write result.json, report.html and the headline as picture.svg into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the result as JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Print all figures, and what was promised
    #[arg(long, conflicts_with = "json")]
    details: bool,
}

/// Does what the command line says.
pub fn run(args: Args) -> Result<(), Failure> {
    match args.action {
        Action::Run(args) => run_experiment(args),
        Action::Shell(args) => open_shell(args),
        Action::Exec(args) => exec::run(args),
        Action::Torture(args) => torture::run(args),
        Action::Powercut(args) => powercut::run(args),
        Action::List { json } => list(json),
        Action::Show {
            what,
            json,
            markdown,
            details,
        } => show(&what, json, markdown, details),
    }
}

fn run_experiment(args: Run) -> Result<(), Failure> {
    let sources = Sources::here();
    let experiment = chosen(sources.experiment(&args.experiment)?, &args)?;
    let device = sources.device(args.device.as_ref().unwrap_or(&experiment.device))?;
    if let Some(out) = &args.out {
        // Better now than after minutes.
        fs::create_dir_all(out).map_err(|error| Failure::unwritable(out, &error))?;
    }
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
        keeps_guests: args.keep,
    };
    let progress = Progress::new();
    let result = ::lab::run(&cache, &sources, &request, &progress, &stop);
    progress.end();
    let result = result?;
    if let Some(out) = &args.out {
        write(out, &result)?;
    }
    print(&result, args.json, args.details)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}

fn open_shell(args: OpenShell) -> Result<(), Failure> {
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

/// The experiment cut down to what the command line asks for.
fn chosen(mut experiment: Experiment, args: &Run) -> Result<Experiment, Failure> {
    if !args.policy.is_empty() {
        experiment.policies.clone_from(&args.policy);
    }
    let wanted = |names: &[String], name: &String| names.is_empty() || names.contains(name);
    let runs = experiment.runs.iter();
    let known: Vec<_> = runs
        .map(|run| format!("{} {}", run.workload, run.load))
        .collect();
    experiment
        .runs
        .retain(|run| wanted(&args.workload, &run.workload) && wanted(&args.load, &run.load));
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
        whole::write(&out.join(name), text)?;
    }
    if let Some(picture) = picture::render(&Summary::of(result)) {
        whole::write(&out.join("picture.svg"), picture)?;
    }
    Ok(())
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

fn list(json: bool) -> Result<(), Failure> {
    let experiments = Sources::here().experiments()?;
    if json {
        return print_text(&json_of(&experiments)?);
    }
    let lines = experiments.iter();
    let lines = lines.map(|it| format!("{:12} {}\n", it.name, it.title));
    print_text(&lines.collect::<String>())
}

fn show(what: &str, json: bool, markdown: bool, details: bool) -> Result<(), Failure> {
    let path = Path::new(what).join("result.json");
    if path.is_file() {
        let result = read_result(&path)?;
        return match markdown {
            true => print_text(&markdown::render(&result)),
            false => print(&result, json, details),
        };
    }
    if markdown {
        return Err(Failure::new(
            Exit::Usage,
            format_args!("{what} has no result.json: give the directory of `lab run --out`"),
        ));
    }
    let experiment = Sources::here().experiment(what)?;
    if json {
        return print_text(&json_of(&experiment)?);
    }
    print_text(&description(&experiment))
}

fn description(experiment: &Experiment) -> String {
    let mut lines = vec![
        format!("{}: {}", experiment.name, experiment.title),
        format!("policies: {}", experiment.policies.join(", ")),
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
    lines.join("\n") + "\n"
}

fn read_result(path: &Path) -> Result<ResultFile, Failure> {
    let path_shown = path.display();
    let text = fs::read(path).map_err(|error| {
        let sentence = format_args!("cannot read {path_shown}: {error}");
        Failure::new(Exit::from(&error), sentence)
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        let sentence = format_args!("{path_shown} is no result of an experiment: {error}");
        Failure::new(Exit::Usage, sentence)
    })
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
            Error::File { .. } | Error::Tool { .. } | Error::Spec(_) => Exit::Internal,
        };
        Failure::new(exit, error)
    }
}

/// How far the guests are: bars on a terminal, a line for each guest elsewhere.
struct Progress {
    bars: MultiProgress,
    total: ProgressBar,
    ageing: Ageing,
    guests: Mutex<BTreeMap<String, ProgressBar>>,
    drawn: bool,
}

impl Progress {
    fn new() -> Progress {
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

/// By the guests that are done: before the first one nobody knows.
fn left(state: &ProgressState, out: &mut dyn Write) {
    let (done, all) = (state.pos(), state.len().unwrap_or_default());
    // A bar that cannot be drawn is no reason to fail.
    let _ = out.write_str(&progress::left(state.elapsed(), done, all));
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Watcher for Progress {
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
}
