//! Who waited because of whom: a band for each verdict, as broad as the time that was waited.

use super::{fault, kind};
use crate::cause::Kind;
use crate::judge::Verdict;
use crate::page::time;
use maud::{Markup, html};
use record::html::{at, shortened};

/// In the picture's own units: as many as a phone's screen has room for.
const WIDTH: f64 = 400.0;
/// Room for the names on either side.
const NAMES: f64 = 132.0;
/// Letters of a name that have room there.
const LETTERS: usize = 15;
/// Breadth of all bands together.
const BREADTH: f64 = 150.0;
const THINNEST: f64 = 2.0;
/// Least room of a name with its time below it.
const NAME: f64 = 30.0;
const GAP: f64 = 12.0;
const POST: f64 = 5.0;
const TITLE: &str = "Who waited because of whom";

/// The names on one side from top to bottom, with the bands that end there.
#[derive(Default)]
struct Side<'a> {
    posts: Vec<Post<'a>>,
}

struct Post<'a> {
    name: &'a str,
    ns: u64,
    breadth: f64,
    top: f64,
    /// Breadth of the bands that have been drawn.
    drawn: f64,
}

impl<'a> Side<'a> {
    fn add(&mut self, name: &'a str, ns: u64, breadth: f64) {
        match self.posts.iter_mut().find(|it| it.name == name) {
            Some(post) => {
                post.ns += ns;
                post.breadth += breadth;
            }
            None => self.posts.push(Post {
                name,
                ns,
                breadth,
                top: 0.0,
                drawn: 0.0,
            }),
        }
    }

    fn height(&self) -> f64 {
        let rooms = self.posts.iter().map(|it| it.breadth.max(NAME) + GAP);
        rooms.sum::<f64>() - GAP
    }

    /// Gives each its place, the whole in the middle of `height`.
    fn place(&mut self, height: f64) {
        let mut top = (height - self.height()) / 2.0;
        for post in &mut self.posts {
            let room = post.breadth.max(NAME);
            post.top = top + (room - post.breadth) / 2.0;
            top += room + GAP;
        }
    }

    /// Top of the next band of `breadth` at this name.
    fn take(&mut self, name: &str, breadth: f64) -> f64 {
        let Some(post) = self.posts.iter_mut().find(|it| it.name == name) else {
            return 0.0;
        };
        post.drawn += breadth;
        post.top + post.drawn - breadth
    }
}

/// The card; None if nobody's time was counted.
pub fn card(verdicts: &[Verdict]) -> Option<Markup> {
    let bands: Vec<&Verdict> = verdicts.iter().filter(|it| it.who_ns > 0).collect();
    let all: u64 = bands.iter().map(|it| it.who_ns).sum();
    if bands.is_empty() {
        return None;
    }
    let breadth = |it: &Verdict| (BREADTH * it.who_ns as f64 / all as f64).max(THINNEST);
    let (mut left, mut right) = (Side::default(), Side::default());
    for band in &bands {
        left.add(&band.who, band.who_ns, breadth(band));
        right.add(culprit(band), band.who_ns, breadth(band));
    }
    let height = left.height().max(right.height());
    left.place(height);
    right.place(height);
    let drawn: Vec<Markup> = bands
        .iter()
        .map(|it| {
            let broad = breadth(it);
            let ends = (left.take(&it.who, broad), right.take(culprit(it), broad));
            draw(it, ends, broad)
        })
        .collect();
    let said: Vec<String> = bands.iter().map(|it| words(it)).collect();
    Some(html! {
        figure.card {
            figcaption {
                strong { (TITLE) }
                span.aside {
                    "A band is as broad as the time that was waited. " (keys(&bands))
                }
            }
            svg.flow viewBox={ "0 0 " (WIDTH) " " (at(height)) } role="img"
                aria-labelledby="flow-title flow-text" {
                title #flow-title { (TITLE) }
                desc #flow-text { (said.join("; ")) }
                @for band in &drawn { (band) }
                @for post in &left.posts { (draw_post(post, NAMES - POST, "waited")) }
                @for post in &right.posts { (draw_post(post, WIDTH - NAMES, "is why")) }
            }
        }
    })
}

fn culprit(verdict: &Verdict) -> &str {
    let named = verdict.culprit.as_deref();
    named.unwrap_or(fault(verdict.cause))
}

fn words(verdict: &Verdict) -> String {
    let (who, waited) = (&verdict.who, time(verdict.who_ns));
    format!(
        "{who} waited {waited} because of {}: {}",
        culprit(verdict),
        verdict.name
    )
}

/// What the colours that are there mean.
fn keys(bands: &[&Verdict]) -> Markup {
    let all = [
        (Kind::Storage, "storage"),
        (Kind::Memory, "memory"),
        (Kind::Elsewhere, "neither"),
    ];
    html! {
        @for (of, name) in all {
            @if bands.iter().any(|it| it.kind == of) {
                span.of { span class={ "key " (kind(of)) } {} (name) } " "
            }
        }
    }
}

fn draw(verdict: &Verdict, (from, to): (f64, f64), broad: f64) -> Markup {
    let (left, right) = (NAMES, WIDTH - NAMES);
    let middle = WIDTH / 2.0;
    let (from_end, to_end) = (from + broad, to + broad);
    let path = format!(
        "M{left} {}C{middle} {} {middle} {} {right} {}V{}C{middle} {} {middle} {} {left} {}Z",
        at(from),
        at(from),
        at(to),
        at(to),
        at(to_end),
        at(to_end),
        at(from_end),
        at(from_end)
    );
    html! {
        path class={ "band " (kind(verdict.kind)) } d=(path) { title { (words(verdict)) } }
    }
}

/// A name beside its post: left of the bands if the post is, else right of them.
fn draw_post(post: &Post, x: f64, verb: &str) -> Markup {
    let is_left = x < WIDTH / 2.0;
    let (text_x, anchor) = match is_left {
        true => (x - 7.0, "end"),
        false => (x + POST + 7.0, "start"),
    };
    let middle = post.top + post.breadth / 2.0;
    html! {
        g {
            title { (post.name) " " (verb) ": " (time(post.ns)) }
            rect.post x=(at(x)) y=(at(post.top)) width=(at(POST)) height=(at(post.breadth)) rx="1" {}
            text.name x=(at(text_x)) y=(at(middle - 2.0)) text-anchor=(anchor) {
                (shortened(post.name, LETTERS))
            }
            text.tick x=(at(text_x)) y=(at(middle + 13.0)) text-anchor=(anchor) { (time(post.ns)) }
        }
    }
}
