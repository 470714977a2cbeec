//! Files that must not be moved: those that e4defrag refuses, those whose blocks are recorded
//! elsewhere, and those with a lease.

use crate::defrag::Filesystem;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Flags of include/uapi/linux/fs.h and fs/ext4/ext4.h.
const FS_IMMUTABLE_FL: libc::c_long = 0x10;
const FS_APPEND_FL: libc::c_long = 0x20;
const FS_ENCRYPT_FL: libc::c_long = 0x800;
const FS_JOURNAL_DATA_FL: libc::c_long = 0x4000;
const FS_EXTENT_FL: libc::c_long = 0x8_0000;
const FS_VERITY_FL: libc::c_long = 0x10_0000;
const FS_DAX_FL: libc::c_long = 0x200_0000;
const FS_INLINE_DATA_FL: libc::c_long = 0x1000_0000;

/// Reasons why a file is not moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not a regular file.
    NotRegular,
    /// Extents of this file system cannot be swapped.
    Filesystem(Filesystem),
    /// The file system or its mount is read-only.
    ReadOnly,
    /// The user may not write the file.
    Permission,
    /// It is a swap file, whose blocks the kernel has recorded.
    Swap,
    /// It is the backing file of this loop device.
    Loop(String),
    /// It has the attribute of `chattr +i`.
    Immutable,
    /// It has the attribute of `chattr +a`.
    AppendOnly,
    /// It has indirect blocks, as files of ext3.
    NoExtents,
    /// Its data are in its inode.
    Inline,
    /// A kind of file whose extents the kernel does not swap. These are encrypted files, files with
    /// fs-verity, files with journaled data, and files in memory.
    Kind(&'static str),
    /// A process holds a lease on it (fcntl(2)), which a move would break.
    Lease,
    /// It is being executed (ETXTBSY).
    Executing,
    /// The file system has no space for it in fewer pieces.
    NoBetterPlace,
    /// The file system has no space for a copy.
    NoSpace,
    /// The owner's quota has no space for a copy.
    Quota,
    /// It was truncated or written meanwhile, so its pieces have changed.
    Changed,
    /// Its pages stay in use by other tasks.
    Busy,
    /// The file system does not support the swap (bigalloc).
    Unsupported,
    /// Any other error of the system.
    System(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let text = match self {
            Refusal::NotRegular => "it is not a regular file",
            Refusal::Filesystem(kind) => {
                return write!(
                    out,
                    "it is on a {kind} file system, where files can be checked and not moved: \
                     only ext4 can swap extents"
                );
            }
            Refusal::ReadOnly => "its file system is mounted read-only: remount it with rw",
            Refusal::Permission => "you may not write to it: run this as root or its owner",
            Refusal::Swap => "it is a swap file in use: run swapoff on it first",
            Refusal::Loop(device) => {
                return write!(
                    out,
                    "it backs {device}: detach that first (losetup -d {device})"
                );
            }
            Refusal::Immutable => "it is immutable: chattr -i lets it be moved",
            Refusal::AppendOnly => "it is append-only: chattr -a lets it be moved",
            Refusal::NoExtents => {
                "it has indirect blocks instead of extents: chattr +e converts it"
            }
            Refusal::Inline => "its data are in its inode: there is nothing to move",
            Refusal::Kind(what) => {
                return write!(out, "the kernel moves no files that are {what}");
            }
            Refusal::Lease => "a program holds a lease on it: close it there first",
            Refusal::Executing => "it is being executed: try again when it is not",
            Refusal::NoBetterPlace => "there is no free space in fewer pieces for it",
            Refusal::NoSpace => "there is not enough free space for a second copy of it",
            Refusal::Quota => "its owner's quota has no room for a second copy of it",
            Refusal::Changed => "it was truncated or written to meanwhile: try again",
            Refusal::Busy => "its pages stay busy: try again when it is used less",
            Refusal::Unsupported => {
                "its file system was made with a feature that lets no extents be swapped (bigalloc)"
            }
            Refusal::System(said) => return out.write_str(said),
        };
        out.write_str(text)
    }
}

