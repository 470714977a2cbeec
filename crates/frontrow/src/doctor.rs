//! `frontrow doctor`: measures why a machine stutters, and prints a diagnosis.

mod linked;
mod study;
mod trial;

use self::linked::{Linked, Unlinked, link};

use crate::atomic_file::{AtomicFile, unwritable};
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::iopro::scope::{duration, running_btf};
use crate::print::{json, plain, print_text};
use crate::progress;
use clap::builder::ArgPredicate;
use doctor::stall::{Ended, Next, Stall};
use doctor::top::Frame;
use doctor::watch::{Watch, cpu_time};
use doctor::{Error, Level, Machine, Observation, fleet, html, judge, machine, metrics, page};
use iopro::capture::{self, Loaded};
use iopro::report::UnderWay;
use std::io::{self, IsTerminal};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use sys::confine::{self, Capabilities, Confinement, Programs};
use sys::realtime;

/// Longest interval at which the stop flag and due actions are checked.
const TURN: Duration = Duration::from_millis(20);
/// Capabilities for what is watched: stacks of tasks (CAP_SYS_ADMIN), files and rates of others' processes,
/// files that were waited for, and the programs that are attached anew.
pub(crate) const WATCHES: Capabilities = Capabilities::SYS_ADMIN
    .union(Capabilities::SYS_PTRACE)
    .union(Capabilities::DAC_READ_SEARCH)
    .union(Capabilities::SYSLOG)
    .union(Capabilities::PERFMON)
    .union(Capabilities::BPF);
/// Lengths of stalls that can be told from none, as level 1 looks each tenth of a second.
const STALLS: RangeInclusive<Duration> = Duration::from_millis(200)..=Duration::from_secs(600);

/// Find out why this machine stutters: who waits, how long, for what, and what causes it
///
/// It watches while you use the machine, and prints one page. As root and with BTF it sees each
/// wait in the storage stack; otherwise it names what it cannot see. It changes nothing, except
/// with --try. Ctrl-C ends the measurement early and prints the result so far, and writes the page.
#[derive(clap::Args)]
pub struct Args {
    /// Duration of the measurement
    #[arg(long, value_name = "N", default_value = "60", default_value_if("until_stall", ArgPredicate::IsPresent, "86400"), value_parser = clap::value_parser!(u64).range(1..=86400))]
    seconds: u64,
    /// Measure until some task was held up by I/O for this time, such as 500ms; --seconds is then a
    /// limit, by default a day
    #[arg(long, value_name = "DURATION", value_parser = stall_length, conflicts_with_all = ["study", "undo"])]
    until_stall: Option<Duration>,
    #[command(flatten)]
    trial: trial::Options,
    #[command(flatten)]
    study: study::Study,
    /// Write the recording of level 1 to this file, for frontrow iopro report and export
    #[arg(long, value_name = "FILE", conflicts_with = "wanted")]
    recording: Option<PathBuf>,
    /// Type information of this kernel, for one that has none itself (Raspberry Pi OS): BTF, a vmlinux
    /// or a vmlinuz. Level 1 then uses tracepoints only, which see less
    #[arg(long, value_name = "FILE", conflicts_with = "undo")]
    btf: Option<PathBuf>,
    /// Also write the result to this file, as an HTML page with pictures
    #[arg(long, value_name = "FILE", conflicts_with_all = ["study", "undo"])]
    html: Option<PathBuf>,
    /// Also write figures to this file in Prometheus' text format, as node_exporter's textfile
    /// collector reads them (DIR/frontrow.prom): seconds lost by app, class, culprit and disk
    #[arg(long, value_name = "FILE", conflicts_with_all = ["study", "undo"])]
    metrics: Option<PathBuf>,
    #[command(flatten)]
    fleet: Fleet,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Root directory of the system to read
    #[arg(long, hide = true, default_value = "/")]
    sysroot: PathBuf,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    let root = &args.sysroot;
    if args.trial.undo {
        return trial::run_undo(root, &args.trial);
    }
    check_outputs(&args)?;
    let btf = args.btf.as_deref().map(running_btf).transpose()?;
    let btf = btf.as_deref();
    machine::check(root).map_err(failure)?;
    if args.trial.wanted {
        machine::check_writable(root).map_err(failure)?;
    }
    let stop = catch_signals()?;
    if let Some(length) = args.study.study {
        let partition = args.fleet.begin(root, [&fleet::APPS])?;
        return study::run(root, &args.study, length, btf, args.json, partition, &stop);
    }
    let mut machine = Machine::look(root).map_err(failure)?;
    machine.look_for_wear(root);
    let length = Duration::from_secs(args.seconds);
    // Better now than after the measurement.
    let page_file = args.html.as_deref().map(AtomicFile::create_private);
    let page_file = page_file.transpose()?;
    let metrics_file = args.metrics.as_deref().map(AtomicFile::create);
    let metrics_file = metrics_file.transpose()?;
    let recording = args.recording.as_deref().map(AtomicFile::create_private);
    let mut recording = recording.transpose()?;
    let partitions = args.fleet.begin(root, [&fleet::STALLS, &fleet::DISKS])?;
    let watching = match args.until_stall {
        Some(_) => progress::waiting_for("Watching until the next stall"),
        None => progress::watching(length),
    };
    let Seen {
        mut seen,
        why_not,
        ended,
        programs,
    } = observe(
        root,
        machine,
        How {
            length,
            until_stall: args.until_stall,
            is_coarse: false,
            btf,
            kept: kept(&args)?,
            recording: recording.as_mut(),
            frames: None,
        },
        &stop,
    )?;
    watching.finish_and_clear();
    if let Some(recording) = recording {
        recording.write("")?;
    }
    seen.machine.look_for_errors(root);
    let mut diagnosis = judge(&seen);
    let why_not = why_not.map(|why| format!("what level 1 does: {why}"));
    diagnosis.cannot_see.extend(why_not);
    diagnosis.until_stall = ended;
    if stop.load(Ordering::Relaxed) {
        diagnosis.ended_early_of_ns = Some(length.as_nanos() as u64);
    }
    if let Some(partitions) = partitions {
        let origin = partitions.origin.clone();
        let stalls = fleet::stalls(&diagnosis, &seen.machine, &origin);
        let disks = fleet::disks(&diagnosis, &seen.machine, &origin);
        partitions.write([stalls, disks])?;
    }
    match args.json {
        true => print_text(&json(&diagnosis)?)?,
        false => print_text(&plain(&page::text(&diagnosis)))?,
    }
    if let Some(file) = page_file {
        file.write(plain(&html::page(&diagnosis, &again(&args))))?;
        tell_who_may_read(&args);
    }
    if let Some(file) = metrics_file {
        file.write(metrics::text(&diagnosis))?;
    }
    // This takes some seconds, so the page is printed first.
    drop(programs);
    match args.trial.wanted {
        true => trial::run(root, &args.trial, &diagnosis, btf, args.json, &stop),
        false => Ok(()),
    }
}

