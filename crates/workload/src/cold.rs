//! Cold reads, and the device's reads for them.

use crate::Error;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Drops all files and their metadata from memory.
pub(crate) fn drop_caches() -> Result<(), Error> {
    let path = Path::new("/proc/sys/vm/drop_caches");
    sys::memory::drop_caches().map_err(|source| Error::io("write to", path, source))
}

/// Reads of a device so far (Documentation/block/stat.rst of the kernel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Number of read requests; merged ones count as one.
    pub(crate) requests: u64,
    /// Number of bytes read.
    pub(crate) bytes: u64,
}

impl Reads {
    /// Reads of the device with the file system of `directory`.
    pub(crate) fn of(directory: &Path) -> Result<Self, Error> {
        let failed = |source| Error::io("find the device of", directory, source);
        let device = fs::metadata(directory).map_err(failed)?.dev();
        let (major, minor) = (libc::major(device), libc::minor(device));
        let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        let text = fs::read_to_string(&path).map_err(|it| Error::io("read", &path, it))?;
        let all = sys::device::Statistics::parse(&text)
            .ok_or_else(|| Error::io("read", &path, std::io::ErrorKind::InvalidData.into()))?;
        Ok(Reads {
            requests: all.reads,
            bytes: all.read_bytes,
        })
    }

    /// Reads since `before`.
    pub(crate) fn since(self, before: Reads) -> Reads {
        Reads {
            requests: self.requests - before.requests,
            bytes: self.bytes - before.bytes,
        }
    }
}
