//! Size of a file system (statvfs(3)).

use crate::Error;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Capacity and use of a file system.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Bytes in use, with the reserve for root.
    pub used_bytes: u64,
}

/// Capacity and use of the file system of `directory`.
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
