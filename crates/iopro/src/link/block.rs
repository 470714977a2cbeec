//! Bios and requests, from the queue to completion.

use super::Linker;
use super::recent::{Done, Run};
use super::regions::Piece;
use crate::event::{Complete, Dev, Event, Io, IoFlags, Op, Queue, Request, Segment, Split};
use crate::recording::Header;
use crate::store::Error;
use crate::tables;
use std::collections::HashMap;

/// A bio in flight.
#[derive(Clone, Debug)]
struct Bio {
    /// `bio_id` in the tables; 0 before it was in a request.
    id: u64,
    task: u64,
    /// `syscall_id` of the call that it belongs to.
    call: u64,
    /// Number of the bio as it was queued; all its parts have the same one.
    whole: u64,
    /// The commit that the task was working on.
    commit: Option<u64>,
    io: Io,
    queued_ns: u64,
    merged: bool,
    split: bool,
    /// The cache flush that it asks for was issued.
    flushed: bool,
}

/// A request in flight.
#[derive(Clone, Debug, Default)]
struct Active {
    id: u64,
    dev: Dev,
    row: tables::Request,
    bios: Vec<u64>,
    runs: Vec<Run>,
    segments: Vec<tables::Segment>,
    /// Bytes of the request, by the task that dirtied them.
    dirtiers: HashMap<u64, u64>,
    /// The driver has it: it was issued, and not given back since.
    issued: bool,
}

/// All bios and requests in flight.
#[derive(Debug)]
pub struct Block {
    bios: HashMap<u64, Bio>,
    requests: HashMap<u64, Active>,
    /// Address of the request whose segments are being told.
    telling: Option<u64>,
    next_request: u64,
    next_bio: u64,
    next_whole: u64,
    partitions: HashMap<Dev, (Dev, u64)>,
}

impl Block {
    /// Begins with no requests, on the disks of `header`.
    pub fn new(header: &Header) -> Block {
        let mut partitions = HashMap::new();
        for disk in &header.disks {
            for part in &disk.partitions {
                partitions.insert(part.dev, (disk.dev, part.start_sector));
            }
        }
        Block {
            bios: HashMap::new(),
            requests: HashMap::new(),
            telling: None,
            next_request: 0,
            next_bio: 0,
            next_whole: 0,
            partitions,
        }
    }

    /// Translates a sector of a file system's device to the disk and the sector on it.
    pub fn on_disk(&self, dev: Dev, sector: u64) -> (Dev, u64) {
        match self.partitions.get(&dev) {
            Some((disk, start)) => (*disk, start + sector),
            None => (dev, sector),
        }
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
    pub fn absorbed(&mut self, request: u64) {
        self.requests.remove(&request);
    }

    /// Notes that the driver gave a request back.
    pub fn requeued(&mut self, request: u64) {
        if let Some(active) = self.requests.get_mut(&request) {
            active.row.requeues += 1;
        }
    }

    /// Adds the dirtiers of `pieces` to the request whose segments are being told.
    pub fn dirtied_by(&mut self, request: u64, pieces: &[Piece]) {
        let active = self
            .telling
            .and_then(|address| self.requests.get_mut(&address));
        let Some(active) = active.filter(|active| active.id == request) else {
            return;
        };
        for piece in pieces.iter().filter(|piece| piece.mark.call != 0) {
            *active.dirtiers.entry(piece.mark.task).or_default() += piece.end - piece.start;
        }
    }
}

/// Whether the pages are blocks that a commit writes into the journal.
fn is_journal(bio: Option<&Bio>, run: Run) -> bool {
    run.metadata && bio.is_some_and(|bio| bio.commit.is_some())
}

fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
        Op::SecureErase => "secure-erase",
        Op::WriteZeroes => "write-zeroes",
        Op::Other => "other",
    }
}

