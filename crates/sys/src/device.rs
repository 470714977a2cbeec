//! Block devices as the other crates need them: resolution of names, identity, request queue, and
//! the places of files.
//!
//! The kernel's description of devices is read below a root directory. It is `/` on a running
//! system, and tests have trees of their own.

mod backing;
mod crypt;
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

pub use backing::{Backing, LOOP_MAJOR, backing, backings};
pub use crypt::Encryption;
pub use discard::discard;
pub use extents::{Extent, Layout, State};
pub use image::load_image;
pub use mounts::{Mount, all_mounts, cgroup_root, is_mounted_for_writing, shown_at};
pub use pages::{PAGE_BYTES, Pages};
pub use queue::Schedulers;
pub use statistics::Statistics;

use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Reasons why a device could not be found or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The argument is neither a device nor a file.
    #[error(
        "{0} is neither a block device nor a file on one: name a device such as sda or /dev/sda (`lsblk` lists them), or a mounted directory"
    )]
    NotFound(String),
    /// No local block device holds the file.
    #[error("{path} is on a {filesystem} file system, which is on no block device of this machine")]
    NoDevice {
        /// Path of the file.
        path: PathBuf,
        /// Type of the file system, such as `tmpfs` or `nfs4`.
        filesystem: String,
    },
    /// An attribute of the device could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the attribute.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An attribute of the device is not a number.
    #[error("{path} holds {text:?}, which is not a number")]
    NotANumber {
        /// Path of the attribute.
        path: PathBuf,
        /// Text of the attribute.
        text: String,
    },
}

/// A whole disk, which is the unit with a request queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    name: String,
    /// Directory of the device below `/sys/devices`, with the root before it.
    directory: PathBuf,
}

/// Properties of a device for reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The kernel's name, such as `sda`, `nvme0n1` or `mmcblk0`.
    pub name: String,
    /// The maker's name for the model; None if the device has none.
    pub model: Option<String>,
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Whether seeks cost time (`queue/rotational`).
    pub rotational: bool,
    /// Number of hardware queues of the driver.
    pub hardware_queues: u64,
}

impl Device {
    /// The whole disk that `what` means. It is the device's name (`sda`), its node or a link to it
    /// (`/dev/disk/by-id/…`), a partition of it, or a file or directory on it.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::NoDevice`] for files on no local block device.
    pub fn resolve(root: &Path, what: &str) -> Result<Self, Error> {
        resolve::resolve(root, what)
    }

    /// All disks with a request queue, by name.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn all(root: &Path) -> Result<Vec<Self>, Error> {
        resolve::all(root)
    }

    /// The kernel's name, such as `sda`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offset on its disk of the partition with this device number, in bytes; 0 for a whole disk.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn partition_start_bytes(root: &Path, number: u64) -> Result<u64, Error> {
        resolve::partition_start_bytes(root, number)
    }

    /// Path of a queue attribute on the running system, such as `/sys/block/sda/queue/scheduler`.
    pub fn queue_attribute(&self, attribute: &str) -> PathBuf {
        Path::new("/sys/block")
            .join(&self.name)
            .join("queue")
            .join(attribute)
    }

    /// Capacity in bytes; 0 for a drive without a medium and a loop device without a file.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn size_bytes(&self) -> Result<u64, Error> {
        // The kernel's sector, whatever the device's own sectors are.
        const SECTOR_BYTES: u64 = 512;
        Ok(self.number("size")? * SECTOR_BYTES)
    }

    /// Number that no other disk has had since boot (`diskseq`). A disk that is removed and added
    /// again gets a new one.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn sequence(&self) -> Result<u64, Error> {
        self.number("diskseq")
    }

    /// Properties of the device for reports.
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
