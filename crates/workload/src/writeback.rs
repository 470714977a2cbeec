//! Progress of the kernel's writeback, from `/proc/vmstat`.

use crate::Error;
use std::fs;
use std::path::Path;

const VMSTAT: &str = "/proc/vmstat";

/// Counters of writeback, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Pages written back since boot (`nr_written`).
    pub(crate) written_pages: u64,
    /// Pages under writeback now (`nr_writeback`).
    pub(crate) writeback_pages: u64,
    /// Dirty pages above which a task that dirties more sleeps (`nr_dirty_threshold`).
    pub(crate) limit_pages: u64,
}

impl Counters {
    /// Reads the counters of the kernel.
    pub(crate) fn read() -> Result<Self, Error> {
        let path = Path::new(VMSTAT);
        let text = fs::read_to_string(path).map_err(|source| Error::io("read", path, source))?;
        Counters::parse(&text).ok_or_else(|| Error::Interface {
            path: path.to_owned(),
            reason: "it lacks nr_written, nr_writeback or nr_dirty_threshold".to_owned(),
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |wanted: &str| {
            text.lines()
                .filter_map(|line| line.split_once(' '))
                .find(|(name, _)| *name == wanted)
                .and_then(|(_, value)| value.parse().ok())
        };
        Some(Counters {
            written_pages: value("nr_written")?,
            writeback_pages: value("nr_writeback")?,
            limit_pages: value("nr_dirty_threshold")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_whole() {
        let text = "nr_writeback_temp 9\nnr_writeback 3\nnr_written 70\nnr_dirty_threshold 100\n";
        let expected = Counters {
            written_pages: 70,
            writeback_pages: 3,
            limit_pages: 100,
        };
        assert_eq!(Counters::parse(text), Some(expected));
        assert_eq!(Counters::parse("nr_writeback_temp 9\n"), None);
    }

    #[test]
    fn this_kernel_has_them() {
        assert!(Counters::read().unwrap().limit_pages > 0);
    }
}
