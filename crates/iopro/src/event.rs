//! What the capture sees, decoded: one [`Event`] for each thing that happened.
//!
//! # Time and order
//! All times are nanoseconds of CLOCK_MONOTONIC. A reader gives events by
//! [`Event::time_ns`], the moment at which the event was made. An event that
//! covers an interval is made at its *end* and has its begin in a field of its
//! own; so a read's bios and its blocked intervals come before its
//! [`CallExit`]. What has to be known earlier has an event at its begin as
//! well ([`What::CallEnter`]).
//!
//! # Identities
//! * A thread is its kernel thread id. [`What::Thread`] tells whose it is,
//!   before the thread's first other event, and again when its name, program or
//!   cgroup changes. Ids are used again; [`ThreadInfo::start_ns`] differs then.
//! * A file is a [`FileId`]; [`What::Name`] tells its path, before or soon
//!   after the file's first other event, and again when it is renamed. The
//!   same name may be told more than once.
//! * A bio and a request are addresses in the kernel, used again as soon as
//!   the former one is complete. Match them in order of time.
//! * Sectors are 512 bytes and count from the beginning of the *whole disk*,
//!   also where the I/O came through a partition; [`Dev`] of block events is
//!   that disk. [`FileId::dev`] is the file system's device, the partition.
//! * Pages are those of the page cache, 4096 bytes
//!   ([`Header::page_bytes`](crate::recording::Header::page_bytes)).
//!
//! # What belongs together
//! * Everything between a thread's [`CallExit::begin_ns`] and that event's
//!   time, with the same thread, was done in that call. A page fault may happen
//!   inside of another call; [`Event::in_fault`] is set then.
//! * A buffered write dirties the pages of its range ([`CallExit::call`] and
//!   `result`). [`What::Dirtied`] tells which of them went from clean to dirty,
//!   so which began a new version; the others were dirty already, and the same
//!   later request carries them. [`What::Cleaned`] ends the version: these
//!   pages were taken for writeback, and the next request with a
//!   [`What::Segment`] of such a page carries it. [`What::Truncated`] ends
//!   versions that nobody will ever write.
//! * A request consists of bios. [`What::Issue`] is followed by one
//!   [`What::Segment`] for each run of adjoining pages (or, for direct I/O,
//!   each bio) in it: that is where a bio, the pages in it and the request are
//!   tied together, after all merging and splitting.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The CPU.
    pub cpu: u32,
    /// The thread that ran there; for what interrupts do (completions above
    /// all) whichever they interrupted, so it means nothing then.
    pub thread: u32,
    /// The thread was in a page fault on a mapped file, possibly in the middle
    /// of another call.
    pub in_fault: bool,
    /// What happened.
    pub what: What,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A call began. Made for calls that write, sync, rename or remove, not for
    /// those that read: their pages may be on the way to the device long before
    /// they return.
    CallEnter(Call),
    /// A call returned.
    CallExit(CallExit),
    /// A request of io_uring was submitted.
    RingSubmit(RingSubmit),
    /// A request of io_uring has its result.
    RingComplete(RingComplete),

    /// Pages were added to the page cache, to be read or written.
    Added(PageRun),
    /// Pages went from clean to dirty.
    Dirtied(PageRun),
    /// Dirty pages were taken for writeback (`folio_clear_dirty_for_io`).
    Cleaned(PageRun),
    /// Pages were thrown away, dirty or not: truncated, hole punched, or the
    /// last link and the last user are gone.
    Truncated(Truncated),
    /// A thread wrote back pages of one file (`do_writepages`): the kernel's
    /// flusher, jbd2, or a call that syncs.
    Writeback(Writeback),

    /// A bio came to the block layer (blktrace's Q).
    Queue(Queue),
    /// A thread that held its requests back in a plug gives them to the queue
    /// (U, UT). Not made for a single one.
    Unplug {
        /// The disk.
        dev: Dev,
        /// Requests that were in the plug.
        requests: u32,
        /// Asked for, and not because the thread went to sleep.
        explicit: bool,
    },
    /// A bio became part of a request that was there already (M, F).
    Merge(Merge),
    /// A request was absorbed by its neighbour and is gone.
    RequestMerge(Request),
    /// A bio was too large and was cut (X).
    Split(Split),
    /// A request came to the I/O scheduler (I). Without a scheduler it often
    /// goes directly to the driver and there is no such event.
    Insert(Request),
    /// A request went to the driver (D). Its [`What::Segment`]s follow.
    Issue(Request),
    /// What is in a request, told when it was issued.
    Segment(Segment),
    /// The driver did not take a request and it waits again (R).
    Requeue(Request),
    /// A request, or a first part of it, is done (C).
    Complete(Complete),

    /// jbd2 went on to this phase of a commit.
    Commit(Commit),
    /// A thread opened its first handle on a transaction: what it changes goes
    /// into this commit. Not told again until the thread joins another one.
    Joined(Transaction),

    /// A thread was blocked in the storage stack.
    Blocked(Blocked),
    /// A thread reclaimed memory itself (direct reclaim), from `begin_ns` on.
    Reclaim {
        /// When it began.
        begin_ns: u64,
        /// Pages it got.
        reclaimed_pages: u64,
    },

    /// Who a thread is.
    Thread(ThreadInfo),
    /// A thread ended.
    ThreadEnd,
    /// What a file is called.
    Name(Name),
    /// What a cgroup is called.
    Cgroup {
        /// Its id, as in [`ThreadInfo::cgroup`].
        id: u64,
        /// Its path below the root of the hierarchy, `/` for the root itself.
        path: String,
    },
    /// The functions of a kernel stack.
    Stack {
        /// As in [`Reason::Other`].
        id: u32,
        /// The names from the innermost out; an unknown one as `0x…`.
        functions: Vec<String>,
    },
    /// Events were lost since the last such event: those linked from now on may
    /// miss something.
    Lost(Lost),
}

