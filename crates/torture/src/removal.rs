//! Removal of the device under load, as when a card is pulled.

use crate::failure::require;
use crate::load::Load;
use crate::test_bed::write;
use crate::volume::Volume;
use crate::{IO_ERRORS_BEGIN, IO_ERRORS_END, Outcome, TestBed, module};
use std::path::Path;
use std::thread;
use std::time::Duration;

const DRIVER: &str = "/sys/bus/platform/drivers/simflash";
const BOUND: &str = "simflash.0";

/// Number of removals.
const REMOVALS: u32 = 5;

/// Time and operations after which every thread of the load is busy.
const UNDER_WAY: Duration = Duration::from_millis(500);
const UNDER_WAY_OPERATIONS: u64 = 32;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    write("/dev/kmsg", IO_ERRORS_BEGIN)?;
    for removal in 0..REMOVALS * bed.rounds {
        remove_under_load(bed, removal)?;
        write(&format!("{DRIVER}/bind"), BOUND)?;
        bed.prepare()?;
    }
    write("/dev/kmsg", IO_ERRORS_END)?;
    // Nothing must hold the modules any more.
    module::unload(bed.flash()?)?;
    module::unload(bed.scheduler()?)?;
    bed.prepare()
}

fn remove_under_load(bed: &TestBed, removal: u32) -> Outcome<()> {
    let volume = Volume::make(bed)?;
    let load = Load::start(volume.path(), bed.seed + u64::from(removal));
    thread::sleep(UNDER_WAY);
    load.goes_on(UNDER_WAY_OPERATIONS)?;
    write(&format!("{DRIVER}/unbind"), BOUND)?;
    // Each thread of the load must end with an error of I/O.
    let met = load.end();
    require(met.is_err(), || {
        "the load noticed nothing of its device's removal".to_owned()
    })?;
    require(!Path::new("/sys/block").join(&bed.device).exists(), || {
        format!("{} is still there after its removal", bed.device)
    })?;
    drop(volume);
    crate::test_bed::drop_caches()
}
