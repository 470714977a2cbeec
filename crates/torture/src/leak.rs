//! Whether the kernel's memory comes back when the modules go.

use crate::failure::require;
use crate::load::start_writeback;
use crate::pressure::meminfo_kib;
use crate::stand::{KMEMLEAK, read, write};
use crate::volume::{Layout, Volume};
use crate::{Failure, Outcome, Stand, module};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Times that the modules come, work and go.
const CYCLES: u32 = 12;

/// After these the kernel's own caches have what they want.
const WARM_UP: u32 = 4;

/// What caches may still grow by in all: less than the smallest thing that a
/// module could leave behind in each cycle, a request's part for each tag.
const GROWTH_KIB: u64 = 256;

/// Something else may grow meanwhile, but not each time as a leak does.
const SERIES: u32 = 4;

/// The kernel's memory that is neither page cache nor given back on demand.
const COUNTERS: [&str; 3] = ["SUnreclaim", "VmallocUsed", "Percpu"];

pub(crate) fn run(stand: &Stand) -> Outcome<()> {
    cycle(stand, WARM_UP)?;
    if knows_exactly() {
        no_allocation_is_lost()?;
    } else {
        memory_comes_back(stand)?;
    }
    stand.prepare()
}

fn memory_comes_back(stand: &Stand) -> Outcome<()> {
    let mut kept = Ok(());
    for _ in 0..SERIES {
        let before = used_kib()?;
        cycle(stand, CYCLES * stand.rounds)?;
        kept = compare(&before, &used_kib()?);
        if kept.is_ok() {
            break;
        }
    }
    kept
}

fn cycle(stand: &Stand, times: u32) -> Outcome<()> {
    for _ in 0..times {
        stand.prepare()?;
        use_once(stand)?;
        module::unload(stand.flash()?)?;
        module::unload(stand.scheduler()?)?;
    }
    Ok(())
}

/// A little of everything that makes the modules allocate.
fn use_once(stand: &Stand) -> Outcome<()> {
    let layout = Layout {
        mib: Some(64),
        options: "discard",
        ..Layout::DEFAULT
    };
    let volume = Volume::with(stand, layout)?;
    let path = volume.path().join("file");
    fs::write(&path, vec![7; 1 << 20]).map_err(Failure::io("write", &path))?;
    let file = fs::File::open(&path).map_err(Failure::io("open", &path))?;
    start_writeback(&file).map_err(Failure::io("start writeback of", &path))?;
    drop(file);
    stand.set("nr_requests", "1024")?;
    fs::remove_file(&path).map_err(Failure::io("delete", &path))?;
    stand.set("scheduler", "none")?;
    stand.set("scheduler", "frontrow")?;
    volume.unmount()
}

/// All that can be given back is, first.
fn used_kib() -> Outcome<Vec<u64>> {
    write("/proc/sys/vm/drop_caches", "3")?;
    // Memory that RCU frees is freed some time later.
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
            "a module has gone and left memory behind: {line}"
        )))
    })
}

fn knows_exactly() -> bool {
    Path::new(KMEMLEAK).exists()
}

/// A debug kernel knows exactly. What it sees only once may still be on its way
/// from one place to another.
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
        "nobody refers any more to what was allocated so:\n{lost}"
    )))
}
