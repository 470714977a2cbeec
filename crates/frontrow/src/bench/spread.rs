//! Precision of a result's means, which decides whether more seeds are run.

use crate::seeds::Seeds;
use record::{ResultFile, Summary, number, title};
use std::time::Duration;

/// Minimum and maximum number of seeds.
pub const LEAST: u64 = 3;
pub const SEEDS: Seeds = Seeds::up_to(10);

/// Time after which no seed beyond the minimum is begun: on a disk that stalls for seconds, ten take
/// a quarter of an hour, and three show what it is about.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A mean is precise enough if half of its 95 % interval is at most this part of it.
const KNOWN: f64 = 0.15;

/// Workload and load pairs whose headline metric is not precise enough, each with half of its
/// interval as a part of the mean.
pub fn noisy(result: &ResultFile) -> Vec<(String, f64)> {
    half_widths(result)
        .into_iter()
        .filter(|(_, half)| *half > KNOWN)
        .collect()
}

fn half_widths(result: &ResultFile) -> Vec<(String, f64)> {
    let summary = Summary::of(result);
    let situations = summary.situations().into_iter();
    let half = |(workload, load): (&str, &str)| {
        let figure = summary.headline(workload, load)?;
        let cell = summary.cell(figure, summary.policies.first()?)?;
        let half = cell.over_seeds.relative_half_width()?;
        Some((title::short(workload, load), half))
    };
    situations.filter_map(half).collect()
}

/// Sentence about the precision of the result.
pub fn sentence(result: &ResultFile) -> String {
    let seeds = Summary::of(result).seeds.len();
    let noisy = noisy(result);
    if noisy.is_empty() {
        let all = half_widths(result).into_iter();
        let most = all.map(|(_, half)| half).fold(0.0, f64::max);
        let most = number::percent(most);
        return format!("{seeds} seeds: each mean is known to within ±{most}.");
    }
    let each = noisy
        .iter()
        .map(|(name, half)| format!("{name} to ±{}", number::percent(*half)));
    let each: Vec<String> = each.collect();
    format!(
        "Too noisy: after {seeds} seeds means are known only so well: {}. Something else uses the \
         disk, or it is like that. `bench compare` sees a large difference all the same; for a small \
         one, end other programs or give more with --seeds.",
        each.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Inputs, Row, Scale};

    fn result(values: &[f64]) -> ResultFile {
        let row = |(seed, value): (u64, &f64)| Row {
            workload: "m1".to_owned(),
            load: "writer".to_owned(),
            policy: "none".to_owned(),
            metric: "total_ms".to_owned(),
            unit: "ms".to_owned(),
            seed,
            value: *value,
            histogram: None,
            series: None,
        };
        ResultFile {
            experiment: "bench".to_owned(),
            kernel: "6.12".to_owned(),
            device: "sda".to_owned(),
            scale: Scale::Demo,
            stock_default: "none".to_owned(),
            baselines: Vec::new(),
            bars: Vec::new(),
            inputs: Inputs::default(),
            rows: (1..).zip(values).map(row).collect(),
        }
    }

    #[test]
    fn means_that_agree_are_known_and_others_are_named() {
        let steady = result(&[100.0, 101.0, 99.0]);
        assert!(noisy(&steady).is_empty());
        assert!(sentence(&steady).contains("known to within ±"));
        let wild = result(&[100.0, 400.0, 20.0]);
        assert_eq!(noisy(&wild)[0].0, "m1 under writer");
        let said = sentence(&wild);
        assert!(said.starts_with("Too noisy: after 3 seeds"), "{said}");
        assert!(said.contains("m1 under writer to ±"), "{said}");
    }
}
