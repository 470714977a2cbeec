//! `frontrow blame watch`: sleeps until the kernel reports pressure of I/O, and notes stalls.

use super::{Kept, Told};
use crate::bench::catch_signals;
use crate::doctor::{Watching, failure, give_up};
use crate::exit::{Exit, Failure};
use doctor::noted::{Ledger, Noted, Readers};
use doctor::stall::Next;
use doctor::watch::io_pressure_ns;
use doctor::{Level, Machine, judge, machine};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use sys::confine::Programs;
use sys::realtime;

/// Stalls from this length on are noted.
const SHORTEST: Duration = Duration::from_millis(200);
/// PSI trigger: some task held up by I/O for 10 of 500 ms, the shortest window. The kernel looks ten times
/// in a window, so it reports a stall 50 to 100 ms after its begin.
const TRIGGER: &[u8] = b"some 10000 500000\0";
const REPORTED_IN: Duration = Duration::from_millis(100);
/// Time without pressure after which it sleeps again.
const CALM: Duration = Duration::from_secs(1);
/// Most stalls that wait for room on the disk.
const WAITING: usize = 64;

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    told: Told,
    /// Root directory of the system to read
    #[arg(long, hide = true, default_value = "/")]
    sysroot: PathBuf,
}

/// Runs the subcommand until a signal ends it.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let root = &options.sysroot;
    machine::check(root).map_err(failure)?;
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new(
            Exit::Permission,
            "only root sees what others wait for: sudo systemctl enable --now frontrow-watch",
        ));
    }
    let stop = catch_signals()?;
    let ended = woken_by_signals()?;
    let trigger = trigger(root)?;
    let file = &options.kept.file;
    let ledger = open(file, Readers::User)?;
    // The service has this directory. Without it, nobody is told.
    let told = &options.told.told;
    let told = match told.parent().is_some_and(Path::is_dir) {
        true => Some(open(told, Readers::All)?),
        false => None,
    };
    // Where it may not have the priority, a program of a higher one may delay samples.
    let _ = realtime::begin();
    give_up(Some(crate::doctor::WATCHES), Programs::None)?;
    let mut notes = Notes {
        ledger,
        told,
        file,
        waiting: VecDeque::new(),
        has_failed: false,
    };
    let mut io_ns = io_pressure_ns(root);
    while sleep(&trigger, &ended)? == Woken::Pressure {
        // While it slept, pressure that was not reported was little in each window.
        let since = Duration::from_nanos(io_pressure_ns(root).saturating_sub(io_ns));
        watch(root, since.min(REPORTED_IN), &stop, &mut notes)?;
        io_ns = io_pressure_ns(root);
    }
    notes.write();
    Ok(())
}

fn open(file: &Path, readers: Readers) -> Result<Ledger, Failure> {
    Ledger::open(file, readers).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Failure::new(
            Exit::Refused,
            "another process notes stalls already: systemctl status frontrow-watch shows it if it is the service",
        ),
        _ => Failure::unwritable(file, &error),
    })
}

/// A pipe that can be read once a signal has come. Sockets are forbidden from then on.
fn woken_by_signals() -> Result<PipeReader, Failure> {
    let failed = |error: io::Error| {
        Failure::new(
            Exit::Internal,
            format_args!("cannot catch signals: {error}"),
        )
    };
    let (ended, begin) = io::pipe().map_err(failed)?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let begin = begin.try_clone().map_err(failed)?;
        signal_hook::low_level::pipe::register(signal, begin).map_err(failed)?;
    }
    Ok(ended)
}

/// Registers with the kernel for pressure of I/O.
fn trigger(root: &Path) -> Result<File, Failure> {
    let path = root.join("proc/pressure/io");
    let mut options = OpenOptions::new();
    let opened = options.read(true).write(true).open(&path);
    let registered = opened.and_then(|mut file| file.write_all(TRIGGER).map(|()| file));
    registered.map_err(|error| {
        Failure::new(
            Exit::Unsupported,
            format_args!(
                "this kernel reports no pressure ({}: {error}): frontrow doctor --until-stall 200ms asks for it again and again",
                path.display()
            ),
        )
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    Pressure,
    End,
}

/// Sleeps until there is pressure, or all is over.
fn sleep(trigger: &File, ended: &PipeReader) -> Result<Woken, Failure> {
    loop {
        let mut fds = [
            PollFd::new(trigger, PollFlags::PRI),
            PollFd::new(ended, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                let said = format_args!("cannot wait for pressure: {error}");
                return Err(Failure::new(Exit::Internal, said));
            }
        }
        let [trigger, ended] = fds.map(|it| it.revents());
        if ended.contains(PollFlags::IN) {
            return Ok(Woken::End);
        }
        if trigger.contains(PollFlags::ERR) {
            return Err(Failure::new(
                Exit::Internal,
                "the kernel has ended its reports of pressure",
            ));
        }
        if trigger.contains(PollFlags::PRI) {
            return Ok(Woken::Pressure);
        }
    }
}

/// Watches as the doctor does, until there was no pressure for a while.
fn watch(
    root: &Path,
    held_up: Duration,
    stop: &Arc<AtomicBool>,
    notes: &mut Notes<'_>,
) -> Result<(), Failure> {
    let mut watching = Watching::begin_within(root, SHORTEST, held_up);
    let (mut io_ns, mut pressed) = (watching.io_pressure_ns(), Instant::now());
    while pressed.elapsed() < CALM && !stop.load(Ordering::Relaxed) {
        if watching.turn() == Next::End {
            let next = Watching::begin(root, Some(SHORTEST));
            let stall = std::mem::replace(&mut watching, next);
            notes.add(told(stall, root)?);
        }
        let now_ns = watching.io_pressure_ns();
        if now_ns != std::mem::replace(&mut io_ns, now_ns) {
            pressed = Instant::now();
        }
        thread::sleep(watching.pause());
    }
    Ok(())
}

fn told(watching: Watching<'_>, root: &Path) -> Result<Noted, Failure> {
    let ended = watching.ended().and_then(|it| it.stalled_ns);
    let machine = Machine::look(root).map_err(failure)?;
    let diagnosis = judge(&watching.end(Level::Sampled, machine));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_ms = now.map_or(0, |it| it.as_millis() as u64);
    Ok(Noted::of(&diagnosis, now_ms, ended.unwrap_or_default()))
}

/// Stalls on their way to the file.
struct Notes<'a> {
    ledger: Ledger,
    /// For `frontrow blame notify`.
    told: Option<Ledger>,
    file: &'a Path,
    /// Those that could not be written yet.
    waiting: VecDeque<Noted>,
    has_failed: bool,
}

impl Notes<'_> {
    fn add(&mut self, stall: Noted) {
        let told = self.told.as_mut();
        if let Some(Err(error)) = told.map(|it| it.add(stall.clone().without_files())) {
            eprintln!("frontrow: cannot tell the sessions of a stall: {error}");
            self.told = None;
        }
        if self.waiting.len() >= WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(stall);
        self.write();
    }

    /// Writes all that wait. A disk that is full or gone is told of once, and tried again at each stall.
    fn write(&mut self) {
        while let Some(stall) = self.waiting.front() {
            if let Err(error) = self.ledger.add(stall.clone()) {
                if !std::mem::replace(&mut self.has_failed, true) {
                    let file = self.file.display();
                    eprintln!(
                        "frontrow: cannot write {file}: {error}; the last {WAITING} stalls wait for it in memory"
                    );
                }
                return;
            }
            self.has_failed = false;
            self.waiting.pop_front();
        }
    }
}
