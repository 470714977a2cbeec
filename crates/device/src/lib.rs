//! A block device as the other crates need it: which one is meant, what it is, its request
//! queue, and where files are on it.
//!
//! What the kernel says of devices is read below a root directory, `/` on a running system,
//! so that tests have a tree of their own.

mod discard;
mod extents;
pub mod hid;
mod image;
pub mod janus;
mod mounts;
mod pages;
mod queue;
mod resolve;
mod statistics;

pub use discard::discard;
pub use extents::{Extent, Layout, State};
pub use image::load_image;
pub use mounts::{Mount, all_mounts, is_mounted_for_writing, shown_at};
pub use pages::{PAGE_BYTES, Pages};
pub use queue::Schedulers;
pub use statistics::Statistics;

use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Why no device could be found, or not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither a device nor a file.
    #[error(
        "{0} is neither a block device nor a file on one: name a device such as sda or /dev/sda (`lsblk` lists them), or a mounted directory"
    )]
    NotFound(String),
    /// A file that no local block device holds.
    #[error("{path} is on a {filesystem} file system, which is on no block device of this machine")]
    NoDevice {
        /// The file.
        path: PathBuf,
        /// Such as `tmpfs` or `nfs4`.
        filesystem: String,
    },
    /// The kernel's description of the device could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The attribute.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel's description of the device is not as expected.
    #[error("{path} holds {text:?}, which is not a number")]
    NotANumber {
        /// The attribute.
        path: PathBuf,
        /// What it held.
        text: String,
    },
}

/// A whole disk: the unit that has a request queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    name: String,
    /// The device's directory below `/sys/devices`, with the root before it.
    directory: PathBuf,
}

/// What a device is, for reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The kernel's name: `sda`, `nvme0n1`, `mmcblk0`.
    pub name: String,
    /// What its maker calls it, where the device says.
    pub model: Option<String>,
    /// Its capacity.
    pub size_bytes: u64,
    /// Whether seeks cost time.
    pub rotational: bool,
    /// How many queues its driver has.
    pub hardware_queues: u64,
}

impl Device {
    /// The whole disk that `what` means: the device's name (`sda`), its node or a link to it
    /// (`/dev/disk/by-id/…`), a partition of it, or a file or directory on it.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::NoDevice`] for files on no local block device.
    pub fn resolve(root: &Path, what: &str) -> Result<Self, Error> {
        resolve::resolve(root, what)
    }

    /// All disks that have a request queue, by name.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn all(root: &Path) -> Result<Vec<Self>, Error> {
        resolve::all(root)
    }

    /// The kernel's name: `sda`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where on its disk the file system's device with this number begins: 0 for a whole disk.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn partition_start_bytes(root: &Path, number: u64) -> Result<u64, Error> {
        resolve::partition_start_bytes(root, number)
    }

    /// An attribute of the request queue, as on the running system:
    /// `/sys/block/sda/queue/scheduler`.
    pub fn queue_attribute(&self, attribute: &str) -> PathBuf {
        Path::new("/sys/block")
            .join(&self.name)
            .join("queue")
            .join(attribute)
    }

    /// Its capacity; 0 for a drive without a medium and a loop device without a file.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn size_bytes(&self) -> Result<u64, Error> {
        // 512 bytes, whatever the device's own sectors are.
        const SECTOR_BYTES: u64 = 512;
        Ok(self.number("size")? * SECTOR_BYTES)
    }

    /// A number that no other disk has had since boot, whatever its name: a disk that is
    /// taken out and put back in gets another.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn sequence(&self) -> Result<u64, Error> {
        self.number("diskseq")
    }

    /// What the device is.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn identity(&self) -> Result<Identity, Error> {
        Ok(Identity {
            name: self.name.clone(),
            model: self.text_if_any("device/model")?,
            size_bytes: self.size_bytes()?,
            rotational: self.number("queue/rotational")? == 1,
            hardware_queues: self.hardware_queues()?,
        })
    }
}
