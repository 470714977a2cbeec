//! Spreading of a file whose pages all are on one die over all dies (dissertation §4.4).

use super::{FILE_BYTES, content, holds, layout, sync};
use crate::failure::require;
use crate::test_bed::read;
use crate::{Failure, Outcome, TestBed};
use ::layout::defrag::{Pace, Physical, WORTH_SPREADING};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use sys::device::Pages;

/// Bytes that a die programs at once.
const ROW_BYTES: usize = 16 << 10;

/// Number of dies in the profile `ufs`.
const DIES: u64 = 8;

/// Largest deviation from an even share: the row with the file system's own writes.
const EVEN: f64 = 0.2;

pub(super) fn run(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let failed = |error: ::layout::defrag::Error| Failure::new(error.to_string());
    let physical = Physical::of(directory).map_err(failed)?;
    let physical = physical.ok_or_else(|| Failure::new("the device does not spread files"))?;
    let path = directory.join("on-one-die");
    let bytes = content(bed.seed, 99);
    lay_on_one_die(directory, &path, &bytes)?;
    let before = layout(&path)?.runs();

    let never = AtomicBool::new(false);
    let spread = || {
        let spread = physical.spread(&path, &mut Pace::new(None), &never);
        spread.map_err(|refusal| Failure::new(format!("it was not spread: {refusal}")))
    };
    let done = spread()?;
    require(
        done.dof_p_before >= WORTH_SPREADING && done.dof_p_after <= EVEN,
        || format!("it was not spread evenly: {done:?}"),
    )?;
    require(done.programmed_bytes == FILE_BYTES as u64, || {
        format!("other pages than the file's were programmed: {done:?}")
    })?;
    require(layout(&path)?.runs() == before, || {
        "its addresses have changed".to_owned()
    })?;
    let busy_before = all_busy_us(bed)?;
    crate::test_bed::drop_caches()?;
    read_at_once(&path)?;
    require(all_busy_us(bed)? > busy_before, || {
        "a read of it does not have all dies".to_owned()
    })?;
    holds(&path, &bytes)?;
    let again = spread()?;
    require(again.programmed_bytes == 0, || {
        format!("what lies well was spread again: {again:?}")
    })
}

/// Writes a file row by row, with another file's rows between for all other dies.
fn lay_on_one_die(directory: &Path, path: &Path, bytes: &[u8]) -> Outcome<()> {
    let rest = directory.join("rest");
    for (path, bytes) in [(path, bytes), (&rest, bytes)] {
        fs::write(path, bytes).map_err(Failure::io("write", path))?;
    }
    // The file system's own data are on the device, and the row that they began is ended.
    sync(directory)?;
    let (file, other) = (open_directly(path)?, open_directly(&rest)?);
    file.sync_all().map_err(Failure::io("flush", path))?;
    let mut row = Pages::zeroed(ROW_BYTES);
    for (number, part) in bytes.chunks(ROW_BYTES).enumerate() {
        row.copy_from_slice(part);
        let at = (number * ROW_BYTES) as u64;
        file.write_all_at(&row, at)
            .map_err(Failure::io("write", path))?;
        for left_out in 1..DIES {
            other
                .write_all_at(&row, left_out * ROW_BYTES as u64)
                .map_err(Failure::io("write", &rest))?;
        }
    }
    file.sync_all().map_err(Failure::io("flush", path))
}

fn open_directly(path: &Path) -> Outcome<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .map_err(Failure::io("open", path))
}

fn read_at_once(path: &Path) -> Outcome<()> {
    let mut pages = Pages::zeroed(FILE_BYTES);
    open_directly(path)?
        .read_exact_at(&mut pages, 0)
        .map_err(Failure::io("read", path))
}

/// Time in µs in which all dies were busy: the row with their number in the device's table.
fn all_busy_us(bed: &TestBed) -> Outcome<u64> {
    let text = read(&format!("/sys/kernel/debug/simflash/{}/stats", bed.device))?;
    let table = text.split("busy_dies").nth(1).unwrap_or_default();
    let mut rows = table.lines().map(|line| line.split_whitespace());
    let row = rows.find(|row| row.clone().next() == Some(&DIES.to_string()));
    let time = row.and_then(|mut row| row.nth(1)).map(str::parse);
    match time {
        Some(Ok(time)) => Ok(time),
        _ => Err(Failure::new("the device says nothing of its dies")),
    }
}
