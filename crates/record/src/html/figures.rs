//! The table of all figures.

use crate::pivot::{self, Column, Entry, Line, Section};
use crate::summary::Summary;
use crate::{caption, policy, title};
use maud::{Markup, html};

/// The sections of the table, each with an explanation of its ratios; None if there are none.
pub fn section(summary: &Summary) -> Option<Markup> {
    let sections = pivot::sections(summary, false);
    if sections.is_empty() {
        return None;
    }
    Some(html! {
        section {
            h2 { "All figures" }
            @for section in &sections {
                p.lead {
                    (caption::explanation(section, summary)) "."
                    @if summary.policies.len() > 1 {
                        " The best" @if summary.has_stock() { " stock" } " figure is underlined."
                    }
                    @if summary.seeds.len() > 1 {
                        " Hover over a figure for its 95 % interval and range over the seeds."
                    }
                }
                div.scroll tabindex="0" role="region" aria-label=(caption::explanation(section, summary)) { (draw(section)) }
            }
        }
    })
}

fn draw(section: &Section) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "figure" }
                    @for column in &section.columns {
                        th scope="col" class=[class(column)] { (column.name()) }
                    }
                }
            }
            @for group in &section.groups {
                tbody {
                    tr.group {
                        th scope="rowgroup" colspan=(section.columns.len() + 1) {
                            span { (title::situation(&group.workload, &group.load)) }
                        }
                    }
                    @for line in &group.lines { (draw_line(line, &section.columns)) }
                }
            }
        }
    }
}

fn draw_line(line: &Line, columns: &[Column]) -> Markup {
    html! {
        tr {
            th scope="row" { (line.label) }
            @for (entry, column) in line.entries.iter().zip(columns) {
                td class=[class(column)] title=[entry.as_ref().map(hover)] {
                    @match entry {
                        Some(entry) => {
                            span.best[entry.best_stock] { (entry.value) }
                            @if let Some(ratio) = &entry.ratio { " " small { (ratio) } }
                        }
                        None => { span.missing title="not measured" { "–" } }
                    }
                }
            }
        }
    }
}

fn class(column: &Column) -> Option<&'static str> {
    match column {
        Column::Policy(name) if name == policy::FRONTROW => Some("ours"),
        Column::Policy(_) => None,
        Column::Unloaded => Some("unloaded"),
    }
}

fn hover(entry: &Entry) -> String {
    match &entry.interval {
        Some(interval) => format!(
            "{}: 95 % interval {interval}; over the seeds {}",
            entry.policy, entry.range
        ),
        None => format!("{}: one seed, no interval", entry.policy),
    }
}
