//! Replay of traces from real machines. Block traces are played through the flash core in this
//! process, or on a device or a file. System calls are played in a directory, or as the block
//! traces that they would be without a page cache.
//!
//! ```text
//! read ──> Trace ──> Packing ──> Schedule ──> on_flash (virtual time, as fast as it goes)
//! (a file a format)  (addresses) (pace)  └──> on_file  (real time, threads)
//!      └─> Calls ──────────────> Schedule ──> on_directory (the same)
//! ```
//!
//! Offsets and sizes in a trace are bytes; a replay works on whole pages of 4096 bytes.

mod account;
pub mod ahead;
pub mod beside;
mod calls;
mod crew;
pub mod flash;
pub mod heat;
pub mod history;
mod input;
mod on_directory;
mod on_file;
mod on_flash;
mod packing;
mod read;
mod sandbox;
mod schedule;
mod trace;

pub use account::{Account, Fate};
pub use calls::{Action, Before, Builder, Call, Calls, Handle, Opening, When, pseudo};
pub use flash::{Config, Counters, Error as FlashError};
pub use input::Input;
pub use on_directory::{OnDirectory, Place, on_directory};
pub use on_file::{OnFile, Part, Target, on_file};
pub use on_flash::{Fill, OnFlash, on_flash};
pub use packing::Packing;
pub use read::{Columns, Format, Options, read};
pub use schedule::{Pace, Schedule};
pub use trace::{Kind, Operation, Trace};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use sys::PathError;

/// A trace that was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recording {
    /// A block trace: requests of a device.
    Blocks(Trace),
    /// A trace of system calls.
    Calls(Calls),
}

impl Recording {
    /// The account of what was read, for a replay of it as it is.
    pub fn account(&self) -> &Account {
        match self {
            Recording::Blocks(trace) => trace.account(),
            Recording::Calls(calls) => calls.account(),
        }
    }

    /// The block trace; system calls become what they would be without names and a page cache.
    pub fn into_blocks(self) -> Trace {
        match self {
            Recording::Blocks(trace) => trace,
            Recording::Calls(calls) => calls.as_blocks(),
        }
    }
}

/// Reasons why a replay did not end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A trace, a device or a file could not be read or written.
    #[error(transparent)]
    Io(#[from] PathError),
    /// A line of a trace does not have the trace's format.
    #[error("line {line} of {path} is no line of a {format} trace: {reason}")]
    Line {
        /// Path of the trace.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Name of the format.
        format: &'static str,
        /// A sentence that says what is wrong with the line.
        reason: String,
    },
    /// The format of a trace is not known; holds its path.
    #[error(
        "{0} begins like no trace that is known: name its format with --format, or the columns of a table with --columns"
    )]
    Format(PathBuf),
    /// It is not clear what a trace means as a whole.
    #[error("{path}: {reason}")]
    Trace {
        /// Path of the trace.
        path: PathBuf,
        /// A sentence that says what is not clear.
        reason: String,
    },
    /// A trace has no operations; holds its path.
    #[error("{0} has no operations: record again, or check --format")]
    Empty(PathBuf),
    /// A trace has more operations than memory should hold.
    #[error("{path} has more than {limit} operations: cut it into parts")]
    TooLong {
        /// Path of the trace.
        path: PathBuf,
        /// Largest number of operations.
        limit: usize,
    },
    /// The pages that a trace touches do not fit on the target.
    #[error("what the trace touches is {needed_bytes} bytes and {target} has {size_bytes}")]
    TooSmall {
        /// Path or name of the device or file.
        target: String,
        /// Size of the touched pages, in bytes.
        needed_bytes: u64,
        /// Size of the target, in bytes.
        size_bytes: u64,
    },
    /// The flash core refuses the configuration of the device.
    #[error(transparent)]
    Flash(#[from] FlashError),
    /// The flash core failed a command; holds the index of the operation.
    #[error(
        "the flash core failed operation {0}: its flash is full of valid pages, give it more --spare"
    )]
    Failed(usize),
    /// Commands are in flight, and the core has no next event.
    #[error("the flash core has stopped: its flash is full of valid pages, give it more --spare")]
    Stuck,
    /// The device cannot reach the fill level of its history.
    #[error(
        "the flash core has no room left on the way to an aged device: give the profile more spare_percent or a lower filled_percent"
    )]
    Full,
    /// The core gives no image; holds the core's sentence.
    #[error("the flash core gives no image of an aged device: {0}")]
    Image(String),
    /// A page that was read back has a different content than was written.
    #[error("page {page} of the packed device held {found:?} instead of what was written to it")]
    Wrong {
        /// Number of the page.
        page: u32,
        /// The word that it repeats; `None` if it does not repeat one.
        found: Option<u64>,
    },
    /// The caller set the stop flag.
    #[error("interrupted")]
    Interrupted,
}

