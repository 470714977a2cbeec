//! Commands of a device that can give data another address without a copy
//! (`kernel/simflash/simflash_ioctl.h`; dissertation, table 6).

use crate::device::Device;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Size of a page, the unit of the device's map, in bytes.
pub const PAGE_BYTES: u64 = 4096;

/// `SIMFLASH_MAX_RANGES`: most ranges of a command.
pub const MOST_RANGES: usize = 1024;

/// `SIMFLASH_IOCTL_VERSION`: version of the structures.
pub(crate) const VERSION: u32 = 3;

/// Prefix of these devices' names; other drivers give the ioctl numbers below another meaning.
const NAME_PREFIX: &str = "simflash";

/// `struct simflash_range`: pages of the whole disk.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First page of the data now.
    pub src: u32,
    /// First page of the data after the command; `SPREAD` for a place of the device's choice.
    pub dst: u32,
    /// Number of pages.
    pub pages: u32,
    unused: u32,
}

impl Range {
    /// `pages` pages at `src`, counted from the begin of the disk, with a destination of the
    /// device's choice.
    pub fn at(src: u32, pages: u32) -> Self {
        Range::new(src, SPREAD, pages)
    }

    /// `pages` pages from `src` to `dst`, counted from the begin of the disk.
    pub fn new(src: u32, dst: u32, pages: u32) -> Self {
        Range {
            src,
            dst,
            pages,
            unused: 0,
        }
    }
}

/// Pages that the device programmed for itself and not for the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnPrograms {
    /// Pages that garbage collection programmed.
    pub collection_pages: u64,
    /// Pages that the defrag log and checkpoints programmed.
    pub log_pages: u64,
    /// Pages programmed for changed parts of a map that is not wholly in RAM.
    pub map_pages: u64,
}

/// `struct simflash_ranges`: the argument of commands on ranges.
#[repr(C)]
struct Ranges {
    version: u32,
    count: u32,
    ranges: u64,
    pages_done: u64,
    dof_p_permille: u32,
    unused: u32,
}

/// `struct simflash_ftl_stats`: the counters of the FTL.
#[repr(C)]
#[derive(Default)]
struct Stats {
    version: u32,
    unused: u32,
    collect_page_reads: u64,
    collect_page_programs: u64,
    collected_blocks: u64,
    level_blocks: u64,
    log_page_programs: u64,
    log_erases: u64,
    log_compactions: u64,
    checkpoints: u64,
    remapped_pages: u64,
    elided_pages: u64,
    spread_pages: u64,
    map_look_ups: u64,
    map_misses: u64,
    map_page_reads: u64,
    map_page_programs: u64,
    slc_page_programs: u64,
    folded_pages: u64,
    suspensions: u64,
    unit_merges: u64,
    mounts: u64,
    mount_ns: u64,
    remapped_now: u64,
    log_live_pages: u64,
    log_buffered_entries: u64,
    blocks: u64,
    erases_min: u64,
    erases_max: u64,
    erases_sum: u64,
}

/// `_IOWR(SIMFLASH_IOC_MAGIC, number, …)`.
pub(crate) const fn request<T>(number: libc::c_ulong) -> libc::c_ulong {
    (3 << 30) | ((size_of::<T>() as libc::c_ulong) << 16) | (0xf5 << 8) | number
}

/// `SIMFLASH_SPREAD`: a `dst` that stands for a place of the device's choice.
const SPREAD: u32 = u32::MAX;

const IOC_DEFRAG: libc::c_ulong = request::<Ranges>(3);
const IOC_ARM: libc::c_ulong = request::<Ranges>(4);
const IOC_DOF_P: libc::c_ulong = request::<Ranges>(5);
const IOC_FTL_STATS: libc::c_ulong = request::<Stats>(8);

/// A device that can remap data.
#[derive(Debug)]
pub struct Janus {
    file: File,
}

impl Janus {
    /// Opens the commands of `device`; `None` if it has none. Armed ranges from before are dropped.
    ///
    /// # Errors
    /// The system's error: it takes CAP_SYS_ADMIN and a device with power.
    pub fn of(device: &Device) -> io::Result<Option<Self>> {
        Self::answering(device, Janus::disarm)
    }

