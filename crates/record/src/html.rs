//! A result as one self-contained HTML page: it fetches nothing and runs no script.

mod ablation;
mod axis;
mod cdf;
mod figures;
mod flow;
mod idle;
mod matrix;
mod series;
mod slowdown;
mod verdicts;

use crate::headline::Headline;
use crate::summary::Summary;
use crate::{ResultFile, bars, caption, command, number};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("html/style.css");

/// Renders the whole page.
pub fn render(result: &ResultFile) -> String {
    let summary = Summary::of(result);
    let judged = bars::judge(&summary);
    let headline = Headline::of(&summary);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "frontrow: " (result.experiment) " on " (result.device) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (header(result, &summary, headline.as_ref(), &judged))
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
                    (verdicts::section(&judged).unwrap_or_default())
                    (ablation::section(&summary).unwrap_or_default())
                    (figures::section(&summary).unwrap_or_default())
                    (inputs(result))
                }
            }
        }
    };
    page.into_string()
}

fn header(
    result: &ResultFile,
    summary: &Summary,
    headline: Option<&Headline>,
    judged: &[bars::Judged],
) -> Markup {
    html! {
        header {
            p.over {
                "frontrow · experiment " (result.experiment) " · device " (result.device)
                " · kernel " (result.kernel) " · " (result.scale) " scale"
            }
            @match headline {
                Some(headline) => { (sentence(headline)) (tiles(headline)) }
                None => h1 { (result.experiment) " on " (result.device) },
            }
            p.under {
                @if !judged.is_empty() {
                    a.pill href="#bars" { (bars::count(judged)) }
                }
                (caption::certainty(summary)) "."
            }
        }
    }
}

fn sentence(headline: &Headline) -> Markup {
    html! {
        h1 {
            (headline.situation()) ", " (headline.doing) " takes "
            em.stock { (milliseconds(headline.default_ms)) } " under " (headline.stock_default)
            " and " em.ours { (milliseconds(headline.frontrow_ms)) } " under frontrow."
        }
    }
}

/// The three times of the headline, as bars on one linear scale.
fn tiles(headline: &Headline) -> Markup {
    let tiles = [
        ("unloaded", "unloaded", headline.unloaded_ms),
        (
            headline.stock_default.as_str(),
            "stock",
            headline.default_ms,
        ),
        ("frontrow", "ours", headline.frontrow_ms),
    ];
    let most = tiles
        .iter()
        .map(|(.., value_ms)| *value_ms)
        .fold(0.0, f64::max);
    html! {
        div.tiles {
            @for (name, class, value_ms) in tiles {
                div class={ "tile " (class) } {
                    span.name {
                        (name)
                        @if class == "stock" { small { " stock default" } }
                        @if class == "unloaded" { small { " idle, best stock" } }
                    }
                    span.figure { (milliseconds(value_ms)) }
                    span.meter aria-hidden="true" {
                        span style={ "width:" (at((value_ms / most * 100.0).max(0.6))) "%" } {}
                    }
                    @if class == "unloaded" {
                        small { "mean of one operation" }
                    } @else {
                        small { (number::times(value_ms / headline.unloaded_ms)) " unloaded" }
                    }
                }
            }
        }
    }
}

fn inputs(result: &ResultFile) -> Markup {
    html! {
        section {
            @match command::reproduce(result) {
                Some(command) => {
                    h2 { "To get these figures again" }
                    p.lead { "The same inputs give the same bytes on any machine." }
                    pre { code { (command) } }
                }
                None => h2 { "Where this was measured" },
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

fn milliseconds(value_ms: f64) -> String {
    number::with_unit(value_ms, "ms")
}

/// A coordinate to a tenth of a unit: more digits are invisible and only take bytes.
fn at(place: f64) -> String {
    let text = format!("{place:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
