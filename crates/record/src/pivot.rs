//! The table of a result before anyone draws it: which figures are its lines,
//! which policies its columns, and what stands in each cell. The terminal
//! table, Markdown and HTML all show this.

use crate::summary::{Cell, Figure, Measured, Summary};
use crate::{metric, number, policy};

/// What the ratio beside a value is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The same figure on an idle device with the best stock scheduler.
    Unloaded,
    /// The best stock scheduler's figure.
    BestStock,
}

/// Lines with the same columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What ratios are over.
    pub reference: Reference,
    /// The columns' names, after the label.
    pub columns: Vec<Column>,
    /// One for each workload and load.
    pub groups: Vec<Group>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// The figure on an idle device, best stock scheduler.
    Unloaded,
    /// The figure under this policy.
    Policy(String),
}

/// The lines of one workload under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The workload's name.
    pub workload: String,
    /// The load's name.
    pub load: String,
    /// One for each metric.
    pub lines: Vec<Line>,
}

/// One metric under all policies.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// `creat mean`.
    pub label: String,
    /// What it shows.
    pub figure: Figure,
    /// One for each column; what was not measured is `None`.
    pub entries: Vec<Option<Entry>>,
}

/// What stands in a cell of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The mean over seeds, `249 ms`.
    pub value: String,
    /// How many times worse than the reference, `×1.92`.
    pub ratio: Option<String>,
    /// The mean's 95 % interval, `240 ms to 258 ms`.
    pub interval: Option<String>,
    /// Smallest and largest over seeds.
    pub range: String,
    /// The policy whose figure this is.
    pub policy: String,
    /// Whether no stock scheduler has a better one for this figure.
    pub best_stock: bool,
}

impl Section {
    /// Whether anything stands beside the values.
    pub fn has_ratios(&self) -> bool {
        let lines = self.groups.iter().flat_map(|group| &group.lines);
        lines
            .flat_map(|line| line.entries.iter().flatten())
            .any(|entry| entry.ratio.is_some())
    }
}

impl Column {
    /// The column's heading.
    pub fn name(&self) -> &str {
        match self {
            Column::Unloaded => "unloaded",
            Column::Policy(policy) => policy,
        }
    }
}

/// The sections of a result: figures under load over unloaded, then idle
/// figures over the best stock scheduler. `all` also shows side operations, the
/// scheduler's counters, and ablations beside stock schedulers.
pub fn sections(summary: &Summary, all: bool) -> Vec<Section> {
    let loaded = section(summary, all, Reference::Unloaded);
    let mut idle = section(summary, all, Reference::BestStock);
    if !all {
        keep_chief(&mut idle, &loaded, summary);
    }
    [loaded, idle]
        .into_iter()
        .filter(|section| !section.groups.is_empty())
        .collect()
}

/// Where a workload ran under load its idle figures are a check: one line.
fn keep_chief(idle: &mut Section, loaded: &Section, summary: &Summary) {
    let ran_loaded = |group: &Group| loaded.groups.iter().any(|it| it.workload == group.workload);
    for group in idle.groups.iter_mut().filter(|it| ran_loaded(it)) {
        let chief = summary.chief(&group.workload, &group.load);
        group.lines.retain(|line| Some(&line.figure) == chief);
    }
    idle.groups.retain(|group| !group.lines.is_empty());
}

fn section(summary: &Summary, all: bool, reference: Reference) -> Section {
    let loaded = reference == Reference::Unloaded;
    let policies = summary
        .policies
        .iter()
        .filter(|name| all || !summary.has_stock() || !policy::is_ablation(name));
    let ran_idle = summary.figures.iter().any(|figure| !figure.is_loaded());
    let unloaded = (loaded && ran_idle).then_some(Column::Unloaded);
    let columns: Vec<Column> = unloaded
        .into_iter()
        .chain(policies.cloned().map(Column::Policy))
        .collect();
    let groups = summary
        .situations()
        .into_iter()
        .filter(|(_, load)| (*load != crate::summary::IDLE) == loaded)
        .map(|(workload, load)| Group {
            workload: workload.to_owned(),
            load: load.to_owned(),
            lines: lines(summary, (workload, load), &columns, reference, all),
        })
        .filter(|group| !group.lines.is_empty())
        .collect();
    Section {
        reference,
        columns,
        groups,
    }
}

fn lines(
    summary: &Summary,
    (workload, load): (&str, &str),
    columns: &[Column],
    reference: Reference,
    all: bool,
) -> Vec<Line> {
    summary
        .figures_of(workload, load)
        .filter(|figure| all || metric::is_chief(workload, &figure.metric))
        .filter(|figure| all || !is_idle_throttling(summary, figure))
        .map(|figure| Line {
            label: metric::label(&figure.metric),
            figure: figure.clone(),
            entries: columns
                .iter()
                .map(|column| entry(summary, figure, column, reference))
                .collect(),
        })
        .filter(|line| line.entries.iter().any(Option::is_some))
        .collect()
}

/// Where nobody was throttled there is nothing to tell apart.
fn is_idle_throttling(summary: &Summary, figure: &Figure) -> bool {
    let (workload, load) = (figure.workload.as_str(), figure.load.as_str());
    let told_apart = [metric::THROTTLED, metric::UNTHROTTLED].contains(&figure.metric.as_str());
    if !told_apart || summary.chief(workload, load) == Some(figure) {
        return false;
    }
    let Some(throttled) = summary.figure(workload, load, metric::THROTTLED) else {
        return true;
    };
    let cell = |policy: &String| summary.cell(throttled, policy);
    let mut cells = summary.policies.iter().filter_map(cell);
    cells.all(|cell| cell.mean() == 0.0)
}

fn entry(
    summary: &Summary,
    figure: &Figure,
    column: &Column,
    reference: Reference,
) -> Option<Entry> {
    let policy = match column {
        Column::Unloaded => {
            let unloaded = summary.unloaded(figure)?;
            return Some(entry_of(figure, unloaded, None, false));
        }
        Column::Policy(policy) => policy,
    };
    let cell = summary.cell(figure, policy)?;
    let best = summary.best_stock(figure);
    let several = summary.policies.len() > 1;
    let over = match reference {
        Reference::Unloaded => summary.unloaded(figure),
        Reference::BestStock => best.filter(|_| several),
    };
    let ratio = over.and_then(|over| {
        figure
            .direction()
            .times_worse(cell.mean(), over.cell.mean())
    });
    let is_best = several && best.is_some_and(|best| best.policy == policy);
    Some(entry_of(figure, Measured { policy, cell }, ratio, is_best))
}

fn entry_of(figure: &Figure, measured: Measured, ratio: Option<f64>, best_stock: bool) -> Entry {
    let Measured { policy, cell } = measured;
    Entry {
        value: figure.text(cell.mean()),
        ratio: ratio.map(number::times),
        interval: interval(figure, cell),
        range: format!(
            "{} to {}",
            figure.text(cell.over_seeds.min),
            figure.text(cell.over_seeds.max)
        ),
        policy: policy.to_owned(),
        best_stock,
    }
}

fn interval(figure: &Figure, cell: &Cell) -> Option<String> {
    let interval = cell.over_seeds.interval?;
    Some(format!(
        "{} to {}",
        figure.text(interval.low),
        figure.text(interval.high)
    ))
}