impl Linker {
    pub(super) fn queue(&mut self, event: &Event, queue: &Queue) -> Result<(), Error> {
        let (task, journal) = {
            let task = self.tasks.of(event.thread, &mut self.store)?;
            (task.id, task.is_journal())
        };
        let call = match self.ring_call(event, None) {
            Some(call) => call,
            None => self.call_of(event)?,
        };
        if let Some(call) = self.calls.get_mut(call) {
            call.bios += 1;
        }
        self.block.next_whole += 1;
        let bio = Bio {
            id: 0,
            whole: self.block.next_whole,
            task,
            call,
            commit: journal
                .then(|| self.journal.committing(event.thread))
                .flatten(),
            io: queue.io,
            queued_ns: event.time_ns,
            merged: false,
            split: false,
            flushed: false,
        };
        // A bio that had the same address has ended, and its end was lost.
        if let Some(old) = self.block.bios.insert(queue.bio, bio) {
            self.calls.bio_done(old.call);
        }
        Ok(())
    }

    pub(super) fn issue(&mut self, request: &Request, at: u64) -> Result<(), Error> {
        let address = request.request;
        let again = self
            .block
            .requests
            .get(&address)
            .is_some_and(|active| active.issued);
        if again {
            self.give_back(address)?;
        }
        let active = self.block.requests.entry(address).or_default();
        if active.id == 0 {
            self.block.next_request += 1;
            active.id = self.block.next_request;
        }
        let (io, flags) = (request.io, request.io.flags);
        active.dev = io.dev;
        active.issued = true;
        active.row = tables::Request {
            request_id: active.id,
            device_id: io.dev.0.into(),
            op: op_name(io.op),
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
            inserted_ns: active.row.inserted_ns,
            requeues: active.row.requeues,
            ..tables::Request::default()
        };
        self.block.telling = Some(address);
        match io.op {
            Op::Flush => self.flush_issued(address, at),
            _ => Ok(()),
        }
    }

    /// Resets a request that the driver gave back and gets anew: its segments are told again.
    fn give_back(&mut self, address: u64) -> Result<(), Error> {
        let Some(active) = self.block.requests.get_mut(&address) else {
            return Ok(());
        };
        active.bios.clear();
        active.dirtiers.clear();
        active.runs.clear();
        active.segments.clear();
        Ok(())
    }

