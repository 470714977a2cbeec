//! Power cuts at any operation of a device, and checks of the files that are left.
//!
//! ```text
//! phone (guest) ──> stream ──> Timeline ──> Promise ──> each cut: recover, L2P = P2L, pages,
//! (age, defrag;     (a file)   (the host     (what a              e2fsck, files
//!  simflash                     build of      page may
//!  writes it down)              the core)     hold)
//! ```
//!
//! The core of simflash is a deterministic function of its commands and their times. A guest's
//! recording can thus be repeated in this process, operation by operation, as often as needed. The
//! device is saved before each cut and restored after it.

mod campaign;
mod files;
mod filesystem;
pub mod phone;
mod promise;
mod stream;
mod timeline;

pub use campaign::{Outcome, Request, cut};
pub use stream::{Error as StreamError, Stream};

use std::io;

/// Losses in a power cut, and reasons why a campaign failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The core refuses the configuration of the device.
    #[error(transparent)]
    Flash(#[from] replay::FlashError),
    /// A power cut lost data.
    #[error(
        "a power cut in step {step} (operation {operation} of it, torn by seed {seed}): {what}"
    )]
    Cut {
        /// Step of the cut.
        step: u32,
        /// Which program or erase of the step was cut, from 1; 0 for none.
        operation: u64,
        /// Seed of how operations in flight were torn.
        seed: u64,
        /// The loss that was found after the recovery.
        what: Box<Error>,
    },
    /// A page has a content that it may not have; holds the page's number.
    #[error("page {0} holds neither what was certain nor anything written since")]
    Page(u32),
    /// An invariant of the core is broken; holds the core's sentence.
    #[error("after recovery {0}")]
    Invariant(&'static str),
    /// The file system or one of its files is damaged; holds a sentence.
    #[error("{0}")]
    FileSystem(String),
    /// The core behaves differently from the device that recorded; holds the difference.
    #[error(
        "the flash core does otherwise than the device that recorded the stream ({0}): use the version that recorded it"
    )]
    Diverged(&'static str),
    /// A command failed; holds the number of its record.
    #[error("record {0} of the stream failed: its device was full of valid pages")]
    Failed(u32),
    /// A mark in the stream cannot be parsed.
    #[error("a mark in the stream makes no sense: {0}")]
    Mark(serde_json::Error),
    /// The stream has no marks, so the files' contents are not known.
    #[error("the stream has no marks that tell what was in the files")]
    NoMarks,
    /// e2fsck cannot be started.
    #[error("e2fsck cannot be run ({0}): install the package e2fsprogs")]
    NoTool(io::Error),
    /// Memory for the device's content is short.
    #[error("there is no memory for the device's content: {0}")]
    Memory(io::Error),
    /// The caller set the stop flag.
    #[error("interrupted")]
    Interrupted,
}
