//! Isolation of the foreground from the background, by resctl-bench's definitions. Isolation is the
//! foreground's rate over its rate alone, at most 1. Latency impact is the additional time of an
//! operation over its time alone, at least 0.
//!
//! resctl-bench samples a server with one kind of request each second. A response here takes a
//! tenth of that, and its steps differ (an app's code, a photo, an fsync). So a step is compared
//! with the same step alone.
//!
//! The rate is computed for each interval of [`INTERVAL_MS`] of the time under load. It is the time
//! that the interval's steps take alone, over the interval. An interval spent in a step of which
//! half would be over in that time has 0.5. A long stall thus is many samples, as for resctl-bench.

use crate::metric::{BACKGROUND_KEPT, BACKGROUND_RATE};
use crate::summary::IDLE;
use crate::{Row, policy};
use std::collections::HashMap;

/// Metric of the row with the times of a foreground's steps.
pub const STEPS: &str = "step_mean_ms";

/// Length of an interval of the foreground's time, in ms. Alone, a step takes 1 to 80 ms on the
/// lab's devices.
pub const INTERVAL_MS: f64 = 10.0;

/// Adds figures after the rows of each workload under load, where it was also measured alone by the
/// reference policy. Rows of one workload, load, policy and seed lie together. Takes time in
/// proportion to the number of rows.
pub fn add(rows: Vec<Row>) -> Vec<Row> {
    let measured = Measured::of(&rows);
    let mut all = Vec::with_capacity(rows.len());
    for group in rows.chunk_by(together) {
        all.extend_from_slice(group);
        all.extend(group.iter().flat_map(|row| measured.derived_of(row)));
    }
    all
}

fn together(one: &Row, other: &Row) -> bool {
    (&one.workload, &one.load, &one.policy, one.seed)
        == (&other.workload, &other.load, &other.policy, other.seed)
}

/// Metric, workload, load, policy and seed.
type Key<'a> = (&'a str, &'a str, &'a str, &'a str, u64);

/// The rows that others are compared with.
struct Measured<'a> {
    rows: HashMap<Key<'a>, &'a Row>,
    /// The policy whose steps alone are the reference.
    reference: Option<&'static str>,
}

