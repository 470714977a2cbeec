//! Decoded [`Event`]s of the capture.
//!
//! # Time and order
//! All times are nanoseconds of CLOCK_MONOTONIC. A reader gives events by [`Event::time_ns`], the
//! moment at which the event was made. An event that covers an interval is made at its *end* and
//! has its begin in a field of its own. The bios and the blocked intervals of a read thus come
//! before its [`CallExit`]. Calls that must be known earlier have an event at their begin as well
//! ([`What::CallEnter`]).
//!
//! # Identities
//! * A thread is its kernel thread id. [`What::Thread`] tells its task before the thread's first
//!   other event, and again when its name, program or cgroup changes. The kernel reuses ids;
//!   [`ThreadInfo::start_ns`] differs then.
//! * A file is a [`FileId`]. [`What::Name`] tells its path before or soon after the file's first
//!   other event, and again when it is renamed. The same name may be told more than once.
//! * A bio and a request are addresses in the kernel, which reuses an address as soon as its bio or
//!   request is complete. Match them in order of time.
//! * Sectors are 512 bytes and count from the begin of the *whole disk*, also for I/O through a
//!   partition. The [`Dev`] of block events is that disk. [`FileId::dev`] is the file system's
//!   device, the partition.
//! * Pages are those of the page cache, 4096 bytes
//!   ([`Header::page_bytes`](crate::recording::Header::page_bytes)).
//!
//! # What belongs together
//! * All events of a thread between [`CallExit::begin_ns`] and the time of that [`CallExit`] belong
//!   to the call. A page fault may happen inside of another call; [`Event::in_fault`] is set then.
//! * A buffered write dirties the pages of its range ([`CallExit::call`] and `result`).
//!   [`What::Dirtied`] tells which of them went from clean to dirty, and so began a new version.
//!   The others were dirty already, and the same later request carries them.
//! * [`What::Cleaned`] ends the version: these pages were taken for writeback. The next request
//!   with a [`What::Segment`] of such a page carries it. [`What::Truncated`] ends versions that
//!   will never be written.
//! * A request consists of bios. [`What::Issue`] is followed by one [`What::Segment`] for each run
//!   of adjoining pages in it, or for each bio of direct I/O. The segment ties the bio, its pages
//!   and the request together, after all merging and splitting.

