//! Linking: the whole life of each I/O, from the events of a recording to the [`crate::tables`].
//!
//! Events come in the order of time, and each is read once. The memory for their context is
//! bounded: calls, bios and requests in flight, living threads, the latest completed requests, and
//! the dirty bytes of files. The last are moved to disk where they do not fit ([`regions`]).
//!
//! A *page version* is a page from the moment it becomes dirty until it is taken for writeback.
//! Several calls may have a part in one; see [`pages`].

mod account;
mod block;
mod calls;
mod context;
mod files;
mod history;
mod interval;
mod journal;
mod pages;
mod recent;
mod regions;
mod ring;
mod rows;
mod tasks;
mod uses;
mod waits;

pub use account::{Account, Share};
pub use tasks::Foreground;
pub use uses::Use;

use crate::event::{Blocked, Call, CallExit, CallKind, Event, RingComplete, What};
use crate::recording::{Ending, Header, Reader};
use crate::store::{Error, Store};
use block::Block;
use context::Context;
use journal::Journal;
use pages::Pages;
use std::io::Read;
use std::path::Path;
use sys::PathError;
use waits::Waits;

/// Events between two reports of progress.
const EVENTS_PER_PROGRESS: u64 = 1 << 14;

/// Links a whole recording into `store`; errors call it `path`. `progress` gets the number of bytes
/// that were read, now and then. A recording that was cut short is linked up to its end.
pub fn link<R: Read>(
    reader: Reader<R>,
    path: &Path,
    foreground: Option<Foreground>,
    store: Store,
    progress: &mut dyn FnMut(u64),
) -> Result<Store, Error> {
    let mut linker = Linker::new(reader.header(), foreground, store)?;
    let mut events = reader.events();
    let mut count = 0u64;
    while let Some(event) = events.next() {
        let event = event.map_err(PathError::of("access", path))?;
        linker.event(&event)?;
        count += 1;
        if count.is_multiple_of(EVENTS_PER_PROGRESS) {
            progress(events.read_bytes());
        }
    }
    let damaged = events.damaged_records();
    if damaged > 0 {
        linker.context.rows.property("damaged_records", damaged)?;
    }
    linker.finish(events.ending())
}

/// Fills a store from events: it gives each event to the parts that it concerns.
#[derive(Debug)]
pub struct Linker {
    context: Context,
    pages: Pages,
    block: Block,
    journal: Journal,
    waits: Waits,
}

impl Linker {
    /// Links a recording with this header. `foreground` replaces the recording's target if it is
    /// given.
    pub fn new(
        header: &Header,
        foreground: Option<Foreground>,
        store: Store,
    ) -> Result<Linker, Error> {
        Ok(Linker {
            context: Context::new(header, foreground, store)?,
            pages: Pages::new(header.page_bytes, header.tells_taken),
            block: Block::default(),
            journal: Journal::default(),
            waits: Waits::new(header),
        })
    }

    /// Takes the next event, in the order of time.
    pub fn event(&mut self, event: &Event) -> Result<(), Error> {
        let at = event.time_ns;
        self.context.now_ns = self.context.now_ns.max(at);
        let Linker {
            context,
            pages,
            block,
            journal,
            ..
        } = self;
        match &event.what {
            What::CallEnter(call) => return self.call_enter(event, call),
            What::CallExit(exit) => return self.call_exit(event, exit),
            What::RingSubmit(submit) => return context.ring_submit(event, submit),
            What::RingComplete(complete) => return self.ring_complete(event, complete),
            // Pages that are read are linked by the segments of their requests. The requests' times
            // contain the time in a plug, the blocked intervals the time in reclaim.
            What::Added(_) | What::Unplug { .. } | What::Reclaim { .. } => {}
            What::Dirtied(run) => return pages.dirtied(context, event, run),
            What::Cleaned(run) => return pages.cleaned(context, run, at),
            What::Truncated(truncated) => return pages.truncated(context, truncated, at),
            What::Writeback(writeback) => return context.writeback(event, writeback),
            What::Queue(queue) => return block.queued(context, journal, event, queue),
            What::Merge(merge) => block.merged(merge.bio),
            What::Split(split) => block.split(split),
            What::Insert(request) => block.inserted(request, at),
            What::RequestMerge(request) => block.absorbed(pages, request.request),
            What::Issue(request) => return block.issued(context, pages, request, at),
            What::Segment(segment) => return block.segment(context, pages, segment, at),
            What::Requeue(request) => block.requeued(request.request),
            What::Complete(complete) => {
                return block.completed(context, pages, journal, complete, at);
            }
            What::Commit(commit) => return journal.enters(context, event, commit),
            What::Joined(transaction) => return journal.joined(context, event, *transaction),
            What::Blocked(blocked) => return self.blocked(event, blocked),
            What::ThreadEnd => return self.thread_end(event.thread),
            What::Thread(_)
            | What::Name(_)
            | What::Cgroup { .. }
            | What::Stack { .. }
            | What::Lost(_) => return context.described(event),
        }
        Ok(())
    }

