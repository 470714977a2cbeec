//! Write rate of a disk, measured while it streamed writes, and the dirty limit that follows from it.
//!
//! All users of a disk share its limit, and every user chooses what they send to it. So only an
//! interval of streaming writeback counts: large requests and next to nothing else. Small or
//! synchronous writes, reads, flushes and discards take a disk's time without moving many bytes,
//! and would make any disk look slow. Large requests cannot: a hard disk that seeks before each of
//! 512 KiB still writes some 45 MB/s.

use std::time::Duration;
use sys::device::{Device, Statistics};

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

/// Largest part of an interval's requests that reads may be, and of its time that flushes or discards
/// may take.
const OTHERS_ONE_IN: u64 = 16;
/// Bounds of the mean request size that counts as streaming: half of the disk's largest request,
/// but no less than USB 2 sticks make, and no more than a disk of 40 MB/s needs.
const STREAMING_BYTES: [u64; 2] = [48 << 10, 512 << 10];

/// Measured rate of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Mean size of write requests from which an interval counts as streaming.
    streaming_bytes: u64,
    bytes_s: u64,
    times: u32,
}

/// What an interval has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The disk wrote nothing.
    Nothing,
    /// It wrote, but its rate cannot be told.
    Writes,
    /// It streamed, which told its rate.
    Rate,
}

impl Default for Shown {
    fn default() -> Self {
        Shown {
            streaming_bytes: STREAMING_BYTES[1],
            bytes_s: 0,
            times: 0,
        }
    }
}

impl Shown {
    /// Nothing yet, of a disk with requests of this device's size.
    pub(crate) fn of(device: &Device) -> Self {
        let [least, most] = STREAMING_BYTES;
        let largest = device.largest_request_bytes().unwrap_or(u64::MAX);
        Shown {
            streaming_bytes: (largest / 2).clamp(least, most),
            ..Shown::default()
        }
    }

    /// Adds the interval between two samples.
    pub(crate) fn take(&mut self, before: &Statistics, now: &Statistics) -> Told {
        let written = now.written_bytes.saturating_sub(before.written_bytes);
        if written == 0 {
            return Told::Nothing;
        }
        let busy_ms = now.busy_ms.saturating_sub(before.busy_ms);
        let is_telling = u128::from(busy_ms) >= TELLING_BUSY.as_millis()
            && written >= TELLING_BYTES
            && self.streams(before, now);
        if !is_telling {
            return Told::Writes;
        }
        let bytes_s = written.saturating_mul(1000) / busy_ms;
        // A fast interval counts fully, so that no disk is limited below its rate. Slow
        // intervals, as during garbage collection, count a quarter each.
        self.bytes_s = match self.times {
            0 => bytes_s,
            _ => bytes_s.max((3 * self.bytes_s + bytes_s) / 4),
        };
        self.times = self.times.saturating_add(1);
        Told::Rate
    }

    /// Whether the disk did nothing but stream writes.
    fn streams(&self, before: &Statistics, now: &Statistics) -> bool {
        let since = |of: fn(&Statistics) -> u64| of(now).saturating_sub(of(before));
        let writes = since(|it| it.writes).max(1);
        let others_ms = since(|it| it.flush_ms) + since(|it| it.discard_ms);
        since(|it| it.written_bytes) / writes >= self.streaming_bytes
            && since(|it| it.written_bytes) >= 4 * since(|it| it.read_bytes)
            && since(|it| it.reads) * OTHERS_ONE_IN <= writes
            && others_ms * OTHERS_ONE_IN <= since(|it| it.busy_ms)
    }

    /// Whether anything has told its rate.
    pub(crate) fn is_known(self) -> bool {
        self.times > 0
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

    /// Counters of a disk since boot.
    #[derive(Clone, Copy, Default)]
    struct Done {
        writes: u64,
        written_kib: u64,
        reads: u64,
        read_kib: u64,
        flush_ms: u64,
        discard_ms: u64,
        busy_ms: u64,
    }

    impl Done {
        fn told(self) -> Statistics {
            let text = format!(
                "{} 0 {} 0 {} 0 {} 9 0 {} 9 0 0 0 {} 0 {}",
                self.reads,
                self.read_kib * 2,
                self.writes,
                self.written_kib * 2,
                self.busy_ms,
                self.discard_ms,
                self.flush_ms
            );
            Statistics::parse(&text).unwrap()
        }
    }

    /// Streams so much in requests of 512 KiB.
    fn streamed(mib: u64, busy_ms: u64) -> Done {
        Done {
            writes: 2 * mib,
            written_kib: mib << 10,
            busy_ms,
            ..Done::default()
        }
    }

    #[test]
    fn a_rate_is_damped_and_bounded() {
        let mut shown = Shown::default();
        let none = Done::default().told();
        let take = |shown: &mut Shown, done: Done| shown.take(&none, &done.told());
        assert_eq!(take(&mut shown, Done::default()), Told::Nothing);
        assert_eq!(shown.worth(1024 * MIB), UNKNOWN_BYTES);
        assert_eq!(take(&mut shown, streamed(40, 1000)), Told::Rate);
        take(&mut shown, streamed(20, 1000));
        assert_eq!(shown.worth(1024 * MIB), 35 * MIB);
        assert_eq!(shown.worth(16 * MIB), 16 * MIB);
        assert!(!shown.is_slow());
        for _ in 0..9 {
            take(&mut shown, streamed(2, 1000));
        }
        assert!(shown.is_slow());
        for _ in 0..20 {
            take(&mut shown, streamed(2, 1000));
        }
        assert_eq!(shown.worth(1024 * MIB), LEAST_BYTES);
        take(&mut shown, streamed(200, 1000));
        assert!(!shown.is_slow(), "a fast interval counts fully");
    }

    /// What any user can do to a disk, beside a stream or without one, for as long as they like.
    #[test]
    fn no_user_makes_a_disk_look_slow_by_small_writes_reads_flushes_or_discards() {
        let stream = streamed(10, 1000);
        let attacks = [
            (
                "O_DSYNC of 4 KiB",
                Done {
                    writes: 1000,
                    written_kib: 4000,
                    busy_ms: 1000,
                    ..Done::default()
                },
            ),
            (
                "direct writes of 64 KiB",
                Done {
                    writes: 150,
                    written_kib: 9600,
                    busy_ms: 1000,
                    ..Done::default()
                },
            ),
            (
                "small writes beside a stream",
                Done {
                    writes: 100,
                    ..stream
                },
            ),
            (
                "random reads beside a stream",
                Done {
                    reads: 60,
                    read_kib: 240,
                    ..stream
                },
            ),
            (
                "fsync beside a stream",
                Done {
                    flush_ms: 600,
                    ..stream
                },
            ),
            (
                "fstrim beside a stream",
                Done {
                    discard_ms: 600,
                    ..stream
                },
            ),
            (
                "reads as large as the writes",
                Done {
                    read_kib: 50 << 10,
                    ..stream
                },
            ),
        ];
        for (attack, done) in attacks {
            let mut shown = Shown::default();
            for _ in 0..100 {
                let told = shown.take(&Done::default().told(), &done.told());
                assert_eq!(told, Told::Writes, "{attack}");
            }
            assert!(!shown.is_slow() && !shown.is_known(), "{attack}");
        }
    }
}
