//! Charts of an experiment without loads: a card of bars for each figure, or for each metric if
//! there is only one policy.

use super::{at, series};
use crate::summary::{Figure, Summary};
use crate::{metric, policy, title};
use maud::{Markup, html};

const WIDTH: f64 = 480.0;
const VALUE: f64 = 116.0;
const LABEL: f64 = 130.0;
const ROW: f64 = 27.0;
const BAR: f64 = 15.0;

struct Bar<'a> {
    name: &'a str,
    class: String,
    value: f64,
    text: String,
}

/// The section; None if anything ran under load.
pub fn section(summary: &Summary) -> Option<Markup> {
    let loaded = summary.figures.iter().any(Figure::is_loaded);
    if loaded || summary.figures.is_empty() {
        return None;
    }
    let cards = match summary.policies.len() {
        1 => by_metric(summary),
        _ => by_figure(summary),
    };
    Some(html! {
        section {
            h2 { "On an idle device" }
            p.lead { "Scales start at 0 and differ between charts." }
            div.cards {
                @for (place, (heading, aside, bars)) in cards.iter().enumerate() {
                    figure.card {
                        figcaption { strong { (heading) } span.aside { (aside) } }
                        (draw(heading, bars, place))
                    }
                }
            }
        }
    })
}

type Card<'a> = (String, &'static str, Vec<Bar<'a>>);

/// A card for each figure, with one bar for each policy.
fn by_figure(summary: &Summary) -> Vec<Card<'_>> {
    let chief = |figure: &&Figure| {
        let only = summary.figures_of(&figure.workload, &figure.load).count() == 1;
        only || metric::rank(&figure.metric) == 0
            || summary.chief(&figure.workload, &figure.load) == Some(figure)
    };
    let figures = summary.figures.iter().filter(chief);
    figures
        .map(|figure| {
            let bars = summary.policies.iter().filter_map(|name| {
                bar(
                    summary,
                    figure,
                    name,
                    name,
                    series::class(name, &summary.policies),
                )
            });
            let heading = format!("{} {}", figure.workload, metric::label(&figure.metric));
            let aside = title::workload(&figure.workload).unwrap_or_default();
            (heading, aside, bars.collect())
        })
        .collect()
}

/// A card for each metric, with one bar for each workload.
fn by_metric(summary: &Summary) -> Vec<Card<'_>> {
    let mut metrics: Vec<&str> = Vec::new();
    for figure in &summary.figures {
        if !metrics.contains(&figure.metric.as_str()) {
            metrics.push(&figure.metric);
        }
    }
    metrics
        .into_iter()
        .map(|metric| {
            let figures = summary
                .figures
                .iter()
                .filter(|figure| figure.metric == metric);
            let bars = figures.filter_map(|figure| {
                let class = "series-frontrow".to_owned();
                bar(
                    summary,
                    figure,
                    &summary.policies[0],
                    &figure.workload,
                    class,
                )
            });
            (metric::label(metric), "", bars.collect())
        })
        .collect()
}

fn bar<'a>(
    summary: &Summary,
    figure: &Figure,
    policy: &str,
    name: &'a str,
    class: String,
) -> Option<Bar<'a>> {
    let value = summary.cell(figure, policy)?.mean();
    Some(Bar {
        name,
        class,
        value,
        text: figure.text(value),
    })
}

fn draw(heading: &str, bars: &[Bar], place: usize) -> Markup {
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let scale = (WIDTH - LABEL - VALUE) / if most > 0.0 { most } else { 1.0 };
    let bottom = ROW * bars.len() as f64;
    let (title_id, text_id) = (format!("idle-{place}-title"), format!("idle-{place}-text"));
    let texts = bars.iter().map(|bar| format!("{} {}", bar.name, bar.text));
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (at(bottom + 4.0)) } role="img"
            aria-labelledby={ (title_id) " " (text_id) } {
            title id=(title_id) { (heading) }
            desc id=(text_id) { (texts.collect::<Vec<_>>().join("; ")) }
            @for (row, bar) in bars.iter().enumerate() {
                (draw_bar(bar, bar.value.max(0.0) * scale, row as f64 * ROW + ROW / 2.0))
            }
            line.base x1=(at(LABEL)) x2=(at(LABEL)) y1="0" y2=(at(bottom)) {}
        }
    }
}

fn draw_bar(bar: &Bar, length: f64, middle: f64) -> Markup {
    html! {
        g.ours[bar.name == policy::FRONTROW] {
            text.name x=(at(LABEL - 10.0)) y=(at(middle + 4.5)) text-anchor="end" { (bar.name) }
            rect class=(bar.class) x=(at(LABEL)) y=(at(middle - BAR / 2.0)) rx="2"
                width=(at(length)) height=(at(BAR)) {}
            text.value x=(at(LABEL + length + 8.0)) y=(at(middle + 4.5)) { (bar.text) }
        }
    }
}
