//! The guest's side of the lab: pid 1 in a machine where nothing else runs.
//!
//! It does what [`SPEC_PATH`] says, sends what it measured over the second
//! serial port, and powers the machine off.
//!
//! It is a program of its own, `frontrow-guest`: how much memory it takes, and when, is part of every
//! figure, so that figures are the same until something in the guest changes. [`console`] and [`outbox`]
//! are for both sides.

mod active_policy;
mod command;
pub mod console;
mod filesystem;
mod module;
mod mount;
pub mod outbox;
mod port;
mod recorded;
mod snapshot;
mod trace;

use ::torture::Report;
use active_policy::ActivePolicy;
use port::Port;
use record::policy::Setting;
use record::{GuestSpec, Message, Row, Run, Task};
use snapshot::Snapshot;
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use workload::Watch;
use workload::{Measurement, Observer, RunRequest, Surface};

/// What to do: a [`GuestSpec`], as JSON.
pub const SPEC_PATH: &str = "/spec.json";

/// The trace, in the experiments that have one.
pub const TRACE_PATH: &str = "/trace";

/// Error: a sentence that is sent to the host as it is.
type Outcome<T> = Result<T, String>;

/// Mount point of the file system under test.
const MOUNT_POINT: &str = "/mnt";
const TRACEFS: &str = "/sys/kernel/tracing";
const DEBUGFS: &str = "/sys/kernel/debug";

/// Whether this process is a guest's init.
pub fn is_init() -> bool {
    std::process::id() == 1 && Path::new(SPEC_PATH).is_file()
}

/// Does all that the guest is for, and powers off.
pub fn init() -> ! {
    if let Err(reason) = life() {
        // Without a port, the error can only go to the console.
        eprintln!("frontrow: {reason}");
    }
    mount::power_off()
}

fn life() -> Outcome<()> {
    mount::all()?;
    let port = Arc::new(Port::open()?);
    let ending = match work(&port) {
        Ok(rows) => Message::Done { rows },
        Err(reason) => Message::Failed { reason },
    };
    port.send(&ending)?;
    port.drain()
}

/// Does the guest's task and returns the number of rows sent.
fn work(port: &Arc<Port>) -> Outcome<usize> {
    let text = fs::read(SPEC_PATH).map_err(|error| format!("it cannot read its spec: {error}"))?;
    let spec: GuestSpec =
        serde_json::from_slice(&text).map_err(|error| format!("its spec is damaged: {error}"))?;
    start_time_limit(port, spec.limit_virtual_s);
    for module in &spec.modules {
        module::load(module)?;
    }
    for (name, value) in &spec.sysctls {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        write(&path, value)?;
    }
    set_policy(&spec)?;
    let sent = match &spec.task {
        Task::Runs(runs) => all_runs(port, &spec, runs, &one_run)?,
        Task::Replays { part, runs } => {
            let replay = |spec: &GuestSpec, run: &Run| trace::one_run(spec, part, run);
            all_runs(port, &spec, runs, &replay)?
        }
        Task::Trials { names, rounds } => trials(port, &spec, names, *rounds)?,
        Task::Shell => shell(&spec)?,
        Task::Command(line) => run_command(&spec, line)?,
        Task::PowerCut { days } => record_stream(&spec, *days)?,
    };
    check_kernel_log()?;
    Ok(sent)
}

fn set_policy(spec: &GuestSpec) -> Outcome<()> {
    ::module::sched::policy::apply(
        Path::new("/"),
        &spec.device,
        &spec.policy.scheduler.to_string(),
    )
    .map_err(|error| format!("it cannot set policy {}: {error}", spec.policy))?;
    for (path, value) in &spec.writes {
        write(path, value)?;
    }
    Ok(())
}

/// Restarts the scheduler, which resets its statistics and measured rates.
fn restart_policy(spec: &GuestSpec) -> Outcome<()> {
    ::module::sched::policy::apply(Path::new("/"), &spec.device, "none")
        .map_err(|error| format!("it cannot take policy {} away: {error}", spec.policy))?;
    set_policy(spec)
}

/// A figure that takes longer than its experiment allows is none.
fn start_time_limit(port: &Arc<Port>, limit_s: u64) {
    if limit_s == 0 {
        return;
    }
    let port = Arc::clone(port);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(limit_s));
        let reason = format!(
            "it was not done after {limit_s} s of its own time, its experiment's limit_virtual_s"
        );
        // The host sees a guest that ended without a result either way.
        let _ = port.send(&Message::Failed { reason });
        let _ = port.drain();
        mount::power_off()
    });
}

fn drop_caches() -> Outcome<()> {
    sys::memory::drop_caches().map_err(|error| format!("it cannot drop caches: {error}"))
}

