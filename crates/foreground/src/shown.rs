//! What a disk writes in a second, by what it has shown while it was busy, and what may be dirty for
//! it on account of that.

use device::Statistics;
use std::time::Duration;

/// What a limit is worth: what the disk writes in so much time.
const WORTH: Duration = Duration::from_secs(1);

/// Before a disk has shown what it does; little for a fast one, and it will show it soon.
const UNKNOWN_BYTES: u64 = 16 << 20;
/// There is no less, or requests get small.
pub(crate) const LEAST_BYTES: u64 = 8 << 20;
/// A disk that shows less is slow. A good SD card writes as much; disks for systems do more.
const SLOW_BYTES_S: u64 = 40_000_000;
/// An interval tells a rate in which the disk was busy and wrote so much.
const TELLING_BUSY: Duration = Duration::from_millis(250);
const TELLING_BYTES: u64 = 1 << 20;
/// One that has become slow has shown it so often: garbage collection ends.
const TELLING_TIMES: u32 = 4;

/// What a disk has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    bytes_s: u64,
    times: u32,
}

impl Shown {
    /// Takes in what it did between two looks; whether it wrote at all.
    pub(crate) fn take(&mut self, before: &Statistics, now: &Statistics) -> bool {
        let busy_ms = now.busy_ms.saturating_sub(before.busy_ms);
        let written = now.written_bytes.saturating_sub(before.written_bytes);
        let read = now.read_bytes.saturating_sub(before.read_bytes);
        let is_telling = u128::from(busy_ms) >= TELLING_BUSY.as_millis()
            && written >= TELLING_BYTES
            && written >= 4 * read;
        if is_telling {
            let bytes_s = written * 1000 / busy_ms;
            // A fast interval counts at once, so that no disk is held below what it can do; slow
            // ones, as its cache fills or it collects, count a quarter each.
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

    /// What it writes in such a time.
    pub(crate) fn bytes_in(self, time: Duration) -> u64 {
        match self.times {
            0 => (u128::from(UNKNOWN_BYTES) * time.as_millis() / WORTH.as_millis()) as u64,
            _ => (u128::from(self.bytes_s) * time.as_millis() / 1000) as u64,
        }
    }

    /// What may be dirty for its disk, and no more than `most_bytes`.
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
                "0 0 {} 0 9 0 {} 9 0 {busy_ms} 9",
                read * 2048,
                written * 2048
            );
            Statistics::parse(&text).unwrap()
        };
        let mut shown = Shown::default();
        let none = of(0, 0, 0);
        assert!(!shown.take(&none, &of(0, 50, 900)));
        assert_eq!(shown.worth(1024 * MIB), UNKNOWN_BYTES);
        // Reads beside it tell less than the disk can write.
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
