//! Boots that end while the scheduler is new: the next one does without it.
//!
//! The module is loaded before anybody can log in. If it broke the machine, each boot would break
//! the same way. So a marker with the boot's id is on disk before the first disk gets the scheduler,
//! and goes once the machine has run for a while or was switched off in order. A marker of another
//! boot is that of one which ended otherwise.

use crate::sched::Error;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use sys::{PathError, durable, places};

const MARKER: &str = "starting";
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
const COMMAND_LINE: &str = "proc/cmdline";
/// On the kernel's command line: for a machine that cannot be logged into otherwise.
const TURNED_OFF: [&str; 2] = ["frontrow.disable=1", "frontrow.disable"];

/// Leaves the marker of this boot. To be called before a disk gets the scheduler at boot.
///
/// # Errors
/// [`Error::TurnedOff`], [`Error::BootFailed`], or [`Error::File`] where no marker can be left.
pub fn begin(root: &Path) -> Result<(), Error> {
    if is_turned_off(root)? {
        return Err(Error::TurnedOff);
    }
    let boot_id = read(&root.join(BOOT_ID))?;
    let marker = marker(root);
    match fs::read_to_string(&marker) {
        Ok(other) if other == boot_id => Ok(()),
        Ok(_) => Err(Error::BootFailed),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let left = durable::write(&marker, boot_id.as_bytes());
            left.map_err(|source| failed(&marker, source))
        }
        Err(error) => Err(failed(&marker, error)),
    }
}

/// Whether the user turned the scheduler off for this boot, on the kernel's command line.
///
/// # Errors
/// [`Error::File`].
pub fn is_turned_off(root: &Path) -> Result<bool, Error> {
    let command_line = read(&root.join(COMMAND_LINE))?;
    let mut words = command_line.split_whitespace();
    Ok(words.any(|word| TURNED_OFF.contains(&word)))
}

/// Whether this boot goes without the scheduler, for an earlier one broke off with it.
pub fn is_without(root: &Path) -> bool {
    let left = fs::read_to_string(marker(root));
    let boot_id = read(&root.join(BOOT_ID));
    matches!((left, boot_id), (Ok(left), Ok(boot_id)) if left != boot_id)
}

/// Takes this boot's marker away: it went well. That of another boot stays.
///
/// # Errors
/// [`Error::File`].
pub fn went_well(root: &Path) -> Result<(), Error> {
    match is_without(root) {
        true => Ok(()),
        false => settle(root),
    }
}

/// Takes any marker away: somebody wants the scheduler at boot.
///
/// # Errors
/// [`Error::File`].
pub fn settle(root: &Path) -> Result<(), Error> {
    let marker = marker(root);
    durable::remove(&marker).map_err(|source| failed(&marker, source))
}

fn marker(root: &Path) -> PathBuf {
    places::across_reboots(root).join(MARKER)
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| failed(path, source))
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::File(PathError::of("access", path)(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(root: &Path, id: &str, command_line: &str) {
        for (path, text) in [(BOOT_ID, id), (COMMAND_LINE, command_line)] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn after_a_boot_that_failed_the_next_ones_do_without_until_somebody_says_so() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        boot(root, "first\n", "quiet\n");
        begin(root).unwrap();
        // Another disk.
        begin(root).unwrap();
        boot(root, "second\n", "quiet\n");
        assert!(matches!(begin(root), Err(Error::BootFailed)));
        boot(root, "third\n", "quiet\n");
        assert!(is_without(root));
        assert!(matches!(begin(root), Err(Error::BootFailed)));
        settle(root).unwrap();
        settle(root).unwrap();
        begin(root).unwrap();
        assert!(!is_without(root));
        went_well(root).unwrap();
        boot(root, "fourth\n", "quiet\n");
        begin(root).unwrap();
    }

    #[test]
    fn the_command_line_turns_it_off() {
        let root = tempfile::tempdir().unwrap();
        for (command_line, off) in [
            ("quiet frontrow.disable=1\n", true),
            ("frontrow.disable quiet\n", true),
            ("frontrow.disable=0\n", false),
        ] {
            boot(root.path(), "boot\n", command_line);
            let begun = begin(root.path());
            assert_eq!(
                matches!(begun, Err(Error::TurnedOff)),
                off,
                "{command_line}"
            );
        }
    }

    #[test]
    fn where_no_marker_can_be_left_nothing_is_risked() {
        let root = tempfile::tempdir().unwrap();
        boot(root.path(), "boot\n", "\n");
        fs::write(root.path().join("var"), "").unwrap();
        assert!(matches!(begin(root.path()), Err(Error::File(_))));
    }
}
