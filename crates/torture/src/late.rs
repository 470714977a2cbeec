//! A file system's module that is loaded after the scheduler's is probed as well, and may go before it.

use crate::failure::require;
use crate::volume::Volume;
use crate::{Outcome, Stand, module};

/// In ext4: who found no space waits there for discards.
const PROBE: &str = "ext4_should_retry_alloc";

/// Times that ext4 goes and comes.
const CYCLES: u32 = 3;

pub(crate) fn run(stand: &Stand) -> Outcome<()> {
    let Ok(ext4) = stand.module("ext4") else {
        // It is part of the kernel.
        return is_probed(stand, true);
    };
    for _ in 0..CYCLES * stand.rounds {
        module::unload(ext4)?;
        is_probed(stand, false)?;
        module::load(ext4)?;
        is_probed(stand, true)?;
    }
    Volume::make(stand)?.unmount()
}

fn is_probed(stand: &Stand, wanted: bool) -> Outcome<()> {
    let counters = stand.counters()?;
    let is_there = counters.probe_hits().iter().any(|(name, _)| name == &PROBE);
    require(is_there == wanted, || {
        format!("with ext4 loaded {wanted}, {PROBE} is probed {is_there}")
    })
}
