//! Files that a command writes for its user: private, at a path that others cannot redirect, and
//! complete or absent.
//!
//! Root records what all users do, and may be told to write into a directory in which others
//! create, rename and remove as they like. So no link in the place of an output is followed, and
//! what is written in steps is written in a directory that only its maker can enter, reached by
//! descriptor: whoever moves it away moves it along with what is in it.

use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, TempDir};

/// An empty file at `path` that only this user can read. One that is there is taken if it is this
/// user's, by no other name as well.
///
/// # Errors
/// What the system says; [`ErrorKind::AlreadyExists`] for a link, a pipe, a device, or a file of
/// somebody else's.
pub fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits() as i32)
        .open(path);
    let is_link = Errno::LOOP.raw_os_error();
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(is_link) => return Err(taken()),
        opened => opened?,
    };
    let metadata = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if !metadata.is_file() || metadata.uid() != own || metadata.nlink() != 1 {
        return Err(taken());
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.set_len(0)?;
    Ok(file)
}

fn taken() -> io::Error {
    io::Error::new(
        ErrorKind::AlreadyExists,
        "a link, a device or another user's file has this name: give another name, or remove it",
    )
}

/// Prefix of temporary files' names.
const PREFIX: &str = ".frontrow-";

/// A directory of this user's own beside the place that something is to have.
#[derive(Debug)]
pub struct Workplace {
    /// Removed with all that is in it when this is dropped.
    _directory: TempDir,
    handle: File,
}

impl Workplace {
    /// Makes one beside `output`, on the same file system.
    ///
    /// # Errors
    /// What the system says.
    pub fn beside(output: &Path) -> io::Result<Self> {
        let parent = match output.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let parent = parent.canonicalize()?;
        remove_abandoned(&parent)?;
        let directory = Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        match lock_own(directory.path())? {
            Some(handle) => Ok(Workplace {
                _directory: directory,
                handle,
            }),
            None => Err(taken()),
        }
    }

    /// The path of `name` in it, for this process and those that it starts.
    pub fn path(&self, name: &str) -> PathBuf {
        let process = std::process::id();
        let descriptor = self.handle.as_raw_fd();
        PathBuf::from(format!("/proc/{process}/fd/{descriptor}/{name}"))
    }

    /// Moves `name` to its place, where nothing may be.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], or what else the system says.
    pub fn publish(self, name: &str, output: &Path) -> io::Result<()> {
        match renameat_with(&self.handle, name, CWD, output, RenameFlags::NOREPLACE) {
            // Not every file system can; those of network servers cannot.
            Err(Errno::INVAL) if output.symlink_metadata().is_err() => {
                renameat(&self.handle, name, CWD, output)?;
            }
            outcome => outcome?,
        }
        Ok(())
    }
}

/// Removes temporary files of this user's killed commands, which are hidden and may have gigabytes.
fn remove_abandoned(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        let is_named = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes());
        // One that cannot be opened is left.
        if is_named && let Ok(Some(_lock)) = lock_own(&entry.path()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// The directory, locked for as long as it is open; `None` if it is another user's, or in use.
fn lock_own(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY;
    let directory = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    let metadata = directory.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own || metadata.mode() & 0o077 != 0 {
        return Ok(None);
    }
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(directory)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn only_its_maker_can_read_an_output() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("recording");
        create(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        // One of before, which others could read.
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        create(&path).unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, Vec::new()));
    }

    #[test]
    fn what_somebody_put_in_its_place_is_not_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let theirs = directory.path().join("shadow");
        fs::write(&theirs, "precious").unwrap();
        let path = directory.path().join("recording");
        symlink(&theirs, &path).unwrap();
        assert_eq!(create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        fs::remove_file(&path).unwrap();
        fs::hard_link(&theirs, &path).unwrap();
        assert_eq!(create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        fs::remove_file(&path).unwrap();
        let flags = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, flags, 0).unwrap();
        // It neither waits for a reader nor takes one's word.
        assert!(create(&path).is_err());
        assert_eq!(fs::read(&theirs).unwrap(), b"precious");
    }

    #[test]
    fn whoever_moves_a_workplace_away_redirects_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("output");
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let work = Workplace::beside(&output).unwrap();
        let entries = fs::read_dir(directory.path()).unwrap().flatten();
        let mut hidden = entries.map(|it| it.path());
        let place = hidden
            .find(|it| it.is_dir())
            .expect("the workplace is beside its output");
        assert_eq!(mode(&place), 0o700);
        let away = directory.path().join("away");
        fs::rename(&place, &away).unwrap();
        fs::create_dir(&place).unwrap();
        symlink(&victim, place.join("image")).unwrap();
        fs::write(work.path("image"), "ours").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        work.publish("image", &output).unwrap();
        assert_eq!(fs::read(&output).unwrap(), b"ours");
    }

    #[test]
    fn what_a_killed_command_left_is_removed_and_nothing_in_use() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("output");
        let dead = directory.path().join(".frontrow-dead");
        let shared = directory.path().join(".frontrow-notes");
        for (path, mode) in [(&dead, 0o700), (&shared, 0o755)] {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        fs::write(dead.join("image"), "half").unwrap();
        let first = Workplace::beside(&output).unwrap();
        assert!(!dead.exists() && shared.exists());
        let _second = Workplace::beside(&output).unwrap();
        fs::write(first.path("image"), "whole").unwrap();
        first.publish("image", &output).unwrap();
        assert_eq!(fs::read(&output).unwrap(), b"whole");
    }

    #[test]
    fn nothing_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("output");
        let work = Workplace::beside(&output).unwrap();
        fs::write(work.path("new"), "new").unwrap();
        symlink("nowhere", &output).unwrap();
        let refused = work.publish("new", &output).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
