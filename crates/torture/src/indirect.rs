//! A task waits for a write of a file that does not name its disk: above a RAID1, and on Btrfs, which
//! may be on several. The write is promoted on each disk that has it.

use crate::backlog::{SLOW, awaited_behind_backlog, sync, truncate};
use crate::failure::require;
use crate::inherit::MOST;
use crate::stacked::{on_raid1, second};
use crate::test_bed::FRONTROW;
use crate::volume::{Kind, Layout, Volume};
use crate::{Failure, Outcome, TestBed};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) const MODULES: [&str; 3] = ["md_mod", "raid1", "btrfs"];

/// A way for a task to wait.
type Wait = fn(&File, &Path) -> Outcome<()>;

const SYNCED: (&str, Wait) = ("a file under writeback is synced", sync);
const TRUNCATED: (&str, Wait) = ("a file under writeback is truncated", truncate);

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let as_slow = SLOW.replace('=', ":").replace(' ', ",");
    bed.replace_device(&format!("{SLOW} second={as_slow}"))?;
    let second = second(bed)?;
    second.set("scheduler", FRONTROW)?;
    let disks = [bed, &second];
    on_raid1(&disks, |array| {
        each_is_promoted(&disks, array, Kind::Ext4, &[SYNCED, TRUNCATED])
            .map_err(|failure| Failure::new(format!("above a RAID1: {failure}")))
    })?;
    if Kind::Btrfs.is_known()? {
        each_is_promoted(&disks, bed, Kind::Btrfs, &[SYNCED])
            .map_err(|failure| Failure::new(format!("on Btrfs: {failure}")))?;
    }
    bed.replace_device("")
}

fn each_is_promoted(
    disks: &[&TestBed],
    upper: &TestBed,
    kind: Kind,
    waits: &[(&str, Wait)],
) -> Outcome<()> {
    for (name, wait) in waits {
        let plain = takes(disks, upper, kind, *wait, "none")?;
        let promoted = takes(disks, upper, kind, *wait, "all")?;
        require(promoted.as_secs_f64() <= MOST * plain.as_secs_f64(), || {
            format!("{name}: it took {promoted:?} with promotion, and {plain:?} without")
        })?;
    }
    Ok(())
}

/// Time of the wait with this value of the disks' attribute `boost`.
fn takes(
    disks: &[&TestBed],
    upper: &TestBed,
    kind: Kind,
    wait: Wait,
    boost: &str,
) -> Outcome<Duration> {
    for disk in disks {
        disk.set("iosched/boost", boost)?;
    }
    let layout = Layout {
        kind,
        ..Layout::DEFAULT
    };
    let volume = Volume::with(upper, layout)?;
    let awaited = awaited_behind_backlog(volume.path())?;
    let begin = Instant::now();
    wait(&awaited, volume.path())?;
    let took = begin.elapsed();
    drop(awaited);
    volume.unmount()?;
    Ok(took)
}