/// Times of one kind of operation, from issue to end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Times {
    /// Number of operations.
    pub count: u64,
    /// Number of their pages of 4 KB.
    pub pages: u64,
    /// Mean time, in nanoseconds.
    pub mean_ns: f64,
    /// 99th percentile of the times, in nanoseconds, to within 0.1 %.
    pub p99_ns: u64,
    /// Longest time, in nanoseconds.
    pub max_ns: u64,
}

/// Collects the times of operations for [`Times`].
pub(crate) struct Stopwatch {
    histogram: Histogram<u64>,
    max_ns: u64,
    pages: u64,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        Stopwatch {
            histogram: Histogram::new(3).expect("three digits are allowed"),
            max_ns: 0,
            pages: 0,
        }
    }

    pub(crate) fn add(&mut self, took_ns: u64, pages: u64) {
        // `saturating_record()` would not let the histogram grow.
        let recorded = self.histogram.record(took_ns);
        recorded.expect("it grows with what it counts");
        self.max_ns = self.max_ns.max(took_ns);
        self.pages += pages;
    }

    pub(crate) fn any(&self) -> bool {
        !self.histogram.is_empty()
    }

    /// The time that this share of the operations did not exceed.
    pub(crate) fn quantile_ns(&self, share: f64) -> u64 {
        self.histogram.value_at_quantile(share)
    }

    pub(crate) fn times(&self) -> Times {
        Times {
            count: self.histogram.len(),
            pages: self.pages,
            mean_ns: self.histogram.mean(),
            p99_ns: self.histogram.value_at_quantile(0.99),
            max_ns: self.max_ns,
        }
    }
}

/// [`Times`] by kind of operation; None for a kind that did not occur.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TimesByKind {
    /// Times of reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Times>,
    /// Times of writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Times>,
    /// Times of discards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Times>,
    /// Times of flushes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<Times>,
}

impl TimesByKind {
    pub(crate) fn of(watches: &[Stopwatch]) -> Self {
        let times = |kind: Kind| {
            let watch = &watches[kind as usize];
            (!watch.histogram.is_empty()).then(|| watch.times())
        };
        TimesByKind {
            read: times(Kind::Read),
            write: times(Kind::Write),
            discard: times(Kind::Discard),
            flush: times(Kind::Flush),
        }
    }

    /// Name and times of each kind that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Times)> {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("discard", &self.discard),
            ("flush", &self.flush),
        ]
        .into_iter()
        .filter_map(|(name, times)| times.as_ref().map(|times| (name, times)))
    }
}

#[cfg(test)]
mod tests {
    use super::Stopwatch;

    #[test]
    fn times_of_any_length_are_counted() {
        let mut watch = Stopwatch::new();
        for took_ns in [1, 5_000_000, 3_600_000_000_000] {
            watch.add(took_ns, 1);
        }
        let times = watch.times();
        assert_eq!((times.count, times.pages), (3, 3));
        assert_eq!(times.max_ns, 3_600_000_000_000);
        assert!(times.mean_ns > 1e12);
    }
}