    /// Writes the rows of all that is still open, and returns the store.
    pub fn finish(mut self, ending: Option<Ending>) -> Result<Store, Error> {
        let (ending, end_ns) = match ending {
            Some(Ending::Complete { end_ns }) => ("complete", end_ns),
            Some(Ending::Damaged) => ("damaged", self.context.now_ns),
            Some(Ending::CutShort) | None => ("cut short", self.context.now_ns),
        };
        for (call, end_ns) in self.context.calls.cut_short(end_ns) {
            self.call_ends(call, None, end_ns)?;
        }
        let context = &mut self.context;
        self.block
            .end(context, &mut self.pages, &mut self.journal)?;
        self.pages.end(context, end_ns)?;
        let mut rows = self.context.rows;
        self.journal.end(&mut rows)?;
        rows.property("end_ns", end_ns)?;
        rows.property("ending", ending)?;
        rows.write_counts()?;
        waits::complete(&rows.store)?;
        rows.store.finish()?;
        Ok(rows.store)
    }

    fn call_enter(&mut self, event: &Event, asked: &Call) -> Result<(), Error> {
        // What the thread did before the call does not belong to it.
        self.end_unrecorded(event.thread, event.in_fault)?;
        let id = self.context.call_of(event)?;
        self.context.asked(id, asked)?;
        if let Some(call) = self.context.calls.get_mut(id) {
            call.entered = true;
            call.begin_ns = event.time_ns;
        }
        Ok(())
    }

    fn call_exit(&mut self, event: &Event, exit: &CallExit) -> Result<(), Error> {
        let (thread, in_fault) = (event.thread, event.in_fault);
        let calls = &self.context.calls;
        if calls.is_unrecorded_before(thread, in_fault, exit.begin_ns) {
            self.end_unrecorded(thread, in_fault)?;
        }
        let context = &mut self.context;
        let id = context.call_of(event)?;
        context.asked(id, &exit.call)?;
        context.calls.left(thread, in_fault);
        let Some(call) = context.calls.get_mut(id) else {
            return Ok(());
        };
        call.returned(exit);
        // Direct I/O uses no pages of the page cache.
        let place = call.place().filter(|_| !call.row.direct);
        let kind = exit.call.kind;
        match place.clone() {
            Some((file, range)) if calls::writes(kind) && exit.result > 0 => {
                self.pages.change(context, id, file).written(range)?;
            }
            Some((file, range)) if kind == CallKind::WriteFault => {
                self.pages.change(context, id, file).stored(range)?;
            }
            _ => {}
        }
        let is_read = calls::reads(kind) && !calls::writes(kind) && !exit.unfinished;
        self.call_ends(id, place.filter(|_| is_read), event.time_ns)
    }

    fn ring_complete(&mut self, event: &Event, complete: &RingComplete) -> Result<(), Error> {
        let context = &mut self.context;
        let Some(id) = context.calls.rings.completed(complete, event.time_ns) else {
            return Ok(());
        };
        let Some(call) = context.calls.get_mut(id) else {
            return Ok(());
        };
        call.row.result = complete.result.into();
        let done = u64::try_from(complete.result).unwrap_or(0);
        let offset = call.row.offset_bytes;
        let range = offset.map(|offset| offset..offset + done);
        let mut place = call.file.map(|(_, file)| file).zip(range);
        let opcode = call.ring.unwrap_or(0);
        if ring::writes(opcode)
            && done > 0
            && let Some((file, range)) = place.take()
        {
            self.pages.change(context, id, file).written(range)?;
        }
        let used = place.filter(|_| ring::reads(opcode));
        self.call_ends(id, used, event.time_ns)
    }

    /// Ends the row for a thread's work outside of recorded calls.
    fn end_unrecorded(&mut self, thread: u32, in_fault: bool) -> Result<(), Error> {
        let Some(id) = self.context.calls.left(thread, in_fault) else {
            return Ok(());
        };
        let call = self.context.calls.get(id);
        let end_ns = call.map_or(0, |call| call.last_ns);
        self.call_ends(id, None, end_ns)
    }

    /// Ends a call; `used` are the bytes that it read of a file's pages.
    fn call_ends(
        &mut self,
        id: u64,
        used: Option<(u64, std::ops::Range<u64>)>,
        end_ns: u64,
    ) -> Result<(), Error> {
        self.pages.read_ends(&mut self.context, id, used)?;
        self.context.end_call(id, end_ns)
    }

    fn thread_end(&mut self, thread: u32) -> Result<(), Error> {
        self.end_unrecorded(thread, true)?;
        self.end_unrecorded(thread, false)?;
        self.context.tasks.ended(thread);
        Ok(())
    }

    fn blocked(&mut self, event: &Event, blocked: &Blocked) -> Result<(), Error> {
        let (thread, in_fault) = (event.thread, event.in_fault);
        // A thread that blocks outside of recorded calls has finished its unrecorded work.
        if blocked.call.is_none()
            && !in_fault
            && self.context.calls.entered(thread, in_fault).is_none()
        {
            self.end_unrecorded(thread, in_fault)?;
        }
        self.waits
            .blocked(&mut self.context, &mut self.journal, event, blocked)
    }
}
