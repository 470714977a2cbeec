//! Calls in progress, and the assignment of events to them.

use super::Linker;
use crate::event::{Call as Asked, CallExit, CallFlags, CallKind, Event, FileId};
use crate::store::Error;
use crate::tables;
use std::collections::HashMap;
use std::ops::Range;

/// A call, from its first event until nothing refers to it any more.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// `task_id` of the task that calls.
    pub task: u64,
    /// Begin of the call; until it is known, the time of its first event.
    pub begin_ns: u64,
    /// Time of its latest event.
    pub last_ns: u64,
    /// Kind of the call; None until it is known.
    pub kind: Option<CallKind>,
    /// `IORING_OP_…` number if it is an operation of io_uring.
    pub ring: Option<u8>,
    /// The file and its `file_id`; None until it is known.
    pub file: Option<(FileId, u64)>,
    /// Bytes of the file that it is about, as far as is known.
    pub range: Option<Range<u64>>,
    /// Its begin was told and not guessed from its first event.
    pub entered: bool,
    /// The call has returned.
    pub over: bool,
    /// It stands for a kernel thread's own work and is not a call.
    pub kernel: bool,
    /// Number of its bios in flight.
    pub bios: u32,
    /// Its reads, until its range is known.
    pub reads: Vec<tables::Link>,
    /// Time that it was blocked, by layer.
    pub times: Times,
    /// Pages that it read, by where they came from.
    pub pages: PageCounts,
    /// Number of page versions that it has a part in.
    pub dirtied_pages: u64,
    /// `file_id` and bytes of the pages that it made dirty, while it is in progress.
    pub dirtied: Vec<(u64, Range<u64>)>,
    /// Its row, as far as it is known.
    pub row: tables::Syscall,
}

impl Call {
    /// Its row, if it ends at `end_ns`.
    pub fn row_until(&self, id: u64, end_ns: u64) -> tables::Syscall {
        let kind = match (self.kind, self.ring) {
            (Some(_), _) => self.row.kind.clone(),
            (None, Some(opcode)) => format!("io_uring:{opcode}"),
            (None, None) if self.kernel => "kernel".to_owned(),
            (None, None) => "unrecorded".to_owned(),
        };
        let (times, pages) = (self.times, self.pages);
        tables::Syscall {
            syscall_id: id,
            task_id: self.task,
            kind,
            begin_ns: self.begin_ns,
            end_ns: end_ns.max(self.begin_ns),
            cached_pages: pages.cached,
            missed_pages: pages.missed,
            readahead_pages: pages.readahead,
            dirtied_pages: self.dirtied_pages,
            blocked_ns: times.blocked_ns,
            file_system_ns: times.file_system_ns,
            page_cache_ns: times.page_cache_ns,
            block_ns: times.block_ns,
            driver_ns: times.driver_ns,
            device_ns: times.device_ns,
            runqueue_ns: times.runqueue_ns,
            ..self.row.clone()
        }
    }
}

/// Time that a call was blocked, by layer; see the columns of [`tables::Syscall`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// All of the time.
    pub blocked_ns: u64,
    /// Blocked on the journal, metadata and locks.
    pub file_system_ns: u64,
    /// Blocked by dirty throttling, reclaim, and pages on their way to the block layer.
    pub page_cache_ns: u64,
    /// Blocked for a tag, by throttling, and while the awaited request was queued.
    pub block_ns: u64,
    /// Time from the awaited request's completion to the wake-up.
    pub driver_ns: u64,
    /// Time while the device had the awaited request.
    pub device_ns: u64,
    /// Time awake and waiting for a CPU.
    pub runqueue_ns: u64,
}

/// Pages that a call read, by where they came from.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageCounts {
    /// In the page cache already.
    pub cached: u64,
    /// Fetched by the call itself.
    pub missed: u64,
    /// Fetched by another call, and used for the first time.
    pub readahead: u64,
}

/// All calls that something refers to.
#[derive(Debug, Default)]
pub struct Calls {
    by_id: HashMap<u64, Call>,
    /// `syscall_id` by thread: of its call (false), and of a page fault inside of it (true).
    open: HashMap<(u32, bool), u64>,
    /// `syscall_id` of the row for a kernel thread's own work, by `task_id`.
    kernel: HashMap<u64, u64>,
    next: u64,
}

impl Calls {
    /// The call with this `syscall_id`, while something refers to it.
    pub fn get(&self, call: u64) -> Option<&Call> {
        self.by_id.get(&call)
    }

