//! Read time of a device by size: the paper's storage model (§IV).

use crate::profile::PAGE_BYTES;
use serde::{Deserialize, Serialize};

/// Number of sizes in the table: 4 KB, 8 KB … 128 KB.
pub const SIZES: usize = 32;

/// Largest size in the table, in bytes.
pub const TABLE_BYTES: u64 = SIZES as u64 * PAGE_BYTES;

/// Read times by size. Each size up to 128 KB was measured; beyond, each further page takes the
/// same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Read times of 4 KB, 8 KB … 128 KB, in nanoseconds.
    pub ns: [u64; SIZES],
    /// Read time of each page beyond the table, in nanoseconds.
    pub page_ns: u64,
    /// CPU time to read a gap of any size, in nanoseconds: a gap is a read of its own until it is
    /// merged.
    pub gap_ns: u64,
    /// Part of a 4 KB read's time that passes while data of other reads cross the link, in
    /// nanoseconds. 0 for a device that does one thing at a time.
    pub hidden_ns: u64,
}

/// Time in 1/4096 ns: each byte beyond the table takes a whole number of these.
pub(crate) type Fine = i128;

impl Latency {
    /// Time of a read of `bytes` bytes, at least one, in nanoseconds.
    pub fn read_ns(&self, bytes: u64) -> u64 {
        (self.fine(bytes) / Fine::from(PAGE_BYTES)) as u64
    }

    pub(crate) fn fine(&self, bytes: u64) -> Fine {
        let page = Fine::from(PAGE_BYTES);
        match bytes.checked_sub(TABLE_BYTES) {
            Some(beyond) if beyond > 0 => {
                Fine::from(self.ns[SIZES - 1]) * page + Fine::from(beyond) * self.slope()
            }
            _ => {
                let size = bytes.div_ceil(PAGE_BYTES).clamp(1, SIZES as u64) as usize;
                Fine::from(self.ns[size - 1]) * page
            }
        }
    }

    /// The table of the reads' data alone, without the part of each read that can be hidden. No
    /// read is shorter than the transfer of its pages.
    pub(crate) fn of_data(&self) -> Latency {
        let data_ns =
            |(pages, ns): (u64, u64)| (ns - self.hidden_ns.min(ns)).max(pages * self.page_ns);
        let mut ns = self.ns;
        for (index, ns) in ns.iter_mut().enumerate() {
            *ns = data_ns((index as u64 + 1, *ns));
        }
        Latency { ns, ..self.clone() }
    }

    /// Time of a read's command, whatever its size, in nanoseconds.
    pub(crate) fn command_ns(&self) -> u64 {
        self.ns[0]
    }

    /// Time of one byte beyond the table.
    pub(crate) fn slope(&self) -> Fine {
        Fine::from(self.page_ns)
    }
}
