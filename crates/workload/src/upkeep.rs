//! Who defragments the phone, once a week.

use crate::Error;
use ::defrag::{Choice, Pace, Remap, Survey};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

/// How the phone's files are kept in few pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Upkeep {
    /// They are not.
    #[default]
    None,
    /// e2fsprogs' e4defrag, of everything.
    E4defrag,
    /// `frontrow defrag --mode copy`.
    Copy,
    /// `frontrow defrag`, on a device that remaps.
    Remap,
}

impl FromStr for Upkeep {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "no-defrag" => Upkeep::None,
            "e4defrag-1w" => Upkeep::E4defrag,
            "copy-1w" => Upkeep::Copy,
            "janusd-l" => Upkeep::Remap,
            _ => {
                return Err(Error::UnknownUpkeep {
                    name: name.to_owned(),
                    choices: record::policy::UPKEEPS.join(", "),
                });
            }
        })
    }
}

impl Upkeep {
    /// Does it, to all files below `directory`.
    pub(crate) fn perform(self, directory: &Path, stop: &AtomicBool) -> Result<(), Error> {
        match self {
            Upkeep::None => Ok(()),
            Upkeep::E4defrag => e4defrag(directory),
            Upkeep::Copy => repair(directory, None, stop),
            Upkeep::Remap => {
                let remap = Remap::of(directory).map_err(failed)?;
                let Some(remap) = remap else {
                    return Err(failed("the device cannot remap"));
                };
                repair(directory, Some(&remap), stop)
            }
        }
    }
}

fn failed(reason: impl ToString) -> Error {
    Error::Upkeep(reason.to_string())
}

/// It ends well also where it left files in pieces.
fn e4defrag(directory: &Path) -> Result<(), Error> {
    let output = Command::new("e4defrag")
        .arg(directory)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LD_LIBRARY_PATH", "/lib/x86_64-linux-gnu")
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

/// As `frontrow defrag` does it.
fn repair(directory: &Path, remap: Option<&Remap>, stop: &AtomicBool) -> Result<(), Error> {
    let mut survey = Survey::of(directory, stop).map_err(failed)?;
    let Some(mut measure) = survey.measure() else {
        return Ok(());
    };
    survey
        .read_all(&mut measure, u64::MAX, &mut |_, _| {}, stop)
        .map_err(failed)?;
    let choice = Choice {
        least_factor: Choice::usual_factor(remap.is_some()),
        limit_bytes: u64::MAX,
    };
    let mut last: Option<PathBuf> = None;
    for finding in ::defrag::choose(&survey.fragmented, choice) {
        let path = &finding.path;
        // What is refused stays where it is.
        if ::defrag::repair(Path::new("/"), path, remap, &mut Pace::new(None), stop).is_ok() {
            last = Some(path.clone());
        }
    }
    last.map_or(Ok(()), |it| ::defrag::settle(&it).map_err(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policys_upkeep_is_known_and_no_other() {
        for name in record::policy::UPKEEPS {
            name.parse::<Upkeep>().unwrap();
        }
        let error = "monthly".parse::<Upkeep>().unwrap_err().to_string();
        assert!(error.contains("janusd-l"), "{error}");
    }
}
