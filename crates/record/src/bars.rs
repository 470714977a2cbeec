//! Bars: what an experiment must show, stated in its file, and their evaluation on a result. The
//! terminal table, the report and the documents all use this.

use crate::experiment::{Experiment, Names};
use crate::name::Unknown;
use crate::policy::FRONTROW;
use crate::statistics::Statistics;
use crate::summary::{Cell, Figure, Summary, paired_ratio};
use crate::{Load, Workload, matrix, metric, number, title};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One demand on some figures of an experiment: an entry `[[bars]]` of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// Device profile whose results it judges; `None` for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Name of the judged figures in words.
    pub title: String,
    /// The demand in words.
    pub demand: String,
    /// Policy whose figures are judged.
    #[serde(default = "frontrow")]
    policy: String,
    figures: Figures,
    /// Limits of which one has to be kept.
    rule: Vec<Limit>,
}

fn frontrow() -> String {
    FRONTROW.to_owned()
}

/// The figures that a bar judges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Figures {
    /// This statistic (`mean`, `max`) of these workloads' key operations under load.
    Operations {
        workloads: Workloads,
        statistic: String,
    },
    /// The headline metric of these workloads under load: the total, or for M3 the time outside dirty
    /// throttling.
    #[serde(rename = "chief")]
    Headline(Workloads),
    /// This metric of any workload and load.
    Metric(String),
    /// This metric of this workload.
    Of {
        workload: &'static Workload,
        metric: String,
    },
    /// This metric under this load.
    Under { load: Load, metric: String },
    /// All throughputs on an idle device.
    IdleThroughput,
}

/// Names of workloads, or `all`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Names")]
struct Workloads(Names);

const ALL: &str = "all";

impl TryFrom<Names> for Workloads {
    type Error = Unknown;

    fn try_from(names: Names) -> Result<Self, Unknown> {
        let mut named = names.all().iter().filter(|it| *it != ALL);
        named.try_for_each(|it| it.parse::<&Workload>().map(drop))?;
        Ok(Workloads(names))
    }
}

impl Workloads {
    fn has(&self, name: &str) -> bool {
        self.0.all().iter().any(|it| it == name || it == ALL)
    }
}

/// A limit: a statistic of the judged figure over a reference is at most, or at least, a factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    #[serde(default)]
    statistic: Statistic,
    #[serde(default)]
    of: Reference,
    /// Largest ratio, turned so that above 1 is worse; of the figure itself without a reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<Factor>,
    /// The ratio is less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<f64>,
    /// Smallest ratio as it is, whether more is better or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<f64>,
    /// Part of the reference by which the figure may be off.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<f64>,
    /// What the figure may exceed the reference by, where that is more than the factor allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    or_plus: Option<Amount>,
    /// Whether the ratio is told as a change in per cent.
    #[serde(default)]
    as_change: bool,
}

/// What of a figure's values is compared. Ratios to other policies are paired by seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Statistic {
    #[default]
    Mean,
    /// The worst run.
    Worst,
    /// Upper end of the mean ratio's interval.
    Interval,
    /// Mean of the ratios of all figures of the bar.
    Average,
    /// The same, geometric.
    GeometricMean,
}

/// What a figure is compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Reference {
    /// Nothing: the figure itself is judged.
    #[default]
    Nothing,
    /// A figure of a real device. Any policy will do, since the emulated device is judged.
    Number(f64),
    /// The figure on an idle device, with the best stock scheduler.
    Unloaded,
    /// The best policy of today. For `frontrow` these are the stock schedulers, for FastTrack also
    /// what a user would try.
    Best,
    BestStock,
    /// What the kernel's default policy loses against unloaded.
    Loss,
    Policy(String),
    /// Another policy's figure on an idle device, which is what the foreground takes alone.
    Alone(String),
    /// The lowest figure of these policies.
    Lowest(Vec<String>),
    /// The ratio to this policy on an idle device.
    RatioAlone(String),
}

/// One factor for all figures, or one for each of a workload's operations (`m1_creat`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Factor {
    Same(f64),
    OfOperation(BTreeMap<String, f64>),
}

impl Factor {
    fn of(&self, figure: &Figure) -> Option<f64> {
        match self {
            Factor::Same(factor) => Some(*factor),
            Factor::OfOperation(factors) => {
                let operation = metric::operation(&figure.metric)?;
                let name = format!("{}_{operation}", figure.workload);
                factors.get(&name).copied()
            }
        }
    }
}

