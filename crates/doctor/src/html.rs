//! The diagnosis as one page that fetches nothing and runs no script.

mod flow;
mod lost;
mod over_time;

use crate::cause::{Cause, Kind};
use crate::judge::{Advice, Confidence, Diagnosis, Verdict};
use crate::observe::Level;
use crate::page::{headline, sure, time, watched_time};
use maud::{Markup, html};
use record::html::{at, command_line};
use record::number;

/// The picture of the time is as IOPro's.
const STYLES: [&str; 3] = [
    record::html::STYLE,
    iopro::report::STYLE,
    include_str!("html/style.css"),
];
const LEVELS: [Level; 3] = [Level::Linked, Level::Sampled, Level::Unprivileged];

/// The whole page; `again` is the command that makes it.
pub fn page(diagnosis: &Diagnosis, again: &str) -> String {
    let main = html! {
        header {
            p.over {
                "frontrow doctor · watched " (watched_time(diagnosis)) " at level "
                (diagnosis.level.number()) " of 3"
            }
            @for failing in &diagnosis.failing { p.failing { strong { (failing) "." } } }
            @match diagnosis.verdicts.first() {
                Some(first) => (answer(diagnosis, first)),
                None => (no_answer(diagnosis)),
            }
        }
        (pictures(diagnosis))
        (helps(diagnosis))
        (verdicts(diagnosis))
        (findings(diagnosis))
        (sight(diagnosis))
        section {
            h2 { "To watch again" }
            (command_line(again, "the command that makes this page"))
        }
        (record::html::next(&next(diagnosis)))
    };
    let title = format!("frontrow doctor: {}", headline(diagnosis));
    record::html::page(&title, &STYLES, &main)
}

fn answer(diagnosis: &Diagnosis, first: &Verdict) -> Markup {
    html! {
        h1 {
            @if first.who == "some task" { "Some task" } @else { (first.who) }
            " waited " em.stock { (time(first.who_ns)) } " " (first.cause.row().meaning)
            @if let Some(culprit) = &first.culprit { ", because of " (culprit) (first.relation) }
            "."
        }
        div.tiles.four { @for tile in tiles(diagnosis, first) { (tile.draw()) } }
        p.under {
            @if advised(diagnosis).next().is_some() { a.pill href="#helps" { "what helps" } }
            (headline(diagnosis))
        }
    }
}

/// Where nobody waited, how little each resource was short of is the answer.
fn no_answer(diagnosis: &Diagnosis) -> Markup {
    let tiles = shares(diagnosis).map(|(name, share)| Tile {
        name: format!("held up by {name}"),
        class: "",
        figure: number::percent(share),
        meter: Some(share),
        below: "of the time, some task".to_owned(),
    });
    html! {
        h1 { (headline(diagnosis)) }
        div.tiles { @for tile in &tiles { (tile.draw()) } }
    }
}

