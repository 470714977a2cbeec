//! Two results of `frontrow bench`, before and after, side by side.

use super::{json, print_text};
use crate::atomic_file;
use crate::exit::{Exit, Failure};
use record::metric::{self, Direction};
use record::statistics::{Interval, Statistics};
use record::summary::{Cell, Figure, Summary, ratios_by_seed};
use record::{ResultFile, number, title};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `frontrow bench compare`.
#[derive(clap::Args)]
pub struct Args {
    /// The result of `frontrow bench --out` before the change
    before: PathBuf,
    /// The result after the change
    after: PathBuf,
    /// Show all figures, not only those of a workload's own operations
    #[arg(long)]
    all: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Write both results side by side as an HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The comparison, as `--json` prints it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Comparison {
    before: Side,
    after: Side,
    /// Differences besides the scheduler, as sentences.
    notes: Vec<String>,
    figures: Vec<Compared>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Side {
    policy: String,
    kernel: String,
    device: String,
    seeds: Vec<u64>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Compared {
    workload: String,
    load: String,
    metric: String,
    unit: String,
    before: f64,
    after: f64,
    /// Ratio of after to before: geometric mean over common seeds, or ratio of the means.
    ratio: Option<f64>,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Better,
    Worse,
    /// The seeds disagree, there is only one, or there is no difference.
    Unclear,
    /// A metric without a direction.
    Neither,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let comparison = compare(&before, &after, args.all)?;
    if let Some(path) = &args.html {
        atomic_file::write(path, record::html::render(&together(before, after)))?;
    }
    match args.json {
        true => print_text(&json(&comparison)?),
        false => print_text(&comparison.render()),
    }
}

fn read(path: &Path) -> Result<ResultFile, Failure> {
    let refuse = |reason: String| {
        let sentence = format!("cannot use {} as a result: {reason}", path.display());
        Failure::new(Exit::Usage, sentence)
    };
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))
}

/// Merges both results. If both ran under the same scheduler, its name gets "before" and "after".
fn together(mut before: ResultFile, mut after: ResultFile) -> ResultFile {
    let same =
        before.rows.first().map(|row| &row.policy) == after.rows.first().map(|row| &row.policy);
    if same {
        for (result, when) in [(&mut before, "before"), (&mut after, "after")] {
            result
                .rows
                .iter_mut()
                .for_each(|row| row.policy = when.to_owned());
        }
    }
    before.rows.append(&mut after.rows);
    before
}

pub(super) fn compare(
    before: &ResultFile,
    after: &ResultFile,
    all: bool,
) -> Result<Comparison, Failure> {
    let refuse = |reason: String| Failure::new(Exit::Usage, format!("not comparable: {reason}"));
    if before.experiment != after.experiment {
        return Err(refuse(format!(
            "one is of '{}' and the other of '{}'",
            before.experiment, after.experiment
        )));
    }
    if before.scale != after.scale {
        return Err(refuse(format!(
            "one ran at scale {} and the other at {}",
            before.scale, after.scale
        )));
    }
    let (ours, theirs) = (Summary::of(before), Summary::of(after));
    let (was, is) = (only_policy(&ours)?, only_policy(&theirs)?);
    let mut figures = Vec::new();
    for figure in &ours.figures {
        let shown = all || metric::is_headline(&figure.workload, &figure.metric);
        if let (true, Some(was), Some(is)) =
            (shown, ours.cell(figure, was), theirs.cell(figure, is))
        {
            figures.push(Compared::of(figure, was, is));
        }
    }
    if figures.is_empty() {
        let reason = format!(
            "they have no workload and load in common ({} and {})",
            situations(&ours),
            situations(&theirs)
        );
        return Err(refuse(reason));
    }
    Ok(Comparison {
        notes: notes(before, after, &ours, &theirs),
        before: Side::of(before, &ours, was),
        after: Side::of(after, &theirs, is),
        figures,
    })
}

fn only_policy(summary: &Summary) -> Result<&str, Failure> {
    match summary.policies.as_slice() {
        [policy] => Ok(policy),
        policies => Err(Failure::new(
            Exit::Usage,
            format_args!(
                "not comparable: a result has the policies {}, and a comparison takes one of each; \
                 give results of `frontrow bench --out`",
                policies.join(", ")
            ),
        )),
    }
}

fn situations(summary: &Summary) -> String {
    let names: Vec<String> = summary
        .situations()
        .iter()
        .map(|(workload, load)| title::short(workload, load))
        .collect();
    names.join(", ")
}

fn notes(before: &ResultFile, after: &ResultFile, ours: &Summary, theirs: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differ = |what: &str, was: &str, is: &str| {
        if was != is {
            notes.push(format!("The {what} differs: {was} before, {is} after."));
        }
    };
    differ("device", &before.device, &after.device);
    differ("kernel", &before.kernel, &after.kernel);
    for (name, was) in &before.inputs.items {
        let is = after.inputs.items.get(name).map_or("none", String::as_str);
        differ(name, was, is);
    }
    for (summary, other, when) in [(ours, theirs, "before"), (theirs, ours, "after")] {
        for (workload, load) in summary.situations() {
            if !other.situations().contains(&(workload, load)) {
                let name = title::short(workload, load);
                notes.push(format!("Only measured {when}: {name}."));
            }
        }
    }
    if ours.seeds != theirs.seeds {
        notes.push("The seeds differ: only those that both have are paired.".to_owned());
    }
    notes
}

impl Side {
    fn of(result: &ResultFile, summary: &Summary, policy: &str) -> Self {
        Side {
            policy: policy.to_owned(),
            kernel: result.kernel.clone(),
            device: result.device.clone(),
            seeds: summary.seeds.clone(),
        }
    }
}

impl Compared {
    fn of(figure: &Figure, was: &Cell, is: &Cell) -> Self {
        let (before, after) = (was.over_seeds.mean, is.over_seeds.mean);
        let paired = geometric_mean(is, was);
        let ratio = match &paired {
            Some((ratio, _)) => Some(*ratio),
            None if before != 0.0 => Some(after / before),
            None => None,
        };
        let interval = paired.and_then(|(_, interval)| interval);
        let sure = interval.is_some_and(|it| it.high < 1.0 || it.low > 1.0);
        Compared {
            workload: figure.workload.clone(),
            load: figure.load.clone(),
            metric: figure.metric.clone(),
            unit: figure.unit.clone(),
            before,
            after,
            ratio,
            verdict: verdict(figure.direction(), ratio, sure),
        }
    }
}

/// Geometric mean of the ratios of `after` to `before` over common seeds, and its 95 % interval: the
/// mean of logarithms does not depend on which of the two is called "before", and one run that was
/// slow by chance does not outweigh the others. None where a value is 0.
fn geometric_mean(after: &Cell, before: &Cell) -> Option<(f64, Option<Interval>)> {
    let logarithms: Vec<f64> = ratios_by_seed(after, before).map(f64::ln).collect();
    let over_seeds = Statistics::of(&logarithms)?;
    let interval = over_seeds.interval.map(|it| Interval {
        low: it.low.exp(),
        high: it.high.exp(),
    });
    let mean = over_seeds.mean;
    mean.is_finite().then(|| (mean.exp(), interval))
}

fn verdict(direction: Direction, ratio: Option<f64>, sure: bool) -> Verdict {
    let lower_is_better = match direction {
        Direction::Lower => true,
        Direction::Higher => false,
        Direction::Neither => return Verdict::Neither,
    };
    match ratio {
        Some(ratio) if sure && ratio != 1.0 => match (ratio < 1.0) == lower_is_better {
            true => Verdict::Better,
            false => Verdict::Worse,
        },
        _ => Verdict::Unclear,
    }
}

impl Comparison {
    /// One sentence on all figures, and on the one with the largest difference, in the names of both sides.
    pub(super) fn sentence(&self, before: &str, after: &str) -> String {
        let those = |verdict| self.figures.iter().filter(move |it| it.verdict == verdict);
        let counts = [Verdict::Better, Verdict::Worse].map(|it| those(it).count());
        let [better, worse] = counts;
        let all = self.figures.len();
        if better + worse == 0 {
            return format!(
                "Whether {before} or {after} makes no difference that can be told from chance in {all} figures."
            );
        }
        let distance = |it: &&Compared| it.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        let sure = those(Verdict::Better).chain(those(Verdict::Worse));
        let largest = sure.max_by(|one, other| distance(one).total_cmp(&distance(other)));
        let largest = largest.map(Compared::cells).unwrap_or_default();
        let [name, was, is, ..] = largest.map(|it| it.trim().to_owned());
        format!(
            "{name} is {was} while {before} and {is} while {after}; of {all} figures {better} are better then, and {worse} worse."
        )
    }