/// A number in the figure's unit, or the value of a metric beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(f64),
    Metric(String),
}

impl Reference {
    /// Whether the kernel's own schedulers have to be there.
    fn is_stock(&self) -> bool {
        use Reference::{Best, BestStock, Loss, Unloaded};
        matches!(self, Unloaded | Best | BestStock | Loss)
    }

    /// What a ratio is of, where a figure has several.
    fn told(&self) -> Option<String> {
        match self {
            Reference::Unloaded => Some(" unloaded".to_owned()),
            Reference::BestStock => Some(" best stock".to_owned()),
            Reference::Policy(name) => Some(format!(" against {name}")),
            _ => None,
        }
    }

    fn policies(&self) -> &[String] {
        match self {
            Reference::Policy(name) | Reference::Alone(name) | Reference::RatioAlone(name) => {
                std::slice::from_ref(name)
            }
            Reference::Lowest(names) => names,
            _ => &[],
        }
    }
}

impl Bar {
    /// Whether the emulated device is judged, and not a policy.
    fn is_of_device(&self) -> bool {
        let mut limits = self.rule.iter();
        limits.any(|it| matches!(it.of, Reference::Number(_)))
    }

    /// The policy whose figures are judged; None if it did not run.
    fn subject<'a>(&self, summary: &'a Summary) -> Option<&'a str> {
        let mut policies = summary.policies.iter().map(String::as_str);
        match self.is_of_device() {
            true => policies.next(),
            false => policies.find(|name| *name == self.policy),
        }
    }

    /// Names what the bar needs and the experiment does not have or measure.
    pub(crate) fn check(&self, experiment: &Experiment) -> Result<(), String> {
        let missing =
            |what: String| Err(format!("bar '{} {}' needs {what}", self.title, self.demand));
        let is_bound = |it: &Limit| {
            it.at_most.is_some()
                || [it.below, it.at_least, it.within]
                    .iter()
                    .any(Option::is_some)
        };
        if self.rule.is_empty() || !self.rule.iter().all(is_bound) {
            return missing("at_most, below, at_least or within in each of its rules".to_owned());
        }
        let has = |name: &String| experiment.policies.iter().any(|it| it.name() == name);
        let subject = (!self.is_of_device()).then_some(&self.policy);
        let others = self.rule.iter().flat_map(|it| it.of.policies());
        if let Some(policy) = subject.into_iter().chain(others).find(|it| !has(it)) {
            return missing(format!("policy {policy}, which does not run"));
        }
        if let Some(name) = self.metrics().find(|it| metric::Metric::find(it).is_none()) {
            return missing(format!("metric {name}, which is none"));
        }
        let runs = |name: &str| experiment.runs.iter().any(|it| it.workload.name == name);
        match &self.figures {
            Figures::Operations { workloads, .. } | Figures::Headline(workloads) => {
                let mut named = workloads.0.all().iter().filter(|it| *it != ALL);
                match named.find(|it| !runs(it)) {
                    Some(workload) => missing(format!("workload {workload}, which does not run")),
                    None => Ok(()),
                }
            }
            Figures::Of { workload, .. } if !runs(workload.name) => {
                missing(format!("workload {workload}, which does not run"))
            }
            Figures::Under { load, .. } if !experiment.runs.iter().any(|it| it.load == *load) => {
                missing(format!("load {load}, which does not run"))
            }
            _ => Ok(()),
        }
    }

    /// Names of metrics in the bar.
    fn metrics(&self) -> impl Iterator<Item = &str> {
        let judged = match &self.figures {
            Figures::Metric(metric)
            | Figures::Of { metric, .. }
            | Figures::Under { metric, .. } => Some(metric.as_str()),
            _ => None,
        };
        let more = self.rule.iter().filter_map(|it| match &it.or_plus {
            Some(Amount::Metric(metric)) => Some(metric.as_str()),
            _ => None,
        });
        judged.into_iter().chain(more)
    }
}

/// Result of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The demand is met.
    Met,
    /// The demand is not met.
    Missed,
    /// A figure that the demand needs was not measured.
    NotMeasured,
}

/// Result of one bar on one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The figure in few words, such as `m1 creat`.
    pub label: String,
    /// The measured value as the bar counts it, such as `×1.04`.
    pub measured: String,
    /// Result of the comparison.
    pub outcome: Outcome,
}

/// A bar with its verdicts.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The bar that was evaluated.
    pub bar: Bar,
    /// One verdict for each figure that the bar judges.
    pub verdicts: Vec<Verdict>,
}

