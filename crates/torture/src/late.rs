//! A file system's module that is loaded after the scheduler's is probed as well, and may go before it.

use crate::failure::require;
use crate::volume::Volume;
use crate::{Outcome, TestBed, module};

/// In ext4: who found no space waits there for discards.
const PROBE: &str = "ext4_should_retry_alloc";

/// Times that ext4 goes and comes.
const CYCLES: u32 = 3;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let Ok(ext4) = bed.module("ext4") else {
        // It is part of the kernel.
        return is_probed(bed, true);
    };
    for _ in 0..CYCLES * bed.rounds {
        module::unload(ext4)?;
        is_probed(bed, false)?;
        module::load(ext4)?;
        is_probed(bed, true)?;
    }
    Volume::make(bed)?.unmount()
}

fn is_probed(bed: &TestBed, wanted: bool) -> Outcome<()> {
    let counters = bed.counters()?;
    let is_there = counters.probe_hits().iter().any(|(name, _)| name == &PROBE);
    require(is_there == wanted, || {
        format!("with ext4 loaded {wanted}, {PROBE} is probed {is_there}")
    })
}
