//! Which file it was, and whether it is still that one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// `_IOR('v', 1, long)` of `linux/fs.h`; the kernel writes an `int`.
const FS_IOC_GETVERSION: libc::c_ulong = 0x8008_7601;

/// What tells a file from all others and from its own earlier contents. A package
/// update replaces the inode or changes size and time, and the file's pages drop out of
/// the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `st_dev`, the file system's device.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// Counts up when an inode is used again; 0 where the file system has none.
    pub generation: u32,
    /// `st_size`.
    pub size_bytes: u64,
    /// `st_mtim`, the seconds.
    pub mtime_s: i64,
    /// `st_mtim`, the rest.
    pub mtime_ns: u32,
}

impl Identity {
    /// Of an open file.
    ///
    /// # Errors
    /// What the system said; a file that is not a regular one is invalid input.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
            generation: generation(file),
            size_bytes: metadata.size(),
            mtime_s: metadata.mtime(),
            mtime_ns: metadata.mtime_nsec() as u32,
        })
    }
}

fn generation(file: &File) -> u32 {
    let mut number: libc::c_long = 0;
    // SAFETY: the kernel writes an int or a long to a local that holds either.
    match unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETVERSION, &raw mut number) } {
        0 => number as u32,
        _ => 0,
    }
}