use crate::named::numbered;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One event of the capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Time of the event, in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// CPU on which it happened.
    pub cpu: u32,
    /// The thread that ran on the CPU. In an interrupt (completions above all) it is the
    /// interrupted thread and means nothing.
    pub thread: u32,
    /// The thread was in a page fault on a mapped file, possibly inside of another call.
    pub in_fault: bool,
    /// What happened, with its details.
    pub what: What,
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A call began that writes, syncs, renames or removes. The pages of such a call may go to
    /// the device long before it returns. Reads have no such event.
    CallEnter(Call),
    /// A call returned.
    CallExit(CallExit),
    /// A request of io_uring was submitted.
    RingSubmit(RingSubmit),
    /// A request of io_uring completed.
    RingComplete(RingComplete),

    /// Pages were added to the page cache, to be read or written.
    Added(PageRun),
    /// Pages went from clean to dirty.
    Dirtied(PageRun),
    /// Dirty pages were taken for writeback (`folio_clear_dirty_for_io`).
    Cleaned(PageRun),
    /// Pages were thrown away, dirty or not: by a truncation, a hole punch, or the end of the
    /// file's last link and last user.
    Truncated(Truncated),
    /// A thread wrote back pages of one file (`do_writepages`): the kernel's
    /// flusher, jbd2, or a call that syncs.
    Writeback(Writeback),

    /// A bio came to the block layer (blktrace's Q).
    Queue(Queue),
    /// A thread passes the requests in its plug to the queue (U, UT). A single request has no such
    /// event.
    Unplug {
        /// Disk of the requests.
        dev: Dev,
        /// Number of requests in the plug.
        requests: u32,
        /// The thread unplugged itself; false if it went to sleep with the plug.
        explicit: bool,
    },
    /// A bio became part of a request that was there already (M, F).
    Merge(Merge),
    /// A request was absorbed by its neighbour and no longer exists.
    RequestMerge(Request),
    /// A bio was too large and was cut (X).
    Split(Split),
    /// A request was inserted into the I/O scheduler (I). Without a scheduler requests often go
    /// directly to the driver, without this event.
    Insert(Request),
    /// A request went to the driver (D). Its [`What::Segment`]s follow.
    Issue(Request),
    /// A run of pages in a request, told after its issue.
    Segment(Segment),
    /// The driver returned a request, which is queued again (R).
    Requeue(Request),
    /// A request, or a first part of it, is done (C).
    Complete(Complete),

    /// A commit of jbd2 entered a phase.
    Commit(Commit),
    /// A thread opened its first handle on a transaction, so its changes go into this commit. The
    /// next such event of the thread is for another transaction.
    Joined(Transaction),

    /// A thread was blocked in the storage stack.
    Blocked(Blocked),
    /// A thread reclaimed memory itself (direct reclaim), from `begin_ns` on.
    Reclaim {
        /// Begin of the reclaim, in nanoseconds of CLOCK_MONOTONIC.
        begin_ns: u64,
        /// Number of pages that it freed.
        reclaimed_pages: u64,
    },

    /// Identity and names of a thread, also after a change.
    Thread(ThreadInfo),
    /// A thread ended.
    ThreadEnd,
    /// The path of a file.
    Name(Name),
    /// The path of a cgroup.
    Cgroup {
        /// Id of the cgroup, as in [`ThreadInfo::cgroup`].
        id: u64,
        /// Path below the root of the hierarchy; `/` for the root itself.
        path: String,
    },
    /// The functions of a kernel stack.
    Stack {
        /// Id of the stack, as in [`Reason::Other`].
        id: u32,
        /// Names from the innermost out; `0x…` for an unknown one.
        functions: Vec<String>,
    },
    /// Events were lost since the last such event. Links from now on may be incomplete.
    Lost(Lost),
}

/// Device number in the kernel's form: major in the upper 12 bits, minor in the lower 20.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Dev(pub u32);

impl Dev {
    /// Major number, which names the driver.
    pub fn major(self) -> u32 {
        self.0 >> 20
    }

    /// Minor number, which names one of the driver's devices.
    pub fn minor(self) -> u32 {
        self.0 & ((1 << 20) - 1)
    }

    /// Builds a device number from its parts.
    pub fn new(major: u32, minor: u32) -> Dev {
        Dev(major << 20 | minor & ((1 << 20) - 1))
    }
}

impl fmt::Display for Dev {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.major(), self.minor())
    }
}

/// Identity of a file, a directory, or a block device used as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Device of the file system. For a block device opened as a file, and for metadata blocks, it
    /// is the block device itself, and `inode` is 0.
    pub dev: Dev,
    /// Inode number; 0 for a block device.
    pub inode: u64,
    /// Inode generation, which differs between files that had the same number. 0 on file systems
    /// without generations.
    pub generation: u32,
}

impl FileId {
    /// Whether it is a block device. Its pages are file system metadata unless a program opened the
    /// device.
    pub fn is_block_device(&self) -> bool {
        self.inode == 0
    }
}

/// A system call or a page fault on a mapped file, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which system call or fault it is.
    pub kind: CallKind,
    /// File descriptor; None for calls without one.
    pub fd: Option<i32>,
    /// The file, if it is known at the call's begin or end. Of two files (copy_file_range,
    /// sendfile, splice) it is the one that is written.
    pub file: Option<FileId>,
    /// The file that is read, for calls on two files.
    pub from: Option<FileId>,
    /// Offset in the file. At the exit of a write it is where the data went, with O_APPEND too. For
    /// truncate it is the new size.
    pub offset_bytes: Option<u64>,
    /// Bytes asked for; None for vectored calls at their begin.
    pub size_bytes: Option<u64>,
    /// How the file was opened, and flags of the call itself.
    pub flags: CallFlags,
}

/// Set of flags of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFlags(pub u16);

