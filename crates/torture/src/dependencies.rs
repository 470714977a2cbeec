//! One wait of each kind after a backlog of background writes. The scheduler must count it under
//! its name, and promote the awaited request unless that promotion is off.

use crate::backlog::{
    BACKLOG_BYTES, SLOW, SMALL_MIB, allocate_during_discards, awaited_behind_backlog,
    closed_beside_backlog, commit_behind_backlog, create, fill, inode_behind_backlog, queue,
    queue_metadata, set_mode, settled, sync, truncate, write,
};
use crate::failure::require;
use crate::test_bed::with_dirty_limits;
use crate::volume::{Layout, Volume};
use crate::{Failure, Outcome, TestBed};
use module::sched::{Counters, Dependency};
use std::collections::BTreeMap;
use std::path::Path;
use sys::device::PAGE_BYTES;

/// A way to make a task wait.
struct Case {
    name: &'static str,
    dependency: Dependency,
    layout: Layout,
    wait: fn(&TestBed, &Path) -> Outcome<()>,
}

const TRIES: usize = 5;

const CASES: [Case; 8] = [
    Case {
        name: "a page under writeback is modified",
        dependency: Dependency::Data,
        layout: Layout::DEFAULT,
        wait: modify_page,
    },
    Case {
        name: "a file under writeback is synced",
        dependency: Dependency::Data,
        layout: Layout::DEFAULT,
        wait: sync_file,
    },
    Case {
        name: "a file under writeback is truncated",
        dependency: Dependency::Data,
        layout: Layout::DEFAULT,
        wait: truncate_file,
    },
    Case {
        name: "a metadata block under writeback is modified",
        dependency: Dependency::Meta,
        layout: Layout::DEFAULT,
        wait: modify_metadata,
    },
    Case {
        name: "a commit waits for a new file's data",
        dependency: Dependency::Journal,
        layout: Layout {
            // With this option blocks are written before their extents, so the commit waits for
            // them.
            options: "dioread_lock",
            ..Layout::DEFAULT
        },
        wait: commit,
    },
    Case {
        name: "an allocation finds no space while discards are under way",
        dependency: Dependency::Discard,
        layout: Layout {
            mib: Some(SMALL_MIB),
            options: "discard",
            ..Layout::DEFAULT
        },
        wait: fill_up,
    },
    Case {
        name: "an inode under writeback is synced, without a journal",
        dependency: Dependency::Meta,
        layout: Layout {
            without_journal: true,
            ..Layout::DEFAULT
        },
        wait: sync_metadata,
    },
    Case {
        name: "a file is removed and its blocks discarded, without a journal",
        dependency: Dependency::Discard,
        layout: Layout {
            options: "discard",
            without_journal: true,
            ..Layout::DEFAULT
        },
        wait: remove,
    },
];

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    bed.replace_device(SLOW)?;
    each_case(bed, Boost::All, &|_| true)?;
    a_throttled_task_is_seen(bed)?;
    each_probe_was_hit(&bed.counters()?)?;
    bed.replace_device("")
}

/// Detection by tracepoints, as on a kernel without return probes. It misses waits for metadata
/// blocks and for discards.
pub(crate) fn run_without_probes(bed: &TestBed) -> Outcome<()> {
    bed.replace_device(SLOW)?;
    without_probes(bed, &|| {
        each_case(bed, Boost::All, &is_seen_without_probes)?;
        a_throttled_task_is_seen(bed)?;
        each_tracepoint_was_hit(&bed.counters()?)
    })?;
    bed.replace_device("")
}

/// Promotion that is off, with each of both ways of detection.
pub(crate) fn run_without_promotion(bed: &TestBed) -> Outcome<()> {
    bed.replace_device(SLOW)?;
    each_case(bed, Boost::None, &|_| true)?;
    without_probes(bed, &|| {
        each_case(bed, Boost::None, &is_seen_without_probes)
    })?;
    bed.replace_device("")
}

fn without_probes(bed: &TestBed, trial: &dyn Fn() -> Outcome<()>) -> Outcome<()> {
    let (with_probes, without_probes) = bed.schedulers_modules()?;
    bed.replace_scheduler(&without_probes)?;
    trial()?;
    bed.replace_scheduler(with_probes)
}

fn is_seen_without_probes(case: &Case) -> bool {
    matches!(case.dependency, Dependency::Data | Dependency::Journal)
}

/// A task that dirties more pages than it may sleeps until some are written, for no file of its own.
fn a_throttled_task_is_seen(bed: &TestBed) -> Outcome<()> {
    let volume = Volume::with(bed, Layout::DEFAULT)?;
    let file = create(&volume.path().join("dirty"), PAGE_BYTES)?;
    let before = bed.counters()?;
    with_dirty_limits("1048576", "2097152", || {
        write(&file, volume.path(), BACKLOG_BYTES)
    })?;
    let counted = bed.counters()?.since(&before);
    drop(file);
    volume.unmount()?;
    require(
        counted.all().get("throttled").is_some_and(|it| *it > 0),
        || format!("no task was throttled; counted were {:?}", counted.all()),
    )
}

