//! Definition of the tables of a linked recording, once for all formats. SQLite, Parquet and CSV
//! hold the same tables, and the report queries them.
//!
//! Times are nanoseconds of CLOCK_MONOTONIC; add `realtime_offset_ns` of [`Property`] for
//! nanoseconds since 1970. Identities (`…_id`) are numbers within this recording, from 1 on; device
//! numbers are the kernel's.

use crate::event::Op;
use crate::wait::Class;
use rusqlite::types::{ToSqlOutput, Value};

/// Types of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signed whole number of 64 bits.
    Integer,
    /// A truth value: 0 or 1 in SQLite and CSV.
    Boolean,
    /// A number of 64 bits with a binary point.
    Real,
    /// Text in UTF-8.
    Text,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name of the column, with the unit at its end.
    pub name: &'static str,
    /// Type of its cells.
    pub kind: Kind,
    /// Whether a cell may be NULL.
    pub nullable: bool,
    /// Lines of its documentation, with their leading space.
    pub doc: &'static [&'static str],
}

/// What a table's rows are needed for while a recording goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// All of the recording: later rows refer to them.
    All,
    /// An interval, of which its waits are told.
    Waits,
    /// An interval, of which its I/O is told as well.
    Io,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// What its rows are needed for, and how long, while a recording goes on.
    pub of: Of,
    /// Lines that document what a row is, with their leading space.
    pub doc: &'static [&'static str],
    /// Columns from left to right.
    pub columns: &'static [Column],
    /// Names of columns that have an index of their own in SQLite.
    pub indices: &'static [&'static str],
}

/// A row of one of the tables.
pub trait Row {
    /// The table that the row belongs to.
    const TABLE: &'static Table;
    /// The cells of the row, from left to right.
    fn cells(&self) -> Vec<ToSqlOutput<'_>>;
}

/// A Rust type that a column can have.
trait Cell {
    const KIND: Kind;
    const NULLABLE: bool = false;
    fn cell(&self) -> ToSqlOutput<'_>;
}

impl Cell for u64 {
    const KIND: Kind = Kind::Integer;
    fn cell(&self) -> ToSqlOutput<'_> {
        // SQLite's integers are signed; only addresses and the like exceed them.
        ToSqlOutput::Owned(Value::Integer(*self as i64))
    }
}

impl Cell for i64 {
    const KIND: Kind = Kind::Integer;
    fn cell(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Owned(Value::Integer(*self))
    }
}

impl Cell for bool {
    const KIND: Kind = Kind::Boolean;
    fn cell(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Owned(Value::Integer((*self).into()))
    }
}

impl Cell for String {
    const KIND: Kind = Kind::Text;
    fn cell(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::from(self.as_str())
    }
}

impl Cell for &'static str {
    const KIND: Kind = Kind::Text;
    fn cell(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::from(*self)
    }
}

macro_rules! cells_of_names {
    ($($named:ty),+) => {
        $(impl Cell for $named {
            const KIND: Kind = Kind::Text;
            fn cell(&self) -> ToSqlOutput<'_> {
                ToSqlOutput::from(self.name())
            }
        })+
    };
}
cells_of_names!(Op, Class);

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = true;
    fn cell(&self) -> ToSqlOutput<'_> {
        match self {
            Some(value) => value.cell(),
            None => ToSqlOutput::Owned(Value::Null),
        }
    }
}

