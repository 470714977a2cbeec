//! Text of the live view.

use super::{Frame, Row, Shown};
use crate::page::{self, time};
use record::number;

/// Bars of a history, from the least to the most.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of the names, and of the figures between them and the history.
const WHO: usize = 16;
const CAUSE: usize = 23;
const BECAUSE: usize = 16;
const DISK: usize = 9;
const FIGURES: usize = 8;
/// Columns of the confidence.
const SURE: usize = 7;

/// Lines of a frame for so many columns: what the machine did, one line a row, and calls that go on. The
/// number is of the first row's line.
pub fn lines(frame: &Frame, rows: &[&Shown], columns: usize) -> (Vec<String>, usize) {
    let mut lines = vec![headline(frame)];
    lines.extend(disks(frame));
    if frame.lost_events > 0 {
        lines.push(format!(
            "{} events were lost, as too many happened",
            frame.lost_events
        ));
    }
    lines.push(String::new());
    let first = lines.len() + 1;
    lines.push(cells(
        ["who waits", "for", "because of", "disk", "ms a s", "sure"],
        "the last minute",
    ));
    let most_ns = rows.iter().flat_map(|it| &it.lost_ns).copied().max();
    let wide = columns.saturating_sub(cells([""; 6], "").chars().count());
    for shown in rows {
        lines.push(line(shown, frame, (most_ns.unwrap_or(0), wide)));
    }
    if rows.is_empty() {
        lines.push("nobody waited".to_owned());
    }
    if !frame.under_way.is_empty() {
        lines.push(String::new());
        lines.push("Calls that go on:".to_owned());
    }
    for call in &frame.under_way {
        let file = call.file.as_ref().map(|it| format!(" of {it}"));
        lines.push(format!(
            "{} in {}{} for {}",
            call.process,
            call.call,
            file.unwrap_or_default(),
            time(call.so_far_ns)
        ));
    }
    (lines, first)
}

/// All that is known of a row: its verdict with the evidence, its layers, and what the disk did meanwhile.
pub fn opened(row: &Row) -> Vec<String> {
    let mut text = page::in_words(&row.verdict);
    if let Some(advice) = &row.verdict.advice {
        text += &page::advice(advice);
    }
    text += "\nHow it waited:\n";
    for way in &row.ways {
        let (class, words) = (way.class.name(), way.class.words());
        text += &format!("  {:>9}  {words} ({class})\n", time(way.lost_ns));
    }
    text += "\nWhat the disk did meanwhile:\n";
    let served = &row.served;
    let mut part = |ns: u64, what: &str| {
        if ns > 0 {
            text += &format!("  {:>9}  {what}\n", time(ns));
        }
    };
    part(served.own_ns, "served the task that waited");
    part(served.process_ns, "served other threads of its process");
    for other in &served.others {
        part(other.ns, &format!("served {}", other.name));
    }
    part(
        served.unknown_ns,
        "served the file system, or it is not known whom",
    );
    part(served.idle_ns, "had nothing to do");
    text.lines().map(str::to_owned).collect()
}

fn headline(frame: &Frame) -> String {
    let watched = time(frame.watched_ns);
    let at = time(frame.at_ns);
    let Some(pressure) = frame.pressure else {
        return format!("frontrow top, recorded: {watched} that ended at {at}");
    };
    let share = |ns: u64| number::percent((ns as f64 / frame.watched_ns.max(1) as f64).min(1.0));
    format!(
        "frontrow top, level {} of 3, the last {watched}: held up by I/O {} of the time, by memory {}, by want of a CPU {}",
        frame.level.number(),
        share(pressure.io_ns),
        share(pressure.memory_ns),
        share(pressure.cpu_ns)
    )
}

fn disks(frame: &Frame) -> Option<String> {
    let seconds = frame.watched_ns.max(1) as f64 / 1e9;
    let rate = |bytes: u64| number::bytes((bytes as f64 / seconds) as u64);
    let disks = frame.disks.iter().map(|it| {
        let busy = (it.busy_ns as f64 / frame.watched_ns.max(1) as f64).min(1.0);
        format!(
            "{} {} busy, reads {}/s, writes {}/s",
            it.disk,
            number::percent(busy),
            rate(it.read_bytes),
            rate(it.written_bytes)
        )
    });
    let disks: Vec<_> = disks.collect();
    (!disks.is_empty()).then(|| disks.join("; "))
}

fn line(shown: &Shown, frame: &Frame, (most_ns, wide): (u64, usize)) -> String {
    let verdict = &shown.row.verdict;
    let ms_a_second = shown.now_ns() as f64 * 1e3 / frame.watched_ns.max(1) as f64;
    let culprit = verdict.culprit.as_deref().unwrap_or("-");
    cells(
        [
            &verdict.who,
            verdict.name,
            culprit,
            verdict.disk.as_deref().unwrap_or("-"),
            &format!("{ms_a_second:.0}"),
            page::sure(verdict.confidence),
        ],
        &history(shown, most_ns, wide),
    )
}

fn cells([who, cause, because, disk, lost, sure]: [&str; 6], history: &str) -> String {
    let (who, because) = (cut(who, WHO), cut(because, BECAUSE));
    let (cause, disk) = (cut(cause, CAUSE), cut(disk, DISK));
    format!(
        "{who:WHO$} {cause:CAUSE$} {because:BECAUSE$} {disk:DISK$} {lost:>FIGURES$} {sure:SURE$}  {history}"
    )
}

fn cut(text: &str, columns: usize) -> String {
    match text.chars().count() > columns {
        true => text.chars().take(columns - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// The newest intervals that have room, each as a bar; all rows have the same scale.
fn history(shown: &Shown, most_ns: u64, wide: usize) -> String {
    let skipped = shown.lost_ns.len().saturating_sub(wide);
    let bars = shown.lost_ns.iter().skip(skipped).map(|ns| match ns {
        0 => ' ',
        ns => {
            let top = BARS.len() as u128 - 1;
            let place = (u128::from(*ns) * top).div_ceil(u128::from(most_ns.max(1)));
            BARS[place.min(top) as usize]
        }
    });
    bars.collect()
}
