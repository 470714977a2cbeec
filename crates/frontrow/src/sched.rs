//! `frontrow sched`: the I/O scheduler on this machine.

use crate::atomic_file;
use crate::exit::{Exit, Failure};
use crate::print::{json_line, print_text};
use crate::progress;
use clap::{Args, Subcommand};
use module::kmod::{Source, Tree, Wanted};
use module::sched::taken::{self, Kept};
use module::sched::{Boost, Counters, Error, Module, Status, hour, unfit};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use sys::PathError;
use sys::device::Device;
use sys::knobs::Change;

/// Build, enable, disable and watch the frontrow I/O scheduler
#[derive(Args)]
pub struct Sched {
    /// Root directory of the system to read and change
    #[arg(long, global = true, hide = true, default_value = "/")]
    sysroot: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Use the scheduler for a device, and print the changes
    ///
    /// Loads the module if necessary, sets the device's scheduler, raises its number of request
    /// tags, and turns writeback throttling off. `frontrow sched disable` undoes all changes.
    Enable(Enable),
    /// Undo the changes of `enable`
    Disable(Disable),
    /// Record that this boot succeeded (run by frontrow-settled.timer)
    #[command(hide = true)]
    Settled,
    /// Whether `frontrow on` is for a disk (run by its udev rule)
    #[command(hide = true)]
    Gains(OneDisk),
    /// Take a disk back that somebody has taken (run by its udev rule and frontrow-watch@.service)
    #[command(hide = true)]
    Keep(Keep),
    /// Write the counters down (run by frontrow-counted.timer)
    #[command(hide = true)]
    Count,
    /// Show the scheduler of each device, and how often tasks waited for a background write
    Status(ShowStatus),
    /// Build the module for a kernel
    Build(Build),
    /// Print the private block-layer declarations of a kernel (frontrow_abi.h)
    Abi(PrintAbi),
}