    pub(super) fn render(&self) -> String {
        let heading = [
            "figure".to_owned(),
            format!("before: {}", self.before.policy),
            format!("after: {}", self.after.policy),
            "ratio".to_owned(),
            String::new(),
        ];
        let mut lines = vec![heading];
        lines.extend(self.figures.iter().map(Compared::cells));
        let widths: Vec<usize> = (0..5)
            .map(|column| {
                let width = |line: &[String; 5]| line[column].chars().count();
                lines.iter().map(width).max().unwrap_or(0)
            })
            .collect();
        let mut text: String = lines.iter().map(|line| aligned(line, &widths)).collect();
        if self.before.seeds.len().min(self.after.seeds.len()) < 2 {
            text += "\nOne seed cannot tell a change from chance: run both with --seeds 1..5.\n";
        }
        for note in &self.notes {
            text += &format!("{note}\n");
        }
        text
    }
}

impl Compared {
    fn cells(&self) -> [String; 5] {
        let situation = title::short(&self.workload, &self.load);
        let word = match self.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Unclear => "unclear",
            Verdict::Neither => "",
        };
        [
            format!("{situation} {}", metric::label(&self.metric)),
            number::with_unit(self.before, &self.unit),
            number::with_unit(self.after, &self.unit),
            self.ratio.map(number::times).unwrap_or_default(),
            word.to_owned(),
        ]
    }
}

