//! What a result says first: a sentence with two figures, and these as tiles.

use super::{at, milliseconds};
use crate::headline::Headline;
use crate::matrix::{Matrix, STEPS, matrices};
use crate::metric::Direction;
use crate::summary::{Figure, IDLE, Summary};
use crate::{ResultFile, number, policy, title};
use maud::{Markup, html};

/// Workloads of experiments without a [`Headline`], the most telling first, and what is done in
/// them.
const DOING: [(&str, &str); 11] = [
    ("gallery", "opening an album"),
    ("camera", "leaving a camera"),
    ("game", "loading a game"),
    ("trace", "a read of the app in front"),
    ("launch", "starting 16 apps"),
    ("resume", "resuming 16 apps"),
    ("split-view", "the active one of three apps' reading"),
    ("phone", "reading six apps' files"),
    ("overhead-write-1", "a 4 KB write"),
    ("overhead-read-1", "a 4 KB read"),
    ("rand-read-1", "reading 4 KB at random"),
];

/// Policies without Frontrow, and with it, the first that ran. Their words come after a time.
const WITHOUT: [(&str, &str); 4] = [
    ("stock", "as the kernel is"),
    ("demand", "as the kernel is"),
    ("no-defrag", "never defragmented"),
    ("mq-deadline", "under mq-deadline"),
];
const WITH: [(&str, &str); 6] = [
    ("fastt", "with the app in front named"),
    ("by-screen", "with the screen's shares named"),
    ("frontrow", "under frontrow"),
    ("padded", "with frontrow launch"),
    ("merged", "with frontrow launch"),
    ("janusd-l", "with frontrow defrag once a week"),
];

/// Slowdown up to which a pair counts as hardly slower than alone.
const HARDLY: f64 = STEPS[1];

struct Tile {
    name: String,
    note: &'static str,
    class: &'static str,
    text: String,
    value: f64,
    below: String,
}

/// The sentence and its tiles; what the result is about where it has none.
pub fn section(result: &ResultFile, summary: &Summary) -> Markup {
    let matrices = matrices(summary);
    if !matrices.is_empty() {
        return of_matrices(&matrices);
    }
    match Headline::of(summary) {
        Some(headline) => of_headline(&headline),
        None => of_first_loaded(summary).unwrap_or_else(|| {
            html! { h1 { (title::experiment(result)) } }
        }),
    }
}

fn of_headline(headline: &Headline) -> Markup {
    let times = |value_ms: f64| number::times(value_ms / headline.unloaded_ms) + " unloaded";
    html! {
        h1 {
            (headline.situation()) ", " (headline.doing) " takes "
            em.stock { (milliseconds(headline.default_ms)) } " under " (headline.stock_default)
            " and " em.ours { (milliseconds(headline.frontrow_ms)) } " under frontrow."
        }
        (tiles(&[
            Tile {
                name: "unloaded".to_owned(),
                note: "idle, best stock",
                class: "unloaded",
                text: milliseconds(headline.unloaded_ms),
                value: headline.unloaded_ms,
                below: "mean of one operation, median of the runs".to_owned(),
            },
            Tile {
                name: headline.stock_default.clone(),
                note: "stock default",
                class: "stock",
                text: milliseconds(headline.default_ms),
                value: headline.default_ms,
                below: times(headline.default_ms),
            },
            Tile {
                name: policy::FRONTROW.to_owned(),
                note: "",
                class: "ours",
                text: milliseconds(headline.frontrow_ms),
                value: headline.frontrow_ms,
                below: times(headline.frontrow_ms),
            },
        ]))
    }
}

/// The first workload of [`DOING`] that ran both with Frontrow and without.
fn of_first_loaded(summary: &Summary) -> Option<Markup> {
    DOING.iter().find_map(|(workload, doing)| {
        let mut situations = summary.situations();
        situations.sort_by_key(|(_, load)| *load == IDLE);
        let (_, load) = situations.into_iter().find(|(name, _)| name == workload)?;
        let figure = match workload.starts_with("overhead-") {
            true => summary.figure(workload, load, "instructions_per_io")?,
            false => summary.headline(workload, load)?,
        };
        compared(summary, figure, doing)
    })
}