/// A device number of the kernel's: major in the upper 12 bits, minor in the
/// lower 20.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Dev(pub u32);

impl Dev {
    /// The driver's number.
    pub fn major(self) -> u32 {
        self.0 >> 20
    }

    /// The device's number among the driver's.
    pub fn minor(self) -> u32 {
        self.0 & ((1 << 20) - 1)
    }

    /// The device of these numbers.
    pub fn new(major: u32, minor: u32) -> Dev {
        Dev(major << 20 | minor & ((1 << 20) - 1))
    }
}

impl fmt::Display for Dev {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.major(), self.minor())
    }
}

/// A file, a directory, or a block device seen as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The file system's device. For a block device opened as a file, and for a
    /// file system's metadata blocks, it is the block device itself, and
    /// `inode` is 0.
    pub dev: Dev,
    /// The inode's number.
    pub inode: u64,
    /// Tells files apart that had the same number one after another. 0 where
    /// the file system has none.
    pub generation: u32,
}

impl FileId {
    /// Whether it is a block device: pages of it are file system metadata
    /// unless somebody opened the device.
    pub fn is_block_device(&self) -> bool {
        self.inode == 0
    }
}

/// What a thread asked for: a system call or a page fault on a mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which.
    pub kind: CallKind,
    /// The file descriptor, where there is one.
    pub fd: Option<i32>,
    /// The file, where the call has one that is known at its begin or end. Of
    /// two (copy_file_range, sendfile, splice) it is the one written to.
    pub file: Option<FileId>,
    /// The one read from, of two.
    pub from: Option<FileId>,
    /// Where in the file. At the exit of a write it is where the data went,
    /// O_APPEND or not. The new size for truncate.
    pub offset_bytes: Option<u64>,
    /// How much was asked for; none for vectored calls at their begin.
    pub size_bytes: Option<u64>,
    /// How the file was opened and what the call asked for.
    pub flags: CallFlags,
}

/// Set of properties of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFlags(pub u16);

impl CallFlags {
    /// O_DIRECT: past the page cache.
    pub const DIRECT: CallFlags = CallFlags(1);
    /// O_DSYNC, O_SYNC, RWF_DSYNC or RWF_SYNC: the write waits for the device.
    pub const SYNC: CallFlags = CallFlags(2);
    /// O_APPEND.
    pub const APPEND: CallFlags = CallFlags(4);
    /// The other end of a copy is not a file on a disk.
    pub const HALF: CallFlags = CallFlags(8);

