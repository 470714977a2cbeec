//! Text of a diagnosis.

use crate::cause::{Cause, Kind};
use crate::judge::{Advice, Confidence, Diagnosis, Verdict};
use record::number;

pub(crate) fn time(ns: u64) -> String {
    number::with_unit(ns as f64, "ns")
}

/// Complete page as text.
pub fn text(diagnosis: &Diagnosis) -> String {
    let watched = diagnosis.watched_ns.max(1) as f64;
    let percent = |ns: u64| number::percent(ns as f64 / watched);
    let failing = diagnosis.failing.iter();
    let mut text: String = failing.map(|it| format!("{it}.\n")).collect();
    text += &format!("{}\n", headline(diagnosis));
    if let Some(first) = diagnosis.verdicts.first() {
        text += &answer(first);
    }
    text += &format!(
        "\nWatched {} at level {} of 3 ({}).\n",
        watched_time(diagnosis),
        diagnosis.level.number(),
        diagnosis.level.sees()
    );
    for lacks in &diagnosis.cannot_see {
        text += &format!("Cannot see: {lacks}.\n");
    }
    let pressure = diagnosis.pressure;
    text += &format!(
        "Some task was held up by I/O {} of the time, by memory {}, by want of a CPU {}.\n",
        percent(pressure.io_ns),
        percent(pressure.memory_ns),
        percent(pressure.cpu_ns),
    );
    if let Some(apps) = held_up(diagnosis) {
        text += &format!("By I/O: {apps}.\n");
    }
    for (place, verdict) in diagnosis.verdicts.iter().enumerate() {
        text += &format!("\n{}. {}", place + 1, in_words(verdict));
        let before = diagnosis.verdicts[..place].iter();
        text += &match &verdict.advice {
            None => String::new(),
            Some(known)
                if before
                    .map(|it| &it.advice)
                    .any(|it| it.as_ref() == Some(known)) =>
            {
                format!("   Would help: {}, as above\n", known.command)
            }
            Some(known) => advice(known),
        };
    }
    if !diagnosis.findings.is_empty() {
        text += "\nFound without watching:\n";
    }
    for finding in &diagnosis.findings {
        text += &format!("- {}\n", finding.sentence);
        text += &finding.advice.as_ref().map_or(String::new(), advice);
    }
    text
}

/// Who waited, because of whom, and what to do about it.
fn answer(first: &Verdict) -> String {
    let advised = first.advice.as_ref().map(|it| it.command.as_str());
    let to_do = advised.or(first.to_do.as_deref());
    let to_do = to_do.map(|it| format!("What to do: {it}.\n"));
    format!("{}.\n{}", sentence(first), to_do.unwrap_or_default())
}

/// Who waited, for what, and because of whom, without the dot.
pub(crate) fn sentence(verdict: &Verdict) -> String {
    let (who, waited) = (&verdict.who, time(verdict.who_ns));
    let mut text = format!("{who} waited {waited} {}", verdict.cause.row().meaning);
    if let Some(culprit) = &verdict.culprit {
        text += &format!(", because of {culprit}{}", verdict.relation);
    }
    if let Some(disk) = &verdict.disk {
        text += &format!("; disk {disk}");
    }
    text
}

/// The apps that were held up for more than a hundredth of the time, and how long.
pub(crate) fn held_up(diagnosis: &Diagnosis) -> Option<String> {
    let is_much = |ns: u64| 100 * ns >= diagnosis.watched_ns;
    let apps = diagnosis.held_up.iter().filter(|it| is_much(it.io_ns));
    let apps: Vec<_> = apps
        .map(|it| format!("{} {}", it.app, time(it.io_ns)))
        .collect();
    (!apps.is_empty()).then(|| apps.join(", "))
}

/// For how long it was watched, around which stall, and that this was less than asked for.
pub(crate) fn watched_time(diagnosis: &Diagnosis) -> String {
    let watched = time(diagnosis.watched_ns);
    if let Some(ended) = diagnosis.until_stall {
        let (asked, awaited) = (time(ended.asked_ns), time(ended.awaited_ns));
        return match ended.stalled_ns {
            Some(stalled) => format!(
                "{watched}, the last of {awaited}, with a stall of {},",
                time(stalled)
            ),
            None => format!("{watched}, the last of {awaited} without a stall of {asked},"),
        };
    }
    match diagnosis.ended_early_of_ns {
        Some(asked) => format!("{watched} of {}, ended early,", time(asked)),
        None => watched,
    }
}

/// First sentence of the page.
pub fn headline(diagnosis: &Diagnosis) -> String {
    let Some(first) = diagnosis.verdicts.first() else {
        return "Nothing to see: hardly any time was lost to storage, memory or CPUs.".to_owned();
    };
    match first.kind {
        Kind::Elsewhere if first.cause == Cause::Cpu => {
            "Not storage: what was waited for was a CPU.".to_owned()
        }
        Kind::Elsewhere if first.cause == Cause::Idle => {
            "Nothing to see: who waits is idle, and the kernel counts it as I/O.".to_owned()
        }
        Kind::Elsewhere => format!("Not this machine's disks: {}.", first.name),
        Kind::Memory => format!("Not the storage's fault: memory is short ({}).", first.name),
        Kind::Storage => format!("Storage: {}.", first.name),
    }
}

pub(crate) fn sure(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Sure => "sure",
        Confidence::Likely => "likely",
        Confidence::Guess => "a guess",
    }
}

pub(crate) fn in_words(verdict: &Verdict) -> String {
    let sure = sure(verdict.confidence);
    let mut text = format!(
        "{}: {} of the lost time, {}; {sure}\n   {}.\n",
        verdict.name,
        number::percent(verdict.share),
        time(verdict.lost_ns),
        sentence(verdict)
    );
    if let Some(to_do) = &verdict.to_do {
        text += &format!("   To do: {to_do}.\n");
    }
    if verdict.longest_ns > 0 {
        let longest = time(verdict.longest_ns);
        text += &format!("   Waits: {}, the longest {longest}", verdict.waits);
        if let Some(file) = &verdict.file {
            text += &format!("; most on {file}");
        }
        text += ".\n";
    }
    for evidence in &verdict.evidence {
        text += &format!("   Seen: {evidence}.\n");
    }
    text
}

pub(crate) fn advice(advice: &Advice) -> String {
    format!(
        "   Would help: {}\n     changes: {}\n     undo:    {}\n     brings:  {}\n",
        advice.command, advice.changes, advice.undo, advice.brings
    )
}
