//! How large a file system is (statvfs(3)).

use crate::Error;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a file system has for files.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// All.
    pub capacity_bytes: u64,
    /// In use, what only root may use counted in.
    pub used_bytes: u64,
}

/// Of the file system that `directory` is on.
///
/// # Errors
/// [`Error::Io`].
pub fn room(directory: &Path) -> Result<Room, Error> {
    let failed = |source| Error::Io {
        verb: "measure",
        path: directory.to_owned(),
        source,
    };
    let path = CString::new(directory.as_os_str().as_bytes())
        .map_err(|error| failed(io::Error::other(error)))?;
    // SAFETY: all fields are integers.
    let mut status: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: reads a path that ends in a zero and writes one `struct statvfs`.
    if unsafe { libc::statvfs(path.as_ptr(), &mut status) } != 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    Ok(Room {
        capacity_bytes: status.f_blocks * status.f_frsize,
        used_bytes: (status.f_blocks - status.f_bavail) * status.f_frsize,
    })
}
