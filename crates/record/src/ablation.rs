//! What each promotion does: waits per dependency, the share of them found in
//! the queue, and the time they took (paper figures 8 and 9).

use crate::summary::Summary;
use crate::{metric, policy};

/// The counters of one workload under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Ablation {
    /// The workload's name.
    pub workload: String,
    /// The load's name.
    pub load: String,
    /// The dependencies that anything waited on, in a fixed order.
    pub dependencies: Vec<&'static str>,
    /// In the paper's order.
    pub variants: Vec<Variant>,
}

/// One ablation's counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// `frontrow:meta`.
    pub policy: String,
    /// The paper's name for it.
    pub name: &'static str,
    /// The workload's total, ms.
    pub total_ms: Option<f64>,
    /// One for each dependency of [`Ablation::dependencies`].
    pub counts: Vec<Option<Counts>>,
}

/// Means over seeds of one dependency's counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Waits.
    pub waits: f64,
    /// The share of waits whose request was promoted, in the queue or as it came.
    pub found_share: Option<f64>,
    /// Time waited, all waits together, ms.
    pub wait_ms: Option<f64>,
}

impl Ablation {
    /// The variant that promotes nothing, if it ran.
    pub fn none(&self) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == "NONE")
    }

    /// A variant's counters for one dependency.
    pub fn counts(&self, variant: &Variant, dependency: &str) -> Option<Counts> {
        let place = self
            .dependencies
            .iter()
            .position(|name| *name == dependency)?;
        variant.counts[place]
    }
}

/// The counters of every situation that has any.
pub fn ablations(summary: &Summary) -> Vec<Ablation> {
    summary
        .situations()
        .into_iter()
        .filter_map(|(workload, load)| ablation(summary, workload, load))
        .collect()
}

fn ablation(summary: &Summary, workload: &str, load: &str) -> Option<Ablation> {
    let mut named: Vec<(usize, &str, &'static str)> = summary
        .policies
        .iter()
        .filter_map(|policy| {
            let (place, name) = policy::ablation(policy)?;
            Some((place, policy.as_str(), name))
        })
        .collect();
    named.sort_unstable();
    let mean = |policy: &str, metric: &str| {
        let figure = summary.figure(workload, load, metric)?;
        Some(summary.cell(figure, policy)?.mean())
    };
    let counts = |policy: &str, dependency: &str| {
        let count = |what: &str| mean(policy, &format!("{dependency}_{what}"));
        let waits = count("waits")?;
        let found = count("boosted")? + count("pending_matched").unwrap_or(0.0);
        Some(Counts {
            waits,
            found_share: (waits > 0.0).then(|| found / waits),
            wait_ms: count("wait_ms"),
        })
    };
    let dependencies: Vec<&'static str> = metric::DEPENDENCIES
        .into_iter()
        .filter(|dependency| {
            let any = |(_, policy, _): &(usize, &str, &str)| counts(policy, dependency);
            named
                .iter()
                .filter_map(any)
                .any(|counts| counts.waits > 0.0)
        })
        .collect();
    if dependencies.is_empty() {
        return None;
    }
    let variants = named
        .iter()
        .map(|(_, policy, name)| Variant {
            policy: (*policy).to_owned(),
            name,
            total_ms: mean(policy, "total_ms"),
            counts: dependencies
                .iter()
                .map(|dependency| counts(policy, dependency))
                .collect(),
        })
        .collect();
    Some(Ablation {
        workload: workload.to_owned(),
        load: load.to_owned(),
        dependencies,
        variants,
    })
}
