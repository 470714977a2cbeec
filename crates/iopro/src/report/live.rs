//! The report of a recording that is being made, one interval after the other.

use super::{Count, Direction, File, Layer, Waiting, ask};
use crate::link::Linker;
use crate::recording::{Header, Step};
use crate::store::{Error, Store};
use serde::Serialize;
use std::io;
use std::path::Path;

/// What was over in one interval, and what goes on at its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame {
    /// Whose waiting it is about, as in [`Recording`](super::Recording).
    pub target: String,
    /// The interval's end, since the begin of the recording.
    pub at_ns: u64,
    /// How long it is.
    pub duration_ns: u64,
    /// The foreground's waiting.
    pub foreground: Waiting,
    /// Everybody's, the kernel's threads included.
    pub everybody: Waiting,
    /// Where those of the foreground's calls that returned had spent their time.
    pub layers: Vec<Layer>,
    /// Calls of the foreground that go on since before the interval, the oldest
    /// first.
    pub under_way: Vec<UnderWay>,
    /// Requests that were completed, by direction.
    pub io: Vec<Direction>,
    /// The files that were waited for longest.
    pub files: Vec<File>,
    /// Events that were lost, by where.
    pub lost: Vec<Count>,
}

/// A call that has not returned yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnderWay {
    /// Whose.
    pub process: String,
    /// Which.
    pub call: String,
    /// Of which file.
    pub file: Option<String>,
    /// How long so far.
    pub so_far_ns: u64,
}

/// Links a recording while it is made, and gives `tell` a frame each `every_ns`
/// nanoseconds of it, or as soon after as all events until then are there. Ends
/// with the recording, or as soon as `tell` returns false; `path` is what errors
/// call it.
///
/// What it holds does not grow with the time: of an interval that is over nothing
/// is kept but the names of files, tasks and functions, and these on disk.
pub fn watch(
    header: &Header,
    steps: impl Iterator<Item = io::Result<Step>>,
    path: &Path,
    every_ns: u64,
    tell: &mut dyn FnMut(&Frame) -> bool,
) -> Result<(), Error> {
    let mut linker = Linker::new(header, None, Store::temporary()?)?;
    let mut interval = Interval {
        recording_began_ns: header.begin_ns,
        begin_ns: header.begin_ns,
    };
    let mut known_until_ns = header.begin_ns;
    for step in steps {
        let step = step.map_err(|source| Error::File {
            path: path.to_owned(),
            source,
        })?;
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

/// The interval that goes on.
struct Interval {
    recording_began_ns: u64,
    begin_ns: u64,
}

impl Interval {
    /// Ends it and begins the next one.
    fn end(&mut self, linker: &mut Linker, now_ns: u64) -> Result<Frame, Error> {
        let store = linker.interval(now_ns)?;
        let begin_ns = std::mem::replace(&mut self.begin_ns, now_ns);
        let frame = ask::frame(store.database(), self.recording_began_ns, begin_ns..now_ns)?;
        linker.forget()?;
        Ok(frame)
    }
}
