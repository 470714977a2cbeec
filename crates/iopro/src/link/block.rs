//! Bios and requests, from the queue to completion.

use super::account::Span;
use super::context::Context;
use super::journal::Journal;
use super::pages::Pages;
use super::recent::{Completed, Run};
use super::uses::Uses;
use crate::event::{Complete, Dev, Event, Io, IoFlags, Op, Queue, Request, Segment, Split};
use crate::store::Error;
use crate::tables;
use std::collections::HashMap;

/// A bio in flight.
#[derive(Clone, Debug, Default)]
struct Bio {
    /// `bio_id` in the tables; 0 before it was in a request.
    id: u64,
    task: u64,
    /// `syscall_id` of the call that it belongs to.
    call: u64,
    /// Number of the bio as it was queued; all its parts have the same one.
    queued_as: u64,
    /// The commit that the task was working on.
    commit: Option<u64>,
    io: Io,
    queued_ns: u64,
    merged: bool,
    split: bool,
    /// The cache flush that it asks for was issued.
    flushed: bool,
}

impl Bio {
    fn wants_flush(&self, dev: Dev) -> bool {
        let flushes = self.io.flags.has(IoFlags::PREFLUSH) || self.io.op == Op::Flush;
        self.io.dev == dev && flushes && !self.flushed
    }
}

/// A request in flight.
#[derive(Clone, Debug, Default)]
struct InFlight {
    /// `request_id` in the tables; 0 before it was issued.
    id: u64,
    dev: Dev,
    row: tables::Request,
    bios: Vec<u64>,
    runs: Vec<Run>,
    segments: Vec<tables::Segment>,
}

impl InFlight {
    /// Notes that the driver gets the request, perhaps after it gave it back. Its segments are told
    /// after each issue.
    fn issued(&mut self, request: &Request, at: u64) {
        self.bios.clear();
        self.runs.clear();
        self.segments.clear();
        self.dev = request.io.dev;
        let (io, flags) = (request.io, request.io.flags);
        self.row = tables::Request {
            request_id: self.id,
            device_id: io.dev.0.into(),
            op: io.op,
            content: match io.op {
                Op::Flush => "flush",
                Op::Discard | Op::SecureErase => "discard",
                _ if flags.has(IoFlags::SWAP) => "swap",
                _ => "unknown",
            },
            sync: flags.has(IoFlags::SYNC),
            meta: flags.has(IoFlags::META),
            fua: flags.has(IoFlags::FUA),
            preflush: flags.has(IoFlags::PREFLUSH),
            readahead: flags.has(IoFlags::READAHEAD),
            background: flags.has(IoFlags::BACKGROUND),
            sector: io.sector,
            bytes: io.bytes.into(),
            issued_ns: at,
            ioprio: request.ioprio.into(),
            inserted_ns: self.row.inserted_ns,
            requeues: self.row.requeues,
            ..tables::Request::default()
        };
    }

    /// Takes the times and the submitter from a bio in it.
    fn carries(&mut self, bio: &Bio) {
        let queued_ns = self.row.queued_ns.unwrap_or(bio.queued_ns);
        self.row.queued_ns = Some(queued_ns.min(bio.queued_ns));
        self.row.task_id = self.row.task_id.or(Some(bio.task));
        self.row.commit_id = self.row.commit_id.or(bio.commit);
    }

    /// The completed request for later waits; None if the recording ended before. `dirtier` is the
    /// task whose data it wrote.
    fn done(self, dirtier: Option<u64>) -> Option<Completed> {
        let row = &self.row;
        Some(Completed {
            request: self.id,
            dev: self.dev,
            sector: row.sector,
            sectors: row.bytes.div_ceil(512),
            op: row.op,
            sync: row.sync,
            queued_ns: row.queued_ns.unwrap_or(row.issued_ns),
            issued_ns: row.issued_ns,
            completed_ns: row.completed_ns?,
            submitter: row.task_id,
            origin: dirtier.or(row.task_id),
            commit: row.commit_id,
            runs: self.runs,
        })
    }
}

/// All bios and requests in flight, by their addresses.
#[derive(Debug, Default)]
pub struct Block {
    bios: HashMap<u64, Bio>,
    requests: HashMap<u64, InFlight>,
    pub(super) uses: Uses,
    next_request: u64,
    next_bio: u64,
    next_queued: u64,
}

