//! Bars: what an experiment must show, stated in its file, and their evaluation on a result. The
//! terminal table, the report and the documents all use this.

use crate::experiment::{Experiment, Names};
use crate::policy::{FRONTROW, Policy};
use crate::summary::{Cell, Figure, Summary, paired_ratio};
use crate::{Load, Workload, matrix, metric, number, title};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// One demand on some figures of an experiment: an entry `[[bars]]` of its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// Device profile whose results it judges; `None` for any.
    pub device: Option<String>,
    /// Name of the judged figures in words.
    pub title: String,
    /// The demand in words.
    pub demand: String,
    /// Policy whose figures are judged.
    #[serde(default = "Policy::frontrow")]
    policy: Policy,
    figures: Figures,
    rule: Rule,
}

/// The figures that a bar judges.
#[derive(Clone, Debug, Deserialize)]
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
#[derive(Clone, Debug)]
struct Workloads(Option<Vec<&'static Workload>>);

impl<'de> Deserialize<'de> for Workloads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Names::deserialize(deserializer)? {
            Names::One(name) if name == "all" => Ok(Workloads(None)),
            names => {
                let found = names.all().iter().map(|name| name.parse());
                let found: Result<_, _> = found.collect();
                found
                    .map(|it| Workloads(Some(it)))
                    .map_err(D::Error::custom)
            }
        }
    }
}

impl Workloads {
    fn has(&self, name: &str) -> bool {
        let Workloads(named) = self;
        named
            .as_ref()
            .is_none_or(|them| them.iter().any(|it| it.name == name))
    }
}

/// What a bar demands of its policy. Ratios are turned so that above 1 is worse, and are paired by
/// seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Rule {
    /// The mean is at most this many times the unloaded one.
    OverUnloaded(f64),
    /// The ratio to the best policy of today has an interval whose upper end is at most this. For
    /// `frontrow` these are the stock schedulers, for FastTrack also what a user would try.
    IntervalOverBest(f64),
    /// The mean is at least this part as good as the best stock scheduler's.
    OfBestStock(f64),
    /// The mean is at most this many times another policy's.
    Over { other: Policy, most: f64 },
    /// The mean is at most the larger of these multiples of best stock and unloaded.
    LargerOf { best_stock: f64, unloaded: f64 },
    /// The worst case is at most this many times unloaded, or is reduced against mq-deadline by
    /// these parts, each of a workload's operation (`m1_creat`).
    Worst {
        unloaded: f64,
        reduced: BTreeMap<String, f64>,
    },
    /// The mean is at most the unloaded one plus the value of this metric.
    UnloadedPlus(String),
    /// This share of the stock default's loss is won back, or the mean is at most this many times
    /// unloaded.
    WonBack { share: f64, unloaded: f64 },
    /// The mean is at least this.
    AtLeast(f64),
    /// The mean is at most this.
    AtMost(f64),
    /// The figure is at most this in every run.
    NeverAbove(f64),
    /// As [`Rule::Over`], told as a change in per cent.
    ChangeOver { other: Policy, most: f64 },
    /// The value is at least this many times another policy's.
    Times { other: Policy, least: f64 },
    /// The mean is below that of each of these policies.
    BelowAll(Vec<Policy>),
    /// The gain over this policy is at least as large as on an idle device.
    GainAsIdle(Policy),
    /// The mean is at most this many times another policy's on an idle device, which is what the
    /// foreground takes alone.
    OverAlone { alone: Policy, most: f64 },
    /// The mean ratio to another policy, averaged over all figures of the bar, is at most this.
    AverageOver { other: Policy, most: f64 },
    /// The geometric mean of the ratios to unloaded over all figures of the bar is at most this.
    AverageOverUnloaded(f64),
    /// The worst run is at most this many times the worst unloaded one, or this much longer.
    WorstOverUnloaded { times: f64, more_ms: f64 },
    /// The figure is within this part of one that was measured on a real device. Any policy will
    /// do, since the emulated device is judged.
    Near { figure: f64, part: f64 },
}

