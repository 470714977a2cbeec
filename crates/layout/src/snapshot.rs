//! The exact layout of an ext2, ext3 or ext4 file system without its data.
//!
//! ```text
//! save:     file system ──e2image -Q──> metadata (QCOW2) ──gzip──> snapshot
//! restore:  snapshot ──gunzip──> metadata ──e2image -r──> sparse image ──> file
//!                                                              │ dumpe2fs: blocks in use
//!                                                              └──> device
//! ```
//!
//! e2fsprogs know which blocks are metadata. This crate makes a snapshot small, and complete or
//! absent. Damage is detected before anything is overwritten.

mod loops;
mod restore;
mod save;
mod superblock;
mod tool;
mod used;

pub use restore::{Restored, restore};
pub use save::{Saved, save};
pub use superblock::Superblock;

use std::path::PathBuf;
use sys::PathError;
use sys::confine::{self, Confinement};

/// Takes the rights that are needed once all is open and before a program reads what may be
/// anybody's: a command begins the confinement, and whoever has more to do leaves it.
pub type Confine<'a> = &'a dyn Fn(Confinement) -> Result<(), confine::Error>;

/// Reasons why a snapshot was not saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or device could not be read or written.
    #[error(transparent)]
    Io(#[from] PathError),
    /// Rights that are not needed could not be given up.
    #[error(transparent)]
    Rights(#[from] confine::Error),
    /// The path holds another file system, or none.
    #[error(
        "{0} holds no ext2, ext3 or ext4 file system: snapshots are of those (`blkid {0}` tells what it holds)"
    )]
    NoFilesystem(PathBuf),
    /// The file system is mounted for writing, and so may change.
    #[error("{0} is mounted for writing: unmount it, or mount it read-only, and save then")]
    Mounted(PathBuf),
    /// The file system's metadata contradict each other.
    #[error(
        "{0} is damaged, and a snapshot of it would be, too: repair it with `e2fsck -f {0}`, and save then"
    )]
    Unsound(PathBuf),
    /// A file exists at the path of the snapshot.
    #[error("{0} is there already: give another name, or remove it first")]
    Exists(PathBuf),
    /// The file is not a complete result of [`save()`].
    #[error("{path} is no whole snapshot: {reason}; save it again")]
    Damaged {
        /// Path of the snapshot.
        path: PathBuf,
        /// A sentence that says what is wrong.
        reason: String,
    },
    /// The file system is larger than the device.
    #[error("the file system has {needed_bytes} bytes and {target} has {size_bytes}")]
    TooSmall {
        /// Path of the device.
        target: PathBuf,
        /// Size of the file system, in bytes.
        needed_bytes: u64,
        /// Size of the device, in bytes.
        size_bytes: u64,
    },
    /// A program of e2fsprogs is not installed; holds its name.
    #[error("{0} is missing: install e2fsprogs")]
    NoTool(&'static str),
    /// A program found no room for its file; holds its name.
    #[error("{0} found no space left: free some, or name a file on another disk")]
    NoSpace(&'static str),
    /// A program ended with an error.
    #[error("{tool} failed: {said}")]
    Tool {
        /// Name of the program.
        tool: &'static str,
        /// Last line of its output.
        said: String,
    },
    /// The metadata exceed a third of the free space. No real file system has so much, or the disk
    /// is nearly full.
    #[error(
        "{snapshot} unpacks to more than a third of the free space: free more space (in the file's directory, or in TMPDIR for a device), unless the snapshot is from an untrusted source"
    )]
    TooMuch {
        /// Path of the snapshot.
        snapshot: PathBuf,
    },
    /// A program was stopped because it wrote too much.
    #[error("it took too much space")]
    Exhausted,
    /// The caller set the stop flag.
    #[error("interrupted")]
    Interrupted,
}
