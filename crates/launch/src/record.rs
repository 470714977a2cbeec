//! Recording: which pages of which files a start of the app touches.
//!
//! The app runs traced (ptrace(2)), which needs no rights beyond the user's. A page is
//! touched when it is read by a system call or is mapped into a process when that ends,
//! execs or unmaps it. That tells what the app uses from what the kernel's readahead
//! brings along, whatever was in memory before. mincore(2) and cachestat(2) tell neither,
//! and only of files that the user may write to.
//!
//! Faults on mapped files map up to 16 pages around the one that is touched, if these are
//! in memory (`fault_around_bytes`). Root can switch that off for the time of the
//! recording; else the start should be a cold one, or the profile has such neighbours.

mod touched;
mod tracer;

use crate::profile::{Profile, ProfiledFile, Timing};
use knobs::Journal;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use touched::Touched;

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

/// Starts the app as often as asked, and gives the pages that all starts touched.
/// `progress` hears which start of how many begins.
///
/// # Errors
/// [`Error`]; no half of a recording is given.
pub fn record(
    request: &Request,
    stop: &AtomicBool,
    mut progress: impl FnMut(u32, u32),
) -> Result<Profile, Error> {
    let journal = one_page_a_fault()?;
    let outcome = all_runs(request, stop, &mut progress);
    if let Some(journal) = journal {
        journal.restore()?;
    }
    outcome
}

fn all_runs(
    request: &Request,
    stop: &AtomicBool,
    progress: &mut impl FnMut(u32, u32),
) -> Result<Profile, Error> {
    let mut common: Option<Profile> = None;
    for run in 0..request.runs.max(1) {
        progress(run, request.runs);
        let touched = tracer::run(&request.command, request.limit)?;
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
    Profile {
        command: words.collect::<Vec<_>>().join(" "),
        recorded_s: now.map_or(0, |it| it.as_secs()),
        runs: 1,
        timing: Timing::default(),
        files: touched.files().collect::<Vec<ProfiledFile>>(),
    }
}

/// Takes the neighbours out of the recording, where this user may.
fn one_page_a_fault() -> Result<Option<Journal>, Error> {
    let root = Path::new("/");
    // SAFETY: has no arguments and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root || knobs::read(Path::new(FAULT_AROUND)).is_err() {
        return Ok(None);
    }
    let mut journal = Journal::open(root, JOURNAL)?;
    let reason = "a fault maps only the page that is touched while an app's start is recorded";
    journal.set(Path::new(FAULT_AROUND), "4096", reason)?;
    Ok(Some(journal))
}
