//! The pressure over the time of the measurement.

use super::shares;
use crate::judge::Diagnosis;
use crate::observe::{Pressure, Span};
use crate::page::{held_up, time};
use maud::{Markup, html};
use record::html::at;
use record::number;

/// In the pictures' own units. They are as wide as there is room, so no text is in them.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// Parts of the time that ticks mark.
const TICKS: u64 = 4;

/// A lane: its name, what it counts, and its style class.
type Lane = (&'static str, fn(&Pressure) -> u64, &'static str);

pub const LANES: [Lane; 3] = [
    ("I/O", |it| it.io_ns, "of-storage"),
    ("memory", |it| it.memory_ns, "of-memory"),
    ("want of a CPU", |it| it.cpu_ns, "of-elsewhere"),
];

/// The card; None if the time has no parts.
pub fn card(diagnosis: &Diagnosis) -> Option<Markup> {
    let spans = &diagnosis.over_time;
    let end_ns = spans.last().filter(|_| spans.len() > 1)?.until_ns;
    Some(html! {
        figure.card.lanes {
            figcaption {
                strong { "What some task was held up by over the time" }
                span.aside {
                    "The height is the share of that moment, up to 100 %. Point at one for its figures."
                }
            }
            @for (lane, (_, share)) in LANES.iter().zip(shares(diagnosis)) {
                (draw(lane, share, spans, end_ns))
            }
            div.ticks aria-hidden="true" {
                @for tick in 0..=TICKS { span { (time(end_ns / TICKS * tick)) } }
            }
            @if let Some(apps) = held_up(diagnosis) { p { "By I/O: " (apps) "." } }
        }
    })
}

fn draw((name, of, class): &Lane, share: f64, spans: &[Span], end_ns: u64) -> Markup {
    let said = format!("{} of the time", number::percent(share));
    let scale = WIDTH / end_ns.max(1) as f64;
    let id = format!("{class}-title");
    html! {
        p.lane { b { (name) } " " small { (said) } }
        svg class={ "spans " (class) } viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img"
            preserveAspectRatio="none" aria-labelledby=(id) {
            title id=(id) { "Held up by " (name) " over the time: " (said) }
            @for span in spans { (moment(name, *of, span, scale)) }
        }
    }
}

fn moment(name: &str, of: fn(&Pressure) -> u64, span: &Span, scale: f64) -> Markup {
    let length_ns = (span.until_ns - span.from_ns).max(1);
    let part = (of(&span.pressure) as f64 / length_ns as f64).min(1.0);
    let (left, width) = (
        at(span.from_ns as f64 * scale),
        at(length_ns as f64 * scale),
    );
    let height = HEIGHT * part;
    html! {
        g {
            title {
                (time(span.from_ns)) " to " (time(span.until_ns)) ": " (name) " "
                (number::percent(part))
            }
            rect.moment x=(left) y="0" width=(width) height=(at(HEIGHT)) {}
            @if part > 0.0 {
                rect.part x=(left) y=(at(HEIGHT - height)) width=(width) height=(at(height)) {}
            }
        }
    }
}
