//! Type of a file's file system (statfs(2)).

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Types of file systems that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filesystem {
    /// ext4, or ext2 and ext3, which have the same magic number.
    Ext4,
    /// The flash-friendly file system f2fs.
    F2fs,
    /// XFS, by its magic number.
    Xfs,
    /// Btrfs, whose extents have addresses of its own.
    Btrfs,
    /// Any other type, by its `f_type`; most are in memory or on a network.
    Other(i64),
}

impl Filesystem {
    /// The file system of `file`, and the size of its blocks in bytes.
    ///
    /// # Errors
    /// The error of statfs(2).
    pub fn of(file: &File) -> io::Result<(Self, u64)> {
        // SAFETY: all fields are integers.
        let mut status: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: writes one `struct statfs`.
        if unsafe { libc::fstatfs(file.as_raw_fd(), &mut status) } != 0 {
            return Err(io::Error::last_os_error());
        }
        #[allow(clippy::unnecessary_cast)]
        let kind = Self::of_magic(status.f_type as i64);
        #[allow(clippy::unnecessary_cast)]
        Ok((kind, (status.f_bsize as u64).max(512)))
    }

    fn of_magic(magic: i64) -> Self {
        // The numbers are from include/uapi/linux/magic.h.
        match magic & 0xffff_ffff {
            0xef53 => Filesystem::Ext4,
            0xf2f5_2010 => Filesystem::F2fs,
            0x5846_5342 => Filesystem::Xfs,
            0x9123_683e => Filesystem::Btrfs,
            _ => Filesystem::Other(magic),
        }
    }
}

impl fmt::Display for Filesystem {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Filesystem::Ext4 => out.write_str("ext4"),
            Filesystem::F2fs => out.write_str("f2fs"),
            Filesystem::Xfs => out.write_str("xfs"),
            Filesystem::Btrfs => out.write_str("btrfs"),
            // The most common types have a name, others a number.
            Filesystem::Other(0x0102_1994) => out.write_str("tmpfs"),
            Filesystem::Other(0x794c_7630) => out.write_str("overlay"),
            Filesystem::Other(0x6969) => out.write_str("nfs"),
            Filesystem::Other(magic) => write!(out, "{magic:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_the_highest_bit_are_known_whatever_their_sign() {
        let negative = i64::from(0x9123_683e_u32 as i32);
        assert_eq!(Filesystem::of_magic(negative), Filesystem::Btrfs);
        assert_eq!(Filesystem::of_magic(0xf2f5_2010), Filesystem::F2fs);
    }

    #[test]
    fn this_machines_process_table_is_none_of_them() {
        let file = File::open("/proc/self/status").unwrap();
        let (kind, _) = Filesystem::of(&file).unwrap();
        assert!(matches!(kind, Filesystem::Other(_)), "{kind}");
    }
}
