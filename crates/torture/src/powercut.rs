//! Power cuts while files are moved by remapping, and recovery.
//!
//! `frontrow-lab powercut` cuts at every operation, on the host. This trial runs a sample of these
//! from end to end, with the kernel's own recovery.

use crate::defrag::{Files, fragmented, holds, is_clean};
use crate::failure::require;
use crate::power::Power;
use crate::volume::{Layout as Made, Volume};
use crate::{Failure, IO_ERRORS_BEGIN, IO_ERRORS_END, Outcome, TestBed, test_bed};
use ::layout::defrag::{Pace, Remap, repair, settle};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Parameters of a small device, whose garbage collection is busy.
const DEVICE: &str = "power_loss=1 capacity_mib=16 spare_percent=12 block_pages=32 log_kib=64";

const MADE: Made = Made {
    options: "discard",
    ..Made::DEFAULT
};

/// Number of programs and erases between the first move and each cut.
const CUTS: [u64; 6] = [1, 2, 3, 5, 8, 12];

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    bed.replace_device(DEVICE)?;
    let mut midway = 0;
    for operations in CUTS {
        for round in 0..u64::from(bed.rounds) {
            let seed = bed.seed + round;
            let came = cut(bed, operations, seed)
                .map_err(|failure| Failure::new(format!("cut at {operations}: {failure}")))?;
            midway += u32::from(came);
        }
    }
    require(midway as usize >= CUTS.len() / 2, || {
        format!("only {midway} cuts came before all files were moved")
    })?;
    bed.replace_device("")
}

/// Cuts the power; whether that was before all files were moved durably.
fn cut(bed: &TestBed, operations: u64, seed: u64) -> Outcome<bool> {
    let volume = Volume::with(bed, MADE)?;
    let files = fragmented(volume.path(), seed)?;
    let power = Power::of(&bed.device_node())?;
    test_bed::write("/dev/kmsg", IO_ERRORS_BEGIN)?;
    power.cut(operations, seed)?;
    let moved = move_all(volume.path(), &files);
    let midway = power.is_off()?;
    if !midway {
        moved?;
        // The cut must precede any other write.
        power.cut(0, seed)?;
    }
    require(power.is_off()?, || "the power is still on".to_owned())?;
    volume.unmount()?;
    power.on()?;
    test_bed::write("/dev/kmsg", IO_ERRORS_END)?;
    crate::test_bed::drop_caches()?;

    let volume = Volume::mount(bed, MADE)?;
    for (path, bytes) in &files {
        holds(path, bytes)?;
    }
    volume.unmount()?;
    is_clean(bed)?;
    Ok(midway)
}

/// Moves all files as `frontrow defrag --mode remap --all` does.
fn move_all(directory: &Path, files: &Files) -> Outcome<()> {
    let never = AtomicBool::new(false);
    let remap = Remap::of(directory).map_err(|error| Failure::new(error.to_string()))?;
    let remap = remap.ok_or_else(|| Failure::new("the device cannot remap"))?;
    for (path, _) in files {
        repair(
            Path::new("/"),
            path,
            Some(&remap),
            &mut Pace::new(None),
            &never,
        )
        .map_err(|refusal| Failure::new(format!("{} was not moved: {refusal}", path.display())))?;
    }
    match files.last() {
        Some((path, _)) => settle(path).map_err(Failure::io("sync", path)),
        None => Ok(()),
    }
}