    /// Whether all of `flags` are set.
    pub fn has(self, flags: CallFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// Which call. The numbers are those of the kernel side (`src/bpf/wire.h`) and
/// of recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is the system call of that name")]
pub enum CallKind {
    Read = 1,
    Pread64 = 2,
    Readv = 3,
    Preadv = 4,
    Preadv2 = 5,
    Write = 6,
    Pwrite64 = 7,
    Writev = 8,
    Pwritev = 9,
    Pwritev2 = 10,
    Fsync = 11,
    Fdatasync = 12,
    SyncFileRange = 13,
    Sync = 14,
    Syncfs = 15,
    Msync = 16,
    Truncate = 17,
    Ftruncate = 18,
    Fallocate = 19,
    Open = 20,
    Openat = 21,
    Openat2 = 22,
    Creat = 23,
    Rename = 24,
    Renameat = 25,
    Renameat2 = 26,
    Unlink = 27,
    Unlinkat = 28,
    Rmdir = 29,
    Mkdir = 30,
    Mkdirat = 31,
    Sendfile = 32,
    CopyFileRange = 33,
    Splice = 34,
    Getdents64 = 35,
    IoUringEnter = 36,
    IoSubmit = 37,
    IoGetevents = 38,
    Fadvise64 = 39,
    Readahead = 40,
    Execve = 41,
    /// A page of a mapped file was not mapped (`filemap_fault`).
    ReadFault = 64,
    /// A page of a shared mapped file became writable (`page_mkwrite`).
    WriteFault = 65,
}

impl CallKind {
    /// All of them.
    pub const ALL: [CallKind; 43] = [
        CallKind::Read,
        CallKind::Pread64,
        CallKind::Readv,
        CallKind::Preadv,
        CallKind::Preadv2,
        CallKind::Write,
        CallKind::Pwrite64,
        CallKind::Writev,
        CallKind::Pwritev,
        CallKind::Pwritev2,
        CallKind::Fsync,
        CallKind::Fdatasync,
        CallKind::SyncFileRange,
        CallKind::Sync,
        CallKind::Syncfs,
        CallKind::Msync,
        CallKind::Truncate,
        CallKind::Ftruncate,
        CallKind::Fallocate,
        CallKind::Open,
        CallKind::Openat,
        CallKind::Openat2,
        CallKind::Creat,
        CallKind::Rename,
        CallKind::Renameat,
        CallKind::Renameat2,
        CallKind::Unlink,
        CallKind::Unlinkat,
        CallKind::Rmdir,
        CallKind::Mkdir,
        CallKind::Mkdirat,
        CallKind::Sendfile,
        CallKind::CopyFileRange,
        CallKind::Splice,
        CallKind::Getdents64,
        CallKind::IoUringEnter,
        CallKind::IoSubmit,
        CallKind::IoGetevents,
        CallKind::Fadvise64,
        CallKind::Readahead,
        CallKind::Execve,
        CallKind::ReadFault,
        CallKind::WriteFault,
    ];

    /// The call of this number on the wire.
    pub fn from_wire(number: u8) -> Option<CallKind> {
        CallKind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// As strace prints it; `read-fault` and `write-fault` for faults.
    pub fn name(self) -> &'static str {
        match self {
            CallKind::Read => "read",
            CallKind::Pread64 => "pread64",
            CallKind::Readv => "readv",
            CallKind::Preadv => "preadv",
            CallKind::Preadv2 => "preadv2",
            CallKind::Write => "write",
            CallKind::Pwrite64 => "pwrite64",
            CallKind::Writev => "writev",
            CallKind::Pwritev => "pwritev",
            CallKind::Pwritev2 => "pwritev2",
            CallKind::Fsync => "fsync",
            CallKind::Fdatasync => "fdatasync",
            CallKind::SyncFileRange => "sync_file_range",
            CallKind::Sync => "sync",
            CallKind::Syncfs => "syncfs",
            CallKind::Msync => "msync",
            CallKind::Truncate => "truncate",
            CallKind::Ftruncate => "ftruncate",
            CallKind::Fallocate => "fallocate",
            CallKind::Open => "open",
            CallKind::Openat => "openat",
            CallKind::Openat2 => "openat2",
            CallKind::Creat => "creat",
            CallKind::Rename => "rename",
            CallKind::Renameat => "renameat",
            CallKind::Renameat2 => "renameat2",
            CallKind::Unlink => "unlink",
            CallKind::Unlinkat => "unlinkat",
            CallKind::Rmdir => "rmdir",
            CallKind::Mkdir => "mkdir",
            CallKind::Mkdirat => "mkdirat",
            CallKind::Sendfile => "sendfile",
            CallKind::CopyFileRange => "copy_file_range",
            CallKind::Splice => "splice",
            CallKind::Getdents64 => "getdents64",
            CallKind::IoUringEnter => "io_uring_enter",
            CallKind::IoSubmit => "io_submit",
            CallKind::IoGetevents => "io_getevents",
            CallKind::Fadvise64 => "fadvise64",
            CallKind::Readahead => "readahead",
            CallKind::Execve => "execve",
            CallKind::ReadFault => "read-fault",
            CallKind::WriteFault => "write-fault",
        }
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallExit {
    /// What was asked for; complete by now.
    pub call: Call,
    /// When it began.
    pub begin_ns: u64,
    /// What it returned: bytes, or an error as a negative number. For a fault,
    /// the kernel's `vm_fault_t`.
    pub result: i64,
    /// The recording ended before the call did; `result` means nothing.
    pub unfinished: bool,
}

/// A request given to io_uring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSubmit {
    /// The kernel's `io_kiocb`; used again after completion.
    pub request: u64,
    /// IORING_OP_…
    pub opcode: u8,
    /// The program's own mark.
    pub user_data: u64,
    /// The file, where it is on a disk.
    pub file: Option<FileId>,
    /// Where in the file; none for the file's own position.
    pub offset_bytes: Option<u64>,
    /// How much; none for vectored operations.
    pub size_bytes: Option<u64>,
    /// How the file was opened.
    pub flags: CallFlags,
}

/// A result of io_uring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingComplete {
    /// As in [`RingSubmit::request`].
    pub request: u64,
    /// The program's own mark.
    pub user_data: u64,
    /// Bytes, or an error as a negative number.
    pub result: i32,
}

/// Adjoining pages of one file that all had the same done to them by one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The file.
    pub file: FileId,
    /// The first page's number in the file.
    pub index: u64,
    /// How many pages.
    pub pages: u32,
    /// When it was done to the first; it was done to the last at
    /// [`Event::time_ns`] or up to a millisecond before.
    pub begin_ns: u64,
}

/// Pages that are no longer in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// The file.
    pub file: FileId,
    /// From this byte on.
    pub from_bytes: u64,
    /// Up to this one, which is still thrown away; `u64::MAX` for all there is.
    pub to_bytes: u64,
    /// The file has no link any more: it was removed, not cut.
    pub removed: bool,
}

