//! What the background pays: its rate beside each workload, by policy.

use super::chart::{self, Bar, Card};
use super::series;
use crate::summary::{Figure, Summary};
use crate::title;
use maud::{Markup, html};

const RATE: &str = "background_mb_s";

/// More charts than this are a table of means over the workloads instead.
const MOST_CHARTS: usize = 6;

/// The section; None if the background's rate was not measured.
pub fn section(summary: &Summary) -> Option<Markup> {
    let figures: Vec<&Figure> = summary
        .figures
        .iter()
        .filter(|figure| figure.metric == RATE && figure.is_loaded())
        .collect();
    if figures.is_empty() {
        return None;
    }
    Some(html! {
        section {
            h2 { "What the background pays" }
            p.lead {
                "What the load itself got done meanwhile, in MB/s; more is better for whoever "
                "waits for it."
            }
            @if figures.len() <= MOST_CHARTS {
                (chart::cards(&cards(summary, &figures), "pays"))
            } @else {
                (table(summary, &figures))
            }
        }
    })
}

fn cards(summary: &Summary, figures: &[&Figure]) -> Vec<Card> {
    let card = |figure: &&Figure| {
        let bars = whole(summary).filter_map(|name| {
            let value = summary.cell(figure, name)?.mean();
            Some(Bar {
                name: name.clone(),
                class: series::class(name, summary),
                value,
                text: figure.text(value),
            })
        });
        Card {
            heading: format!("Rate of the {} beside {}", figure.load, figure.workload),
            aside: title::load(&figure.load),
            bars: bars.collect(),
        }
    };
    figures.iter().map(card).collect()
}

/// Policies that are not ablations.
fn whole(summary: &Summary) -> impl Iterator<Item = &String> {
    let policies = summary.policies.iter();
    policies.filter(|name| !summary.is_ablation(name))
}

fn table(summary: &Summary, figures: &[&Figure]) -> Markup {
    let mut loads: Vec<&str> = Vec::new();
    for figure in figures {
        if !loads.contains(&figure.load.as_str()) {
            loads.push(&figure.load);
        }
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="What the background pays" {
            table {
                thead {
                    tr {
                        th scope="col" { "background, mean over the workloads" }
                        @for name in whole(summary) { th scope="col" { (name) } }
                    }
                }
                tbody {
                    @for load in loads {
                        tr {
                            th scope="row" title=(title::load(load)) { (load) }
                            @for name in whole(summary) { td { (mean(summary, figures, load, name)) } }
                        }
                    }
                }
            }
        }
    }
}

fn mean(summary: &Summary, figures: &[&Figure], load: &str, policy: &str) -> String {
    let under = figures.iter().filter(|figure| figure.load == load);
    let rates: Vec<f64> = under
        .filter_map(|figure| Some(summary.cell(figure, policy)?.mean()))
        .collect();
    match rates.is_empty() {
        true => "–".to_owned(),
        false => figures[0].text(rates.iter().sum::<f64>() / rates.len() as f64),
    }
}
