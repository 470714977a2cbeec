//! The report as one self-contained HTML page: it fetches nothing and runs no script.

use super::{Lane, Report, Timeline, Waiting, sentences};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use record::number;
use sentences::{share, size, time};

/// What its pages look like, by light and by night; [`render`]'s classes are its own.
pub const STYLE: &str = include_str!("style.css");
const WIDTH: f64 = 1000.0;
const DRAWN: f64 = 34.0;
/// Parts of the time that ticks mark.
const TICKS: u64 = 4;

/// The report as a whole HTML page.
pub fn render(report: &Report) -> String {
    let (waiting, who) = sentences::chief(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "frontrow iopro: " (report.recording.target) }
                style { (PreEscaped(record::html::STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header {
                        p.over {
                            "frontrow iopro · " (report.recording.target) " · kernel "
                            (report.recording.kernel)
                        }
                        h1 { (sentences::headline(report)) }
                        @if let Some(longest) = sentences::longest(report) { p.lead { (longest) } }
                        @for reason in sentences::reasons(waiting) { p.lead { (reason) } }
                        @if let Some(fragmented) = sentences::fragmented(report) { p.lead { (fragmented) } }
                    }
                    (timeline(&report.timeline))
                    (classes(&format!("Why {who} waited"), waiting))
                    (top(waiting))
                    (layers(report))
                    (calls(report))
                    (requests(report))
                    (sizes(report))
                    (files(report))
                    @if report.foreground.total_ns > 0 {
                        (classes("Everybody, the kernel's threads among them", &report.everybody))
                    }
                    (notes(report))
                    (next())
                }
            }
        }
    };
    page.into_string()
}

/// The lanes' names and values are text of the page, so that they can be read at any width: only
/// the pictures are as wide as there is room.
fn timeline(timeline: &Timeline) -> Markup {
    let bins = timeline.lanes.first().map_or(0, |lane| lane.mean.len());
    let end_ns = timeline.bin_ns * bins as u64;
    html! {
        section {
            h2 { "What happened when" }
            p.lead {
                "How many there were at once, on average; the number beside a lane is its highest. "
                "Waits are the foreground's, the lanes below are everybody's. The time goes from 0 to "
                (time(end_ns)) "."
            }
            figure.card.lanes {
                @for (place, lane) in timeline.lanes.iter().enumerate() { (draw(lane, place)) }
                div.ticks aria-hidden="true" {
                    @for tick in 0..=TICKS { span { (time(end_ns / TICKS * tick)) } }
                }
            }
        }
    }
}

fn draw(lane: &Lane, place: usize) -> Markup {
    let most = lane.mean.iter().copied().fold(0.0, f64::max);
    let highest = match most > 0.0 {
        true => format!("up to {}", number::significant(most)),
        false => "none".to_owned(),
    };
    let id = format!("lane-{place}");
    html! {
        p.lane { (lane.name) " " small { (highest) } }
        @if most > 0.0 {
            svg class={ "hue-" (place) } viewBox={ "0 0 " (WIDTH) " " (DRAWN) } role="img"
                preserveAspectRatio="none" aria-labelledby={ (id) "-title" } {
                title id={ (id) "-title" } { (lane.name) " over time, " (highest) }
                path d=(area(lane, most)) { title { (lane.name) " over time, " (highest) } }
            }
        }
    }
}

/// SVG path of the area below a lane's values; `most` is the largest value.
fn area(lane: &Lane, most: f64) -> String {
    let step = WIDTH / lane.mean.len().max(1) as f64;
    let mut path = format!("M0 {}", at(DRAWN));
    let mut last = DRAWN;
    for (bin, mean) in lane.mean.iter().enumerate() {
        let y = DRAWN - mean / most * DRAWN;
        if (y - last).abs() >= 0.05 {
            path.push_str(&format!("H{}V{}", at(step * bin as f64), at(y)));
            last = y;
        }
    }
    path.push_str(&format!("H{}V{}Z", at(WIDTH), at(DRAWN)));
    path
}

