//! Text report for a terminal.

use super::rows::{self, Table};
use super::{Report, sentences};
use record::table::grid::{Grid, Line, Text, wrapped};
use sentences::shortened;

/// The report as text. Lines have at most `width` columns, except where a word is longer.
pub fn render(report: &Report, width: usize) -> String {
    let report = &report.on_a_page();
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
    let all = usize::MAX;
    sections(
        &mut out,
        width,
        [
            (&*format!("Why {who} waited"), all, rows::classes(waiting)),
            (
                "The longest waits in sum",
                label_letters(width, 30),
                rows::top(waiting),
            ),
            (
                "Where their calls spent the time",
                all,
                rows::layers(&report.layers),
            ),
            ("Calls", all, rows::calls(&report.calls)),
            ("Requests", all, rows::requests(&report.io)),
            ("Sizes of requests", all, rows::sizes(&report.sizes)),
            (
                "Files",
                label_letters(width, 50),
                rows::files(&report.files, "waited"),
            ),
        ],
    );
    if report.foreground.total_ns > 0 && report.foreground.total_ns < report.everybody.total_ns {
        let title = "Everybody, the kernel's threads among them";
        sections(
            &mut out,
            width,
            [(title, all, rows::classes(&report.everybody))],
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

/// Most letters of labels beside cells that take `columns`.
fn label_letters(width: usize, columns: usize) -> usize {
    width.saturating_sub(columns).max(30)
}

/// Appends the tables that have rows, each below its title. The number with each is the most
/// letters of its labels.
fn sections<const N: usize>(out: &mut String, width: usize, all: [(&str, usize, Table); N]) {
    for (title, letters, table) in all {
        if !table.rows.is_empty() {
            out.push_str(&format!("\n{title}\n"));
            out.push_str(&grid(table, letters).render(width, false));
        }
    }
}

fn grid(table: Table, letters: usize) -> Grid {
    let headings = table.headings.iter().skip(1);
    let lines = table.rows.into_iter().map(|row| {
        let label = match row.words {
            "" => row.label,
            words => format!("{}: {words}", row.label),
        };
        let cells = row.cells.into_iter();
        let cells = cells.map(|cell| (Text::plain(cell), String::new()));
        Line::Cells(Text::plain(shortened(&label, letters)), cells.collect())
    });
    Grid {
        headings: headings.map(|heading| Text::plain(*heading)).collect(),
        repeated: 0,
        lines: lines.collect(),
    }
}