impl Args {
    fn outputs(&self) -> impl Iterator<Item = &PathBuf> {
        let outputs = [&self.html, &self.recording, &self.metrics];
        outputs.into_iter().flatten()
    }
}

/// Fails if two outputs are the same file.
fn check_outputs(args: &Args) -> Result<(), Failure> {
    let mut outputs: Vec<_> = args.outputs().collect();
    outputs.sort();
    match outputs.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(Failure::new(
            Exit::Usage,
            "two of --html, --recording and --metrics name the same file: give each its own",
        )),
        false => Ok(()),
    }
}

/// Capabilities that are kept while watching, those for the outputs included. None if a trial follows, which
/// changes the machine.
fn kept(args: &Args) -> Result<Option<Capabilities>, Failure> {
    if args.trial.wanted {
        return Ok(None);
    }
    let mut kept = WATCHES;
    for path in args.outputs() {
        kept |= sys::walk::Place::of(path)
            .and_then(|place| confine::to_change(place.directory()))
            .map_err(unwritable(path))?;
    }
    Ok(Some(kept))
}

/// Says at a terminal under sudo how the user gets to read the page, which is root's.
fn tell_who_may_read(args: &Args) {
    let is_sudo = std::env::var_os("SUDO_USER").is_some();
    if is_sudo && io::stderr().is_terminal() {
        let file = page_name(args);
        eprintln!("Only root may read {file} so far: sudo chown \"$USER\" {file}");
    }
}

