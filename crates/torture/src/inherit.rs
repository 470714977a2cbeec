//! A foreground task waits for a background task's write. The write must inherit the foreground's
//! urgency, whatever the kind of wait.

use crate::backlog::{
    AWAITED_BYTES, BACKLOG_BYTES, SLOW, awaited_behind_backlog, commit_behind_backlog, create,
    inode_behind_backlog, queue, queue_by_workers, set_mode, settled, sync, truncate, write,
};
use crate::failure::require;
use crate::test_bed::set_controllers;
use crate::trace::{Class, Events, Tracing};
use crate::volume::{Layout, Volume};
use crate::{Failure, Outcome, TestBed};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::device::PAGE_BYTES;

/// A way for a task to wait for another task's write.
struct Way {
    name: &'static str,
    layout: Layout,
    /// Queues a backlog, and after it the awaited write; returns the file to wait with.
    prepare: fn(&TestBed, &Path) -> Outcome<File>,
    wait: fn(&File, &Path) -> Outcome<()>,
}

const CGROUPS: &str = "/sys/fs/cgroup";
const FRONT: &str = "torture-front";
const BEHIND: &str = "torture-behind";

/// Largest part of the time that the same wait takes without promotion and without a foreground.
/// The backlog takes two seconds; the awaited write, and what the device already has, take a tenth
/// of that.
pub(crate) const MOST: f64 = 0.4;

/// Requests so small that the backlog takes all tags it may have, and that the worker's first bio is
/// cut into several. The block layer offers none of these to be merged.
const REQUEST_BYTES: usize = 32 << 10;

/// Number of requests of the backlog that the device may take while the worker works: one, and some
/// with a kernel that checks everything. A worker that sleeps for a tag waits for 24 to 32.
const MOST_MEANWHILE: usize = 10;

const WAYS: [Way; 5] = [
    Way {
        name: "a page under writeback is modified",
        layout: Layout::DEFAULT,
        prepare: |_, directory| awaited_behind_backlog(directory),
        wait: |file, path| write(file, path, 1),
    },
    Way {
        name: "a file under writeback is synced",
        layout: Layout::DEFAULT,
        prepare: |_, directory| awaited_behind_backlog(directory),
        wait: sync,
    },
    Way {
        name: "a file under writeback is truncated",
        layout: Layout::DEFAULT,
        prepare: |_, directory| awaited_behind_backlog(directory),
        wait: truncate,
    },
    Way {
        name: "a metadata block under writeback is modified",
        layout: Layout::DEFAULT,
        prepare: inode_behind_backlog,
        wait: |file, path| set_mode(file, path, 0o640),
    },
    Way {
        name: "a commit waits for another file's data",
        layout: Layout {
            options: "dioread_lock",
            ..Layout::DEFAULT
        },
        prepare: |_, directory| commit_behind_backlog(directory),
        wait: |file, path| write(file, path, PAGE_BYTES).and_then(|()| sync(file, path)),
    },
];

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    bed.replace_device(SLOW)?;
    // Writeback is charged to the cgroup whose pages it writes.
    set_controllers("+memory +io")?;
    for name in [FRONT, BEHIND] {
        let place = directory(name);
        fs::create_dir_all(&place).map_err(Failure::io("make", &place))?;
    }
    for way in &WAYS {
        let plain = way.takes(bed, false)?;
        let lent = way.takes(bed, true)?;
        require(lent.as_secs_f64() <= MOST * plain.as_secs_f64(), || {
            format!(
                "{}: it took {lent:?} with a foreground, and {plain:?} without",
                way.name
            )
        })?;
    }
    let taken = taken_by_a_worker(bed)?;
    for name in [FRONT, BEHIND] {
        let place = directory(name);
        fs::remove_dir(&place).map_err(Failure::io("remove", &place))?;
    }
    set_controllers("-memory -io")?;
    judge_taken(&taken)?;
    bed.replace_device("")
}

fn directory(cgroup: &str) -> PathBuf {
    Path::new(CGROUPS).join(cgroup)
}

/// Moves this process into a cgroup.
fn enter(cgroup: &str) -> Outcome<()> {
    let procs = directory(cgroup).join("cgroup.procs");
    fs::write(&procs, "0").map_err(Failure::io("write", &procs))
}

/// Does `work`, which enters cgroups, and leaves them.
fn back_from<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let done = work();
    enter("")?;
    done
}

/// The same while the cgroups have their roles.
fn with_roles<T>(bed: &TestBed, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    bed.set("iosched/foreground", &format!("/{FRONT}"))?;
    bed.set("iosched/background", &format!("/{BEHIND}"))?;
    let done = back_from(work);
    for list in ["foreground", "background"] {
        bed.set(&format!("iosched/{list}"), "none")?;
    }
    done
}

impl Way {
    /// Time of the wait. With `is_lent` the waiter is in the foreground, the writer in the
    /// background, and promotion is on.
    fn takes(&self, bed: &TestBed, is_lent: bool) -> Outcome<Duration> {
        let volume = Volume::with(bed, self.layout)?;
        bed.set("iosched/boost", if is_lent { "all" } else { "none" })?;
        let wait = || self.waited(bed, volume.path());
        let took = if is_lent {
            with_roles(bed, wait)
        } else {
            back_from(wait)
        };
        bed.set("iosched/boost", "all")?;
        volume.unmount()?;
        took
    }

    fn waited(&self, bed: &TestBed, directory: &Path) -> Outcome<Duration> {
        enter(BEHIND)?;
        let file = (self.prepare)(bed, directory)?;
        enter(FRONT)?;
        let begun = Instant::now();
        (self.wait)(&file, directory)?;
        Ok(begun.elapsed())
    }
}

/// The foreground syncs a file that a worker has taken for writeback, while others hold all tags
/// that workers may have for files of others.
fn taken_by_a_worker(bed: &TestBed) -> Outcome<Events> {
    let volume = Volume::make(bed)?;
    let events = with_roles(bed, || synced_beside_backlog(bed, volume.path()));
    volume.unmount()?;
    events
}

fn synced_beside_backlog(bed: &TestBed, directory: &Path) -> Outcome<Events> {
    bed.set("max_sectors_kb", &(REQUEST_BYTES >> 10).to_string())?;
    let (backlog, _) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    queue(&backlog, directory)?;
    enter(FRONT)?;
    let path = directory.join("new");
    let file = create(&path, AWAITED_BYTES)?;
    let tracing = Tracing::start()?;
    queue_by_workers()?;
    sync(&file, &path)?;
    tracing.finish()
}

fn judge_taken(events: &Events) -> Outcome<()> {
    const REQUESTS: usize = AWAITED_BYTES / REQUEST_BYTES;
    let dispatches = events.dispatches.iter();
    let inserted: Vec<usize> = dispatches
        .filter(|it| matches!(it.class, Class::FgWrite | Class::FgAsync))
        .filter_map(|it| it.inserted_line)
        .take(REQUESTS)
        .collect();
    require(inserted.len() == REQUESTS, || {
        "the worker did not write the file".to_owned()
    })?;
    let last = inserted.iter().max();
    let meanwhile = events
        .dispatches
        .iter()
        .filter(|it| it.class == Class::Async && Some(&it.line) < last)
        .count();
    require(meanwhile <= MOST_MEANWHILE, || {
        format!(
            "a worker slept for a tag with the foreground's pages, for the time of {meanwhile} requests"
        )
    })
}
