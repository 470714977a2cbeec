//! io_uring: its operations are calls whose work another thread may do.

use super::Linker;
use super::calls::Call;
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
}

impl Linker {
    pub(super) fn ring_submit(&mut self, event: &Event, submit: &RingSubmit) -> Result<(), Error> {
        let known = self.rings.operations.get(&submit.request);
        if known.is_some_and(|known| known.user_data == submit.user_data) {
            // The kernel submits it again, in another thread or when its pages are there.
            self.rings.latest.insert(event.thread, submit.request);
            return Ok(());
        }
        let (task, process) = {
            let task = self.tasks.of(event.thread, &mut self.store)?;
            (task.id, task.process)
        };
        let file = match submit.file {
            Some(file) => Some((file, self.files.id(file, &mut self.store)?)),
            None => None,
        };
        let range = submit.offset_bytes.zip(submit.size_bytes);
        let row = tables::Syscall {
            file_id: file.map(|(_, id)| id),
            offset_bytes: submit.offset_bytes,
            size_bytes: submit.size_bytes,
            direct: submit.flags.has(CallFlags::DIRECT),
            sync: submit.flags.has(CallFlags::SYNC),
            ..tables::Syscall::default()
        };
        let id = self.calls.add(Call {
            task,
            begin_ns: event.time_ns,
            last_ns: event.time_ns,
            ring: Some(submit.opcode),
            file,
            range: range.map(|(offset, size)| offset..offset.saturating_add(size)),
            entered: true,
            row,
            ..Call::default()
        });
        let operation = Operation {
            call: id,
            process,
            user_data: submit.user_data,
            file: submit.file,
        };
        self.rings.operations.insert(submit.request, operation);
        self.rings.latest.insert(event.thread, submit.request);
        Ok(())
    }

    pub(super) fn ring_complete(
        &mut self,
        event: &Event,
        complete: &RingComplete,
    ) -> Result<(), Error> {
        let Some(operation) = self.rings.operations.remove(&complete.request) else {
            return Ok(());
        };
        self.rings
            .latest
            .retain(|_, request| *request != complete.request);
        let id = operation.call;
        let done = u64::try_from(complete.result).unwrap_or(0);
        let Some(call) = self.calls.get_mut(id) else {
            return Ok(());
        };
        call.row.result = complete.result.into();
        let offset = call.row.offset_bytes;
        let range = offset.map(|offset| offset..offset + done);
        let place = call.file.map(|(_, file)| file).zip(range);
        let opcode = call.ring.unwrap_or(0);
        match place {
            Some((file, range)) if WRITES.contains(&opcode) && done > 0 => {
                self.written(id, file, range)?;
                self.read_ends(id, None)?;
            }
            place => self.read_ends(id, place.filter(|_| READS.contains(&opcode)))?,
        }
        self.end_call(id, event.time_ns)
    }

    /// The operation that a thread works on now, if it is about this file.
    pub(super) fn ring_call(&self, event: &Event, file: Option<FileId>) -> Option<u64> {
        if self.rings.operations.is_empty() {
            return None;
        }
        let latest = self.rings.latest.get(&event.thread);
        let latest = latest.and_then(|request| self.rings.operations.get(request));
        let fits = |operation: &&Operation| file.is_none() || operation.file == file;
        if let Some(operation) = latest.filter(fits) {
            return Some(operation.call);
        }
        let task = self.tasks.get(event.thread)?;
        let worker = task.name.starts_with("iou-");
        let of_process = self.rings.operations.values().filter(|operation| {
            worker && operation.process == task.process && file.is_some() && operation.file == file
        });
        of_process.map(|operation| operation.call).min()
    }
}