impl Block {
    /// Notes a bio that came to the block layer, with its call and its commit.
    pub fn queued(
        &mut self,
        context: &mut Context,
        journal: &Journal,
        event: &Event,
        queue: &Queue,
    ) -> Result<(), Error> {
        let task = context.task(event.thread)?;
        let (task, is_journal) = (task.id, task.is_journal());
        let call = context.call_or_operation(event, None)?;
        context.calls.bio_queued(call);
        let commit = is_journal.then(|| journal.committing(event.thread));
        self.next_queued += 1;
        let bio = Bio {
            queued_as: self.next_queued,
            task,
            call,
            commit: commit.flatten(),
            io: queue.io,
            queued_ns: event.time_ns,
            ..Bio::default()
        };
        // A bio that had the same address has ended, and its end was lost.
        if let Some(old) = self.bios.insert(queue.bio, bio) {
            context.calls.bio_done(old.call);
        }
        Ok(())
    }

    /// Notes that a bio was merged into a request.
    pub fn merged(&mut self, bio: u64) {
        if let Some(bio) = self.bios.get_mut(&bio) {
            bio.merged = true;
        }
    }

    /// Notes that a bio was cut: its front part becomes a bio of its own.
    pub fn split(&mut self, split: &Split) {
        if let Some(parent) = self.bios.get_mut(&split.parent) {
            parent.split = true;
            let front = Bio {
                io: split.io,
                ..parent.clone()
            };
            self.bios.insert(split.bio, front);
        }
    }

    /// Notes that a request came to the scheduler at time `at`.
    pub fn inserted(&mut self, request: &Request, at: u64) {
        let active = self.requests.entry(request.request).or_default();
        if active.id == 0 {
            active.row.inserted_ns = Some(at);
        }
    }

    /// Forgets a request whose bios went to its neighbour.
    pub fn absorbed(&mut self, pages: &mut Pages, request: u64) {
        if let Some(active) = self.requests.remove(&request) {
            pages.over(active.id);
        }
    }

    /// Notes that the driver gave a request back.
    pub fn requeued(&mut self, request: u64) {
        if let Some(active) = self.requests.get_mut(&request) {
            active.row.requeues += 1;
        }
    }

    /// Notes that the driver got a request at time `at`.
    pub fn issued(
        &mut self,
        context: &mut Context,
        pages: &mut Pages,
        request: &Request,
        at: u64,
    ) -> Result<(), Error> {
        let active = self.requests.entry(request.request).or_default();
        if active.id == 0 {
            self.next_request += 1;
            active.id = self.next_request;
        }
        active.issued(request, at);
        pages.issued(active.id);
        match request.io.op {
            Op::Flush => self.flush_issued(context, request.request, at),
            _ => Ok(()),
        }
    }

    /// Notes the issue of a cache flush, for the bios that asked for one.
    fn flush_issued(&mut self, context: &mut Context, address: u64, at: u64) -> Result<(), Error> {
        let Some(active) = self.requests.get_mut(&address) else {
            return Ok(());
        };
        let mut links = Vec::new();
        let mut first: Option<(u64, u64, Option<u64>)> = None;
        let bios = self.bios.values_mut();
        for bio in bios.filter(|bio| bio.wants_flush(active.dev)) {
            bio.flushed = true;
            let one = (bio.queued_ns, bio.task, bio.commit);
            first = Some(first.map_or(one, |first| first.min(one)));
            links.push((bio.call, bio.queued_ns));
        }
        if let Some((queued_ns, task, commit)) = first {
            active.row.queued_ns = Some(queued_ns);
            active.row.task_id = Some(task);
            active.row.commit_id = commit;
        }
        links.sort_unstable();
        for (call, queued_ns) in links {
            context.rows.link(tables::Link {
                syscall_id: call,
                kind: "flush",
                request_id: Some(active.id),
                begin_ns: queued_ns,
                end_ns: at,
                ..tables::Link::default()
            })?;
        }
        Ok(())
    }

