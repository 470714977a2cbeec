//! The waits of a recording in progress, one interval after the other.

use super::account::{self, Accounted};
use super::{Count, Waiting, ask};
use crate::event::Dev;
use crate::link::{Linker, Use};
use crate::recording::{Header, Step};
use crate::store::{Error, Store};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use sys::PathError;

/// The waits that ended in one interval, what disks did in it, and the calls that go on at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Waits {
    /// End of the interval, in nanoseconds since the begin of the recording.
    pub at_ns: u64,
    /// Length of the interval, in nanoseconds.
    pub duration_ns: u64,
    /// Waits of the foreground.
    pub foreground: Waiting,
    /// The same waits, all of them, with what disks worked for meanwhile.
    pub accounts: Vec<Accounted>,
    /// What disks did.
    pub uses: BTreeMap<Dev, Use>,
    /// Calls of the foreground that began before the interval and go on, the oldest first. At most
    /// [`TOP`](super::TOP) of them.
    pub under_way: Vec<UnderWay>,
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

/// Links a recording while it is made, and gives `tell` the foreground's waits in every `every_ns`
/// nanoseconds of it. They come as soon as all events of the interval are there. Ends with the recording,
/// or as soon as `tell` returns false; errors call the recording `path`.
///
/// The memory that this takes does not grow with time. Of an interval that is over, only the names
/// of files, tasks and functions stay, and these are on disk.
pub fn watch_waits(
    header: &Header,
    steps: impl Iterator<Item = io::Result<Step>>,
    path: &Path,
    every_ns: u64,
    tell: &mut dyn FnMut(&Waits) -> bool,
) -> Result<(), Error> {
    let mut linker = Linker::new(header, None, Store::only_waits()?)?;
    let mut interval = Interval {
        recording_began_ns: header.begin_ns,
        begin_ns: header.begin_ns,
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
struct Interval {
    recording_began_ns: u64,
    begin_ns: u64,
}

impl Interval {
    /// Ends the interval and begins the next one.
    fn end(&mut self, linker: &mut Linker, now_ns: u64) -> Result<Waits, Error> {
        let begin_ns = std::mem::replace(&mut self.begin_ns, now_ns);
        let (accounts, uses) = (linker.accounts(now_ns), linker.uses());
        let database = linker.interval(now_ns)?.database();
        let waits = Waits {
            at_ns: now_ns.saturating_sub(self.recording_began_ns),
            duration_ns: now_ns - begin_ns,
            foreground: ask::foreground(database, self.recording_began_ns)?,
            accounts: account::all_accounted(database, accounts)?,
            uses,
            under_way: ask::under_way(database, begin_ns..now_ns)?,
            lost: ask::lost(database)?,
        };
        linker.forget()?;
        Ok(waits)
    }
}
