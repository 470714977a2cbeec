//! A check and a repair in words.

use super::{Repair, Report};
use ::defrag::ReadTime;
use record::number::{count, factor, with_unit};
use std::fmt::Write;
use std::path::Path;

/// Files that are listed one by one.
const LISTED: usize = 10;

/// The whole text.
pub(super) fn text(report: &Report, path: &Path, check: bool) -> String {
    let mut text = String::new();
    let all = &report.all;
    let _ = writeln!(
        text,
        "{}: {} in {} ({}), {} of them in more pieces than need be",
        path.display(),
        megabytes(all.bytes),
        files(all.files),
        report.filesystem,
        count(report.fragmented.len() as f64),
    );
    if all.unreadable_files + all.encoded_files > 0 {
        let _ = writeln!(
            text,
            "  {} could not be opened; of {} the places tell nothing (compressed, or in the inode)",
            files(all.unreadable_files),
            files(all.encoded_files),
        );
    }
    let _ = writeln!(text, "{}", verdict(report));
    list(&mut text, report);
    match &report.repair {
        Some(repair) => repaired(&mut text, repair),
        None if check && report.worth_moving_files > 0 => {
            let _ = writeln!(
                text,
                "To repair: frontrow defrag {} (moves {} in {})",
                path.display(),
                megabytes(report.worth_moving_bytes),
                files(report.worth_moving_files),
            );
        }
        None => {}
    }
    text
}

/// Whether it hurts.
fn verdict(report: &Report) -> String {
    let reads: Vec<ReadTime> = report.fragmented.iter().filter_map(|it| it.read).collect();
    if report.fragmented.is_empty() {
        return "Nothing is fragmented.".to_owned();
    }
    if reads.is_empty() {
        return match report.measured {
            true => "No fragmented file could be read directly, so whether it hurts is not known.",
            false => "Reading was not measured.",
        }
        .to_owned();
    }
    let (lies, should) = sums(reads.iter());
    let said = format!(
        "Reading the {} that were measured takes {}, and their size should take {}: ×{}.",
        files(reads.len() as u64),
        with_unit(lies as f64, "ns"),
        with_unit(should as f64, "ns"),
        factor(lies as f64 / should.max(1) as f64),
    );
    match report.worth_moving_files {
        0 => format!("{said} Fragmentation does not hurt here."),
        worth => format!("{said} Fragmentation hurts in {}.", files(worth)),
    }
}

fn sums<'a>(reads: impl Iterator<Item = &'a ReadTime>) -> (u64, u64) {
    reads.fold((0, 0), |(lies, should), read| {
        (lies + read.as_it_lies_ns, should + read.should_take_ns)
    })
}

fn list(text: &mut String, report: &Report) {
    for finding in report.fragmented.iter().take(LISTED) {
        let read = match &finding.read {
            Some(read) => format!(
                "{} instead of {}",
                with_unit(read.as_it_lies_ns as f64, "ns"),
                with_unit(read.should_take_ns as f64, "ns")
            ),
            None => "not measured".to_owned(),
        };
        let _ = writeln!(
            text,
            "  DoF_L {:>5}  {:>9}  {read}  {}",
            factor(finding.dof_l),
            megabytes(finding.size_bytes),
            finding.path.display(),
        );
    }
    if report.fragmented.len() > LISTED {
        let more = report.fragmented.len() - LISTED;
        let _ = writeln!(text, "  and {} more (--json lists all)", files(more as u64));
    }
}

fn repaired(text: &mut String, repair: &Repair) {
    if repair.moved.is_empty() && repair.left.is_empty() {
        text.push_str("Nothing had to be moved.\n");
        return;
    }
    let before: u64 = repair
        .moved
        .iter()
        .map(|it| it.moved.fragments_before)
        .sum();
    let after: u64 = repair.moved.iter().map(|it| it.moved.fragments_after).sum();
    let _ = writeln!(
        text,
        "Moved {} in {}: {} pieces before, {} now.",
        megabytes(repair.moved_bytes),
        files(repair.moved.len() as u64),
        count(before as f64),
        count(after as f64),
    );
    if repair.remapped {
        let _ = writeln!(
            text,
            "The device gave {} of that another address instead of programming it again.",
            megabytes(repair.elided_bytes),
        );
    }
    let both = repair
        .moved
        .iter()
        .filter_map(|it| it.read_before.zip(it.read_after));
    let (lay, lies) = both.fold((0, 0), |(lay, lies), (before, after)| {
        (lay + before.as_it_lies_ns, lies + after.as_it_lies_ns)
    });
    if lies > 0 {
        let _ = writeln!(
            text,
            "Reading them took {} and takes {} now.",
            with_unit(lay as f64, "ns"),
            with_unit(lies as f64, "ns"),
        );
    }
    for left in repair.left.iter().take(LISTED) {
        let _ = writeln!(text, "  left {}: {}", left.path.display(), left.reason);
    }
    if repair.left.len() > LISTED {
        let more = (repair.left.len() - LISTED) as u64;
        let _ = writeln!(
            text,
            "  and {} more were left (--json says why)",
            files(more)
        );
    }
}

fn files(number: u64) -> String {
    match number {
        1 => "1 file".to_owned(),
        _ => format!("{} files", count(number as f64)),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", record::number::significant(bytes as f64 / 1e6))
}