    /// Adds a segment to its request, and links the calls with a part in it.
    pub fn segment(
        &mut self,
        context: &mut Context,
        pages: &mut Pages,
        segment: &Segment,
        at: u64,
    ) -> Result<(), Error> {
        let known = self.requests.get_mut(&segment.request);
        let Some(active) = known.filter(|active| active.id != 0) else {
            return Ok(());
        };
        let bio = self.bios.get(&segment.bio).cloned();
        let run = run(context, pages, segment, bio.as_ref())?;
        if matches!(active.row.content, "unknown" | "data") {
            active.row.content = content(context, active.row.op, bio.as_ref(), run);
        }
        active.runs.extend(run);
        if let Some(bio) = &bio {
            active.carries(bio);
        }
        let is_new_bio = !active.bios.contains(&segment.bio);
        let (request, op, is_first_time) = (active.id, active.row.op, active.row.requeues == 0);
        if is_new_bio {
            active.bios.push(segment.bio);
            context.rows.counts.bios_without_task.one(bio.is_some());
        }
        if is_new_bio && is_first_time {
            self.bio_row(context, segment, bio.as_ref(), request)?;
        }
        let row = tables::Segment {
            request_id: request,
            bio_id: self.bios.get(&segment.bio).map_or(0, |bio| bio.id),
            file_id: run.map(|run| run.file),
            page_index: run.map(|run| run.index),
            pages: run.map_or(0, |run| run.pages),
            sector: segment.sector,
            bytes: segment.bytes.into(),
        };
        let link = tables::Link {
            syscall_id: bio.as_ref().map_or(0, |bio| bio.call),
            request_id: Some(request),
            file_id: row.file_id,
            page_index: row.page_index,
            pages: row.pages,
            bytes: row.bytes,
            begin_ns: bio.as_ref().map_or(at, |bio| bio.queued_ns),
            end_ns: at,
            ..tables::Link::default()
        };
        if let Some(active) = self.requests.get_mut(&segment.request) {
            active.segments.push(row);
        }
        pages.tells(request);
        link_segment(context, pages, op, bio.as_ref(), run, link)
    }

    fn bio_row(
        &mut self,
        context: &mut Context,
        segment: &Segment,
        bio: Option<&Bio>,
        request: u64,
    ) -> Result<(), Error> {
        self.next_bio += 1;
        if let Some(bio) = self.bios.get_mut(&segment.bio) {
            bio.id = self.next_bio;
        }
        let (sector, bytes) = match bio {
            Some(bio) => (bio.io.sector, bio.io.bytes),
            None => (segment.sector, segment.bytes),
        };
        context.rows.store.add(&tables::Bio {
            bio_id: self.next_bio,
            request_id: request,
            task_id: bio.map(|bio| bio.task),
            syscall_id: bio.map(|bio| bio.call),
            device_id: segment.dev.0.into(),
            sector,
            bytes: bytes.into(),
            queued_ns: bio.map(|bio| bio.queued_ns),
            merged: bio.is_some_and(|bio| bio.merged),
            split: bio.is_some_and(|bio| bio.split),
        })
    }

    /// Ends a request at time `at`, unless a part of it is still to come.
    pub fn completed(
        &mut self,
        context: &mut Context,
        pages: &mut Pages,
        journal: &mut Journal,
        complete: &Complete,
        at: u64,
    ) -> Result<(), Error> {
        let known = self.requests.get_mut(&complete.request);
        let known = known.filter(|active| active.id != 0);
        // The flush machinery ends a request a second time, with nothing left.
        let counts = &mut context.rows.counts.completions_without_request;
        let Some(active) = known else {
            let counted = u64::from(complete.bytes > 0);
            counts.add(counted, counted);
            return Ok(());
        };
        counts.one(true);
        active.row.status = active.row.status.max(complete.status.into());
        if complete.remaining_bytes > 0 {
            return Ok(());
        }
        let Some(mut active) = self.requests.remove(&complete.request) else {
            return Ok(());
        };
        active.row.completed_ns = Some(at);
        self.end_request(context, pages, journal, active)
    }

    fn end_request(
        &mut self,
        context: &mut Context,
        pages: &mut Pages,
        journal: &mut Journal,
        mut active: InFlight,
    ) -> Result<(), Error> {
        active.row.bios = active.bios.len() as u64;
        count_request(context, &active);
        self.uses.add(active.dev, &active.row);
        if active.row.op == Op::Write && active.row.content != "journal" {
            end_pages(context, pages, &active)?;
        }
        if let Some(commit) = active.row.commit_id {
            journal.carried(commit, active.row.bytes);
        }
        context.rows.store.add(&active.row)?;
        for segment in &active.segments {
            context.rows.store.add(segment)?;
        }
        for bio in &active.bios {
            if let Some(bio) = self.bios.remove(bio) {
                context.calls.bio_done(bio.call);
            }
        }
        let dirtier = pages.over(active.id);
        if let Some(done) = active.done(dirtier) {
            context.recent.push(done);
        }
        Ok(())
    }

    /// The times in which the driver has had the requests in flight, until `now_ns`.
    pub fn in_flight(&self, now_ns: u64) -> Vec<Span> {
        let issued = self.requests.values().filter(|it| it.id != 0);
        let spans = issued.map(|it| Span {
            dev: it.dev,
            owner: it.row.task_id,
            discards: it.row.op == Op::Discard,
            issued_ns: it.row.issued_ns,
            completed_ns: now_ns,
        });
        spans.collect()
    }