impl Refusal {
    /// The reason that an error of a system call on the file stands for.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSPC) => Refusal::NoSpace,
            Some(libc::EDQUOT) => Refusal::Quota,
            Some(libc::EROFS) => Refusal::ReadOnly,
            Some(libc::EACCES | libc::EPERM) => Refusal::Permission,
            Some(libc::ETXTBSY) => Refusal::Executing,
            Some(libc::EBUSY) => Refusal::Busy,
            Some(libc::EWOULDBLOCK) => Refusal::Lease,
            Some(libc::EOPNOTSUPP) => Refusal::Unsupported,
            Some(libc::ELOOP) => Refusal::NotRegular,
            // The range no longer exists.
            Some(libc::EINVAL | libc::ENODATA | libc::ENOENT) => Refusal::Changed,
            _ => Refusal::System(error.to_string()),
        }
    }
}

/// Checks for reasons not to move a file, without disturbing its users. The running system's state
/// is read below `root`.
pub(crate) fn check(root: &Path, file: &File) -> Result<(), Refusal> {
    let system = |error: io::Error| Refusal::of(&error);
    let metadata = file.metadata().map_err(system)?;
    if !metadata.is_file() {
        return Err(Refusal::NotRegular);
    }
    let (filesystem, _) = Filesystem::of(file).map_err(system)?;
    if filesystem != Filesystem::Ext4 {
        return Err(Refusal::Filesystem(filesystem));
    }
    check_flags(attributes(file).map_err(system)?)?;
    if is_swap(root, &metadata) {
        return Err(Refusal::Swap);
    }
    if let Some(device) = loop_on(root, &metadata) {
        return Err(Refusal::Loop(device));
    }
    if has_lease(root, &metadata) {
        return Err(Refusal::Lease);
    }
    Ok(())
}

fn attributes(file: &File) -> io::Result<libc::c_long> {
    let mut flags: libc::c_int = 0;
    // SAFETY: FS_IOC_GETFLAGS writes an int, whatever its number says.
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &mut flags) };
    match outcome {
        0 => Ok(libc::c_long::from(flags)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn check_flags(flags: libc::c_long) -> Result<(), Refusal> {
    let refusals = [
        (FS_IMMUTABLE_FL, Refusal::Immutable),
        (FS_APPEND_FL, Refusal::AppendOnly),
        (FS_INLINE_DATA_FL, Refusal::Inline),
        (FS_ENCRYPT_FL, Refusal::Kind("encrypted")),
        (FS_VERITY_FL, Refusal::Kind("under fs-verity")),
        (
            FS_JOURNAL_DATA_FL,
            Refusal::Kind("journalled with their data"),
        ),
        (FS_DAX_FL, Refusal::Kind("used without page cache (DAX)")),
    ];
    let found = refusals.into_iter().find(|(flag, _)| flags & flag != 0);
    match found {
        Some((_, refusal)) => Err(refusal),
        None if flags & FS_EXTENT_FL == 0 => Err(Refusal::NoExtents),
        None => Ok(()),
    }
}

/// Whether `path` is the same file by device and inode number.
fn is_same(path: &Path, metadata: &Metadata) -> bool {
    let other = fs::metadata(path);
    other.is_ok_and(|it| it.dev() == metadata.dev() && it.ino() == metadata.ino())
}

/// Whether /proc/swaps lists the file.
fn is_swap(root: &Path, metadata: &Metadata) -> bool {
    let Ok(table) = fs::read_to_string(root.join("proc/swaps")) else {
        return false;
    };
    let names = table.lines().skip(1);
    let mut paths = names.filter_map(|line| line.split_ascii_whitespace().next());
    paths.any(|name| is_same(&unescape(name), metadata))
}

/// Name of the loop device that the file backs.
fn loop_on(root: &Path, metadata: &Metadata) -> Option<String> {
    let entries = fs::read_dir(root.join("sys/block")).ok()?;
    for entry in entries.flatten() {
        let Ok(backing) = fs::read(entry.path().join("loop/backing_file")) else {
            continue;
        };
        let backing = PathBuf::from(OsString::from_vec(backing.trim_ascii_end().to_vec()));
        if is_same(&backing, metadata) {
            return Some(format!("/dev/{}", entry.file_name().to_string_lossy()));
        }
    }
    None
}

/// Whether /proc/locks has a lease on the file: `1: LEASE  ACTIVE    READ  812 fd:01:131 0 EOF`.
fn has_lease(root: &Path, metadata: &Metadata) -> bool {
    let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let table = fs::read_to_string(root.join("proc/locks")).unwrap_or_default();
    table.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        fields.nth(1) == Some("LEASE") && fields.any(|it| it == wanted)
    })
}

