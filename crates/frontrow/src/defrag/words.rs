//! Text output of a check and a repair.

use super::{LeftFile, Repair, Report, physical};
use ::layout::defrag::{Finding, ReadTime, Rearranged};
use record::number::{count, factor, with_unit};
use std::fmt::Write;
use std::path::Path;
use sys::plain::path as shown_path;

/// Most files that are listed.
const LISTED: usize = 10;

/// Files that were moved or spread, and those that were left.
pub(super) trait Files {
    /// Files that were left, with reasons.
    fn left(&self) -> &[LeftFile];
    /// Read times of each moved file, before and after.
    fn read_times(&self) -> Vec<(Option<ReadTime>, Option<ReadTime>)>;
}

impl Files for Repair {
    fn left(&self) -> &[LeftFile] {
        &self.left
    }

    fn read_times(&self) -> Vec<(Option<ReadTime>, Option<ReadTime>)> {
        let files = self.moved.iter();
        files.map(|it| (it.read_before, it.read_after)).collect()
    }
}

/// Complete text.
pub(super) fn text(report: &Report, path: &Path, check: bool) -> String {
    let mut text = String::new();
    let all = &report.all;
    let _ = writeln!(
        text,
        "{}: {} in {} ({}), {} of them in more pieces than need be",
        shown_path(path),
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
    list(&mut text, &report.fragmented, "DoF_L", |it| Some(it.dof_l));
    if let Some(unspread) = &report.unspread {
        on_few_dies(&mut text, unspread, path);
    }
    match &report.repair {
        Some(repair) => repaired(&mut text, repair),
        None if check && report.worth_moving_files > 0 => {
            let _ = writeln!(
                text,
                "To repair: frontrow defrag {} (moves {} in {})",
                shown_path(path),
                megabytes(report.worth_moving_bytes),
                files(report.worth_moving_files),
            );
        }
        None => {}
    }
    text
}

/// Sentence: whether fragmentation slows down reads.
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

/// Appends the files on few dies.
fn on_few_dies(text: &mut String, unspread: &[Finding], path: &Path) {
    let bytes = unspread.iter().map(|it| it.size_bytes).sum();
    let _ = match unspread.len() {
        0 => writeln!(
            text,
            "Every file is on more than half of the device's dies."
        ),
        number => writeln!(
            text,
            "On half of the device's dies or fewer (DoF_P ≥ 0.5): {} in {}. For those that are \
             read most:\n  frontrow defrag {} --mode physical",
            megabytes(bytes),
            files(number as u64),
            shown_path(path),
        ),
    };
}

/// Text about files that were, or will be, spread over dies.
pub(super) fn spread(report: &physical::Report, path: &Path) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: {} in {} ({}), {} of them on half of the device's dies or fewer",
        shown_path(path),
        megabytes(report.all.bytes),
        files(report.all.files),
        report.filesystem,
        count(report.unspread.len() as f64),
    );
    list(&mut text, &report.unspread, "DoF_P", |it| it.dof_p);
    let Some(repair) = &report.repair else {
        if report.worth_spreading_files > 0 {
            let _ = writeln!(
                text,
                "To spread the {} that are read most: frontrow defrag {} --mode physical \
                 (programs {} at most)",
                files(report.worth_spreading_files),
                shown_path(path),
                megabytes(report.worth_spreading_bytes),
            );
        }
        return text;
    };
    if repair.spread.is_empty() && repair.left.is_empty() {
        text.push_str("Nothing had to be spread.\n");
        return text;
    }
    let of = repair.spread.len().max(1) as f64;
    let mean = |dof_p: fn(&physical::SpreadFile) -> f64| -> f64 {
        repair.spread.iter().map(dof_p).sum::<f64>() / of
    };
    let _ = writeln!(
        text,
        "Spread {}, for which the device programmed {}: DoF_P {:.2} before, {:.2} now.",
        files(repair.spread.len() as u64),
        megabytes(repair.programmed_bytes),
        mean(|it| it.spread.dof_p_before),
        mean(|it| it.spread.dof_p_after),
    );
    outcome(&mut text, repair);
    text
}

/// Text for a device that rearranges all of its data.
pub(super) fn rearranged(device: &str, done: &Rearranged, path: &Path) -> String {
    let fragmented = match done.fragmented_bytes {
        Some(bytes) => format!("{} of it are fragmented", megabytes(bytes)),
        None => "how much of it is fragmented it does not say".to_owned(),
    };
    let verdict = match (done.required, done.done) {
        (false, _) => "It finds that it need not be defragmented.".to_owned(),
        (true, true) => "It has defragmented itself.".to_owned(),
        (true, false) => format!(
            "It finds that it should be defragmented: frontrow defrag {} --mode physical",
            shown_path(path)
        ),
    };
    format!("{device} has analysed itself: {fragmented}. {verdict}\n")
}

fn list(text: &mut String, findings: &[Finding], what: &str, dof: fn(&Finding) -> Option<f64>) {
    for finding in findings.iter().take(LISTED) {
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
            "  {what} {:>5}  {:>9}  {read}  {}",
            dof(finding).map_or_else(String::new, factor),
            megabytes(finding.size_bytes),
            shown_path(&finding.path),
        );
    }
    if findings.len() > LISTED {
        let more = findings.len() - LISTED;
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
    outcome(text, repair);
}

/// Appends the change of read times, and the files that were left.
fn outcome(text: &mut String, repair: &impl Files) {
    let times = repair.read_times().into_iter();
    let both = times.filter_map(|(before, after)| before.zip(after));
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
    for left in repair.left().iter().take(LISTED) {
        let _ = writeln!(text, "  left {}: {}", shown_path(&left.path), left.reason);
    }
    if repair.left().len() > LISTED {
        let more = (repair.left().len() - LISTED) as u64;
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
