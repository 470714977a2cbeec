//! Linking: the whole life of each I/O, from the events of a recording to the [`crate::tables`].
//!
//! Events come in the order of time, and each is read once. The memory for their context is
//! bounded: calls, bios and requests in flight, living threads, the latest completed requests, and
//! the dirty bytes of files. The last are moved to disk where they do not fit ([`regions`]).
//!
//! A *page version* is a page from the moment it becomes dirty until it is taken for writeback.
//! Several calls may have a part in one; see [`writes`].

mod block;
mod calls;
mod files;
mod history;
mod interval;
mod journal;
mod reads;
mod recent;
mod regions;
mod ring;
mod tasks;
mod waits;
mod writes;

pub(crate) use recent::Done;

use crate::event::{Event, LostKind, What};
use crate::recording::{Ending, Header, Reader, Target};
use crate::store::{Error, Store};
use crate::tables;
use crate::wait;
use block::Block;
use calls::Calls;
use files::Files;
use history::History;
use journal::Journal;
use recent::Recent;
use regions::Regions;
use ring::Rings;
use std::io::Read;
use std::path::Path;
use tasks::Tasks;

/// Memory for dirty and fetched ranges; the rest is on disk.
const REGION_BUDGET_BYTES: usize = 64 << 20;

/// Events between two reports of progress.
const EVENTS_PER_PROGRESS: u64 = 1 << 14;

/// Tasks whose waiting is of interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreground {
    /// All tasks but the kernel's threads.
    Everybody,
    /// The process with this id, and its children.
    Process(u32),
    /// Processes or threads with this name.
    Name(String),
    /// Cgroup with this path, and those below it.
    Cgroup(String),
}

impl Foreground {
    /// Parses a user's argument: a process id, a cgroup's path, or a name.
    pub fn named(name: &str) -> Foreground {
        match name.parse() {
            Ok(process) => Foreground::Process(process),
            Err(_) if name.starts_with('/') => Foreground::Cgroup(name.to_owned()),
            Err(_) => Foreground::Name(name.to_owned()),
        }
    }

    /// The foreground of the recording's own target.
    pub fn of(target: &Target) -> Foreground {
        match target {
            Target::System => Foreground::Everybody,
            Target::Process { pid } | Target::Command { pid, .. } => Foreground::Process(*pid),
            Target::Cgroup { path, .. } => Foreground::Cgroup(path.clone()),
        }
    }

    fn is_cgroup(&self, path: &str) -> bool {
        let Foreground::Cgroup(wanted) = self else {
            return false;
        };
        let below = path.strip_prefix(wanted.trim_end_matches('/'));
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }
}

/// How often something could not be linked, and out of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    missing: u64,
    all: u64,
}

/// Counts of things that could not be linked, by kind.
#[derive(Clone, Debug, Default)]
struct Counts {
    requests_without_bio: Count,
    requests_with_untold_bytes: Count,
    bios_without_task: Count,
    written_pages_without_dirtier: Count,
    written_metadata_without_dirtier: Count,
    completions_without_request: Count,
    waits_without_request: Count,
}

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
        let event = event.map_err(|source| Error::File {
            path: path.to_owned(),
            source,
        })?;
        linker.event(&event)?;
        count += 1;
        if count.is_multiple_of(EVENTS_PER_PROGRESS) {
            progress(events.read_bytes());
        }
    }
    let damaged = events.damaged_records();
    if damaged > 0 {
        property(&mut linker.store, "damaged_records", damaged.to_string())?;
    }
    linker.finish(events.ending())
}

/// Fills a store from events.
#[derive(Debug)]
pub struct Linker {
    store: Store,
    tasks: Tasks,
    files: Files,
    calls: Calls,
    rings: Rings,
    regions: Regions,
    block: Block,
    recent: Recent,
    journal: Journal,
    history: History,
    counts: Counts,
    page_bytes: u64,
    last_ns: u64,
    links: u64,
    waits: u64,
}