/// The command that makes the same page again.
fn again(args: &Args) -> String {
    let sudo = match rustix::process::geteuid().is_root() {
        true => "sudo ",
        false => "",
    };
    let (seconds, file) = (args.seconds, page_name(args));
    let until = args.until_stall;
    let until = until.map(|it| format!(" --until-stall {}ms", it.as_millis()));
    let until = until.unwrap_or_default();
    let btf = args
        .btf
        .as_deref()
        .map(|it| judge::quoted(&it.to_string_lossy()));
    let btf = btf.map(|it| format!(" --btf {it}")).unwrap_or_default();
    format!("{sudo}frontrow doctor --seconds {seconds}{until}{btf} --html {file}")
}

/// The page's path as one word of a shell.
fn page_name(args: &Args) -> String {
    let file = args.html.as_deref().unwrap_or(Path::new("FILE"));
    judge::quoted(&file.to_string_lossy())
}

/// Parameters of the measurement.
pub(crate) struct How<'a> {
    pub(crate) length: Duration,
    /// Length of the stall that ends the measurement.
    pub(crate) until_stall: Option<Duration>,
    /// Aggregate by process and class, in bounded memory.
    pub(crate) is_coarse: bool,
    /// The running kernel's BTF, if it has none itself.
    pub(crate) btf: Option<&'a [u8]>,
    /// Capabilities that are kept once the programs are in the kernel; None for all of them.
    pub(crate) kept: Option<Capabilities>,
    /// File that also receives the recording of level 1.
    pub(crate) recording: Option<&'a mut AtomicFile>,
    /// Receiver of what each interval has.
    pub(crate) frames: Option<Frames<'a>>,
}

/// Receiver of frames: the measurement is told interval by interval, and begins anew after each.
pub(crate) struct Frames<'a> {
    /// Length of an interval.
    pub(crate) every: Duration,
    /// Takes a frame; returns whether to go on.
    pub(crate) tell: &'a mut dyn FnMut(Frame) -> bool,
}

/// Result of the measurement.
pub(crate) struct Seen {
    seen: Observation,
    /// Reason why no better level was used.
    pub(crate) why_not: Option<String>,
    /// Result of the wait for a stall.
    ended: Option<Ended>,
    /// Programs to take out of the kernel at the end.
    programs: Option<Loaded>,
}

/// Gives up all but these capabilities, and what the doctor never does.
pub(crate) fn give_up(kept: Option<Capabilities>, programs: Programs) -> Result<(), Failure> {
    if let Some(kept) = kept {
        let watcher = Confinement::of_watcher().with_programs(programs);
        watcher.keeping(kept).begin()?;
    }
    Ok(())
}

/// Measures at the best level that this machine supports.
pub(crate) fn observe(
    root: &Path,
    machine: Machine,
    mut how: How<'_>,
    stop: &AtomicBool,
) -> Result<Seen, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    // A tree made for a test says nothing of this machine's tracing.
    let (length, keeps, kept) = (how.length, how.recording.is_some(), how.kept);
    let until_stall = how.until_stall;
    let mut frames = how.frames.take();
    let may_link = is_root && root == Path::new("/");
    // Without it, a program with such a priority would delay all. Where it may not have it, that one does.
    let _ = realtime::begin();
    let why_not = match may_link {
        true => match link(root, how, &mut frames, stop) {
            Ok((watching, waits, programs)) => {
                let ended = watching.ended();
                return Ok(Seen {
                    seen: watching.watch.end(Level::Linked, machine, Some(waits)),
                    why_not: None,
                    ended,
                    programs: Some(programs),
                });
            }
            Err(Unlinked::Failed(failure)) => return Err(failure),
            Err(Unlinked::Impossible(why)) if keeps => return Err(why.into()),
            Err(Unlinked::Impossible(why)) => Some(why.to_string()),
        },
        false if keeps => return Err(capture::Error::NoPermission.into()),
        false => None,
    };
    give_up(kept, Programs::None)?;
    let level = match is_root {
        true => Level::Sampled,
        false => Level::Unprivileged,
    };
    let mut watching = Watching::begin(root, until_stall);
    while watching.begun.elapsed() < length
        && !stop.load(Ordering::Relaxed)
        && watching.turn() != Next::End
        && watching.tell(&mut frames, level, || (None, Vec::new()))?
    {
        thread::sleep(watching.pause());
    }
    let ended = watching.ended();
    Ok(Seen {
        seen: watching.end(level, machine),
        why_not,
        ended,
        programs: None,
    })
}

