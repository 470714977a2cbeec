//! Loading and unloading of the scheduler's module under load.

use crate::failure::require;
use crate::load::{Load, Random};
use crate::stand::{FRONTROW, is_debug_kernel};
use crate::volume::Volume;
use crate::{Failure, Outcome, Stand, module};
use rustix::io::Errno;
use std::thread;
use std::time::Duration;

/// Number of cycles in which the module is loaded, used and unloaded.
const CYCLES: u32 = 50;
const DEBUG_CYCLES: u32 = 6;

pub(crate) fn run(stand: &Stand) -> Outcome<()> {
    let volume = Volume::make(stand)?;
    let load = Load::start(volume.path(), stand.seed);
    refused_in_use(stand)?;
    let mut random = Random::new(stand.seed);
    stand.set("scheduler", "none")?;
    let cycles = if is_debug_kernel() {
        DEBUG_CYCLES
    } else {
        CYCLES
    };
    for _ in 0..cycles * stand.rounds {
        cycle(stand, &mut random)?;
        load.goes_on(1)?;
    }
    load.end()?;
    volume.unmount()
}

/// The unloading of a module in use is refused at once, and has no effect.
fn refused_in_use(stand: &Stand) -> Outcome<()> {
    for module in [stand.scheduler()?, stand.flash()?] {
        let answer = module::try_unload(module);
        require(matches!(answer, Err(Errno::AGAIN | Errno::BUSY)), || {
            format!(
                "module {} is in use and answered its unloading with {answer:?}",
                module::name(module)
            )
        })?;
    }
    let active = stand.get("scheduler")?;
    require(active.contains("[frontrow]"), || {
        format!("after a refused unloading the scheduler is {active}")
    })
}

/// Uses the module and unloads it right after. Tasks that began to sleep in a hook still sleep
/// then.
fn cycle(stand: &Stand, random: &mut Random) -> Outcome<()> {
    module::load(stand.scheduler()?)?;
    stand.set("scheduler", FRONTROW)?;
    thread::sleep(Duration::from_millis(random.below(60) as u64));
    stand.set("scheduler", "none")?;
    match module::try_unload(stand.scheduler()?) {
        Ok(()) => Ok(()),
        // Another task may be using the module, for instance through sysfs.
        Err(Errno::AGAIN | Errno::BUSY) => module::unload(stand.scheduler()?),
        Err(errno) => Err(Failure::new(format!(
            "the scheduler's module is not in use and does not go: {errno}"
        ))),
    }
}
