//! The account of a trace as text, and the refusal to play one of which too much is left out.

use crate::exit::{Exit, Failure};
use ::replay::Account;
use record::number::count;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Refuses a trace if more of its reads, writes and flushes would be left out than `allowed_percent`, or if
/// nothing of it would be played.
pub(super) fn check(account: &Account, allowed_percent: f64) -> Result<(), Failure> {
    let percent = account.left_out_percent();
    if account.played_events == 0 {
        return Err(refused(format_args!(
            "nothing of the trace can be played; left out would be {}",
            kinds(&account.left_out)
        )));
    }
    if percent <= allowed_percent {
        return Ok(());
    }
    Err(refused(format_args!(
        "{percent:.1} % of the trace's reads, writes and flushes would be left out ({} of {}); not played would be {}: \
         --allow-left-out {:.0}% plays the rest",
        count(account.left_out_data_operations as f64),
        count((account.left_out_data_operations + account.played_data_operations) as f64),
        kinds(&account.left_out),
        percent.ceil(),
    )))
}

fn refused(sentence: std::fmt::Arguments) -> Failure {
    Failure::new(Exit::LeftOut, sentence)
}

/// Lines that say what was read, played, changed and left out.
pub(super) fn text(account: &Account) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "of the trace\'s {} events {} are played",
        count(account.read_events as f64),
        count(account.played_events as f64),
    );
    if !account.changed.is_empty() {
        let _ = writeln!(text, "  changed: {}", kinds(&account.changed));
    }
    if !account.left_out.is_empty() {
        let _ = writeln!(text, "  left out: {}", kinds(&account.left_out));
    }
    if account.left_out_data_operations > 0 {
        let _ = writeln!(
            text,
            "  of its reads, writes and flushes {:.1} % are left out ({})",
            account.left_out_percent(),
            count(account.left_out_data_operations as f64),
        );
    }
    for note in &account.notes {
        let _ = writeln!(text, "  {note}");
    }
    text
}

fn kinds(counts: &BTreeMap<String, u64>) -> String {
    let one = |(kind, number): (&String, &u64)| format!("{} {kind}", count(*number as f64));
    let kinds: Vec<String> = counts.iter().map(one).collect();
    kinds.join(", ")
}
