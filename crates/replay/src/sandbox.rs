//! The directory with a replay's files. No path leads out of it: paths have no `..`, and the kernel
//! does not follow links (openat2(2)).

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use sys::space::Space;

/// An open directory that confines all paths.
#[derive(Debug)]
pub(crate) struct Sandbox {
    root: File,
}

impl Sandbox {
    /// # Errors
    /// The system's error.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = File::open(path)?;
        match root.metadata()?.is_dir() {
            true => Ok(Sandbox { root }),
            false => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        }
    }

    /// Whether the directory is empty.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        let path = format!("/proc/self/fd/{}", self.root.as_raw_fd());
        Ok(fs::read_dir(path)?.next().is_none())
    }

    /// Writes all of the directory's file system to the device, as syncfs(2) does.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        // SAFETY: takes an open descriptor.
        outcome(unsafe { libc::syncfs(self.root.as_raw_fd()) })
    }

    /// Opens a file or directory below.
    ///
    /// # Errors
    /// The system's error; ELOOP for a link in the path.
    pub(crate) fn file(&self, path: &[u8], flags: i32) -> io::Result<File> {
        // SAFETY: all of the structure's fields are integers.
        let mut how: libc::open_how = unsafe { std::mem::zeroed() };
        // O_NONBLOCK: an open must not wait for a pipe or a device that lies there.
        let flags = match flags & libc::O_PATH {
            0 => flags | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY,
            _ => flags | libc::O_CLOEXEC,
        };
        how.flags = flags as u64;
        how.mode = if flags & libc::O_CREAT != 0 { 0o600 } else { 0 };
        how.resolve =
            libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
        let name = named(path)?;
        // SAFETY: the kernel reads a string and a structure of the size that it is told, which
        // live until the call returns; it gives a descriptor of our own.
        unsafe {
            let descriptor = libc::syscall(
                libc::SYS_openat2,
                self.root.as_raw_fd(),
                name.as_ptr(),
                &how,
                size_of::<libc::open_how>(),
            );
            match descriptor {
                0.. => Ok(File::from(OwnedFd::from_raw_fd(descriptor as i32))),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Makes a directory, as mkdir(2) does.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make_directory(&self, path: &[u8]) -> io::Result<()> {
        let (above, name) = self.above(path)?;
        // SAFETY: the kernel reads a string, which lives until the call returns.
        outcome(unsafe { libc::mkdirat(above.as_raw_fd(), name.as_ptr(), 0o700) })
    }

    /// Makes all directories above `path` that do not exist.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make_directories_above(&self, path: &[u8]) -> io::Result<()> {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            match self.make_directory(&path[..at]) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes a file, or a directory if `directory` is set.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn remove(&self, path: &[u8], directory: bool) -> io::Result<()> {
        let (above, name) = self.above(path)?;
        let flags = if directory { libc::AT_REMOVEDIR } else { 0 };
        // SAFETY: the kernel reads a string, which lives until the call returns.
        outcome(unsafe { libc::unlinkat(above.as_raw_fd(), name.as_ptr(), flags) })
    }

    /// Renames a file or directory, as rename(2) does.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn rename(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        let ((above, name), (above_to, name_to)) = (self.above(from)?, self.above(to)?);
        // SAFETY: the kernel reads two strings, which live until the call returns.
        outcome(unsafe {
            libc::renameat(
                above.as_raw_fd(),
                name.as_ptr(),
                above_to.as_raw_fd(),
                name_to.as_ptr(),
            )
        })
    }

    /// Free space of the file system, in bytes.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        Ok(Space::of(&self.root)?.free_bytes)
    }

    /// Opens the directory of the last name in a path, and returns that name.
    fn above(&self, path: &[u8]) -> io::Result<(File, CString)> {
        let (above, name) = match path.iter().rposition(|it| *it == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&b""[..], path),
        };
        let above = self.file(above, libc::O_PATH | libc::O_DIRECTORY)?;
        Ok((above, named(name)?))
    }
}

/// The path as a C string; the empty path is the directory itself.
fn named(path: &[u8]) -> io::Result<CString> {
    let path = if path.is_empty() { b"." } else { path };
    CString::new(path).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn outcome(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_outside_is_reached() {
        let machine = tempfile::tempdir().unwrap();
        let (inside, outside) = (machine.path().join("in"), machine.path().join("out"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "as it was").unwrap();
        symlink(&outside, inside.join("link")).unwrap();
        symlink("../out/file", inside.join("direct")).unwrap();
        let sandbox = Sandbox::open(&inside).unwrap();
        let create = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
        for path in [
            &b"link/file"[..],
            b"direct",
            b"../out/file",
            b"/etc/passwd",
            b"link/../file",
        ] {
            assert!(sandbox.file(path, create).is_err());
            let _ = sandbox.rename(path, b"stolen");
            if path != b"direct" {
                assert!(sandbox.remove(path, false).is_err());
                assert!(sandbox.make_directory(path).is_err());
            }
        }
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"as it was");
        assert!(fs::read(machine.path().join("stolen")).is_err());
    }

    #[test]
    fn what_takes_the_directorys_name_later_is_not_written_to() {
        let machine = tempfile::tempdir().unwrap();
        let (place, theirs) = (machine.path().join("place"), machine.path().join("theirs"));
        fs::create_dir(&place).unwrap();
        fs::create_dir(&theirs).unwrap();
        let sandbox = Sandbox::open(&place).unwrap();
        fs::rename(&place, machine.path().join("away")).unwrap();
        symlink(&theirs, &place).unwrap();
        fs::write(theirs.join("precious"), "").unwrap();
        assert!(sandbox.is_empty().unwrap(), "it looks at another directory");
        sandbox.make_directory(b"d").unwrap();
        assert!(!sandbox.is_empty().unwrap());
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
    }

    #[test]
    fn inside_everything_works() {
        let directory = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::open(directory.path()).unwrap();
        sandbox.make_directories_above(b"a/b/f").unwrap();
        sandbox.make_directories_above(b"a/b/f").unwrap();
        drop(
            sandbox
                .file(b"a/b/f", libc::O_RDWR | libc::O_CREAT)
                .unwrap(),
        );
        sandbox.rename(b"a/b/f", b"g").unwrap();
        sandbox.remove(b"a/b", true).unwrap();
        sandbox.remove(b"g", false).unwrap();
        assert!(
            sandbox
                .file(b"", libc::O_RDONLY | libc::O_DIRECTORY)
                .is_ok()
        );
        assert!(sandbox.free_bytes().unwrap() > 0);
        let a = sandbox.file(b"a", libc::O_RDWR).unwrap_err();
        assert_eq!(a.raw_os_error(), Some(libc::EISDIR));
    }
}
