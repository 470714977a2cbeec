//! Traces of system calls in memory.
//!
//! Paths are relative to a directory for the replay: no path names a file of the machine. Positions
//! of descriptors are resolved, so each read and write has an offset.

mod build;

pub use build::{Builder, Opening, When, pseudo};

use crate::account::Account;
use crate::schedule::Steps;
use crate::trace::{Kind, Operation, Trace};

/// System calls that can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// open(2), creat(2): the handle is valid from now on.
    Open {
        /// Handle that is opened.
        handle: u32,
    },
    /// close(2): the handle is no longer valid.
    Close {
        /// Handle that is closed.
        handle: u32,
    },
    /// read(2) and its variants.
    Read {
        /// Handle of the file.
        handle: u32,
        /// Offset in the file of the first byte.
        offset: u64,
        /// Number of bytes that the traced call read.
        bytes: u64,
    },
    /// write(2) and its variants.
    Write {
        /// Handle of the file.
        handle: u32,
        /// Offset in the file of the first byte.
        offset: u64,
        /// Number of bytes that the traced call wrote.
        bytes: u64,
    },
    /// fsync(2) and fdatasync(2).
    Sync {
        /// Handle of the file.
        handle: u32,
        /// It is fdatasync(2), which skips the file's times.
        data_only: bool,
    },
    /// syncfs(2) and sync(2).
    SyncAll,
    /// Begins writeback of a range of a file, or waits for it, as sync_file_range(2).
    SyncRange {
        /// Handle of the file.
        handle: u32,
        /// Offset in the file of the first byte.
        offset: u64,
        /// Number of bytes; 0 for all up to the end of the file.
        bytes: u64,
        /// Its flags, `SYNC_FILE_RANGE_…`.
        flags: u8,
    },
    /// Reserves, frees or zeroes a range of a file, as fallocate(2).
    Allocate {
        /// Handle of the file.
        handle: u32,
        /// Its mode, of `FALLOC_FL_…`.
        mode: u8,
        /// Offset in the file of the first byte.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// ftruncate(2) and truncate(2).
    Truncate {
        /// Handle of the file.
        handle: u32,
        /// New size of the file, in bytes.
        bytes: u64,
    },
    /// rename(2) and its variants.
    Rename {
        /// Number of the old path.
        from: u32,
        /// Number of the new path.
        to: u32,
    },
    /// unlink(2) and unlinkat(2) of a file.
    Unlink {
        /// Number of the path.
        path: u32,
    },
    /// mkdir(2) and mkdirat(2).
    MakeDirectory {
        /// Number of the path.
        path: u32,
    },
    /// rmdir(2), and unlinkat(2) of a directory.
    RemoveDirectory {
        /// Number of the path.
        path: u32,
    },
}

impl Action {
    /// Names of the actions, by [`Action::kind`].
    pub const KINDS: [&'static str; 13] = [
        "open",
        "close",
        "read",
        "write",
        "sync",
        "sync all",
        "sync range",
        "allocate",
        "truncate",
        "rename",
        "unlink",
        "mkdir",
        "rmdir",
    ];

    /// Index of the action in [`Action::KINDS`].
    pub fn kind(&self) -> usize {
        match self {
            Action::Open { .. } => 0,
            Action::Close { .. } => 1,
            Action::Read { .. } => 2,
            Action::Write { .. } => 3,
            Action::Sync { .. } => 4,
            Action::SyncAll => 5,
            Action::SyncRange { .. } => 6,
            Action::Allocate { .. } => 7,
            Action::Truncate { .. } => 8,
            Action::Rename { .. } => 9,
            Action::Unlink { .. } => 10,
            Action::MakeDirectory { .. } => 11,
            Action::RemoveDirectory { .. } => 12,
        }
    }

    /// Whether it is a request of a device where there are neither names nor a page cache.
    pub fn is_request(&self) -> bool {
        matches!(
            self,
            Action::Read { .. } | Action::Write { .. } | Action::Sync { .. } | Action::SyncAll
        )
    }
}

/// One system call of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Begin of the call, in nanoseconds since the trace's first call.
    pub time_ns: u64,
    /// Duration of the call in the trace, in nanoseconds.
    pub took_ns: u64,
    /// Number of the thread that called, from 0.
    pub lane: u32,
    /// The call and its arguments.
    pub action: Action,
}

/// An open file, which a descriptor and its duplicates refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// Number of the path that it was opened by.
    pub path: u32,
    /// Number of the file, which differs from that of a removed file with the same path.
    pub file: u32,
    /// Flags of the open.
    pub opening: Opening,
}

/// State of a path before the trace begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// A file with this many bytes, which the trace reads.
    File {
        /// Size of the file, in bytes.
        bytes: u64,
    },
    /// A directory that the trace does not make.
    Directory,
    /// Nothing exists: the trace makes the file or directory.
    Nothing,
}

/// A trace of system calls: calls in the order of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    calls: Vec<Call>,
    lanes: u32,
    handles: Vec<Handle>,
    /// Paths by number, relative and without `.` and `..`.
    paths: Vec<Vec<u8>>,
    /// State of each path before the trace begins.
    before: Vec<Before>,
    /// Largest size of each file during the trace, by its number.
    sizes: Vec<u64>,
    /// The account of what was read, for a replay in a directory.
    account: Account,
    /// The same for a replay of block requests.
    account_of_blocks: Account,
}

impl Calls {
    /// The calls in the order of their times.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The handles by number.
    pub fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// The paths by number. They are bytes and relative to the directory of the replay, which they
    /// do not leave.
    pub fn paths(&self) -> &[Vec<u8>] {
        &self.paths
    }

    /// State of each path before the trace begins, by the path's number.
    pub fn before(&self) -> &[Before] {
        &self.before
    }

    /// The account of what was read, for a replay in a directory.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Divides all times of calls by `speed`; the durations of calls stay the same.
    #[must_use]
    pub fn at_speed(mut self, speed: f64) -> Self {
        for call in &mut self.calls {
            call.time_ns = (call.time_ns as f64 / speed) as u64;
        }
        self
    }

    /// The block trace that results if each file is contiguous on a device and nothing is cached.
    /// Only reads, writes and flushes are in it.
    pub fn as_blocks(&self) -> Trace {
        let mut starts = Vec::with_capacity(self.sizes.len());
        let mut end: u64 = 0;
        for size in &self.sizes {
            starts.push(end);
            // The sum cannot overflow: the builder limits the size of all files.
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
                Action::Sync { .. } | Action::SyncAll => {
                    return Some(Operation {
                        time_ns: call.time_ns,
                        kind: Kind::Flush,
                        offset_bytes: 0,
                        size_bytes: 0,
                        lane: call.lane,
                    });
                }
                _ => return None,
            };
            let start = starts[self.handles[handle as usize].file as usize];
            Some(Operation {
                time_ns: call.time_ns,
                kind,
                offset_bytes: start + offset_bytes,
                size_bytes,
                lane: call.lane,
            })
        };
        let operations = self.calls.iter().filter_map(operation).collect();
        Trace::new(operations).with_account(self.account_of_blocks.clone())
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