impl Judged {
    /// Missed if any figure misses, met if all figures meet it.
    pub fn outcome(&self) -> Outcome {
        let any = |outcome| {
            self.verdicts
                .iter()
                .any(|verdict| verdict.outcome == outcome)
        };
        if any(Outcome::Missed) {
            return Outcome::Missed;
        }
        match any(Outcome::NotMeasured) || self.verdicts.is_empty() {
            true => Outcome::NotMeasured,
            false => Outcome::Met,
        }
    }
}

/// Evaluates the bars that the result brings, or else those of its experiment as it was when this
/// program was built. A bar on a policy that did not run is left out.
pub fn judge(summary: &Summary) -> Vec<Judged> {
    let bars = match summary.bars.as_slice() {
        [] => Experiment::embedded(&summary.experiment).map_or_else(Vec::new, |it| it.bars),
        own => own.to_vec(),
    };
    let is_of = |device: &String| *device == summary.device;
    bars.into_iter()
        .filter(|bar| bar.device.as_ref().is_none_or(is_of))
        .filter_map(|bar| {
            let verdicts = verdicts(&bar, bar.subject(summary)?, summary);
            Some(Judged { bar, verdicts })
        })
        .collect()
}

/// Numbers of bars in words, such as `9 of 12 bars met, 1 not measured`.
pub fn count(judged: &[Judged]) -> String {
    let of = |outcome| judged.iter().filter(|bar| bar.outcome() == outcome).count();
    let mut text = format!("{} of {} bars met", of(Outcome::Met), judged.len());
    match of(Outcome::NotMeasured) {
        0 => {}
        missing => text.push_str(&format!(", {missing} not measured")),
    }
    text
}

fn verdicts(bar: &Bar, policy: &str, summary: &Summary) -> Vec<Verdict> {
    let figures = select(&bar.figures, summary);
    if let [limit] = bar.rule.as_slice()
        && let Some((label, combine)) = limit.statistic.over_all()
    {
        return vec![verdict(
            label.to_owned(),
            limit.judge_all(summary, &figures, policy, combine),
        )];
    }
    let judge = |figure| {
        verdict(
            label(bar, summary, figure),
            any_of(bar, policy, summary, figure),
        )
    };
    figures.into_iter().map(judge).collect()
}

/// Whether one of the bar's limits is kept, and the value that was compared: that of the limit which is
/// kept, or of all. `None` if a figure that it needs was not measured.
fn any_of(bar: &Bar, policy: &str, summary: &Summary, figure: &Figure) -> Option<(bool, String)> {
    let told = |limit: &Limit| {
        let (kept, text) = limit.judge(summary, figure, policy)?;
        let of = limit.of.told().filter(|_| bar.rule.len() > 1);
        Some((kept, text + &of.unwrap_or_default()))
    };
    let judged: Vec<_> = bar.rule.iter().map(told).collect();
    if let Some(kept) = judged.iter().flatten().find(|(kept, _)| *kept) {
        return Some(kept.clone());
    }
    let missed: Option<Vec<_>> = judged.into_iter().collect();
    let texts: Vec<_> = missed?.into_iter().map(|(_, text)| text).collect();
    Some((false, texts.join(", ")))
}

type Combine = fn(&[f64]) -> Option<f64>;

impl Statistic {
    /// How a statistic of all figures together is called and computed.
    fn over_all(self) -> Option<(&'static str, Combine)> {
        let mean = |ratios: &[f64]| Statistics::of(ratios).map(|it| it.mean);
        let geometric = |ratios: &[f64]| {
            let logarithms: Vec<f64> = ratios.iter().map(|it| it.ln()).collect();
            Statistics::of(&logarithms).map(|it| it.mean.exp())
        };
        match self {
            Statistic::Average => Some(("average", mean)),
            Statistic::GeometricMean => Some(("geometric mean", geometric)),
            _ => None,
        }
    }

    fn of(self, cell: &Cell) -> f64 {
        match self {
            Statistic::Worst => cell.worst(),
            _ => cell.mean(),
        }
    }
}

/// A ratio that a limit holds against its factor, and how a person is told of it.
struct Compared {
    ratio: f64,
    text: String,
}

impl Limit {
    fn judge(&self, summary: &Summary, figure: &Figure, policy: &str) -> Option<(bool, String)> {
        let most = match &self.at_most {
            Some(factor) => Some(factor.of(figure)?),
            None => None,
        };
        let Compared { ratio, text } = self.compare(summary, figure, policy, most)?;
        Some((self.holds(ratio, most), text))
    }

