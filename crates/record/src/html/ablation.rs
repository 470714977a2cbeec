//! Effect of each promotion alone: the workload's time and the waits by dependency, both relative
//! to NONE (paper figures 8 and 9), and the counters.

use super::at;
use super::chart::{BAR, ROW, WIDTH};
use crate::ablation::{self, Ablation, Counts, Variant};
use crate::summary::{IDLE, Summary};
use crate::{metric, number, title};
use maud::{Markup, html};

const LABEL: f64 = 118.0;
const VALUE: f64 = 128.0;

/// One stack of a chart.
struct Stack<'a> {
    variant: &'a Variant,
    /// Name of the colour and length of each part.
    parts: Vec<(&'static str, f64)>,
    text: String,
}

impl Stack<'_> {
    fn length(&self) -> f64 {
        self.parts.iter().map(|(_, length)| length).sum()
    }
}

/// The section; None if no counters of the scheduler were recorded under load.
pub fn section(summary: &Summary) -> Option<Markup> {
    let ablations: Vec<Ablation> = ablation::ablations(summary)
        .into_iter()
        .filter(|ablation| ablation.load != IDLE)
        .collect();
    if ablations.is_empty() {
        return None;
    }
    Some(html! {
        section {
            h2 { "What each promotion does" }
            p.lead {
                "NONE promotes nothing, ALL is frontrow. A wait counts as found when its request "
                "was promoted, either in the queue or as it came. Scales start at 0."
            }
            @for (place, ablation) in ablations.iter().enumerate() {
                @if ablation.variants.len() > 1 {
                    div.cards {
                        figure.card { (totals(ablation, place)) }
                        figure.card { (waits(ablation, place)) }
                    }
                }
            }
            details {
                summary { "Waits, share found and time waited, for each workload" }
                div.scroll tabindex="0" role="region" aria-label="Waits by workload" { (counters(&ablations)) }
            }
        }
    })
}

fn totals(ablation: &Ablation, place: usize) -> Markup {
    let none_ms = ablation.none().and_then(|variant| variant.total_ms);
    let rows = ablation
        .variants
        .iter()
        .map(|variant| match variant.total_ms {
            Some(total_ms) => Stack {
                variant,
                parts: vec![("ablation", total_ms)],
                text: milliseconds(total_ms) + &change(variant, total_ms, none_ms),
            },
            None => Stack {
                variant,
                parts: Vec::new(),
                text: "not measured".to_owned(),
            },
        });
    html! {
        figcaption {
            strong { (ablation.workload) ": total time by what is promoted" }
            span.aside { (title::load(&ablation.load)) }
        }
        (stacks(&rows.collect::<Vec<_>>(), &format!("total-{place}"), "total time"))
    }
}

/// Change of the total against NONE, as in the paper's figure 8.
fn change(variant: &Variant, total_ms: f64, none_ms: Option<f64>) -> String {
    match none_ms {
        Some(none_ms) if variant.name != "NONE" && none_ms > 0.0 => {
            format!(" {}", number::change(total_ms / none_ms - 1.0))
        }
        _ => String::new(),
    }
}

fn waits(ablation: &Ablation, place: usize) -> Markup {
    let rows = ablation.variants.iter().map(|variant| {
        let named = ablation.dependencies.iter().zip(&variant.counts);
        let parts = named.filter_map(|(name, counts)| Some((*name, (*counts)?.wait_ms?)));
        let mut stack = Stack {
            variant,
            parts: parts.collect(),
            text: String::new(),
        };
        stack.text = milliseconds(stack.length());
        stack
    });
    html! {
        figcaption {
            strong { (ablation.workload) ": time waited by what is promoted, all tasks together" }
            span.aside {
                @for name in &ablation.dependencies {
                    span class={ "key dependency-" (name) } {} (name) " "
                }
            }
        }
        (stacks(&rows.collect::<Vec<_>>(), &format!("waits-{place}"), "time waited"))
    }
}

/// Horizontal stacks on one linear scale from 0.
fn stacks(rows: &[Stack], id: &str, name: &str) -> Markup {
    let most = rows.iter().map(Stack::length).fold(0.0, f64::max);
    let scale = (WIDTH - LABEL - VALUE) / if most > 0.0 { most } else { 1.0 };
    let bottom = ROW * rows.len() as f64;
    let texts = rows
        .iter()
        .map(|row| format!("{} {}", row.variant.name, row.text));
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (at(bottom + 4.0)) } role="img"
            aria-labelledby={ (id) "-title " (id) "-text" } {
            title id={ (id) "-title" } { (name) " by what is promoted" }
            desc id={ (id) "-text" } { (texts.collect::<Vec<_>>().join("; ")) }
            @for (place, row) in rows.iter().enumerate() {
                (draw_stack(row, scale, place as f64 * ROW))
            }
            line.base x1=(at(LABEL)) x2=(at(LABEL)) y1="0" y2=(at(bottom)) {}
        }
    }
}

fn draw_stack(row: &Stack, scale: f64, top: f64) -> Markup {
    let middle = top + ROW / 2.0;
    let starts = row.parts.iter().scan(LABEL, |next, (_, length)| {
        let start = *next;
        *next += length * scale;
        Some(start)
    });
    let end = LABEL + row.length() * scale;
    html! {
        g.ours[row.variant.name == "ALL"] {
            text.name x=(at(LABEL - 10.0)) y=(at(middle + 4.5)) text-anchor="end" {
                (row.variant.name)
            }
            @for (start, (name, length)) in starts.zip(&row.parts) {
                rect class={ "dependency-" (name) } x=(at(start)) y=(at(middle - BAR / 2.0))
                    width=(at(length * scale)) height=(at(BAR)) {
                    title { (name) " " (milliseconds(*length)) }
                }
            }
            text.value x=(at(end + 8.0)) y=(at(middle + 4.5)) { (row.text) }
        }
    }
}

/// Table of waits, share found and time waited, with one group of columns per dependency.
fn counters(ablations: &[Ablation]) -> Markup {
    let waited_on = |name: &&str| ablations.iter().any(|one| one.dependencies.contains(name));
    let dependencies: Vec<&str> = metric::DEPENDENCIES.into_iter().filter(waited_on).collect();
    html! {
        table.counters {
            thead {
                tr {
                    th rowspan="2" scope="col" { "promoted" }
                    @for name in &dependencies {
                        th.first colspan="3" scope="colgroup" { (name) }
                    }
                }
                tr {
                    @for _ in &dependencies {
                        th.first scope="col" { "waits" }
                        th scope="col" { "found" }
                        th scope="col" { "waited" }
                    }
                }
            }
            @for ablation in ablations {
                tbody {
                    tr.group {
                        th scope="rowgroup" colspan=(dependencies.len() * 3 + 1) {
                            span { (title::situation(&ablation.workload, &ablation.load)) }
                        }
                    }
                    @for variant in &ablation.variants {
                        tr.ours[variant.name == "ALL"] {
                            th scope="row" { (variant.name) }
                            @for name in &dependencies { (cells(ablation.counts(variant, name))) }
                        }
                    }
                }
            }
        }
    }
}

fn cells(counts: Option<Counts>) -> Markup {
    let waits = counts.map(|counts| number::count(counts.waits));
    let found = counts
        .and_then(|counts| counts.found_share)
        .map(number::percent);
    let waited = counts.and_then(|counts| counts.wait_ms).map(milliseconds);
    html! {
        td.first { (or_dash(waits)) }
        td { (or_dash(found)) }
        td { (or_dash(waited)) }
    }
}

fn milliseconds(wait_ms: f64) -> String {
    number::with_unit(wait_ms, "ms")
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}
