//! The bars of the experiment and their results.

use crate::bars::{self, Judged, Outcome};
use maud::{Markup, html};

/// The section; None if the experiment has no bars.
pub fn section(judged: &[Judged]) -> Option<Markup> {
    if judged.is_empty() {
        return None;
    }
    Some(html! {
        section #bars {
            h2 { "What was asked, and what was reached" }
            p.lead { (bars::count(judged)) ". Ratios to the best stock scheduler are paired by seed." }
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
