//! `frontrow doctor --try` and `--undo`: a change, its way back, and what it brings on this machine.
//!
//! While a trial runs, `/run/frontrow/doctor-trial` says what is tried, and a process that
//! only waits for this one to end undoes it if this one could not: after `kill -9`, or at log-out.

use super::{How, Seen, observe};
use crate::exit::{Exit, Failure};
use crate::print::{json, plain, print_text};
use crate::progress;
use doctor::judge::{Advice, Remedy};
use doctor::settle::Settling;
use doctor::trial::{Effect, Outcome, lost_per_second, order, outcome, text};
use doctor::{Diagnosis, Machine};
use foreground::DirtyLimits;
use module::sched::{Boost, Module};
use serde_json::json as value;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use sys::device::Device;
use sys::knobs::Home;
use sys::memory::entry_bytes;

/// Name of the file that records the change under trial.
const MARK: &str = "doctor-trial";
const TURN: Duration = Duration::from_millis(100);

/// Arguments of a trial.
#[derive(clap::Args)]
pub struct Options {
    /// Apply the first advice in some windows of time and not in others, report the difference, and
    /// undo it
    #[arg(long = "try", conflicts_with = "undo")]
    pub wanted: bool,
    /// With --try: keep the change if it helps, across reboots
    #[arg(long, requires = "wanted")]
    keep: bool,
    /// With --try: number of pairs of windows, one with the change and one without
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u16).range(4..=500))]
    pairs: u16,
    /// With --try: length of each window
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=3600))]
    window: u64,
    /// With --try: seed of the windows' order
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Undo a change that --try has kept, or left behind when it was killed
    #[arg(long)]
    pub undo: bool,
    /// Undo the change when standard input ends
    #[arg(long, hide = true, requires = "undo")]
    after_input: bool,
}

/// Tries the first advice of `diagnosis`.
pub fn run(
    root: &Path,
    options: &Options,
    diagnosis: &Diagnosis,
    btf: Option<&[u8]>,
    as_json: bool,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let advised = diagnosis.verdicts.iter();
    let advised = advised.filter_map(|it| {
        let advice = it.advice.as_ref()?;
        Some((it.who.as_str(), advice, advice.remedy.as_ref()?))
    });
    let Some((who, advice, remedy)) = advised.into_iter().next() else {
        return say(
            as_json,
            None,
            "Nothing to try: for none of this is there advice that can be applied and undone in turns without asking for a passphrase.\n",
        );
    };
    let mark = Mark::set(root, remedy)?;
    let tried = windows(root, options, who, remedy, btf, stop);
    let undone = undo(root, remedy);
    mark.remove()?;
    undone?;
    let Some(tried) = tried? else {
        return Err(Failure::new(
            Exit::Interrupted,
            "interrupted, and everything is as before",
        ));
    };
    let kept = options.keep && tried.effect == Effect::Helps;
    let after = match kept {
        true => keep(root, remedy)?,
        false => "It is undone.".to_owned(),
    };
    let words = format!(
        "\nTried: {}\n{}{after}\n",
        advice.command,
        text(&tried, who)
    );
    say(as_json, Some((&tried, who, advice, kept)), &words)
}

fn say(
    as_json: bool,
    tried: Option<(&Outcome, &str, &Advice, bool)>,
    words: &str,
) -> Result<(), Failure> {
    if !as_json {
        return print_text(&plain(words));
    }
    let tried = tried.map(|(outcome, who, advice, kept)| {
        value!({ "who": who, "command": advice.command, "kept": kept, "outcome": outcome })
    });
    print_text(&json(&value!({ "trial": tried }))?)
}

/// Runs all windows; None if interrupted.
fn windows(
    root: &Path,
    options: &Options,
    who: &str,
    remedy: &Remedy,
    btf: Option<&[u8]>,
    stop: &AtomicBool,
) -> Result<Option<Outcome>, Failure> {
    let length = Duration::from_secs(options.window);
    let mut lost = Vec::new();
    let order = order(usize::from(options.pairs), options.seed);
    let began = Instant::now();
    for (place, with) in order.iter().enumerate() {
        if io::stderr().is_terminal() {
            let how = if *with { "with" } else { "without" };
            let (window, all) = (place + 1, order.len());
            let left = progress::left(began.elapsed(), place as u64, all as u64);
            eprintln!("Window {window} of {all}, {how} the change{left}");
        }
        let limits = match with {
            true => apply(root, remedy)?,
            false => None,
        };
        let how = How {
            length,
            until_stall: None,
            is_coarse: false,
            btf,
            kept: None,
            recording: None,
            frames: None,
        };
        let seen = window(root, limits, remedy, how, stop)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        lost.push(lost_per_second(&seen.seen, who));
    }
    let pair = |(places, lost): (&[bool], &[f64])| match places[0] {
        true => (lost[1], lost[0]),
        false => (lost[0], lost[1]),
    };
    let pairs: Vec<_> = order.chunks(2).zip(lost.chunks(2)).map(pair).collect();
    Ok(Some(outcome(&pairs)))
}