impl<'a> Measured<'a> {
    fn of(rows: &'a [Row]) -> Measured<'a> {
        let mut of_metrics = HashMap::new();
        for row in rows {
            if [STEPS, BACKGROUND_RATE].contains(&row.metric.as_str()) {
                of_metrics.entry(key(row)).or_insert(row);
            }
        }
        let has = |policy: &str| rows.iter().any(|it| it.policy == policy);
        Measured {
            rows: of_metrics,
            reference: policy::REFERENCES.into_iter().find(|name| has(name)),
        }
    }

    /// Rows that are derived from one row.
    fn derived_of(&self, row: &Row) -> Vec<Row> {
        match row.metric.as_str() {
            _ if row.load == IDLE => Vec::new(),
            STEPS => self.of_steps(row).unwrap_or_default(),
            BACKGROUND_RATE => self.of_background(row).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn of_steps(&self, row: &Row) -> Option<Vec<Row>> {
        let alone = self.find(row, IDLE, self.reference?)?.series.as_ref()?;
        let loaded = row.series.as_ref()?;
        if alone.values.is_empty() || alone.values.len() != loaded.values.len() {
            return None;
        }
        let isolation = Samples::of(isolation(&loaded.values, &alone.values));
        let impact = Samples::of(latency_impact(&loaded.values, &alone.values));
        let figure = |metric: &str, value: f64| derived(row, metric, value);
        Some(vec![
            figure("isolation_mean", isolation.mean()),
            figure("isolation_05", isolation.percentile(5.0)),
            figure("isolation_01", isolation.percentile(1.0)),
            figure("latency_impact_mean", impact.mean()),
            figure("latency_impact_95", impact.percentile(95.0)),
            figure("latency_impact_99", impact.percentile(99.0)),
        ])
    }

    fn of_background(&self, row: &Row) -> Option<Row> {
        let stock = self.find(row, &row.load, policy::DEFAULT)?.value;
        (stock > 0.0).then(|| derived(row, BACKGROUND_KEPT, (row.value / stock).min(1.0)))
    }

    /// The row with the same metric, workload and seed under another load and policy.
    fn find(&self, like: &Row, load: &str, policy: &str) -> Option<&'a Row> {
        let (metric, workload, _, _, seed) = key(like);
        self.rows
            .get(&(metric, workload, load, policy, seed))
            .copied()
    }
}

fn key(row: &Row) -> Key<'_> {
    (&row.metric, &row.workload, &row.load, &row.policy, row.seed)
}

fn derived(row: &Row, metric: &str, value: f64) -> Row {
    Row {
        metric: metric.to_owned(),
        unit: "1".to_owned(),
        value,
        histogram: None,
        series: None,
        ..row.clone()
    }
}

/// Isolation in each interval, from 0 to 1. Both slices are the same steps' times in ms.
pub fn isolation(loaded_ms: &[f64], alone_ms: &[f64]) -> Vec<f64> {
    let whole_ms: f64 = loaded_ms.iter().sum();
    let count = (whole_ms / INTERVAL_MS).round().max(1.0) as usize;
    let interval_ms = whole_ms / count as f64;
    let mut progress_ms = vec![0.0; count];
    let mut begin_ms = 0.0;
    for (loaded, alone) in loaded_ms.iter().zip(alone_ms) {
        let end_ms = begin_ms + loaded;
        let first = ((begin_ms / interval_ms) as usize).min(count - 1);
        for (number, progress) in progress_ms.iter_mut().enumerate().skip(first) {
            let from_ms = (number as f64 * interval_ms).max(begin_ms);
            let to_ms = ((number + 1) as f64 * interval_ms).min(end_ms);
            if to_ms <= from_ms {
                break;
            }
            *progress += alone * (to_ms - from_ms) / loaded;
        }
        begin_ms = end_ms;
    }
    let rate = |progress_ms: &f64| (progress_ms / interval_ms).clamp(0.0, 1.0);
    progress_ms.iter().map(rate).collect()
}

/// Latency impact of each step, 0 or more.
pub fn latency_impact(loaded_ms: &[f64], alone_ms: &[f64]) -> Vec<f64> {
    let steps = loaded_ms.iter().zip(alone_ms);
    steps
        .filter(|(_, alone)| **alone > 0.0)
        .map(|(loaded, alone)| (loaded / alone - 1.0).max(0.0))
        .collect()
}

/// Samples in ascending order.
struct Samples(Vec<f64>);

impl Samples {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Samples(values)
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    /// The smallest sample that at least this per cent of all do not exceed (nearest rank).
    fn percentile(&self, per_cent: f64) -> f64 {
        let rank = (per_cent / 100.0 * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.max(1) - 1).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Series;
    use proptest::prelude::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-6
    }

    #[test]
    fn a_stall_is_as_many_samples_as_it_is_long() {
        // Alone, ten steps take 10 ms each; under load, one of them takes 110 ms.
        let alone = [10.0; 10];
        let mut loaded = alone;
        loaded[4] = 110.0;
        let samples = Samples::of(isolation(&loaded, &alone));
        assert_eq!(samples.0.len(), 20);
        assert_eq!(
            samples.0.iter().filter(|it| near(**it, 1.0 / 11.0)).count(),
            11
        );
        assert_eq!(samples.0.iter().filter(|it| near(**it, 1.0)).count(), 9);
        let impact = Samples::of(latency_impact(&loaded, &alone));
        assert!(near(impact.mean(), 1.0) && near(impact.percentile(99.0), 10.0));
        assert!(near(impact.percentile(90.0), 0.0));
    }

    #[test]
    fn percentiles_are_samples() {
        let samples = Samples::of((1..=200).rev().map(f64::from).collect());
        assert_eq!(samples.percentile(1.0), 2.0);
        assert_eq!(samples.percentile(5.0), 10.0);
        assert_eq!(samples.percentile(99.0), 198.0);
        assert_eq!(Samples::of(vec![7.0]).percentile(1.0), 7.0);
        assert_eq!(Samples::of(Vec::new()).percentile(1.0), 0.0);
    }

    fn row(load: &str, policy: &str, metric: &str, value: f64, steps: &[f64]) -> Row {
        Row {
            workload: "gallery".to_owned(),
            load: load.to_owned(),
            policy: policy.to_owned(),
            metric: metric.to_owned(),
            unit: "ms".to_owned(),
            seed: 1,
            value,
            histogram: None,
            series: (!steps.is_empty()).then(|| Series::of_operations(steps.to_vec())),
        }
    }

