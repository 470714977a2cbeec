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

/// Advice at a step, when `buffered` bytes will be written in each step from this one on, and
/// `direct_bytes` evenly over all of them, with `free_bytes` now.
///
/// For the writes up to each step, T_gc is the time that collecting what is missing takes, and T_idle
/// what earlier writes leave of the time between the next step and that one: a host that waits can
/// decide again at the next step. What T_idle has no time for is collected now.
pub fn advise(
    buffered: &[u64],
    direct_bytes: u64,
    free_bytes: u64,
    rates: Rates,
    step_ns: u64,
) -> Advice {
    let collect_bytes_per_s = rates.collect_bytes_per_s.max(1.0);
    let step_s = step_ns as f64 / 1e9;
    let direct_of_step = direct_bytes as f64 / buffered.len().max(1) as f64;
    let mut before = 0.0;
    let mut now: f64 = 0.0;
    for (step, bytes) in buffered.iter().enumerate() {
        let required = before + *bytes as f64 + direct_of_step;
        let missing = (required - free_bytes as f64).max(0.0);
        let write_s = before / rates.write_bytes_per_s.max(1.0);
        let idle_s = (step.saturating_sub(1) as f64 * step_s - write_s).max(0.0);
        now = now.max(missing - idle_s * collect_bytes_per_s);
        before = required;
    }
    match (now > 0.0, before <= free_bytes as f64) {
        (true, _) => Advice::Collect(now.ceil() as u64),
        (false, true) => Advice::Enough,
        (false, false) => Advice::Wait,
    }
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

    const RATES: Rates = Rates {
        write_bytes_per_s: 100.0,
        collect_bytes_per_s: 20.0,
    };

    fn advised(buffered: [u64; 4], direct: u64, free: u64) -> Advice {
        advise(&buffered, direct, free, RATES, 5 * SECOND_NS)
    }

    #[test]
    fn space_is_made_only_when_there_will_be_no_time_for_it() {
        assert_eq!(advised([0, 0, 0, 500], 0, 500), Advice::Enough);
        // Between the next step and the last are 10 s, in which 200 bytes are made free.
        assert_eq!(advised([0, 0, 0, 500], 0, 300), Advice::Wait);
        assert_eq!(advised([0, 0, 0, 500], 0, 280), Advice::Collect(20));
        // What is written in between takes time, too.
        assert_eq!(advised([0, 300, 0, 500], 0, 600), Advice::Collect(60));
    }

    #[test]
    fn what_is_written_soon_has_no_time() {
        assert_eq!(advised([0, 50, 0, 0], 0, 20), Advice::Collect(30));
        assert_eq!(advised([50, 0, 0, 0], 0, 20), Advice::Collect(30));
    }

    #[test]
    fn direct_writes_come_evenly() {
        assert_eq!(advised([0; 4], 400, 400), Advice::Enough);
        assert_eq!(advised([0; 4], 400, 200), Advice::Collect(60));
    }

    #[test]
    fn a_device_without_rates_and_a_host_without_steps_get_advice() {
        let none = Rates {
            write_bytes_per_s: 0.0,
            collect_bytes_per_s: 0.0,
        };
        assert_eq!(advise(&[50], 0, 20, none, SECOND_NS), Advice::Collect(30));
        assert_eq!(advise(&[], 0, 20, none, SECOND_NS), Advice::Enough);
    }
}
