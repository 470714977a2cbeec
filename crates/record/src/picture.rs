//! The headline as a picture of its own, for a page that is read on a light or a dark background:
//! what one operation takes beside a load, by scheduler, as an SVG.

use crate::headline::Headline;
use crate::{Summary, number, title};
use maud::{Markup, PreEscaped, html};

const WIDTH: u32 = 720;
const LABEL_WIDTH: u32 = 210;
/// Right of the longest bar, for its value.
const VALUE_WIDTH: u32 = 90;
const LINE_HEIGHT: u32 = 30;
const BAR_HEIGHT: u32 = 18;
const TITLE_HEIGHT: u32 = 44;

const STYLE: &str = "text{font:15px system-ui,sans-serif;fill:#1f2328}\
    .title{font-size:16px;font-weight:600}.other{fill:#9aa4b0}.ours{fill:#1a7f4b}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.other{fill:#6b7684}.ours{fill:#3fb97a}}";

struct Bar {
    label: String,
    value_ms: f64,
    is_ours: bool,
}

/// None where the result has no headline.
pub fn render(summary: &Summary) -> Option<String> {
    let headline = Headline::of(summary)?;
    let bars = bars(summary, &headline);
    let longest_ms = bars.iter().map(|bar| bar.value_ms).fold(0.0, f64::max);
    let height = TITLE_HEIGHT + LINE_HEIGHT * bars.len() as u32 + 8;
    let title = format!("{}: {}, median", headline.situation(), headline.doing);
    let said: Vec<String> = bars.iter().map(Bar::said).collect();
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (height) }
            width=(WIDTH) height=(height) role="img" aria-labelledby="title values" {
            title id="title" { (title) }
            desc id="values" { (said.join("; ")) }
            style { (PreEscaped(STYLE)) }
            text.title x="0" y="20" { (title) }
            @for (line, bar) in (0..).zip(&bars) { (draw(bar, line, longest_ms)) }
        }
    };
    Some(picture.into_string() + "\n")
}

/// The stock schedulers, slowest first, then ours, then what it takes alone.
fn bars(summary: &Summary, headline: &Headline) -> Vec<Bar> {
    let bar = |name: &String| {
        Some(Bar {
            label: title::policy(name).to_owned(),
            value_ms: headline.of_policy(summary, name)?,
            is_ours: !summary.is_stock(name),
        })
    };
    let whole = summary
        .policies
        .iter()
        .filter(|it| !summary.is_ablation(it));
    let mut bars: Vec<Bar> = whole.filter_map(bar).collect();
    bars.sort_by(|a, b| {
        a.is_ours
            .cmp(&b.is_ours)
            .then(b.value_ms.total_cmp(&a.value_ms))
    });
    bars.push(Bar {
        label: "nothing else writing".to_owned(),
        value_ms: headline.unloaded_ms,
        is_ours: false,
    });
    bars
}

impl Bar {
    fn said(&self) -> String {
        format!("{} {}", self.label, number::with_unit(self.value_ms, "ms"))
    }
}

fn draw(bar: &Bar, line: u32, longest_ms: f64) -> Markup {
    let top = TITLE_HEIGHT + LINE_HEIGHT * line;
    let room = f64::from(WIDTH - LABEL_WIDTH - VALUE_WIDTH);
    let width = (room * bar.value_ms / longest_ms).round().max(1.0) as u32;
    let baseline = top + BAR_HEIGHT - 4;
    html! {
        text x="0" y=(baseline) { (bar.label) }
        rect.ours[bar.is_ours].other[!bar.is_ours] x=(LABEL_WIDTH) y=(top) width=(width)
            height=(BAR_HEIGHT) rx="2" {}
        text x=(LABEL_WIDTH + width + 8) y=(baseline) {
            (number::with_unit(bar.value_ms, "ms"))
        }
    }
}
