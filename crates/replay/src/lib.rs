//! Traces of real machines, played again: block traces through the flash core in this process,
//! or onto a device or a file; system calls in a directory, or as the block traces that they
//! would be without a page cache.
//!
//! ```text
//! read ──> Trace ──> Packing ──> Schedule ──> on_flash (virtual time, as fast as it goes)
//! (a file a format)  (addresses) (pace)  └──> on_file  (real time, threads)
//!      └─> Calls ──────────────> Schedule ──> on_directory (the same)
//! ```
//!
//! Offsets and sizes of a trace are bytes; what is replayed is whole pages of 4096 bytes.

mod calls;
mod crew;
pub mod flash;
pub mod history;
mod on_directory;
mod on_file;
mod on_flash;
mod packing;
mod read;
mod sandbox;
mod schedule;
mod trace;

pub use calls::{Action, Before, Builder, Call, Calls, Handle, Opening, When};
pub use flash::{Config, Counters, Error as FlashError};
pub use on_directory::{OnDirectory, Place, on_directory};
pub use on_file::{OnFile, Part, Target, on_file};
pub use on_flash::{Fill, OnFlash, on_flash};
pub use packing::Packing;
pub use read::{Format, read};
pub use schedule::{Pace, Schedule};
pub use trace::{Kind, Operation, Trace};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// What was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Requests of a device.
    Blocks(Trace),
    /// System calls.
    Calls(Calls),
}

impl Recording {
    /// What a device would have to do, without names and a page cache.
    pub fn into_blocks(self) -> Trace {
        match self {
            Recording::Blocks(trace) => trace,
            Recording::Calls(calls) => calls.as_blocks(),
        }
    }
}

/// Why a replay did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A trace, a device or a file could not be read or written.
    #[error("cannot {verb} {path}: {source}")]
    Io {
        /// Such as `read`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line of a trace is not as its format has it.
    #[error("line {line} of {path} is no line of a {format} trace: {reason}")]
    Line {
        /// The trace.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// The format's name.
        format: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A trace's format is not known.
    #[error(
        "{0} begins like no trace that is known: name its format with --format, or convert it to blkparse's text"
    )]
    Format(PathBuf),
    /// There is nothing to replay.
    #[error("{0} has no operations: record again, or check --format")]
    Empty(PathBuf),
    /// More operations than memory should hold.
    #[error("{path} has more than {limit} operations: cut it into parts")]
    TooLong {
        /// The trace.
        path: PathBuf,
        /// How many are taken.
        limit: usize,
    },
    /// The pages touched do not fit.
    #[error("what the trace touches is {needed_bytes} bytes and {target} has {size_bytes}")]
    TooSmall {
        /// The device or file.
        target: String,
        /// What the trace needs.
        needed_bytes: u64,
        /// What there is.
        size_bytes: u64,
    },
    /// The flash core refuses the device.
    #[error(transparent)]
    Flash(#[from] FlashError),
    /// A command came back with an error from the flash core.
    #[error(
        "the flash core failed operation {0}: its flash is full of valid pages, give it more --spare"
    )]
    Failed(usize),
    /// Commands are under way, and nothing will ever happen again.
    #[error("the flash core has stopped: its flash is full of valid pages, give it more --spare")]
    Stuck,
    /// The device cannot be as full as its history asks for.
    #[error(
        "the flash core has no room left on the way to an aged device: give the profile more spare_percent or a lower filled_percent"
    )]
    Full,
    /// The core gives no image.
    #[error("the flash core gives no image of an aged device: {0}")]
    Image(String),
    /// A page read back is not what was written.
    #[error("page {page} of the packed device held {found:?} instead of what was written to it")]
    Wrong {
        /// Which page.
        page: u32,
        /// Its word.
        found: Option<u64>,
    },
    /// The caller's flag was set.
    #[error("interrupted")]
    Interrupted,
}

/// What a kind of operation took, from when it was issued to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Times {
    /// Operations.
    pub count: u64,
    /// Their pages of 4 KB.
    pub pages: u64,
    /// Mean.
    pub mean_ns: f64,
    /// 99th percentile, within 0.1 %.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Gathers [`Times`].
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
        // Not saturating_record(), which does not let it grow.
        let recorded = self.histogram.record(took_ns);
        recorded.expect("it grows with what it counts");
        self.max_ns = self.max_ns.max(took_ns);
        self.pages += pages;
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

/// [`Times`] by kind; a kind that did not occur is left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TimesByKind {
    /// Reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Times>,
    /// Writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Times>,
    /// Discards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Times>,
    /// Flushes.
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

    /// Each kind that occurred, by name.
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
