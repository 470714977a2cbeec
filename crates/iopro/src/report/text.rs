//! Text report for a terminal.

use super::{Direction, File, Frame, Layer, Report, UnderWay, Waiting, sentences};
use record::number;
use record::table::grid::{Grid, Line, Text, wrapped};
use sentences::{share, shortened, size, time};

/// The report as text. Lines have at most `width` columns, except where a word is longer.
pub fn render(report: &Report, width: usize) -> String {
    let mut out = wrapped(&sentences::headline(report), width);
    if let Some(longest) = sentences::longest(report) {
        out.push_str(&wrapped(&longest, width));
    }
    let (waiting, who) = sentences::chief(report);
    for reason in sentences::reasons(waiting) {
        out.push_str(&wrapped(&reason, width));
    }
    if let Some(fragmented) = sentences::fragmented(report) {
        out.push_str(&wrapped(&fragmented, width));
    }
    section(
        &mut out,
        &format!("Why {who} waited"),
        classes(waiting),
        width,
    );
    section(
        &mut out,
        "The longest waits in sum",
        top(waiting, width),
        width,
    );
    section(
        &mut out,
        "Where their calls spent the time",
        layers(&report.layers),
        width,
    );
    section(&mut out, "Calls", calls(report), width);
    section(&mut out, "Requests", requests(&report.io), width);
    section(&mut out, "Sizes of requests", sizes(report), width);
    section(&mut out, "Files", files(&report.files, width), width);
    if report.foreground.total_ns > 0 && report.foreground.total_ns < report.everybody.total_ns {
        let everybody = &report.everybody;
        section(
            &mut out,
            "Everybody, the kernel's threads among them",
            classes(everybody),
            width,
        );
    }
    let mut notes: Vec<String> = sentences::linked(report).into_iter().collect();
    notes.extend(sentences::caveats(report));
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        out.push_str(&wrapped(&note, width));
    }
    out
}

/// A frame of a live view as text, with the line width of [`render`].
pub fn frame(frame: &Frame, width: usize) -> String {
    let mut out = wrapped(&sentences::frame_headline(frame), width);
    for lost in &frame.lost {
        out.push_str(&wrapped(&sentences::lost(lost), width));
    }
    let waiting = &frame.foreground;
    section(&mut out, "Why they waited", classes(waiting), width);
    section(
        &mut out,
        "The longest waits in sum",
        top(waiting, width),
        width,
    );
    section(
        &mut out,
        "Calls that go on",
        under_way(&frame.under_way, width),
        width,
    );
    section(
        &mut out,
        "Where calls spent the time",
        layers(&frame.layers),
        width,
    );
    section(&mut out, "Files", files(&frame.files, width), width);
    section(&mut out, "Requests", requests(&frame.io), width);
    out
}

fn section(out: &mut String, title: &str, grid: Grid, width: usize) {
    if grid.lines.is_empty() {
        return;
    }
    out.push_str(&format!("\n{title}\n"));
    out.push_str(&grid.render(width, false));
}

fn grid(headings: &[&str], rows: Vec<Vec<String>>) -> Grid {
    let lines = rows.into_iter().map(|row| {
        let mut cells = row.into_iter();
        let label = Text::plain(cells.next().unwrap_or_default());
        Line::Cells(
            label,
            cells
                .map(|cell| (Text::plain(cell), String::new()))
                .collect(),
        )
    });
    Grid {
        headings: headings
            .iter()
            .map(|heading| Text::plain(*heading))
            .collect(),
        repeated: 0,
        lines: lines.collect(),
    }
}

fn classes(waiting: &Waiting) -> Grid {
    let rows = waiting.classes.iter().map(|class| {
        vec![
            format!("{}: {}", class.class, class.words),
            time(class.total_ns),
            share(class.total_ns, waiting.total_ns),
            number::count(class.waits as f64),
            time(class.longest_ns),
        ]
    });
    grid(&["time", "share", "waits", "longest"], rows.collect())
}

fn top(waiting: &Waiting, width: usize) -> Grid {
    let room = width.saturating_sub(30).max(30);
    let rows = waiting.top.iter().map(|top| {
        vec![
            shortened(&sentences::who(top), room),
            time(top.total_ns),
            number::count(top.waits as f64),
            time(top.longest_ns),
        ]
    });
    grid(&["time", "waits", "longest"], rows.collect())
}

fn under_way(calls: &[UnderWay], width: usize) -> Grid {
    let room = width.saturating_sub(15).max(30);
    let rows = calls.iter().map(|call| {
        vec![
            shortened(&sentences::under_way(call), room),
            time(call.so_far_ns),
        ]
    });
    grid(&["so far"], rows.collect())
}

fn layers(layers: &[Layer]) -> Grid {
    let total: u64 = layers.iter().map(|layer| layer.total_ns).sum();
    let rows = layers.iter().filter(|_| total > 0).map(|layer| {
        vec![
            format!("{}: {}", layer.layer, layer.words),
            time(layer.total_ns),
            share(layer.total_ns, total),
        ]
    });
    grid(&["time", "share"], rows.collect())
}

fn calls(report: &Report) -> Grid {
    let rows = report.calls.iter().map(|calls| {
        vec![
            calls.kind.clone(),
            number::count(calls.calls as f64),
            time(calls.total_ns),
            time(calls.blocked_ns),
            time(calls.longest_ns),
        ]
    });
    grid(&["calls", "time", "blocked", "longest"], rows.collect())
}

fn requests(io: &[Direction]) -> Grid {
    let rows = io.iter().map(|io| {
        vec![
            sentences::request(io),
            number::count(io.requests as f64),
            size(io.bytes),
            size(io.bytes.checked_div(io.requests).unwrap_or(0)),
            time(io.queued_ns),
            time(io.device_ns),
        ]
    });
    grid(
        &[
            "requests",
            "bytes",
            "mean size",
            "mean queued",
            "mean in device",
        ],
        rows.collect(),
    )
}

fn sizes(report: &Report) -> Grid {
    let rows = report.sizes.iter().map(|it| {
        vec![
            format!("up to {}", size(it.up_to_bytes)),
            number::count(it.reads as f64),
            number::count(it.writes as f64),
        ]
    });
    grid(&["reads", "writes"], rows.collect())
}

fn files(files: &[File], width: usize) -> Grid {
    let room = width.saturating_sub(50).max(30);
    let rows = files.iter().map(|file| {
        vec![
            shortened(&file.path, room),
            time(file.waited_ns),
            number::count(file.requests as f64),
            size(file.read_bytes),
            size(file.written_bytes),
            file.dof.map_or_else(String::new, |dof| format!("{dof:.2}")),
        ]
    });
    grid(
        &["waited", "requests", "read", "written", "DoF_L"],
        rows.collect(),
    )
}
