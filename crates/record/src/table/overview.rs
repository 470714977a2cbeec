//! Overview of a result as bars: the time of each workload alone, under its load with the best of
//! the kernel's own schedulers, and with ours.

use super::grid::{self, Text, width_of, wrapped};
use super::{BEST, BOLD, Options};
use crate::metric::Direction;
use crate::policy::{Policy, Scheduler};
use crate::summary::{Figure, IDLE, Measured, Summary};
use crate::{ResultFile, number, title};
use anstyle::Style;

/// Most pairs of workload and load in an overview.
const MOST_SITUATIONS: usize = 12;

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Smallest share of time in the kernel's write throttle that is mentioned.
const NOTABLE: f64 = 0.1;

struct Bar<'a> {
    label: String,
    measured: Measured<'a>,
    /// Part of the value in the kernel's write throttle, in ms.
    throttled_ms: f64,
    style: Style,
}

impl<'a> Bar<'a> {
    fn of(
        summary: &Summary,
        figure: &Figure,
        measured: Measured<'a>,
        label: String,
        style: Style,
    ) -> Bar<'a> {
        let throttled = summary.figure(&figure.workload, &figure.load, "throttled_ms");
        let cell = throttled.and_then(|throttled| summary.cell(throttled, measured.policy));
        Bar {
            label,
            measured,
            throttled_ms: cell.map_or(0.0, |cell| cell.mean()),
            style,
        }
    }
}

/// The overview of all workloads that ran under a load with a kernel's scheduler and with one of
/// ours. None if there are none or too many.
pub fn render(result: &ResultFile, options: Options) -> Option<String> {
    let summary = Summary::of(result);
    let figures: Vec<&Figure> = summary
        .situations()
        .into_iter()
        .filter(|(_, load)| *load != IDLE)
        .filter_map(|(workload, load)| figure(&summary, workload, load))
        .collect();
    let blocks: Vec<String> = figures
        .iter()
        .filter_map(|figure| block(&summary, figure, options))
        .collect();
    if blocks.is_empty() || blocks.len() > MOST_SITUATIONS {
        return None;
    }
    let mut text = super::heading(result, &summary, options) + "\n" + &blocks.join("\n");
    for ours in summary
        .policies
        .iter()
        .filter(|name| is_ours(&summary, name))
    {
        text.push('\n');
        text.push_str(&wrapped(&verdict(&summary, &figures, ours), options.width));
    }
    Some(text)
}

/// The figure that the user waits for: the workload's total, else its headline metric.
fn figure<'a>(summary: &'a Summary, workload: &str, load: &str) -> Option<&'a Figure> {
    let total = summary.figure(workload, load, "total_ms");
    let figure = total.or_else(|| summary.headline(workload, load))?;
    (figure.direction() == Direction::Lower).then_some(figure)
}

fn is_ours(summary: &Summary, policy: &str) -> bool {
    let is_ours = |it: &Policy| it.scheduler == Scheduler::Frontrow;
    summary.policy(policy).is_some_and(is_ours)
}

fn block(summary: &Summary, figure: &Figure, options: Options) -> Option<String> {
    let best = summary.best_stock(figure).filter(|_| summary.has_stock())?;
    let idle = figure.idle();
    let alone = summary
        .unloaded(figure)
        .map(|alone| (&idle, alone, "alone".to_owned(), Style::new()));
    let stock = (
        figure,
        best,
        format!("{}, best of stock", best.policy),
        BEST,
    );
    let ours = summary
        .policies
        .iter()
        .filter(|name| is_ours(summary, name));
    let ours = ours.filter_map(|policy| {
        let cell = summary.cell(figure, policy)?;
        Some((
            figure,
            Measured { policy, cell },
            title::policy(policy).to_owned(),
            BOLD,
        ))
    });
    let ours: Vec<_> = ours.collect();
    if ours.is_empty() {
        return None;
    }
    let all = alone.into_iter().chain([stock]).chain(ours);
    let bars: Vec<Bar> = all
        .map(|(figure, measured, label, style)| Bar::of(summary, figure, measured, label, style))
        .collect();
    let heading = title::situation(&figure.workload, &figure.load);
    Some(wrapped(&heading, options.width) + &draw(figure, &bars, options))
}

fn draw(figure: &Figure, bars: &[Bar], options: Options) -> String {
    let values: Vec<String> = bars
        .iter()
        .map(|bar| figure.text(bar.measured.cell.mean()))
        .collect();
    let widest = |all: &mut dyn Iterator<Item = usize>| all.max().unwrap_or_default();
    let labels = widest(&mut bars.iter().map(|bar| width_of(&bar.label)));
    let numbers = widest(&mut values.iter().map(|value| width_of(value)));
    let longest = bars
        .iter()
        .map(|bar| bar.measured.cell.mean())
        .fold(0.0, f64::max);
    let room = options.width.saturating_sub(2 + labels + 2 + numbers + 2) as f64;
    let mut out = String::new();
    for (bar, value) in bars.iter().zip(&values) {
        let pad = |text: &str, width: usize| " ".repeat(width - width_of(text));
        out.push_str("  ");
        grid::styled(
            &mut out,
            &Text::styled(&bar.label, bar.style),
            options.color,
        );
        out += &format!(
            "{}  {}{value}  ",
            pad(&bar.label, labels),
            pad(value, numbers)
        );
        out += &length(bar.measured.cell.mean() / longest * room);
        out.push('\n');
        out.push_str(&throttle(bar, options));
    }
    out
}

/// A bar of so many columns, to an eighth of one.
fn length(columns: f64) -> String {
    let eighths = (columns * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

fn throttle(bar: &Bar, options: Options) -> String {
    let total_ms = bar.measured.cell.mean();
    if bar.throttled_ms < NOTABLE * total_ms {
        return String::new();
    }
    let time = number::with_unit(bar.throttled_ms, "ms");
    let text = format!("{time} of it in the kernel's write throttle, which no scheduler reaches");
    let indent = "    ";
    let lines = wrapped(&text, options.width - indent.len());
    lines
        .lines()
        .map(|line| format!("{indent}{line}\n"))
        .collect()
}

fn verdict(summary: &Summary, figures: &[&Figure], ours: &str) -> String {
    let name = |figure: &Figure| title::short(&figure.workload, &figure.load);
    let mut behind = Vec::new();
    let mut compared = 0;
    for figure in figures {
        let (Some(cell), Some(best)) = (summary.cell(figure, ours), summary.best_stock(figure))
        else {
            continue;
        };
        compared += 1;
        if cell.mean() > best.cell.mean() {
            behind.push(name(figure));
        }
    }
    let ahead = compared - behind.len();
    let sentence = format!(
        "{}: faster than every stock scheduler in {ahead} of {compared}",
        title::policy(ours)
    );
    match behind.is_empty() {
        true => sentence + ".",
        false => format!("{sentence}; not in {}.", behind.join(", ")),
    }
}