/// A coordinate to a tenth of a unit: more digits are invisible.
fn at(place: f64) -> String {
    let text = format!("{place:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn table(title: &str, lead: &str, headings: &[&str], rows: Vec<Vec<Markup>>) -> Markup {
    html! {
        @if !rows.is_empty() {
            section {
                h2 { (title) }
                @if !lead.is_empty() { p.lead { (lead) } }
                div.scroll tabindex="0" role="region" aria-label=(title) {
                    table {
                        thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                        tbody {
                            @for row in rows {
                                tr {
                                    @for (place, cell) in row.into_iter().enumerate() {
                                        @if place == 0 { th scope="row" { (cell) } }
                                        @else { td { (cell) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn text(text: impl AsRef<str>) -> Markup {
    html! { (text.as_ref()) }
}

fn bar(part: u64, whole: u64) -> Markup {
    let percent = part as f64 / whole.max(1) as f64 * 100.0;
    html! { span.bar style={ "width:" (at(percent)) "%" } title=(share(part, whole)) {} }
}

fn classes(title: &str, waiting: &Waiting) -> Markup {
    let rows = waiting.classes.iter().map(|class| {
        vec![
            html! { b { (class.class) } " " (class.words) },
            text(time(class.total_ns)),
            text(share(class.total_ns, waiting.total_ns)),
            text(number::count(class.waits as f64)),
            text(time(class.longest_ns)),
            bar(class.total_ns, waiting.total_ns),
        ]
    });
    let headings = ["class", "time", "share", "waits", "longest", ""];
    table(title, "", &headings, rows.collect())
}

fn top(waiting: &Waiting) -> Markup {
    let rows = waiting.top.iter().map(|top| {
        vec![
            text(sentences::who(top)),
            text(time(top.total_ns)),
            text(number::count(top.waits as f64)),
            text(time(top.longest_ns)),
        ]
    });
    let headings = ["who waited for what", "time", "waits", "longest"];
    table("The longest waits in sum", "", &headings, rows.collect())
}

fn layers(report: &Report) -> Markup {
    let total: u64 = report.layers.iter().map(|layer| layer.total_ns).sum();
    let rows = report.layers.iter().filter(|_| total > 0).map(|layer| {
        vec![
            html! { b { (layer.layer) } " " (layer.words) },
            text(time(layer.total_ns)),
            text(share(layer.total_ns, total)),
            bar(layer.total_ns, total),
        ]
    });
    let headings = ["layer", "time", "share", ""];
    table(
        "Where the calls spent their time",
        "",
        &headings,
        rows.collect(),
    )
}

fn calls(report: &Report) -> Markup {
    let rows = report.calls.iter().map(|calls| {
        vec![
            text(&calls.kind),
            text(number::count(calls.calls as f64)),
            text(time(calls.total_ns)),
            text(time(calls.blocked_ns)),
            text(time(calls.longest_ns)),
        ]
    });
    let headings = ["call", "calls", "time", "blocked", "longest"];
    table("Calls", "", &headings, rows.collect())
}

fn requests(report: &Report) -> Markup {
    let rows = report.io.iter().map(|io| {
        vec![
            text(sentences::request(io)),
            text(number::count(io.requests as f64)),
            text(size(io.bytes)),
            text(size(io.bytes.checked_div(io.requests).unwrap_or(0))),
            text(time(io.queued_ns)),
            text(time(io.device_ns)),
        ]
    });
    let headings = [
        "what",
        "requests",
        "bytes",
        "mean size",
        "mean queued",
        "mean in device",
    ];
    table("Requests", "", &headings, rows.collect())
}

fn sizes(report: &Report) -> Markup {
    let most = report
        .sizes
        .iter()
        .map(|it| it.reads + it.writes)
        .max()
        .unwrap_or(0);
    let rows = report.sizes.iter().map(|it| {
        vec![
            text(format!("up to {}", size(it.up_to_bytes))),
            text(number::count(it.reads as f64)),
            text(number::count(it.writes as f64)),
            bar(it.reads + it.writes, most),
        ]
    });
    let headings = ["size", "reads", "writes", ""];
    table("Sizes of requests", "", &headings, rows.collect())
}

fn files(report: &Report) -> Markup {
    let rows = report.files.iter().map(|file| {
        vec![
            text(&file.path),
            text(time(file.waited_ns)),
            text(number::count(file.requests as f64)),
            text(size(file.read_bytes)),
            text(size(file.written_bytes)),
            text(file.dof.map_or_else(String::new, |dof| format!("{dof:.2}"))),
        ]
    });
    let lead = "DoF_L: in how many pieces on the device the accessed pages are, over how many \
                they would be in without fragmentation.";
    let headings = ["file", "waited for", "requests", "read", "written", "DoF_L"];
    table("Files", lead, &headings, rows.collect())
}

fn notes(report: &Report) -> Markup {
    let linked = sentences::linked(report);
    let caveats = sentences::caveats(report);
    html! {
        @if linked.is_some() || !caveats.is_empty() {
            section {
                h2 { "How complete this is" }
                ul.notes {
                    @if let Some(linked) = linked { li { (linked) } }
                    @for caveat in caveats { li { (caveat) } }
                }
            }
        }
    }
}

fn next() -> Markup {
    let steps = [
        (
            "Says who waits on this machine, for whom, and tries the first advice:",
            "sudo frontrow doctor --try",
        ),
        (
            "Gives a disk the scheduler that serves first what somebody waits for:",
            "sudo frontrow sched enable /home",
        ),
    ];
    html! {
        section {
            h2 { "What to do next" }
            @for (words, command) in steps {
                p.step { (words) }
                pre tabindex="0" role="region" aria-label=(words) { code { (command) } }
            }
        }
    }
}
