//! Limit of the rate of moving.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longest sleep between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(50);

/// Limit of bytes per second, on average since its creation.
#[derive(Debug)]
pub struct Pace {
    bytes_per_s: Option<u64>,
    begun: Instant,
    bytes: u64,
}

impl Pace {
    /// A limit in bytes per second; `None` for no limit.
    pub fn new(bytes_per_s: Option<u64>) -> Self {
        Pace {
            bytes_per_s,
            begun: Instant::now(),
            bytes: 0,
        }
    }

    /// Adds `bytes` moved, and waits until their sum is within the limit, or `stop` becomes true.
    pub(crate) fn moved(&mut self, bytes: u64, stop: &AtomicBool) {
        self.bytes += bytes;
        let Some(bytes_per_s) = self.bytes_per_s else {
            return;
        };
        let due = due(self.bytes, bytes_per_s);
        while !stop.load(Ordering::Relaxed) {
            let Some(left) = due.checked_sub(self.begun.elapsed()) else {
                return;
            };
            thread::sleep(left.min(LOOK));
        }
    }
}

/// Time from the begin until so many bytes may have been moved.
fn due(bytes: u64, bytes_per_s: u64) -> Duration {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1));
    Duration::from_nanos(ns.min(u128::from(u64::MAX)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time() {
        assert_eq!(due(5_000_000, 1_000_000), Duration::from_secs(5));
        assert_eq!(due(u64::MAX, 1), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn it_waits_for_the_rate_but_not_against_the_flag() {
        let mut pace = Pace::new(Some(1_000_000));
        pace.moved(20_000, &AtomicBool::new(false));
        assert!(pace.begun.elapsed() >= Duration::from_millis(20));
        pace.moved(u64::MAX / 2, &AtomicBool::new(true));
    }
}
