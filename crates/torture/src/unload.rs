//! Loading and unloading of the scheduler's module under load.

use crate::failure::require;
use crate::load::Load;
use crate::test_bed::{FRONTROW, is_debug_kernel};
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed, module};
use rustix::io::Errno;
use std::thread;
use std::time::Duration;
use sys::random::Random;

/// Number of cycles in which the module is loaded, used and unloaded.
const CYCLES: u32 = 12;
const DEBUG_CYCLES: u32 = 6;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let volume = Volume::make(bed)?;
    let load = Load::start(volume.path(), bed.seed);
    refused_in_use(bed)?;
    let mut random = Random::new(bed.seed);
    bed.set("scheduler", "none")?;
    let cycles = if is_debug_kernel() {
        DEBUG_CYCLES
    } else {
        CYCLES
    };
    for _ in 0..cycles * bed.rounds {
        cycle(bed, &mut random)?;
        load.goes_on(1)?;
    }
    load.end()?;
    volume.unmount()
}

/// The unloading of a module in use is refused at once, and has no effect.
fn refused_in_use(bed: &TestBed) -> Outcome<()> {
    for module in [bed.scheduler()?, bed.flash()?] {
        let answer = module::try_unload(module);
        require(matches!(answer, Err(Errno::AGAIN | Errno::BUSY)), || {
            format!(
                "module {} is in use and answered its unloading with {answer:?}",
                module::name(module)
            )
        })?;
    }
    let active = bed.get("scheduler")?;
    require(active.contains("[frontrow]"), || {
        format!("after a refused unloading the scheduler is {active}")
    })
}

/// Uses the module and unloads it right after. Tasks that began to sleep in a hook still sleep
/// then.
fn cycle(bed: &TestBed, random: &mut Random) -> Outcome<()> {
    module::load(bed.scheduler()?)?;
    bed.set("scheduler", FRONTROW)?;
    thread::sleep(Duration::from_millis(random.index(60) as u64));
    bed.set("scheduler", "none")?;
    match module::try_unload(bed.scheduler()?) {
        Ok(()) => Ok(()),
        // Another task may be using the module, for instance through sysfs.
        Err(Errno::AGAIN | Errno::BUSY) => module::unload(bed.scheduler()?),
        Err(errno) => Err(Failure::new(format!(
            "the scheduler's module is not in use and does not go: {errno}"
        ))),
    }
}