/// One file's pages being written back by one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writeback {
    /// The file.
    pub file: FileId,
    /// When it began.
    pub begin_ns: u64,
    /// Pages asked for that were written.
    pub pages: u64,
    /// Whoever asked wants to wait for all of it (WB_SYNC_ALL).
    pub sync: bool,
}

/// REQ_… of the kernel, in this program's own numbers: theirs change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IoFlags(pub u16);

impl IoFlags {
    /// Somebody waits for it (REQ_SYNC).
    pub const SYNC: IoFlags = IoFlags(1);
    /// File system metadata (REQ_META).
    pub const META: IoFlags = IoFlags(2);
    /// REQ_PRIO.
    pub const PRIO: IoFlags = IoFlags(4);
    /// REQ_FUA.
    pub const FUA: IoFlags = IoFlags(8);
    /// A cache flush comes first (REQ_PREFLUSH).
    pub const PREFLUSH: IoFlags = IoFlags(16);
    /// Readahead (REQ_RAHEAD).
    pub const READAHEAD: IoFlags = IoFlags(32);
    /// Writeback in the background (REQ_BACKGROUND).
    pub const BACKGROUND: IoFlags = IoFlags(64);
    /// Swap (REQ_SWAP).
    pub const SWAP: IoFlags = IoFlags(128);
    /// More follows at once (REQ_IDLE).
    pub const IDLE: IoFlags = IoFlags(256);

    /// Whether all of `flags` are set.
    pub fn has(self, flags: IoFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// What an I/O does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the kernel's REQ_OP_ of that name")]
pub enum Op {
    Read,
    Write,
    Flush,
    Discard,
    SecureErase,
    WriteZeroes,
    /// Zones, passthrough and the driver's own.
    Other,
}

/// What an I/O is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The disk.
    pub dev: Dev,
    /// What it does.
    pub op: Op,
    /// How.
    pub flags: IoFlags,
    /// The first sector, on the whole disk.
    pub sector: u64,
    /// How much, 0 for a flush without data.
    pub bytes: u32,
}

/// A bio came to the block layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The bio.
    pub bio: u64,
    /// What it is.
    pub io: Io,
}