/// Measures one window, then undoes the change that was applied for it.
fn window(
    root: &Path,
    limits: Option<DirtyLimits>,
    remedy: &Remedy,
    how: How<'_>,
    stop: &AtomicBool,
) -> Result<Seen, Failure> {
    let is_over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let tending = scope.spawn(|| tend(limits, &is_over));
        let settled = settle(root, stop);
        let machine = settled.and_then(|()| Machine::look(root).map_err(super::failure));
        let seen = machine.and_then(|machine| observe(root, machine, how, stop));
        is_over.store(true, Ordering::Relaxed);
        let tended = tending.join();
        match tended {
            Ok(Ok(())) => seen,
            Ok(Err(failure)) => seen.and(Err(failure)),
            Err(_) => Err(Failure::new(Exit::Internal, "a thread ended unexpectedly")),
        }
    })?;
    undo(root, remedy)?;
    Ok(seen)
}

/// Waits until what was queued and dirty before the change no longer counts.
fn settle(root: &Path, stop: &AtomicBool) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut settling = Settling::from(dirty_bytes(root)?);
    while !stop.load(Ordering::Relaxed) && !settling.is_over(begun.elapsed(), dirty_bytes(root)?) {
        thread::sleep(TURN);
    }
    Ok(())
}

/// What is dirty or being written on all disks.
fn dirty_bytes(root: &Path) -> Result<u64, Failure> {
    let all = fs::read_to_string(root.join("proc/meminfo"));
    let sum = all.and_then(|it| Ok(entry_bytes(&it, "Dirty")? + entry_bytes(&it, "Writeback")?));
    sum.map_err(|error| Failure::new(Exit::Internal, format_args!("/proc/meminfo: {error}")))
}

/// Limits go by what disks show meanwhile; a scheduler needs nothing.
fn tend(limits: Option<DirtyLimits>, is_over: &AtomicBool) -> Result<(), Failure> {
    let Some(mut limits) = limits else {
        return Ok(());
    };
    while !is_over.load(Ordering::Relaxed) {
        limits.tick(Instant::now()).map_err(of_limits)?;
        thread::sleep(TURN);
    }
    limits.release().map(drop).map_err(of_limits)
}

/// Makes the change; returns the value that must live as long as the change.
fn apply(root: &Path, remedy: &Remedy) -> Result<Option<DirtyLimits>, Failure> {
    match remedy {
        Remedy::Scheduler { disk } => {
            let device = Device::resolve(root, disk).map_err(of_device)?;
            module::sched::enable(root, &device, &Boost::all(), &Module::Installed)
                .map_err(of_sched)?;
            Ok(None)
        }
        Remedy::DirtyLimits => {
            let limits = DirtyLimits::start(root, Instant::now()).map_err(of_limits)?;
            Ok(Some(limits))
        }
    }
}

/// Undoes the change; a second call does nothing.
fn undo(root: &Path, remedy: &Remedy) -> Result<(), Failure> {
    match remedy {
        Remedy::Scheduler { disk } => match Device::resolve(root, disk) {
            Ok(device) => module::sched::disable(root, &device)
                .map(drop)
                .map_err(of_sched),
            // It was taken out, and its settings with it.
            Err(sys::device::Error::NotFound(_)) => Ok(()),
            Err(error) => Err(of_device(error)),
        },
        Remedy::DirtyLimits => foreground::release_limits(root)
            .map(drop)
            .map_err(of_limits),
    }
}

/// Makes the change at each boot through systemd, and now.
fn keep(root: &Path, remedy: &Remedy) -> Result<String, Failure> {
    let unit = unit(remedy);
    let done = systemctl(&["enable", "--now", &unit]);
    if done {
        return Ok(format!(
            "It is kept: {unit} is enabled. `frontrow doctor --undo` removes it."
        ));
    }
    match remedy {
        Remedy::Scheduler { .. } => {
            apply(root, remedy)?;
            Ok(format!(
                "It is kept until the next boot, as systemd cannot enable {unit}. `frontrow doctor --undo` undoes it."
            ))
        }
        Remedy::DirtyLimits => Ok(format!(
            "It is undone, as systemd cannot enable {unit}: run `frontrow fg daemon` as a service."
        )),
    }
}

fn unit(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Scheduler { disk } => crate::sched::unit_of(disk),
        Remedy::DirtyLimits => "frontrowd.service".to_owned(),
    }
}

