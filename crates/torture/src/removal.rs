//! Removal of the device under load, as when a card is pulled.

use crate::failure::require;
use crate::load::Load;
use crate::stand::{self, write};
use crate::volume::Volume;
use crate::{IO_ERRORS_BEGIN, IO_ERRORS_END, Outcome, Stand, module};
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

pub(crate) fn run(stand: &Stand) -> Outcome<()> {
    write("/dev/kmsg", IO_ERRORS_BEGIN)?;
    for removal in 0..REMOVALS * stand.rounds {
        remove_under_load(stand, removal)?;
        write(&format!("{DRIVER}/bind"), BOUND)?;
        stand.prepare()?;
    }
    write("/dev/kmsg", IO_ERRORS_END)?;
    // Nothing must hold the modules any more.
    module::unload(stand.flash()?)?;
    module::unload(stand.scheduler()?)?;
    stand.prepare()
}

fn remove_under_load(stand: &Stand, removal: u32) -> Outcome<()> {
    let volume = Volume::make(stand)?;
    let load = Load::start(volume.path(), stand.seed + u64::from(removal));
    thread::sleep(UNDER_WAY);
    load.goes_on(UNDER_WAY_OPERATIONS)?;
    write(&format!("{DRIVER}/unbind"), BOUND)?;
    // Each thread of the load must end with an error of I/O.
    let met = load.end();
    require(met.is_err(), || {
        "the load noticed nothing of its device's removal".to_owned()
    })?;
    require(
        !Path::new("/sys/block").join(&stand.device).exists(),
        || format!("{} is still there after its removal", stand.device),
    )?;
    drop(volume);
    stand::write("/proc/sys/vm/drop_caches", "3")
}