/// A bio became part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The bio.
    pub bio: u64,
    /// What it is.
    pub io: Io,
    /// It came before what was there, and not behind it.
    pub front: bool,
}

/// A bio was cut in two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The new bio, the front part.
    pub bio: u64,
    /// The bio that it was cut from, which keeps the rest.
    pub parent: u64,
    /// The front part.
    pub io: Io,
    /// Where the rest begins.
    pub rest_sector: u64,
}

/// A request at one of its stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The request.
    pub request: u64,
    /// What it is by now.
    pub io: Io,
    /// The I/O priority it was given (`IOPRIO_PRIO_VALUE`).
    pub ioprio: u16,
}

/// One run of pages in a request that was just issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The request.
    pub request: u64,
    /// The bio it came in; after a split the part's own.
    pub bio: u64,
    /// The disk.
    pub dev: Dev,
    /// Where on the disk.
    pub sector: u64,
    /// How much.
    pub bytes: u32,
    /// What is written or read; none for direct I/O, for buffers of the file
    /// system's own (journal copies of changed blocks) and for discards.
    pub pages: Option<(FileId, u64)>,
}

/// A request is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// The request.
    pub request: u64,
    /// The first sector of what is done.
    pub sector: u64,
    /// How much is done with this.
    pub bytes: u32,
    /// The rest of it that is not.
    pub remaining_bytes: u32,
    /// 0, or the kernel's `blk_status_t`.
    pub status: u8,
}

/// A transaction of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transaction {
    /// The file system's device.
    pub dev: Dev,
    /// The transaction's number (`tid_t`).
    pub tid: u32,
}

/// The phases of a commit, `jbd2_journal_commit_transaction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CommitPhase {
    /// It begins.
    Start,
    /// Nobody may join any more; open handles have to end.
    Locking,
    /// Data that have to be on the device first are written.
    Flushing,
    /// The journal is written.
    Logging,
    /// It is on the device.
    End,
}

/// A commit's progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Which.
    pub transaction: Transaction,
    /// What begins.
    pub phase: CommitPhase,
}

/// A thread could not go on, in the storage stack, for a time.
///
/// [`Event::time_ns`] is when it ran again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// When it left the CPU.
    pub begin_ns: u64,
    /// When it was woken; until it ran again it waited for a CPU only.
    pub woken_ns: u64,
    /// The thread that woke it; whichever was interrupted, if an interrupt did.
    pub waker: u32,
    /// What it waited for.
    pub reason: Reason,
    /// It could not be woken by a signal.
    pub uninterruptible: bool,
    /// The kernel counted it as waiting for I/O (`in_iowait`).
    pub iowait: bool,
    /// It was reclaiming memory (direct reclaim) when it blocked.
    pub in_reclaim: bool,
    /// It had to make space in the journal (checkpoint), whatever it waited for
    /// in the course of it.
    pub for_journal_space: bool,
    /// The call it was in, if one that is recorded.
    pub call: Option<CallKind>,
}

