//! Requests in the queue and in the device over time, and the device's throughput. Each policy has
//! a card; all policies of a situation have the same scales.

use super::at;
use super::chart::WIDTH;
use crate::{ResultFile, Row, Series, title};
use maud::{Markup, html};

const LEFT: f64 = 44.0;
const HEIGHT: f64 = 74.0;
const GAP: f64 = 26.0;
/// Room for a tick's text.
const TICK: f64 = 36.0;

/// Owners of requests, and their style classes.
const OWNERS: [(&str, &str); 3] = [
    ("background", "series-mq-deadline"),
    ("system", "series-unloaded"),
    ("foreground", "series-frontrow"),
];

/// Panels from top to bottom: the part of the metric's name after the owner, and its words.
const PANELS: [(&str, &str); 3] = [
    ("queued", "requests waiting for the device"),
    ("in_device", "requests in the device"),
    ("device_mb_s", "MB/s that the device ended"),
];

/// All policies of one workload under one load, by the first seed.
struct Situation<'a> {
    workload: &'a str,
    load: &'a str,
    policies: Vec<&'a str>,
    rows: Vec<&'a Row>,
}

impl<'a> Situation<'a> {
    fn series(&self, policy: &str, owner: &str, what: &str) -> Option<&'a Series> {
        let metric = format!("{owner}_{what}");
        let row = self.rows.iter();
        let mut row = row.filter(|row| row.policy == policy && row.metric == metric);
        row.next()?.series.as_ref()
    }

    /// Largest value of a panel, and longest time of all series.
    fn most(&self, what: &str) -> f64 {
        let series = self
            .policies
            .iter()
            .flat_map(|policy| OWNERS.map(|(owner, _)| self.series(policy, owner, what)));
        let values = series.flatten().flat_map(|it| &it.values);
        values.copied().fold(0.0, f64::max)
    }

    fn longest_ms(&self) -> f64 {
        let length = |row: &&Row| row.series.as_ref().map_or(0.0, length_ms);
        self.rows.iter().map(length).fold(0.0, f64::max)
    }
}

/// The section; None if no series over time were recorded.
pub fn section(result: &ResultFile) -> Option<Markup> {
    let situations = situations(result);
    if situations.is_empty() {
        return None;
    }
    Some(html! {
        section {
            h2 { "What lay in the queue and in the device" }
            p.lead {
                "While the app in front is opened, left for a second and opened again: whose requests "
                "wait and are in the device, and at what rate it ends them. The scales are the same "
                "for all policies. "
                @for (owner, class) in OWNERS.iter().rev() {
                    span class={ "key " (class) } { } (owner)
                }
                " (system: journal, tables, discards)."
            }
            @for (number, situation) in situations.iter().enumerate() {
                h3 { (title::situation(situation.workload, situation.load)) }
                div.cards {
                    @for (place, policy) in situation.policies.iter().enumerate() {
                        figure.card {
                            figcaption { strong { (policy) ": queue and device over time" } }
                            (draw(situation, policy, &format!("flow-{number}-{place}")))
                        }
                    }
                }
            }
        }
    })
}

fn situations(result: &ResultFile) -> Vec<Situation<'_>> {
    let seed = result.rows.first().map(|row| row.seed);
    let mut situations: Vec<Situation> = Vec::new();
    for row in &result.rows {
        let over_time = row
            .series
            .as_ref()
            .is_some_and(|it| it.interval_ms.is_some());
        if !over_time || Some(row.seed) != seed {
            continue;
        }
        let same = |it: &Situation| it.workload == row.workload && it.load == row.load;
        let place = situations.iter().position(same).unwrap_or_else(|| {
            situations.push(Situation {
                workload: &row.workload,
                load: &row.load,
                policies: Vec::new(),
                rows: Vec::new(),
            });
            situations.len() - 1
        });
        let situation = &mut situations[place];
        situation.rows.push(row);
        if !situation.policies.contains(&row.policy.as_str()) {
            situation.policies.push(&row.policy);
        }
    }
    situations
}

