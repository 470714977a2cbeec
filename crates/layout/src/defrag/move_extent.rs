//! Moving of a file's data to a donor's place: `EXT4_IOC_MOVE_EXT` (fs/ext4/move_extent.c).
//!
//! For each range the kernel swaps the extents of the two files in one transaction, with both files
//! locked. The data are copied through the page cache. They are written to their new place before
//! the transaction commits (ordered mode). After a crash a page is at its old or its new place,
//! with the same content.

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::thread::{self, CapabilitySet};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;
use std::time::Duration;
use sys::device::Layout;
use sys::space::Space;

/// `struct move_extent`: offsets and lengths in blocks of the file system.
#[repr(C)]
struct MoveExtent {
    reserved: u32,
    donor_fd: u32,
    orig_start: u64,
    donor_start: u64,
    len: u64,
    moved_len: u64,
}

/// `_IOWR('f', 15, struct move_extent)`.
const EXT4_IOC_MOVE_EXT: libc::c_ulong =
    (3 << 30) | ((size_of::<MoveExtent>() as libc::c_ulong) << 16) | ((b'f' as u64) << 8) | 15;

/// A page under writeback or in use by the journal is free again soon. Since 6.16 a large folio of
/// which a part was moved is dirty, and busy until it is written back.
const BUSY_TRIES: u32 = 50;
const BUSY_WAIT: Duration = Duration::from_millis(20);

/// An unnamed file with the space that another file is to get. It is deleted with its last
/// descriptor, also after a crash.
pub struct Donor {
    file: File,
}

impl Donor {
    /// Allocates space at the offsets of `segments`, in as few pieces as the file system finds. The
    /// donor belongs to `owner`, so that it counts to their quota. The reserve for root is not
    /// used.
    ///
    /// # Errors
    /// The system's error: no space, no quota, no right to write there.
    pub fn new(directory: &Path, segments: &[(u64, u64)], owner: &Metadata) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC)
            .open(directory)?;
        if rustix::process::geteuid().is_root() {
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        let needed_bytes: u64 = segments.iter().map(|(_, size)| size).sum();
        if needed_bytes > Space::of(&file)?.free_bytes {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        within_limits(|| {
            for (start, size) in segments {
                fallocate(&file, FallocateFlags::empty(), *start, *size)?;
            }
            Ok(())
        })?;
        Ok(Donor { file })
    }

    /// The donor's extents.
    ///
    /// # Errors
    /// The error of FIEMAP.
    pub fn layout(&self) -> io::Result<Layout> {
        Layout::of(&self.file, false)
    }
}

/// Runs `work` without the capability that overrides quotas (`ignore_hardlimit` in
/// fs/quota/dquot.c). Only this thread loses it, and gets it back afterwards.
fn within_limits(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let before = thread::capabilities(None)?;
    let mut fewer = before;
    fewer.effective -= CapabilitySet::SYS_RESOURCE;
    thread::set_capabilities(None, fewer)?;
    let done = work();
    thread::set_capabilities(None, before)?;
    done
}

/// Swaps a range of `file` with the same range of `donor`; both numbers are bytes of whole blocks.
///
/// # Errors
/// The system's error. A part of the range may have been swapped; the data are complete.
pub fn swap(file: &File, donor: &Donor, block_bytes: u64, start: u64, size: u64) -> io::Result<()> {
    let (mut block, end) = (start / block_bytes, (start + size).div_ceil(block_bytes));
    let mut tries = BUSY_TRIES;
    while block < end {
        let mut request = MoveExtent {
            reserved: 0,
            donor_fd: donor.file.as_raw_fd() as u32,
            orig_start: block,
            donor_start: block,
            len: end - block,
            moved_len: 0,
        };
        // SAFETY: the kernel reads and writes one `struct move_extent`, whose size is part of
        // the request's number.
        let outcome = unsafe { libc::ioctl(file.as_raw_fd(), EXT4_IOC_MOVE_EXT, &mut request) };
        let error = io::Error::last_os_error();
        // The kernel may have moved some blocks before it failed.
        block += request.moved_len;
        if outcome == 0 && request.moved_len > 0 {
            continue;
        }
        match error.raw_os_error() {
            _ if outcome == 0 => return Err(io::Error::from_raw_os_error(libc::ENODATA)),
            Some(libc::EBUSY | libc::EAGAIN | libc::EINTR) if tries > 0 => {
                tries -= 1;
                let_go(file, start, size)?;
                let_go(&donor.file, start, size)?;
                if tries < BUSY_TRIES / 2 {
                    std::thread::sleep(BUSY_WAIT);
                }
            }
            _ => return Err(error),
        }
    }
    Ok(())
}

/// Writes back the dirty pages of a range, and drops those that are not in use.
fn let_go(file: &File, start: u64, size: u64) -> io::Result<()> {
    file.sync_data()?;
    // Advice that is not taken does no harm.
    let _ = fadvise(file, start, NonZeroU64::new(size), Advice::DontNeed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effective() -> CapabilitySet {
        thread::capabilities(None).unwrap().effective
    }

    #[test]
    fn roots_rights_over_quotas_are_not_used_for_others_files() {
        let before = effective();
        within_limits(|| {
            assert!(!effective().contains(CapabilitySet::SYS_RESOURCE));
            Err(io::Error::from_raw_os_error(libc::EDQUOT))
        })
        .unwrap_err();
        assert_eq!(effective(), before);
    }

    #[test]
    fn a_donor_is_its_files_owners_and_takes_only_what_users_may() {
        // Only root can change files of other owners.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("theirs");
        let file = File::create(&path).unwrap();
        fchown(&file, Some(65534), Some(65534)).unwrap();
        let owner = file.metadata().unwrap();
        let donor = Donor::new(directory.path(), &[(0, 8192)], &owner).unwrap();
        let metadata = donor.file.metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (65534, 65534));
        let more = Space::of(&file).unwrap().free_bytes + 4096;
        let refused = Donor::new(directory.path(), &[(0, more)], &owner);
        let refused = refused.err().and_then(|it| it.raw_os_error());
        assert_eq!(refused, Some(libc::ENOSPC));
    }
}
