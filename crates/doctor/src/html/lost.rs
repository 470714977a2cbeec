//! The lost time by verdict, as one bar of the whole for each.

use super::kind;
use crate::judge::Verdict;
use crate::page::time;
use maud::{Markup, html};
use record::html::at;
use record::number;

/// In the picture's own units: as many as a phone's screen has room for.
const WIDTH: f64 = 400.0;
const ROW: f64 = 46.0;
const BAR: f64 = 14.0;
const TITLE: &str = "Share of the lost time by cause";

/// The card; None if no time was lost.
pub fn card(verdicts: &[Verdict]) -> Option<Markup> {
    if verdicts.is_empty() {
        return None;
    }
    let bottom = ROW * verdicts.len() as f64;
    let said: Vec<String> = verdicts.iter().map(words).collect();
    Some(html! {
        figure.card {
            figcaption {
                strong { (TITLE) }
                span.aside { "All of the grey is all of the lost time." }
            }
            svg.lost viewBox={ "0 0 " (WIDTH) " " (at(bottom)) } role="img"
                aria-labelledby="lost-title lost-text" {
                title #lost-title { (TITLE) }
                desc #lost-text { (said.join("; ")) }
                @for (place, verdict) in verdicts.iter().enumerate() {
                    (row(verdict, ROW * place as f64))
                }
            }
        }
    })
}

fn words(verdict: &Verdict) -> String {
    let (share, lost) = (number::percent(verdict.share), time(verdict.lost_ns));
    format!("{}: {share} of the lost time, {lost}", verdict.name)
}

fn row(verdict: &Verdict, top: f64) -> Markup {
    let width = (verdict.share.clamp(0.0, 1.0) * WIDTH).max(2.0);
    html! {
        g class=(kind(verdict.kind)) {
            title { (words(verdict)) }
            text.name x="0" y=(at(top + 14.0)) { (verdict.name) }
            text x=(at(WIDTH)) y=(at(top + 14.0)) text-anchor="end" {
                (time(verdict.lost_ns)) " · " tspan.name { (number::percent(verdict.share)) }
            }
            rect.track x="0" y=(at(top + 21.0)) width=(at(WIDTH)) height=(at(BAR)) rx="3" {}
            rect.part x="0" y=(at(top + 21.0)) width=(at(width)) height=(at(BAR)) rx="3" {}
        }
    }
}
