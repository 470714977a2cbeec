//! Check that the kernel's memory is freed when the modules are unloaded.

use crate::failure::require;
use crate::load::start_writeback;
use crate::pressure::meminfo_kib;
use crate::test_bed::{KMEMLEAK, read, write};
use crate::volume::{Layout, Volume};
use crate::{Failure, Outcome, TestBed};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Number of cycles in which the modules are loaded, used and unloaded.
const CYCLES: u32 = 12;

/// Number of cycles after which the kernel's own caches are filled.
const WARM_UP: u32 = 4;

/// Largest growth of caches over a series, in KiB. It is less than the smallest leak in each cycle:
/// a request's part for each tag.
const GROWTH_KIB: u64 = 256;

/// Number of series. Other memory may grow in one of them, but not in each as a leak does.
const SERIES: u32 = 4;

/// Kernel memory in /proc/meminfo that is neither page cache nor reclaimable.
const COUNTERS: [&str; 3] = ["SUnreclaim", "VmallocUsed", "Percpu"];

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    cycle(bed, WARM_UP)?;
    if knows_exactly() {
        no_allocation_is_lost()?;
    } else {
        memory_comes_back(bed)?;
    }
    bed.prepare()
}

fn memory_comes_back(bed: &TestBed) -> Outcome<()> {
    let mut kept = Ok(());
    for _ in 0..SERIES {
        let before = used_kib()?;
        cycle(bed, CYCLES * bed.rounds)?;
        kept = compare(&before, &used_kib()?);
        if kept.is_ok() {
            break;
        }
    }
    kept
}

fn cycle(bed: &TestBed, times: u32) -> Outcome<()> {
    for _ in 0..times {
        bed.prepare()?;
        use_once(bed)?;
        bed.unload()?;
    }
    Ok(())
}

/// Uses the modules so that they make all their allocations.
fn use_once(bed: &TestBed) -> Outcome<()> {
    let layout = Layout {
        mib: Some(64),
        options: "discard",
        ..Layout::DEFAULT
    };
    let volume = Volume::with(bed, layout)?;
    let path = volume.path().join("file");
    fs::write(&path, vec![7; 1 << 20]).map_err(Failure::io("write", &path))?;
    let file = fs::File::open(&path).map_err(Failure::io("open", &path))?;
    start_writeback(&file).map_err(Failure::io("start writeback of", &path))?;
    drop(file);
    bed.set("nr_requests", "1024")?;
    fs::remove_file(&path).map_err(Failure::io("delete", &path))?;
    bed.set("scheduler", "none")?;
    bed.set("scheduler", "frontrow")?;
    volume.unmount()
}

/// Used kernel memory in KiB, after caches were dropped.
fn used_kib() -> Outcome<Vec<u64>> {
    crate::test_bed::drop_caches()?;
    // RCU frees memory with a delay.
    thread::sleep(Duration::from_millis(500));
    COUNTERS.iter().map(|name| meminfo_kib(name)).collect()
}

fn compare(before: &[u64], after: &[u64]) -> Outcome<()> {
    for ((name, before), after) in COUNTERS.iter().zip(before).zip(after) {
        require(*after <= before + GROWTH_KIB, || {
            format!(
                "{name} grew again and again, at last from {before} to {after} KiB, while the modules came and went"
            )
        })?;
    }
    let ours = read("/proc/vmallocinfo")?;
    let mut ours = ours
        .lines()
        .filter(|line| line.contains("frontrow_iosched") || line.contains("simflash"));
    ours.next().map_or(Ok(()), |line| {
        Err(Failure::new(format!(
            "an unloaded module has leaked memory: {line}"
        )))
    })
}

fn knows_exactly() -> bool {
    Path::new(KMEMLEAK).exists()
}

/// Checks for leaks with kmemleak on a debug kernel. An allocation that it reports only once may be
/// one whose pointer is being moved.
pub(crate) fn no_allocation_is_lost() -> Outcome<()> {
    if !knows_exactly() {
        return Ok(());
    }
    let mut lost = String::new();
    for _ in 0..3 {
        write(KMEMLEAK, "scan")?;
        lost = read(KMEMLEAK)?;
        if lost.is_empty() {
            return Ok(());
        }
        thread::sleep(Duration::from_secs(6));
    }
    Err(Failure::new(format!(
        "kmemleak reports unreferenced allocations:\n{lost}"
    )))
}
