//! What the frontrow scheduler counted during the measured part of a run.

use sched::{Counters, Dependency};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use workload::{Measurement, Observer};

/// Reads the counters at both ends.
pub struct Waits<'a> {
    stats: Option<&'a Path>,
    before: io::Result<Option<Counters>>,
    after: io::Result<Option<Counters>>,
}

impl<'a> Waits<'a> {
    /// `stats` is the scheduler's file of counters, which is only there under
    /// frontrow; `None` for a device without a queue.
    pub fn new(stats: Option<&'a Path>) -> Self {
        Waits {
            stats,
            before: Ok(None),
            after: Ok(None),
        }
    }

    /// The waits by dependency; nothing under another scheduler.
    ///
    /// # Errors
    /// What kept the counters from being read.
    pub fn figures(self) -> io::Result<Vec<Measurement>> {
        match (self.before?, self.after?) {
            (Some(before), Some(after)) => Ok(figures(&after.since(&before))),
            _ => Ok(Vec::new()),
        }
    }
}

impl Observer for Waits<'_> {
    fn before(&mut self) {
        self.before = read(self.stats);
    }

    fn after(&mut self) {
        self.after = read(self.stats);
    }
}

fn read(stats: Option<&Path>) -> io::Result<Option<Counters>> {
    let Some(path) = stats else {
        return Ok(None);
    };
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(Counters::parse(&text))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn figures(counters: &Counters) -> Vec<Measurement> {
    let mut figures = Vec::new();
    for dependency in Dependency::ALL {
        let waits = counters.waits(dependency);
        let mut add = |what: &str, unit, value| {
            figures.push(Measurement {
                metric: format!("{}_{what}", dependency.name()),
                unit,
                value,
                histogram: None,
            });
        };
        add("waits", "1", waits.waits as f64);
        add("boosted", "1", waits.boosted as f64);
        add("in_device", "1", waits.in_device as f64);
        add("pending_matched", "1", waits.pending_matched as f64);
        add("wait_ms", "ms", waits.wait_ns as f64 / 1e6);
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_grew_meanwhile_counts() {
        let directory = tempfile::tempdir().unwrap();
        let stats = directory.path().join("stats");
        fs::write(&stats, "meta_waits 5\nmeta_wait_ns 1000000\n").unwrap();
        let mut waits = Waits::new(Some(&stats));
        waits.before();
        fs::write(&stats, "meta_waits 7\nmeta_wait_ns 4000000\n").unwrap();
        waits.after();
        let figures = waits.figures().unwrap();
        let value = |metric: &str| {
            let row = figures.iter().find(|row| row.metric == metric);
            row.map(|row| row.value)
        };
        assert_eq!(value("meta_waits"), Some(2.0));
        assert_eq!(value("meta_wait_ms"), Some(3.0));
    }

    #[test]
    fn another_scheduler_counts_nothing() {
        let mut waits = Waits::new(Some(Path::new("/nonexistent/stats")));
        waits.before();
        waits.after();
        assert_eq!(waits.figures().unwrap(), []);
    }
}
