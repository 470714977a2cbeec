//! A task waits above a RAID1 for a write that is queued on both disks. Each must promote it, since
//! the task waits for the slower one.

use crate::backlog::{awaited_behind_backlog, sync};
use crate::failure::require;
use crate::stacked::{on_raid1, second};
use crate::test_bed::FRONTROW;
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) const MODULES: [&str; 2] = ["md_mod", "raid1"];

/// Two devices that are as slow as [`crate::backlog::SLOW`].
const SLOW: &str = "program_ns=8960000 program_upper_ns=8960000 \
                    second=program_ns:8960000,program_upper_ns:8960000";

/// Largest part of the time that the same wait takes without promotion. The backlog takes two
/// seconds; the awaited write, and what the devices already have, take a tenth of that.
const MOST: f64 = 0.4;

/// A way for a task to wait.
type Wait = fn(&File, &Path) -> Outcome<()>;

const WAITS: [(&str, Wait); 2] = [
    ("a file under writeback is synced", sync),
    ("a file under writeback is truncated", |file, path| {
        file.set_len(0).map_err(Failure::io("truncate", path))
    }),
];

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    bed.replace_device(SLOW)?;
    let second = second(bed)?;
    second.set("scheduler", FRONTROW)?;
    let disks = [bed, &second];
    on_raid1(&disks, |array| {
        for (name, wait) in WAITS {
            let plain = takes(&disks, array, wait, "none")?;
            let promoted = takes(&disks, array, wait, "all")?;
            require(promoted.as_secs_f64() <= MOST * plain.as_secs_f64(), || {
                format!("{name}: it took {promoted:?} with promotion, and {plain:?} without")
            })?;
        }
        Ok(())
    })?;
    bed.replace_device("")
}

/// Time of the wait with this value of the attribute `boost`.
fn takes(disks: &[&TestBed], array: &TestBed, wait: Wait, boost: &str) -> Outcome<Duration> {
    for disk in disks {
        disk.set("iosched/boost", boost)?;
    }
    let volume = Volume::make(array)?;
    let awaited = awaited_behind_backlog(volume.path())?;
    let begin = Instant::now();
    wait(&awaited, volume.path())?;
    let took = begin.elapsed();
    drop(awaited);
    volume.unmount()?;
    Ok(took)
}