impl CallFlags {
    /// O_DIRECT: the I/O bypasses the page cache.
    pub const DIRECT: CallFlags = CallFlags(1);
    /// O_DSYNC, O_SYNC, RWF_DSYNC or RWF_SYNC: the write waits for the device.
    pub const SYNC: CallFlags = CallFlags(2);
    /// O_APPEND: writes go to the end of the file.
    pub const APPEND: CallFlags = CallFlags(4);
    /// The other end of a copy is not a file on a disk.
    pub const HALF: CallFlags = CallFlags(8);

    /// Whether all of `flags` are set.
    pub fn has(self, flags: CallFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

numbered! {
    /// Kinds of calls, by the names that strace prints.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[allow(missing_docs, reason = "each is the system call of that name")]
    pub enum CallKind {
        Read = 1 "read",
        Pread64 = 2 "pread64",
        Readv = 3 "readv",
        Preadv = 4 "preadv",
        Preadv2 = 5 "preadv2",
        Write = 6 "write",
        Pwrite64 = 7 "pwrite64",
        Writev = 8 "writev",
        Pwritev = 9 "pwritev",
        Pwritev2 = 10 "pwritev2",
        Fsync = 11 "fsync",
        Fdatasync = 12 "fdatasync",
        SyncFileRange = 13 "sync_file_range",
        Sync = 14 "sync",
        Syncfs = 15 "syncfs",
        Msync = 16 "msync",
        Truncate = 17 "truncate",
        Ftruncate = 18 "ftruncate",
        Fallocate = 19 "fallocate",
        Open = 20 "open",
        Openat = 21 "openat",
        Openat2 = 22 "openat2",
        Creat = 23 "creat",
        Rename = 24 "rename",
        Renameat = 25 "renameat",
        Renameat2 = 26 "renameat2",
        Unlink = 27 "unlink",
        Unlinkat = 28 "unlinkat",
        Rmdir = 29 "rmdir",
        Mkdir = 30 "mkdir",
        Mkdirat = 31 "mkdirat",
        Sendfile = 32 "sendfile",
        CopyFileRange = 33 "copy_file_range",
        Splice = 34 "splice",
        Getdents64 = 35 "getdents64",
        IoUringEnter = 36 "io_uring_enter",
        IoSubmit = 37 "io_submit",
        IoGetevents = 38 "io_getevents",
        Fadvise64 = 39 "fadvise64",
        Readahead = 40 "readahead",
        Execve = 41 "execve",
        /// A page of a mapped file was not mapped (`filemap_fault`).
        ReadFault = 64 "read-fault",
        /// A page of a shared mapped file became writable (`page_mkwrite`).
        WriteFault = 65 "write-fault",
    }
}

/// A call that returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallExit {
    /// The call, with all arguments that become known.
    pub call: Call,
    /// Begin of the call, in nanoseconds of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// Return value: bytes, or a negative error number. For a fault, the kernel's `vm_fault_t`.
    pub result: i64,
    /// The recording ended before the call did; `result` means nothing.
    pub unfinished: bool,
}

/// A request that a program gave to io_uring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSubmit {
    /// Address of the kernel's `io_kiocb`, which is used again after completion.
    pub request: u64,
    /// Operation, an `IORING_OP_…` number.
    pub opcode: u8,
    /// `user_data` of the submission queue entry.
    pub user_data: u64,
    /// The file, if it is on a disk.
    pub file: Option<FileId>,
    /// Offset in the file; None for the file's own position.
    pub offset_bytes: Option<u64>,
    /// Bytes asked for; None for vectored operations.
    pub size_bytes: Option<u64>,
    /// How the file was opened.
    pub flags: CallFlags,
}

/// The result of a request of io_uring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingComplete {
    /// Address of the request, as in [`RingSubmit::request`].
    pub request: u64,
    /// `user_data` of the submission queue entry.
    pub user_data: u64,
    /// Bytes, or a negative error number.
    pub result: i32,
}

