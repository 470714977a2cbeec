//! Slowdown of each workload against unloaded: one card of bars each, on a common logarithmic scale
//! that begins at unloaded.

use super::axis::LogAxis;
use super::chart::{BAR, MOST_LETTERS, ROW, WIDTH, label_width, shortened};
use super::{at, series};
use crate::summary::{Cell, Figure, Summary};
use crate::{metric, number, policy, title};
use maud::{Markup, html};

/// Room for a value and its ratio, right of the longest bar.
const VALUE: f64 = 118.0;
const AXIS: f64 = 26.0;

/// Chart of one workload.
struct Chart<'a> {
    figure: &'a Figure,
    unloaded: f64,
    bars: Vec<Bar<'a>>,
}

struct Bar<'a> {
    policy: &'a str,
    cell: &'a Cell,
    times: f64,
    /// Ends of the mean's interval, as multiples of unloaded.
    interval: Option<(f64, f64)>,
}

/// The section; None if nothing ran under load.
pub fn section(summary: &Summary) -> Option<Markup> {
    let charts: Vec<Chart> = summary
        .situations()
        .into_iter()
        .filter_map(|(workload, load)| chart(summary, workload, load))
        .collect();
    if charts.is_empty() {
        return None;
    }
    let times = || {
        charts
            .iter()
            .flat_map(|chart| &chart.bars)
            .map(|bar| bar.times)
    };
    let most = times().fold(2.0, f64::max);
    let least = times().fold(1.0, f64::min);
    let range = (if least < 0.97 { least * 0.95 } else { 1.0 }, most * 1.05);
    Some(html! {
        section {
            h2 { "How many times slower than on an idle device" }
            p.lead {
                "Each bar starts at the time the workload takes unloaded (idle device, best stock "
                "scheduler). The scale is logarithmic and the same in all charts"
                @if summary.seeds.len() > 1 { "; whiskers are 95 % intervals" }
                "."
            }
            div.cards {
                @for (place, chart) in charts.iter().enumerate() {
                    figure.card { (draw(chart, summary, range, place)) }
                }
            }
        }
    })
}

fn chart<'a>(summary: &'a Summary, workload: &str, load: &str) -> Option<Chart<'a>> {
    let figure = summary.headline(workload, load)?;
    if !figure.is_loaded() {
        return None;
    }
    let unloaded = summary.unloaded(figure)?.cell.mean();
    let bars: Vec<Bar> = summary
        .policies
        .iter()
        .filter(|name| !summary.is_ablation(name))
        .filter_map(|name| bar(summary, figure, name, unloaded))
        .collect();
    (!bars.is_empty()).then_some(Chart {
        figure,
        unloaded,
        bars,
    })
}

fn bar<'a>(
    summary: &'a Summary,
    figure: &Figure,
    policy: &'a str,
    unloaded: f64,
) -> Option<Bar<'a>> {
    let cell = summary.cell(figure, policy)?;
    let times = |value| figure.direction().times_worse(value, unloaded);
    let interval = cell.over_seeds.interval.and_then(|ends| {
        let (one, other) = (times(ends.low)?, times(ends.high)?);
        Some((one.min(other), one.max(other)))
    });
    Some(Bar {
        policy,
        cell,
        times: times(cell.mean()).filter(|times| *times > 0.0)?,
        interval,
    })
}

fn draw(chart: &Chart, summary: &Summary, range: (f64, f64), place: usize) -> Markup {
    let label = label_width(chart.bars.iter().map(|bar| bar.policy));
    let axis = LogAxis::new(range, label, WIDTH - label - VALUE);
    let bottom = ROW * chart.bars.len() as f64;
    let figure = chart.figure;
    let heading = title::workload(&figure.workload).unwrap_or(&figure.workload);
    let (title_id, text_id) = (format!("slow-{place}-title"), format!("slow-{place}-text"));
    html! {
        figcaption {
            strong { (figure.workload) ": times slower than unloaded" }
            span.aside {
                (heading) ", " (title::load(&figure.load)) " · " (metric::label(&figure.metric))
                ", unloaded " (figure.text(chart.unloaded))
            }
        }
        svg viewBox={ "0 0 " (WIDTH) " " (at(bottom + AXIS)) } role="img"
            aria-labelledby={ (title_id) " " (text_id) } {
            title id=(title_id) { (figure.workload) ": times slower than unloaded" }
            desc id=(text_id) { (description(chart)) }
            @for tick in axis.ticks(40.0) {
                line.grid x1=(at(axis.place(tick))) x2=(at(axis.place(tick)))
                    y1="0" y2=(at(bottom)) {}
                text.tick x=(at(axis.place(tick))) y=(at(bottom + 17.0)) text-anchor="middle" {
                    "×" (number::tick(tick))
                }
            }
            @for (row, bar) in chart.bars.iter().enumerate() {
                (draw_bar(chart, bar, summary, (&axis, label), row as f64 * ROW))
            }
            line.base x1=(at(axis.place(1.0))) x2=(at(axis.place(1.0))) y1="0" y2=(at(bottom)) {}
        }
    }
}

fn draw_bar(
    chart: &Chart,
    bar: &Bar,
    summary: &Summary,
    (axis, label): (&LogAxis, f64),
    top: f64,
) -> Markup {
    let middle = top + ROW / 2.0;
    let baseline = at(middle + 4.5);
    let (from, to) = (axis.place(1.0), axis.place(bar.times));
    let ours = bar.policy == policy::FRONTROW;
    let whisker = bar
        .interval
        .map(|(low, high)| (axis.place(low.max(f64::MIN_POSITIVE)), axis.place(high)));
    let value_at = whisker.map_or(to, |(_, high)| high.max(to)).max(from) + 8.0;
    html! {
        g.ours[ours] {
            title {
                (bar.policy) ": " (chart.figure.text(bar.cell.mean()))
                ", " (number::times(bar.times)) " unloaded"
            }
            text.name x=(at(label - 10.0)) y=(baseline) text-anchor="end" {
                (shortened(bar.policy, MOST_LETTERS))
            }
            rect class=(series::class(bar.policy, summary))
                x=(at(from.min(to))) y=(at(middle - BAR / 2.0)) rx="2"
                width=(at((to - from).abs().max(2.0))) height=(at(BAR)) {}
            @if let Some((low, high)) = whisker {
                line.whisker x1=(at(low)) x2=(at(high)) y1=(at(middle)) y2=(at(middle)) {}
            }
            text.value x=(at(value_at)) y=(baseline) {
                (chart.figure.text(bar.cell.mean()))
                tspan.ratio dx="6" { (number::times(bar.times)) }
            }
        }
    }
}

fn description(chart: &Chart) -> String {
    let bars = chart.bars.iter().map(|bar| {
        let value = chart.figure.text(bar.cell.mean());
        format!("{} {value}, {}", bar.policy, number::times(bar.times))
    });
    bars.collect::<Vec<_>>().join("; ")
}
