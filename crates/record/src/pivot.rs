//! The table of a result before it is drawn: figures as lines, policies as columns, and the text of
//! each cell. The terminal table, Markdown and HTML all show this.

use crate::summary::{Cell, Figure, Measured, Summary};
use crate::{metric, number};

/// Reference of the ratio beside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The same figure on an idle device with the best stock scheduler.
    Unloaded,
    /// The same figure with the best stock scheduler.
    BestStock,
}

/// Lines with the same columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Reference of the ratios.
    pub reference: Reference,
    /// Columns after the label.
    pub columns: Vec<Column>,
    /// Lines of each workload and load.
    pub groups: Vec<Group>,
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// The figure on an idle device with the best stock scheduler.
    Unloaded,
    /// The figure under the policy of this name.
    Policy(String),
}

/// Lines of one workload under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name of the workload.
    pub workload: String,
    /// Name of the load.
    pub load: String,
    /// One line for each metric.
    pub lines: Vec<Line>,
}

/// One metric under all policies.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Label of the line, such as `creat mean`.
    pub label: String,
    /// Figure of the line.
    pub figure: Figure,
    /// One entry for each column; `None` for what was not measured.
    pub entries: Vec<Option<Entry>>,
}

/// Text of a cell of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Mean over seeds with its unit, such as `249 ms`.
    pub value: String,
    /// Ratio to the reference, such as `×1.92`; above 1 is worse.
    pub ratio: Option<String>,
    /// 95 % interval of the mean, such as `240 ms to 258 ms`; None for one seed.
    pub interval: Option<String>,
    /// Smallest and largest value over the seeds.
    pub range: String,
    /// Name of the policy.
    pub policy: String,
    /// Whether no stock scheduler has a better mean for this figure.
    pub best_stock: bool,
}

impl Section {
    /// Whether any entry has a ratio.
    pub fn has_ratios(&self) -> bool {
        let lines = self.groups.iter().flat_map(|group| &group.lines);
        lines
            .flat_map(|line| line.entries.iter().flatten())
            .any(|entry| entry.ratio.is_some())
    }
}

impl Column {
    /// Heading of the column.
    pub fn name(&self) -> &str {
        match self {
            Column::Unloaded => "unloaded",
            Column::Policy(policy) => policy,
        }
    }
}

/// Sections of a result: figures under load relative to unloaded, then idle figures relative to the
/// best stock scheduler. With `all` they include side operations, the scheduler's counters, and
/// ablations.
pub fn sections(summary: &Summary, all: bool) -> Vec<Section> {
    let loaded = section(summary, all, Reference::Unloaded);
    let mut idle = section(summary, all, Reference::BestStock);
    if !all {
        keep_headline(&mut idle, &loaded, summary);
    }
    [loaded, idle]
        .into_iter()
        .filter(|section| !section.groups.is_empty())
        .collect()
}

/// Keeps one line of the idle figures for each workload that ran under load, as a check.
fn keep_headline(idle: &mut Section, loaded: &Section, summary: &Summary) {
    let ran_loaded = |group: &Group| loaded.groups.iter().any(|it| it.workload == group.workload);
    for group in idle.groups.iter_mut().filter(|it| ran_loaded(it)) {
        let headline = summary.headline(&group.workload, &group.load);
        group.lines.retain(|line| Some(&line.figure) == headline);
    }
    idle.groups.retain(|group| !group.lines.is_empty());
}

fn section(summary: &Summary, all: bool, reference: Reference) -> Section {
    let loaded = reference == Reference::Unloaded;
    let policies = summary
        .policies
        .iter()
        .filter(|name| all || !summary.has_stock() || !summary.is_ablation(name));
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
        .filter(|figure| all || metric::is_headline(workload, &figure.metric))
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

/// Whether the figure tells throttled time apart although no time was throttled.
fn is_idle_throttling(summary: &Summary, figure: &Figure) -> bool {
    let (workload, load) = (figure.workload.as_str(), figure.load.as_str());
    let told_apart = [metric::THROTTLED, metric::UNTHROTTLED].contains(&figure.metric.as_str());
    if !told_apart || summary.headline(workload, load) == Some(figure) {
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
