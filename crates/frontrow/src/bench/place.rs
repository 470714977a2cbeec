//! Working directory of the benchmark in the user's directory: locked while in use, emptied between
//! runs, and removed at the end. After a kill -9 the next benchmark removes it.

use crate::exit::{Exit, Failure};
use rustix::fs::FlockOperation;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "frontrow-bench-";

/// Name of the lock file. It is locked while its owner lives, and marks the directory as one of
/// ours.
const LOCK: &str = "lock";

/// A directory `frontrow-bench-XXXXXX`. Dropping it removes it.
pub struct Place {
    directory: tempfile::TempDir,
    _lock: File,
}

impl Place {
    /// Makes a directory in `parent`, after removing those of killed benchmarks.
    pub fn create(parent: &Path) -> Result<Self, Failure> {
        remove_abandoned(parent)?;
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(parent)
            .map_err(|error| failure("make a directory in", parent, &error))?;
        let path = directory.path().join(LOCK);
        let lock = File::create(&path).map_err(|error| failure("make", &path, &error))?;
        if !try_lock(&lock) {
            let error = io::Error::last_os_error();
            return Err(failure("lock", &path, &error));
        }
        Ok(Place {
            directory,
            _lock: lock,
        })
    }

    /// Makes an empty directory for a run, and removes that of the run before.
    pub fn fresh(&self) -> Result<PathBuf, Failure> {
        let path = self.directory.path().join("run");
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|error| failure("remove", &path, &error))?;
        }
        fs::create_dir(&path).map_err(|error| failure("make", &path, &error))?;
        Ok(path)
    }

    /// Removes the directory.
    pub fn remove(self) -> Result<(), Failure> {
        let path = self.directory.path().to_owned();
        self.directory
            .close()
            .map_err(|error| failure("remove", &path, &error))
    }
}

/// Removes directories of killed benchmarks in `parent`: those with our name and an unlocked lock
/// file.
fn remove_abandoned(parent: &Path) -> Result<(), Failure> {
    let entries = fs::read_dir(parent).map_err(|error| failure("read", parent, &error))?;
    for entry in entries {
        let path = entry
            .map_err(|error| failure("read", parent, &error))?
            .path();
        let ours = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        let Some(lock) = ours.then(|| own_lock(&path.join(LOCK))).flatten() else {
            continue;
        };
        if try_lock(&lock) {
            eprintln!(
                "Removing {}, left by a run that was killed.",
                path.display()
            );
            fs::remove_dir_all(&path).map_err(|error| failure("remove", &path, &error))?;
        }
    }
    Ok(())
}

/// Opens the lock file, if it is a regular file of this user. Other users could put a pipe there,
/// and opening it would block.
fn own_lock(path: &Path) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY)
        .open(path)
        .ok()?;
    let metadata = file.metadata().ok()?;
    let own = rustix::process::geteuid().as_raw();
    (metadata.is_file() && metadata.uid() == own).then_some(file)
}

fn try_lock(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

fn failure(action: &str, path: &Path, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Exit::Usage,
        _ => error.into(),
    };
    Failure::new(
        exit,
        format_args!("cannot {action} {}: {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_afterwards_and_fresh_in_between() {
        let parent = tempfile::tempdir().unwrap();
        let place = Place::create(parent.path()).unwrap();
        let run = place.fresh().unwrap();
        fs::write(run.join("file"), "x").unwrap();
        assert!(!place.fresh().unwrap().join("file").exists());
        place.remove().unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_pipe_in_place_of_a_lock_holds_nobody_up() {
        let parent = tempfile::tempdir().unwrap();
        let theirs = parent.path().join("frontrow-bench-theirs");
        fs::create_dir(&theirs).unwrap();
        let path = std::ffi::CString::new(theirs.join(LOCK).to_str().unwrap()).unwrap();
        // SAFETY: a terminated string, which lives until the call returns.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0);
        Place::create(parent.path()).unwrap();
        assert!(theirs.exists());
    }

    #[test]
    fn only_an_abandoned_one_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let abandoned = parent.path().join("frontrow-bench-dead");
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        let foreign = parent.path().join("frontrow-bench-notes");
        fs::create_dir(&foreign).unwrap();
        let alive = Place::create(parent.path()).unwrap();
        assert!(!abandoned.exists());
        let _second = Place::create(parent.path()).unwrap();
        assert!(foreign.exists() && alive.directory.path().exists());
    }
}