/// A measurement, of which the begin is forgotten while a stall is awaited.
pub(crate) struct Watching<'a> {
    root: &'a Path,
    watch: Watch,
    begun: Instant,
    /// CPU time of this thread by then.
    cpu_begun: Duration,
    stall: Option<Stall>,
    /// Number of frames that were told.
    frames: u32,
    /// Whether iopro tells of waits now.
    is_linking: bool,
}

impl Watching<'_> {
    pub(crate) fn begin(root: &Path, until_stall: Option<Duration>) -> Watching<'_> {
        // Before the counters are read: a stall goes on while they are.
        let (begun, cpu_begun) = (Instant::now(), cpu_time());
        let watch = Watch::begin(root);
        Watching {
            root,
            begun,
            cpu_begun,
            stall: until_stall.map(|it| Stall::of(it, watch.first_io_pressure_ns())),
            frames: 0,
            is_linking: false,
            watch,
        }
    }

    /// As [`Watching::begin`], within a stall: some task was held up for this time right before.
    pub(crate) fn begin_within(root: &Path, asked: Duration, held_up: Duration) -> Watching<'_> {
        let watching = Watching::begin(root, Some(asked));
        Watching {
            stall: watching.stall.map(|it| it.begun_before(held_up)),
            ..watching
        }
    }

    fn begin_linking(&mut self) {
        self.is_linking = true;
        self.watch.begin_linking();
    }

    fn end_linking(&mut self) {
        self.is_linking = false;
        self.watch.end_linking();
    }

    pub(crate) fn turn(&mut self) -> Next {
        self.watch.turn();
        let Some(stall) = &mut self.stall else {
            return Next::GoOn;
        };
        // While this thread has a CPU, who was held up may wait for that, which is no pressure of I/O.
        let own = cpu_time().saturating_sub(self.cpu_begun);
        let elapsed = self.begun.elapsed().saturating_sub(own);
        let next = stall.turn(elapsed, || self.watch.io_pressure_ns());
        if next == Next::BeginAnew {
            self.watch = Watch::begin(self.root);
            if self.is_linking {
                self.watch.begin_linking();
            }
        }
        next
    }

    /// Tells what an interval had once it is over, with what iopro told of it. Returns whether to go on.
    fn tell(
        &mut self,
        frames: &mut Option<Frames<'_>>,
        level: Level,
        told: impl FnOnce() -> (Option<Linked>, Vec<UnderWay>),
    ) -> Result<bool, Failure> {
        let Some(frames) = frames else {
            return Ok(true);
        };
        if self.begun.elapsed() < frames.every * (self.frames + 1) {
            return Ok(true);
        }
        let machine = Machine::look(self.root).map_err(failure)?;
        let (linked, under_way) = told();
        let seen = self.watch.cut(level, machine, linked);
        let at = self.begun.elapsed();
        // Intervals that a machine in trouble missed are told as one.
        self.frames = (at.as_nanos() / frames.every.as_nanos().max(1)) as u32;
        Ok((frames.tell)(Frame::of(
            &seen,
            at.as_nanos() as u64,
            under_way,
        )))
    }

    /// Time until the next turn.
    pub(crate) fn pause(&self) -> Duration {
        self.watch.until_due().min(TURN)
    }

    /// I/O pressure of the system since its start, in nanoseconds.
    pub(crate) fn io_pressure_ns(&self) -> u64 {
        self.watch.io_pressure_ns()
    }

    /// What was observed without iopro.
    pub(crate) fn end(self, level: Level, machine: Machine) -> Observation {
        self.watch.end(level, machine, None)
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        let elapsed = self.begun.elapsed();
        self.stall.map(|it| it.end(elapsed))
    }
}

/// Parses the length of a stall.
fn stall_length(text: &str) -> Result<Duration, String> {
    let wrong = || "give a time from 200ms to 10m, such as 500ms or 2s".to_owned();
    let length = match text.strip_suffix("ms") {
        Some(ms) => Duration::from_millis(ms.parse().map_err(|_| wrong())?),
        None => duration(text).map_err(|_| wrong())?,
    };
    match STALLS.contains(&length) {
        true => Ok(length),
        false => Err(wrong()),
    }
}

pub(crate) fn failure(error: Error) -> Failure {
    let exit = match error {
        Error::NoProc(_) | Error::Container | Error::NoPressure | Error::OldCgroups => {
            Exit::Unsupported
        }
        Error::ReadOnly => Exit::Permission,
        Error::Device(_) => Exit::Internal,
    };
    Failure::new(exit, error)
}
