//! zram beside a disk under the scheduler. It passes its requests on, so it must be refused; and what
//! is swapped to it must stay what it is.

use crate::failure::require;
use crate::load::Load;
use crate::memory::{Pages, Swap};
use crate::pressure::meminfo_kib;
use crate::test_bed::{FRONTROW, write};
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed};
use ::module::sched;
use std::path::Path;
use sys::random::Random;

/// Modules that the guest loads for the trial: the device, and what compresses for it before 6.12.
pub(crate) const MODULES: [&str; 2] = ["lzo_rle", "zram"];

const DEVICE: &str = "zram0";
const DISK_BYTES: &str = "67108864";
const SWAPPED_BYTES: usize = 16 << 20;
const SWITCHES: usize = 10;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let directory = Path::new("/sys/block").join(DEVICE);
    if !directory.exists() {
        bed.remark("zram is passed over: the kernel has none".to_owned());
        return Ok(());
    }
    let set = |name: &str, value: &str| write(&directory.join(name).to_string_lossy(), value);
    set("disksize", DISK_BYTES)?;
    is_refused()?;
    let swap = Swap::on(&Path::new("/dev").join(DEVICE))?;
    swapped_pages_stay(bed)?;
    drop(swap);
    set("reset", "1")
}

fn is_refused() -> Outcome<()> {
    match sched::policy::apply(Path::new("/"), DEVICE, FRONTROW) {
        Err(sched::Error::NoScheduler { .. }) => Ok(()),
        Err(other) => Err(Failure::new(format!("{DEVICE} is refused: {other}"))),
        Ok(_) => Err(Failure::new(format!("{DEVICE} got a scheduler"))),
    }
}

/// Swaps pages out and in, while the disk is under load and changes its scheduler.
fn swapped_pages_stay(bed: &TestBed) -> Outcome<()> {
    let mut pages = Pages::new(SWAPPED_BYTES)?;
    let mut random = Random::new(bed.seed);
    for word in pages.as_mut_slice().chunks_exact_mut(8) {
        word.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    let written = pages.as_slice().to_vec();
    let volume = Volume::make(bed)?;
    let load = Load::start(volume.path(), bed.seed);
    let schedulers = bed.schedulers()?;
    for switch in 0..SWITCHES * bed.rounds as usize {
        bed.set("scheduler", FRONTROW)?;
        swap_out(&pages)?;
        load.goes_on(2)?;
        bed.set("scheduler", &schedulers[switch % schedulers.len()])?;
        require(pages.as_slice() == written, || {
            format!("pages on {DEVICE} do not hold what was written")
        })?;
    }
    bed.set("scheduler", FRONTROW)?;
    load.end()?;
    volume.unmount()
}

/// Swaps the pages out, of which at least half must be on zram then.
fn swap_out(pages: &Pages) -> Outcome<()> {
    pages.swap_out()?;
    let used_kib = meminfo_kib("SwapTotal")? - meminfo_kib("SwapFree")?;
    require(used_kib >= SWAPPED_BYTES as u64 / 2048, || {
        format!("only {used_kib} KiB of {SWAPPED_BYTES} bytes are on {DEVICE}")
    })
}