/// Adjoining pages of one file to which one thread did the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The pages' file.
    pub file: FileId,
    /// Number of the first page in the file.
    pub index: u64,
    /// Number of pages.
    pub pages: u32,
    /// When it was done to the first page. It was done to the last one at [`Event::time_ns`] or up
    /// to a millisecond before.
    pub begin_ns: u64,
}

/// Pages that were removed from a file's page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// The pages' file.
    pub file: FileId,
    /// First byte that is thrown away.
    pub from_bytes: u64,
    /// Last byte that is thrown away; `u64::MAX` for all to the end.
    pub to_bytes: u64,
    /// The file was removed and not truncated: it has no link any more.
    pub removed: bool,
}

/// Writeback of one file's pages by one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writeback {
    /// The pages' file.
    pub file: FileId,
    /// Begin of the writeback, in nanoseconds of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// Number of pages that were asked for and written.
    pub pages: u64,
    /// The caller waits for all of it (WB_SYNC_ALL).
    pub sync: bool,
}

/// REQ_… flags of the kernel with numbers of our own, since the kernel's change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IoFlags(pub u16);

impl IoFlags {
    /// A task waits for it (REQ_SYNC).
    pub const SYNC: IoFlags = IoFlags(1);
    /// It is file system metadata (REQ_META).
    pub const META: IoFlags = IoFlags(2);
    /// The scheduler should boost it (REQ_PRIO).
    pub const PRIO: IoFlags = IoFlags(4);
    /// The data must be on stable media before completion (REQ_FUA).
    pub const FUA: IoFlags = IoFlags(8);
    /// The device flushes its cache first (REQ_PREFLUSH).
    pub const PREFLUSH: IoFlags = IoFlags(16);
    /// It is readahead and may fail (REQ_RAHEAD).
    pub const READAHEAD: IoFlags = IoFlags(32);
    /// It is writeback in the background (REQ_BACKGROUND).
    pub const BACKGROUND: IoFlags = IoFlags(64);
    /// It is swap (REQ_SWAP).
    pub const SWAP: IoFlags = IoFlags(128);
    /// More I/O follows at once (REQ_IDLE).
    pub const IDLE: IoFlags = IoFlags(256);

    /// Whether all of `flags` are set.
    pub fn has(self, flags: IoFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

numbered! {
    /// Operation of a bio or request, from the kernel's REQ_OP_….
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[allow(missing_docs, reason = "each is the kernel's REQ_OP_ of that name")]
    pub enum Op {
        Read = 0 "read",
        Write = 1 "write",
        Flush = 2 "flush",
        Discard = 3 "discard",
        SecureErase = 4 "secure-erase",
        WriteZeroes = 5 "write-zeroes",
        /// Zone operations, passthrough and the driver's own.
        #[default]
        Other = 6 "other",
    }
}

/// Operation and place of a bio or request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// The disk, also if the I/O came through a partition.
    pub dev: Dev,
    /// What the bio or request does.
    pub op: Op,
    /// The kernel's flags.
    pub flags: IoFlags,
    /// First sector of 512 bytes, from the begin of the disk.
    pub sector: u64,
    /// Number of bytes; 0 for a flush without data.
    pub bytes: u32,
}

/// A bio that came to the block layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Address of the bio.
    pub bio: u64,
    /// Operation and place of the bio.
    pub io: Io,
}

/// A bio that was merged into a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Address of the bio.
    pub bio: u64,
    /// Operation and place of the bio.
    pub io: Io,
    /// The bio was added before the request's begin (front merge) and not after its end.
    pub front: bool,
}

/// A bio that was cut in two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Address of the new bio, which is the front part.
    pub bio: u64,
    /// Address of the bio that was cut, which keeps the rest.
    pub parent: u64,
    /// Operation and place of the front part.
    pub io: Io,
    /// First sector of the rest.
    pub rest_sector: u64,
}

/// A request when it is inserted, issued, merged or requeued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Address of the request.
    pub request: u64,
    /// Operation and place of the request at this moment.
    pub io: Io,
    /// I/O priority of the request (`IOPRIO_PRIO_VALUE`).
    pub ioprio: u16,
}

