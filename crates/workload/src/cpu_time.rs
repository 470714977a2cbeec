//! Where the CPUs' time went, as iostat tells it: the shares of user, system and iowait in the time in
//! which they were not idle ("002", 2.3.2). iowait is a CPU's time with nothing to run while a task that
//! slept last on it waits for a disk.

use crate::Measurement;
use std::fs;

/// CPU time since boot, of all CPUs and processes, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    user: u64,
    system: u64,
    iowait: u64,
}

impl CpuTime {
    /// Until now; None if the kernel does not tell.
    pub(crate) fn now() -> Option<CpuTime> {
        CpuTime::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the text of `/proc/stat`. Time in interrupts is the system's, as in iostat.
    fn parse(text: &str) -> Option<CpuTime> {
        let fields = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = fields
            .split_whitespace()
            .map_while(|it| it.parse().ok())
            .collect();
        let [user, nice, system, _idle, iowait, irq, softirq, ..] = ticks[..] else {
            return None;
        };
        Some(CpuTime {
            user: user + nice,
            system: system + irq + softirq,
            iowait,
        })
    }

    /// The shares since `before`; none if all CPUs were idle. The kernel's iowait may go back a little.
    pub(crate) fn shares_since(&self, before: &CpuTime) -> Vec<Measurement> {
        let grown = [
            ("iowait_share", self.iowait.saturating_sub(before.iowait)),
            ("user_share", self.user.saturating_sub(before.user)),
            ("system_share", self.system.saturating_sub(before.system)),
        ];
        let active: u64 = grown.iter().map(|(_, ticks)| ticks).sum();
        if active == 0 {
            return Vec::new();
        }
        let share =
            |(name, ticks): (&str, u64)| Measurement::new(name, "1", ticks as f64 / active as f64);
        grown.into_iter().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_that_was_not_idle() {
        let read = |text| CpuTime::parse(text).unwrap();
        let before = read("cpu  100 10 50 1000 20 1 2 0 0 0\ncpu0 1 2 3 4 5 6 7\n");
        // 30 user, 40 system with interrupts, 30 iowait; idle and stolen time do not count.
        let after = read("cpu  120 20 80 9000 50 6 7 55 0 0\n");
        let shares = after.shares_since(&before);
        let values: Vec<(&str, f64)> = shares
            .iter()
            .map(|it| (it.metric.as_str(), it.value))
            .collect();
        assert_eq!(
            values,
            [
                ("iowait_share", 0.3),
                ("user_share", 0.3),
                ("system_share", 0.4)
            ]
        );
        assert!(after.shares_since(&after).is_empty());
    }

    #[test]
    fn an_iowait_that_goes_back_is_none() {
        let before = CpuTime {
            user: 1,
            system: 0,
            iowait: 5,
        };
        let after = CpuTime {
            user: 3,
            system: 0,
            iowait: 4,
        };
        assert_eq!(after.shares_since(&before)[0].value, 0.0);
    }

    #[test]
    fn other_texts_tell_nothing() {
        for text in ["", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7\n"] {
            assert_eq!(CpuTime::parse(text), None, "{text}");
        }
    }
}
