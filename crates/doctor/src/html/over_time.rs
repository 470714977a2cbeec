//! The pressure over the time of the measurement.

use super::shares;
use crate::judge::Diagnosis;
use crate::observe::{Pressure, Span};
use crate::page::time;
use maud::{Markup, html};
use record::html::at;
use record::number;

/// In the picture's own units: as many as a phone's screen has room for.
const WIDTH: f64 = 400.0;
const LEFT: f64 = 40.0;
const HEIGHT: f64 = 44.0;
/// Room above a lane for its name.
const NAME: f64 = 24.0;
const LANE: f64 = NAME + HEIGHT;
/// Room for a tick's text.
const TICK: f64 = 44.0;
const TITLE: &str = "What some task was held up by over the time";

/// Lanes from top to bottom: what is counted, and its style class.
const LANES: [(fn(&Pressure) -> u64, &str); 3] = [
    (|it| it.io_ns, "of-storage"),
    (|it| it.memory_ns, "of-memory"),
    (|it| it.cpu_ns, "of-elsewhere"),
];

/// Steps between ticks in seconds.
const STEPS: [u64; 16] = [
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 21_600,
];

/// The card; None if the time has no parts.
pub fn card(diagnosis: &Diagnosis) -> Option<Markup> {
    let spans = &diagnosis.over_time;
    let end_ns = spans.last().filter(|_| spans.len() > 1)?.until_ns;
    let scale = (WIDTH - LEFT) / end_ns.max(1) as f64;
    let bottom = LANE * LANES.len() as f64;
    let names = shares(diagnosis);
    let said = names.map(|(name, share)| format!("{name} {}", number::percent(share)));
    Some(html! {
        figure.card {
            figcaption {
                strong { (TITLE) }
                span.aside { "Higher is more of that moment. Point at one for its figures." }
            }
            svg.spans viewBox={ "0 0 " (WIDTH) " " (at(bottom + 22.0)) } role="img"
                aria-labelledby="spans-title spans-text" {
                title #spans-title { (TITLE) }
                desc #spans-text { "Of all the time: " (said.join("; ")) }
                @for (place, (name, share)) in names.iter().enumerate() {
                    (frame(name, *share, LANE * place as f64))
                }
                @for span in spans { (draw(span, scale, bottom)) }
                @for place in 0..LANES.len() {
                    @let floor = at(LANE * (place + 1) as f64);
                    line.base x1=(at(LEFT)) x2=(at(WIDTH)) y1=(floor) y2=(floor) {}
                }
                (ticks(end_ns, scale, bottom))
            }
        }
    })
}

/// A lane's name, and its scale.
fn frame(name: &str, share: f64, top: f64) -> Markup {
    let lines = [(0.0, "100 %"), (0.5, "50 %")];
    html! {
        text.name x=(at(LEFT)) y=(at(top + 16.0)) { (name) }
        text.tick x=(at(WIDTH)) y=(at(top + 16.0)) text-anchor="end" {
            (number::percent(share)) " of the time"
        }
        @for (part, words) in lines {
            @let y = top + NAME + HEIGHT * part;
            line.grid x1=(at(LEFT)) x2=(at(WIDTH)) y1=(at(y)) y2=(at(y)) {}
            text.tick x=(at(LEFT - 6.0)) y=(at(y + 4.0)) text-anchor="end" { (words) }
        }
    }
}

/// One moment in all lanes.
fn draw(span: &Span, scale: f64, bottom: f64) -> Markup {
    let left = LEFT + span.from_ns as f64 * scale;
    let length_ns = (span.until_ns - span.from_ns).max(1);
    let width = length_ns as f64 * scale;
    let parts = LANES.map(|(of, _)| (of(&span.pressure) as f64 / length_ns as f64).min(1.0));
    let [io, memory, cpu] = parts.map(number::percent);
    html! {
        g {
            title {
                (time(span.from_ns)) " to " (time(span.until_ns)) ": I/O " (io) ", memory "
                (memory) ", CPU " (cpu)
            }
            rect.moment x=(at(left)) y="0" width=(at(width)) height=(at(bottom)) {}
            @for (place, part) in parts.iter().enumerate() {
                @if *part > 0.0 {
                    @let height = HEIGHT * part;
                    rect class={ "part " (LANES[place].1) } x=(at(left))
                        y=(at(LANE * (place + 1) as f64 - height))
                        width=(at(width)) height=(at(height)) {}
                }
            }
        }
    }
}

fn ticks(end_ns: u64, scale: f64, bottom: f64) -> Markup {
    let fits = |seconds: &u64| *seconds as f64 * 1e9 * scale >= TICK;
    let step = STEPS.into_iter().find(fits).unwrap_or(86_400);
    html! {
        @for second in (0..=end_ns / 1_000_000_000).step_by(step as usize) {
            @let x = LEFT + second as f64 * 1e9 * scale;
            @let anchor = if x > WIDTH - TICK / 2.0 { "end" } else { "middle" };
            text.tick x=(at(x)) y=(at(bottom + 16.0)) text-anchor=(anchor) {
                (tick(second, step))
            }
        }
    }
}

fn tick(second: u64, step: u64) -> String {
    match step {
        0..60 => format!("{second} s"),
        60..3600 => format!("{} min", second / 60),
        _ => format!("{} h", second / 3600),
    }
}
