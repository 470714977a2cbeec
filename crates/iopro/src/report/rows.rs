//! The report's tables, for its text and its page alike.

use super::{Calls, Direction, File, Layer, Size, Waiting, sentences};
use record::number;
use sentences::{share, time};

/// A table: a heading for each column, that of the labels first, and its rows.
#[derive(Debug)]
pub struct Table {
    pub headings: Vec<&'static str>,
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Default)]
pub struct Row {
    pub label: String,
    /// Meaning of the label; empty where it needs none.
    pub words: &'static str,
    pub cells: Vec<String>,
    /// Part and whole that a bar shows.
    pub bar: Option<(u64, u64)>,
}

impl Table {
    fn new<T>(headings: &[&'static str], all: &[T], row: impl Fn(&T) -> Row) -> Table {
        Table {
            headings: headings.to_vec(),
            rows: all.iter().map(row).collect(),
        }
    }
}

impl Row {
    fn new<const N: usize>(label: impl Into<String>, cells: [String; N]) -> Row {
        Row {
            label: label.into(),
            cells: cells.into(),
            ..Row::default()
        }
    }
}

fn count(count: u64) -> String {
    number::count(count as f64)
}

pub fn classes(waiting: &Waiting) -> Table {
    let headings = ["class", "time", "share", "waits", "longest"];
    Table::new(&headings, &waiting.classes, |class| {
        let cells = [
            time(class.total_ns),
            share(class.total_ns, waiting.total_ns),
            count(class.waits),
            time(class.longest_ns),
        ];
        Row {
            words: class.words,
            bar: Some((class.total_ns, waiting.total_ns)),
            ..Row::new(class.class.name(), cells)
        }
    })
}

pub fn top(waiting: &Waiting) -> Table {
    let headings = ["who waited for what", "time", "waits", "longest"];
    Table::new(&headings, &waiting.top, |top| {
        let cells = [time(top.total_ns), count(top.waits), time(top.longest_ns)];
        Row::new(sentences::who(top), cells)
    })
}

/// The layers; no rows if no time was spent.
pub fn layers(layers: &[Layer]) -> Table {
    let total: u64 = layers.iter().map(|layer| layer.total_ns).sum();
    let shown = if total > 0 { layers } else { &[] };
    Table::new(&["layer", "time", "share"], shown, |layer| Row {
        words: layer.words,
        bar: Some((layer.total_ns, total)),
        ..Row::new(
            layer.layer,
            [time(layer.total_ns), share(layer.total_ns, total)],
        )
    })
}

pub fn calls(calls: &[Calls]) -> Table {
    let headings = ["call", "calls", "time", "blocked", "longest"];
    Table::new(&headings, calls, |calls| {
        let cells = [
            count(calls.calls),
            time(calls.total_ns),
            time(calls.blocked_ns),
            time(calls.longest_ns),
        ];
        Row::new(&calls.kind, cells)
    })
}

pub fn requests(io: &[Direction]) -> Table {
    let headings = [
        "what",
        "requests",
        "bytes",
        "mean size",
        "mean queued",
        "mean in device",
    ];
    Table::new(&headings, io, |io| {
        let cells = [
            count(io.requests),
            number::bytes(io.bytes),
            number::bytes(io.bytes.checked_div(io.requests).unwrap_or(0)),
            time(io.queued_ns),
            time(io.device_ns),
        ];
        Row::new(sentences::request(io), cells)
    })
}

pub fn sizes(sizes: &[Size]) -> Table {
    let most = sizes.iter().map(|it| it.reads + it.writes).max();
    Table::new(&["size", "reads", "writes"], sizes, |it| Row {
        bar: Some((it.reads + it.writes, most.unwrap_or(0))),
        ..Row::new(
            format!("up to {}", number::bytes(it.up_to_bytes)),
            [count(it.reads), count(it.writes)],
        )
    })
}

/// The files; `waited` heads the time that tasks waited for each.
pub fn files(files: &[File], waited: &'static str) -> Table {
    let headings = ["file", waited, "requests", "read", "written", "DoF_L"];
    Table::new(&headings, files, |file| {
        let cells = [
            time(file.waited_ns),
            count(file.requests),
            number::bytes(file.read_bytes),
            number::bytes(file.written_bytes),
            file.dof.map_or_else(String::new, |dof| format!("{dof:.2}")),
        ];
        Row::new(&file.path, cells)
    })
}
