//! A file whose system calls are measured.

use crate::Error;
use crate::meter::Meter;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// An open file. Each method makes one system call and records one operation.
pub(crate) struct Timed<'p> {
    file: File,
    path: &'p Path,
}

impl<'p> Timed<'p> {
    /// `creat`: creates the file or truncates it.
    pub(crate) fn creat(meter: &mut Meter, path: &'p Path) -> Result<Self, Error> {
        let file = meter.time("creat", path, || create(path))?;
        Ok(Timed { file, path })
    }

    /// `open` of an existing file for writing.
    pub(crate) fn open_to_write(meter: &mut Meter, path: &'p Path) -> Result<Self, Error> {
        let file = meter.time("open", path, || OpenOptions::new().write(true).open(path))?;
        Ok(Timed { file, path })
    }

    /// `open` of an existing file for reading.
    pub(crate) fn open_to_read(meter: &mut Meter, path: &'p Path) -> Result<Self, Error> {
        let file = meter.time("open", path, || File::open(path))?;
        Ok(Timed { file, path })
    }

    /// `write` of all of `data`, in one call unless the kernel takes only a part.
    pub(crate) fn write(&mut self, meter: &mut Meter, data: &[u8]) -> Result<(), Error> {
        let file = &mut self.file;
        meter.time("write", self.path, || file.write_all(data))
    }

    /// `read` into `buffer`; returns 0 at the end of the file.
    pub(crate) fn read(&mut self, meter: &mut Meter, buffer: &mut [u8]) -> Result<usize, Error> {
        let file = &mut self.file;
        meter.time("read", self.path, || file.read(buffer))
    }

    /// `fsync` of the file.
    pub(crate) fn fsync(&self, meter: &mut Meter) -> Result<(), Error> {
        meter.time("fsync", self.path, || self.file.sync_all())
    }

    /// `close` of the file.
    pub(crate) fn close(self, meter: &mut Meter) -> Result<(), Error> {
        let descriptor = self.file.into_raw_fd();
        meter.time("close", self.path, || {
            // SAFETY: the descriptor was taken out of its owner just above.
            zero(unsafe { libc::close(descriptor) })
        })
    }
}

/// `truncate` by path to `bytes` bytes.
pub(crate) fn truncate(meter: &mut Meter, path: &Path, bytes: u64) -> Result<(), Error> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|source| Error::io("truncate", path, source.into()))?;
    meter.time("truncate", path, || {
        // SAFETY: `name` is a terminated string that outlives the call.
        zero(unsafe { libc::truncate(name.as_ptr(), bytes as libc::off_t) })
    })
}

/// `rename` of a file.
pub(crate) fn rename(meter: &mut Meter, from: &Path, to: &Path) -> Result<(), Error> {
    meter.time("rename", from, || std::fs::rename(from, to))
}

/// `unlink` of a file.
pub(crate) fn unlink(meter: &mut Meter, path: &Path) -> Result<(), Error> {
    meter.time("unlink", path, || std::fs::remove_file(path))
}

/// Writes a file back and drops it from the page cache, unmeasured. The next read of it is cold.
pub(crate) fn forget_cached(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::io("drop from the page cache", path, source);
    let file = File::open(path).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    drop_cached(path)
}

/// Drops a file without dirty pages from the page cache, unmeasured.
pub(crate) fn drop_cached(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::io("drop from the page cache", path, source);
    let file = File::open(path).map_err(failed)?;
    // SAFETY: the descriptor belongs to `file`, which outlives the call.
    let errno = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    match errno {
        0 => Ok(()),
        _ => Err(failed(io::Error::from_raw_os_error(errno))),
    }
}

/// Creates or truncates a file as `creat(2)` does, unmeasured.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(path)
}

fn zero(status: libc::c_int) -> io::Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
