//! Recording of the pages that a start of the app touches.
//!
//! A page is touched when a system call reads it or the app accesses it in a mapped file. This
//! separates the pages that the app uses from those that readahead brings, whatever was in memory
//! before. mincore(2) and cachestat(2) cannot do that, and serve only files that the user may write
//! to.
//!
//! The caller chooses the recorder. [`trace`] traces the app (ptrace(2)), which needs only the
//! user's rights. It reads the pages of a mapped file when a process ends, execs or unmaps it. A
//! recorder in the kernel sees more: each fault, and the metadata blocks that were read.
//!
//! A fault on a mapped file maps up to 16 pages around the touched one, if these are in memory
//! (`fault_around_bytes`). Root can switch that off for the recording, and root's starts are made
//! cold. For other users the start should be cold, or the profile contains such neighbours.

pub mod refresh;

mod limit;
mod need;
mod touched;
mod tracer;

use crate::metadata;
use crate::profile::{Profile, Timing};
use crate::residency::drop_caches;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use sys::knobs::{Home, Journal};

pub use limit::supervise;
pub use touched::Touched;
pub use tracer::trace;

/// Name of the journal with the knob that a recording changes.
const JOURNAL: &str = "launch";

const FAULT_AROUND: &str = "/sys/kernel/debug/fault_around_bytes";

/// Arguments of a recording.
#[derive(Clone, Debug)]
pub struct Request {
    /// The app and its arguments.
    pub command: Vec<OsString>,
    /// Number of starts whose pages are intersected, at least 1.
    pub runs: u32,
    /// Length of a start, after which the app gets SIGTERM.
    pub limit: Duration,
    /// An app that fails by itself is recorded like any other.
    pub failing: bool,
}

/// A start that was recorded.
pub struct Started {
    /// The pages that it touched.
    pub touched: Touched,
    /// How the app ended if it failed by itself.
    pub failed: Option<ExitStatus>,
    /// The app did not end by itself: it was asked to, after the limit.
    pub asked: bool,
}

/// What the starts of an app have shown.
pub struct Recorded {
    /// The pages that all of them touched.
    pub profile: Profile,
    /// The app always ended by itself, so its starts can be timed.
    pub ends: bool,
}

/// Reasons why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The app could not be started.
    #[error("cannot start {command}: {source}")]
    Start {
        /// Name of the app's program.
        command: String,
        /// The system's error.
        source: io::Error,
    },
    /// The user may not trace, or a sandbox forbids it.
    #[error(
        "cannot trace the app ({0}): recording needs ptrace, which a sandbox or kernel.yama.ptrace_scope = 3 forbids"
    )]
    NoTrace(io::Error),
    /// A recorder from outside of this crate failed; holds its sentence.
    #[error("{0}")]
    Watcher(String),
    /// A system call failed that does not fail in normal operation.
    #[error("recording failed: {0}")]
    System(#[from] io::Error),
    /// The app failed before its time was over.
    #[error(
        "the app failed ({0}), so what it touched is no start of it: give what it needs, or record it with --failing"
    )]
    Failed(ExitStatus),
    /// The starts have no page in common that could be loaded.
    #[error(
        "the app touched no file on a disk, so there is nothing to load: was it started from a RAM file system?"
    )]
    Nothing,
    /// A knob could not be set or restored.
    #[error(transparent)]
    Knob(#[from] sys::knobs::Error),
    /// A signal to the recorder ended the recording.
    #[error("interrupted")]
    Interrupted,
}

/// Runs `watch` for each start of the app, and returns what they have in common. `watch`
/// is [`trace`] or another recorder. `progress` is called with the number of the start that begins,
/// and their total.
///
/// # Errors
/// [`Error`]; a partial recording is not returned.
pub fn record(
    request: &Request,
    stop: &AtomicBool,
    mut watch: impl FnMut(&Request) -> Result<Started, Error>,
    mut progress: impl FnMut(u32, u32),
) -> Result<Recorded, Error> {
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
    watch: &mut impl FnMut(&Request) -> Result<Started, Error>,
    progress: &mut impl FnMut(u32, u32),
) -> Result<Recorded, Error> {
    let mut common: Option<Profile> = None;
    let mut ends = true;
    for run in 0..request.runs.max(1) {
        progress(run, request.runs);
        // Without the right to drop caches a warm start is recorded.
        let _ = drop_caches();
        let started = watch(request)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if let (Some(status), false) = (started.failed, request.failing) {
            return Err(Error::Failed(status));
        }
        ends &= !started.asked;
        let profile = profile(request, started.touched);
        common = Some(match common {
            None => profile,
            Some(before) => before.intersection(&profile),
        });
    }
    match common {
        Some(profile) if !profile.files.is_empty() => Ok(Recorded { profile, ends }),
        _ => Err(Error::Nothing),
    }
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
        measured: None,
        files,
        metadata,
    }
}

/// Disables what would add unneeded pages, if this user may: the pages that a fault maps around it,
/// and the readahead of inodes.
fn just_what_is_needed() -> Result<Option<Journal>, Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let mut journal = Journal::open(Path::new("/"), Home::Tools, JOURNAL)?;
    let fault_around = Path::new(FAULT_AROUND);
    if sys::knobs::read(fault_around).is_ok() {
        let reason = "a fault maps only the page that is touched while an app's start is recorded";
        journal.set(fault_around, "4096", reason)?;
    }
    for knob in metadata::readahead_knobs() {
        let reason = "only inodes that are needed are read while an app's start is recorded";
        journal.set(&knob, "0", reason)?;
    }
    Ok(Some(journal))
}
