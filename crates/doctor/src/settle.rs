//! When the effects of a change on dirty pages have settled.
//!
//! Pages that were dirtied before a change still throttle writers after it, until the disk has
//! written them: with a new limit they drain at the disk's rate, and without it they pile up anew.

use std::time::Duration;

/// Dirty bytes by which the extremes have to move, to count as a trend. A disk of 0.5 MB/s drains
/// as much in [`STEADY`].
const STEP_BYTES: u64 = 1 << 20;
/// Time in which neither extreme moves, once the dirty pages have settled.
const STEADY: Duration = Duration::from_secs(2);
/// Longest wait: 3 GB drain at 10 MB/s.
pub const AT_MOST: Duration = Duration::from_secs(300);

/// The extremes of what was dirty or being written since a change.
///
/// Extremes, as apps that write now and then move the amount up and down for ever, within bounds.
#[derive(Clone, Copy, Debug)]
pub struct Settling {
    least_bytes: u64,
    most_bytes: u64,
    moved: Duration,
}

impl Settling {
    /// Begins right after the change, with what is dirty or being written at that time.
    pub fn from(dirty_bytes: u64) -> Settling {
        Settling {
            least_bytes: dirty_bytes,
            most_bytes: dirty_bytes,
            moved: Duration::ZERO,
        }
    }

    /// Whether a window may begin, `elapsed` after the change.
    pub fn is_over(&mut self, elapsed: Duration, dirty_bytes: u64) -> bool {
        if dirty_bytes + STEP_BYTES <= self.least_bytes {
            (self.least_bytes, self.moved) = (dirty_bytes, elapsed);
        }
        if dirty_bytes >= self.most_bytes + STEP_BYTES {
            (self.most_bytes, self.moved) = (dirty_bytes, elapsed);
        }
        elapsed >= self.moved + STEADY || elapsed >= AT_MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When it is over, if this much is dirty at each tenth of a second.
    fn over_s(dirty_bytes: impl Fn(f64) -> f64) -> f64 {
        let mut settling = Settling::from(dirty_bytes(0.0) as u64);
        let tenths = (1..).map(|it| f64::from(it) / 10.0);
        let mut later = tenths.skip_while(|at_s| {
            let dirty_bytes = dirty_bytes(*at_s) as u64;
            !settling.is_over(Duration::from_secs_f64(*at_s), dirty_bytes)
        });
        later.next().unwrap()
    }

    #[test]
    fn what_is_steady_takes_two_seconds() {
        assert_eq!(over_s(|_| 50e6), 2.0);
        // As much as an app makes dirty in each second, and less than a step.
        assert_eq!(over_s(|at_s| 50e6 + 1e6 * at_s.fract()), 2.0);
    }

    #[test]
    fn what_drains_or_piles_up_is_awaited() {
        let drains = over_s(|at_s| (40e6 - 4e6 * at_s).max(4e6));
        assert!((10.5..=11.1).contains(&drains), "{drains}");
        let piles_up = over_s(|at_s| (4e6 + 20e6 * at_s).min(400e6));
        assert!((21.5..=22.0).contains(&piles_up), "{piles_up}");
    }

    #[test]
    fn what_goes_up_and_down_is_awaited_for_a_period() {
        let saws = over_s(|at_s| 50e6 + 8e6 * (at_s / 3.0).fract());
        assert!((3.0..=6.0).contains(&saws), "{saws}");
    }

    #[test]
    fn what_never_settles_has_its_bound() {
        assert_eq!(over_s(|at_s| 4e6 * at_s), AT_MOST.as_secs_f64());
    }
}