macro_rules! tables {
    ($(
        $(#[doc = $doc:literal])+
        $row:ident $name:literal $of:ident [$($index:literal),*] {
            $( $(#[doc = $column_doc:literal])+ $column:ident: $type:ty, )+
        }
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Debug, Default, PartialEq, Eq)]
            pub struct $row {
                $( $(#[doc = $column_doc])+ pub $column: $type, )+
            }

            impl Row for $row {
                const TABLE: &'static Table = &Table {
                    name: $name,
                    of: Of::$of,
                    doc: &[$($doc),+],
                    columns: &[$(Column {
                        name: stringify!($column),
                        kind: <$type as Cell>::KIND,
                        nullable: <$type as Cell>::NULLABLE,
                        doc: &[$($column_doc),+],
                    }),+],
                    indices: &[$($index),*],
                };

                fn cells(&self) -> Vec<ToSqlOutput<'_>> {
                    vec![$(self.$column.cell()),+]
                }
            }
        )+

        /// All tables, in the order in which they are best read.
        pub const TABLES: &[&Table] = &[$(<$row as Row>::TABLE),+];
    };
}

tables! {
    /// What holds for the whole recording: a name and a value a row. Among them
    /// `kernel`, `begin_ns`, `end_ns`, `realtime_offset_ns`, `ending`
    /// (`complete`, `cut short` or `damaged`), `target`, and a row
    /// `missing` for each kind of event that this kernel cannot report.
    Property "recording" All [] {
        /// Name of the property.
        name: String,
        /// Value of the property.
        value: String,
    }

    /// A disk, a partition, or a file system's device.
    Device "devices" All [] {
        /// The kernel's number: the major one in the upper 12 bits, the minor one in the lower 20.
        device_id: u64,
        /// `major:minor`.
        number: String,
        /// Name below /dev; empty if the device was not there when the recording began.
        name: String,
        /// The disk that a partition is on.
        disk_id: Option<u64>,
        /// First sector of a partition on its disk.
        start_sector: Option<u64>,
        /// Its size, in sectors of 512 bytes.
        sectors: Option<u64>,
        /// The disk's I/O scheduler.
        scheduler: Option<String>,
        /// Requests that the disk's queue may have at once.
        nr_requests: Option<u64>,
        /// Where its file system is mounted.
        mounted_at: Option<String>,
        /// The file system's type.
        file_system: Option<String>,
    }

    /// A cgroup of the v2 hierarchy.
    Cgroup "cgroups" All [] {
        /// The kernel's number.
        cgroup_id: u64,
        /// Its path below the root.
        path: String,
    }

    /// A thread. One that changed its name or cgroup has its last ones.
    Task "tasks" All ["process"] {
        /// Identity of the thread. The kernel uses thread numbers again; these are unique.
        task_id: u64,
        /// The kernel's thread number.
        thread: u64,
        /// Number of its process.
        process: u64,
        /// Number of the parent process.
        parent: u64,
        /// The thread's name.
        name: String,
        /// The process's name.
        process_name: String,
        /// Its cgroup.
        cgroup_id: Option<u64>,
        /// A thread of the kernel.
        kernel: bool,
        /// A task whose waiting the report is about: the recording's target, or `--fg`.
        foreground: bool,
    }

    /// A file, a directory, or a block device.
    File "files" All ["path"] {
        /// Identity of the file. The file system uses inode numbers again; these are unique.
        file_id: u64,
        /// The file system's device.
        device_id: u64,
        /// Its number there; 0 for the block device itself, whose pages are the file system's metadata.
        inode: u64,
        /// Tells apart files that had the same inode number.
        generation: u64,
        /// Its path in the machine's tree if the file system was mounted when the recording began, else its path in the file system; empty if none is known.
        path: String,
        /// `file`, `directory`, `symlink`, `block device`, `other`, or empty if it is not known.
        kind: &'static str,
        /// The file was removed before the recording ended.
        removed: bool,
    }

    /// A name that a file had.
    FileName "file_names" Io ["file_id"] {
        /// The file.
        file_id: u64,
        /// When the event with this name came.
        time_ns: u64,
        /// The path.
        path: String,
        /// `seen`, `seen removed`, `renamed` (to this) or `removed`.
        why: &'static str,
    }

    /// A call: a system call, a page fault on a mapped file, a request of
    /// io_uring. Kernel threads and what programs do outside of the recorded
    /// calls have rows of kind `kernel` and `unrecorded`, so that whatever was
    /// submitted has a row here.
    Syscall "syscalls" Waits ["task_id", "file_id", "begin_ns"] {
        /// In the order of their first event.
        syscall_id: u64,
        /// The calling task.
        task_id: u64,
        /// Name as strace prints it; `read-fault`, `write-fault`, `io_uring:N` with the operation's number, `kernel`, `unrecorded`.
        kind: String,
        /// The file descriptor.
        fd: Option<i64>,
        /// The file; of a call with two files the one that is written.
        file_id: Option<u64>,
        /// Of a call with two files the one that is read.
        from_file_id: Option<u64>,
        /// Offset in the file.
        offset_bytes: Option<u64>,
        /// Bytes that the call asked for.
        size_bytes: Option<u64>,
        /// Return value; an error is negative.
        result: i64,
        /// Start of the call.
        begin_ns: u64,
        /// End of the call.
        end_ns: u64,
        /// The recording ended before the call did.
        unfinished: bool,
        /// O_DIRECT.
        direct: bool,
        /// O_SYNC or O_DSYNC.
        sync: bool,
        /// Pages of a read that were in the page cache: no call of this recording fetched them, or another call used them before.
        cached_pages: u64,
        /// Pages of a read that the call had to fetch.
        missed_pages: u64,
        /// Pages of a read that another call had fetched and none had used.
        readahead_pages: u64,
        /// Page versions that the call changed. A page has a new version each time it becomes dirty again.
        dirtied_pages: u64,
        /// Time blocked in the storage stack. The columns below divide it by layer.
        blocked_ns: u64,
        /// Blocked in the file system: journal, metadata, locks.
        file_system_ns: u64,
        /// Blocked in the page cache: dirty throttling, reclaim, pages on their way to the block layer.
        page_cache_ns: u64,
        /// Blocked in the block layer: for a tag, by its throttling, and while the awaited request was queued.
        block_ns: u64,
        /// Between a request's completion and the wake-up: completion handling.
        driver_ns: u64,
        /// While the device had the awaited request, from issue to completion.
        device_ns: u64,
        /// Awake and waiting for a CPU.
        runqueue_ns: u64,
    }

    /// A request of the block layer.
    Request "requests" Io ["issued_ns", "task_id", "sector"] {
        /// In the order of their issue.
        request_id: u64,
        /// The disk.
        device_id: u64,
        /// `read`, `write`, `flush`, `discard`, `secure-erase`, `write-zeroes`, `other`.
        op: Op,
        /// `data`, `metadata`, `journal`, `direct`, `swap`, `flush`, `discard` or `unknown`.
        content: &'static str,
        /// REQ_SYNC: a task waits for it.
        sync: bool,
        /// REQ_META.
        meta: bool,
        /// REQ_FUA.
        fua: bool,
        /// REQ_PREFLUSH.
        preflush: bool,
        /// REQ_RAHEAD.
        readahead: bool,
        /// REQ_BACKGROUND.
        background: bool,
        /// First sector, of 512 bytes, from the start of the disk.
        sector: u64,
        /// Bytes; 0 for a flush.
        bytes: u64,
        /// The task that submitted its first bio.
        task_id: Option<u64>,
        /// The commit it is part of.
        commit_id: Option<u64>,
        /// When its first bio came to the block layer.
        queued_ns: Option<u64>,
        /// When it came to the I/O scheduler.
        inserted_ns: Option<u64>,
        /// When the driver got it; the last time if it got it several times.
        issued_ns: u64,
        /// When it was completed; NULL if the recording ended before.
        completed_ns: Option<u64>,
        /// 0 or the kernel's `blk_status_t`.
        status: u64,
        /// Number of its bios.
        bios: u64,
        /// Times that the driver gave it back.
        requeues: u64,
        /// Its I/O priority (`IOPRIO_PRIO_VALUE`).
        ioprio: u64,
    }

    /// A bio, or the part of one that a request carried.
    Bio "bios" Io ["request_id", "syscall_id"] {
        /// In the order in which requests were issued.
        bio_id: u64,
        /// The request that it was part of.
        request_id: u64,
        /// The task that submitted it.
        task_id: Option<u64>,
        /// The call that submitted it.
        syscall_id: Option<u64>,
        /// The disk.
        device_id: u64,
        /// Its first sector.
        sector: u64,
        /// Its size.
        bytes: u64,
        /// When it came to the block layer.
        queued_ns: Option<u64>,
        /// It joined a request that was queued already.
        merged: bool,
        /// It was cut from a larger one.
        split: bool,
    }

    /// What is in a request: a run of pages of one file, or one bio without
    /// pages. A request that the driver gave back has the rows of its last time.
    Segment "segments" Io ["request_id", "file_id"] {
        /// The request.
        request_id: u64,
        /// The bio, as in `bios`.
        bio_id: u64,
        /// The file.
        file_id: Option<u64>,
        /// The first page.
        page_index: Option<u64>,
        /// Number of pages.
        pages: u64,
        /// First sector on the disk.
        sector: u64,
        /// Number of bytes.
        bytes: u64,
    }

    /// What ties a call to a request, or says why there is none. There is a row
    /// for each run of pages that one call dirtied, or that it needed and had
    /// to be read. It says what became of it. Each page version that a call had a part in is in
    /// exactly one row of kind `write`, `overwritten`, `truncated`, `removed`,
    /// `pending` or `unlinked`, counted in `pages`.
    Link "links" Io ["syscall_id", "request_id", "file_id"] {
        /// In the order in which it was known.
        link_id: u64,
        /// The call.
        syscall_id: u64,
        /// `write`: dirtied by the call, written by the request. `overwritten`: all of the call's bytes were overwritten before they were written. `truncated`, `removed`: thrown away with the file's end, or with the file. `pending`: not written when the recording ended. `unlinked`: taken for writeback, but no request was found; of metadata, the journal took the block back before it was written. `read`: fetched for the call. `readahead`: fetched by the call and not for it. `readahead-hit`: fetched by an earlier call, used by this one. `shared-read`: fetched by another call at the same time. `direct-read`, `direct-write`, `discard`, `flush`, `other`: without pages. `journal`: written into the journal. `metadata-read`: blocks of the file system's own.
        kind: &'static str,
        /// The request.
        request_id: Option<u64>,
        /// The file.
        file_id: Option<u64>,
        /// The first page.
        page_index: Option<u64>,
        /// Pages, 0 for what has none.
        pages: u64,
        /// Of the call's own, among them.
        bytes: u64,
        /// When they were dirtied, or asked for.
        begin_ns: u64,
        /// When it was decided: the issue, the overwrite, the truncation.
        end_ns: u64,
    }

    /// A thread wrote back pages of one file.
    Writeback "writebacks" Io ["file_id"] {
        /// The task that wrote them back.
        task_id: u64,
        /// The file.
        file_id: u64,
        /// Start of the writeback.
        begin_ns: u64,
        /// End of the writeback.
        end_ns: u64,
        /// Pages written.
        pages: u64,
        /// The caller waits for all of it (WB_SYNC_ALL).
        sync: bool,
    }

    /// A commit of a journal (jbd2).
    Commit "commits" Io [] {
        /// In the order in which commits began.
        commit_id: u64,
        /// The file system's device.
        device_id: u64,
        /// The transaction's number.
        tid: u64,
        /// The journal's thread.
        task_id: Option<u64>,
        /// Start of the commit.
        begin_ns: Option<u64>,
        /// When the transaction was locked: no handle may join after that.
        locking_ns: Option<u64>,
        /// When the data were to be written that have to be on the device first.
        flushing_ns: Option<u64>,
        /// When the journal was to be written.
        logging_ns: Option<u64>,
        /// When it was on the device.
        end_ns: Option<u64>,
        /// Requests that its thread submitted.
        requests: u64,
        /// Their bytes.
        bytes: u64,
    }

    /// Which calls a commit has to do with.
    CommitCall "commit_calls" Io ["commit_id", "syscall_id"] {
        /// The commit.
        commit_id: u64,
        /// The call.
        syscall_id: u64,
        /// `changed`: metadata that the call changed are in it. `waited`: the call waited for its end.
        role: &'static str,
        /// When the call changed metadata, or when its wait ended.
        time_ns: u64,
    }

    /// A thread was blocked in the storage stack.
    Wait "waits" Waits ["task_id", "syscall_id", "class"] {
        /// In the order of their ends.
        wait_id: u64,
        /// The waiter.
        task_id: u64,
        /// The call in which it waited.
        syscall_id: Option<u64>,
        /// `D_meta`, `D_data`, `D_sync`, `D_discard`, `I_jhandle`, `I_jcommit`, `tag`, `wbt`, `dirty throttling`, `reclaim`, `service`, `lock`, `frozen` or `other`; see the definitions.
        class: Class,
        /// Class of what the task at the other end was itself waiting for, most of the time.
        cause: Option<Class>,
        /// The place in the kernel.
        reason: &'static str,
        /// When it left the CPU.
        begin_ns: u64,
        /// When it was woken.
        woken_ns: u64,
        /// When it ran again.
        end_ns: u64,
        /// The file whose page it waited for, or that the call was about.
        file_id: Option<u64>,
        /// That page.
        page_index: Option<u64>,
        /// The request it waited for.
        request_id: Option<u64>,
        /// The commit.
        commit_id: Option<u64>,
        /// The task at the other end: it dirtied what is being written, holds the lock, or had the device while the request was queued.
        other_task_id: Option<u64>,
        /// Of the wait, before the awaited request came to the block layer.
        before_ns: u64,
        /// Of the wait, while the request was queued.
        block_ns: u64,
        /// Of the wait, while the device had it.
        device_ns: u64,
        /// Of the wait, from completion to wake-up.
        driver_ns: u64,
        /// The stack of the waiter, if its class does not say where it waited.
        stack_id: Option<u64>,
        /// The kernel counted the wait as I/O wait.
        iowait: bool,
    }

    /// A place in the kernel where a task was blocked.
    Stack "stacks" All [] {
        /// Its number.
        stack_id: u64,
        /// The functions, from the innermost out, with ` < ` between them.
        functions: String,
    }

    /// Events that the recorder lost: what was linked after may miss something.
    Lost "lost" Waits [] {
        /// When the recorder reported the loss.
        time_ns: u64,
        /// Where the events were lost.
        kind: &'static str,
        /// Number of events.
        events: u64,
    }

    /// What could not be linked, counted by kind.
    Unlinked "unlinked" All [] {
        /// `requests without bio`, `requests with untold bytes` (whose segments are not all of them), `bios without task`, `written pages without dirtier` (dirty since before the recording, or by something that was not recorded), `written metadata pages without dirtier`, `completions without request` (issued before the recording), `waits without request` (on a page or a block in no known request).
        kind: &'static str,
        /// Number that could not be linked, in pages if the kind says so.
        missing: u64,
        /// Number of all of that kind, linked or not.
        total: u64,
    }
}

/// The table with this name; None if there is none.
pub fn named(name: &str) -> Option<&'static Table> {
    TABLES.iter().copied().find(|table| table.name == name)
}
