//! One knob: a small text file of the kernel's.

use crate::Error;
use rustix::fs::OFlags;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The value of the knob at `path`, as it could be written back: without the newline, and
/// of a knob that lists its choices (`none [mq-deadline] kyber`) the chosen one.
///
/// # Errors
/// [`Error::Read`], also for knobs that exist but refuse to be read.
pub fn read(path: &Path) -> Result<String, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let text = text.trim();
    let chosen = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Ok(chosen.unwrap_or(text).to_owned())
}

/// Writes `value` with one call, which is how the kernel takes it.
pub(crate) fn write(path: &Path, value: &str) -> Result<(), Error> {
    write_all_at_once(path, value).map_err(|source| Error::Write {
        path: path.to_owned(),
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
