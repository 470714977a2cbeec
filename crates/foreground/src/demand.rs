//! How much the host is about to write, and when its flash device has to collect for it.
//!
//! After Hahn, Lee and Kim, *To Collect or Not to Collect: Just-in-Time Garbage Collection for
//! High-Performance SSDs with Long Lifetimes* (DAC 2015). The host knows when its dirty pages will be
//! written, because they expire. What is written past the page cache it knows from the past. Space
//! is made only if it is missing and the device's idle time until then will not do.
//!
//! Nothing here asks the machine: times are nanoseconds of one clock, sizes bytes.

use std::collections::VecDeque;

/// The kernel's writeback: how often it looks, and the age at which a dirty page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writeback {
    /// `vm.dirty_writeback_centisecs`: the length of a step.
    pub step_ns: u64,
    /// `vm.dirty_expire_centisecs`: the horizon.
    pub expire_ns: u64,
}

/// Data that became dirty at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// Time since which it is dirty.
    pub since_ns: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Writeback {
    /// Number of steps of the horizon, at least one.
    pub fn steps(&self) -> usize {
        self.expire_ns.div_ceil(self.step_ns.max(1)).max(1) as usize
    }

    /// Bytes that will be written in each step from `now_ns` on. Data is written at the first step
    /// after it has expired.
    pub fn buffered(&self, now_ns: u64, dirty: &[Dirty]) -> Vec<u64> {
        let mut steps = vec![0; self.steps()];
        for data in dirty {
            let left_ns = (data.since_ns + self.expire_ns).saturating_sub(now_ns);
            let step = (left_ns / self.step_ns.max(1)) as usize;
            let last = steps.len() - 1;
            steps[step.min(last)] += data.bytes;
        }
        steps
    }
}

/// Writes past the page cache and those that were waited for, horizon by horizon.
#[derive(Clone, Debug)]
pub struct Direct {
    horizon_ns: u64,
    /// Bytes of the horizons that are over, the oldest first.
    past: VecDeque<u64>,
    begun_ns: u64,
    bytes: u64,
}

/// Horizons that are remembered.
const REMEMBERED: usize = 100;

impl Direct {
    /// No writes yet; the first horizon begins at `now_ns`.
    pub fn new(horizon_ns: u64, now_ns: u64) -> Self {
        Direct {
            horizon_ns: horizon_ns.max(1),
            past: VecDeque::new(),
            begun_ns: now_ns,
            bytes: 0,
        }
    }

    /// Adds a write; times do not go back.
    pub fn add(&mut self, now_ns: u64, bytes: u64) {
        self.go_on(now_ns);
        self.bytes += bytes;
    }

    /// Ends the horizons that are over at `now_ns`.
    fn go_on(&mut self, now_ns: u64) {
        while now_ns >= self.begun_ns + self.horizon_ns {
            if self.past.len() == REMEMBERED {
                self.past.pop_front();
            }
            self.past.push_back(std::mem::take(&mut self.bytes));
            self.begun_ns += self.horizon_ns;
        }
    }

    /// Bytes that four in five of the past horizons did not exceed; before the first has ended, what
    /// came so far.
    pub fn expected(&mut self, now_ns: u64) -> u64 {
        self.go_on(now_ns);
        let mut sorted: Vec<u64> = self.past.iter().copied().collect();
        sorted.sort_unstable();
        match sorted.len() {
            0 => self.bytes,
            count => sorted[(count * 4).div_ceil(5) - 1],
        }
    }
}

/// What a device does in a second, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes that the host writes.
    pub write_bytes_per_s: f64,
    /// Bytes that collection makes free.
    pub collect_bytes_per_s: f64,
}

/// What the device is to do until the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// As much is free as will be written.
    Enough,
    /// Space is missing, and the time for it comes later.
    Wait,
    /// This many bytes have to be made free now.
    Collect(u64),
}

