//! Bytes in the queue and in the device during a run, over time, for foreground and background:
//! figure 46 of the dissertation ("002", 6.2.2). iopro records the measured part. The file of a
//! request's pages decides its owner, which holds for writeback by kworker, too.

use super::{Listener, Outcome, recorded};
use iopro::capture::{Background, clock_ns};
use iopro::report::{Flow, flows};
use record::{Run, Series};
use std::ops::Range;
use workload::Watch;
use workload::{Measurement, Observer};

/// Interval of a series' values; longer if there would be more than [`VALUES`].
const INTERVAL_NS: u64 = 10_000_000;
const VALUES: u64 = 600;

/// Owners of requests, and the paths of their files. The rest belongs to the system: journal,
/// tables, discards.
const OWNERS: [(&str, &str); 2] = [
    ("foreground", "/foreground/"),
    ("background", "/background"),
];
const SYSTEM: &str = "system";

/// Records the measured part, and no more: what is prepared is as in other runs.
pub struct Snapshot {
    watch: Watch,
    recording: Option<Outcome<Background>>,
    begun_ns: u64,
    ended_ns: u64,
}

impl Snapshot {
    pub fn new(watch: Watch) -> Self {
        Snapshot {
            watch,
            recording: None,
            begun_ns: 0,
            ended_ns: 0,
        }
    }

    /// Ends the recording, also where the run failed, and gives its figures.
    pub fn finish(self) -> Outcome<Vec<Measurement>> {
        let Some(recording) = self.recording else {
            return Ok(Vec::new());
        };
        let interval_ns = interval_ns(self.begun_ns..self.ended_ns);
        let window = (self.begun_ns..self.ended_ns, interval_ns);
        let flows = recorded::finish(recording?, |linked| {
            flows(linked, window, OWNERS.len(), &owner).map_err(|error| error.to_string())
        })?;
        let names = OWNERS.map(|(name, _)| name).into_iter().chain([SYSTEM]);
        let figures = names
            .zip(&flows)
            .flat_map(|(name, flow)| figures(name, flow, interval_ns));
        Ok(figures.collect())
    }
}

impl Observer for Snapshot {
    fn before(&mut self) {
        self.recording = Some(recorded::start());
        self.watch.before();
        self.begun_ns = clock_ns(libc::CLOCK_MONOTONIC);
    }

    fn after(&mut self) {
        self.ended_ns = clock_ns(libc::CLOCK_MONOTONIC);
        self.watch.after();
    }
}

impl Listener for Snapshot {
    fn figures(&self, run: &Run) -> Vec<Measurement> {
        self.watch.figures(run)
    }
}

fn owner(path: &str) -> Option<usize> {
    OWNERS.iter().position(|(_, place)| path.contains(place))
}

/// A multiple of [`INTERVAL_NS`].
fn interval_ns(window: Range<u64>) -> u64 {
    let least = (window.end - window.start).div_ceil(VALUES);
    least.next_multiple_of(INTERVAL_NS).max(INTERVAL_NS)
}

fn figures(owner: &str, flow: &Flow, interval_ns: u64) -> [Measurement; 3] {
    let figure = |what: &str, unit: &'static str, values: Vec<f64>| {
        let series = Series::over_time(interval_ns as f64 / 1e6, values);
        let mean = Measurement::new(format!("{owner}_{what}"), unit, series.mean());
        Measurement {
            series: Some(series),
            ..mean
        }
    };
    let rate = |bytes: &u64| *bytes as f64 * 1e3 / interval_ns as f64;
    let rates = flow.completed_bytes.iter().map(rate).collect();
    [
        figure("queued", "requests", flow.queued.clone()),
        figure("in_device", "requests", flow.in_device.clone()),
        figure("device_mb_s", "MB/s", rates),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_longer_intervals_and_not_more() {
        assert_eq!(interval_ns(0..3_000_000_000), INTERVAL_NS);
        assert_eq!(interval_ns(5..5), INTERVAL_NS);
        assert_eq!(interval_ns(0..6_000_000_001), 2 * INTERVAL_NS);
    }

    #[test]
    fn files_belong_to_whom_the_workload_made_them_for() {
        assert_eq!(owner("/mnt/foreground/photo-1.jpg"), Some(0));
        assert_eq!(owner("/mnt/background-1"), Some(1));
        assert_eq!(owner(""), None);
    }
}
