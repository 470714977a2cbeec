//! Atomic writes: a file is written to a temporary file in its directory and renamed at the end, so it
//! has its old content or all of the new.

use crate::exit::{Exit, Failure};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A temporary file that will replace the file at a path. Dropping it leaves that file as it was.
pub struct AtomicFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl AtomicFile {
    /// Creates the temporary file for `path`, readable by all users. Fails at once if the directory is
    /// not writable.
    pub fn create(path: &Path) -> Result<AtomicFile, Failure> {
        AtomicFile::with_mode(path, 0o644)
    }

    /// As [`AtomicFile::create`], readable by this user only.
    pub fn create_private(path: &Path) -> Result<AtomicFile, Failure> {
        AtomicFile::with_mode(path, 0o600)
    }

    fn with_mode(path: &Path, mode: u32) -> Result<AtomicFile, Failure> {
        if !is_own_link(path) {
            let path = path.display();
            return Err(Failure::new(
                Exit::Refused,
                format_args!("{path} is a link of another user: give another path"),
            ));
        }
        // Replace the target of a link, not the link.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if path.exists() && !path.is_file() {
            let path = path.display();
            return Err(Failure::new(
                Exit::Refused,
                format_args!("{path} is not a regular file: give another path"),
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
        Ok(AtomicFile { file, path })
    }

    /// Appends to the temporary file.
    pub fn add(&mut self, content: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(content);
        written.map_err(|error| Failure::unwritable(&self.path, &error))
    }

    /// Appends `content` and replaces the file.
    pub fn write(self, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        let AtomicFile { mut file, path } = self;
        file.write_all(content.as_ref())
            .and_then(|()| file.persist(&path).map_err(io::Error::from))
            .map(drop)
            .map_err(|error| Failure::unwritable(&path, &error))
    }
}

/// Replaces the file at `path` by `content`, atomically.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    AtomicFile::create(path)?.write(content)
}

/// As [`write()`], readable by this user only.
pub fn write_private(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    AtomicFile::create_private(path)?.write(content)
}

/// Whether `path` is no link, or one of this user's. Another user's link could make root write to a file
/// that the other user may not write.
fn is_own_link(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let link = path.symlink_metadata().ok();
    let link = link.filter(|it| it.file_type().is_symlink());
    link.is_none_or(|it| it.uid() == own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_old_content_stays_until_the_new_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result");
        let link = directory.path().join("link");
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let new = AtomicFile::create(&link).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        new.write("new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(link.is_symlink());
        let names = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(names, 2, "nothing else is left");
    }

    #[test]
    fn a_private_file_is_readable_by_its_user_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        fs::write(&path, "of before").unwrap();
        write_private(&path, "private").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_link_of_another_user_is_not_followed() {
        // Only root can make a link of another user.
        if !rustix::process::geteuid().is_root() {
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
