//! The report of a recording in progress, one interval after the other.

use super::account::{self, Accounted};
use super::{Count, Direction, File, Layer, Waiting, ask};
use crate::link::Linker;
use crate::recording::{Header, Step};
use crate::store::{Error, Store};
use serde::Serialize;
use std::io;
use std::ops::Range;
use std::path::Path;
use sys::PathError;

/// What ended in one interval, and the calls that go on at its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame {
    /// The foreground that the recording is about, as in [`Recording`](super::Recording).
    pub target: String,
    /// End of the interval, in nanoseconds since the begin of the recording.
    pub at_ns: u64,
    /// Length of the interval, in nanoseconds.
    pub duration_ns: u64,
    /// Waits of the foreground that ended in the interval.
    pub foreground: Waiting,
    /// Waits of all tasks that ended in the interval, the kernel's threads included.
    pub everybody: Waiting,
    /// Time by layer, of the foreground's calls that returned in the interval.
    pub layers: Vec<Layer>,
    /// Calls of the foreground that began before the interval and go on, the oldest first. At most
    /// [`TOP`](super::TOP) of them.
    pub under_way: Vec<UnderWay>,
    /// Requests that were completed, by operation and content.
    pub io: Vec<Direction>,
    /// The most awaited files, at most [`TOP`](super::TOP).
    pub files: Vec<File>,
    /// Events that were lost, by kind.
    pub lost: Vec<Count>,
}

/// The waits that ended in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Waits {
    /// Waits of the foreground.
    pub foreground: Waiting,
    /// The same waits, all of them, with what disks worked for meanwhile.
    pub accounts: Vec<Accounted>,
    /// Events that were lost, by kind.
    pub lost: Vec<Count>,
}

/// A call that has not returned yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnderWay {
    /// Name of the process that called.
    pub process: String,
    /// Kind of the call, as in the table `syscalls`.
    pub call: String,
    /// Path of the file; None if the call has none or its name is not known.
    pub file: Option<String>,
    /// Time since the begin of the call, in nanoseconds.
    pub so_far_ns: u64,
}

/// Links a recording while it is made, and gives `tell` a frame for every `every_ns` nanoseconds of
/// it. A frame comes as soon as all events of its interval are there. Ends with the recording, or
/// as soon as `tell` returns false; errors call the recording `path`.
///
/// The memory that this takes does not grow with time. Of an interval that is over, only the names
/// of files, tasks and functions stay, and these are on disk.
pub fn watch(
    header: &Header,
    steps: impl Iterator<Item = io::Result<Step>>,
    path: &Path,
    every_ns: u64,
    tell: &mut dyn FnMut(&Frame) -> bool,
) -> Result<(), Error> {
    let store = Store::temporary()?;
    let frame = |linker: &mut Linker, began_ns, interval: Range<u64>| {
        let store = linker.interval(interval.end)?;
        ask::frame(store.database(), began_ns, interval)
    };
    each_interval(header, steps, (path, every_ns), (store, &frame), tell)
}

/// As [`watch()`], for the foreground's waits alone: without rows of I/O it takes a fraction of the
/// time.
pub fn watch_waits(
    header: &Header,
    steps: impl Iterator<Item = io::Result<Step>>,
    path: &Path,
    every_ns: u64,
    tell: &mut dyn FnMut(&Waits) -> bool,
) -> Result<(), Error> {
    let store = Store::only_waits()?;
    let waits = |linker: &mut Linker, began_ns, interval: Range<u64>| {
        let accounts = linker.accounts(interval.end);
        let database = linker.interval(interval.end)?.database();
        Ok(Waits {
            foreground: ask::foreground(database, began_ns)?,
            accounts: account::all_accounted(database, accounts)?,
            lost: ask::lost(database)?,
        })
    };
    each_interval(header, steps, (path, every_ns), (store, &waits), tell)
}

/// A query of an interval, of a recording that began at this time (nanoseconds).
type Ask<T> = dyn Fn(&mut Linker, u64, Range<u64>) -> Result<T, Error>;

fn each_interval<T>(
    header: &Header,
    steps: impl Iterator<Item = io::Result<Step>>,
    (path, every_ns): (&Path, u64),
    (store, ask): (Store, &Ask<T>),
    tell: &mut dyn FnMut(&T) -> bool,
) -> Result<(), Error> {
    let mut linker = Linker::new(header, None, store)?;
    let mut interval = Interval {
        recording_began_ns: header.begin_ns,
        begin_ns: header.begin_ns,
        ask,
    };
    let mut known_until_ns = header.begin_ns;
    for step in steps {
        let step = step.map_err(PathError::of("access", path))?;
        let now_ns = match &step {
            Step::Event(event) => event.time_ns,
            Step::Until(now_ns) => *now_ns,
        };
        known_until_ns = known_until_ns.max(now_ns);
        match step {
            Step::Event(event) => linker.event(&event)?,
            Step::Until(now_ns) if now_ns.saturating_sub(interval.begin_ns) >= every_ns => {
                if !tell(&interval.end(&mut linker, now_ns)?) {
                    return Ok(());
                }
            }
            Step::Until(_) => {}
        }
    }
    if known_until_ns > interval.begin_ns {
        tell(&interval.end(&mut linker, known_until_ns)?);
    }
    Ok(())
}

/// The interval in progress.
struct Interval<'a, T> {
    recording_began_ns: u64,
    begin_ns: u64,
    ask: &'a Ask<T>,
}

impl<T> Interval<'_, T> {
    /// Ends the interval and begins the next one.
    fn end(&mut self, linker: &mut Linker, now_ns: u64) -> Result<T, Error> {
        let begin_ns = std::mem::replace(&mut self.begin_ns, now_ns);
        let frame = (self.ask)(linker, self.recording_began_ns, begin_ns..now_ns)?;
        linker.forget()?;
        Ok(frame)
    }
}
