//! Queries of the linker that classify waits.

use super::Linker;
use super::calls::Times;
use super::recent::Recent;
use super::tasks::Task;
use crate::event::{Blocked, Dev, Event, FileId, Transaction};
use crate::store::Error;
use crate::tables;
use crate::wait::Class;

impl Linker {
    pub(crate) fn end_unrecorded_at(&mut self, event: &Event) -> Result<(), Error> {
        let entered = self
            .calls
            .of(event.thread, event.in_fault)
            .and_then(|id| self.calls.get(id))
            .is_some_and(|call| call.entered);
        match entered {
            true => Ok(()),
            false => self.end_unrecorded(event.thread, event.in_fault),
        }
    }

    pub(crate) fn task_of_thread(&mut self, thread: u32) -> Result<&Task, Error> {
        self.tasks.of(thread, &mut self.store)
    }

    /// `task_id` of the task that has this thread id, or had it lately; None if it was not told of.
    pub(crate) fn known_task(&self, thread: u32) -> Option<u64> {
        self.tasks.latest(thread)
    }

    pub(crate) fn is_kernel(&self, thread: u32) -> bool {
        self.tasks.get(thread).is_some_and(|task| task.kernel)
    }

    /// The call in which a thread was blocked; None outside of recorded calls.
    pub(crate) fn call_for_wait(
        &mut self,
        event: &Event,
        blocked: &Blocked,
    ) -> Result<Option<u64>, Error> {
        match blocked.call.is_some() || event.in_fault {
            true => self.call_of(event).map(Some),
            false => Ok(None),
        }
    }

    pub(crate) fn file_of_call(&self, call: u64) -> Option<u64> {
        self.calls.get(call)?.file.map(|(_, id)| id)
    }

    pub(crate) fn times_of_call(&mut self, call: u64) -> Option<&mut Times> {
        self.calls.get_mut(call).map(|call| &mut call.times)
    }

    pub(crate) fn file_number(&mut self, file: FileId) -> Result<u64, Error> {
        self.files.id(file, &mut self.store)
    }

    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    pub(crate) fn on_disk(&self, dev: Dev, sector: u64) -> (Dev, u64) {
        self.block.on_disk(dev, sector)
    }

    pub(crate) fn commit_under_way(
        &self,
        dev: Dev,
        begin_ns: u64,
        end_ns: u64,
    ) -> Option<(u64, Option<u64>)> {
        self.journal.under_way(dev, begin_ns, end_ns)
    }

    pub(crate) fn commit_number(&mut self, transaction: Transaction) -> u64 {
        self.journal.id(transaction)
    }

    pub(crate) fn commit_task(&self, commit: u64) -> Option<u64> {
        self.journal.task(commit)
    }

    pub(crate) fn waited_for_commit(
        &mut self,
        commit_id: u64,
        syscall_id: u64,
        time_ns: u64,
    ) -> Result<(), Error> {
        self.store.add(&tables::CommitCall {
            commit_id,
            syscall_id,
            role: "waited",
            time_ns,
        })
    }

    pub(crate) fn mostly(&self, task: u64, begin_ns: u64, end_ns: u64) -> Option<Class> {
        self.history.mostly(task, begin_ns, end_ns)
    }

    pub(crate) fn remember_wait(&mut self, task: u64, begin_ns: u64, end_ns: u64, class: Class) {
        self.history.push(task, begin_ns, end_ns, class);
    }

    pub(crate) fn count_wait(&mut self, found: bool) {
        self.counts.waits_without_request.all += 1;
        self.counts.waits_without_request.missing += u64::from(!found);
    }

    pub(crate) fn wait_row(&mut self, row: tables::Wait) -> Result<(), Error> {
        self.waits += 1;
        self.store.add(&tables::Wait {
            wait_id: self.waits,
            ..row
        })
    }
}
