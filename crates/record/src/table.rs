//! A result as a table for the terminal.

mod ablation;
pub mod grid;
pub mod overview;
mod verdicts;

use crate::pivot::{self, Column, Entry, Section};
use crate::summary::Summary;
use crate::{ResultFile, bars, caption, policy, title};
use anstyle::{AnsiColor, Style};
use grid::{Grid, Line, Text};

/// Options of the table.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Width of the terminal in columns; 100 without a terminal.
    pub width: usize,
    /// Whether to use colours.
    pub color: bool,
    /// Whether to show side operations, ablations and the scheduler's counters as lines of their
    /// own.
    pub all: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            width: 100,
            color: false,
            all: false,
        }
    }
}

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const BEST: Style = Style::new().underline();

/// Renders the whole table: figures, ablation, bars.
pub fn render(result: &ResultFile, options: Options) -> String {
    let summary = Summary::of(result);
    let mut blocks = vec![heading(result, &summary, options)];
    for section in pivot::sections(&summary, options.all) {
        blocks.push(section_block(&section, &summary, options));
    }
    blocks.extend(ablation::block(&summary, options));
    blocks.extend(verdicts::block(&bars::judge(&summary), options));
    blocks.join("\n")
}

fn heading(result: &ResultFile, summary: &Summary, options: Options) -> String {
    let what = format!(
        "{}: kernel {}, device {}, {} scale",
        result.experiment, result.kernel, result.device, result.scale
    );
    grid::wrapped(&what, options.width)
        + &grid::wrapped(&caption::certainty(summary), options.width)
}

fn section_block(section: &Section, summary: &Summary, options: Options) -> String {
    let repeated = usize::from(section.columns.first() == Some(&Column::Unloaded));
    let grid = Grid {
        headings: section.columns.iter().map(column_heading).collect(),
        repeated,
        lines: match section.groups.iter().all(|group| group.lines.len() == 1) {
            true => section.groups.iter().flat_map(only_line).collect(),
            false => section.groups.iter().flat_map(group_lines).collect(),
        },
    };
    let mut out = grid::wrapped(caption::explanation(section, summary), options.width);
    if grid.loses_ratios(options.width) {
        out.push_str("(a wider terminal shows the ratio of every column)\n");
    }
    out.push_str(&grid.render(options.width, options.color));
    out
}

fn column_heading(column: &Column) -> Text {
    let style = match column.name() {
        policy::FRONTROW => BOLD,
        _ => Style::new(),
    };
    Text::styled(column.name(), style)
}

/// The line of a group that has only one and needs no heading; its label is the workload.
fn only_line(group: &pivot::Group) -> Option<Line> {
    let line = group.lines.first()?;
    let label = format!(
        "{} {}",
        title::short(&group.workload, &group.load),
        line.label
    );
    Some(Line::Cells(Text::plain(label), cells(line)))
}

fn cells(line: &pivot::Line) -> Vec<(Text, String)> {
    line.entries
        .iter()
        .map(|entry| cell(entry.as_ref()))
        .collect()
}

fn group_lines(group: &pivot::Group) -> Vec<Line> {
    let long = title::situation(&group.workload, &group.load);
    let short = title::short(&group.workload, &group.load);
    let mut lines = vec![Line::Heading(
        Text::styled(long, BOLD),
        Text::styled(short, BOLD),
    )];
    for line in &group.lines {
        lines.push(Line::Cells(Text::plain(&line.label), cells(line)));
    }
    lines
}

fn cell(entry: Option<&Entry>) -> (Text, String) {
    let Some(entry) = entry else {
        return (Text::plain("–"), String::new());
    };
    let style = match (entry.policy.as_str(), &entry.ratio) {
        (policy::FRONTROW, Some(_)) => BOLD,
        _ if entry.best_stock => BEST,
        _ => Style::new(),
    };
    let value = Text::styled(&entry.value, style);
    (value, entry.ratio.clone().unwrap_or_default())
}
