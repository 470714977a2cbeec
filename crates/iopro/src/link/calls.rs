//! Calls in progress, and the assignment of events to them.

use super::ring::Rings;
use crate::event::{CallExit, CallKind, FileId};
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
    /// `file_id` and bytes of the pages that it made dirty, while it is in progress.
    pub dirtied: Vec<(u64, Range<u64>)>,
    /// Its row, as far as it is known: with the times and pages so far.
    pub row: tables::Syscall,
}

impl Call {
    /// The bytes from `offset` on; None unless both numbers are known.
    pub fn range_of(offset: Option<u64>, size: Option<u64>) -> Option<Range<u64>> {
        let (offset, size) = offset.zip(size)?;
        Some(offset..offset.saturating_add(size))
    }

    /// Notes its result and its true begin.
    pub fn returned(&mut self, exit: &CallExit) {
        self.kernel = false;
        self.begin_ns = exit.begin_ns;
        self.row.result = exit.result;
        self.row.unfinished = exit.unfinished;
        self.range = done_range(exit);
    }

    /// `file_id` of its file, and its bytes there; None unless both are known.
    pub fn place(&self) -> Option<(u64, Range<u64>)> {
        let (_, file) = self.file?;
        Some((file, self.range.clone()?))
    }

    /// Its row, if it ends at `end_ns`.
    pub fn row_until(&self, id: u64, end_ns: u64) -> tables::Syscall {
        let kind = match (self.kind, self.ring) {
            (Some(_), _) => self.row.kind.clone(),
            (None, Some(opcode)) => format!("io_uring:{opcode}"),
            (None, None) if self.kernel => "kernel".to_owned(),
            (None, None) => "unrecorded".to_owned(),
        };
        tables::Syscall {
            syscall_id: id,
            task_id: self.task,
            kind,
            begin_ns: self.begin_ns,
            end_ns: end_ns.max(self.begin_ns),
            ..self.row.clone()
        }
    }
}

/// All calls that something refers to.
#[derive(Debug, Default)]
pub struct Calls {
    by_id: HashMap<u64, Call>,
    /// `syscall_id` by thread: of its call (false), and of a page fault inside of it (true).
    open: HashMap<(u32, bool), u64>,
    /// `syscall_id` of the row for a kernel thread's own work, by `task_id`.
    kernel: HashMap<u64, u64>,
    /// Operations of io_uring, which are calls too.
    pub rings: Rings,
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

    /// The call that a thread works for at time `at`. One that is not known is added: for all of a
    /// kernel thread's own work, or for what a thread does outside of recorded calls.
    pub fn of_work(
        &mut self,
        thread: u32,
        in_fault: bool,
        task: u64,
        is_kernel: bool,
        at: u64,
    ) -> u64 {
        let known = match self.of(thread, in_fault) {
            None if is_kernel => self.kernel.get(&task).copied(),
            known => known,
        };
        if let Some(id) = known
            && let Some(call) = self.get_mut(id)
        {
            call.last_ns = at;
            return id;
        }
        let id = self.add(Call {
            task,
            begin_ns: at,
            last_ns: at,
            kernel: is_kernel,
            ..Call::default()
        });
        match is_kernel {
            true => self.kernel.insert(task, id),
            false => self.open.insert((thread, in_fault), id),
        };
        id
    }

    /// Notes that a thread left the call it was in; returns that call.
    pub fn left(&mut self, thread: u32, in_fault: bool) -> Option<u64> {
        self.open.remove(&(thread, in_fault))
    }

    /// The call that a thread is in, if its begin was told.
    pub fn entered(&self, thread: u32, in_fault: bool) -> Option<u64> {
        let id = self.of(thread, in_fault)?;
        self.get(id)?.entered.then_some(id)
    }

    /// Whether a thread's work is known only by events from before `begin_ns`: it does not belong
    /// to a call that began then.
    pub fn is_unrecorded_before(&self, thread: u32, in_fault: bool, begin_ns: u64) -> bool {
        let call = self.of(thread, in_fault).and_then(|id| self.get(id));
        call.is_some_and(|call| !call.entered && call.last_ns < begin_ns)
    }

    /// `task_id` of the call's task; 0 if the call is not known.
    pub fn task_of(&self, call: u64) -> u64 {
        self.get(call).map_or(0, |call| call.task)
    }

    /// Ends a call, and returns its row.
    pub fn end(&mut self, id: u64, end_ns: u64) -> Option<tables::Syscall> {
        let call = self.get_mut(id)?;
        call.over = true;
        call.dirtied = Vec::new();
        let row = call.row_until(id, end_ns);
        self.forget_if_over(id);
        Some(row)
    }

    /// All calls that are not over, with the time until which each is known at `end_ns`.
    pub fn cut_short(&mut self, end_ns: u64) -> Vec<(u64, u64)> {
        let open = self.by_id.iter_mut().filter(|(_, call)| !call.over);
        let ends = open.map(|(id, call)| {
            call.row.unfinished = call.entered || call.ring.is_some();
            match call.row.unfinished {
                true => (*id, end_ns),
                false => (*id, call.last_ns),
            }
        });
        let mut ends: Vec<(u64, u64)> = ends.collect();
        ends.sort_unstable();
        ends
    }

    /// Notes that a bio was submitted in the call.
    pub fn bio_queued(&mut self, call: u64) {
        if let Some(call) = self.by_id.get_mut(&call) {
            call.bios += 1;
        }
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
        let known = self.by_id.get(&call);
        if known.is_some_and(|it| it.over && it.bios == 0) {
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

/// Whether the kind of call waits for data to be on the device, or truncates them. Other calls wait
/// for writeback because they change a page.
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

/// The bytes that a call changed or read; None if its offset is not known.
fn done_range(exit: &CallExit) -> Option<Range<u64>> {
    let offset = exit.call.offset_bytes?;
    let done = u64::try_from(exit.result).unwrap_or(0);
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
