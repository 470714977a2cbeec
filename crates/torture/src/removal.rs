//! Removal of the device under load, as when a card is pulled.

use crate::failure::require;
use crate::load::{Load, UNDER_WAY_OPERATIONS};
use crate::test_bed::write;
use crate::volume::Volume;
use crate::{IO_ERRORS_BEGIN, IO_ERRORS_END, Outcome, TestBed};
use std::path::Path;
use std::thread;
use std::time::Duration;

const DRIVER: &str = "/sys/bus/platform/drivers/simflash";
const BOUND: &str = "simflash.0";

/// Number of removals.
const REMOVALS: u32 = 5;

/// Time after which every thread of the load is busy.
const UNDER_WAY: Duration = Duration::from_millis(500);

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    write("/dev/kmsg", IO_ERRORS_BEGIN)?;
    for removal in 0..REMOVALS * bed.rounds {
        remove_under_load(bed, removal)?;
        write(&format!("{DRIVER}/bind"), BOUND)?;
        bed.prepare()?;
    }
    write("/dev/kmsg", IO_ERRORS_END)?;
    bed.reload()
}

fn remove_under_load(bed: &TestBed, removal: u32) -> Outcome<()> {
    let volume = Volume::make(bed)?;
    let load = Load::start(volume.path(), bed.seed + u64::from(removal));
    thread::sleep(UNDER_WAY);
    load.goes_on(UNDER_WAY_OPERATIONS)?;
    write(&format!("{DRIVER}/unbind"), BOUND)?;
    load.ends_by_removal()?;
    require(!Path::new("/sys/block").join(&bed.device).exists(), || {
        format!("{} is still there after its removal", bed.device)
    })?;
    drop(volume);
    crate::test_bed::drop_caches()
}
