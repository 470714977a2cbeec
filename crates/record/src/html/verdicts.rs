//! What was asked of `frontrow`, and what of it was reached.

use crate::bars::{Judged, Outcome};
use maud::{Markup, html};

/// The section, if the experiment has bars.
pub fn section(judged: &[Judged]) -> Option<Markup> {
    if judged.is_empty() {
        return None;
    }
    Some(html! {
        section #bars {
            h2 { "What was asked, and what was reached" }
            p.lead { (count(judged)) ". Ratios to the best stock scheduler are paired by seed." }
            ul.bars {
                @for bar in judged {
                    li class=(class(bar.outcome())) {
                        span.outcome { (word(bar.outcome())) }
                        div {
                            strong { (bar.bar.title) } " " span.demand { (bar.bar.demand) }
                            div.chips {
                                @for verdict in &bar.verdicts {
                                    span class={ "chip " (class(verdict.outcome)) } {
                                        b { (verdict.label) } " " (verdict.measured)
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    })
}

/// `9 of 11 bars met`.
pub fn count(judged: &[Judged]) -> String {
    let of = |outcome| judged.iter().filter(|bar| bar.outcome() == outcome).count();
    let mut text = format!("{} of {} bars met", of(Outcome::Met), judged.len());
    match of(Outcome::NotMeasured) {
        0 => {}
        missing => text.push_str(&format!(", {missing} not measured")),
    }
    text
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "✓ met",
        Outcome::Missed => "✗ missed",
        Outcome::NotMeasured => "– not measured",
    }
}

fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "met",
        Outcome::Missed => "missed",
        Outcome::NotMeasured => "unknown",
    }
}
