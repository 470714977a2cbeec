//! Memory that is charged to a cgroup or swapped, and what is swapped to.

use crate::backlog::sync;
use crate::{Failure, Outcome, test_bed};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::{ptr, slice};

const SWAP_MAGIC: &[u8] = b"SWAPSPACE2";

/// A fresh mapping, whose pages were not used before as those of the heap are.
pub(crate) struct Pages {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Pages {
    pub(crate) fn new(bytes: usize) -> Outcome<Pages> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new mapping where the kernel likes.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        match start {
            libc::MAP_FAILED => Err(Failure::new(io::Error::last_os_error().to_string())),
            _ => Ok(Pages { start, bytes }),
        }
    }

    pub(crate) fn fill(&mut self, value: u8) {
        self.as_mut_slice().fill(value);
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping has so many bytes, and nobody else knows of it.
        unsafe { slice::from_raw_parts(self.start.cast(), self.bytes) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.start.cast(), self.bytes) }
    }

    /// Has the kernel swap all of it.
    pub(crate) fn swap_out(&self) -> Outcome<()> {
        // SAFETY: the content stays what it is, wherever it is.
        match unsafe { libc::madvise(self.start, self.bytes, libc::MADV_PAGEOUT) } {
            0 => Ok(()),
            _ => Err(Failure::new(format!(
                "it cannot swap: {}",
                io::Error::last_os_error()
            ))),
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: as above. It cannot fail for a whole mapping.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

/// A device, or a file without holes, that the kernel swaps to until drop.
pub(crate) struct Swap(CString);

impl Swap {
    pub(crate) fn on(path: &Path) -> Outcome<Swap> {
        let failed = || Failure::io("swap to", path);
        let mut file = File::options().write(true).open(path).map_err(failed())?;
        // A device's metadata have no size.
        let bytes = file.seek(SeekFrom::End(0)).map_err(failed())?;
        // The header is as mkswap writes it: version, last page, no bad pages (`union
        // swap_header`).
        let page_bytes = rustix::param::page_size();
        let last = (bytes / page_bytes as u64 - 1) as u32;
        let mut header = vec![0; page_bytes];
        header[1024..1028].copy_from_slice(&1_u32.to_ne_bytes());
        header[1028..1032].copy_from_slice(&last.to_ne_bytes());
        header[page_bytes - SWAP_MAGIC.len()..].copy_from_slice(SWAP_MAGIC);
        file.write_all_at(&header, 0).map_err(failed())?;
        sync(&file, path)?;
        let name = CString::new(path.as_os_str().as_bytes());
        let name = name.map_err(|error| failed()(error.into()))?;
        // SAFETY: the path ends with a zero byte.
        match unsafe { libc::swapon(name.as_ptr(), 0) } {
            0 => Ok(Swap(name)),
            _ => Err(failed()(io::Error::last_os_error())),
        }
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        // SAFETY: as above. If it stays, the volume cannot be unmounted, which is told.
        unsafe { libc::swapoff(self.0.as_ptr()) };
    }
}

/// Runs `work` with all of this process in the cgroup: pages are charged to the cgroup of their
/// first user.
pub(crate) fn charged_to(cgroup: &str, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    test_bed::write(&format!("{cgroup}/cgroup.procs"), "0")?;
    let done = work();
    test_bed::write("/sys/fs/cgroup/cgroup.procs", "0")?;
    done
}
