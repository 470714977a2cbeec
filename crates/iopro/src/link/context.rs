//! What all parts of the linker share: the rows so far, and whom and what an event is about.

use super::calls::{Call, Calls};
use super::files::Files;
use super::recent::Recent;
use super::rows::Rows;
use super::tasks::{Foreground, Task, Tasks};
use crate::event::{Call as Asked, CallFlags, Event, FileId, What};
use crate::recording::Header;
use crate::store::{Error, Store};
use crate::tables;

/// The rows so far, and the tasks, files, calls and completed requests that events refer to.
#[derive(Debug)]
pub struct Context {
    pub rows: Rows,
    pub tasks: Tasks,
    pub files: Files,
    pub calls: Calls,
    pub recent: Recent,
    /// Time of the latest event.
    pub now_ns: u64,
}

impl Context {
    /// Begins at the begin of the recording.
    pub fn new(
        header: &Header,
        foreground: Option<Foreground>,
        store: Store,
    ) -> Result<Context, Error> {
        let mut rows = Rows::new(header, foreground.as_ref(), store)?;
        let foreground = foreground.unwrap_or_else(|| Foreground::of(&header.target));
        Ok(Context {
            tasks: Tasks::new(foreground),
            files: Files::new(header, &mut rows.store)?,
            rows,
            calls: Calls::default(),
            recent: Recent::default(),
            now_ns: header.begin_ns,
        })
    }

    /// The task that has this thread id now.
    pub fn task(&mut self, thread: u32) -> Result<&Task, Error> {
        self.tasks.of(thread, &mut self.rows.store)
    }

    /// `file_id` of the file.
    pub fn file(&mut self, file: FileId) -> Result<u64, Error> {
        self.files.id(file, &mut self.rows.store)
    }

    /// The file with its `file_id`; None without a file.
    pub fn with_id(&mut self, file: Option<FileId>) -> Result<Option<(FileId, u64)>, Error> {
        file.map(|file| Ok((file, self.file(file)?))).transpose()
    }

    /// The row that the thread's work at this event belongs to; adds one if none is known.
    pub fn call_of(&mut self, event: &Event) -> Result<u64, Error> {
        let (thread, at) = (event.thread, event.time_ns);
        let task = self.task(thread)?;
        let (task, is_kernel) = (task.id, task.kernel);
        Ok(self
            .calls
            .of_work(thread, event.in_fault, task, is_kernel, at))
    }

    /// The call whose pages or bios this event tells: an operation of io_uring on `file`, else the
    /// thread's own.
    pub fn call_or_operation(&mut self, event: &Event, file: Option<FileId>) -> Result<u64, Error> {
        let task = self.tasks.get(event.thread);
        match self.calls.rings.call(event.thread, task, file) {
            Some(call) => Ok(call),
            None => self.call_of(event),
        }
    }

    /// Fills in what a call asked for, with the tables' numbers.
    pub fn asked(&mut self, id: u64, asked: &Asked) -> Result<(), Error> {
        let file = self.with_id(asked.file)?;
        let from = self.with_id(asked.from)?;
        let Some(call) = self.calls.get_mut(id) else {
            return Ok(());
        };
        call.kind = Some(asked.kind);
        call.file = file;
        call.range = Call::range_of(asked.offset_bytes, asked.size_bytes);
        call.row = tables::Syscall {
            kind: asked.kind.name().to_owned(),
            fd: asked.fd.map(i64::from),
            file_id: file.map(|(_, id)| id),
            from_file_id: from.map(|(_, id)| id),
            offset_bytes: asked.offset_bytes,
            size_bytes: asked.size_bytes,
            direct: asked.flags.has(CallFlags::DIRECT),
            sync: asked.flags.has(CallFlags::SYNC),
            // The times and pages so far.
            ..std::mem::take(&mut call.row)
        };
        Ok(())
    }

    /// Writes the row of a call that is over.
    pub fn end_call(&mut self, id: u64, end_ns: u64) -> Result<(), Error> {
        let store = &mut self.rows.store;
        let row = self.calls.end(id, end_ns);
        match row.filter(|row| row.blocked_ns > 0 || !store.has_only_waits()) {
            Some(row) => store.add(&row),
            None => Ok(()),
        }
    }

    /// Links a call, or keeps the row until the call returns if its file is known only then.
    pub fn link_when_known(&mut self, row: tables::Link) -> Result<(), Error> {
        let call = self.calls.get_mut(row.syscall_id);
        match call.filter(|call| row.file_id.is_none() && !call.over && !call.kernel) {
            Some(call) => {
                call.reads.push(row);
                Ok(())
            }
            None => self.rows.link(row),
        }
    }

    /// Adds what an event tells of threads, files, cgroups and stacks, and of lost events.
    pub fn described(&mut self, event: &Event) -> Result<(), Error> {
        let store = &mut self.rows.store;
        match &event.what {
            What::Thread(info) => self.tasks.told(info, store),
            What::Name(name) => self.files.named(event.time_ns, name, store),
            What::Cgroup { id, path } => self.tasks.cgroup(*id, path, store),
            What::Stack { id, functions } => store.add(&tables::Stack {
                stack_id: u64::from(*id),
                functions: functions.join(" < "),
            }),
            What::Lost(lost) => self.rows.lost(event.time_ns, *lost),
            _ => Ok(()),
        }
    }
}
