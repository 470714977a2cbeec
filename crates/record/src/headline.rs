//! A result in one sentence: what one operation costs under load, by the
//! stock default and by `frontrow`, and what it costs unloaded.

use crate::metric;
use crate::policy::{self, FRONTROW};
use crate::statistics::Statistics;
use crate::summary::{IDLE, Summary};
use crate::{number, title};

/// The sentence's parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The workload it is taken from.
    pub workload: String,
    /// The load.
    pub load: String,
    /// `creating and syncing a small file`.
    pub doing: &'static str,
    /// The stock default's name.
    pub stock_default: String,
    /// Under the stock default, ms.
    pub default_ms: f64,
    /// Under `frontrow`, ms.
    pub frontrow_ms: f64,
    /// On an idle device with the best stock scheduler, ms.
    pub unloaded_ms: f64,
}

/// What a workload's key operations amount to for a person, the most telling
/// workload first.
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
    /// From the first workload of the list that was measured idle and under
    /// load; a result without one has no headline.
    pub fn of(summary: &Summary) -> Option<Headline> {
        DOING.iter().find_map(|(workload, doing)| {
            let (_, load) = summary
                .situations()
                .into_iter()
                .find(|(name, load)| name == workload && *load != IDLE)?;
            let per_operation = |load, policy| mean_ms(summary, (workload, load), policy);
            let unloaded_ms = summary
                .policies
                .iter()
                .filter(|policy| policy::is_stock(policy))
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

    /// The whole sentence, with the time unloaded.
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
        mean_ms(summary, (&self.workload, &self.load), policy)
    }

    /// `While a big file is being written`.
    pub fn situation(&self) -> String {
        let load = title::load(&self.load);
        let mut letters = load.chars();
        match letters.next() {
            Some(first) => first.to_uppercase().chain(letters).collect(),
            None => load,
        }
    }
}

/// The workload's key operations together, mean over seeds of their means.
fn mean_ms(summary: &Summary, (workload, load): (&str, &str), policy: &str) -> Option<f64> {
    let cells = metric::key_operations(workload)?
        .iter()
        .map(|operation| {
            let figure = summary.figure(workload, load, &format!("{operation}_mean_ms"))?;
            summary.cell(figure, policy)
        })
        .collect::<Option<Vec<_>>>()?;
    let first = cells.first()?;
    let sums: Vec<f64> = first
        .by_seed
        .keys()
        .filter_map(|seed| cells.iter().map(|cell| cell.by_seed.get(seed)).sum())
        .collect();
    Some(Statistics::of(&sums)?.mean)
}