impl Rule {
    /// Whether the rule compares `frontrow` with the kernel's own schedulers.
    fn is_over_stock(&self) -> bool {
        matches!(
            self,
            Rule::OverUnloaded(_)
                | Rule::IntervalOverBest(_)
                | Rule::OfBestStock(_)
                | Rule::Over { .. }
                | Rule::LargerOf { .. }
                | Rule::Worst { .. }
                | Rule::UnloadedPlus(_)
                | Rule::WonBack { .. }
        )
    }

    /// Policies that the judged one is compared with.
    fn others(&self) -> &[Policy] {
        match self {
            Rule::Over { other, .. }
            | Rule::ChangeOver { other, .. }
            | Rule::Times { other, .. }
            | Rule::AverageOver { other, .. }
            | Rule::GainAsIdle(other)
            | Rule::OverAlone { alone: other, .. } => std::slice::from_ref(other),
            Rule::BelowAll(others) => others,
            _ => &[],
        }
    }
}

impl Bar {
    /// The policy whose figures are judged; None if it did not run.
    fn subject<'a>(&self, summary: &'a Summary) -> Option<&'a str> {
        let mut policies = summary.policies.iter().map(String::as_str);
        match self.rule {
            Rule::Near { .. } => policies.next(),
            _ => policies.find(|name| *name == self.policy.name()),
        }
    }

    /// Names what the bar needs and the experiment does not have or measure.
    pub(crate) fn check(&self, experiment: &Experiment) -> Result<(), String> {
        let missing =
            |what: String| Err(format!("bar '{} {}' needs {what}", self.title, self.demand));
        let has = |policy: &Policy| experiment.policies.contains(policy);
        let subject = (!matches!(self.rule, Rule::Near { .. })).then_some(&self.policy);
        let mut needed = subject.into_iter().chain(self.rule.others());
        if let Some(policy) = needed.find(|it| !has(it)) {
            return missing(format!("policy {policy}, which does not run"));
        }
        if let Some(name) = self.metrics().find(|it| metric::Metric::find(it).is_none()) {
            return missing(format!("metric {name}, which is none"));
        }
        let runs = |workload: &str| {
            experiment
                .runs
                .iter()
                .any(|it| it.workload.name == workload)
        };
        match &self.figures {
            Figures::Operations { workloads, .. } | Figures::Headline(workloads) => {
                let named = workloads.0.iter().flatten();
                match named.into_iter().find(|it| !runs(it.name)) {
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
        let allowance = match &self.rule {
            Rule::UnloadedPlus(metric) => Some(metric.as_str()),
            _ => None,
        };
        judged.into_iter().chain(allowance)
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

/// Evaluates the bars of a result's experiment, as it was when this program was built. A bar on a
/// policy that did not run is left out.
pub fn judge(summary: &Summary) -> Vec<Judged> {
    let experiment = Experiment::embedded(&summary.experiment);
    let bars = experiment.map_or_else(Vec::new, |it| it.bars);
    let is_of = |device: &String| *device == summary.device;
    bars.into_iter()
        .filter(|bar| bar.device.as_ref().is_none_or(is_of))
        .filter(|bar| bar.subject(summary).is_some())
        .map(|bar| Judged {
            verdicts: verdicts(&bar, summary),
            bar,
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

fn verdicts(bar: &Bar, summary: &Summary) -> Vec<Verdict> {
    let figures = select(&bar.figures, summary);
    let policy = bar.policy.name();
    match &bar.rule {
        Rule::AverageOver { other, most } => {
            let ratio = average_over(summary, &figures, policy, other.name());
            let found = ratio.map(|it| (it <= *most, number::change(it - 1.0)));
            vec![verdict("average".to_owned(), found)]
        }
        Rule::AverageOverUnloaded(most) => {
            let average = average_over_unloaded(summary, &figures, policy);
            let found = average.map(|it| (it <= *most, number::times(it)));
            vec![verdict("geometric mean".to_owned(), found)]
        }
        _ => {
            let judge = |figure| verdict(label(bar, summary, figure), apply(bar, summary, figure));
            figures.into_iter().map(judge).collect()
        }
    }
}

/// Mean over the figures of one policy's mean ratio to another's; `None` if any is missing.
fn average_over(summary: &Summary, figures: &[&Figure], policy: &str, other: &str) -> Option<f64> {
    let ratio = |figure: &&Figure| {
        let (ours, theirs) = (summary.cell(figure, policy)?, summary.cell(figure, other)?);
        Some(over(figure, ours, theirs)?.mean)
    };
    let ratios = figures.iter().map(ratio).collect::<Option<Vec<_>>>()?;
    crate::statistics::Statistics::of(&ratios).map(|it| it.mean)
}

/// Geometric mean over the figures of the ratios to unloaded; `None` if a figure is missing.
fn average_over_unloaded(summary: &Summary, figures: &[&Figure], policy: &str) -> Option<f64> {
    let slowdown = |figure: &&Figure| Some(summary.slowdown(figure, policy)?.ln());
    let logarithms = figures.iter().map(slowdown).collect::<Option<Vec<_>>>()?;
    crate::statistics::Statistics::of(&logarithms).map(|it| it.mean.exp())
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

/// Whether the rule holds, and the value that it compared. `None` if a figure that it needs was not
/// measured.
fn apply(bar: &Bar, summary: &Summary, figure: &Figure) -> Option<(bool, String)> {
    let policy = bar.subject(summary)?;
    let ours = summary.cell(figure, policy)?;
    let needs_stock = bar.rule.is_over_stock() && policy == FRONTROW;
    if needs_stock && !summary.has_stock() {
        return None;
    }
    let of = |other: &Policy| summary.cell(figure, other.name());
    match &bar.rule {
        Rule::OverUnloaded(most) => {
            let slowdown = summary.slowdown(figure, policy)?;
            Some((slowdown <= *most, number::times(slowdown)))
        }
        Rule::IntervalOverBest(most) => {
            let (_, ratio) = matrix::best_of_others(summary, figure, policy)?;
            Some(interval_within(ratio, *most))
        }
        Rule::WorstOverUnloaded { times, more_ms } => {
            let alone_ms = summary.unloaded(figure)?.cell.worst();
            let most_ms = (alone_ms * times).max(alone_ms + more_ms);
            let text = format!("{} of {}", figure.text(ours.worst()), figure.text(most_ms));
            Some((ours.worst() <= most_ms, text))
        }
        Rule::OfBestStock(least) => {
            let ratio = over(figure, ours, summary.best_stock(figure)?.cell)?.mean;
            Some((ratio <= 1.0 / least, number::times(ratio)))
        }
        Rule::Over { other, most } => {
            let ratio = over(figure, ours, of(other)?)?.mean;
            Some((ratio <= *most, number::times(ratio)))
        }
        Rule::LargerOf {
            best_stock,
            unloaded,
        } => {
            let of_stock = best_stock * summary.best_stock(figure)?.cell.mean();
            let of_unloaded = unloaded * summary.unloaded(figure)?.cell.mean();
            Some(against(figure, ours, of_stock.max(of_unloaded)))
        }
        Rule::Worst { unloaded, reduced } => worst(summary, figure, *unloaded, reduced),
        Rule::UnloadedPlus(allowance) => {
            let allowance = summary.figure(&figure.workload, &figure.load, allowance)?;
            let allowance = summary.cell(allowance, policy)?.mean();
            let most = summary.unloaded(figure)?.cell.mean() + allowance;
            Some(against(figure, ours, most))
        }
        Rule::WonBack { share, unloaded } => won_back(summary, figure, *share, *unloaded),
        Rule::ChangeOver { other, most } => {
            let ratio = over(figure, ours, of(other)?)?.mean;
            Some((ratio <= *most, number::change(ratio - 1.0)))
        }
        Rule::Times { other, least } => {
            let times = paired_ratio(ours, of(other)?)?.mean;
            Some((times >= *least, number::times(times)))
        }
        Rule::BelowAll(others) => {
            let mut least = f64::INFINITY;
            for other in others {
                least = least.min(of(other)?.mean());
            }
            let text = format!("{} of {}", figure.text(ours.mean()), figure.text(least));
            Some((ours.mean() < least, text))
        }
        Rule::NeverAbove(most) => {
            let worst = ours.worst();
            Some((worst <= *most, figure.text(worst)))
        }
        Rule::OverAlone { alone, most } => {
            let alone = summary.cell(&figure.idle(), alone.name())?.mean();
            let times = ours.mean() / alone;
            Some((times <= *most, number::times(times)))
        }
        // These rules are on all figures together, see `verdicts`.
        Rule::AverageOver { .. } | Rule::AverageOverUnloaded(_) => None,
        Rule::GainAsIdle(other) => {
            let gain = |figure: &Figure| {
                let ours = summary.cell(figure, policy)?;
                Some(1.0 - over(figure, ours, summary.cell(figure, other.name())?)?.mean)
            };
            let (loaded, idle) = (gain(figure)?, gain(&figure.idle())?);
            let text = format!(
                "{} (idle {})",
                number::change(-loaded),
                number::change(-idle)
            );
            Some((loaded >= idle, text))
        }
        Rule::AtLeast(least) => Some((ours.mean() >= *least, figure.text(ours.mean()))),
        Rule::AtMost(most) => Some((ours.mean() <= *most, figure.text(ours.mean()))),
        Rule::Near {
            figure: wanted,
            part,
        } => {
            let off = ours.mean() / wanted - 1.0;
            let text = format!("{} ({})", figure.text(ours.mean()), number::change(off));
            Some((off.abs() <= *part, text))
        }
    }
}

/// Whether the interval's upper end is at most `most`; and the mean with its interval in words.
fn interval_within(ratio: crate::statistics::Statistics, most: f64) -> (bool, String) {
    let upper = ratio.interval.map_or(ratio.mean, |interval| interval.high);
    let interval = ratio.interval.map_or(String::new(), |interval| {
        format!(
            " ({}–{})",
            number::factor(interval.low),
            number::factor(interval.high)
        )
    });
    (upper <= most, number::times(ratio.mean) + &interval)
}

/// Ratio of `ours` to `theirs` by seed, turned so that above 1 is worse.
fn over(figure: &Figure, ours: &Cell, theirs: &Cell) -> Option<crate::statistics::Statistics> {
    match figure.direction() {
        metric::Direction::Lower => paired_ratio(ours, theirs),
        metric::Direction::Higher => paired_ratio(theirs, ours),
        metric::Direction::Neither => None,
    }
}

fn against(figure: &Figure, ours: &Cell, most: f64) -> (bool, String) {
    let text = format!("{} of {}", figure.text(ours.mean()), figure.text(most));
    (ours.mean() <= most, text)
}

fn worst(
    summary: &Summary,
    figure: &Figure,
    unloaded: f64,
    reduced: &BTreeMap<String, f64>,
) -> Option<(bool, String)> {
    let slowdown = summary.slowdown(figure, FRONTROW)?;
    if slowdown <= unloaded {
        return Some((true, format!("{} unloaded", number::times(slowdown))));
    }
    let operation = metric::operation(&figure.metric)?;
    let paper = reduced.get(&format!("{}_{operation}", figure.workload))?;
    let stock = summary.cell(figure, "mq-deadline")?.mean();
    let reduction = 1.0 - summary.cell(figure, FRONTROW)?.mean() / stock;
    let text = format!(
        "{} unloaded, {} (paper {})",
        number::times(slowdown),
        number::change(-reduction),
        number::change(-paper)
    );
    Some((reduction >= *paper, text))
}

fn won_back(
    summary: &Summary,
    figure: &Figure,
    share: f64,
    unloaded: f64,
) -> Option<(bool, String)> {
    let slowdown = summary.slowdown(figure, FRONTROW)?;
    let stock = summary.slowdown(figure, &summary.stock_default)?;
    if slowdown <= unloaded || stock <= 1.0 {
        let met = slowdown <= unloaded;
        return Some((met, format!("{} unloaded", number::times(slowdown))));
    }
    let back = (stock - slowdown) / (stock - 1.0);
    Some((back >= share, number::percent(back)))
}
