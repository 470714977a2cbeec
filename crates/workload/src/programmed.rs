//! Pages that the emulated device has programmed.

use crate::Error;
use crate::simflash::Statistics;
use std::fs::File;
use std::path::Path;
use sys::device::Device;
use sys::device::janus::{Janus, PAGE_BYTES};

/// Numbers of programmed pages by their cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Programmed {
    /// Pages of the host: files' data, journal, the file system's tables.
    pub(crate) host_pages: u64,
    /// Padding: the rest of rows that a flush ended before they were full.
    pub(crate) padded_pages: u64,
    /// Pages that garbage collection moved.
    pub(crate) collection_pages: u64,
    /// Pages of the defrag log.
    pub(crate) log_pages: u64,
    /// Pages of the map.
    pub(crate) map_pages: u64,
}

impl Programmed {
    /// Counters of the device with the file system of `directory`; `None` if it is not emulated.
    pub(crate) fn of(directory: &Path) -> Result<Option<Self>, Error> {
        let failed = |source| Error::io("count what is programmed below", directory, source);
        let device = Device::resolve(Path::new("/"), &directory.to_string_lossy())
            .map_err(|error| failed(std::io::Error::other(error.to_string())))?;
        let Some(janus) = Janus::of(&device).map_err(failed)? else {
            return Ok(None);
        };
        let node = Path::new("/dev").join(device.name());
        let file = File::open(&node).map_err(|source| Error::io("open", &node, source))?;
        let Some(statistics) = Statistics::of(&file) else {
            return Ok(None);
        };
        let own = janus.own_programs().map_err(failed)?;
        Ok(Some(Programmed {
            host_pages: statistics.host_pages,
            padded_pages: statistics.padded_pages,
            collection_pages: own.collection_pages,
            log_pages: own.log_pages,
            map_pages: own.map_pages,
        }))
    }

    /// Pages programmed since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Programmed {
            host_pages: self.host_pages - before.host_pages,
            padded_pages: self.padded_pages - before.padded_pages,
            collection_pages: self.collection_pages - before.collection_pages,
            log_pages: self.log_pages - before.log_pages,
            map_pages: self.map_pages - before.map_pages,
        }
    }

    /// The sum of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Programmed {
            host_pages: self.host_pages + other.host_pages,
            padded_pages: self.padded_pages + other.padded_pages,
            collection_pages: self.collection_pages + other.collection_pages,
            log_pages: self.log_pages + other.log_pages,
            map_pages: self.map_pages + other.map_pages,
        }
    }

    /// Sum over all causes.
    pub(crate) fn pages(self) -> u64 {
        self.host_pages
            + self.padded_pages
            + self.collection_pages
            + self.log_pages
            + self.map_pages
    }
}

/// Size of `pages` in 10^6 bytes.
pub(crate) fn megabytes(pages: u64) -> f64 {
    (pages * PAGE_BYTES) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_device_programs_on_its_own_account_counts() {
        let at = |[
            host_pages,
            padded_pages,
            collection_pages,
            log_pages,
            map_pages,
        ]: [u64; 5]| {
            Programmed {
                host_pages,
                padded_pages,
                collection_pages,
                log_pages,
                map_pages,
            }
        };
        let (before, after) = (at([10, 1, 2, 3, 4]), at([20, 4, 7, 9, 11]));
        let week = after.since(before);
        assert_eq!(week, at([10, 3, 5, 6, 7]));
        assert_eq!(week.pages(), 31);
        assert_eq!(before.and(week), after);
        assert_eq!(megabytes(250), 1.024);
    }

    #[test]
    fn a_device_that_is_not_emulated_counts_nothing() {
        // If no device is found at all, the error says so.
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(matches!(
            Programmed::of(here),
            Ok(None) | Err(Error::Io { .. })
        ));
    }
}
