//! Charts of an experiment without loads: a card of bars for each figure, or for each metric if
//! there is only one policy.

use super::chart::{self, Bar, Card};
use super::series;
use crate::summary::{Figure, Summary};
use crate::{metric, title};
use maud::{Markup, html};

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
            (chart::cards(&cards, "idle"))
        }
    })
}

/// A card for each figure, with one bar for each policy.
fn by_figure(summary: &Summary) -> Vec<Card> {
    let headline = |figure: &&Figure| {
        let only = summary.figures_of(&figure.workload, &figure.load).count() == 1;
        only || metric::rank(&figure.metric) == 0
            || summary.headline(&figure.workload, &figure.load) == Some(figure)
    };
    let figures = summary.figures.iter().filter(headline);
    figures
        .map(|figure| {
            let bars = summary.policies.iter().filter_map(|name| {
                let class = series::class(name, summary);
                bar(summary, figure, name, name, class)
            });
            Card {
                heading: format!("{}: {}", figure.workload, metric::label(&figure.metric)),
                aside: title::workload(&figure.workload)
                    .unwrap_or_default()
                    .to_owned(),
                bars: bars.collect(),
            }
        })
        .collect()
}

/// A card for each metric, with one bar for each workload.
fn by_metric(summary: &Summary) -> Vec<Card> {
    let mut metrics: Vec<&str> = Vec::new();
    for figure in &summary.figures {
        if !metrics.contains(&figure.metric.as_str()) {
            metrics.push(&figure.metric);
        }
    }
    metrics
        .into_iter()
        .map(|metric| {
            let figures = summary.figures.iter();
            let figures = figures.filter(|figure| figure.metric == metric);
            let bars = figures.filter_map(|figure| {
                let class = "series-frontrow".to_owned();
                let policy = &summary.policies[0];
                bar(summary, figure, policy, &figure.workload, class)
            });
            Card {
                heading: metric::label(metric),
                aside: String::new(),
                bars: bars.collect(),
            }
        })
        .collect()
}

fn bar(summary: &Summary, figure: &Figure, policy: &str, name: &str, class: String) -> Option<Bar> {
    let value = summary.cell(figure, policy)?.mean();
    Some(Bar {
        name: name.to_owned(),
        class,
        value,
        text: figure.text(value),
    })
}
