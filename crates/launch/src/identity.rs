//! Identity of a file, to tell whether it is still the recorded one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use sys::device::LOOP_MAJOR;

/// `_IOR('v', 1, long)` of `linux/fs.h`; the kernel writes an `int`.
const FS_IOC_GETVERSION: libc::c_ulong = 0x8008_7601;

/// Values that differ between files, and between contents of a file. A package update replaces the
/// inode or changes size and time; the file's pages are then not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `st_dev`: device of the file system.
    pub device: u64,
    /// `st_ino`: inode number.
    pub inode: u64,
    /// Inode generation, which counts the uses of an inode number. 0 on file systems without it.
    pub generation: u32,
    /// `st_size`: size in bytes.
    pub size_bytes: u64,
    /// Seconds of `st_mtim`.
    pub mtime_s: i64,
    /// Nanoseconds of `st_mtim`.
    pub mtime_ns: u32,
}

impl Identity {
    /// Whether it is the same file with the same content. Loop devices get new numbers at each boot,
    /// so files on two of them differ by all but the device.
    pub fn is_as(&self, other: &Identity) -> bool {
        let is_loop = |device| libc::major(device) == LOOP_MAJOR;
        let device = match is_loop(self.device) && is_loop(other.device) {
            true => self.device,
            false => other.device,
        };
        *self == Identity { device, ..*other }
    }

    /// The identity of an open file.
    ///
    /// # Errors
    /// The system's error; a file that is not a regular one is invalid input.
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
