//! Files that are whole or as they were: written beside their place, moved there at the end.

use crate::exit::{Exit, Failure};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A file that is to be at a path.
pub struct Whole {
    file: NamedTempFile,
    path: PathBuf,
}

impl Whole {
    /// One for `path` that everybody may read: fails at once where nothing can be written.
    pub fn create(path: &Path) -> Result<Whole, Failure> {
        Whole::with_mode(path, 0o644)
    }

    /// One that only this user can read.
    pub fn create_private(path: &Path) -> Result<Whole, Failure> {
        Whole::with_mode(path, 0o600)
    }

    fn with_mode(path: &Path, mode: u32) -> Result<Whole, Failure> {
        if !is_own_link(path) {
            let path = path.display();
            return Err(Failure::new(
                Exit::Refused,
                format_args!("{path} is a link of somebody else's: give another path to write to"),
            ));
        }
        // Of a link, where it leads to.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if path.exists() && !path.is_file() {
            let path = path.display();
            return Err(Failure::new(
                Exit::Refused,
                format_args!("{path} is not a file: give another path to write to"),
            ));
        }
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let file = Builder::new()
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(directory)
            .map_err(|error| Failure::unwritable(path, &error))?;
        let path = path.to_owned();
        Ok(Whole { file, path })
    }

    /// Adds to its content.
    pub fn add(&mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)
    }

    /// Puts it where it belongs, with this content behind what was added.
    pub fn write(self, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        let Whole { mut file, path } = self;
        file.write_all(content.as_ref())
            .and_then(|()| file.persist(&path).map_err(io::Error::from))
            .map(drop)
            .map_err(|error| Failure::unwritable(&path, &error))
    }
}

/// Makes the file at `path` hold this content, or leaves it as it was.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    Whole::create(path)?.write(content)
}

/// The same for what only this user may know.
pub fn write_private(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    Whole::create_private(path)?.write(content)
}

/// Where others may make links, theirs would lead root to where they may not write.
fn is_own_link(path: &Path) -> bool {
    // SAFETY: has no arguments and cannot fail.
    let own = unsafe { libc::geteuid() };
    let link = path.symlink_metadata().ok();
    let link = link.filter(|it| it.file_type().is_symlink());
    link.is_none_or(|it| it.uid() == own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_there_stays_until_there_is_something_better() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result");
        let link = directory.path().join("link");
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let new = Whole::create(&link).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        new.write("new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(link.is_symlink());
        let names = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(names, 2, "nothing else is left");
    }

    #[test]
    fn what_only_this_user_may_know_others_cannot_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        fs::write(&path, "of before").unwrap();
        write_private(&path, "private").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_link_that_somebody_else_made_is_not_followed() {
        // Only root can make somebody else's.
        // SAFETY: has no arguments and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let precious = directory.path().join("shadow");
        let link = directory.path().join("report");
        fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        assert_eq!(write(&link, "x").unwrap_err().exit, Exit::Refused);
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
    }

    #[test]
    fn devices_and_directories_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        for path in [Path::new("/dev/null"), directory.path()] {
            let refused = write(path, "x").unwrap_err();
            assert_eq!(refused.exit, Exit::Refused, "{}", refused.sentence);
        }
    }
}