/// One run of pages in a request that was just issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of the request.
    pub request: u64,
    /// Address of the bio with the pages; after a split, of the part.
    pub bio: u64,
    /// Disk of the request.
    pub dev: Dev,
    /// First sector of the run on the disk.
    pub sector: u64,
    /// Length of the run in bytes.
    pub bytes: u32,
    /// File and first page number of the run. None for direct I/O, discards, and buffers of the
    /// file system's own (journal copies of changed blocks).
    pub pages: Option<(FileId, u64)>,
    /// Where in its first page the run begins, in bytes: file systems have blocks that are smaller
    /// than pages.
    pub at_bytes: u32,
}

/// A request, or its first part, that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// Address of the request.
    pub request: u64,
    /// First sector of the part that is done.
    pub sector: u64,
    /// Bytes that are done with this event.
    pub bytes: u32,
    /// Bytes of the request that are not done yet.
    pub remaining_bytes: u32,
    /// The kernel's `blk_status_t`; 0 for success.
    pub status: u8,
}

/// Identity of a journal's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transaction {
    /// Device of the file system.
    pub dev: Dev,
    /// Number of the transaction (`tid_t`).
    pub tid: u32,
}

numbered! {
    /// Phases of a commit (`jbd2_journal_commit_transaction`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum CommitPhase {
        /// The commit begins.
        Start = 0 "start",
        /// No handle may join the transaction; open handles have to end.
        Locking = 1 "locking",
        /// Data that must precede the journal are written.
        Flushing = 2 "flushing",
        /// The journal's blocks are written.
        Logging = 3 "logging",
        /// The commit is on the device.
        End = 4 "end",
    }
}

/// A commit that enters a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The transaction that is committed.
    pub transaction: Transaction,
    /// The phase that begins.
    pub phase: CommitPhase,
}

/// An interval in which a thread was blocked in the storage stack.
///
/// [`Event::time_ns`] is when it ran again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// When the thread left the CPU.
    pub begin_ns: u64,
    /// When the thread was woken; from then on it waited for a CPU only.
    pub woken_ns: u64,
    /// The thread that woke it. If an interrupt did, it is the thread that was interrupted.
    pub waker: u32,
    /// What the thread waited for.
    pub reason: Reason,
    /// Signals could not wake the thread.
    pub uninterruptible: bool,
    /// The kernel counted the thread as waiting for I/O (`in_iowait`).
    pub iowait: bool,
    /// The thread was in direct reclaim when it blocked.
    pub in_reclaim: bool,
    /// The thread had to free space in the journal (a checkpoint), whatever `reason` says.
    pub for_journal_space: bool,
    /// The recorded call that the thread was in; None outside of recorded calls.
    pub call: Option<CallKind>,
}

