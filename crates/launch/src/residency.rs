//! Queries and changes of a file's pages in memory.

use crate::profile::{PAGE_BYTES, Pages, push};
use rustix::fs::Advice;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use sys::memory;

/// `__NR_cachestat`, which is the same on all architectures; since Linux 6.5.
const SYS_CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range` of `linux/mman.h`.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of `linux/mman.h`.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Number of `pages` in memory. `None` if the kernel does not tell this user: cachestat since
/// 6.12.11, and mincore always, serve only users who may write to the file.
///
/// # Errors
/// Any other error of the system.
pub fn resident(file: &File, pages: Pages) -> io::Result<Option<u64>> {
    let range = CachestatRange {
        offset: pages.first * PAGE_BYTES,
        length: pages.count * PAGE_BYTES,
    };
    let mut counts = Cachestat::default();
    // SAFETY: both structs are as the kernel has them, and live until the call returns.
    let status = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut counts,
            0,
        )
    };
    if status == 0 {
        return Ok(Some(counts.cached));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EPERM) => Ok(None),
        Some(libc::ENOSYS) => {
            let map = mincore(file, pages)?;
            Ok(map.map(|map| map.iter().filter(|&&byte| byte & 1 != 0).count() as u64))
        }
        _ => Err(error),
    }
}

/// Whether a page can be read without waiting. If not, a kernel since 6.12 reads it in the
/// background.
pub fn is_there(file: &File, page: u64) -> bool {
    let mut byte = 0_u8;
    let buffer = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let offset = (page * PAGE_BYTES) as libc::off_t;
    let file = file.as_raw_fd();
    // SAFETY: one buffer of one byte, which lives until the call returns.
    unsafe { libc::preadv2(file, &raw const buffer, 1, offset, libc::RWF_NOWAIT) == 1 }
}

/// The pages of a file that are in memory; `None` as for [`resident`].
///
/// # Errors
/// The system's error.
pub fn resident_pages(file: &File) -> io::Result<Option<Vec<Pages>>> {
    let count = file.metadata()?.size().div_ceil(PAGE_BYTES);
    if count == 0 {
        return Ok(Some(Vec::new()));
    }
    let all = Pages { first: 0, count };
    let Some(map) = mincore(file, all)? else {
        return Ok(None);
    };
    let mut pages = Vec::new();
    for (index, byte) in (0..).zip(map) {
        if byte & 1 != 0 {
            push(&mut pages, index, index + 1);
        }
    }
    Ok(Some(pages))
}

/// One byte for each page, whose lowest bit is set if the page is in memory. None for users who may
/// not write to the file: the kernel would report all pages as present (`can_do_mincore`).
fn mincore(file: &File, pages: Pages) -> io::Result<Option<Vec<u8>>> {
    if !may_write(file)? {
        return Ok(None);
    }
    let bytes = (pages.count * PAGE_BYTES) as usize;
    // SAFETY: a new mapping that nobody touches.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            (pages.first * PAGE_BYTES) as libc::off_t,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mut map = vec![0; pages.count as usize];
    // SAFETY: the mapping is `bytes` long, and there is a byte for each page of it.
    let status = unsafe { libc::mincore(address, bytes, map.as_mut_ptr()) };
    let outcome = match status {
        0 => Ok(Some(map)),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: our own mapping; nothing refers to it.
    unsafe { libc::munmap(address, bytes) };
    outcome
}

fn may_write(file: &File) -> io::Result<bool> {
    let user = rustix::process::geteuid().as_raw();
    if user == 0 || file.metadata()?.uid() == user {
        return Ok(true);
    }
    // SAFETY: an open descriptor and a static, empty path.
    let status = unsafe {
        libc::faccessat(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::W_OK,
            libc::AT_EACCESS | libc::AT_EMPTY_PATH,
        )
    };
    Ok(status == 0)
}

/// Starts to read the pages into memory without waiting, and no others.
///
/// # Errors
/// The system's error.
pub fn read_ahead(file: &File, pages: Pages) -> io::Result<()> {
    let offset = (pages.first * PAGE_BYTES) as libc::off64_t;
    let bytes = (pages.count * PAGE_BYTES) as usize;
    // SAFETY: an open descriptor and numbers.
    match unsafe { libc::readahead(file.as_raw_fd(), offset, bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has reads through this descriptor read only what is asked for.
///
/// # Errors
/// The system's error.
pub fn stop_readahead(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::Random)?)
}

/// Drops the file's clean pages from memory, except those that are mapped.
///
/// # Errors
/// The system's error.
pub fn forget(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Drops everything from memory that can be read again: pages, directories and inodes. Requires
/// root.
///
/// # Errors
/// The system's error.
pub fn drop_caches() -> io::Result<()> {
    rustix::fs::sync();
    // The first round releases the blocks that ext4's journal still holds, and only the second one
    // drops them.
    for _ in 0..2 {
        memory::drop_caches()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_was_just_written_is_in_memory() {
        // tmpfs, which /tmp may be, does not tell whether a page can be read without waiting.
        let program = std::env::current_exe().unwrap();
        let mut file = tempfile::tempfile_in(program.parent().unwrap()).unwrap();
        file.write_all(&[7; 5 * PAGE_BYTES as usize + 1]).unwrap();
        let all = Pages { first: 0, count: 6 };
        lock(&file, all);
        assert_eq!(resident(&file, all).unwrap(), Some(6));
        assert_eq!(resident_pages(&file).unwrap(), Some(vec![all]));
        let part = Pages { first: 2, count: 3 };
        assert_eq!(resident(&file, part).unwrap(), Some(3));
        assert!(is_there(&file, 5) && !is_there(&file, 6));
        // Linux 6.1 has only mincore.
        let map = mincore(&file, part).unwrap().unwrap();
        assert_eq!(map.iter().filter(|&&it| it & 1 == 1).count(), 3);
    }

    /// Locks the pages: the machine may drop written pages at any time.
    fn lock(file: &File, pages: Pages) {
        let bytes = (pages.count * PAGE_BYTES) as usize;
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let file = file.as_raw_fd();
        // SAFETY: a mapping of its own, which stays until the process ends and is not read.
        let locked = unsafe {
            let map = libc::mmap(std::ptr::null_mut(), bytes, read, shared, file, 0);
            libc::mlock(map, bytes)
        };
        assert_eq!(locked, 0, "{}", io::Error::last_os_error());
    }

    #[test]
    fn an_empty_file_has_no_pages() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(resident_pages(&file).unwrap(), Some(Vec::new()));
    }
}
