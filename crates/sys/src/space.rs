//! Size of a file system (statvfs(3)).

use rustix::fs::StatVfs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Capacity of a file system, and what is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Bytes that are free for users without root's rights.
    pub free_bytes: u64,
}

impl Space {
    /// Space of the file system that holds `path`.
    ///
    /// # Errors
    /// The system's error.
    pub fn at(path: &Path) -> io::Result<Space> {
        Ok(rustix::fs::statvfs(path)?.into())
    }

    /// Space of the file system that holds an open file.
    ///
    /// # Errors
    /// The system's error.
    pub fn of(file: impl AsFd) -> io::Result<Space> {
        Ok(rustix::fs::fstatvfs(file)?.into())
    }

    /// Bytes in use, with the reserve for root.
    pub fn used_bytes(self) -> u64 {
        self.capacity_bytes - self.free_bytes
    }
}

impl From<StatVfs> for Space {
    fn from(status: StatVfs) -> Space {
        Space {
            capacity_bytes: status.f_blocks.saturating_mul(status.f_frsize),
            free_bytes: status.f_bavail.saturating_mul(status.f_frsize),
        }
    }
}