fn write(path: &str, value: &str) -> Outcome<()> {
    fs::write(path, value).map_err(|error| format!("it cannot write '{value}' to {path}: {error}"))
}

fn all_runs(
    port: &Port,
    spec: &GuestSpec,
    runs: &[Run],
    perform: &dyn Fn(&GuestSpec, &Run) -> Outcome<Vec<Row>>,
) -> Outcome<usize> {
    let mut sent = 0;
    for (index, run) in runs.iter().enumerate() {
        let text = format!("{} {}", run.workload, run.load);
        port.send(&Message::Progress {
            index,
            count: runs.len(),
            text,
        })?;
        let rows = perform(spec, run)
            .map_err(|reason| format!("{} under {}: {reason}", run.workload, run.load))?;
        sent += rows.len();
        for row in rows {
            port.send(&Message::Row(row))?;
        }
    }
    Ok(sent)
}

/// Runs one workload. Device, caches and scheduler start in the same state as for the first run.
fn one_run(spec: &GuestSpec, run: &Run) -> Outcome<Vec<Row>> {
    let device = PathBuf::from(format!("/dev/{}", spec.device));
    drop_caches()?;
    filesystem::renew(spec, &device)?;
    if workload::surface(run.workload) == Surface::Device {
        restart_policy(spec)?;
        return measure(spec, run, Path::new(MOUNT_POINT), Some(&device));
    }
    filesystem::make(&device, spec.seed)?;
    restart_policy(spec)?;
    let mount_point = Path::new(MOUNT_POINT);
    filesystem::mount(&device, mount_point, &spec.mount_options)?;
    let rows = measure(spec, run, mount_point, None)?;
    filesystem::unmount(mount_point)?;
    Ok(rows)
}

fn measure(spec: &GuestSpec, run: &Run, dir: &Path, device: Option<&Path>) -> Outcome<Vec<Row>> {
    let mut watch = Watch::new(&spec.device);
    if !run.load.recorded {
        return measure_run(spec, run, (dir, device), &mut watch);
    }
    if recorded::tells_layers(run) {
        return recorded::measure(spec, run, (dir, device), &mut watch);
    }
    let mut snapshot = Snapshot::new(watch);
    let measured = measure_run(spec, &recorded::without(run), (dir, device), &mut snapshot);
    let figures = snapshot.finish()?;
    let mut rows = recorded::called(measured?, run);
    rows.extend(figures.into_iter().map(|it| row(spec, run, it)));
    Ok(rows)
}

/// Listens while a run is measured, and has figures of its own afterwards.
trait Listener: Observer {
    fn figures(&self, run: &Run) -> Vec<Measurement>;
}

impl Listener for Watch {
    fn figures(&self, run: &Run) -> Vec<Measurement> {
        Watch::figures(self, run)
    }
}

fn measure_run(
    spec: &GuestSpec,
    run: &Run,
    (dir, device): (&Path, Option<&Path>),
    listener: &mut dyn Listener,
) -> Outcome<Vec<Row>> {
    let active = ActivePolicy::of_policy(spec, run.load.processes.len())?;
    let mut request = RunRequest {
        run,
        dir,
        device,
        seed: spec.seed,
        scale: spec.scale,
        loader: spec.policy.loader.unwrap_or_default(),
        upkeep: spec.policy.upkeep.unwrap_or_default(),
        tracefs: Some(Path::new(TRACEFS)),
        background_cgroups: active.as_ref().map_or(&[], ActivePolicy::background),
        screen_cgroups: active.as_ref().map_or(&[], ActivePolicy::screen),
        background_is_idle_class: spec.policy.settings.contains(&Setting::IdleClass),
        stop: &AtomicBool::new(false),
        observer: listener,
    };
    let mut measurements = workload::run(&mut request).map_err(|error| error.to_string())?;
    measurements.extend(listener.figures(run));
    if let Some(active) = active {
        active.release()?;
    }
    let rows = measurements.into_iter().map(|it| row(spec, run, it));
    Ok(rows.collect())
}

fn row(spec: &GuestSpec, run: &Run, it: Measurement) -> Row {
    Row {
        workload: run.workload.to_string(),
        load: run.load.to_string(),
        policy: spec.policy.to_string(),
        metric: it.metric,
        unit: it.unit.to_owned(),
        seed: spec.seed,
        value: it.value,
        histogram: it.histogram,
        series: it.series,
    }
}

fn trials(port: &Port, spec: &GuestSpec, names: &[String], rounds: u32) -> Outcome<usize> {
    let mut sent = 0;
    for (index, name) in names.iter().enumerate() {
        let progress = |text| Message::Progress {
            index,
            count: names.len(),
            text,
        };
        let message = |report| match report {
            Report::Remark(text) => progress(format!("{name}: {text}")),
            Report::Figure(figure) => Message::Row(figure_row(spec, figure)),
        };
        port.send(&progress(name.clone()))?;
        sent += one_trial(spec, name, rounds, &|report| port.send(&message(report)))?;
    }
    Ok(sent)
}

