//! Power cuts at any operation of a device, and what is left of its files.
//!
//! ```text
//! phone (guest) ──> stream ──> Timeline ──> Promise ──> each cut: recover, L2P = P2L, pages,
//! (age, defrag;     (a file)   (the host     (what a              e2fsck, files
//!  simflash                     build of      page may
//!  writes it down)              the core)     hold)
//! ```
//!
//! The core of simflash is a function of the commands it is given and their times. So what a
//! guest did once is done again in this process, to the operation, as often as is asked; before
//! each cut the device is copied, and put back after it.

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

/// What was lost, or why that cannot be said.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The core refuses the device.
    #[error(transparent)]
    Flash(#[from] replay::FlashError),
    /// A cut lost something.
    #[error(
        "a power cut in step {step} (operation {operation} of it, torn by seed {seed}): {what}"
    )]
    Cut {
        /// The step.
        step: u32,
        /// The program or erase that was cut, 0 for none.
        operation: u64,
        /// How what was under way was torn.
        seed: u64,
        /// What was lost.
        what: Box<Error>,
    },
    /// A page holds what it may not.
    #[error("page {0} holds neither what was certain nor anything written since")]
    Page(u32),
    /// The core's account does not add up.
    #[error("after recovery {0}")]
    Invariant(&'static str),
    /// The file system or one of its files is damaged.
    #[error("{0}")]
    FileSystem(String),
    /// The core did something else than the device that recorded.
    #[error(
        "the flash core does otherwise than the device that recorded the stream ({0}): use the version that recorded it"
    )]
    Diverged(&'static str),
    /// A command failed.
    #[error("record {0} of the stream failed: its device was full of valid pages")]
    Failed(u32),
    /// A mark cannot be read.
    #[error("a mark in the stream makes no sense: {0}")]
    Mark(serde_json::Error),
    /// Nobody knows what was in the files.
    #[error("the stream has no marks that tell what was in the files")]
    NoMarks,
    /// e2fsck cannot be run.
    #[error("e2fsck cannot be run ({0}): install the package e2fsprogs")]
    NoTool(io::Error),
    /// Memory is short.
    #[error("there is no memory for the device's content: {0}")]
    Memory(io::Error),
    /// The caller's flag was set.
    #[error("interrupted")]
    Interrupted,
}
