//! A foreground task waits for a background task's write. The write must inherit the foreground's
//! urgency, whatever the kind of wait.

use crate::backlog::{
    SLOW, awaited_behind_backlog, commit_behind_backlog, inode_behind_backlog, set_mode, sync,
    truncate, write,
};
use crate::failure::require;
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
    for name in [FRONT, BEHIND] {
        let place = directory(name);
        fs::remove_dir(&place).map_err(Failure::io("remove", &place))?;
    }
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

impl Way {
    /// Time of the wait. With `is_lent` the waiter is in the foreground, the writer in the
    /// background, and promotion is on.
    fn takes(&self, bed: &TestBed, is_lent: bool) -> Outcome<Duration> {
        let volume = Volume::with(bed, self.layout)?;
        bed.set("iosched/boost", if is_lent { "all" } else { "none" })?;
        if is_lent {
            bed.set("iosched/foreground", &format!("/{FRONT}"))?;
            bed.set("iosched/background", &format!("/{BEHIND}"))?;
        }
        let took = self.waited(bed, volume.path());
        enter("")?;
        for list in ["foreground", "background"] {
            bed.set(&format!("iosched/{list}"), "none")?;
        }
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