    fn judge_all(
        &self,
        summary: &Summary,
        figures: &[&Figure],
        policy: &str,
        combine: Combine,
    ) -> Option<(bool, String)> {
        let compared = figures.iter();
        let compared = compared.map(|it| Some(self.compare(summary, it, policy, None)?.ratio));
        let ratio = combine(&compared.collect::<Option<Vec<_>>>()?)?;
        let most = figures.first().and_then(|it| self.at_most.as_ref()?.of(it));
        Some((self.holds(ratio, most), self.told(ratio)))
    }

    fn holds(&self, ratio: f64, most: Option<f64>) -> bool {
        most.is_none_or(|it| ratio <= it)
            && self.below.is_none_or(|it| ratio < it)
            && self.at_least.is_none_or(|it| ratio >= it)
            && self.within.is_none_or(|it| (ratio - 1.0).abs() <= it)
    }

    fn told(&self, ratio: f64) -> String {
        match self.as_change {
            true => number::change(ratio - 1.0),
            false => number::times(ratio),
        }
    }

    fn ratio(&self, ratio: f64) -> Option<Compared> {
        let text = self.told(ratio);
        Some(Compared { ratio, text })
    }

    /// The figure over the limit's reference; `None` if either was not measured.
    fn compare(
        &self,
        summary: &Summary,
        figure: &Figure,
        policy: &str,
        most: Option<f64>,
    ) -> Option<Compared> {
        let ours = summary.cell(figure, policy)?;
        if self.of.is_stock() && policy == FRONTROW && !summary.has_stock() {
            return None;
        }
        let value = self.statistic.of(ours);
        let of = |name: &String| summary.cell(figure, name);
        match &self.of {
            Reference::Nothing => Some(Compared {
                ratio: value,
                text: figure.text(value),
            }),
            Reference::Number(wanted) => Some(Compared {
                ratio: value / wanted,
                text: format!(
                    "{} ({})",
                    figure.text(value),
                    number::change(value / wanted - 1.0)
                ),
            }),
            Reference::Unloaded => self.over_unloaded(summary, figure, policy, most),
            Reference::Best => {
                let (_, ratio) = matrix::best_of_others(summary, figure, policy)?;
                self.over(ratio)
            }
            Reference::BestStock => {
                self.over_policy(figure, ours, summary.best_stock(figure)?.cell)
            }
            Reference::Policy(name) => self.over_policy(figure, ours, of(name)?),
            Reference::Loss => self.over_loss(summary, figure, policy),
            Reference::Alone(name) => {
                self.ratio(value / summary.cell(&figure.idle(), name)?.mean())
            }
            Reference::Lowest(names) => {
                let means = names.iter().map(|name| Some(of(name)?.mean()));
                let means: Vec<f64> = means.collect::<Option<_>>()?;
                let least = means.into_iter().fold(f64::INFINITY, f64::min);
                Some(beside(figure, value, least))
            }
            Reference::RatioAlone(name) => {
                let ratio = |figure: &Figure| {
                    let (ours, theirs) =
                        (summary.cell(figure, policy)?, summary.cell(figure, name)?);
                    Some(over(figure, ours, theirs)?.mean)
                };
                let (loaded, idle) = (ratio(figure)?, ratio(&figure.idle())?);
                let change = |ratio| number::change(ratio - 1.0);
                Some(Compared {
                    ratio: loaded / idle,
                    text: format!("{} (idle {})", change(loaded), change(idle)),
                })
            }
        }
    }

    fn over_policy(&self, figure: &Figure, ours: &Cell, theirs: &Cell) -> Option<Compared> {
        match self.at_least {
            Some(_) => self.over(paired_ratio(ours, theirs)?),
            None => self.over(over(figure, ours, theirs)?),
        }
    }

    fn over(&self, ratio: Statistics) -> Option<Compared> {
        if self.statistic != Statistic::Interval {
            return self.ratio(ratio.mean);
        }
        let interval = ratio.interval.as_ref();
        let text = interval.map_or(String::new(), |it| {
            format!(" ({}–{})", number::factor(it.low), number::factor(it.high))
        });
        Some(Compared {
            ratio: interval.map_or(ratio.mean, |it| it.high),
            text: number::times(ratio.mean) + &text,
        })
    }

