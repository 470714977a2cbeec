//! io_uring: its operations are calls whose work another thread may do.

use super::calls::Call;
use super::context::Context;
use super::tasks::Task;
use crate::event::{CallFlags, Event, FileId, RingComplete, RingSubmit};
use crate::store::Error;
use crate::tables;
use std::collections::HashMap;

/// `IORING_OP_READV`, `READ_FIXED` and `READ`.
const READS: [u8; 3] = [1, 4, 22];
/// `IORING_OP_WRITEV`, `WRITE_FIXED` and `WRITE`.
const WRITES: [u8; 3] = [2, 5, 23];

#[derive(Clone, Debug)]
struct Operation {
    call: u64,
    process: u32,
    user_data: u64,
    file: Option<FileId>,
}

/// The operations in progress.
#[derive(Debug, Default)]
pub struct Rings {
    operations: HashMap<u64, Operation>,
    /// The last operation that each thread submitted: its bios come right after.
    latest: HashMap<u32, u64>,
    /// When an operation of each process was seen to go on last.
    worked_ns: HashMap<u32, u64>,
}

/// Most processes whose last operation is remembered.
const MOST_PROCESSES: usize = 1 << 12;

impl Rings {
    /// Notes that the kernel submits a known operation again, in another thread or when its pages
    /// are there. Returns false if it is a new one.
    fn is_again(&mut self, thread: u32, submit: &RingSubmit) -> bool {
        let known = self.operations.get(&submit.request);
        let is_again = known.is_some_and(|known| known.user_data == submit.user_data);
        if is_again {
            self.latest.insert(thread, submit.request);
        }
        is_again
    }

    /// The call of the operation that a thread works on now, if it is about `file`.
    pub fn call(&self, thread: u32, task: Option<&Task>, file: Option<FileId>) -> Option<u64> {
        if self.operations.is_empty() {
            return None;
        }
        let latest = self.latest.get(&thread);
        let latest = latest.and_then(|request| self.operations.get(request));
        let fits = |operation: &&Operation| file.is_none() || operation.file == file;
        if let Some(operation) = latest.filter(fits) {
            return Some(operation.call);
        }
        let worker = task.filter(|task| file.is_some() && task.name.starts_with("iou-"))?;
        let of_process = self
            .operations
            .values()
            .filter(|operation| operation.process == worker.process && operation.file == file);
        of_process.map(|operation| operation.call).min()
    }

    /// The operation that a thread works on, whatever it is about.
    pub fn latest_of(&self, thread: u32) -> Option<u64> {
        let request = self.latest.get(&thread)?;
        Some(self.operations.get(request)?.call)
    }

    /// Whether an operation of the process on a file went on after `since_ns`.
    pub fn worked(&self, process: u32, since_ns: u64) -> bool {
        let mut operations = self.operations.values();
        let last_ns = self.worked_ns.get(&process);
        operations.any(|it| it.process == process) || last_ns.is_some_and(|it| *it >= since_ns)
    }

    /// Ends an operation at `now_ns`, and returns its call.
    pub fn completed(&mut self, complete: &RingComplete, now_ns: u64) -> Option<u64> {
        let operation = self.operations.remove(&complete.request)?;
        if self.worked_ns.len() >= MOST_PROCESSES {
            self.worked_ns.clear();
        }
        self.worked_ns.insert(operation.process, now_ns);
        self.latest
            .retain(|_, request| *request != complete.request);
        Some(operation.call)
    }
}

/// Whether the operation reads pages of its file.
pub fn reads(opcode: u8) -> bool {
    READS.contains(&opcode)
}

/// Whether the operation changes pages of its file.
pub fn writes(opcode: u8) -> bool {
    WRITES.contains(&opcode)
}

impl Context {
    /// The operation that a worker of io_uring is at.
    pub fn operation_of_worker(&self, thread: u32) -> Option<u64> {
        let task = self.tasks.get(thread)?;
        let is_worker = task.name.starts_with("iou-");
        is_worker.then(|| self.calls.rings.latest_of(thread))?
    }

    /// Adds the call of an operation that is submitted for the first time.
    pub fn ring_submit(&mut self, event: &Event, submit: &RingSubmit) -> Result<(), Error> {
        if self.calls.rings.is_again(event.thread, submit) {
            return Ok(());
        }
        let task = self.task(event.thread)?;
        let (task, process) = (task.id, task.process);
        let file = self.with_id(submit.file)?;
        let row = tables::Syscall {
            file_id: file.map(|(_, id)| id),
            offset_bytes: submit.offset_bytes,
            size_bytes: submit.size_bytes,
            direct: submit.flags.has(CallFlags::DIRECT),
            sync: submit.flags.has(CallFlags::SYNC),
            ..tables::Syscall::default()
        };
        let call = self.calls.add(Call {
            task,
            begin_ns: event.time_ns,
            last_ns: event.time_ns,
            ring: Some(submit.opcode),
            file,
            range: Call::range_of(submit.offset_bytes, submit.size_bytes),
            entered: true,
            row,
            ..Call::default()
        });
        let operation = Operation {
            call,
            process,
            user_data: submit.user_data,
            file: submit.file,
        };
        let rings = &mut self.calls.rings;
        rings.operations.insert(submit.request, operation);
        rings.latest.insert(event.thread, submit.request);
        Ok(())
    }
}