    /// Writes the rows of the requests that are in flight at the end of the recording.
    pub fn end(
        &mut self,
        context: &mut Context,
        pages: &mut Pages,
        journal: &mut Journal,
    ) -> Result<(), Error> {
        let left = self.requests.drain().map(|(_, active)| active);
        let mut left: Vec<InFlight> = left.filter(|active| active.id != 0).collect();
        left.sort_unstable_by_key(|active| active.id);
        for active in left {
            self.end_request(context, pages, journal, active)?;
        }
        Ok(())
    }
}

/// The pages that a segment holds; None without pages.
fn run(
    context: &mut Context,
    pages: &Pages,
    segment: &Segment,
    bio: Option<&Bio>,
) -> Result<Option<Run>, Error> {
    let Some((file, index)) = segment.pages else {
        return Ok(None);
    };
    let at_bytes = u64::from(segment.at_bytes);
    let end_bytes = at_bytes + u64::from(segment.bytes);
    Ok(Some(Run {
        file: context.file(file)?,
        index,
        pages: end_bytes.div_ceil(pages.page_bytes),
        whole: at_bytes == 0 && end_bytes.is_multiple_of(pages.page_bytes),
        metadata: file.is_block_device(),
        bio: bio.map_or(0, |bio| bio.queued_as),
    }))
}

/// Content of a segment, as the column `content` names it.
fn content(context: &Context, op: Op, bio: Option<&Bio>, run: Option<Run>) -> &'static str {
    let call = bio.and_then(|bio| context.calls.get(bio.call));
    let flags = bio.map_or(IoFlags::default(), |bio| bio.io.flags);
    match (op, run) {
        (Op::Discard | Op::SecureErase, _) => "discard",
        (Op::Flush, _) => "flush",
        _ if flags.has(IoFlags::SWAP) => "swap",
        (_, Some(run)) if !run.metadata => "data",
        _ if bio.is_some_and(|bio| bio.commit.is_some()) => "journal",
        (_, Some(_)) => "metadata",
        _ if flags.has(IoFlags::META) => "metadata",
        // Only user calls do direct I/O; the kernel's own bios have neither pages nor such a call.
        _ if call.is_some_and(|call| !call.kernel) => "direct",
        _ => "unknown",
    }
}

/// Links the calls with a part in a segment; `row` is what is known of the link. `op` is the
/// request's operation.
fn link_segment(
    context: &mut Context,
    pages: &mut Pages,
    op: Op,
    bio: Option<&Bio>,
    run: Option<Run>,
    row: tables::Link,
) -> Result<(), Error> {
    let op = match op {
        Op::Read | Op::Write | Op::Discard => op,
        _ => bio.map_or(Op::Other, |bio| bio.io.op),
    };
    let is_commit = bio.is_some_and(|bio| bio.commit.is_some());
    match (op, run) {
        (Op::Read, Some(run)) => return pages.read_issued(context, run, row),
        // A copy of the page goes into the journal; the page itself is still to be written.
        (Op::Write, Some(run)) if run.metadata && is_commit => {
            let kind = "journal";
            return context.rows.link(tables::Link { kind, ..row });
        }
        (Op::Write, Some(run)) => {
            let range = pages.bytes_of(run.index, run.pages);
            let request = row.request_id.unwrap_or(0);
            return pages.carried(context, run.file, run.metadata, range, request);
        }
        _ if bio.is_none() => return Ok(()),
        _ => {}
    }
    let call = context.calls.get(row.syscall_id);
    let file_id = call.and_then(|call| call.file).map(|(_, file)| file);
    let kind = match op {
        Op::Read => "direct-read",
        Op::Write if is_commit => "journal",
        Op::Write => "direct-write",
        Op::Discard | Op::SecureErase => "discard",
        Op::Flush => "flush",
        _ => "other",
    };
    context.link_when_known(tables::Link {
        kind,
        file_id,
        ..row
    })
}

/// Counts what could not be linked of a request.
fn count_request(context: &mut Context, active: &InFlight) {
    let counts = &mut context.rows.counts;
    let is_known = active.row.task_id.is_some();
    counts.requests_without_bio.one(is_known);
    if matches!(active.row.op, Op::Read | Op::Write) {
        let told: u64 = active.segments.iter().map(|it| it.bytes).sum();
        let is_all = told == active.row.bytes;
        counts.requests_with_untold_bytes.one(is_all);
    }
}

/// Ends the versions of the pages that a request wrote.
fn end_pages(context: &mut Context, pages: &mut Pages, active: &InFlight) -> Result<(), Error> {
    for run in &active.runs {
        let orphans = pages.completed(run, active.id)?;
        let counts = &mut context.rows.counts;
        let count = match run.metadata {
            true => &mut counts.written_metadata_without_dirtier,
            false => &mut counts.written_pages_without_dirtier,
        };
        count.add(run.pages, orphans);
    }
    Ok(())
}
