//! Reading with nothing in memory, and what the device has read for it.

use crate::Error;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Nothing of any file in memory, nor of where they are.
pub(crate) fn drop_caches() -> Result<(), Error> {
    let path = Path::new("/proc/sys/vm/drop_caches");
    fs::write(path, "3").map_err(|source| Error::io("write to", path, source))
}

/// What the device has read so far (Documentation/block/stat.rst of the kernel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Requests, merged ones as one.
    pub(crate) requests: u64,
    /// What they brought.
    pub(crate) bytes: u64,
}

impl Reads {
    /// Of the device that `directory` is on.
    pub(crate) fn of(directory: &Path) -> Result<Self, Error> {
        let failed = |source| Error::io("find the device of", directory, source);
        let device = fs::metadata(directory).map_err(failed)?.dev();
        let (major, minor) = (libc::major(device), libc::minor(device));
        let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        let text = fs::read_to_string(&path).map_err(|it| Error::io("read", &path, it))?;
        let all = device::Statistics::parse(&text)
            .ok_or_else(|| Error::io("read", &path, std::io::ErrorKind::InvalidData.into()))?;
        Ok(Reads {
            requests: all.reads,
            bytes: all.read_bytes,
        })
    }

    /// Since `before`.
    pub(crate) fn since(self, before: Reads) -> Reads {
        Reads {
            requests: self.requests - before.requests,
            bytes: self.bytes - before.bytes,
        }
    }
}
