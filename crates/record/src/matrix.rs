//! Matrices of all workloads under all loads, one for each policy. A cell has the slowdown against
//! running alone, and whether a policy of today is better.

use crate::statistics::Statistics;
use crate::summary::{Figure, IDLE, Summary, paired_ratio};
use crate::{metric::Direction, policy::FRONTROW};

/// A result with this many loads, and this many workloads under each, is a matrix.
const LEAST_LOADS: usize = 3;
const LEAST_WORKLOADS: usize = 3;

/// Upper limits of the slowdowns that are drawn alike, from as good as alone to far slower.
pub const STEPS: [f64; 5] = [1.10, 1.25, 1.5, 2.0, 4.0];

/// A policy whose ratio to the best of today's policies exceeds this is worse than that one.
pub const NOT_ABOVE: f64 = 1.05;

/// Matrix of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Name of the policy.
    pub policy: String,
    /// Loads, which are the columns.
    pub loads: Vec<String>,
    /// Workloads, which are the lines, with a cell for each load. `None` for what was not measured.
    pub lines: Vec<(String, Vec<Option<Cell>>)>,
}

/// Slowdown of one workload under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Mean over the seeds of its headline metric over that alone (idle device, best stock scheduler).
    pub mean: f64,
    /// Median over the seeds; of two seeds the worse one.
    pub median: f64,
    /// Largest value over the seeds.
    pub worst: f64,
    /// Mean ratio to the best policy that it is compared with; None without one.
    pub over_best: Option<f64>,
    /// Name of that best policy.
    pub best: Option<String>,
}

impl Cell {
    /// Whether a policy of today is better.
    pub fn is_behind(&self) -> bool {
        self.over_best.is_some_and(|ratio| ratio > NOT_ABOVE)
    }

    /// Number of [`STEPS`] that the mean exceeds.
    pub fn step(&self) -> usize {
        STEPS.iter().filter(|step| self.mean > **step).count()
    }
}

/// A matrix for each policy that is not an ablation; empty if the result is not a matrix.
pub fn matrices(summary: &Summary) -> Vec<Matrix> {
    let loads = loads(summary);
    if loads.len() < LEAST_LOADS {
        return Vec::new();
    }
    let mut workloads: Vec<&str> = Vec::new();
    for (workload, _) in summary.situations() {
        if !workloads.contains(&workload) {
            workloads.push(workload);
        }
    }
    let policies = summary.policies.iter();
    let policies = policies.filter(|name| !summary.is_ablation(name));
    policies
        .map(|policy| Matrix {
            policy: policy.clone(),
            lines: workloads
                .iter()
                .map(|workload| {
                    let cells = loads
                        .iter()
                        .map(|load| cell(summary, workload, load, policy));
                    ((*workload).to_owned(), cells.collect())
                })
                .collect(),
            loads: loads.clone(),
        })
        .collect()
}

/// Loads under which enough workloads ran.
fn loads(summary: &Summary) -> Vec<String> {
    let situations = summary.situations();
    let mut loads: Vec<String> = Vec::new();
    for (_, load) in &situations {
        let workloads = situations.iter().filter(|(_, other)| other == load).count();
        if *load != IDLE && workloads >= LEAST_WORKLOADS && !loads.iter().any(|it| it == load) {
            loads.push((*load).to_owned());
        }
    }
    loads
}

fn cell(summary: &Summary, workload: &str, load: &str, policy: &str) -> Option<Cell> {
    let figure = summary.headline(workload, load)?;
    let alone = summary.unloaded(figure)?.cell.mean();
    let ours = summary.cell(figure, policy)?;
    let times = |value| figure.direction().times_worse(value, alone);
    let mut by_seed: Vec<f64> = ours.by_seed.values().filter_map(|it| times(*it)).collect();
    by_seed.sort_by(f64::total_cmp);
    let best = best_of_others(summary, figure, policy);
    Some(Cell {
        mean: times(ours.mean())?,
        median: *by_seed.get(by_seed.len() / 2)?,
        worst: *by_seed.last()?,
        over_best: best.as_ref().map(|(_, ratio)| ratio.mean),
        best: best.map(|(name, _)| name.to_owned()),
    })
}

/// The best of the policies that `policy` is compared with. A policy that knows the foreground is
/// compared with all that a user has today, `frontrow` with the kernel's own schedulers. `None` for
/// other policies.
pub fn best_of_others<'a>(
    summary: &'a Summary,
    figure: &Figure,
    policy: &str,
) -> Option<(&'a str, Statistics)> {
    let known = |name: &str| summary.policy(name);
    let is_named = known(policy).is_some_and(|it| it.parts.is_some());
    if !is_named && policy != FRONTROW {
        return None;
    }
    let ours = summary.cell(figure, policy)?;
    let others = summary.policies.iter().map(String::as_str);
    let has_kernel_settings = |name: &str| known(name).is_some_and(|it| !it.settings.is_empty());
    let others =
        others.filter(|name| summary.is_stock(name) || is_named && has_kernel_settings(name));
    let mut best: Option<(&str, f64)> = None;
    for name in others {
        let Some(mean) = summary.cell(figure, name).map(|cell| cell.mean()) else {
            continue;
        };
        if best.is_none_or(|(_, least)| figure.direction().better(mean, least) == Some(true)) {
            best = Some((name, mean));
        }
    }
    let (name, _) = best?;
    let theirs = summary.cell(figure, name)?;
    let ratio = match figure.direction() {
        Direction::Higher => paired_ratio(theirs, ours),
        _ => paired_ratio(ours, theirs),
    };
    Some((name, ratio?))
}