/// What a blocked thread waited for, as the place in the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The end of a page's writeback (`folio_wait_writeback`).
    Writeback {
        /// The file.
        file: FileId,
        /// The page.
        index: u64,
    },
    /// A page's lock: somebody reads it, or works on it (`__folio_lock`,
    /// `folio_wait_bit` with PG_locked). A call that reads through the page cache
    /// does so in a function that cannot be traced; of a longer read the page is
    /// then the first that was added, or else the first of its range.
    PageLock {
        /// The file.
        file: FileId,
        /// The page.
        index: u64,
    },
    /// The lock of a buffer, held while it is written or read
    /// (`__lock_buffer`, `__wait_on_buffer`).
    Buffer {
        /// The file system's device.
        dev: Dev,
        /// Where on that device (not the disk), in file system blocks.
        block: u64,
        /// The block's size.
        block_bytes: u32,
    },
    /// A buffer that the journal is writing (`do_get_write_access`).
    JournalBuffer {
        /// The file system's device.
        dev: Dev,
    },
    /// The end of a commit (`jbd2_log_wait_commit`).
    JournalCommit(Transaction),
    /// A transaction that may not be joined just now (`start_this_handle`).
    JournalHandle {
        /// The file system's device.
        dev: Dev,
    },
    /// Space in the journal, so a checkpoint
    /// (`__jbd2_log_wait_for_space`).
    JournalSpace {
        /// The file system's device.
        dev: Dev,
    },
    /// A tag, as all requests of the queue are in use (`blk_mq_get_tag`).
    Tag,
    /// Writeback throttling or another policy of the queue (`rq_qos_wait`).
    QueueThrottle,
    /// Too many dirty pages (`balance_dirty_pages`).
    DirtyThrottle,
    /// A bio that the thread itself submitted and waits for: a discard, a flush,
    /// a metadata read (`submit_bio_wait`).
    OwnBio {
        /// What the bio does.
        op: Op,
    },
    /// Its own direct I/O, or the results of its own asynchronous I/O
    /// ([`Blocked::call`] is io_uring_enter or io_getevents then).
    DirectIo,
    /// A sleeping lock (mutex, rwsem) held by another thread.
    Lock {
        /// Its address.
        address: u64,
        /// It is the inode's lock of the file that the call is about.
        of_file: bool,
    },
    /// A file's writeback by somebody else as a whole
    /// (`inode_wait_for_writeback`, `wb_wait_for_completion`).
    FlusherDone,
    /// Memory: reclaim waits for writeback or for others
    /// (`reclaim_throttle`).
    ReclaimThrottle,
    /// None of these; the stack says where.
    Other {
        /// Told by [`What::Stack`], at the latest at the end of the recording;
        /// none when the stack could not be had.
        stack: Option<u32>,
    },
}

/// Who a thread is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Which one; [`Event::thread`] may be another that told of it.
    pub thread: u32,
    /// Its process (`tgid`).
    pub process: u32,
    /// The process's parent.
    pub parent: u32,
    /// When the thread started, CLOCK_BOOTTIME.
    pub start_ns: u64,
    /// Its cgroup in the v2 hierarchy.
    pub cgroup: u64,
    /// The thread's name (`comm`).
    pub name: String,
    /// The process's name.
    pub process_name: String,
    /// A thread of the kernel's own.
    pub kernel: bool,
}

/// What a file is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Which.
    pub file: FileId,
    /// Its path from its file system's root, in full, with `/` at the
    /// beginning. Bytes that are not UTF-8 are replaced. Of several links it is
    /// one. Empty where the kernel knows no name (an inode without a dentry).
    pub path: String,
    /// The beginning of the path was too deep to be had; it begins with `…/`.
    pub cut: bool,
    /// Why it is told.
    pub why: NameReason,
    /// The file's type and rights (`st_mode`).
    pub mode: u16,
}

/// Why a name is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameReason {
    /// It was seen for the first time.
    Seen,
    /// It was seen for the first time and had no link any more.
    SeenRemoved,
    /// It was renamed to this.
    Renamed,
    /// This name of it was removed just now.
    Removed,
}

/// Events that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Which kind.
    pub kind: LostKind,
    /// How many.
    pub count: u64,
}

/// Where an event got lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LostKind {
    /// A call, in a full buffer.
    Calls,
    /// Page cache events, in a full buffer.
    Pages,
    /// Block layer events, in a full buffer.
    Block,
    /// Segments of requests, in a full buffer.
    Segments,
    /// Journal events, in a full buffer.
    Journal,
    /// Blocked intervals, in a full buffer.
    Blocked,
    /// Threads and names, in a full buffer.
    Names,
    /// A program was not run, as it was running already on that CPU.
    Missed,
    /// There were more threads than there is state for.
    Threads,
    /// A request was too long to be walked to its end.
    LongRequests,
}

impl LostKind {
    /// All of them, as the programs in the kernel count them.
    pub const COUNTED: [LostKind; 10] = [
        LostKind::Calls,
        LostKind::Pages,
        LostKind::Block,
        LostKind::Segments,
        LostKind::Journal,
        LostKind::Blocked,
        LostKind::Names,
        LostKind::Missed,
        LostKind::Threads,
        LostKind::LongRequests,
    ];
}
