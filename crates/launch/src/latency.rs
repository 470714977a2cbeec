//! How long the device takes for a read, by its size: the paper's storage model (§IV).

use crate::profile::PAGE_BYTES;
use serde::{Deserialize, Serialize};

/// Sizes in the table: 4 KB, 8 KB … 128 KB.
pub const SIZES: usize = 32;

/// The largest size in the table.
pub const TABLE_BYTES: u64 = SIZES as u64 * PAGE_BYTES;

/// Read time by size. Up to 128 KB each size was measured; beyond, each further page
/// takes the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Of 4 KB, 8 KB … 128 KB.
    pub ns: [u64; SIZES],
    /// Of each page beyond.
    pub page_ns: u64,
    /// What reading a gap takes the CPU, however small it is: it is a read of its own
    /// until it is merged.
    pub gap_ns: u64,
    /// What of a 4 KB read's time passes while the data of others cross the link, so that
    /// it takes nobody's time there; 0 for a device that does one thing at a time.
    pub hidden_ns: u64,
}

/// Time in 1/4096 ns, so that a byte beyond the table has a whole number of them.
pub(crate) type Fine = i128;

impl Latency {
    /// Of a read of so many bytes, at least one.
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

    /// The time that a device needs for its reads' data, where what it can hide of each
    /// read is hidden. No read is shorter than its pages on the link.
    pub(crate) fn of_data(&self) -> Latency {
        let data_ns =
            |(pages, ns): (u64, u64)| (ns - self.hidden_ns.min(ns)).max(pages * self.page_ns);
        let mut ns = self.ns;
        for (index, ns) in ns.iter_mut().enumerate() {
            *ns = data_ns((index as u64 + 1, *ns));
        }
        Latency { ns, ..self.clone() }
    }

    /// The time that a device needs for a read's command, whatever its size.
    pub(crate) fn command_ns(&self) -> u64 {
        self.ns[0]
    }

    /// Of one byte beyond the table.
    pub(crate) fn slope(&self) -> Fine {
        Fine::from(self.page_ns)
    }
}
