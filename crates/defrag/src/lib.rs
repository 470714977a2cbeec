//! Defragmentation that moves only what is slow: janusd's `janusdL` (dissertation §4.3).
//!
//! ```text
//! survey ──> measure ──> rank ──> guard ──> repair ──> measure
//! (FIEMAP)   (read times) (what    (what must (donor,
//!                          pays)    not move)  EXT4_IOC_MOVE_EXT)
//! ```
//!
//! What is on too few of the device's dies is the device's to move: [`Physical`], or
//! [`rearrange()`] where it does that on its own.
//!
//! Where somebody saw which files are read ([`Hot`]), those that are not stay where they are.
//! Where the device can remap, the copy that the kernel makes costs no program ([`Remap`]).
//!
//! A survey changes nothing and works on any file system with FIEMAP; a repair needs ext4. A
//! file is at every instant whole, at its old place or its new one, page by page: the kernel
//! swaps extents in its journal's transactions, and locks out who uses the file meanwhile.

mod filesystem;
mod guard;
mod hot;
mod measure;
mod move_extent;
mod pace;
mod physical;
mod rank;
mod rearrange;
mod remap;
mod repair;
mod survey;

pub use filesystem::Filesystem;
pub use guard::Refusal;
pub use hot::{Hot, Identity};
pub use measure::{Measure, ReadTime, Table};
pub use move_extent::{Donor, swap};
pub use pace::Pace;
pub use physical::{MOST_FILES, Physical, Spread, WORTH_SPREADING};
pub use rank::{Choice, choose, most_read};
pub use rearrange::{Asked, Rearranged, rearrange};
pub use remap::Remap;
pub use repair::{Moved, repair, settle};
pub use survey::{Finding, Survey, Tally};

use std::io;
use std::path::{Path, PathBuf};

/// Why nothing can be said or done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be looked at.
    #[error("cannot {verb} {path}: {source}")]
    Io {
        /// Such as `read`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system does not tell where files are.
    #[error(
        "{path} is on a {filesystem} file system, which does not tell where files are: \
         check one on ext4, f2fs, xfs or btrfs"
    )]
    NoLayout {
        /// The file.
        path: PathBuf,
        /// Its name.
        filesystem: Filesystem,
    },
    /// The device below a file could not be asked.
    #[error("cannot find out about the device of {path}: {reason}")]
    Device {
        /// The file.
        path: PathBuf,
        /// What was said.
        reason: String,
    },
    /// The device defragments itself, and not for us.
    #[error(
        "the device is analysing or defragmenting itself for somebody else: wait for its end, or \
         write disable to hid/defrag_trigger"
    )]
    DeviceBusy,
    /// The device ended before it had done what it was asked to.
    #[error("the device stopped before it was done: try again when it is used less")]
    DeviceStopped,
    /// The caller's flag was set.
    #[error("interrupted: every file is whole; run it again to go on")]
    Interrupted,
}

fn failed<'a>(verb: &'static str, path: &'a Path) -> impl Fn(io::Error) -> Error + 'a {
    move |source| Error::Io {
        verb,
        path: path.to_owned(),
        source,
    }
}