fn length_ms(series: &Series) -> f64 {
    series.interval_ms.unwrap_or(0.0) * series.values.len() as f64
}

fn draw(situation: &Situation, policy: &str, id: &str) -> Markup {
    let bottom = (HEIGHT + GAP) * PANELS.len() as f64;
    let longest_ms = situation.longest_ms().max(1.0);
    let scale = (WIDTH - LEFT) / longest_ms;
    let (title_id, text_id) = (format!("{id}-title"), format!("{id}-text"));
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (at(bottom + 20.0)) } role="img"
            aria-labelledby={ (title_id) " " (text_id) } {
            title id=(title_id) { (policy) ": queue and device over time" }
            desc id=(text_id) { (description(situation, policy)) }
            @for (number, (what, words)) in PANELS.iter().enumerate() {
                (panel(situation, policy, (what, words), (HEIGHT + GAP) * number as f64, scale))
            }
            @for second in (0..=(longest_ms / 1e3) as u32).step_by(seconds_apart(scale)) {
                text.tick x=(at(LEFT + f64::from(second) * 1e3 * scale)) y=(at(bottom + 14.0))
                    text-anchor="middle" { (second) " s" }
            }
        }
    }
}

/// Seconds between two ticks that have room beside each other.
fn seconds_apart(scale: f64) -> usize {
    let apart = [1, 2, 5, 10, 20, 50, 100, 200, 500];
    let fits = |seconds: &usize| *seconds as f64 * 1e3 * scale >= TICK;
    apart.into_iter().find(fits).unwrap_or(1000)
}

fn panel(
    situation: &Situation,
    policy: &str,
    (what, words): (&str, &str),
    top: f64,
    scale: f64,
) -> Markup {
    let most = situation.most(what);
    let height = HEIGHT / if most > 0.0 { most } else { 1.0 };
    let (ceiling, floor) = (top + GAP, top + GAP + HEIGHT);
    html! {
        text.tick x=(at(LEFT)) y=(at(top + 18.0)) { (words) }
        text.tick x=(at(LEFT - 6.0)) y=(at(ceiling + 8.0)) text-anchor="end" {
            (format!("{most:.1}"))
        }
        line.grid x1=(at(LEFT)) x2=(at(WIDTH)) y1=(at(ceiling)) y2=(at(ceiling)) {}
        @for (owner, class) in OWNERS {
            @if let Some(series) = situation.series(policy, owner, what) {
                path class={ "curve " (class) } d=(path(series, scale, floor, height)) {
                    title { (owner) ": " (words) ", on average " (format!("{:.2}", series.mean())) }
                }
            }
        }
        line.base x1=(at(LEFT)) x2=(at(WIDTH)) y1=(at(floor)) y2=(at(floor)) {}
    }
}

/// The series as steps; equal intervals are joined.
fn path(series: &Series, scale: f64, floor: f64, height: f64) -> String {
    if series.values.is_empty() {
        return String::new();
    }
    let interval = series.interval_ms.unwrap_or(0.0) * scale;
    let mut path = String::new();
    let mut last = String::new();
    for (number, value) in series.values.iter().enumerate() {
        let y = at(floor - value * height);
        if y == last {
            continue;
        }
        let x = at(LEFT + number as f64 * interval);
        path += &match number {
            0 => format!("M{x} {y}"),
            _ => format!("H{x}V{y}"),
        };
        last = y;
    }
    path + &format!("H{}", at(LEFT + series.values.len() as f64 * interval))
}

fn description(situation: &Situation, policy: &str) -> String {
    let mean = |owner: &str, what: &str| {
        let series = situation.series(policy, owner, what);
        series.map_or(0.0, Series::mean)
    };
    let owners = OWNERS.map(|(owner, _)| {
        format!(
            "{owner}: on average {:.2} requests wait and {:.2} are in the device",
            mean(owner, "queued"),
            mean(owner, "in_device")
        )
    });
    owners.join("; ")
}