    /// Notes the issue of a cache flush, for the bios of the request that asked for one.
    fn flush_issued(&mut self, address: u64, at: u64) -> Result<(), Error> {
        let Some(active) = self.block.requests.get_mut(&address) else {
            return Ok(());
        };
        let wants = |bio: &&mut Bio| {
            let flushes = bio.io.flags.has(IoFlags::PREFLUSH) || bio.io.op == Op::Flush;
            bio.io.dev == active.dev && flushes && !bio.flushed
        };
        let mut links = Vec::new();
        let mut first: Option<(u64, u64, Option<u64>)> = None;
        for bio in self.block.bios.values_mut().filter(wants) {
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
        let request = active.id;
        links.sort_unstable();
        for (call, queued_ns) in links {
            self.link(tables::Link {
                syscall_id: call,
                kind: "flush",
                request_id: Some(request),
                begin_ns: queued_ns,
                end_ns: at,
                ..tables::Link::default()
            })?;
        }
        Ok(())
    }

    pub(super) fn segment(&mut self, segment: &Segment, at: u64) -> Result<(), Error> {
        let known = self.block.requests.get(&segment.request);
        let Some(active) = known.filter(|active| active.issued) else {
            return Ok(());
        };
        let (request, op, first_time) = (active.id, active.row.op, active.row.requeues == 0);
        let new_bio = !active.bios.contains(&segment.bio);
        let bio = self.block.bios.get(&segment.bio).cloned();
        let (content, run) = self.content(segment, bio.as_ref(), op)?;
        if let Some(active) = self.block.requests.get_mut(&segment.request) {
            if matches!(active.row.content, "unknown" | "data") {
                active.row.content = content;
            }
            active.runs.extend(run);
            active.segments.push(tables::Segment {
                request_id: request,
                bio_id: 0,
                file_id: run.map(|run| run.file),
                page_index: run.map(|run| run.index),
                pages: run.map_or(0, |run| run.pages),
                sector: segment.sector,
                bytes: segment.bytes.into(),
            });
            if new_bio {
                active.bios.push(segment.bio);
            }
            if let Some(bio) = &bio {
                let queued_ns = active.row.queued_ns.unwrap_or(bio.queued_ns);
                active.row.queued_ns = Some(queued_ns.min(bio.queued_ns));
                active.row.task_id = active.row.task_id.or(Some(bio.task));
                active.row.commit_id = active.row.commit_id.or(bio.commit);
            }
        }
        if new_bio {
            self.counts.bios_without_task.all += 1;
            self.counts.bios_without_task.missing += u64::from(bio.is_none());
        }
        if new_bio && first_time {
            self.bio_row(segment, bio.as_ref(), request)?;
        }
        let bio_id = self.block.bios.get(&segment.bio).map_or(0, |bio| bio.id);
        let told = self.block.requests.get_mut(&segment.request);
        if let Some(told) = told.and_then(|active| active.segments.last_mut()) {
            told.bio_id = bio_id;
        }
        self.block.telling = Some(segment.request);
        self.link_segment(segment, bio.as_ref(), run, request, at)
    }

    /// Content of a segment, as the column `content` names it, and the pages it holds.
    fn content(
        &mut self,
        segment: &Segment,
        bio: Option<&Bio>,
        op: &'static str,
    ) -> Result<(&'static str, Option<Run>), Error> {
        let run = match segment.pages {
            Some((file, index)) => {
                let pages = u64::from(segment.bytes).div_ceil(self.page_bytes);
                let id = self.files.id(file, &mut self.store)?;
                Some(Run {
                    file: id,
                    index,
                    pages,
                    metadata: file.is_block_device(),
                    bio: bio.map_or(0, |bio| bio.whole),
                })
            }
            None => None,
        };
        let call = bio.and_then(|bio| self.calls.get(bio.call));
        let flags = bio.map_or(IoFlags::default(), |bio| bio.io.flags);
        let content = match (op, run) {
            ("discard" | "secure-erase", _) => "discard",
            ("flush", _) => "flush",
            _ if flags.has(IoFlags::SWAP) => "swap",
            (_, Some(run)) if !run.metadata => "data",
            _ if bio.is_some_and(|bio| bio.commit.is_some()) => "journal",
            (_, Some(_)) => "metadata",
            _ if flags.has(IoFlags::META) => "metadata",
            // Only user calls do direct I/O; the kernel's own bios have neither pages nor such a
            // call.
            _ if call.is_some_and(|call| !call.kernel) => "direct",
            _ => "unknown",
        };
        Ok((content, run))
    }

    fn bio_row(&mut self, segment: &Segment, bio: Option<&Bio>, request: u64) -> Result<(), Error> {
        self.block.next_bio += 1;
        if let Some(bio) = self.block.bios.get_mut(&segment.bio) {
            bio.id = self.block.next_bio;
        }
        let (sector, bytes) = match bio {
            Some(bio) => (bio.io.sector, bio.io.bytes),
            None => (segment.sector, segment.bytes),
        };
        self.store.add(&tables::Bio {
            bio_id: self.block.next_bio,
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

    fn link_segment(
        &mut self,
        segment: &Segment,
        bio: Option<&Bio>,
        run: Option<Run>,
        request: u64,
        at: u64,
    ) -> Result<(), Error> {
        let op = bio.map_or(Op::Other, |bio| bio.io.op);
        let op = match self
            .block
            .requests
            .get(&segment.request)
            .map(|active| active.row.op)
        {
            Some("read") => Op::Read,
            Some("write") => Op::Write,
            Some("discard") => Op::Discard,
            _ => op,
        };
        let queued_ns = bio.map_or(at, |bio| bio.queued_ns);
        let row = tables::Link {
            syscall_id: bio.map_or(0, |bio| bio.call),
            request_id: Some(request),
            file_id: run.map(|run| run.file),
            page_index: run.map(|run| run.index),
            pages: run.map_or(0, |run| run.pages),
            bytes: segment.bytes.into(),
            begin_ns: queued_ns,
            end_ns: at,
            ..tables::Link::default()
        };
        match (op, run) {
            (Op::Read, Some(run)) => self.read_issued(run, row),
            // A copy of the page goes into the journal; the page itself is still to be written.
            (Op::Write, Some(run)) if is_journal(bio, run) => self.link(tables::Link {
                kind: "journal",
                ..row
            }),
            (Op::Write, Some(run)) => {
                let range = self.bytes_of(run.index, run.pages);
                self.pages_issued(run.file, run.metadata, range, request)
            }
            _ if bio.is_none() => Ok(()),
            (op, _) => {
                let call = self.calls.get(row.syscall_id);
                let kind = match op {
                    Op::Read => "direct-read",
                    Op::Write if bio.is_some_and(|bio| bio.commit.is_some()) => "journal",
                    Op::Write => "direct-write",
                    Op::Discard | Op::SecureErase => "discard",
                    Op::Flush => "flush",
                    _ => "other",
                };
                let file_id = call.and_then(|call| call.file).map(|(_, file)| file);
                let row = tables::Link {
                    kind,
                    file_id,
                    ..row
                };
                self.link_when_known(row)
            }
        }
    }

    pub(super) fn complete(&mut self, complete: &Complete, at: u64) -> Result<(), Error> {
        let known = self
            .block
            .requests
            .get_mut(&complete.request)
            .filter(|active| active.issued);
        // The flush machinery ends a request a second time, with nothing left.
        let counts = u64::from(complete.bytes > 0 || known.is_some());
        self.counts.completions_without_request.all += counts;
        let Some(active) = known else {
            self.counts.completions_without_request.missing += counts;
            return Ok(());
        };
        active.row.status = active.row.status.max(complete.status.into());
        if complete.remaining_bytes > 0 {
            return Ok(());
        }
        let Some(mut active) = self.block.requests.remove(&complete.request) else {
            return Ok(());
        };
        active.row.completed_ns = Some(at);
        self.end_request(active)
    }

    fn end_request(&mut self, mut active: Active) -> Result<(), Error> {
        let request = active.id;
        active.row.bios = active.bios.len() as u64;
        self.counts.requests_without_bio.all += 1;
        let unknown = active.row.task_id.is_none();
        self.counts.requests_without_bio.missing += u64::from(unknown);
        if matches!(active.row.op, "read" | "write") {
            let told: u64 = active.segments.iter().map(|it| it.bytes).sum();
            self.counts.requests_with_untold_bytes.all += 1;
            self.counts.requests_with_untold_bytes.missing += u64::from(told != active.row.bytes);
        }
        if active.row.op == "write" && active.row.content != "journal" {
            for run in &active.runs {
                let range = self.bytes_of(run.index, run.pages);
                let orphans = self.pages_written(run.file, range, request)?;
                let count = match run.metadata {
                    true => &mut self.counts.written_metadata_without_dirtier,
                    false => &mut self.counts.written_pages_without_dirtier,
                };
                count.all += run.pages;
                count.missing += orphans;
            }
        }
        if let Some(commit) = active.row.commit_id {
            self.journal.carried(commit, active.row.bytes);
        }
        self.store.add(&active.row)?;
        for segment in &active.segments {
            self.store.add(segment)?;
        }
        let most = active
            .dirtiers
            .iter()
            .max_by_key(|(task, bytes)| (**bytes, **task));
        let dirtier = most.map(|(task, _)| *task);
        let calls = active
            .bios
            .iter()
            .filter_map(|bio| self.block.bios.get(bio));
        let calls: Vec<u64> = calls.map(|bio| bio.call).collect();
        for bio in &active.bios {
            self.block.bios.remove(bio);
        }
        for call in calls {
            self.calls.bio_done(call);
        }
        let row = &active.row;
        if let Some(completed_ns) = row.completed_ns {
            self.recent.push(Done {
                request,
                dev: active.dev,
                sector: row.sector,
                sectors: row.bytes.div_ceil(512),
                op: row.op,
                sync: row.sync,
                queued_ns: row.queued_ns.unwrap_or(row.issued_ns),
                issued_ns: row.issued_ns,
                completed_ns,
                submitter: row.task_id,
                origin: dirtier.or(row.task_id),
                commit: row.commit_id,
                runs: active.runs,
            });
        }
        Ok(())
    }

    /// Writes the rows of the requests that are in flight at the end of the recording.
    pub(super) fn end_requests(&mut self) -> Result<(), Error> {
        let mut left: Vec<Active> = self
            .block
            .requests
            .drain()
            .map(|(_, active)| active)
            .filter(|active| active.issued)
            .collect();
        left.sort_unstable_by_key(|active| active.id);
        for active in left {
            self.end_request(active)?;
        }
        Ok(())
    }

    /// Whether the request with this number is still in flight.
    pub(super) fn is_under_way(&self, request: u64) -> bool {
        self.block
            .requests
            .values()
            .any(|active| active.id == request)
    }
}