    /// The call with this `syscall_id`, to change it.
    pub fn get_mut(&mut self, call: u64) -> Option<&mut Call> {
        self.by_id.get_mut(&call)
    }

    /// Adds a call and returns its `syscall_id`.
    pub fn add(&mut self, call: Call) -> u64 {
        self.next += 1;
        self.by_id.insert(self.next, call);
        self.next
    }

    /// The call that a thread is in; None if none is known.
    pub fn of(&self, thread: u32, in_fault: bool) -> Option<u64> {
        self.open.get(&(thread, in_fault)).copied()
    }

    /// Notes that a bio of the call is done.
    pub fn bio_done(&mut self, call: u64) {
        if let Some(it) = self.by_id.get_mut(&call) {
            it.bios = it.bios.saturating_sub(1);
        }
        self.forget_if_over(call);
    }

    /// Calls whose begin was told and that have not returned.
    pub fn under_way(&self) -> impl Iterator<Item = (u64, &Call)> {
        let all = self.by_id.iter().map(|(id, call)| (*id, call));
        all.filter(|(_, call)| call.entered && !call.over)
    }

    fn forget_if_over(&mut self, call: u64) {
        if self
            .by_id
            .get(&call)
            .is_some_and(|it| it.over && it.bios == 0)
        {
            self.by_id.remove(&call);
        }
    }
}

/// Whether the kind of call reads file data into its own memory or the page cache.
pub fn reads(kind: CallKind) -> bool {
    use CallKind::*;
    matches!(
        kind,
        Read | Pread64 | Readv | Preadv | Preadv2 | ReadFault | Sendfile | CopyFileRange | Splice
    )
}

/// Whether the kind of call changes file data page by page.
pub fn writes(kind: CallKind) -> bool {
    use CallKind::*;
    matches!(
        kind,
        Write | Pwrite64 | Writev | Pwritev | Pwritev2 | Sendfile | CopyFileRange | Splice
    )
}

/// Whether the kind of call waits for data to be on the device, or truncates them.
pub fn syncs(kind: CallKind) -> bool {
    use CallKind::*;
    matches!(
        kind,
        Fsync
            | Fdatasync
            | SyncFileRange
            | Sync
            | Syncfs
            | Msync
            | Truncate
            | Ftruncate
            | Fallocate
            | Open
            | Openat
            | Openat2
            | Creat
            | Unlink
            | Unlinkat
            | Rename
            | Renameat
            | Renameat2
            | Fadvise64
    )
}

impl Linker {
    /// The row that the thread's work at this event belongs to; adds one if none is known.
    pub(super) fn call_of(&mut self, event: &Event) -> Result<u64, Error> {
        let (thread, at) = (event.thread, event.time_ns);
        let (task, kernel) = {
            let task = self.tasks.of(thread, &mut self.store)?;
            (task.id, task.kernel)
        };
        let known = match self.calls.of(thread, event.in_fault) {
            None if kernel => self.calls.kernel.get(&task).copied(),
            known => known,
        };
        if let Some(id) = known
            && let Some(call) = self.calls.get_mut(id)
        {
            call.last_ns = at;
            return Ok(id);
        }
        let id = self.calls.add(Call {
            task,
            begin_ns: at,
            last_ns: at,
            kernel,
            ..Call::default()
        });
        match kernel {
            true => self.calls.kernel.insert(task, id),
            false => self.calls.open.insert((thread, event.in_fault), id),
        };
        Ok(id)
    }

    /// Fills in what a call asked for, with the tables' numbers.
    fn asked(&mut self, id: u64, asked: &Asked) -> Result<(), Error> {
        let file = match asked.file {
            Some(file) => Some((file, self.files.id(file, &mut self.store)?)),
            None => None,
        };
        let from = match asked.from {
            Some(from) => Some(self.files.id(from, &mut self.store)?),
            None => None,
        };
        let Some(call) = self.calls.get_mut(id) else {
            return Ok(());
        };
        call.kind = Some(asked.kind);
        call.file = file;
        call.range = match (asked.offset_bytes, asked.size_bytes) {
            (Some(offset), Some(size)) => Some(offset..offset.saturating_add(size)),
            _ => None,
        };
        call.row = tables::Syscall {
            kind: asked.kind.name().to_owned(),
            fd: asked.fd.map(i64::from),
            file_id: file.map(|(_, id)| id),
            from_file_id: from,
            offset_bytes: asked.offset_bytes,
            size_bytes: asked.size_bytes,
            direct: asked.flags.has(CallFlags::DIRECT),
            sync: asked.flags.has(CallFlags::SYNC),
            ..tables::Syscall::default()
        };
        Ok(())
    }