/// What some task was short of, and for which share of the time.
fn shares(diagnosis: &Diagnosis) -> [(&'static str, f64); 3] {
    let share = |ns: u64| ns as f64 / diagnosis.watched_ns.max(1) as f64;
    over_time::LANES.map(|(name, of, _)| (name, share(of(&diagnosis.pressure))))
}

struct Tile {
    name: String,
    class: &'static str,
    figure: String,
    /// Part of the whole, from 0 to 1.
    meter: Option<f64>,
    below: String,
}

impl Tile {
    fn draw(&self) -> Markup {
        html! {
            div class={ "tile " (self.class) } {
                span.name { (self.name) }
                span.figure { (self.figure) }
                @if let Some(part) = self.meter {
                    span.meter aria-hidden="true" {
                        span style={ "width:" (at(part.clamp(0.006, 1.0) * 100.0)) "%" } {}
                    }
                }
                small { (self.below) }
            }
        }
    }
}

fn tiles(diagnosis: &Diagnosis, first: &Verdict) -> [Tile; 4] {
    let all: u64 = diagnosis.verdicts.iter().map(|it| it.lost_ns).sum();
    let file = first.file.as_ref().map(|it| format!("most on {it}"));
    [
        Tile {
            name: format!("{} waited", first.who),
            class: "stock",
            figure: time(first.who_ns),
            meter: Some(first.who_ns as f64 / all.max(1) as f64),
            below: waits(first),
        },
        Tile {
            name: "for".to_owned(),
            class: "word",
            figure: first.name.to_owned(),
            meter: None,
            below: file.unwrap_or_default(),
        },
        Tile {
            name: "because of".to_owned(),
            class: "word",
            figure: first
                .culprit
                .clone()
                .unwrap_or(fault(first.cause).to_owned()),
            meter: None,
            below: first.evidence.first().cloned().unwrap_or_default(),
        },
        Tile {
            name: "how sure".to_owned(),
            class: "word",
            figure: sure(first.confidence).to_owned(),
            meter: Some(match first.confidence {
                Confidence::Sure => 1.0,
                Confidence::Likely => 2.0 / 3.0,
                Confidence::Guess => 1.0 / 3.0,
            }),
            below: why_sure(diagnosis.level, first).to_owned(),
        },
    ]
}

fn waits(verdict: &Verdict) -> String {
    let longest = match verdict.longest_ns {
        0 => String::new(),
        longest => format!(", the longest {}", time(longest)),
    };
    match (verdict.waits, verdict.samples) {
        (0, 0) => "as the kernel counts it, for the whole machine".to_owned(),
        (0, samples) => format!("{samples} samples of it blocked"),
        (waits, 0) => format!("{waits} waits{longest}"),
        (waits, samples) => format!("{waits} waits{longest}; {samples} samples of it blocked"),
    }
}

/// What caused the waits where no other process is named.
fn fault(cause: Cause) -> &'static str {
    match cause {
        Cause::OwnWrites | Cause::OwnCommits => "itself",
        Cause::SlowDevice | Cause::DeviceBusy | Cause::NoAnswer => "the device",
        Cause::Limit => "its group's limit",
        Cause::Idle => "nobody",
        Cause::Fragments => "its file's pieces",
        Cause::Remote => "server or FUSE",
        Cause::Evicted | Cause::Reclaim | Cause::Swap => "short memory",
        Cause::Cpu => "busy CPUs",
        _ => "not known",
    }
}

fn why_sure(level: Level, verdict: &Verdict) -> &'static str {
    match (verdict.confidence, level) {
        _ if verdict.waits + verdict.samples == 0 => {
            "from the kernel's counters, not from single waits"
        }
        (Confidence::Sure, _) => "each wait is linked to its cause",
        (Confidence::Likely, _) if verdict.waits == 0 => "ten samples or more",
        (Confidence::Likely, _) if verdict.culprit.is_none() => {
            "each wait is linked, but events were lost or the disk's counters say else"
        }
        (Confidence::Likely, _) => "the culprit is who wrote most meanwhile, or events were lost",
        (Confidence::Guess, Level::Linked | Level::Sampled) => "fewer than ten samples",
        (Confidence::Guess, _) => "samples, and not of others' places in the kernel",
    }
}

fn pictures(diagnosis: &Diagnosis) -> Markup {
    let cards = [
        flow::card(&diagnosis.verdicts),
        lost::card(&diagnosis.verdicts),
    ];
    let cards: Vec<Markup> = cards.into_iter().flatten().collect();
    let over_time = over_time::card(diagnosis);
    html! {
        @if !cards.is_empty() || over_time.is_some() {
            section {
                h2 { "Where the time went" }
                p.lead {
                    "Some task was held up "
                    @for (place, (name, share)) in shares(diagnosis).iter().enumerate() {
                        @if place > 0 { ", " }
                        "by " (name) " " (number::percent(*share))
                    }
                    " of the time."
                }
                @if !cards.is_empty() { div.cards { @for card in &cards { (card) } } }
                (over_time.unwrap_or_default())
            }
        }
    }
}

/// All advice, each with its occasion, the first that is to be tried first; none twice.
fn advised(diagnosis: &Diagnosis) -> impl Iterator<Item = (&str, &Advice)> {
    let of_verdicts = diagnosis.verdicts.iter();
    let of_verdicts = of_verdicts.filter_map(|it| Some((it.name, it.advice.as_ref()?)));
    let of_findings = diagnosis.findings.iter();
    let of_findings = of_findings.filter_map(|it| Some((&*it.sentence, it.advice.as_ref()?)));
    let mut known: Vec<(&str, &Advice)> = Vec::new();
    for (occasion, advice) in of_verdicts.chain(of_findings) {
        if known.iter().all(|(_, it)| it.command != advice.command) {
            known.push((occasion, advice));
        }
    }
    known.into_iter()
}

