//! Latencies of operations by name, on CLOCK_MONOTONIC.

use crate::{Error, Measurement};
use record::isolation::STEPS;
use record::{Histogram, Series};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Largest latency of the histogram: an hour, which no operation takes.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// Recorder of a foreground's operations, in the order of their first occurrence.
pub(crate) struct Meter<'a> {
    operations: Vec<Operation>,
    steps: Vec<Duration>,
    outside: Duration,
    stop: &'a AtomicBool,
}

struct Operation {
    name: &'static str,
    count: u64,
    total_ns: u64,
    longest_ns: u64,
    histogram: hdrhistogram::Histogram<u64>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(stop: &'a AtomicBool) -> Self {
        Meter {
            operations: Vec::with_capacity(16),
            steps: Vec::new(),
            outside: Duration::ZERO,
            stop,
        }
    }

    /// Runs a system call on `path`, and records its latency as `operation`.
    pub(crate) fn time<T>(
        &mut self,
        operation: &'static str,
        path: &Path,
        call: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, Error> {
        self.go_on()?;
        let start = Instant::now();
        let outcome = call();
        self.record(operation, start.elapsed());
        outcome.map_err(|source| Error::io(operation, path, source))
    }

    /// Runs several operations, and records them together as one, such as a launch.
    pub(crate) fn span<T>(
        &mut self,
        operation: &'static str,
        parts: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.go_on()?;
        let (start, outside) = (Instant::now(), self.outside);
        let outcome = parts(self)?;
        let inside = start.elapsed().saturating_sub(self.outside - outside);
        self.record(operation, inside);
        Ok(outcome)
    }

    /// Runs a part of a response that is the same in every run, such as a photo or a shot, and
    /// records its time.
    pub(crate) fn step<T>(
        &mut self,
        parts: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let start = Instant::now();
        let outcome = self.span("step", parts)?;
        self.steps.push(start.elapsed());
        Ok(outcome)
    }

    /// Excludes `time` from the foreground's: it waited for the load, or undid the last iteration.
    pub(crate) fn exclude(&mut self, time: Duration) {
        self.outside += time;
    }

    /// Sum of the excluded time.
    pub(crate) fn outside_time(&self) -> Duration {
        self.outside
    }

    /// The caller's stop flag.
    pub(crate) fn stop(&self) -> &'a AtomicBool {
        self.stop
    }

    /// An error once the stop flag is set.
    pub(crate) fn go_on(&self) -> Result<(), Error> {
        go_on(self.stop)
    }

    /// Number of recordings of `operation`.
    pub(crate) fn count(&self, operation: &str) -> u64 {
        let same = |known: &&Operation| known.name == operation;
        self.operations.iter().find(same).map_or(0, |it| it.count)
    }

    fn record(&mut self, name: &'static str, latency: Duration) {
        let index = match self.operations.iter().position(|known| known.name == name) {
            Some(index) => index,
            None => {
                self.operations.push(Operation::new(name));
                self.operations.len() - 1
            }
        };
        self.operations[index].add(latency.as_nanos() as u64);
    }

    /// Mean, 99th percentile and worst latency of each operation. The mean's row has the
    /// distribution, and for steps also their times in order.
    pub(crate) fn measurements(&self) -> Vec<Measurement> {
        let mut rows: Vec<Measurement> = self
            .operations
            .iter()
            .flat_map(Operation::measurements)
            .collect();
        if let Some(row) = rows.iter_mut().find(|row| row.metric == STEPS) {
            let times = self.steps.iter().map(|it| it.as_nanos() as f64 / 1e6);
            row.series = Some(Series::of_operations(times));
        }
        rows
    }
}

/// An error once `stop` is set.
pub(crate) fn go_on(stop: &AtomicBool) -> Result<(), Error> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

impl Operation {
    fn new(name: &'static str) -> Self {
        let histogram = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, 2)
            .expect("1 ns to an hour by two digits is a valid range");
        Operation {
            name,
            count: 0,
            total_ns: 0,
            longest_ns: 0,
            histogram,
        }
    }

    fn add(&mut self, latency_ns: u64) {
        self.count += 1;
        self.total_ns += latency_ns;
        self.longest_ns = self.longest_ns.max(latency_ns);
        self.histogram.saturating_record(latency_ns);
    }

    fn measurements(&self) -> [Measurement; 3] {
        // The histogram rounds up to its two digits, which must not exceed the worst latency.
        let p99_ns = self.histogram.value_at_quantile(0.99).min(self.longest_ns);
        let row = |figure, value_ns: f64| {
            Measurement::milliseconds(format!("{}_{figure}_ms", self.name), value_ns / 1e6)
        };
        let mut mean = row("mean", self.total_ns as f64 / self.count as f64);
        mean.histogram = Some(Histogram::from(&self.histogram));
        [
            mean,
            row("p99", p99_ns as f64),
            row("max", self.longest_ns as f64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(latencies_ms: &[u64]) -> Vec<Measurement> {
        let stop = AtomicBool::new(false);
        let mut meter = Meter::new(&stop);
        for latency in latencies_ms {
            meter.record("fsync", Duration::from_millis(*latency));
        }
        meter.measurements()
    }

    #[test]
    fn mean_and_worst_are_exact_and_the_distribution_is_whole() {
        let rows = recorded(&[1, 2, 3, 10]);
        let value = |metric: &str| rows.iter().find(|row| row.metric == metric).unwrap();
        assert_eq!(value("fsync_mean_ms").value, 4.0);
        assert_eq!(value("fsync_max_ms").value, 10.0);
        assert_eq!(value("fsync_p99_ms").value, 10.0);
        let histogram = value("fsync_mean_ms").histogram.as_ref().unwrap();
        let counted: u64 = histogram.buckets_ns.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 4);
    }

    #[test]
    fn steps_keep_their_order() {
        let stop = AtomicBool::new(false);
        let mut meter = Meter::new(&stop);
        for _ in 0..3 {
            meter.step(|_| Ok(())).unwrap();
        }
        let rows = meter.measurements();
        assert_eq!(rows[0].metric, STEPS);
        assert_eq!(rows[0].series.as_ref().unwrap().values.len(), 3);
        assert!(rows[1..].iter().all(|row| row.series.is_none()));
    }

    #[test]
    fn the_order_of_rows_is_the_order_of_first_appearance() {
        let stop = AtomicBool::new(false);
        let mut meter = Meter::new(&stop);
        for name in ["write", "creat", "write"] {
            meter.record(name, Duration::from_nanos(5));
        }
        let metrics: Vec<String> = meter
            .measurements()
            .into_iter()
            .map(|row| row.metric)
            .collect();
        assert_eq!(metrics[0], "write_mean_ms");
        assert_eq!(metrics[3], "creat_mean_ms");
    }

    #[test]
    fn a_stop_ends_the_next_operation_before_it_begins() {
        let stop = AtomicBool::new(true);
        let mut meter = Meter::new(&stop);
        let outcome = meter.time("write", Path::new("x"), || -> io::Result<()> {
            panic!("ran after the stop")
        });
        assert!(matches!(outcome, Err(Error::Interrupted)));
    }
}