#[derive(Args)]
struct Enable {
    /// A disk (sda, /dev/sda), a partition of it, or a directory on it
    device: String,
    /// Kinds of waits that promote the awaited write: all, none, or a list of
    /// meta,data,journal,discard
    #[arg(long, default_value_t = Boost::all())]
    boost: Boost,
    /// Load the module from this file, which only root may change, instead of the system's module
    /// directory
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Fail if an earlier boot with it did not complete, or if frontrow.disable=1 is on the
    /// kernel's command line
    #[arg(long)]
    at_boot: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Disable {
    /// A disk, a partition of it, or a directory on it [default: all disks that `enable` changed]
    device: Option<String>,
    /// Succeed if the disk has been taken out, and its settings with it
    #[arg(long, hide = true)]
    if_there: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct OneDisk {
    /// Name of the disk
    device: String,
}

#[derive(Args)]
struct Keep {
    #[command(flatten)]
    disk: OneDisk,
    /// udev has just run its rules for the disk
    #[arg(long)]
    after_rules: bool,
}

#[derive(Args)]
struct ShowStatus {
    /// A disk, a partition of it, or a directory on it [default: all disks]
    device: Option<String>,
    /// Count for this time, instead of since the scheduler was set
    #[arg(long, value_name = "SECONDS")]
    watch: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Build {
    #[command(flatten)]
    kernel: Kernel,
    /// Directory of the module's sources [default: those in this program]
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Directory for the module and its build files, which nobody else may change
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct PrintAbi {
    #[command(flatten)]
    kernel: Kernel,
    /// Write the header to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct Kernel {
    /// Release of the kernel, as `uname -r` prints it [default: the running one]
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Directory of the kernel's headers [default: /lib/modules/RELEASE/build]
    #[arg(long, value_name = "DIR")]
    headers: Option<PathBuf>,
    /// Type information of the kernel: BTF, a vmlinux or a vmlinuz [default: searched for]
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,
}

impl From<Kernel> for Wanted {
    fn from(kernel: Kernel) -> Self {
        Self {
            release: kernel.kernel,
            headers: kernel.headers,
            btf: kernel.btf,
        }
    }
}

/// Runs the subcommand.
pub fn run(arguments: Sched) -> Result<(), Failure> {
    let root = &arguments.sysroot;
    match arguments.action {
        Action::Enable(action) => enable(root, action),
        Action::Disable(action) => disable(root, &action),
        Action::Settled => module::sched::boot::went_well(root).map_err(failure),
        Action::Gains(disk) => gains(root, &disk),
        Action::Keep(action) => keep(root, &action),
        Action::Count => count(root),
        Action::Status(action) => status(root, action),
        Action::Build(action) => build(root, action),
        Action::Abi(action) => print_abi(root, action),
    }
}

fn enable(root: &Path, action: Enable) -> Result<(), Failure> {
    let device = resolve(root, &action.device)?;
    let module = action.module.map_or(Module::Installed, Module::File);
    if action.at_boot {
        module::sched::boot::begin(root).map_err(failure)?;
    }
    let enabled = module::sched::enable(root, &device, &action.boost, &module);
    // What failed in order did the boot no harm, and who asks by hand wants it at boot as well.
    if enabled.is_err() || !action.at_boot {
        module::sched::boot::settle(root).map_err(failure)?;
    }
    let changes = enabled.map_err(failure)?;
    let name = device.name();
    let in_the_way = write_threads(root, &device)?;
    if action.json {
        let said = json!({ "device": name, "changes": changes, "write_threads": in_the_way });
        return say(&json_line(&said));
    }
    let mut said = match changes.is_empty() {
        true => format!("{name} uses frontrow already"),
        false => format!(
            "{name} now uses frontrow; changed:\n{}\nTo undo: frontrow sched disable {name}",
            told(&changes, with_reason)
        ),
    };
    for volume in in_the_way {
        said += &format!("\n{}", without_write_thread(&volume));
    }
    say(&said)
}

/// Names of the encrypted volumes above `device` whose writes all go through one thread.
fn write_threads(root: &Path, device: &Device) -> Result<Vec<String>, Failure> {
    let above = device.encrypted_above(root);
    let above = above.map_err(|error| failure(error.into()))?;
    let with_thread = above
        .into_iter()
        .filter(|it| it.has_write_thread == Some(true));
    Ok(with_thread.map(|it| it.name).collect())
}

fn without_write_thread(volume: &str) -> String {
    format!(
        "Still in the way: all writes to the encrypted volume {volume} go through one thread, so whoever waits is behind everybody. \
         `cryptsetup refresh --perf-no_write_workqueue {volume}` lets each writer encrypt its own \
         (`cryptsetup refresh {volume}` undoes it)"
    )
}

fn told(changes: &[Change], how: fn(&Change) -> String) -> String {
    let lines: Vec<_> = changes.iter().map(how).collect();
    lines.join("\n")
}

fn with_reason(change: &Change) -> String {
    format!("  {change:#}")
}

fn without_reason(change: &Change) -> String {
    format!("  {change}")
}

fn disable(root: &Path, action: &Disable) -> Result<(), Failure> {
    let Some(device) = &action.device else {
        let disks = schedulable(root)?;
        let enabled = disks.iter().zip(states(root, &disks)?);
        let enabled: Vec<_> = enabled
            .filter(|(_, state)| !state.changes.is_empty())
            .collect();
        if enabled.is_empty() && !action.json {
            return say("no disk of this machine was put under frontrow: nothing to restore");
        }
        return enabled
            .iter()
            .try_for_each(|(disk, _)| disable_one(root, disk, action.json));
    };
    match Device::resolve(root, device) {
        Err(sys::device::Error::NotFound(_)) if action.if_there => Ok(()),
        Err(error) => Err(failure(error.into())),
        Ok(device) => disable_one(root, &device, action.json),
    }
}

fn disable_one(root: &Path, device: &Device, as_json: bool) -> Result<(), Failure> {
    let changes = module::sched::disable(root, device).map_err(failure)?;
    module::sched::boot::settle(root).map_err(failure)?;
    let name = device.name();
    if as_json {
        return say(&json_line(&json!({ "device": name, "changes": changes })));
    }
    if changes.is_empty() {
        return say(&format!("{name} does not use frontrow: nothing to restore"));
    }
    say(&format!(
        "{name} is as it was before:\n{}",
        told(&changes, without_reason)
    ))
}

/// Succeeds if the disk is to get the scheduler now.
fn gains(root: &Path, disk: &OneDisk) -> Result<(), Failure> {
    let device = resolve(root, &disk.device)?;
    let refused = |why: String| {
        Err(Failure::new(
            Exit::Refused,
            format_args!("{}: {why}", device.name()),
        ))
    };
    if let Some(why) = unfit(&device).map_err(failure)? {
        return refused(why.to_string());
    }
    if !crate::on::is_for(root, &device)? {
        return refused("it is as `frontrow on` found it".to_owned());
    }
    if taken::is_left(root, &device).map_err(failure)? {
        return refused("it was left to who took it".to_owned());
    }
    Module::Installed.find(root).map_err(failure)
}

fn keep(root: &Path, action: &Keep) -> Result<(), Failure> {
    let device = resolve(root, &action.disk.device)?;
    if !action.after_rules {
        // Rules that run just now have a last word, which is ours.
        let _ = sys::programs::output_of("udevadm", &["settle", "--timeout=10"]);
    }
    let name = device.name();
    match taken::keep(root, &device, action.after_rules).map_err(failure)? {
        Kept::NotOurs | Kept::InPlace => Ok(()),
        Kept::TakenBack(taken) => say(&format!(
            "{name} was given {} by {}: taken back",
            taken.scheduler, taken.by
        )),
        Kept::Left(taken) => {
            crate::on::give_up(name);
            say(&format!(
                "{name} was given {} by {}, again: it is left so until `frontrow on`",
                taken.scheduler, taken.by
            ))
        }
    }
}

fn count(root: &Path) -> Result<(), Failure> {
    // The daemon writes down the last minutes, too, when it is asked. It may not run.
    let _ = foreground::ask(root, &foreground::Request::Status);
    hour::count(root, &schedulable(root)?).map_err(failure)
}

fn status(root: &Path, action: ShowStatus) -> Result<(), Failure> {
    let devices = match &action.device {
        Some(device) => vec![resolve(root, device)?],
        None => schedulable(root)?,
    };
    let states = states(root, &devices)?;
    let Some(seconds) = action.watch else {
        if module::sched::boot::is_without(root) && !action.json {
            say(&Error::BootFailed.to_string())?;
        }
        return report(
            &devices,
            &states,
            "since the scheduler was set",
            None,
            action.json,
        );
    };
    thread::sleep(Duration::from_secs(seconds));
    let mut later = self::states(root, &devices)?;
    for (state, earlier) in later.iter_mut().zip(&states) {
        state.counters = growth(state.counters.as_ref(), earlier.counters.as_ref());
    }
    let period = match seconds {
        60 => "in the last minute".to_owned(),
        1 => "in the last second".to_owned(),
        _ => format!("in the last {seconds} seconds"),
    };
    report(&devices, &later, &period, Some(seconds), action.json)
}

/// Disks with a medium and a scheduler.
fn schedulable(root: &Path) -> Result<Vec<Device>, Failure> {
    let unread = |error: sys::device::Error| failure(error.into());
    let mut devices = Vec::new();
    for device in Device::all(root).map_err(unread)? {
        let has_medium = device.size_bytes().map_err(unread)? > 0;
        if has_medium && device.schedulers().map_err(unread)?.is_some() {
            devices.push(device);
        }
    }
    Ok(devices)
}

fn states(root: &Path, devices: &[Device]) -> Result<Vec<Status>, Failure> {
    devices
        .iter()
        .map(|device| module::sched::status(root, device).map_err(failure))
        .collect()
}

fn growth(later: Option<&Counters>, earlier: Option<&Counters>) -> Option<Counters> {
    match (later, earlier) {
        (Some(later), Some(earlier)) => Some(later.since(earlier)),
        (later, _) => later.cloned(),
    }
}

fn report(
    devices: &[Device],
    states: &[Status],
    period: &str,
    watched_s: Option<u64>,
    as_json: bool,
) -> Result<(), Failure> {
    let described = devices.iter().zip(states);
    if as_json {
        let list: Vec<_> = described
            .map(|(device, state)| in_json(device, state, watched_s))
            .collect();
        return say(&json_line(&json!(list)));
    }
    let lines: Vec<_> = described
        .map(|(device, state)| in_words(device, state, period))
        .collect();
    match lines.is_empty() {
        true => say("no disk of this machine has an I/O scheduler"),
        false => say(&lines.join("\n")),
    }
}

fn in_json(device: &Device, state: &Status, watched_s: Option<u64>) -> serde_json::Value {
    json!({
        "device": device.name(),
        "scheduler": state.scheduler,
        "boost": state.boost.as_ref().map(Boost::to_string),
        "changes": state.changes,
        "watched_s": watched_s,
        "counters": state.counters.as_ref().map(Counters::all),
    })
}

fn in_words(device: &Device, state: &Status, period: &str) -> String {
    let name = device.name();
    let mut text = format!("{name}: {}", state.scheduler);
    if let Some(boost) = state.boost.as_ref().filter(|boost| **boost != Boost::all()) {
        text += &format!(", boost {boost}");
    }
    if let Some(counters) = &state.counters {
        text += &format!("; {}", counters.in_words(period));
        if let Some(detection) = counters.detection_in_words() {
            text += &format!("\n  {detection}");
        }
    }
    if !state.changes.is_empty() {
        text += &format!("\n{}", told(&state.changes, without_reason));
    }
    text
}

fn build(root: &Path, action: Build) -> Result<(), Failure> {
    let wanted = Wanted::from(action.kernel);
    let tree = Tree::find(root, &wanted).map_err(|error| failure(error.into()))?;
    module::sched::build::check(root, &wanted).map_err(failure)?;
    let source = match &action.source {
        Some(directory) => Source::read(directory).map_err(|error| failure(error.into()))?,
        None => module::sched::build::source(),
    };
    let building = progress::waiting_for("Building the module");
    let module = module::sched::build::build(&tree, source, &action.out).map_err(failure)?;
    building.finish_and_clear();
    if action.json {
        return say(&json_line(
            &json!({ "kernel": tree.release, "module": module }),
        ));
    }
    say(&format!(
        "{}: for kernel {}",
        module.display(),
        tree.release
    ))
}

fn print_abi(root: &Path, action: PrintAbi) -> Result<(), Failure> {
    let wanted = Wanted::from(action.kernel);
    let btf = wanted.btf(root).map_err(|error| failure(error.into()))?;
    let headers = wanted.headers(root);
    let header = module::sched::build::header(&btf, headers.as_deref()).map_err(failure)?;
    match action.out {
        Some(path) => atomic_file::write(&path, header),
        None => say(header.trim_end()),
    }
}

fn resolve(root: &Path, device: &str) -> Result<Device, Failure> {
    Device::resolve(root, device).map_err(|error| failure(error.into()))
}

fn say(text: &str) -> Result<(), Failure> {
    print_text(&format!(
        "{text}
"
    ))
}

/// The unit that puts a disk under the scheduler.
pub(crate) fn unit_of(disk: &str) -> String {
    format!("frontrow-sched@{disk}.service")
}

/// Exit code for an error of the scheduler.
pub(crate) fn failure(error: Error) -> Failure {
    let exit = match &error {
        error if error.is_permission() => Exit::Permission,
        Error::UnknownPolicy { .. } | Error::UnknownBoost(_) => Exit::Usage,
        Error::Device(sys::device::Error::NotFound(_)) => Exit::Usage,
        Error::Device(sys::device::Error::NoDevice { .. })
        | Error::NoScheduler { .. }
        | Error::NotOffered { .. }
        | Error::KernelUnsupported { .. }
        | Error::Build(module::kmod::Error::NoBtf { .. })
        | Error::Abi { .. } => Exit::Unsupported,
        Error::NoModule { .. }
        | Error::NoModprobe(_)
        | Error::OtherKernel { .. }
        | Error::Build(
            module::kmod::Error::NoHeaders { .. } | module::kmod::Error::NoMake { .. },
        ) => Exit::Missing,
        Error::NotOurs { .. }
        | Error::Shared { .. }
        | Error::Build(module::kmod::Error::Shared { .. })
        | Error::TurnedOff
        | Error::BootFailed => Exit::Refused,
        Error::File(PathError { source, .. })
        | Error::Build(module::kmod::Error::File(PathError { source, .. })) => source.into(),
        _ => Exit::Internal,
    };
    Failure::new(exit, error)
}