fn helps(diagnosis: &Diagnosis) -> Markup {
    html! {
        @if !diagnosis.verdicts.is_empty() || advised(diagnosis).next().is_some() {
            section #helps {
                h2 { "What helps" }
                @if advised(diagnosis).next().is_none() {
                    p.lead {
                        "No command: for none of these causes a measurement shows that one helps."
                    }
                }
                @for (occasion, advice) in advised(diagnosis) {
                    div.card.advice {
                        p.step { "Against " b { (occasion) } ":" }
                        (command_line(&advice.command, occasion))
                        dl {
                            dt { "changes" } dd { (advice.changes) }
                            dt { "undo" } dd { code { (advice.undo) } }
                            dt { "brings" } dd { (advice.brings) }
                        }
                    }
                }
            }
        }
    }
}

fn verdicts(diagnosis: &Diagnosis) -> Markup {
    html! {
        @if !diagnosis.verdicts.is_empty() {
            section {
                h2 { "Who waited, and for what" }
                p.lead { "The share of the lost time stands before each cause." }
                ul.bars {
                    @for verdict in &diagnosis.verdicts {
                        li class=(kind(verdict.kind)) {
                            span.outcome { (number::percent(verdict.share)) }
                            div { (details(diagnosis.level, verdict)) }
                        }
                    }
                }
            }
        }
    }
}

fn details(level: Level, verdict: &Verdict) -> Markup {
    html! {
        strong { (verdict.name) } " "
        span.demand {
            (verdict.who) " waited " (time(verdict.who_ns)) " " (verdict.cause.row().meaning)
            @if let Some(culprit) = &verdict.culprit { ", because of " (culprit) (verdict.relation) }
            "."
        }
        div.chips {
            span.chip { b { (time(verdict.lost_ns)) } " lost by all" }
            span.chip { (waits(verdict)) }
            @if let Some(file) = &verdict.file { span.chip { "most on " b { (file) } } }
            span.chip { b { (sure(verdict.confidence)) } ": " (why_sure(level, verdict)) }
            @for evidence in &verdict.evidence { span.chip { (evidence) } }
            @if let Some(to_do) = &verdict.to_do { span.chip { b { "to do" } ": " (to_do) } }
        }
    }
}

/// Style class of whose matter it is.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Storage => "of-storage",
        Kind::Memory => "of-memory",
        Kind::Elsewhere => "of-elsewhere",
    }
}

fn findings(diagnosis: &Diagnosis) -> Markup {
    html! {
        @if !diagnosis.findings.is_empty() {
            section {
                h2 { "Found without watching" }
                ul.bars {
                    @for finding in &diagnosis.findings { li.whole { (finding.sentence) } }
                }
            }
        }
    }
}

/// What this level saw, what it could not, and what the others would have seen.
fn sight(diagnosis: &Diagnosis) -> Markup {
    html! {
        section {
            h2 { "What it could see, and what not" }
            @if let Some(more) = diagnosis.level.gains() { p.lead { (more) "." } }
            ul.bars {
                @for level in LEVELS {
                    @let here = level == diagnosis.level;
                    li class=(if here { "met" } else { "unknown" }) {
                        span.outcome { (if here { "✓ " } else { "" }) "level " (level.number()) }
                        div {
                            @if here { strong { (level.sees()) } } @else { span.demand { (level.sees()) } }
                            @if here {
                                @for lacks in &diagnosis.cannot_see {
                                    p.lacks { b { "Cannot see" } " " (lacks) "." }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A command, and what it does.
fn next(diagnosis: &Diagnosis) -> [(&'static str, &'static str); 2] {
    let first = match diagnosis.verdicts.iter().any(|it| it.advice.is_some()) {
        true => (
            "sudo frontrow doctor --try",
            "Tries the first advice while you go on, says what it brings, and undoes it",
        ),
        false => (
            "sudo frontrow doctor --study 24h",
            "Watches for a day: how long each app waits for storage",
        ),
    };
    let live = (
        "sudo frontrow top",
        "Shows who waits for what as it happens",
    );
    [first, live]
}

#[cfg(test)]
mod tests;
