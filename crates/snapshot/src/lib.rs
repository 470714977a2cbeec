//! The exact layout of an ext2, ext3 or ext4 file system without its data.
//!
//! ```text
//! save:     file system ──e2image -Q──> metadata (QCOW2) ──gzip──> snapshot
//! restore:  snapshot ──gunzip──> metadata ──e2image -r──> sparse image ──> file
//!                                                              │ dumpe2fs: blocks in use
//!                                                              └──> device
//! ```
//!
//! Which blocks are metadata, e2fsprogs know. What is added here: a snapshot is small, whole or
//! not there, and known to be damaged before anything is overwritten.

mod restore;
mod save;
mod superblock;
mod tool;
mod used;

pub use restore::{Restored, restore};
pub use save::{Saved, save};
pub use superblock::Superblock;

use std::io;
use std::path::{Path, PathBuf};

/// Why a snapshot was not saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or device could not be read or written.
    #[error("cannot {verb} {path}: {source}")]
    Io {
        /// Such as `read`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another kind of file system, or none.
    #[error(
        "{0} holds no ext2, ext3 or ext4 file system: snapshots are of those (`blkid {0}` tells what it holds)"
    )]
    NoFilesystem(PathBuf),
    /// The file system changes.
    #[error("{0} is mounted for writing: unmount it, or mount it read-only, and save then")]
    Mounted(PathBuf),
    /// Something is at the path already.
    #[error("{0} is there already: give another name, or remove it first")]
    Exists(PathBuf),
    /// Not what [`save()`] wrote, or not all of it.
    #[error("{path} is no whole snapshot: {reason}; save it again")]
    Damaged {
        /// The snapshot.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file system is larger than the device.
    #[error("the file system has {needed_bytes} bytes and {target} has {size_bytes}")]
    TooSmall {
        /// The device.
        target: PathBuf,
        /// What the file system needs.
        needed_bytes: u64,
        /// What there is.
        size_bytes: u64,
    },
    /// A program is not there.
    #[error("{0} is missing: install e2fsprogs")]
    NoTool(&'static str),
    /// A program ended with an error.
    #[error("{tool} failed: {said}")]
    Tool {
        /// Its name.
        tool: &'static str,
        /// Its last line.
        said: String,
    },
    /// Nobody has a file system with so much metadata, or the disk is nearly full.
    #[error(
        "{snapshot} unpacks to more than a third of the free space: give it more (beside a file, or in TMPDIR for a device), unless it is somebody else's and made to fill disks"
    )]
    TooMuch {
        /// The snapshot.
        snapshot: PathBuf,
    },
    /// A program was ended, as it had written too much.
    #[error("it took too much space")]
    Exhausted,
    /// The caller's flag was set.
    #[error("interrupted")]
    Interrupted,
}

fn failed<'a>(verb: &'static str, path: &'a Path) -> impl Fn(io::Error) -> Error + 'a {
    move |source| Error::Io {
        verb,
        path: path.to_owned(),
        source,
    }
}