impl Linker {
    /// Links a recording with this header. `foreground` replaces the recording's target if it is
    /// given.
    pub fn new(
        header: &Header,
        foreground: Option<Foreground>,
        mut store: Store,
    ) -> Result<Linker, Error> {
        describe(header, &foreground, &mut store)?;
        let foreground = foreground.unwrap_or_else(|| Foreground::of(&header.target));
        Ok(Linker {
            tasks: Tasks::new(foreground),
            files: Files::new(header, &mut store)?,
            store,
            calls: Calls::default(),
            rings: Rings::default(),
            regions: Regions::new(REGION_BUDGET_BYTES),
            block: Block::new(header),
            recent: Recent::default(),
            journal: Journal::default(),
            history: History::default(),
            counts: Counts::default(),
            page_bytes: header.page_bytes.max(1),
            last_ns: header.begin_ns,
            links: 0,
            waits: 0,
        })
    }

    /// Takes the next event, in the order of time.
    pub fn event(&mut self, event: &Event) -> Result<(), Error> {
        self.last_ns = self.last_ns.max(event.time_ns);
        let at = event.time_ns;
        match &event.what {
            What::CallEnter(call) => self.call_enter(event, call),
            What::CallExit(exit) => self.call_exit(event, exit),
            What::RingSubmit(submit) => self.ring_submit(event, submit),
            What::RingComplete(complete) => self.ring_complete(event, complete),
            // Pages that are read are linked by the segments of their requests.
            What::Added(_) => Ok(()),
            What::Dirtied(run) => self.dirtied(event, run),
            What::Cleaned(run) => self.cleaned(run, at),
            What::Truncated(truncated) => self.truncated(truncated, at),
            What::Writeback(writeback) => self.writeback(event, writeback),
            What::Queue(queue) => self.queue(event, queue),
            What::Merge(merge) => {
                self.block.merged(merge.bio);
                Ok(())
            }
            What::Split(split) => {
                self.block.split(split);
                Ok(())
            }
            What::Insert(request) => {
                self.block.inserted(request, at);
                Ok(())
            }
            What::RequestMerge(request) => {
                self.block.absorbed(request.request);
                Ok(())
            }
            What::Issue(request) => self.issue(request, at),
            What::Segment(segment) => self.segment(segment, at),
            What::Requeue(request) => {
                self.block.requeued(request.request);
                Ok(())
            }
            What::Complete(complete) => self.complete(complete, at),
            // The requests' times contain the time in a plug.
            What::Unplug { .. } => Ok(()),
            What::Commit(commit) => self.commit(event, commit),
            What::Joined(transaction) => self.joined(event, *transaction),
            What::Blocked(blocked) => self.blocked(event, blocked),
            // The blocked intervals contain what a thread waited for in reclaim.
            What::Reclaim { .. } => Ok(()),
            What::Thread(info) => self.tasks.told(info, &mut self.store),
            What::ThreadEnd => self.thread_end(event.thread),
            What::Name(name) => self.files.named(at, name, &mut self.store),
            What::Cgroup { id, path } => self.tasks.cgroup(*id, path, &mut self.store),
            What::Stack { id, functions } => self.store.add(&tables::Stack {
                stack_id: u64::from(*id),
                functions: functions.join(" < "),
            }),
            What::Lost(lost) => self.store.add(&tables::Lost {
                time_ns: at,
                kind: lost_name(lost.kind),
                events: lost.count,
            }),
        }
    }

    /// Writes the rows of all that is still open, and returns the store.
    pub fn finish(mut self, ending: Option<Ending>) -> Result<Store, Error> {
        let (ending, end_ns) = match ending {
            Some(Ending::Complete { end_ns }) => ("complete", end_ns),
            Some(Ending::Damaged) => ("damaged", self.last_ns),
            Some(Ending::CutShort) | None => ("cut short", self.last_ns),
        };
        self.end_calls(end_ns)?;
        self.end_requests()?;
        self.end_versions(end_ns)?;
        self.end_commits()?;
        property(&mut self.store, "end_ns", end_ns.to_string())?;
        property(&mut self.store, "ending", ending.to_owned())?;
        self.write_counts()?;
        wait::complete(&self.store)?;
        self.store.finish()?;
        Ok(self.store)
    }

    fn link(&mut self, mut row: tables::Link) -> Result<(), Error> {
        self.links += 1;
        row.link_id = self.links;
        self.store.add(&row)
    }

