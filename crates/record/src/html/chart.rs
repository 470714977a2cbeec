//! A chart of horizontal bars from 0, one for each name, with its value beside it.

use super::at;
use crate::policy;
use maud::{Markup, html};

/// Width of every picture, in its own units: as many as a phone's screen has room for.
pub const WIDTH: f64 = 400.0;
/// Height of a bar's row, and of the bar.
pub const ROW: f64 = 27.0;
pub const BAR: f64 = 15.0;
/// Room right of the longest bar for its value, and for a value with a ratio.
const VALUE: f64 = 84.0;
/// Width of one letter of a name.
const LETTER: f64 = 7.6;
/// Longest name in letters: a longer one is cut, and its hover text has it whole.
pub const MOST_LETTERS: usize = 22;

/// Bar of a chart.
pub struct Bar {
    /// Name to the left of it.
    pub name: String,
    /// Style class of its colour.
    pub class: String,
    /// Length of the bar, in the chart's unit.
    pub value: f64,
    /// The value as text.
    pub text: String,
}

/// A card with a title, what it shows in more words, and the bars.
pub struct Card {
    /// What the picture shows.
    pub heading: String,
    /// More words to it; may be empty.
    pub aside: String,
    /// The bars from top to bottom.
    pub bars: Vec<Bar>,
}

/// Room for the longest of these names, left of the bars.
pub fn label_width<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    let letters = names.map(|it| it.chars().count().min(MOST_LETTERS)).max();
    letters.unwrap_or(0) as f64 * LETTER + 14.0
}

/// The name as far as there is room for this number of letters.
pub fn shortened(name: &str, letters: usize) -> String {
    match name.chars().count() > letters {
        true => name.chars().take(letters - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// All cards, their pictures with ids that begin with `id`.
pub fn cards(cards: &[Card], id: &str) -> Markup {
    html! {
        div.cards {
            @for (place, card) in cards.iter().enumerate() {
                figure.card {
                    figcaption {
                        strong { (card.heading) }
                        @if !card.aside.is_empty() { span.aside { (card.aside) } }
                    }
                    (draw(card, &format!("{id}-{place}")))
                }
            }
        }
    }
}

fn draw(card: &Card, id: &str) -> Markup {
    let bars = &card.bars;
    let label = label_width(bars.iter().map(|bar| bar.name.as_str()));
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let scale = (WIDTH - label - VALUE) / if most > 0.0 { most } else { 1.0 };
    let bottom = ROW * bars.len() as f64;
    let said = bars.iter().map(|bar| format!("{} {}", bar.name, bar.text));
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (at(bottom + 4.0)) } role="img"
            aria-labelledby={ (id) "-title " (id) "-text" } {
            title id={ (id) "-title" } { (card.heading) }
            desc id={ (id) "-text" } { (said.collect::<Vec<_>>().join("; ")) }
            @for (row, bar) in bars.iter().enumerate() {
                (draw_bar(bar, label, bar.value.max(0.0) * scale, row as f64 * ROW + ROW / 2.0))
            }
            line.base x1=(at(label)) x2=(at(label)) y1="0" y2=(at(bottom)) {}
        }
    }
}

fn draw_bar(bar: &Bar, label: f64, length: f64, middle: f64) -> Markup {
    html! {
        g.ours[bar.name == policy::FRONTROW] {
            title { (bar.name) ": " (bar.text) }
            text.name x=(at(label - 10.0)) y=(at(middle + 4.5)) text-anchor="end" {
                (shortened(&bar.name, MOST_LETTERS))
            }
            rect class=(bar.class) x=(at(label)) y=(at(middle - BAR / 2.0)) rx="2"
                width=(at(length)) height=(at(BAR)) {}
            text.value x=(at(label + length + 8.0)) y=(at(middle + 4.5)) { (bar.text) }
        }
    }
}
