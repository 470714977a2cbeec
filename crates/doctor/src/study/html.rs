//! The study as one page that fetches nothing and runs no script.

use super::{App, Study};
use iopro::report::STYLE;
use iopro::wait::Class;
use maud::{Markup, html};
use record::number;

/// Apps that the picture and the table have; the rest is in the other files.
const SHOWN: usize = 30;
/// In the picture's own units: as many as a phone's screen has room for.
const WIDTH: f64 = 400.0;
const LANE: f64 = 44.0;
/// Room above a bar for its app's name, and how many letters of it fit.
const NAME: f64 = 20.0;
const LETTERS: usize = 44;
const BAR: f64 = 14.0;
const TITLE: &str = "Share of response time that apps waited for storage";
/// Of a bar's hue by the class of its part, in the order of [`Class::ALL`]:
/// metadata, data, sync, discards, the journal's two, tag, wbt, dirty, reclaim, service, lock, frozen,
/// other.
const HUES: [usize; 14] = [2, 1, 1, 8, 2, 2, 6, 6, 3, 3, 4, 0, 0, 0];

fn time(ns: u64) -> String {
    number::with_unit(ns as f64, "ns")
}

/// The whole page.
pub fn page(study: &Study) -> String {
    let shown = &study.apps[..study.apps.len().min(SHOWN)];
    let main = html! {
        header {
            p.over {
                "frontrow doctor --study · level " (study.level.number()) " of 3, "
                (study.level.sees())
            }
            h1 { (study.summary()) }
            @if study.ended_early {
                p.lead {
                    "Ended early: " (time(study.watched_ns)) " of "
                    (time(study.asked_ns)) " were watched."
                }
            }
            p.lead {
                "An app's response time is what it ran and what it was blocked in the "
                "storage stack. Some task was held up by I/O "
                (number::percent(study.pressed_ns as f64 / study.watched_ns.max(1) as f64))
                " of the time."
            }
            @for lacks in &study.cannot_see { p.lead { "Cannot see: " (lacks) "." } }
        }
        @if !shown.is_empty() { (picture(shown)) (table(shown)) }
    };
    record::html::page(
        "frontrow doctor: how long apps wait for storage",
        &[record::html::STYLE, STYLE],
        &main,
    )
}

fn hue(class: Class) -> usize {
    HUES[class as usize]
}

fn picture(apps: &[App]) -> Markup {
    let bottom = LANE * apps.len() as f64;
    let at = |share: f64| WIDTH * share;
    let said = apps
        .iter()
        .map(|app| format!("{} {}", app.name, number::percent(app.share)));
    html! {
        section {
            h2 { (TITLE) }
            p.lead { "Who waited longest is first; a bar's parts are the classes, which appear when it is pointed at." }
            div.cards {
                figure.card {
                    svg viewBox={ "0 0 " (WIDTH) " " (bottom + 20.0) } role="img"
                        aria-labelledby="share-title share-text" {
                        title #share-title { (TITLE) }
                        desc #share-text { (said.collect::<Vec<_>>().join("; ")) }
                        @for tick in 0..=4u32 {
                            @let x = at(f64::from(tick) / 4.0);
                            line.grid x1=(x) x2=(x) y1="0" y2=(bottom) {}
                            @let anchor = match tick { 0 => "start", 4 => "end", _ => "middle" };
                            text.tick x=(x) y=(bottom + 14.0) text-anchor=(anchor) { (tick * 25) " %" }
                        }
                        @for (place, app) in apps.iter().enumerate() { (bar(app, LANE * place as f64, &at)) }
                    }
                }
            }
        }
    }
}

fn bar(app: &App, top: f64, at: &dyn Fn(f64) -> f64) -> Markup {
    let mut begin = 0.0;
    let parts: Vec<_> = app
        .classes
        .iter()
        .map(|it| {
            let from = begin;
            begin += it.share;
            (it, from)
        })
        .collect();
    html! {
        text x="0" y=(top + NAME - 5.0) {
            (app.name.chars().take(LETTERS).collect::<String>())
        }
        text x=(WIDTH) y=(top + NAME - 5.0) text-anchor="end" { (number::percent(app.share)) }
        @for (part, from) in parts {
            g class={ "hue-" (hue(part.class)) } {
                path d=(rectangle(at(from), at(from + part.share), top)) {
                    title { (part.class) ": " (time(part.waited_ns)) ", " (number::percent(part.share)) }
                }
            }
        }
    }
}

fn rectangle(left: f64, right: f64, top: f64) -> String {
    let (top, bottom) = (top + NAME, top + NAME + BAR);
    format!("M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}Z")
}

fn table(apps: &[App]) -> Markup {
    html! {
        section {
            h2 { "By app and class" }
            div.scroll tabindex="0" role="region" aria-label="By app and class" {
                table {
                    thead { tr {
                        @for heading in ["app", "class", "waits", "waited", "longest", "of its response"] {
                            th scope="col" { (heading) }
                        }
                    } }
                    tbody {
                        @for app in apps {
                            tr {
                                th scope="row" { b { (app.name) } }
                                td { "all" } td {} td { (time(app.waited_ns)) } td {}
                                td { (number::percent(app.share)) }
                            }
                            @for it in &app.classes {
                                tr {
                                    th scope="row" {}
                                    td { (it.class) } td { (it.waits) } td { (time(it.waited_ns)) }
                                    td { @if it.longest_ns > 0 { (time(it.longest_ns)) } }
                                    td { (number::percent(it.share)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