fn systemctl(arguments: &[&str]) -> bool {
    let mut command = Command::new("systemctl");
    let command = command.args(arguments).stdin(Stdio::null());
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Undoes a change that a trial has kept, or left behind when it was killed.
pub fn run_undo(root: &Path, options: &Options) -> Result<(), Failure> {
    if options.after_input {
        return wait_and_undo(root);
    }
    let mut lines = Vec::new();
    if let Some(remedy) = Mark::read(root)? {
        undo(root, &remedy)?;
        Mark::at(root).remove()?;
        lines.push(format!(
            "Undone, left by a trial that was killed: {}",
            unit(&remedy)
        ));
    }
    for device in Device::all(root).map_err(of_device)? {
        let changes = module::sched::changes(root, &device).map_err(of_sched)?;
        if changes.is_empty() {
            continue;
        }
        let remedy = Remedy::Scheduler {
            disk: device.name().to_owned(),
        };
        systemctl(&["disable", "--now", &unit(&remedy)]);
        undo(root, &remedy)?;
        lines.extend(changes.iter().map(|it| format!("Undone: {it}")));
    }
    let daemon = unit(&Remedy::DirtyLimits);
    if systemctl(&["is-enabled", &daemon]) && systemctl(&["disable", "--now", &daemon]) {
        lines.push(format!("Disabled: {daemon}"));
    }
    if lines.is_empty() {
        lines.push("Nothing is kept.".to_owned());
    }
    print_text(&plain(&(lines.join("\n") + "\n")))
}

/// Watchdog of a trial: undoes the change if the trial dies, which closes its standard input.
fn wait_and_undo(root: &Path) -> Result<(), Failure> {
    // What ends the session is not to end this before it has undone anything.
    let _ends = crate::bench::catch_signals()?;
    let mut nothing = Vec::new();
    while let Err(error) = io::stdin().read_to_end(&mut nothing) {
        if error.kind() != ErrorKind::Interrupted {
            break;
        }
    }
    match Mark::read(root)? {
        Some(remedy) => {
            undo(root, &remedy)?;
            Mark::at(root).remove()
        }
        None => Ok(()),
    }
}

/// Record in `/run` of the change under trial, for its duration.
struct Mark {
    path: PathBuf,
    _guard: Option<Child>,
}

impl Mark {
    fn at(root: &Path) -> Mark {
        Mark {
            path: Mark::path(root),
            _guard: None,
        }
    }

    fn path(root: &Path) -> PathBuf {
        Home::Tools.directory(root).join(MARK)
    }

    /// Undoes the change of an earlier trial and records the new one.
    fn set(root: &Path, remedy: &Remedy) -> Result<Mark, Failure> {
        if let Some(left) = Mark::read(root)? {
            undo(root, &left)?;
        }
        let mut mark = Mark::at(root);
        Home::Tools.make(root).map_err(|error| needs_root(&error))?;
        let text = json(remedy)?;
        fs::write(&mark.path, text).map_err(|error| needs_root(&error))?;
        mark._guard = Some(guard(root)?);
        Ok(mark)
    }

    fn read(root: &Path) -> Result<Option<Remedy>, Failure> {
        match fs::read(Mark::path(root)) {
            // One that is torn was written before anything was changed.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(needs_root(&error)),
        }
    }

    fn remove(mut self) -> Result<(), Failure> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(needs_root(&error)),
            _ => {}
        }
        if let Some(guard) = &mut self._guard {
            drop(guard.stdin.take());
            // It finds nothing to undo.
            let _ = guard.wait();
        }
        Ok(())
    }
}

/// Command in its own process group, so that keys at the terminal do not signal it.
fn guard(root: &Path) -> Result<Child, Failure> {
    let failed = |error| {
        Failure::new(
            Exit::Internal,
            format_args!("cannot watch over the trial: {error}"),
        )
    };
    let own = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(own);
    let command = command.args(["doctor", "--undo", "--after-input", "--sysroot"]);
    let command = command.arg(root).process_group(0).stdin(Stdio::piped());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(failed)
}

fn needs_root(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::new(
            Exit::Permission,
            "trying a change needs root: run the command with sudo",
        ),
        _ => Failure::new(
            Exit::Internal,
            format_args!("cannot keep the record of the change: {error}"),
        ),
    }
}

fn of_device(error: sys::device::Error) -> Failure {
    Failure::new(Exit::Internal, error)
}

fn of_limits(error: foreground::Error) -> Failure {
    Failure::new(Exit::Internal, error)
}

fn of_sched(error: module::sched::Error) -> Failure {
    let exit = match error.is_permission() {
        true => Exit::Permission,
        false => Exit::Unsupported,
    };
    Failure::new(exit, error)
}