fn compared(summary: &Summary, figure: &Figure, doing: &str) -> Option<Markup> {
    let first = |known: &[(&'static str, &'static str)]| {
        let value = |name: &str| Some(summary.cell(figure, name)?.mean());
        let mut found = known.iter();
        found.find_map(|(name, words)| Some((*name, *words, value(name)?)))
    };
    let (without, without_words, was) = first(&WITHOUT)?;
    let (with, with_words, is) = first(&WITH)?;
    let verb = match figure.direction() {
        Direction::Higher => "goes at",
        _ => "takes",
    };
    let begin = match figure.is_loaded() {
        true => sentence_case(&format!("{}, {doing}", title::load(&figure.load))),
        false => sentence_case(doing),
    };
    let alone = summary.unloaded(figure).filter(|_| figure.is_loaded());
    let alone = alone.map(|alone| alone.cell.mean());
    let below = |value: f64| match alone {
        Some(alone) if alone > 0.0 => number::times(value / alone) + " alone",
        _ => String::new(),
    };
    let tile = |name: &str, note, class, value: f64| Tile {
        name: name.to_owned(),
        note,
        class,
        text: figure.text(value),
        value,
        below: below(value),
    };
    let mut all = Vec::new();
    all.extend(alone.map(|value| Tile {
        below: String::new(),
        ..tile("alone", "nothing else running", "unloaded", value)
    }));
    all.push(tile(without, "without Frontrow", "stock", was));
    all.push(tile(with, "with it", "ours", is));
    Some(html! {
        h1 {
            (begin) " " (verb) " " em.stock { (figure.text(was)) } " " (without_words)
            " and " em.ours { (figure.text(is)) } " " (with_words) "."
        }
        (tiles(&all))
    })
}

/// How many pairs of a matrix each policy keeps near their time alone.
fn of_matrices(matrices: &[Matrix]) -> Markup {
    let all = matrices.iter().map(|it| pairs(it).count()).max();
    let all = all.unwrap_or(0);
    let kept = |matrix: &Matrix| pairs(matrix).filter(|times| *times <= HARDLY).count();
    let ours = |it: &&Matrix| WITH.iter().any(|(name, _)| *name == it.policy);
    let (best, other) = (
        matrices.iter().filter(ours).max_by_key(|it| kept(it)),
        matrices
            .iter()
            .filter(|it| !ours(it))
            .max_by_key(|it| kept(it)),
    );
    let tile = |matrix: &Matrix, class| Tile {
        name: matrix.policy.clone(),
        note: "",
        class,
        text: format!("{} of {all}", kept(matrix)),
        value: kept(matrix) as f64,
        below: format!("pairs within {} alone", number::times(HARDLY)),
    };
    let tiles_of: Vec<Tile> = [
        other.map(|it| tile(it, "stock")),
        best.map(|it| tile(it, "ours")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let named = best.or(other);
    html! {
        h1 {
            "Of " (all) " pairs of an app in front and a load behind it, "
            @if let Some(named) = named {
                (named.policy) " keeps " em.ours { (kept(named)) } " within "
                (number::factor(HARDLY)) " times their time alone"
            }
            @if let (Some(other), Some(_)) = (other, best) {
                ", and " (other.policy) " " em.stock { (kept(other)) }
            }
            "."
        }
        (tiles(&tiles_of))
    }
}

/// The slowdowns of all pairs that were measured.
fn pairs(matrix: &Matrix) -> impl Iterator<Item = f64> {
    let cells = matrix.lines.iter().flat_map(|(_, cells)| cells);
    cells.flatten().map(|cell| cell.mean)
}

fn tiles(tiles: &[Tile]) -> Markup {
    let most = tiles.iter().map(|tile| tile.value).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    html! {
        div.tiles {
            @for tile in tiles {
                div class={ "tile " (tile.class) } {
                    span.name {
                        (tile.name)
                        @if !tile.note.is_empty() { small { " " (tile.note) } }
                    }
                    span.figure { (tile.text) }
                    span.meter aria-hidden="true" {
                        span style={ "width:" (at((tile.value / most * 100.0).max(0.6))) "%" } {}
                    }
                    small { (tile.below) }
                }
            }
        }
    }
}

fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
