//! What scheduler and kernel counted during a run, as figures beside the workload's own.

use crate::code::Code;
use crate::cpu_time::CpuTime;
use crate::{Measurement, Observer};
use module::sched::{Counters, Dependency};
use record::Run;
use std::fs;

const BLOCK_BYTES: f64 = 4096.0;
const NS_PER_MS: f64 = 1e6;

/// Reads the counters just before and after the measured part. A stock scheduler has none, so then
/// there are the kernel's figures alone.
pub struct Watch {
    stats: String,
    journals: String,
    cpu_before: Option<CpuTime>,
    cpu_after: Option<CpuTime>,
    before: Option<Counters>,
    after: Option<Counters>,
    journal_blocks: Option<f64>,
}

impl Watch {
    /// Of the disk `device`, such as `sda`.
    pub fn new(device: &str) -> Self {
        Watch {
            stats: format!("/sys/block/{device}/queue/iosched/stats"),
            journals: format!("/proc/fs/jbd2/{device}-"),
            cpu_before: None,
            cpu_after: None,
            before: None,
            after: None,
            journal_blocks: None,
        }
    }

    fn read(&self) -> Option<Counters> {
        let text = fs::read_to_string(&self.stats).ok()?;
        Some(Counters::parse(&text))
    }

    /// Blocks that a commit wrote on average, of the one journal on the device.
    fn blocks_per_commit(&self) -> Option<f64> {
        let directory = fs::read_dir("/proc/fs/jbd2").ok()?;
        let info = directory
            .filter_map(Result::ok)
            .map(|entry| entry.path().join("info"))
            .find(|path| path.to_string_lossy().starts_with(&self.journals))?;
        blocks_logged(&fs::read_to_string(info).ok()?)
    }

    /// The counters' growth, and what the bars need besides.
    pub fn figures(&self, run: &Run) -> Vec<Measurement> {
        let mut figures = self.cpu_shares();
        figures.extend(self.of_scheduler(run));
        figures
    }

    fn cpu_shares(&self) -> Vec<Measurement> {
        match (&self.cpu_before, &self.cpu_after) {
            (Some(before), Some(after)) => after.shares_since(before),
            _ => Vec::new(),
        }
    }

    fn of_scheduler(&self, run: &Run) -> Vec<Measurement> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return Vec::new();
        };
        let grown = after.since(before);
        let mut figures: Vec<Measurement> = Dependency::ALL
            .iter()
            .flat_map(|&it| of_dependency(&grown, it))
            .collect();
        let reading = |name: &str| after.all().get(name).map(|&value| value as f64);
        figures.extend(idle_while_waiting(&grown, reading).into_iter().flatten());
        // An idle run's is that of its preparation.
        let age_ns = reading("now_async_age_peak_ns").filter(|_| !run.load.is_idle());
        if let Some(age_ns) = age_ns {
            figures.push(Measurement::milliseconds(
                "oldest_request_ms".to_owned(),
                age_ns / NS_PER_MS,
            ));
        }
        if Code::of(run.workload).allows_commit {
            figures.extend(self.commit_allowance(reading));
        }
        figures
    }

    /// The time that a commit's blocks and two requests in flight take the
    /// device: what M5's fsync may need on top of an idle one.
    fn commit_allowance(&self, reading: impl Fn(&str) -> Option<f64>) -> Option<Measurement> {
        let commit_bytes = self.journal_blocks? * BLOCK_BYTES;
        let request_bytes = reading("now_max_request_bytes")?;
        let bytes_per_ms = reading("now_async_bytes_per_s")? / 1000.0;
        let allowance_ms = (commit_bytes + 2.0 * request_bytes) / bytes_per_ms;
        Some(Measurement::milliseconds(
            "commit_allowance_ms".to_owned(),
            allowance_ms,
        ))
    }
}

impl Observer for Watch {
    fn before(&mut self) {
        self.before = self.read();
        self.cpu_before = CpuTime::now();
    }

    fn after(&mut self) {
        self.cpu_after = CpuTime::now();
        self.after = self.read();
        self.journal_blocks = self.blocks_per_commit();
    }
}

fn of_dependency(grown: &Counters, dependency: Dependency) -> Vec<Measurement> {
    let waits = grown.waits(dependency);
    let name = |what: &str| format!("{}_{what}", dependency.name());
    let count = |what, value: u64| Measurement::new(name(what), "1", value as f64);
    vec![
        count("waits", waits.waits),
        count("boosted", waits.boosted),
        count("in_device", waits.in_device),
        count("pending_matched", waits.pending_matched),
        Measurement::milliseconds(name("wait_ms"), waits.wait_ns as f64 / NS_PER_MS),
    ]
}

/// The device's time without anything to do while somebody waited and something was
/// queued: in all, and the longest since the scheduler was set.
fn idle_while_waiting(
    grown: &Counters,
    reading: impl Fn(&str) -> Option<f64>,
) -> Option<[Measurement; 2]> {
    let sum_ns = *grown.all().get("idle_while_waiting_ns")?;
    let longest_ns = reading("now_longest_idle_while_waiting_ns")?;
    Some([
        Measurement::milliseconds(
            "idle_while_waiting_ms".to_owned(),
            sum_ns as f64 / NS_PER_MS,
        ),
        Measurement::milliseconds(
            "longest_idle_while_waiting_ms".to_owned(),
            longest_ns / NS_PER_MS,
        ),
    ])
}

/// From the text of a journal's `info`: the line `  N logged blocks per transaction`.
fn blocks_logged(info: &str) -> Option<f64> {
    let line = info
        .lines()
        .find(|line| line.ends_with(" logged blocks per transaction"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journals_blocks_are_read() {
        let info = "12 transactions (11 requested)\naverage:\n  0ms waiting for transaction\n  \
                    5 handles per transaction\n  4 blocks per transaction\n  \
                    7 logged blocks per transaction\n";
        assert_eq!(blocks_logged(info), Some(7.0));
        assert_eq!(blocks_logged("nothing"), None);
    }

    /// Two blocks and two requests of 4 KB are 16,384 bytes: 4 ms at 4,096,000 bytes a second.
    #[test]
    fn a_commit_may_take_what_its_bytes_take_the_device() {
        let mut watch = Watch::new("sda");
        watch.journal_blocks = Some(2.0);
        let reading = |name: &str| match name {
            "now_max_request_bytes" => Some(4096.0),
            "now_async_bytes_per_s" => Some(4_096_000.0),
            _ => None,
        };
        let allowance = watch.commit_allowance(reading).unwrap();
        assert_eq!(allowance.metric, "commit_allowance_ms");
        assert_eq!(allowance.value, 4.0);
    }
}
