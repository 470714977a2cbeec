//! Resolution of a user's argument to a whole disk.

use crate::device::{Device, Error, mounts};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

pub fn resolve(root: &Path, what: &str) -> Result<Device, Error> {
    let not_found = || Error::NotFound(what.to_owned());
    let named = (!what.contains('/')).then(|| by_name(root, what)).flatten();
    if let Some(device) = named {
        return Ok(device);
    }
    let path = std::path::absolute(what).map_err(|_| not_found())?;
    let path = real_path(root, &path).ok_or_else(not_found)?;
    if let Some(device) = by_node(root, &path) {
        return Ok(device);
    }
    by_file(root, &path)?.ok_or_else(not_found)
}

pub fn all(root: &Path) -> Result<Vec<Device>, Error> {
    let directory = root.join("sys/block");
    let failed = |source| Error::Read {
        path: directory.clone(),
        source,
    };
    let mut devices = Vec::new();
    for entry in fs::read_dir(&directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        devices.extend(whole_disk(&entry.path()));
    }
    devices.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(devices)
}

fn by_name(root: &Path, name: &str) -> Option<Device> {
    whole_disk(&root.join("sys/class/block").join(name))
}

/// The disk of a device node. In a tree made for a test nodes are not devices; the name decides
/// there.
fn by_node(root: &Path, path: &Path) -> Option<Device> {
    let metadata = fs::metadata(root.join(path.strip_prefix("/").ok()?)).ok()?;
    if metadata.file_type().is_block_device() {
        return by_number(root, &number_text(metadata.rdev()));
    }
    // The kernel's name has ! for the slash of a node below a directory of /dev.
    let name = path.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
    by_name(root, &name)
}

/// The disk with the file system that `path` is on; None if there is none.
fn by_file(root: &Path, path: &Path) -> Result<Option<Device>, Error> {
    let Some(mount) = mounts::holding(root, path)? else {
        return Ok(None);
    };
    // btrfs and overlayfs have anonymous device numbers; btrfs names a real device as its source.
    let device = by_number(root, &mount.number).or_else(|| {
        let source = real_path(root, Path::new(&mount.source))?;
        source.starts_with("/dev").then(|| by_node(root, &source))?
    });
    match device {
        Some(device) => Ok(Some(device)),
        None => Err(Error::NoDevice {
            path: path.to_owned(),
            filesystem: mount.filesystem,
        }),
    }
}

fn by_number(root: &Path, number: &str) -> Option<Device> {
    whole_disk(&root.join("sys/dev/block").join(number))
}

/// The disk that a sysfs link to it or to one of its partitions leads to.
fn whole_disk(link: &Path) -> Option<Device> {
    let mut directory = fs::canonicalize(link).ok()?;
    if directory.join("partition").exists() {
        directory = directory.parent()?.to_owned();
    }
    let name = directory.file_name()?.to_str()?.to_owned();
    directory
        .join("queue")
        .is_dir()
        .then_some(Device { name, directory })
}

pub fn partition_start_bytes(root: &Path, number: u64) -> Result<u64, Error> {
    const SECTOR_BYTES: u64 = 512;
    let link = root.join("sys/dev/block").join(number_text(number));
    let path = link.join("start");
    if !link.join("partition").exists() {
        return Ok(0);
    }
    let text = fs::read_to_string(&path).map_err(|source| Error::Read {
        path: path.clone(),
        source,
    })?;
    let sectors: Option<u64> = text.trim().parse().ok();
    let bytes = sectors.and_then(|it| it.checked_mul(SECTOR_BYTES));
    bytes.ok_or(Error::NotANumber { path, text })
}

/// `path` with symbolic links resolved, relative to the root.
fn real_path(root: &Path, path: &Path) -> Option<PathBuf> {
    let root = fs::canonicalize(root).ok()?;
    let real = fs::canonicalize(root.join(path.strip_prefix("/").ok()?)).ok()?;
    Some(Path::new("/").join(real.strip_prefix(&root).ok()?))
}

/// `MAJOR:MINOR` of a device number in the encoding of the C library.
fn number_text(number: u64) -> String {
    let major = (number >> 8) & 0xfff | (number >> 32) & !0xfff;
    let minor = number & 0xff | (number >> 12) & !0xff;
    format!("{major}:{}", minor & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sixteenth disk and its partitions have minor numbers above 255.
    #[test]
    fn large_device_numbers_are_written_as_the_kernel_writes_them() {
        for (major, minor) in [(8, 1), (259, 0), (259, 300), (4095, 0xf_ffff)] {
            let number = libc::makedev(major, minor);
            assert_eq!(number_text(number), format!("{major}:{minor}"));
        }
    }
}
