//! A snapshot of a fragmented file system's layout, saved and restored on the same device.

use super::{FILE_BYTES, Files, fragmented, holds, is_clean, layout, sync};
use crate::failure::require;
use crate::volume::{Layout as Made, Volume};
use crate::{Failure, Outcome, TestBed};
use std::fs::File;
use std::sync::atomic::AtomicBool;

/// A trial goes on after a snapshot.
const RIGHTS_STAY: layout::snapshot::Confine<'static> = &|_| Ok(());

/// Checks that each file has its old place and size, and contains zeros.
pub(super) fn run(bed: &TestBed, made: Made) -> Outcome<()> {
    let volume = Volume::with(bed, made)?;
    let files = fragmented(volume.path(), bed.seed)?;
    sync(volume.path())?;
    let before = places(&files)?;
    let directory = tempfile::tempdir()
        .map_err(|error| Failure::new(format!("it cannot make a directory: {error}")))?;
    let snapshot = directory.path().join("snapshot");
    let node = bed.device_node();
    let stop = AtomicBool::new(false);
    let refused = layout::snapshot::save(&node, &snapshot, RIGHTS_STAY, &stop);
    require(
        matches!(refused, Err(layout::snapshot::Error::Mounted(_))),
        || format!("a file system that is mounted was saved: {refused:?}"),
    )?;
    volume.unmount()?;
    let failed = |error: layout::snapshot::Error| Failure::new(error.to_string());
    layout::snapshot::save(&node, &snapshot, RIGHTS_STAY, &stop).map_err(failed)?;
    overwrite(bed)?;
    layout::snapshot::restore(&snapshot, &node, &mut |_, _| {}, RIGHTS_STAY, &stop)
        .map_err(failed)?;
    is_clean(bed)?;
    let volume = Volume::mount(bed, made)?;
    require(places(&files)? == before, || {
        "files lie elsewhere after a snapshot was restored".to_owned()
    })?;
    for (path, _) in &files {
        holds(path, &vec![0; FILE_BYTES])?;
    }
    let refused = layout::snapshot::restore(&snapshot, &node, &mut |_, _| {}, RIGHTS_STAY, &stop);
    require(refused.is_err(), || {
        "a file system was laid out on a device in use".to_owned()
    })?;
    volume.unmount()
}

fn places(files: &Files) -> Outcome<Vec<Vec<sys::device::Extent>>> {
    let runs = files.iter().map(|(path, _)| Ok(layout(path)?.runs()));
    runs.collect()
}

/// Overwrites the old file system.
fn overwrite(bed: &TestBed) -> Outcome<()> {
    let node = bed.device_node();
    let failed = |error| Failure::io("overwrite", &node)(error);
    let mut device = File::options().write(true).open(&node).map_err(failed)?;
    let bytes = u64::from(super::VOLUME_MIB) << 20;
    let mut junk = std::io::Read::take(std::io::repeat(0xa5), bytes);
    std::io::copy(&mut junk, &mut device).map_err(failed)?;
    device.sync_all().map_err(failed)
}
