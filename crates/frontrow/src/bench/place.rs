//! The benchmark's own directory in the user's: made, locked, emptied between
//! runs, removed whatever happens, and found again after a kill -9.

use crate::exit::{Exit, Failure};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "frontrow-bench-";

/// Locked while its owner lives; its presence says that the directory is ours.
const LOCK: &str = "lock";

/// A directory `frontrow-bench-XXXXXX`. Dropping it removes it.
pub struct Place {
    directory: tempfile::TempDir,
    _lock: File,
}

impl Place {
    /// Makes it in `parent`, after removing those whose owner was killed.
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

    /// An empty directory for one run; that of the run before is gone.
    pub fn fresh(&self) -> Result<PathBuf, Failure> {
        let path = self.directory.path().join("run");
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|error| failure("remove", &path, &error))?;
        }
        fs::create_dir(&path).map_err(|error| failure("make", &path, &error))?;
        Ok(path)
    }

    /// Removes it, and says so when that fails.
    pub fn remove(self) -> Result<(), Failure> {
        let path = self.directory.path().to_owned();
        self.directory
            .close()
            .map_err(|error| failure("remove", &path, &error))
    }
}

/// Removes what a killed benchmark left in `parent`: directories of our name
/// with a lock that nobody holds.
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

/// The lock, if it is one of this user's: where others may write they put what they like there,
/// such as a pipe, which would be waited for.
fn own_lock(path: &Path) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY)
        .open(path)
        .ok()?;
    let metadata = file.metadata().ok()?;
    // SAFETY: has no arguments and cannot fail.
    let own = unsafe { libc::geteuid() };
    (metadata.is_file() && metadata.uid() == own).then_some(file)
}

fn try_lock(file: &File) -> bool {
    // SAFETY: the descriptor belongs to `file`, which outlives the call.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
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