/// Decodes octal escapes such as `\040` (`mangle_path` in fs/seq_file.c).
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let octal = more.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|it| std::str::from_utf8(it).ok());
        match octal.and_then(|it| u8::from_str_radix(it, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[3..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> (tempfile::TempDir, Metadata, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a file");
        fs::write(&path, b"data").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        (root, metadata, path)
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_swap_file_is_known_by_any_name() {
        let (root, metadata, path) = machine();
        assert!(!is_swap(root.path(), &metadata));
        let name = path.to_str().unwrap().replace(' ', "\\040");
        let table = format!("Filename\tType\tSize\tUsed\tPriority\n{name} file 8 0 -2\n");
        write(root.path(), "proc/swaps", &table);
        assert!(is_swap(root.path(), &metadata));
    }

    #[test]
    fn what_a_loop_device_lies_on_is_known() {
        let (root, metadata, path) = machine();
        write(root.path(), "sys/block/sda/size", "8\n");
        write(
            root.path(),
            "sys/block/loop0/loop/backing_file",
            "/gone (deleted)\n",
        );
        assert_eq!(loop_on(root.path(), &metadata), None);
        let backing = format!("{}\n", path.display());
        write(root.path(), "sys/block/loop7/loop/backing_file", &backing);
        assert_eq!(
            loop_on(root.path(), &metadata),
            Some("/dev/loop7".to_owned())
        );
    }

    #[test]
    fn a_lease_counts_and_another_lock_does_not() {
        let (root, metadata, _) = machine();
        let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
        let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
        let locks = format!("1: POSIX  ADVISORY  WRITE 7 {place} 0 EOF\n");
        write(root.path(), "proc/locks", &locks);
        assert!(!has_lease(root.path(), &metadata));
        let locks = format!("{locks}2: LEASE  ACTIVE    READ  8 {place} 0 EOF\n");
        write(root.path(), "proc/locks", &locks);
        assert!(has_lease(root.path(), &metadata));
    }

    #[test]
    fn attributes_speak_for_themselves() {
        for (flags, refusal) in [
            (FS_EXTENT_FL | FS_IMMUTABLE_FL, Refusal::Immutable),
            (FS_EXTENT_FL | FS_APPEND_FL, Refusal::AppendOnly),
            (FS_INLINE_DATA_FL, Refusal::Inline),
            (FS_EXTENT_FL | FS_ENCRYPT_FL, Refusal::Kind("encrypted")),
            (0, Refusal::NoExtents),
        ] {
            assert_eq!(check_flags(flags), Err(refusal));
        }
        assert_eq!(check_flags(FS_EXTENT_FL), Ok(()));
    }

    #[test]
    fn names_with_blanks_and_backslashes_are_read_back() {
        assert_eq!(unescape("/a\\040b\\134"), PathBuf::from("/a b\\"));
        assert_eq!(unescape("/a\\04"), PathBuf::from("/a\\04"));
    }

    #[test]
    fn each_refusal_is_a_part_of_a_sentence() {
        let all = [
            Refusal::Swap,
            Refusal::Loop("/dev/loop0".to_owned()),
            Refusal::Filesystem(Filesystem::Btrfs),
            Refusal::Quota,
        ];
        for refusal in all {
            let text = refusal.to_string();
            assert!(!text.ends_with('.') && text.starts_with("it"), "{text}");
        }
    }
}
