//! The report as one self-contained HTML page: it fetches nothing and runs no script.

use super::rows::{self, Row, Table};
use super::{Lane, Report, Timeline, sentences};
use maud::{Markup, html};
use record::html::at;
use record::number;
use sentences::{share, time};

/// What its pages look like, by light and by night; [`render`]'s classes are its own.
pub const STYLE: &str = include_str!("style.css");
const WIDTH: f64 = 1000.0;
const DRAWN: f64 = 34.0;
/// Parts of the time that ticks mark.
const TICKS: u64 = 4;
const DOF: &str = "DoF_L: in how many pieces on the device the accessed pages are, over how many \
                   they would be in without fragmentation.";

/// The report as a whole HTML page.
pub fn render(report: &Report) -> String {
    let report = &report.on_a_page();
    let (waiting, who) = sentences::chief(report);
    let main = html! {
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
        (timeline(&report.timeline, report.recording.duration_ns))
        (table(&format!("Why {who} waited"), "", &rows::classes(waiting)))
        (table("The longest waits in sum", "", &rows::top(waiting)))
        (table("Where the calls spent their time", "", &rows::layers(&report.layers)))
        (table("Calls", "", &rows::calls(&report.calls)))
        (table("Requests", "", &rows::requests(&report.io)))
        (table("Sizes of requests", "", &rows::sizes(&report.sizes)))
        (table("Files", DOF, &rows::files(&report.files, "waited for")))
        @if report.foreground.total_ns > 0 {
            @let title = "Everybody, the kernel's threads among them";
            (table(title, "", &rows::classes(&report.everybody)))
        }
        (notes(report))
        (next())
    };
    let title = format!("frontrow iopro: {}", report.recording.target);
    record::html::page(&title, &[record::html::STYLE, STYLE], &main)
}

/// The lanes' names and values are text of the page, so that they can be read at any width: only
/// the pictures are as wide as there is room.
fn timeline(timeline: &Timeline, recorded_ns: u64) -> Markup {
    let bins = timeline.lanes.first().map_or(0, |lane| lane.mean.len());
    let end_ns = timeline.bin_ns * bins as u64;
    html! {
        section {
            h2 { "What happened when" }
            p.lead {
                "How many there were at once, on average; the number beside a lane is its highest. "
                "Waits are the foreground's, the lanes below are everybody's. The time goes from 0 to "
                (time(end_ns)) "."
                @if end_ns < recorded_ns {
                    " After that nothing happened until the recording ended, at " (time(recorded_ns)) "."
                }
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

fn table(title: &str, lead: &str, table: &Table) -> Markup {
    let has_bars = table.rows.iter().any(|row| row.bar.is_some());
    html! {
        @if !table.rows.is_empty() {
            section {
                h2 { (title) }
                @if !lead.is_empty() { p.lead { (lead) } }
                div.scroll tabindex="0" role="region" aria-label=(title) {
                    table {
                        thead { tr {
                            @for heading in &table.headings { th scope="col" { (heading) } }
                            @if has_bars { th scope="col" {} }
                        } }
                        tbody { @for row in &table.rows { (row_of(row)) } }
                    }
                }
            }
        }
    }
}

fn row_of(row: &Row) -> Markup {
    html! {
        tr {
            th scope="row" {
                @if row.words.is_empty() { (row.label) }
                @else { b { (row.label) } " " (row.words) }
            }
            @for cell in &row.cells { td { (cell) } }
            @if let Some((part, whole)) = row.bar { td { (bar(part, whole)) } }
        }
    }
}

fn bar(part: u64, whole: u64) -> Markup {
    let percent = part as f64 / whole.max(1) as f64 * 100.0;
    html! { span.bar style={ "width:" (at(percent)) "%" } title=(share(part, whole)) {} }
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
    record::html::next(&[
        (
            "sudo frontrow doctor --try",
            "Says who waits on this machine, for whom, and tries the first advice",
        ),
        (
            "sudo frontrow sched enable /home",
            "Gives a disk the scheduler that serves first what somebody waits for",
        ),
    ])
}