/// Advice for a horizon in which `required_bytes` will be written, with `free_bytes` now.
///
/// T_gc is the time that collecting what is missing takes, T_idle what the writes leave of the
/// horizon. What T_idle has no time for is collected now, and at most what is missing.
pub fn advise(required_bytes: u64, free_bytes: u64, rates: Rates, horizon_ns: u64) -> Advice {
    let missing = required_bytes.saturating_sub(free_bytes) as f64;
    if missing == 0.0 {
        return Advice::Enough;
    }
    let collect_bytes_per_s = rates.collect_bytes_per_s.max(1.0);
    let collect_s = missing / collect_bytes_per_s;
    let write_s = required_bytes as f64 / rates.write_bytes_per_s.max(1.0);
    let idle_s = (horizon_ns as f64 / 1e9 - write_s).max(0.0);
    if collect_s <= idle_s {
        return Advice::Wait;
    }
    let now = (collect_s - idle_s) * collect_bytes_per_s;
    Advice::Collect(now.min(missing).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const LINUX: Writeback = Writeback {
        step_ns: 5 * SECOND_NS,
        expire_ns: 30 * SECOND_NS,
    };

    fn dirty(since_s: u64, bytes: u64) -> Dirty {
        Dirty {
            since_ns: since_s * SECOND_NS,
            bytes,
        }
    }

    #[test]
    fn dirty_data_is_written_in_the_step_in_which_it_expires() {
        let now_ns = 40 * SECOND_NS;
        let all = [dirty(5, 1), dirty(12, 2), dirty(16, 4), dirty(40, 8)];
        assert_eq!(LINUX.buffered(now_ns, &all), [3, 4, 0, 0, 0, 8]);
        assert_eq!(LINUX.buffered(now_ns, &[]), [0; 6]);
    }

    #[test]
    fn any_settings_of_the_kernel_have_steps() {
        let odd = Writeback {
            step_ns: 0,
            expire_ns: 0,
        };
        assert_eq!(odd.buffered(7, &[dirty(0, 3)]), [3]);
        let longer = Writeback {
            step_ns: 50,
            expire_ns: 30,
        };
        assert_eq!(longer.steps(), 1);
    }

    #[test]
    fn four_in_five_horizons_write_no_more_than_is_expected() {
        let mut direct = Direct::new(10, 0);
        assert_eq!(direct.expected(0), 0);
        direct.add(3, 7);
        assert_eq!(direct.expected(3), 7);
        for (horizon, bytes) in [50, 10, 40, 20, 30].into_iter().enumerate() {
            direct.add(10 + horizon as u64 * 10, bytes);
        }
        // 7, 50, 10, 40, 20 and 30.
        assert_eq!(direct.expected(60), 40);
        // Horizons without writes count, too.
        assert_eq!(direct.expected(400), 0);
    }

    #[test]
    fn the_past_is_forgotten_in_time() {
        let mut direct = Direct::new(10, 0);
        direct.add(0, 1_000);
        for horizon in 1..=REMEMBERED as u64 {
            direct.add(horizon * 10, 5);
        }
        assert_eq!(direct.expected(10 * (REMEMBERED as u64 + 1)), 5);
        assert_eq!(direct.past.len(), REMEMBERED);
    }

    #[test]
    fn space_is_made_only_when_there_will_be_no_time_for_it() {
        let rates = Rates {
            write_bytes_per_s: 50.0,
            collect_bytes_per_s: 20.0,
        };
        let horizon_ns = 30 * SECOND_NS;
        assert_eq!(advise(100, 100, rates, horizon_ns), Advice::Enough);
        // 400 bytes take 20 s, and 500 are written in 10.
        assert_eq!(advise(500, 100, rates, horizon_ns), Advice::Wait);
        assert_eq!(advise(500, 80, rates, horizon_ns), Advice::Collect(20));
        // The writes alone take longer than there is.
        assert_eq!(
            advise(2_000, 1_900, rates, horizon_ns),
            Advice::Collect(100)
        );
    }

    #[test]
    fn a_device_without_rates_is_asked_for_all_that_is_missing() {
        let none = Rates {
            write_bytes_per_s: 0.0,
            collect_bytes_per_s: 0.0,
        };
        assert_eq!(advise(50, 20, none, SECOND_NS), Advice::Collect(30));
    }
}