/// Passes on what the trial tells while it runs. Gives the number of its figures.
fn one_trial(
    spec: &GuestSpec,
    name: &str,
    rounds: u32,
    pass_on: &(dyn Fn(Report) -> Outcome<()> + Sync),
) -> Outcome<usize> {
    let trial = ::torture::find(name)?;
    let (reports, told) = std::sync::mpsc::channel();
    let bed = ::torture::TestBed {
        device: spec.device.clone(),
        mount_point: MOUNT_POINT.into(),
        modules: spec.modules.clone(),
        seed: spec.seed,
        rounds,
        reports,
    };
    std::thread::scope(|scope| {
        let listener = scope.spawn(move || -> Outcome<usize> {
            let mut figures = 0;
            for report in told {
                figures += usize::from(matches!(report, Report::Figure(_)));
                pass_on(report)?;
            }
            Ok(figures)
        });
        let outcome = trial.run(&bed);
        // The listener ends with the last sender.
        drop(bed);
        let figures = listener.join();
        let figures = figures.unwrap_or_else(|_| Err("a thread of it died".to_owned()))?;
        outcome.map_err(|failure| format!("trial {name}: {failure}"))?;
        Ok(figures)
    })
}

fn figure_row(spec: &GuestSpec, it: ::torture::Figure) -> Row {
    Row {
        workload: it.workload,
        load: it.load,
        policy: it.policy,
        metric: it.metric.to_owned(),
        unit: it.unit.to_owned(),
        seed: spec.seed,
        value: it.value,
        histogram: None,
        series: None,
    }
}

/// The device mounted, and the shell's programs.
fn furnish(spec: &GuestSpec) -> Outcome<()> {
    let device = PathBuf::from(format!("/dev/{}", spec.device));
    if spec.flash_image.is_some() {
        filesystem::renew(spec, &device)?;
    }
    filesystem::make(&device, spec.seed)?;
    filesystem::mount(&device, Path::new(MOUNT_POINT), &spec.mount_options)?;
    Command::new("/bin/busybox")
        .args(["--install", "-s", "/bin"])
        .status()
        .map_err(|error| format!("it has no busybox: {error}"))?;
    Ok(())
}

/// Records a stream of commands. Always returns 0: a stream has no rows.
fn record_stream(spec: &GuestSpec, days: u32) -> Outcome<usize> {
    let device = PathBuf::from(format!("/dev/{}", spec.device));
    filesystem::make(&device, spec.seed)?;
    let mount_point = Path::new(MOUNT_POINT);
    filesystem::mount(&device, mount_point, &spec.mount_options)?;
    let debugfs = Path::new(DEBUGFS).join("simflash").join(&spec.device);
    let stream = powercut::phone::record(days, spec.seed, mount_point, &debugfs)?;
    command::send_items(&[("stream".to_owned(), stream)])?;
    Ok(0)
}

/// Runs a command. Always returns 0: a command has no rows.
fn run_command(spec: &GuestSpec, line: &[String]) -> Outcome<usize> {
    furnish(spec)?;
    command::run(line)?;
    Ok(0)
}

/// A shell with the device ready to be used, until it is left.
fn shell(spec: &GuestSpec) -> Outcome<usize> {
    furnish(spec)?;
    println!(
        "{} with policy {} is mounted on {MOUNT_POINT}; leave with `exit`.",
        spec.device, spec.policy
    );
    Command::new("/bin/setsid")
        .args(["cttyhack", "/bin/sh"])
        .env("PATH", "/bin")
        .env("PS1", "guest \\w # ")
        .status()
        .map_err(|error| format!("it has no shell: {error}"))?;
    Ok(0)
}

/// Checks the kernel's buffer, which also has messages below the console's log level.
fn check_kernel_log() -> Outcome<()> {
    let log = kernel_log().map_err(|error| format!("it cannot read its kernel's log: {error}"))?;
    match console::problem(&log) {
        Some((meaning, line)) => Err(format!("{meaning}: {line}")),
        None => Ok(()),
    }
}

fn kernel_log() -> std::io::Result<String> {
    let mut kmsg = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg")?;
    let mut log = String::new();
    let mut record = [0; 8192];
    loop {
        match kmsg.read(&mut record) {
            Ok(length) => {
                let text = String::from_utf8_lossy(&record[..length]).into_owned();
                // The text follows the first semicolon; later lines have tags.
                let line = text.lines().next().unwrap_or_default();
                log.push_str(line.split_once(';').map_or(line, |(_, text)| text));
                log.push('\n');
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(log),
            // A record was overwritten before it was read; the next is there.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) => return Err(error),
        }
    }
}