/// Alignment: first column left, figures right, last column left.
fn aligned(cells: &[String; 5], widths: &[usize]) -> String {
    let line = format!(
        "{:<first$}  {:>second$}  {:>third$}  {:>fourth$}  {}",
        cells[0],
        cells[1],
        cells[2],
        cells[3],
        cells[4],
        first = widths[0],
        second = widths[1],
        third = widths[2],
        fourth = widths[3],
    );
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Inputs, Row, Scale};

    fn result(policy: &str, values: &[(&str, u64, f64)]) -> ResultFile {
        ResultFile {
            experiment: "bench".to_owned(),
            kernel: "6.12".to_owned(),
            device: "sda".to_owned(),
            scale: Scale::Demo,
            stock_default: "mq-deadline".to_owned(),
            baselines: Vec::new(),
            bars: Vec::new(),
            inputs: Inputs::default(),
            rows: values
                .iter()
                .map(|(workload, seed, value)| Row {
                    workload: (*workload).to_owned(),
                    load: "writer".to_owned(),
                    policy: policy.to_owned(),
                    metric: "total_ms".to_owned(),
                    unit: "ms".to_owned(),
                    seed: *seed,
                    value: *value,
                    histogram: None,
                    series: None,
                })
                .collect(),
        }
    }

    #[test]
    fn what_both_have_is_paired_by_seed() {
        let before = result(
            "mq-deadline",
            &[("m1", 1, 100.0), ("m1", 2, 200.0), ("m2", 1, 5.0)],
        );
        let after = result("frontrow", &[("m1", 1, 50.0), ("m1", 2, 100.0)]);
        let comparison = compare(&before, &after, false).unwrap();
        assert_eq!(comparison.figures.len(), 1);
        let ratio = comparison.figures[0].ratio.unwrap();
        assert!((ratio - 0.5).abs() < 1e-9, "{ratio}");
        assert_eq!(comparison.figures[0].verdict, Verdict::Better);
        assert_eq!(comparison.notes, ["Only measured before: m2 under writer."]);
        assert!(comparison.render().contains("×0.5"));
    }

    #[test]
    fn seeds_that_disagree_give_no_verdict() {
        let before = result(
            "none",
            &[("m1", 1, 100.0), ("m1", 2, 100.0), ("m1", 3, 100.0)],
        );
        let after = result("bfq", &[("m1", 1, 80.0), ("m1", 2, 130.0), ("m1", 3, 90.0)]);
        let comparison = compare(&before, &after, false).unwrap();
        assert_eq!(comparison.figures[0].verdict, Verdict::Unclear);
    }

    #[test]
    fn runs_that_were_slow_by_chance_hide_no_change() {
        let slow = result("none", &[("m1", 1, 4e3), ("m1", 2, 60e3), ("m1", 3, 20e3)]);
        let fast = result(
            "bfq",
            &[("m1", 1, 300.0), ("m1", 2, 500.0), ("m1", 3, 400.0)],
        );
        let gain = &compare(&slow, &fast, false).unwrap().figures[0];
        let loss = &compare(&fast, &slow, false).unwrap().figures[0];
        assert_eq!(gain.verdict, Verdict::Better);
        assert_eq!(loss.verdict, Verdict::Worse);
        let product = gain.ratio.unwrap() * loss.ratio.unwrap();
        assert!((product - 1.0).abs() < 1e-9, "{product}");
    }

    #[test]
    fn other_sizes_and_other_workloads_are_not_comparable() {
        let before = result("none", &[("m1", 1, 1.0)]);
        let mut larger = before.clone();
        larger.scale = Scale::Full;
        let sentence = compare(&before, &larger, false).unwrap_err().sentence;
        assert_eq!(
            sentence,
            "not comparable: one ran at scale demo and the other at full"
        );
        let other = result("none", &[("m2", 1, 1.0)]);
        let sentence = compare(&before, &other, false).unwrap_err().sentence;
        assert!(
            sentence.contains("no workload and load in common"),
            "{sentence}"
        );
    }

    #[test]
    fn another_device_is_noted() {
        let before = result("none", &[("m1", 1, 1.0)]);
        let mut after = before.clone();
        after.device = "sdb".to_owned();
        let comparison = compare(&before, &after, false).unwrap();
        assert_eq!(
            comparison.notes,
            ["The device differs: sda before, sdb after."]
        );
    }
}
