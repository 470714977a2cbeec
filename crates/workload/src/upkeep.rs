//! Upkeep: defragmentation of the phone every week or some, or of an aged app before it is opened.

use crate::Error;
use ::layout::defrag::{Choice, Found, MOST_FILES, Pace, Physical, Remap, Survey, most_read};
use record::policy::Upkeep;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

/// Performs the upkeep on all files below `directory`.
pub(crate) fn perform(upkeep: Upkeep, directory: &Path, stop: &AtomicBool) -> Result<(), Error> {
    match upkeep {
        Upkeep::NoDefrag => Ok(()),
        Upkeep::E4defrag | Upkeep::E4defragEveryTwo | Upkeep::E4defragEveryFour => {
            e4defrag(directory)
        }
        Upkeep::Copy => repair(directory, None, stop),
        Upkeep::Remap => remap(directory, stop),
        Upkeep::RemapAndSpread => {
            remap(directory, stop)?;
            spread(directory, stop)
        }
        Upkeep::Unaged => Err(failed("a phone that is used ages; choose another policy")),
    }
}

fn failed(reason: impl ToString) -> Error {
    Error::Upkeep(reason.to_string())
}

/// Runs e4defrag, which succeeds even if files are still in pieces.
fn e4defrag(directory: &Path) -> Result<(), Error> {
    let output = Command::new("e4defrag")
        .arg(directory)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LD_LIBRARY_PATH", sys::arch::NATIVE.libraries)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format_args!("e4defrag cannot be run: {error}")))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(format_args!(
            "e4defrag ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

fn remap(directory: &Path, stop: &AtomicBool) -> Result<(), Error> {
    let remap = Remap::of(directory).map_err(failed)?;
    let remap = remap.ok_or_else(|| failed("the device cannot remap"))?;
    repair(directory, Some(&remap), stop)
}

/// As `frontrow defrag --mode physical` without a recording.
fn spread(directory: &Path, stop: &AtomicBool) -> Result<(), Error> {
    let physical = Physical::of(directory).map_err(failed)?;
    let physical = physical.ok_or_else(|| failed("the device does not spread files"))?;
    let mut survey = Survey::with(directory, Some(&physical), stop).map_err(failed)?;
    if let Some(mut measure) = survey.measure() {
        survey
            .read(
                Found::Unspread,
                &mut measure,
                u64::MAX,
                &mut |_, _| {},
                stop,
            )
            .map_err(failed)?;
    }
    for finding in most_read(&survey.unspread, MOST_FILES, u64::MAX) {
        let spread = physical.spread(&finding.path, &mut Pace::new(None), stop);
        spread.map_err(failed)?;
    }
    Ok(())
}

/// As `frontrow defrag`.
fn repair(directory: &Path, remap: Option<&Remap>, stop: &AtomicBool) -> Result<(), Error> {
    let mut survey = Survey::of(directory, stop).map_err(failed)?;
    let Some(mut measure) = survey.measure() else {
        return Ok(());
    };
    survey
        .read(
            Found::Fragmented,
            &mut measure,
            u64::MAX,
            &mut |_, _| {},
            stop,
        )
        .map_err(failed)?;
    let choice = Choice {
        least_factor: Choice::usual_factor(remap.is_some()),
        limit_bytes: u64::MAX,
    };
    let mut last: Option<PathBuf> = None;
    for finding in ::layout::defrag::choose(&survey.fragmented, choice) {
        let path = &finding.path;
        // A file that is refused stays where it is.
        if ::layout::defrag::repair(Path::new("/"), path, remap, &mut Pace::new(None), stop).is_ok()
        {
            last = Some(path.clone());
        }
    }
    last.map_or(Ok(()), |it| ::layout::defrag::settle(&it).map_err(failed))
}
