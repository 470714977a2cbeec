//! A file system's module that is loaded after the scheduler's is probed as well, and may go before it.

use crate::failure::require;
use crate::volume::Volume;
use crate::{Outcome, TestBed, module};
use ::module::sched::Counters;

/// Function of ext4 that waits for discards when there is no space.
const PROBE: &str = "ext4_should_retry_alloc";
/// Tracepoint of ext4's fsync.
const TRACEPOINT: &str = "ext4_sync_file_enter";

/// Times that ext4 goes and comes.
const CYCLES: u32 = 3;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    cycle(bed, &is_probed)?;
    let (with_probes, without_probes) = bed.schedulers_modules()?;
    bed.replace_scheduler(&without_probes)?;
    cycle(bed, &is_traced)?;
    bed.replace_scheduler(with_probes)
}

fn is_probed(counters: &Counters) -> bool {
    let hits = counters.probe_hits();
    hits.iter().any(|(name, _)| name == &PROBE)
}

fn is_traced(counters: &Counters) -> bool {
    let hits = counters.tracepoint_hits();
    hits.iter().any(|(name, _)| name == &TRACEPOINT)
}

fn cycle(bed: &TestBed, is_detected: &dyn Fn(&Counters) -> bool) -> Outcome<()> {
    let expect = |wanted: bool| {
        let is_there = is_detected(&bed.counters()?);
        require(is_there == wanted, || {
            format!("with ext4 loaded {wanted}, its waits are detected {is_there}")
        })
    };
    let Ok(ext4) = bed.module("ext4") else {
        // It is part of the kernel.
        return expect(true);
    };
    for _ in 0..CYCLES * bed.rounds {
        module::unload(ext4)?;
        expect(false)?;
        module::load(ext4)?;
        expect(true)?;
    }
    Volume::make(bed)?.unmount()
}
