//! Headline of a result: the cost of one operation under load, with the stock default and with
//! `frontrow`, and its cost unloaded.

use crate::Workload;
use crate::policy::FRONTROW;
use crate::summary::{IDLE, Summary};
use crate::{number, title};

/// Parts of the headline's sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// Workload of the operation.
    pub workload: String,
    /// Load beside the workload.
    pub load: String,
    /// The operation in words, such as `creating and syncing a small file`.
    pub doing: &'static str,
    /// Name of the stock default policy.
    pub stock_default: String,
    /// Time under the stock default, in ms.
    pub default_ms: f64,
    /// Time under `frontrow`, in ms.
    pub frontrow_ms: f64,
    /// Time on an idle device with the best stock scheduler, in ms.
    pub unloaded_ms: f64,
}

/// Words for a workload's key operations, the most telling workload first.
const DOING: [(&str, &str); 7] = [
    ("m1", "creating and syncing a small file"),
    ("a", "starting an app"),
    ("m4", "truncating a file"),
    ("m2", "creating and syncing a 1 MB file"),
    ("c", "installing an app"),
    ("m5", "syncing a small file"),
    ("m3", "appending 1 KB to a file"),
];

impl Headline {
    /// The headline for the first workload of the list that was measured idle and under load. None
    /// if there is none.
    pub fn of(summary: &Summary) -> Option<Headline> {
        DOING.iter().find_map(|(workload, doing)| {
            let (_, load) = summary
                .situations()
                .into_iter()
                .find(|(name, load)| name == workload && *load != IDLE)?;
            let per_operation = |load, policy| median_ms(summary, (workload, load), policy);
            let unloaded_ms = summary
                .policies
                .iter()
                .filter(|policy| summary.is_stock(policy))
                .filter_map(|policy| per_operation(IDLE, policy))
                .min_by(f64::total_cmp)?;
            Some(Headline {
                workload: (*workload).to_owned(),
                load: load.to_owned(),
                doing,
                stock_default: summary.stock_default.clone(),
                default_ms: per_operation(load, &summary.stock_default)?,
                frontrow_ms: per_operation(load, FRONTROW)?,
                unloaded_ms,
            })
        })
    }

    /// The whole sentence, with the unloaded time.
    pub fn sentence(&self) -> String {
        let time = |value_ms| number::with_unit(value_ms, "ms");
        format!(
            "{}, {} takes {} under {} and {} under frontrow; unloaded it takes {}.",
            self.situation(),
            self.doing,
            time(self.default_ms),
            self.stock_default,
            time(self.frontrow_ms),
            time(self.unloaded_ms)
        )
    }

    /// Mean time of the operation under another policy, ms; None if it was not measured.
    pub fn of_policy(&self, summary: &Summary, policy: &str) -> Option<f64> {
        median_ms(summary, (&self.workload, &self.load), policy)
    }

    /// The load as the begin of a sentence, such as `While a big file is being written`.
    pub fn situation(&self) -> String {
        let load = title::load(&self.load);
        let mut letters = load.chars();
        match letters.next() {
            Some(first) => first.to_uppercase().chain(letters).collect(),
            None => load,
        }
    }
}

/// Sum of the workload's key operations' means, as its median over seeds: one run that went badly
/// moves the mean of five to where no run was.
fn median_ms(summary: &Summary, (workload, load): (&str, &str), policy: &str) -> Option<f64> {
    let cells = Workload::find(workload)?
        .operations?
        .iter()
        .map(|operation| {
            let figure = summary.figure(workload, load, &format!("{operation}_mean_ms"))?;
            summary.cell(figure, policy)
        })
        .collect::<Option<Vec<_>>>()?;
    let first = cells.first()?;
    let mut sums: Vec<f64> = first
        .by_seed
        .keys()
        .filter_map(|seed| cells.iter().map(|cell| cell.by_seed.get(seed)).sum())
        .collect();
    sums.sort_by(f64::total_cmp);
    sums.get(sums.len() / 2).copied()
}
