//! Sentences of the report.

use super::{Class, Count, Direction, Report, Top, Waiting, linked_share};
use record::number;

/// A time in nanoseconds with the unit that suits its size.
pub fn time(ns: u64) -> String {
    number::with_unit(ns as f64, "ns")
}

/// A part of a whole in percent; empty if the whole is 0.
pub fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        whole => number::percent(part as f64 / whole as f64),
    }
}

fn part_of(class: &Class, waiting: &Waiting) -> String {
    let share = share(class.total_ns, waiting.total_ns);
    format!("{share} of it {} ({})", class.words, class.class)
}

/// The most important result of the report, in one sentence.
pub fn headline(report: &Report) -> String {
    let recording = &report.recording;
    let (waiting, who) = chief(report);
    let duration = time(recording.duration_ns);
    let Some(first) = waiting.classes.first() else {
        return format!("In {duration} nobody was blocked in the storage stack.");
    };
    format!(
        "In {duration}, {who} waited {} in the storage stack, {}.",
        time(waiting.total_ns),
        part_of(first, waiting)
    )
}

/// The waiting that the report is about, and the words for whose it is.
pub fn chief(report: &Report) -> (&Waiting, String) {
    match report.foreground.total_ns {
        0 => (&report.everybody, "all tasks together".to_owned()),
        _ => (&report.foreground, whose(&report.recording.target)),
    }
}

/// Words for the foreground in a sentence.
pub fn whose(target: &str) -> String {
    match target {
        "everybody" => "all programs together".to_owned(),
        target => shortened(target, TARGET),
    }
}

/// Most letters of a target's name in a sentence.
const TARGET: usize = 48;

/// Cuts `text` in the middle to `room` letters: paths tell most at both ends.
pub fn shortened(text: &str, room: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= room {
        return text.to_owned();
    }
    let (head, tail) = (room / 2, room - room / 2 - 1);
    let head: String = letters[..head].iter().collect();
    let tail: String = letters[letters.len() - tail..].iter().collect();
    format!("{head}…{tail}")
}

/// The longest single wait, in one sentence; None without waits.
pub fn longest(report: &Report) -> Option<String> {
    let longest = chief(report).0.longest.as_ref()?;
    Some(format!(
        "The longest single wait took {}, {} after the begin: {}.",
        time(longest.what.total_ns),
        time(longest.at_ns),
        who(&longest.what)
    ))
}

/// Most classes that get a sentence each.
const REASONS: usize = 3;

/// One sentence for each of the classes with the longest waiting.
pub fn reasons(waiting: &Waiting) -> Vec<String> {
    let told = waiting.classes.iter().take(REASONS);
    told.filter_map(|class| reason(waiting, class)).collect()
}

/// The share of a class in all waiting, and where most of it was.
fn reason(waiting: &Waiting, class: &Class) -> Option<String> {
    let most = waiting.top.iter().find(|top| top.class == class.class)?;
    let mut text = format!(
        "{} {}: {}",
        share(class.total_ns, waiting.total_ns),
        class.words,
        call_of(most)
    );
    if most.total_ns < class.total_ns {
        let part = share(most.total_ns, class.total_ns);
        text.push_str(&format!(" has {part} of that"));
    }
    if let Some(other) = &most.other {
        text.push_str(&format!(", because of {}", name(other)));
    }
    if let Some(cause) = most.cause {
        text.push_str(&format!(", which itself waited {}", cause.words()));
    }
    text.push('.');
    Some(text)
}

/// A file gets a sentence on fragments from this DoF_L and this share of all waiting on.
const FRAGMENTED: f64 = 2.0;
const WORTH_A_WORD: f64 = 0.05;

/// The most awaited file that is fragmented, in one sentence; None if there is none.
pub fn fragmented(report: &Report) -> Option<String> {
    let least_ns = (report.everybody.total_ns as f64 * WORTH_A_WORD) as u64;
    let waited = report.files.iter();
    let mut waited = waited.filter(|file| file.waited_ns > 0 && file.waited_ns >= least_ns);
    let file = waited.find(|file| file.dof.is_some_and(|dof| dof >= FRAGMENTED))?;
    Some(format!(
        "{}, waited for {}, is fragmented: what was accessed of it is in {:.1} times as many \
         pieces on the device as it need be.",
        file.path,
        time(file.waited_ns),
        file.dof?
    ))
}

/// The operation of requests and their content, if the content says more.
pub fn request(io: &Direction) -> String {
    match io.op == io.content {
        true => io.op.clone(),
        false => format!("{} {}", io.op, io.content),
    }
}

/// Who waited, in which call, on which file, for what and because of whom.
pub fn who(top: &Top) -> String {
    format!("{}, {}", call_of(top), why(top))
}

/// The process that waited, with its call and its file.
fn call_of(top: &Top) -> String {
    let mut text = name(&top.process).to_owned();
    if let Some(call) = &top.call {
        text.push_str(&format!(" in {call}"));
    }
    if let Some(file) = &top.file {
        text.push_str(&format!(" of {file}"));
    }
    text
}

/// The class of waits, their cause, and the task at the other end.
pub fn why(top: &Top) -> String {
    let mut text = top.class.to_string();
    if let Some(cause) = &top.cause {
        text.push_str(&format!(" caused by {cause}"));
    }
    if let Some(other) = &top.other {
        text.push_str(&format!(", because of {}", name(other)));
    }
    text
}

/// A process's name in a sentence, also where it is not known.
pub fn name(process: &str) -> &str {
    match process {
        "" => "(unknown)",
        name => name,
    }
}

/// Number and kind of lost events, in one sentence.
pub fn lost(lost: &Count) -> String {
    format!(
        "{} events of the {} were lost: more happened at once than the buffers hold.",
        lost.count, lost.kind
    )
}

/// What could not be recorded or linked, in one sentence each.
pub fn caveats(report: &Report) -> Vec<String> {
    let mut caveats = Vec::new();
    let recording = &report.recording;
    match recording.ending.as_str() {
        "cut short" => caveats
            .push("The recording was cut short: this is what is in it up to there.".to_owned()),
        "damaged" => caveats.push(
            "The end of the recording is damaged: this is what is in it up to there.".to_owned(),
        ),
        _ => {}
    }
    caveats.extend(recording.lost.iter().map(lost));
    caveats.extend(recording.missing.iter().cloned());
    for unlinked in &report.unlinked {
        caveats.push(format!(
            "{} of {} {}.",
            unlinked.count, unlinked.of, unlinked.kind
        ));
    }
    caveats
}

/// The linked share of buffered writes, in one sentence; None where nothing was written.
pub fn linked(report: &Report) -> Option<String> {
    let share = linked_share(&report.writes)?;
    let kinds = report.writes.iter();
    let kinds: Vec<String> = kinds
        .map(|it| format!("{} {}", number::count(it.count as f64), meaning(&it.kind)))
        .collect();
    Some(format!(
        "{:.2} % of the dirtied page versions that were written are linked to their request ({}).",
        share * 100.0,
        kinds.join(", ")
    ))
}

fn meaning(kind: &str) -> &str {
    match kind {
        "write" => "written",
        "overwritten" => "overwritten before",
        "truncated" => "truncated before",
        "removed" => "removed before",
        "pending" => "not yet written",
        other => other,
    }
}