    /// A figure that may exceed the reference by an amount is held against what is allowed.
    fn over_unloaded(
        &self,
        summary: &Summary,
        figure: &Figure,
        policy: &str,
        most: Option<f64>,
    ) -> Option<Compared> {
        let alone = self.statistic.of(summary.unloaded(figure)?.cell);
        let value = self.statistic.of(summary.cell(figure, policy)?);
        let Some(amount) = &self.or_plus else {
            return self.ratio(figure.direction().times_worse(value, alone)?);
        };
        let amount = match amount {
            Amount::Number(amount) => *amount,
            Amount::Metric(name) => {
                let beside = summary.figure(&figure.workload, &figure.load, name)?;
                summary.cell(beside, policy)?.mean()
            }
        };
        let most = most?;
        let allowed = (alone * most).max(alone + amount);
        let compared = beside(figure, value, allowed);
        Some(Compared {
            ratio: compared.ratio * most,
            ..compared
        })
    }

    /// The part of the stock default's loss that is left.
    fn over_loss(&self, summary: &Summary, figure: &Figure, policy: &str) -> Option<Compared> {
        let slowdown = summary.slowdown(figure, policy)?;
        let stock = summary.slowdown(figure, &summary.stock_default)?;
        if stock <= 1.0 {
            return Some(Compared {
                ratio: f64::INFINITY,
                text: "nothing to win back".to_owned(),
            });
        }
        let left = (slowdown - 1.0) / (stock - 1.0);
        Some(Compared {
            ratio: left,
            text: format!("{} won back", number::percent(1.0 - left)),
        })
    }
}

fn beside(figure: &Figure, value: f64, most: f64) -> Compared {
    Compared {
        ratio: value / most,
        text: format!("{} of {}", figure.text(value), figure.text(most)),
    }
}

/// Ratio of `ours` to `theirs` by seed, turned so that above 1 is worse.
fn over(figure: &Figure, ours: &Cell, theirs: &Cell) -> Option<Statistics> {
    match figure.direction() {
        metric::Direction::Lower => paired_ratio(ours, theirs),
        metric::Direction::Higher => paired_ratio(theirs, ours),
        metric::Direction::Neither => None,
    }
}

fn select<'a>(figures: &Figures, summary: &'a Summary) -> Vec<&'a Figure> {
    summary
        .figures
        .iter()
        .filter(|figure| match figures {
            Figures::Operations {
                workloads,
                statistic,
            } => figure.is_loaded() && workloads.has(&figure.workload) && is_key(figure, statistic),
            Figures::Headline(workloads) => {
                figure.is_loaded()
                    && workloads.has(&figure.workload)
                    && summary.headline(&figure.workload, &figure.load) == Some(figure)
            }
            Figures::Metric(metric) => figure.metric == *metric,
            Figures::Of { workload, metric } => {
                figure.workload == workload.name && figure.metric == *metric
            }
            Figures::Under { load, metric } => {
                figure.load == load.name() && figure.metric == *metric
            }
            Figures::IdleThroughput => !figure.is_loaded() && figure.unit == "MB/s",
        })
        .collect()
}

fn is_key(figure: &Figure, statistic: &str) -> bool {
    let operations = Workload::find(&figure.workload)
        .and_then(|it| it.operations)
        .unwrap_or_default();
    operations
        .iter()
        .any(|operation| figure.metric == format!("{operation}_{statistic}_ms"))
}

fn verdict(label: String, found: Option<(bool, String)>) -> Verdict {
    let (met, measured) = match found {
        Some((true, text)) => (Outcome::Met, text),
        Some((false, text)) => (Outcome::Missed, text),
        None => (Outcome::NotMeasured, "not measured".to_owned()),
    };
    Verdict {
        label,
        measured,
        outcome: met,
    }
}

/// The figure in as few words as distinguish it from the others of its bar.
fn label(bar: &Bar, summary: &Summary, figure: &Figure) -> String {
    let loads = select(&bar.figures, summary)
        .iter()
        .filter(|other| other.workload == figure.workload && other.metric == figure.metric)
        .count();
    let place = match loads {
        1 => figure.workload.clone(),
        _ => title::short(&figure.workload, &figure.load),
    };
    match (&bar.figures, metric::operation(&figure.metric)) {
        (Figures::Operations { .. }, Some(operation)) => format!("{place} {operation}"),
        (Figures::IdleThroughput, _) => format!("{place} {}", metric::label(&figure.metric)),
        _ => place,
    }
}
