//! Small files of Frontrow's own state: whole, and on disk before anything is done that they tell of.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Replaces the file at `path` by `content`, readable by all users, with its directory's entry. The
/// directory is made if it is missing. A torn file is never seen under this name.
///
/// # Errors
/// What the system says.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    make_directory(directory)?;
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}

/// Removes the file at `path`, on disk before this returns; one that is not there is no error.
///
/// # Errors
/// What the system says.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The text of the file at `path`; None if there is none.
///
/// # Errors
/// What the system says.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Waits until no other process holds the lock at `path`, and holds it until the value is dropped.
///
/// # Errors
/// What the system says.
pub fn lock(path: &Path) -> io::Result<File> {
    make_directory(path.parent().unwrap_or(Path::new("/")))?;
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_and_gone_twice() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/state.json");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, b"one").unwrap();
        write(&path, b"2").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("2"));
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(fs::read_dir(directory.path().join("a")).unwrap().count(), 0);
    }
}