    fn write_counts(&mut self) -> Result<(), Error> {
        let counts = self.counts.clone();
        let unlinked = [
            ("requests without bio", counts.requests_without_bio),
            (
                "requests with untold bytes",
                counts.requests_with_untold_bytes,
            ),
            ("bios without task", counts.bios_without_task),
            (
                "written pages without dirtier",
                counts.written_pages_without_dirtier,
            ),
            (
                "written metadata pages without dirtier",
                counts.written_metadata_without_dirtier,
            ),
            (
                "completions without request",
                counts.completions_without_request,
            ),
            ("waits without request", counts.waits_without_request),
        ];
        for (kind, count) in unlinked {
            self.store.add(&tables::Unlinked {
                kind,
                missing: count.missing,
                total: count.all,
            })?;
        }
        Ok(())
    }
}

fn lost_name(kind: LostKind) -> &'static str {
    match kind {
        LostKind::Calls => "calls",
        LostKind::Pages => "page cache",
        LostKind::Block => "block layer",
        LostKind::Segments => "contents of requests",
        LostKind::Journal => "journal",
        LostKind::Blocked => "blocked intervals",
        LostKind::Names => "names",
        LostKind::Missed => "programs not run",
        LostKind::Threads => "threads beyond the limit",
        LostKind::LongRequests => "ends of long requests",
    }
}

fn property(store: &mut Store, name: &str, value: String) -> Result<(), Error> {
    store.add(&tables::Property {
        name: name.to_owned(),
        value,
    })
}

/// Writes the properties of the whole recording, its disks and its cgroups.
fn describe(
    header: &Header,
    foreground: &Option<Foreground>,
    store: &mut Store,
) -> Result<(), Error> {
    let target = match (&header.target, foreground) {
        (_, Some(Foreground::Process(process))) => format!("process {process}"),
        (_, Some(Foreground::Name(name))) => name.clone(),
        (_, Some(Foreground::Cgroup(path))) => format!("cgroup {path}"),
        (_, Some(Foreground::Everybody)) | (Target::System, None) => "everybody".to_owned(),
        (Target::Process { pid }, None) => format!("process {pid}"),
        (Target::Cgroup { path, .. }, None) => format!("cgroup {path}"),
        (Target::Command { command, .. }, None) => command.join(" "),
    };
    let properties = [
        ("frontrow", header.frontrow.clone()),
        ("kernel", header.kernel.clone()),
        ("machine", header.machine.clone()),
        ("page_bytes", header.page_bytes.to_string()),
        ("cpus", header.cpus.to_string()),
        ("begin_ns", header.begin_ns.to_string()),
        ("realtime_offset_ns", header.realtime_offset_ns.to_string()),
        ("target", target),
    ];
    for (name, value) in properties {
        // Names and commands may contain line ends; each value is one line.
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        property(store, name, value)?;
    }
    for sentence in &header.missing {
        property(store, "missing", sentence.clone())?;
    }
    let mounted = |dev| header.mounts.iter().find(|mount| mount.dev == dev);
    for disk in &header.disks {
        store.add(&tables::Device {
            device_id: disk.dev.0.into(),
            number: disk.dev.to_string(),
            name: disk.name.clone(),
            sectors: Some(disk.sectors),
            scheduler: Some(disk.scheduler.clone()),
            nr_requests: Some(disk.nr_requests.into()),
            mounted_at: mounted(disk.dev).map(|mount| mount.path.clone()),
            file_system: mounted(disk.dev).map(|mount| mount.kind.clone()),
            ..tables::Device::default()
        })?;
        for part in &disk.partitions {
            store.add(&tables::Device {
                device_id: part.dev.0.into(),
                number: part.dev.to_string(),
                name: part.name.clone(),
                disk_id: Some(disk.dev.0.into()),
                start_sector: Some(part.start_sector),
                sectors: Some(part.sectors),
                mounted_at: mounted(part.dev).map(|mount| mount.path.clone()),
                file_system: mounted(part.dev).map(|mount| mount.kind.clone()),
                ..tables::Device::default()
            })?;
        }
    }
    Ok(())
}
