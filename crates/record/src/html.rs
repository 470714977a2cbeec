//! A result as one self-contained HTML page: it fetches nothing and runs no script.

mod ablation;
mod axis;
mod background;
mod cdf;
mod chart;
mod figures;
mod flow;
mod idle;
mod lead;
mod matrix;
mod next;
mod series;
mod slowdown;
mod verdicts;

pub use chart::shortened;
pub use next::next;

use crate::summary::Summary;
use crate::{ResultFile, bars, caption, command, number};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style of all pages, which fits a phone, a dark screen and paper.
pub const STYLE: &str = include_str!("html/style.css");

/// A whole page with these styles: `main` in a document that is dark or light as its reader's screen.
pub fn page(title: &str, styles: &[&str], main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { @for style in styles { (PreEscaped(style)) } }
            }
            body { main { (main) } }
        }
    };
    page.into_string()
}

/// Renders the whole page.
pub fn render(result: &ResultFile) -> String {
    let summary = Summary::of(result);
    let judged = bars::judge(&summary);
    let main = html! {
        (header(result, &summary, &judged))
        // A matrix is shown instead of a card for each of its hundred cells.
        @match matrix::section(&summary) {
            Some(matrix) => (matrix),
            None => {
                (slowdown::section(&summary).unwrap_or_default())
                (idle::section(&summary).unwrap_or_default())
                (flow::section(result).unwrap_or_default())
                (cdf::section(&summary).unwrap_or_default())
            }
        }
        (background::section(&summary).unwrap_or_default())
        (verdicts::section(&judged).unwrap_or_default())
        (ablation::section(&summary).unwrap_or_default())
        (figures::section(&summary).unwrap_or_default())
        (inputs(result))
        (next::section(result))
    };
    let title = format!("frontrow: {} on {}", result.experiment, result.device);
    page(&title, &[STYLE], &main)
}

fn header(result: &ResultFile, summary: &Summary, judged: &[bars::Judged]) -> Markup {
    html! {
        header {
            p.over {
                "frontrow · experiment " (result.experiment) " · device " (result.device)
                " · kernel " (result.kernel) " · " (result.scale) " scale"
            }
            (lead::section(result, summary))
            p.under {
                @if !judged.is_empty() {
                    a.pill href="#bars" { (bars::count(judged)) }
                }
                (caption::certainty(summary)) "."
            }
        }
    }
}

fn inputs(result: &ResultFile) -> Markup {
    html! {
        section {
            @match command::reproduce(result) {
                Some(again) => {
                    h2 { "To get these figures again" }
                    p.lead { "The same inputs give the same bytes on any machine." }
                    (command_line(&again, "the command"))
                }
                None => {
                    h2 { "To measure this again" }
                    p.lead { "On your own disk no two runs are the same; five seeds show the spread." }
                    (command_line(&command::measure_again(result), "the command"))
                }
            }
            dl {
                dt { "release" } dd { (result.kernel) }
                dt { "device" } dd { (result.device) }
                @for (name, value) in &result.inputs.items {
                    dt { (name) } dd { (value) }
                }
            }
        }
    }
}

/// A command to copy; `label` is what a screen reader calls it.
pub fn command_line(command: &str, label: &str) -> Markup {
    html! { pre tabindex="0" role="region" aria-label=(label) { code { (command) } } }
}

fn milliseconds(value_ms: f64) -> String {
    number::with_unit(value_ms, "ms")
}

/// A coordinate to a tenth of a unit: more digits are invisible and only take bytes.
pub fn at(place: f64) -> String {
    let text = format!("{place:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
