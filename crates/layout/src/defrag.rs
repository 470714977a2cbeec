//! Defragmentation that moves only what is slow: janusd's `janusdL` (dissertation §4.3).
//!
//! ```text
//! survey ──> measure ──> rank ──> guard ──> repair ──> measure
//! (FIEMAP)   (read times) (what    (what must (donor,
//!                          pays)    not move)  EXT4_IOC_MOVE_EXT)
//! ```
//!
//! The device itself has to move data that are on too few of its dies: [`Physical`], or
//! [`rearrange()`] where it does that on its own.
//!
//! If reads of files were measured ([`Hot`]), files that are not read stay where they are. If the
//! device can remap, the kernel's copy costs no program ([`Remap`]).
//!
//! A survey changes nothing and works on any file system with FIEMAP; a repair needs ext4. A file
//! is complete at any moment, each page at its old or its new place. The kernel swaps extents in
//! transactions of its journal, and locks the file meanwhile.

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
pub use survey::{Finding, Found, Survey, Tally};

use std::path::PathBuf;
use sys::PathError;

/// Reasons why a defragmentation or survey failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be read.
    #[error(transparent)]
    Io(#[from] PathError),
    /// The file system does not tell the places of files.
    #[error(
        "{path} is on a {filesystem} file system, which does not tell where files are: \
         check one on ext4, f2fs, xfs or btrfs"
    )]
    NoLayout {
        /// Path of the file.
        path: PathBuf,
        /// Type of the file system.
        filesystem: Filesystem,
    },
    /// The device of a file could not be queried.
    #[error("cannot find out about the device of {path}: {reason}")]
    Device {
        /// Path of the file.
        path: PathBuf,
        /// A sentence that says why.
        reason: String,
    },
    /// The device already runs an analysis or defragmentation for another program.
    #[error(
        "the device is analysing or defragmenting itself for somebody else: wait for its end, or \
         write disable to hid/defrag_trigger"
    )]
    DeviceBusy,
    /// The device stopped before the end of the defragmentation.
    #[error("the device stopped before it was done: try again when it is used less")]
    DeviceStopped,
    /// The caller set the stop flag.
    #[error("interrupted: every file is whole; run it again to go on")]
    Interrupted,
}
