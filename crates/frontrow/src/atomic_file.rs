//! Atomic writes: a file is written to a temporary file in its directory and renamed at the end, so it
//! has its old content or all of the new.

use crate::exit::{Exit, Failure};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use sys::output::{Directory, Replacement, Workplace};

/// A temporary file that will replace the file at a path. Dropping it leaves that file as it was.
pub struct AtomicFile {
    file: Replacement,
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
        let file = Replacement::begin(path, mode).map_err(unwritable(path))?;
        let path = path.to_owned();
        Ok(AtomicFile { file, path })
    }

    /// Appends to the temporary file.
    pub fn add(&mut self, content: &[u8]) -> Result<(), Failure> {
        self.file.add(content).map_err(unwritable(&self.path))
    }

    /// Appends `content` and replaces the file.
    pub fn write(self, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        let AtomicFile { mut file, path } = self;
        file.add(content.as_ref())
            .and_then(|()| file.publish())
            .map_err(unwritable(&path))
    }
}

/// A private file that will replace the file at a path. It is written in a directory of its own, so a process
/// that is confined to that (`sys::confine`) can write it.
pub struct FileApart {
    work: Workplace,
    path: PathBuf,
}

/// Name in the directory.
const NAME: &str = "file";

impl FileApart {
    /// Makes the directory beside `path`. Fails at once if that cannot be written to.
    pub fn begin(path: &Path) -> Result<FileApart, Failure> {
        let work = Workplace::to_replace(path).map_err(unwritable(path))?;
        let path = path.to_owned();
        Ok(FileApart { work, path })
    }

    /// Directory that a confined process has to be allowed to write in.
    pub fn work(&self) -> &Workplace {
        &self.work
    }

    /// Writes the file and replaces the one at the path.
    pub fn write(self, content: impl AsRef<[u8]>) -> Result<(), Failure> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let written = options
            .open(self.work.path(NAME))
            .and_then(|mut file| file.write_all(content.as_ref()));
        written
            .and_then(|()| self.work.replace(NAME))
            .map_err(unwritable(&self.path))
    }
}

/// A refusal names its path and what to do.
pub(crate) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Failure {
    let path = path.to_owned();
    move |error| match sys::walk::is_refusal(&error) {
        true => Failure::new(Exit::Refused, error),
        false => Failure::unwritable(&path, &error),
    }
}

/// Replaces the file at `path` by `content`, atomically.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    AtomicFile::create(path)?.write(content)
}

/// As [`write()`], readable by this user only, for a name in an open directory, whose path is `shown` in errors.
pub fn write_private_in(
    directory: &Directory,
    shown: &Path,
    name: &str,
    content: impl AsRef<[u8]>,
) -> Result<(), Failure> {
    let path = shown.join(name);
    let file = Replacement::begin_in(directory, name, 0o600).map_err(unwritable(&path))?;
    AtomicFile { file, path }.write(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

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
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        AtomicFile::create_private(&path)
            .unwrap()
            .write("private")
            .unwrap();
        assert_eq!(mode(), 0o600);
        fs::write(&path, "of before").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        FileApart::begin(&path).unwrap().write("private").unwrap();
        assert_eq!(mode(), 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"private");
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
