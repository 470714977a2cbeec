//! Discard of a block device's data (`blk_ioctl_discard` in block/ioctl.c).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `_IO(0x12, 119)` of `linux/fs.h`.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// Discards `bytes` bytes from `offset` on, of a block device that is open for writing.
///
/// # Errors
/// The system's error: EOPNOTSUPP for a device that cannot discard.
pub fn discard(device: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let range = [offset, bytes];
    // SAFETY: the request reads two 64-bit numbers, start and length in bytes.
    match unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD as _, range.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
