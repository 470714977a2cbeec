//! Where a file's data lie on its device (FIEMAP,
//! Documentation/filesystems/fiemap.rst of the kernel).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// One piece of a file that lies in one piece on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its begin in the file.
    pub file_bytes: u64,
    /// Its begin on the block device that the file system is on.
    pub device_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
}

/// `struct fiemap` of `linux/fiemap.h`, with room for [`AT_ONCE`] extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; AT_ONCE],
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const AT_ONCE: usize = 128;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;

const LAST: u32 = 0x1;

/// No place yet (2, 4), an encoded one (8, encrypted 0x80), one shared with metadata or
/// packed with other files' tails (0x100 to 0x400), or nothing written there (0x800):
/// reading such an extent is not reading those blocks.
const NOT_PLAIN: u32 = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800;

/// The extents of a file that are read as they lie on the device, ascending by their
/// place in the file. Holes and what is not stored plainly are left out. What was
/// written but has no place on the device yet is left out, too.
///
/// # Errors
/// What the system said: EOPNOTSUPP from a file system that cannot tell.
pub fn extents(file: &File) -> io::Result<Vec<Extent>> {
    let mut all = Vec::new();
    let mut start = 0;
    loop {
        let map = read(file, start)?;
        let mapped = &map.extents[..AT_ONCE.min(map.mapped_extents as usize)];
        all.extend(mapped.iter().filter_map(plain));
        match mapped.last() {
            Some(last) if last.flags & LAST == 0 => {
                let end = last.logical.saturating_add(last.length);
                if end <= start {
                    return Ok(all);
                }
                start = end;
            }
            _ => return Ok(all),
        }
    }
}

fn plain(extent: &FiemapExtent) -> Option<Extent> {
    (extent.flags & NOT_PLAIN == 0).then_some(Extent {
        file_bytes: extent.logical,
        device_bytes: extent.physical,
        length_bytes: extent.length,
    })
}

fn read(file: &File, start: u64) -> io::Result<Box<Fiemap>> {
    let mut map = Box::new(Fiemap {
        start,
        length: u64::MAX - start,
        flags: 0,
        mapped_extents: 0,
        extent_count: AT_ONCE as u32,
        reserved: 0,
        extents: [FiemapExtent::default(); AT_ONCE],
    });
    // SAFETY: the kernel writes at most `extent_count` extents, for which there is room.
    match unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *map) } {
        0 => Ok(map),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn the_extents_cover_what_was_written_and_not_the_hole() {
        let file = tempfile::tempfile_in(".").unwrap();
        file.write_all_at(&[1; 8192], 0).unwrap();
        file.write_all_at(&[1; 4096], 1 << 20).unwrap();
        file.sync_all().unwrap();
        let extents = match extents(&file) {
            // An overlay on tmpfs, for one, cannot tell; the lab's tests are on ext4.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return,
            extents => extents.unwrap(),
        };
        let covers = |bytes: u64| {
            extents
                .iter()
                .any(|it| (it.file_bytes..it.file_bytes + it.length_bytes).contains(&bytes))
        };
        assert!(covers(0) && covers(8191) && covers(1 << 20));
        assert!(!covers(512 << 10), "{extents:?}");
    }
}
