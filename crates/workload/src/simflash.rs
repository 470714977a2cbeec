//! Statistics of a simflash device (`kernel/simflash/simflash_ioctl.h`).

use crate::Error;
use crate::loader::device_of;
use crate::meter::go_on;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

const VERSION: u32 = 3;
const OPERATIONS: usize = 4;
const MAX_DIES: usize = 64;

/// `struct simflash_stats`: the device's counters.
#[repr(C)]
#[derive(Clone)]
struct Raw {
    version: u32,
    dies: u32,
    elapsed_ns: u64,
    commands: [u64; OPERATIONS],
    command_pages: [u64; OPERATIONS],
    command_ns: [u64; OPERATIONS],
    command_max_ns: [u64; OPERATIONS],
    failed_commands: u64,
    fua_writes: u64,
    cache_read_hit_pages: u64,
    cache_overwrite_pages: u64,
    unmapped_read_pages: u64,
    row_reads: u64,
    page_reads: u64,
    row_programs: u64,
    page_programs: u64,
    padded_pages: u64,
    erases: u64,
    die_read_wait_ns: u64,
    die_read_wait_max_ns: u64,
    die_program_wait_ns: u64,
    die_program_wait_max_ns: u64,
    busy_ns: [u64; MAX_DIES + 1],
    mapped_pages: u64,
    buffered_pages: u64,
    cached_pages: u64,
    free_rows: u64,
    total_rows: u64,
}

/// `SIMFLASH_IOC_STATS`: `_IOWR(0xf5, 1, struct simflash_stats)`.
const IOC_STATS: libc::c_ulong =
    (3 << 30) | ((size_of::<Raw>() as libc::c_ulong) << 16) | (0xf5 << 8) | 1;

/// Time without work after which a device rests.
const REST: Duration = Duration::from_millis(200);
/// Longest wait for it.
const REST_LIMIT: Duration = Duration::from_secs(300);

/// Waits until the emulated device with the file system of `directory` has done what it owes to
/// earlier writes: what made the files of a run is not for its foreground to pay. Other devices do
/// not tell, and are not waited for.
pub(crate) fn rest(directory: &Path, stop: &AtomicBool) -> Result<(), Error> {
    let Some((device, mut before)) = device_of(directory)
        .ok()
        .and_then(|it| Statistics::of(&it).map(|before| (it, before)))
    else {
        return Ok(());
    };
    let began = Instant::now();
    while began.elapsed() < REST_LIMIT {
        go_on(stop)?;
        thread::sleep(REST);
        if before.busy_dies_since(&device).is_none() {
            break;
        }
        before = Statistics::of(&device).unwrap_or(before);
    }
    Ok(())
}

/// Counters of the device since it was created or reset.
pub(crate) struct Statistics {
    busy_ns: [u64; MAX_DIES + 1],
    /// Number of dies of the device.
    pub(crate) dies: u64,
    /// Pages programmed with the host's data.
    pub(crate) host_pages: u64,
    /// Pages left empty in rows that were programmed before they were full.
    pub(crate) padded_pages: u64,
}

impl Statistics {
    /// `None` if the file is not a simflash device, or one of another version.
    pub(crate) fn of(file: &File) -> Option<Self> {
        // SAFETY: all of the structure's fields are integers.
        let mut raw: Raw = unsafe { std::mem::zeroed() };
        raw.version = VERSION;
        // SAFETY: the request reads and writes one `struct simflash_stats`,
        // whose size is part of the request's number.
        let outcome = unsafe { libc::ioctl(file.as_raw_fd(), IOC_STATS, &mut raw) };
        (outcome == 0).then_some(Statistics {
            busy_ns: raw.busy_ns,
            dies: u64::from(raw.dies),
            host_pages: raw.page_programs,
            padded_pages: raw.padded_pages,
        })
    }

    /// Mean number of busy dies since then, over the time in which any was busy; `None` if none
    /// was.
    pub(crate) fn busy_dies_since(&self, file: &File) -> Option<f64> {
        let now = Statistics::of(file)?;
        busy_dies(&self.busy_ns, &now.busy_ns)
    }
}

/// Mean number of busy dies. `…_ns[n]` is the time in which n dies were busy.
fn busy_dies(before_ns: &[u64], after_ns: &[u64]) -> Option<f64> {
    let spent = before_ns.iter().zip(after_ns).enumerate().skip(1);
    let (mut die_ns, mut any_ns) = (0, 0);
    for (dies, (before, after)) in spent {
        die_ns += dies as u64 * (after - before);
        any_ns += after - before;
    }
    (any_ns > 0).then(|| die_ns as f64 / any_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_does_not_count() {
        assert_eq!(busy_dies(&[0, 10, 0], &[1000, 20, 10]), Some(1.5));
        assert_eq!(busy_dies(&[0, 10, 0], &[1000, 10, 0]), None);
    }

    #[test]
    fn another_file_has_no_statistics() {
        let file = File::open("/dev/null").unwrap();
        assert!(Statistics::of(&file).is_none());
    }
}