/// What a blocked thread waited for, from the kernel function that it blocked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The end of a page's writeback (`folio_wait_writeback`).
    Writeback {
        /// The page's file.
        file: FileId,
        /// Number of the page in the file.
        index: u64,
    },
    /// A page's lock, which a task holds that reads or changes the page (`__folio_lock`,
    /// `folio_wait_bit` with PG_locked). Buffered reads take it in a function that cannot be
    /// traced. The page of a longer read is then the first one added, or else the first of its
    /// range.
    PageLock {
        /// The page's file.
        file: FileId,
        /// Number of the page in the file.
        index: u64,
    },
    /// The lock of a buffer, which is held while the buffer is read or written (`__lock_buffer`,
    /// `__wait_on_buffer`).
    Buffer {
        /// Device of the file system.
        dev: Dev,
        /// Block number on that device (not the disk), in file system blocks.
        block: u64,
        /// Size of the block in bytes.
        block_bytes: u32,
    },
    /// A buffer that the journal is writing (`do_get_write_access`).
    JournalBuffer {
        /// Device of the file system.
        dev: Dev,
    },
    /// The end of a commit (`jbd2_log_wait_commit`).
    JournalCommit(Transaction),
    /// A transaction that no handle may join just now (`start_this_handle`).
    JournalHandle {
        /// Device of the file system.
        dev: Dev,
    },
    /// Space in the journal, and so a checkpoint (`__jbd2_log_wait_for_space`).
    JournalSpace {
        /// Device of the file system.
        dev: Dev,
    },
    /// A tag: all requests of the queue are in use (`blk_mq_get_tag`).
    Tag,
    /// Writeback throttling or another policy of the queue (`rq_qos_wait`).
    QueueThrottle,
    /// The brake on tasks that dirty pages (`balance_dirty_pages`).
    DirtyThrottle,
    /// A bio that the thread itself submitted: a discard, a flush or a metadata read
    /// (`submit_bio_wait`).
    OwnBio {
        /// Operation of the bio.
        op: Op,
    },
    /// Its own direct I/O, or the results of its own asynchronous I/O. [`Blocked::call`] is
    /// io_uring_enter or io_getevents for the latter.
    DirectIo,
    /// A sleeping lock (mutex, rwsem) that another thread holds.
    Lock {
        /// Address of the lock.
        address: u64,
        /// It is the inode lock of the file that the call is about.
        of_file: bool,
    },
    /// The whole writeback of a file by another task (`inode_wait_for_writeback`,
    /// `wb_wait_for_completion`).
    FlusherDone,
    /// Memory: reclaim waits for writeback or for other tasks (`reclaim_throttle`).
    ReclaimThrottle,
    /// No other reason; the stack tells the place.
    Other {
        /// Id that [`What::Stack`] tells, at the latest at the end of the recording. None if the
        /// stack could not be read.
        stack: Option<u32>,
    },
}

/// Identity and names of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Thread id; [`Event::thread`] may be another thread.
    pub thread: u32,
    /// Id of its process (`tgid`).
    pub process: u32,
    /// Id of the process's parent.
    pub parent: u32,
    /// Start of the thread, in nanoseconds of CLOCK_BOOTTIME.
    pub start_ns: u64,
    /// Id of its cgroup in the v2 hierarchy.
    pub cgroup: u64,
    /// Name of the thread (`comm`).
    pub name: String,
    /// Name of the process's main thread.
    pub process_name: String,
    /// It is a kernel thread.
    pub kernel: bool,
}

/// The path of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The file with this path.
    pub file: FileId,
    /// Path from the root of its file system, with `/` at the beginning. Bytes that are not UTF-8
    /// are replaced. It is one of the file's links. Empty for an inode without a dentry.
    pub path: String,
    /// The path was too deep to be read in full; it begins with `…/`.
    pub cut: bool,
    /// Why the event was made.
    pub why: NameReason,
    /// Type and permissions of the file (`st_mode`).
    pub mode: u16,
}

numbered! {
    /// Reasons for a [`What::Name`] event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NameReason {
        /// First event of the file.
        Seen = 0 "seen",
        /// First event of the file, which had no link any more.
        SeenRemoved = 1 "seen removed",
        /// The file was renamed to this path.
        Renamed = 2 "renamed",
        /// This link of the file was just removed.
        Removed = 3 "removed",
    }
}

/// A number of lost events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Where the events were lost.
    pub kind: LostKind,
    /// Number of lost events.
    pub count: u64,
}

numbered! {
    /// Places where events are lost.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum LostKind {
        /// Calls, in a full buffer.
        Calls = 0 "calls",
        /// Page cache events, in a full buffer.
        Pages = 1 "page cache",
        /// Block layer events, in a full buffer.
        Block = 2 "block layer",
        /// Segments of requests, in a full buffer.
        Segments = 3 "contents of requests",
        /// Journal events, in a full buffer.
        Journal = 4 "journal",
        /// Blocked intervals, in a full buffer.
        Blocked = 5 "blocked intervals",
        /// Threads and names, in a full buffer.
        Names = 6 "names",
        /// A program did not run because it was running already on that CPU.
        Missed = 7 "programs not run",
        /// More threads existed than the programs have state for.
        Threads = 8 "threads beyond the limit",
        /// A request had more segments than a program can walk.
        LongRequests = 9 "ends of long requests",
    }
}