    #[test]
    fn figures_stand_behind_their_situations_rows_and_alone_is_the_stock_default() {
        let rows = vec![
            row(IDLE, "stock", STEPS, 20.0, &[10.0, 30.0]),
            row("backup", "stock", STEPS, 40.0, &[40.0, 40.0]),
            row("backup", "stock", BACKGROUND_RATE, 100.0, &[]),
            row("backup", "stock", "total_ms", 80.0, &[]),
            row(IDLE, "fastt", STEPS, 50.0, &[50.0, 50.0]),
            row("backup", "fastt", STEPS, 20.0, &[10.0, 30.0]),
            row("backup", "fastt", BACKGROUND_RATE, 80.0, &[]),
        ];
        let all = add(rows.clone());
        let value = |policy: &str, metric: &str| {
            let same = |it: &&Row| it.policy == policy && it.metric == metric;
            all.iter().find(same).map(|it| it.value)
        };
        assert_eq!(all.len(), rows.len() + 2 * 7);
        assert_eq!(all[3].metric, "total_ms");
        assert_eq!(all[4].metric, "isolation_mean");
        assert_eq!(value("stock", "isolation_mean"), Some(0.5));
        assert_eq!(value("stock", "latency_impact_99"), Some(3.0));
        assert_eq!(value("fastt", "isolation_01"), Some(1.0));
        assert_eq!(value("fastt", BACKGROUND_KEPT), Some(0.8));
    }

    /// With a search for each row this would take 10^10 comparisons of names.
    #[test]
    fn a_campaign_of_thousands_of_seeds_is_compared_by_seed() {
        let of_seed = |seed: u64| {
            let slow = 10.0 + (seed % 7) as f64;
            let rows = [
                row(IDLE, "stock", STEPS, 10.0, &[10.0]),
                row("backup", "stock", STEPS, slow, &[slow]),
            ];
            rows.map(|it| Row { seed, ..it })
        };
        let rows: Vec<Row> = (0..100_000).flat_map(of_seed).collect();
        let impacts: Vec<f64> = add(rows)
            .iter()
            .filter(|it| it.metric == "latency_impact_mean")
            .map(|it| it.value)
            .collect();
        assert_eq!(impacts.len(), 100_000);
        let expected = |(seed, impact): (u64, &f64)| near(*impact, (seed % 7) as f64 / 10.0);
        assert!((0..).zip(&impacts).all(expected));
    }

    #[test]
    fn without_the_same_steps_alone_there_is_no_figure() {
        let rows = vec![
            row(IDLE, "stock", STEPS, 20.0, &[10.0]),
            row("backup", "stock", STEPS, 40.0, &[40.0, 40.0]),
            row("backup", "fastt", BACKGROUND_RATE, 80.0, &[]),
        ];
        assert_eq!(add(rows.clone()), rows);
    }

    fn steps() -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::vec((0.01f64..500.0, 0.01f64..500.0), 1..200)
    }

    proptest! {
        /// The work of all intervals together is all of the work.
        #[test]
        fn no_work_is_lost_between_intervals(alone in prop::collection::vec(0.01f64..100.0, 1..200),
                                             times in 1.0f64..50.0) {
            let loaded: Vec<f64> = alone.iter().map(|it| it * times).collect();
            for sample in isolation(&loaded, &alone) {
                prop_assert!((sample - 1.0 / times).abs() < 1e-6, "{sample}");
            }
        }

        #[test]
        fn figures_stay_within_their_definitions(steps in steps()) {
            let (loaded, alone): (Vec<f64>, Vec<f64>) = steps.into_iter().unzip();
            prop_assert!(isolation(&loaded, &alone).iter().all(|it| (0.0..=1.0).contains(it)));
            prop_assert!(latency_impact(&loaded, &alone).iter().all(|it| *it >= 0.0));
        }

        #[test]
        fn as_fast_as_alone_is_whole(alone in prop::collection::vec(0.01f64..100.0, 1..200)) {
            prop_assert!(isolation(&alone, &alone).iter().all(|it| near(*it, 1.0)));
            prop_assert!(latency_impact(&alone, &alone).iter().all(|it| *it == 0.0));
        }
    }
}
