//! Write rate of a disk, measured while it was busy, and the dirty limit that follows from it.

use std::time::Duration;
use sys::device::Statistics;

/// A dirty limit is the amount that the disk writes in this time.
const WORTH: Duration = Duration::from_secs(1);

/// Limit before the rate is known: small for a fast disk, whose rate will soon be known.
const UNKNOWN_BYTES: u64 = 16 << 20;
/// Smallest limit, in bytes; below it requests become small.
pub(crate) const LEAST_BYTES: u64 = 8 << 20;
/// Disks with a lower rate are slow. A good SD card reaches it.
const SLOW_BYTES_S: u64 = 40_000_000;
/// Least busy time and least bytes of an interval that counts as a measurement.
const TELLING_BUSY: Duration = Duration::from_millis(250);
const TELLING_BYTES: u64 = 1 << 20;
/// Number of slow measurements until a disk counts as slow; garbage collection ends before.
const TELLING_TIMES: u32 = 4;

/// Measured rate of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    bytes_s: u64,
    times: u32,
}

impl Shown {
    /// Adds the interval between two samples; returns whether the disk wrote.
    pub(crate) fn take(&mut self, before: &Statistics, now: &Statistics) -> bool {
        let busy_ms = now.busy_ms.saturating_sub(before.busy_ms);
        let written = now.written_bytes.saturating_sub(before.written_bytes);
        let read = now.read_bytes.saturating_sub(before.read_bytes);
        let is_telling = u128::from(busy_ms) >= TELLING_BUSY.as_millis()
            && written >= TELLING_BYTES
            && written >= 4 * read;
        if is_telling {
            let bytes_s = written * 1000 / busy_ms;
            // A fast interval counts fully, so that no disk is limited below its rate. Slow
            // intervals, as during garbage collection, count a quarter each.
            self.bytes_s = match self.times {
                0 => bytes_s,
                _ => bytes_s.max((3 * self.bytes_s + bytes_s) / 4),
            };
            self.times = self.times.saturating_add(1);
        }
        written > 0
    }

    pub(crate) fn is_slow(self) -> bool {
        self.times >= TELLING_TIMES && self.bytes_s < SLOW_BYTES_S
    }

    /// Bytes that it writes in the limit's time.
    pub(crate) fn bytes_in(self, time: Duration) -> u64 {
        match self.times {
            0 => (u128::from(UNKNOWN_BYTES) * time.as_millis() / WORTH.as_millis()) as u64,
            _ => (u128::from(self.bytes_s) * time.as_millis() / 1000) as u64,
        }
    }

    /// Dirty limit of the disk in bytes, at most `most_bytes`.
    pub(crate) fn worth(self, most_bytes: u64) -> u64 {
        self.bytes_in(WORTH).max(LEAST_BYTES).min(most_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_rate_is_damped_bounded_and_told_by_writes_alone() {
        let of = |written: u64, read: u64, busy_ms: u64| {
            let text = format!(
                "0 0 {} 0 9 0 {} 9 0 {busy_ms} 9 0 0 0 0 0 0",
                read * 2048,
                written * 2048
            );
            Statistics::parse(&text).unwrap()
        };
        let mut shown = Shown::default();
        let none = of(0, 0, 0);
        assert!(!shown.take(&none, &of(0, 50, 900)));
        assert_eq!(shown.worth(1024 * MIB), UNKNOWN_BYTES);
        // Concurrent reads would lower the measured rate.
        assert!(shown.take(&none, &of(10, 50, 900)));
        assert_eq!(shown.times, 0);
        shown.take(&none, &of(40, 0, 1000));
        shown.take(&none, &of(20, 0, 1000));
        assert_eq!(shown.worth(1024 * MIB), 35 * MIB);
        assert_eq!(shown.worth(16 * MIB), 16 * MIB);
        assert!(!shown.is_slow());
        for _ in 0..9 {
            shown.take(&none, &of(2, 0, 1000));
        }
        assert!(shown.is_slow());
        for _ in 0..20 {
            shown.take(&none, &of(2, 0, 1000));
        }
        assert_eq!(shown.worth(1024 * MIB), LEAST_BYTES);
    }
}
