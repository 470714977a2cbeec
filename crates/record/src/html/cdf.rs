//! Latency distributions of the key operations, with one line for each policy. The vertical axis is
//! stretched so that rare slow operations are visible.

use super::axis::LogAxis;
use super::chart::WIDTH;
use super::{at, series};
use crate::summary::{Figure, Summary};
use crate::{Histogram, metric, number, title};
use maud::{Markup, html};

const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const HEIGHT: f64 = 230.0;
const LABEL_ROW: f64 = 17.0;
const AXIS: f64 = 28.0;
/// Width of one letter of a label.
const LETTER: f64 = 7.1;

/// Shares with a tick on the vertical axis, and their labels.
const SHARES: [(f64, &str); 5] = [
    (0.0, "0"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
];

struct Line {
    name: String,
    class: String,
    points: Vec<(u64, f64)>,
}

impl Line {
    fn worst_ns(&self) -> f64 {
        self.points
            .last()
            .map_or(0.0, |(latency_ns, _)| *latency_ns as f64)
    }
}

/// The section; None if no rows have distributions.
pub fn section(summary: &Summary) -> Option<Markup> {
    let figures: Vec<(&Figure, Vec<Line>)> = summary
        .figures
        .iter()
        .filter(|figure| {
            figure.is_loaded() && metric::is_headline(&figure.workload, &figure.metric)
        })
        .map(|figure| (figure, lines(summary, figure)))
        .filter(|(_, lines)| lines.iter().any(|line| line.name != "unloaded"))
        .collect();
    if figures.is_empty() {
        return None;
    }
    let head_rows = figures
        .iter()
        .map(|(_, lines)| labels(lines).rows)
        .max()
        .unwrap_or(0);
    Some(html! {
        section {
            h2 { "How long each operation takes" }
            p.lead {
                "The share of operations that took at most so long; further left is faster. "
                "Time is logarithmic, and the share is stretched towards the top, where the rare "
                "slow operations are: each line ends at the slowest one, named there. All seeds "
                "together. The dashed line is the unloaded device."
            }
            div.cards {
                @for (place, (figure, lines)) in figures.iter().enumerate() {
                    figure.card { (draw(figure, lines, head_rows, place)) }
                }
            }
        }
    })
}

fn lines(summary: &Summary, figure: &Figure) -> Vec<Line> {
    let unloaded = summary.unloaded(figure).and_then(|unloaded| {
        let histogram = unloaded.cell.histogram.as_ref()?;
        Some(line("unloaded", "series-unloaded".to_owned(), histogram))
    });
    let policies = summary
        .policies
        .iter()
        .filter(|name| !summary.is_ablation(name))
        .filter_map(|name| {
            let histogram = summary.cell(figure, name)?.histogram.as_ref()?;
            Some(line(name, series::class(name, summary), histogram))
        });
    unloaded
        .into_iter()
        .chain(policies)
        .filter(|line| !line.points.is_empty())
        .collect()
}

fn line(name: &str, class: String, histogram: &Histogram) -> Line {
    Line {
        name: name.to_owned(),
        class,
        points: histogram.cumulative(),
    }
}

/// The vertical scale: the position of a share is its number of nines.
struct Nines {
    top: f64,
    bottom: f64,
    most: f64,
}

impl Nines {
    fn place(&self, share: f64) -> f64 {
        let nines = match share {
            share if share >= 1.0 => self.most,
            share => (-(1.0 - share).log10()).min(self.most),
        };
        self.bottom - nines / self.most * (self.bottom - self.top)
    }
}

fn draw(figure: &Figure, lines: &[Line], head_rows: usize, place: usize) -> Markup {
    let labels = labels(lines);
    let head = LABEL_ROW * head_rows as f64 + 10.0;
    let skipped = head_rows - labels.rows;
    let bottom = head + HEIGHT;
    let axis = time_axis(lines);
    let nines = Nines {
        top: head,
        bottom,
        most: steps(lines).log10() + 0.35,
    };
    let operation = metric::operation(&figure.metric).unwrap_or(&figure.metric);
    let (title_id, text_id) = (format!("cdf-{place}-title"), format!("cdf-{place}-text"));
    html! {
        figcaption {
            strong { (figure.workload) " " (operation) ": share of operations by latency" }
            span.aside { (title::load(&figure.load)) }
        }
        svg viewBox={ "0 0 " (WIDTH) " " (at(bottom + AXIS)) } role="img"
            aria-labelledby={ (title_id) " " (text_id) } {
            title id=(title_id) {
                (figure.workload) " " (operation) ": share of operations by latency"
            }
            desc id=(text_id) { (description(lines)) }
            @for tick in axis.ticks(52.0) {
                line.grid x1=(at(axis.place(tick))) x2=(at(axis.place(tick)))
                    y1=(at(head)) y2=(at(bottom)) {}
                text.tick x=(at(axis.place(tick))) y=(at(bottom + 18.0)) text-anchor="middle" {
                    (number::tick_ns(tick))
                }
            }
            @for (share, name) in SHARES {
                @if nines.place(share) > head + 14.0 {
                    line.grid x1=(at(LEFT)) x2=(at(WIDTH - RIGHT))
                        y1=(at(nines.place(share))) y2=(at(nines.place(share))) {}
                    text.tick x=(at(LEFT - 8.0)) y=(at(nines.place(share) + 4.0))
                        text-anchor="end" { (name) }
                }
            }
            text.tick x=(at(LEFT - 8.0)) y=(at(head + 4.0)) text-anchor="end" { "worst" }
            @for label in &labels.placed {
                line.leader x1=(at(label.point)) x2=(at(label.point))
                    y1=(at((label.row + skipped) as f64 * LABEL_ROW + 14.0)) y2=(at(head)) {}
            }
            @for line in lines {
                path class={ "curve " (line.class) } d=(path(line, &axis, &nines)) {
                    title { (said(line)) }
                }
                circle class={ "end " (line.class) } r="3"
                    cx=(at(axis.place(line.worst_ns()))) cy=(at(head)) { title { (said(line)) } }
            }
            @for label in &labels.placed {
                text class={ "label " (lines[label.line].class) } x=(at(label.left))
                    y=(at((label.row + skipped) as f64 * LABEL_ROW + 11.0)) {
                    (label.text)
                }
            }
        }
    }
}

/// Largest number of operations of any line.
fn steps(lines: &[Line]) -> f64 {
    let finest = lines.iter().filter_map(|line| {
        let below_all = line.points.iter().rev().nth(1)?;
        Some(1.0 / (1.0 - below_all.1))
    });
    finest.fold(10.0, f64::max)
}

fn time_axis(lines: &[Line]) -> LogAxis {
    let least = lines.iter().filter_map(|line| line.points.first());
    let least = least.map(|(latency_ns, _)| *latency_ns as f64);
    let low = least.fold(f64::INFINITY, f64::min).max(1.0);
    let high = lines.iter().map(Line::worst_ns).fold(low, f64::max);
    LogAxis::new((low * 0.9, high * 1.1), LEFT, WIDTH - LEFT - RIGHT)
}

/// The line as steps, without those that are too small to be visible.
fn path(line: &Line, axis: &LogAxis, nines: &Nines) -> String {
    let mut path = String::new();
    let mut last = (f64::NEG_INFINITY, nines.place(0.0));
    for (step, (latency_ns, share)) in line.points.iter().enumerate() {
        let (x, y) = (axis.place(*latency_ns as f64), nines.place(*share));
        let end = step + 1 == line.points.len();
        if step == 0 {
            path = format!("M{} {}V{}", at(x), at(nines.place(0.0)), at(y));
            last = (x, y);
        } else if end || x - last.0 >= 0.7 || last.1 - y >= 0.7 {
            path.push_str(&format!("H{}V{}", at(x), at(y)));
            last = (x, y);
        }
    }
    path
}

struct Labels {
    rows: usize,
    placed: Vec<Label>,
}

struct Label {
    line: usize,
    text: String,
    left: f64,
    point: f64,
    row: usize,
}

/// Puts each line's name and worst latency above its end. Labels take as many rows as keep them
/// apart, the lowest row first.
fn labels(lines: &[Line]) -> Labels {
    let axis = time_axis(lines);
    let mut placed: Vec<Label> = Vec::new();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|a, b| lines[*a].worst_ns().total_cmp(&lines[*b].worst_ns()));
    let mut ends: Vec<f64> = Vec::new();
    for line in order {
        let worst_ns = lines[line].worst_ns();
        let text = format!("{} {}", lines[line].name, number::with_unit(worst_ns, "ns"));
        let width = text.chars().count() as f64 * LETTER;
        let point = axis.place(worst_ns);
        let left = (point - width / 2.0).clamp(2.0, WIDTH - 2.0 - width);
        let free = ends.iter().position(|end| *end + 10.0 <= left);
        let row = free.unwrap_or(ends.len());
        match free {
            Some(row) => ends[row] = left + width,
            None => ends.push(left + width),
        }
        placed.push(Label {
            line,
            text,
            left,
            point,
            row,
        });
    }
    let rows = ends.len();
    for label in &mut placed {
        label.row = rows - 1 - label.row;
    }
    Labels { rows, placed }
}

fn description(lines: &[Line]) -> String {
    lines.iter().map(said).collect::<Vec<_>>().join("; ")
}

fn said(line: &Line) -> String {
    let at_share = |share: f64| {
        let point = line.points.iter().find(|(_, reached)| *reached >= share);
        let latency_ns = point.map_or(0.0, |(latency_ns, _)| *latency_ns as f64);
        number::with_unit(latency_ns, "ns")
    };
    format!(
        "{}: half within {}, 99 % within {}, worst {}",
        line.name,
        at_share(0.5),
        at_share(0.99),
        at_share(1.0)
    )
}
