//! Effect of each promotion: waits by dependency, the share of them whose request was found in the
//! queue, and their time (paper figures 8 and 9).

use crate::metric;
use crate::summary::Summary;

/// Counters of one workload under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Ablation {
    /// Name of the workload.
    pub workload: String,
    /// Name of the load.
    pub load: String,
    /// Dependencies with any wait, in the order of [`metric::DEPENDENCIES`].
    pub dependencies: Vec<&'static str>,
    /// Variants in the paper's order.
    pub variants: Vec<Variant>,
}

/// Counters of one ablation.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Name of the policy, such as `frontrow:meta`.
    pub policy: String,
    /// Name in the paper, such as `D_meta`.
    pub name: &'static str,
    /// Total of the workload in ms; None if it was not measured.
    pub total_ms: Option<f64>,
    /// Counters of each of [`Ablation::dependencies`]; None if they were not measured.
    pub counts: Vec<Option<Counts>>,
}

/// Means over seeds of one dependency's counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Number of waits.
    pub waits: f64,
    /// Share of waits whose request was promoted, in the queue or when it was inserted.
    pub found_share: Option<f64>,
    /// Time of all waits together, in ms.
    pub wait_ms: Option<f64>,
}

impl Ablation {
    /// The variant that promotes nothing; None if it did not run.
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

/// Counters of each workload and load that have any.
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
            let (place, name) = summary.policy(policy)?.ablation()?;
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