/// Checks that waits for folios were detected, and that each fsync has an end.
fn each_tracepoint_was_hit(counters: &Counters) -> Outcome<()> {
    let hits: BTreeMap<&str, u64> = counters.tracepoint_hits().into_iter().collect();
    let of = |name: &str| hits.get(name).copied().unwrap_or_default();
    let fsyncs = of("ext4_sync_file_enter");
    require(
        of("folio_wait_writeback") > 0 && fsyncs > 0 && fsyncs == of("ext4_sync_file_exit"),
        || format!("tracepoints hit: {hits:?}"),
    )
}

/// An fsync enters at least one of these; which ones are inlined depends on the kernel.
const FSYNC: [&str; 3] = ["do_fsync", "vfs_fsync", "vfs_fsync_range"];

/// Checks that each probe was hit: a function that the compiler inlined would not be.
fn each_probe_was_hit(counters: &Counters) -> Outcome<()> {
    let hits = counters.probe_hits();
    let (fsync, others): (Vec<_>, Vec<_>) = hits
        .iter()
        .partition(|(function, _)| FSYNC.contains(function));
    let is_seen = fsync.iter().any(|(_, hits)| *hits > 0);
    require(
        is_seen && !others.is_empty() && others.iter().all(|(_, hits)| *hits > 0),
        || format!("probes hit: {hits:?}"),
    )
}

/// Value of the disk's attribute `boost`: whether awaited requests are promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Boost {
    All,
    None,
}

fn each_case(bed: &TestBed, boost: Boost, is_tried: &dyn Fn(&Case) -> bool) -> Outcome<()> {
    let value = match boost {
        Boost::All => "all",
        Boost::None => "none",
    };
    bed.set("iosched/boost", value)?;
    for case in CASES.iter().filter(|case| is_tried(case)) {
        let counted = case.until_somebody_waits(bed)?;
        case.judge(&counted, boost)
            .map_err(|failure| Failure::new(format!("boost={value}: {failure}")))?;
    }
    bed.set("iosched/boost", "all")
}

impl Case {
    /// Repeats the case until a task waits. On a starved machine the write may be done before the
    /// task begins to wait.
    fn until_somebody_waits(&self, bed: &TestBed) -> Outcome<Counters> {
        let mut counted = self.perform(bed)?;
        for _ in 1..TRIES {
            if counted.waits(self.dependency).waits > 0 {
                break;
            }
            counted = self.perform(bed)?;
        }
        Ok(counted)
    }

    /// Runs the case and returns what the scheduler counted.
    fn perform(&self, bed: &TestBed) -> Outcome<Counters> {
        let volume = Volume::with(bed, self.layout)?;
        let before = bed.counters()?;
        (self.wait)(bed, volume.path())?;
        let counted = bed.counters()?.since(&before);
        volume.unmount()?;
        Ok(counted)
    }

    fn judge(&self, counted: &Counters, boost: Boost) -> Outcome<()> {
        let of = |dependency: Dependency, what: &str| {
            let name = format!("{}_{what}", dependency.name());
            counted.all().get(&name).copied().unwrap_or_default()
        };
        let (waits, boosted) = (of(self.dependency, "waits"), of(self.dependency, "boosted"));
        let all = || format!("counted were {:?}", counted.all());
        require(waits > 0, || {
            format!("{}: no such wait was counted; {}", self.name, all())
        })?;
        let promoted: u64 = Dependency::ALL
            .iter()
            .map(|it| of(*it, "boosted") + of(*it, "requests"))
            .sum();
        match boost {
            // The sync of a file continues with the next page. The first wait has promoted all
            // pages, and the device already has the next ones.
            Boost::All => require(boosted > 0, || {
                format!("{}: it was not promoted; {}", self.name, all())
            }),
            Boost::None => require(promoted == 0, || {
                format!("{}: something was promoted; {}", self.name, all())
            }),
        }
    }
}

fn modify_page(_: &TestBed, directory: &Path) -> Outcome<()> {
    let awaited = awaited_behind_backlog(directory)?;
    write(&awaited, directory, 1)
}

fn sync_file(_: &TestBed, directory: &Path) -> Outcome<()> {
    let awaited = awaited_behind_backlog(directory)?;
    sync(&awaited, directory)
}

fn truncate_file(_: &TestBed, directory: &Path) -> Outcome<()> {
    let awaited = awaited_behind_backlog(directory)?;
    truncate(&awaited, directory)
}

fn modify_metadata(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let awaited = inode_behind_backlog(bed, directory)?;
    set_mode(&awaited, directory, 0o640)
}

/// The inode's block is under writeback when the inode has to be written.
fn sync_metadata(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let (backlog, awaited) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    set_mode(&awaited, directory, 0o600)?;
    queue(&backlog, directory)?;
    queue_metadata(bed)?;
    set_mode(&awaited, directory, 0o640)?;
    sync(&awaited, directory)
}

/// A task that frees blocks waits until the device has discarded them.
fn remove(_: &TestBed, directory: &Path) -> Outcome<()> {
    let path = closed_beside_backlog(directory)?;
    std::fs::remove_file(&path).map_err(Failure::io("remove", &path))
}

/// The sync of another file commits the transaction.
fn commit(_: &TestBed, directory: &Path) -> Outcome<()> {
    let other = commit_behind_backlog(directory)?;
    write(&other, directory, PAGE_BYTES)?;
    sync(&other, directory)
}

fn fill_up(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let path = directory.join("all");
    let file = create(&path, PAGE_BYTES)?;
    let end = fill(&file, &path)?;
    allocate_during_discards(bed, (&file, &path), end)
}
