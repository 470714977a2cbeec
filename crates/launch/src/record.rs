//! Recording: which pages of which files a start of the app touches.
//!
//! A page is touched when a system call reads it or the app reaches it in a mapped file. That
//! tells what the app uses from what the kernel's readahead brings along, whatever was in
//! memory before. mincore(2) and cachestat(2) tell neither, and only of files that the user may
//! write to.
//!
//! Who sees that is the caller's to choose. [`trace`] has the app traced (ptrace(2)), which
//! needs no rights beyond the user's; of a mapped file it knows what a process has mapped when
//! that ends, execs or unmaps it. A recorder in the kernel sees more: each fault, and which
//! blocks of the file system's own were brought into memory.
//!
//! Faults on mapped files map up to 16 pages around the one that is touched, if these are
//! in memory (`fault_around_bytes`). Root can switch that off for the time of the
//! recording; else the start should be a cold one, or the profile has such neighbours. Root's
//! starts are made cold.

pub mod refresh;

mod need;
mod touched;
mod tracer;

use crate::metadata;
use crate::profile::{Profile, Timing};
use crate::residency::drop_caches;
use knobs::{Home, Journal};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

pub use touched::Touched;
pub use tracer::{ask_to_end, trace};

/// The journal with the knob that a recording changes.
const JOURNAL: &str = "launch";

const FAULT_AROUND: &str = "/sys/kernel/debug/fault_around_bytes";

/// What to record.
#[derive(Clone, Debug)]
pub struct Request {
    /// The app and its arguments.
    pub command: Vec<OsString>,
    /// Starts whose pages are intersected, at least 1.
    pub runs: u32,
    /// A start is over after this, and the app is asked to end (SIGTERM).
    pub limit: Duration,
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The app could not be started.
    #[error("cannot start {command}: {source}")]
    Start {
        /// Its name.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// This user, or a sandbox, may not trace.
    #[error(
        "cannot trace the app ({0}): recording needs ptrace, which a sandbox or kernel.yama.ptrace_scope = 3 forbids"
    )]
    NoTrace(io::Error),
    /// Another recorder than this crate's could not.
    #[error("{0}")]
    Watcher(String),
    /// A system call failed that never should.
    #[error("recording failed: {0}")]
    System(#[from] io::Error),
    /// The starts have nothing in common that could be loaded.
    #[error(
        "the app touched no file on a disk, so there is nothing to load: was it started from a RAM file system?"
    )]
    Nothing,
    /// A knob could not be set or put back.
    #[error(transparent)]
    Knob(#[from] knobs::Error),
    /// Ended by a signal to the recorder.
    #[error("interrupted")]
    Interrupted,
}

/// Has the app started as often as asked by `watch`, [`trace`] or another, and gives the pages
/// that all starts touched. `progress` hears which start of how many begins.
///
/// # Errors
/// [`Error`]; no half of a recording is given.
pub fn record(
    request: &Request,
    stop: &AtomicBool,
    mut watch: impl FnMut(&Request) -> Result<Touched, Error>,
    mut progress: impl FnMut(u32, u32),
) -> Result<Profile, Error> {
    let journal = just_what_is_needed()?;
    let outcome = all_runs(request, stop, &mut watch, &mut progress);
    if let Some(journal) = journal {
        journal.restore()?;
    }
    outcome
}

fn all_runs(
    request: &Request,
    stop: &AtomicBool,
    watch: &mut impl FnMut(&Request) -> Result<Touched, Error>,
    progress: &mut impl FnMut(u32, u32),
) -> Result<Profile, Error> {
    let mut common: Option<Profile> = None;
    for run in 0..request.runs.max(1) {
        progress(run, request.runs);
        // Who may not has a warm start recorded.
        let _ = drop_caches();
        let touched = watch(request)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let profile = profile(request, touched);
        common = Some(match common {
            None => profile,
            Some(before) => before.intersection(&profile),
        });
    }
    common
        .filter(|it| !it.files.is_empty())
        .ok_or(Error::Nothing)
}

fn profile(request: &Request, touched: Touched) -> Profile {
    let words = request.command.iter().map(|it| it.to_string_lossy());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let (files, metadata) = touched.now();
    Profile {
        command: words.collect::<Vec<_>>().join(" "),
        recorded_s: now.map_or(0, |it| it.as_secs()),
        runs: 1,
        timing: Timing::default(),
        files,
        metadata,
    }
}

/// Takes the neighbours out of the recording, where this user may: those that a fault maps,
/// and the inodes that are read together.
fn just_what_is_needed() -> Result<Option<Journal>, Error> {
    // SAFETY: has no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Ok(None);
    }
    let mut journal = Journal::open(Path::new("/"), Home::Tools, JOURNAL)?;
    let fault_around = Path::new(FAULT_AROUND);
    if knobs::read(fault_around).is_ok() {
        let reason = "a fault maps only the page that is touched while an app's start is recorded";
        journal.set(fault_around, "4096", reason)?;
    }
    for knob in metadata::readahead_knobs() {
        let reason = "only inodes that are needed are read while an app's start is recorded";
        journal.set(&knob, "0", reason)?;
    }
    Ok(Some(journal))
}