    /// Opens the commands of `device` for queries and [`Janus::spread`]. Armed ranges stay, and
    /// queries need only the right to read the device.
    ///
    /// # Errors
    /// The system's error.
    pub fn to_ask(device: &Device) -> io::Result<Option<Self>> {
        Self::answering(device, |it| it.statistics().map(drop))
    }

    fn answering(
        device: &Device,
        ask: impl Fn(&Janus) -> io::Result<()>,
    ) -> io::Result<Option<Self>> {
        if !device.name().starts_with(NAME_PREFIX) {
            return Ok(None);
        }
        let node = Path::new("/dev").join(device.name());
        let janus = Janus {
            file: OpenOptions::new().read(true).open(node)?,
        };
        match ask(&janus) {
            Ok(()) => Ok(Some(janus)),
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Arms ranges, at most [`MOST_RANGES`]. The next write to a `dst` with the data of its `src`
    /// is remapped and not programmed, once. All other writes are programmed.
    ///
    /// # Errors
    /// The device's error: `InvalidInput` for ranges that overlap or exceed the device,
    /// `StorageFull` if its log is full.
    pub fn arm(&self, ranges: &[Range]) -> io::Result<()> {
        self.command(IOC_ARM, ranges).map(|_| ())
    }

    /// DoF_P in thousandths of the data at the `src`s, read one after the other (dissertation
    /// §4.1).
    ///
    /// # Errors
    /// The device's error: `InvalidInput` for ranges that exceed the device.
    pub fn dof_p_permille(&self, ranges: &[Range]) -> io::Result<u32> {
        Ok(self.command(IOC_DOF_P, ranges)?.dof_p_permille)
    }

    /// Rewrites the data at the `src`s over all dies if their DoF_P is at least one half
    /// (dissertation §4.4). Returns the number of pages programmed for it. Addresses and data stay.
    /// Each range is from [`Range::at`]; at most [`MOST_RANGES`], and 65,536 pages in all.
    ///
    /// # Errors
    /// The device's error: `StorageFull` while remapped pages are not committed, `PermissionDenied`
    /// without CAP_SYS_ADMIN.
    pub fn spread(&self, ranges: &[Range]) -> io::Result<u64> {
        Ok(self.command(IOC_DEFRAG, ranges)?.pages_done)
    }

    fn command(&self, request: libc::c_ulong, ranges: &[Range]) -> io::Result<Ranges> {
        let mut arg = Ranges {
            version: VERSION,
            count: ranges.len() as u32,
            ranges: ranges.as_ptr() as u64,
            pages_done: 0,
            dof_p_permille: 0,
            unused: 0,
        };
        // SAFETY: the device reads and writes one `struct simflash_ranges`, and reads as many
        // ranges as it is told, which live until the call returns.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), request, &mut arg) } {
            0 => Ok(arg),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Drops all armed ranges.
    ///
    /// # Errors
    /// The device's error.
    pub fn disarm(&self) -> io::Result<()> {
        self.arm(&[])
    }

    /// Number of pages that were written and remapped instead of programmed, since the counters'
    /// reset.
    ///
    /// # Errors
    /// The device's error.
    pub fn elided_pages(&self) -> io::Result<u64> {
        Ok(self.statistics()?.elided_pages)
    }

    /// Pages that the device programmed for itself, since the counters' reset.
    ///
    /// # Errors
    /// The device's error.
    pub fn own_programs(&self) -> io::Result<OwnPrograms> {
        let statistics = self.statistics()?;
        Ok(OwnPrograms {
            collection_pages: statistics.collect_page_programs,
            log_pages: statistics.log_page_programs,
            map_pages: statistics.map_page_programs,
        })
    }

    fn statistics(&self) -> io::Result<Stats> {
        let mut stats = Stats {
            version: VERSION,
            ..Stats::default()
        };
        // SAFETY: the device reads and writes one `struct simflash_ftl_stats`.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), IOC_FTL_STATS, &mut stats) } {
            0 => Ok(stats),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_header() {
        // _IOWR(0xf5, 3 and 4, 32 bytes) and _IOWR(0xf5, 8, 240 bytes).
        assert_eq!(IOC_DEFRAG, 0xc020_f503);
        assert_eq!(IOC_ARM, 0xc020_f504);
        assert_eq!(IOC_FTL_STATS, 0xc0e8_f508);
        assert_eq!(size_of::<Range>(), 16);
    }
}