    pub(super) fn call_enter(&mut self, event: &Event, asked: &Asked) -> Result<(), Error> {
        // What the thread did before the call does not belong to it.
        self.end_unrecorded(event.thread, event.in_fault)?;
        let id = self.call_of(event)?;
        self.asked(id, asked)?;
        if let Some(call) = self.calls.get_mut(id) {
            call.entered = true;
            call.begin_ns = event.time_ns;
        }
        Ok(())
    }

    pub(super) fn call_exit(&mut self, event: &Event, exit: &CallExit) -> Result<(), Error> {
        let slot = (event.thread, event.in_fault);
        let guessed = self
            .calls
            .open
            .get(&slot)
            .and_then(|id| self.calls.get(*id));
        if guessed.is_some_and(|call| !call.entered && call.last_ns < exit.begin_ns) {
            self.end_unrecorded(event.thread, event.in_fault)?;
        }
        let id = self.call_of(event)?;
        self.asked(id, &exit.call)?;
        self.calls.open.remove(&slot);
        let done = u64::try_from(exit.result).unwrap_or(0);
        let Some(call) = self.calls.get_mut(id) else {
            return Ok(());
        };
        call.kernel = false;
        call.begin_ns = exit.begin_ns;
        call.row.result = exit.result;
        call.row.unfinished = exit.unfinished;
        call.range = done_range(exit, done);
        let (file, range) = (call.file, call.range.clone());
        let direct = call.row.direct;
        if let (Some((_, file)), Some(range), false) = (file, range.clone(), direct) {
            match exit.call.kind {
                kind if writes(kind) && exit.result > 0 => self.written(id, file, range)?,
                CallKind::WriteFault => self.stored(id, file, range)?,
                _ => {}
            }
        }
        let read = match exit.call.kind {
            // Direct reads use no pages of the page cache.
            _ if direct => None,
            kind if writes(kind) => None,
            kind if reads(kind) && !exit.unfinished => file.zip(range),
            _ => None,
        };
        self.read_ends(id, read.map(|((_, file), range)| (file, range)))?;
        self.end_call(id, event.time_ns)
    }

    /// Ends the row for a thread's work outside of recorded calls.
    pub(super) fn end_unrecorded(&mut self, thread: u32, in_fault: bool) -> Result<(), Error> {
        let Some(id) = self.calls.open.remove(&(thread, in_fault)) else {
            return Ok(());
        };
        let end_ns = self.calls.get(id).map_or(0, |call| call.last_ns);
        self.read_ends(id, None)?;
        self.end_call(id, end_ns)
    }

    pub(super) fn thread_end(&mut self, thread: u32) -> Result<(), Error> {
        self.end_unrecorded(thread, true)?;
        self.end_unrecorded(thread, false)?;
        self.tasks.ended(thread);
        Ok(())
    }

    /// Writes the row of a call that is over.
    pub(super) fn end_call(&mut self, id: u64, end_ns: u64) -> Result<(), Error> {
        let Some(call) = self.calls.get_mut(id) else {
            return Ok(());
        };
        call.over = true;
        call.dirtied = Vec::new();
        let row = call.row_until(id, end_ns);
        self.store.add(&row)?;
        self.calls.forget_if_over(id);
        Ok(())
    }

    /// Writes the rows of all calls that are open at the end of the recording.
    pub(super) fn end_calls(&mut self, end_ns: u64) -> Result<(), Error> {
        let mut open: Vec<u64> = self.calls.by_id.keys().copied().collect();
        open.sort_unstable();
        for id in open {
            let Some(call) = self.calls.get_mut(id).filter(|call| !call.over) else {
                continue;
            };
            call.row.unfinished = call.entered || call.ring.is_some();
            let last_ns = match call.row.unfinished {
                true => end_ns,
                false => call.last_ns,
            };
            self.read_ends(id, None)?;
            self.end_call(id, last_ns)?;
        }
        Ok(())
    }
}

/// The bytes that a call changed or read; None if its offset is not known.
fn done_range(exit: &CallExit, done: u64) -> Option<Range<u64>> {
    let offset = exit.call.offset_bytes?;
    let size = match exit.call.kind {
        kind if reads(kind) && kind != CallKind::ReadFault || writes(kind) => done,
        _ => exit.call.size_bytes.unwrap_or(0),
    };
    let size = match exit.call.kind {
        CallKind::ReadFault | CallKind::WriteFault => size.max(1),
        _ => size,
    };
    Some(offset..offset.saturating_add(size))
}
