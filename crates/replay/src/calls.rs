//! A trace of system calls in memory: what threads did to which files.
//!
//! Paths are those below a directory of our own: nothing in here names a file of the machine
//! that it is replayed on. Positions of descriptors are resolved, so that each read and write
//! says where in the file it is.

mod build;

pub use build::{Builder, Opening, When};

use crate::schedule::Steps;
use crate::trace::{Kind, Operation, Trace};
use std::collections::BTreeMap;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// open(2), creat(2): the handle can be used from now on.
    Open {
        /// Which.
        handle: u32,
    },
    /// close(2).
    Close {
        /// Which.
        handle: u32,
    },
    /// read(2) and its kind.
    Read {
        /// From which.
        handle: u32,
        /// First byte.
        offset: u64,
        /// Bytes that were read.
        bytes: u64,
    },
    /// write(2) and its kind.
    Write {
        /// To which.
        handle: u32,
        /// First byte.
        offset: u64,
        /// Bytes that were written.
        bytes: u64,
    },
    /// fsync(2), fdatasync(2).
    Sync {
        /// Which.
        handle: u32,
        /// Not the times of the file.
        data_only: bool,
    },
    /// ftruncate(2), truncate(2).
    Truncate {
        /// Which.
        handle: u32,
        /// The new size.
        bytes: u64,
    },
    /// rename(2).
    Rename {
        /// Path, by its number.
        from: u32,
        /// Path, by its number.
        to: u32,
    },
    /// unlink(2).
    Unlink {
        /// Path, by its number.
        path: u32,
    },
    /// mkdir(2).
    MakeDirectory {
        /// Path, by its number.
        path: u32,
    },
    /// rmdir(2).
    RemoveDirectory {
        /// Path, by its number.
        path: u32,
    },
}

impl Action {
    /// Of [`Action::kind`], in its order.
    pub const KINDS: [&'static str; 10] = [
        "open", "close", "read", "write", "sync", "truncate", "rename", "unlink", "mkdir", "rmdir",
    ];

    /// Which of [`Action::KINDS`] it is.
    pub fn kind(&self) -> usize {
        match self {
            Action::Open { .. } => 0,
            Action::Close { .. } => 1,
            Action::Read { .. } => 2,
            Action::Write { .. } => 3,
            Action::Sync { .. } => 4,
            Action::Truncate { .. } => 5,
            Action::Rename { .. } => 6,
            Action::Unlink { .. } => 7,
            Action::MakeDirectory { .. } => 8,
            Action::RemoveDirectory { .. } => 9,
        }
    }
}

/// One system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began, since the trace's first call.
    pub time_ns: u64,
    /// What it took.
    pub took_ns: u64,
    /// The thread that called, from 0 on.
    pub lane: u32,
    /// What it did.
    pub action: Action,
}

/// An open file: what a descriptor and its duplicates mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// Path that it was opened by, by its number.
    pub path: u32,
    /// Which file that was: another one after the first was removed.
    pub file: u32,
    /// How.
    pub opening: Opening,
}

/// What has to be there before the trace begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// A file with so many bytes, since the trace reads them.
    File {
        /// Its size.
        bytes: u64,
    },
    /// A directory.
    Directory,
    /// Nothing: the trace makes it.
    Nothing,
}

/// System calls in the order of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    calls: Vec<Call>,
    lanes: u32,
    handles: Vec<Handle>,
    /// Relative, without `.` and `..`, by their numbers.
    paths: Vec<Vec<u8>>,
    /// Of each path.
    before: Vec<Before>,
    /// The most bytes that each file has, by its number.
    sizes: Vec<u64>,
    /// Calls that are not replayed, by name and reason.
    left_out: BTreeMap<String, u64>,
}

impl Calls {
    /// In order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// By number.
    pub fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// By number: bytes, relative to the directory that it is replayed in, and inside of it.
    pub fn paths(&self) -> &[Vec<u8>] {
        &self.paths
    }

    /// What each path is before the trace begins.
    pub fn before(&self) -> &[Before] {
        &self.before
    }

    /// How many calls are not replayed, by name and reason.
    pub fn left_out(&self) -> &BTreeMap<String, u64> {
        &self.left_out
    }

    /// The same at `speed` times the speed. What calls took is not changed by it.
    #[must_use]
    pub fn at_speed(mut self, speed: f64) -> Self {
        for call in &mut self.calls {
            call.time_ns = (call.time_ns as f64 / speed) as u64;
        }
        self
    }

    /// As if each file were in one piece on a device and nothing were kept in memory: what is
    /// read, written and flushed, without names.
    pub fn as_blocks(&self) -> Trace {
        let mut starts = Vec::with_capacity(self.sizes.len());
        let mut end: u64 = 0;
        for size in &self.sizes {
            starts.push(end);
            // Far below the end of numbers: the builder sees to that.
            end += size.next_multiple_of(crate::flash::PAGE_BYTES);
        }
        let operation = |call: &Call| {
            let (kind, handle, offset_bytes, size_bytes) = match call.action {
                Action::Read {
                    handle,
                    offset,
                    bytes,
                } => (Kind::Read, handle, offset, bytes),
                Action::Write {
                    handle,
                    offset,
                    bytes,
                } => (Kind::Write, handle, offset, bytes),
                Action::Sync { handle, .. } => (Kind::Flush, handle, 0, 0),
                _ => return None,
            };
            let start = starts[self.handles[handle as usize].file as usize];
            Some(Operation {
                time_ns: call.time_ns,
                kind,
                offset_bytes: match kind {
                    Kind::Flush => 0,
                    _ => start + offset_bytes,
                },
                size_bytes,
                lane: call.lane,
            })
        };
        Trace::new(self.calls.iter().filter_map(operation).collect())
    }
}

impl Steps for Calls {
    fn count(&self) -> usize {
        self.calls.len()
    }

    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn time_ns(&self, index: usize) -> u64 {
        self.calls[index].time_ns
    }

    fn end_ns(&self, index: usize) -> u64 {
        let call = &self.calls[index];
        call.time_ns.saturating_add(call.took_ns)
    }

    fn lane(&self, index: usize) -> u32 {
        self.calls[index].lane
    }
}
