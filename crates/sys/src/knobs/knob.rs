//! Access to a knob, which is a small text file of the kernel.

use crate::knobs::form::{Form, chosen};
use crate::knobs::{Error, below};
use rustix::fs::OFlags;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The text of the file at `path` without the blanks around it. Nothing in it has a meaning: what
/// it says may be a user's to choose.
///
/// # Errors
/// [`Error::Read`], also for knobs that exist but refuse to be read.
pub fn read(path: &Path) -> Result<String, Error> {
    Ok(text(path)?.trim().to_owned())
}

/// The word in brackets of a file that lists its choices (`none [integrity] confidentiality`);
/// all of its text if there is none.
///
/// # Errors
/// [`Error::Read`].
pub fn read_choice(path: &Path) -> Result<String, Error> {
    let text = text(path)?;
    Ok(chosen(&text).unwrap_or(text.trim()).to_owned())
}

/// The value of the knob at `path`, on the system below `root`, as it could be written back.
///
/// # Errors
/// [`Error::Read`] or [`Error::NoKnob`].
pub(crate) fn value(root: &Path, path: &Path) -> Result<String, Error> {
    Ok(form(path)?.value(&text(&below(root, path))?))
}

/// Format of the knob's file.
///
/// # Errors
/// [`Error::NoKnob`].
pub(crate) fn form(path: &Path) -> Result<Form, Error> {
    Form::of(path).ok_or_else(|| Error::NoKnob(path.to_owned()))
}

fn text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })
}

/// Writes `value` with one call, which is how the kernel takes it.
///
/// # Errors
/// [`Error::Write`] or [`Error::NoKnob`].
pub(crate) fn write(root: &Path, path: &Path, value: &str) -> Result<(), Error> {
    form(path)?;
    let path = below(root, path);
    write_all_at_once(&path, value).map_err(|source| Error::Write {
        path,
        value: value.to_owned(),
        source,
    })
}

fn write_all_at_once(path: &Path, value: &str) -> io::Result<()> {
    // Truncating makes no difference to the kernel's files and fixes those of tests. With
    // O_NONBLOCK a memory limit (from 6.16 on) is set without waiting for the reclaim that it
    // may ask for.
    let mut file = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    let written = file.write(value.as_bytes())?;
    if written < value.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(())
}
