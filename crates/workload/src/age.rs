//! Months of a phone's use in a directory, which fragment the file system (dissertation §6.1).
//!
//! ```text
//! Usage ──> Usage::session() ──> [Step]  ──> age()  ──> files on a file system ──> Aged
//! (apps, seed)  (a pure plan)               (writes, fdatasync, unlink, rename)
//! ```
//!
//! The plan is a function of its parameters and the seed. The file system alone chooses the places
//! of data.

mod apps;
mod plan;
mod play;

pub use apps::APPS;
pub use plan::{Step, Usage};
pub use play::{Aged, AgedApp, Phone, age};

use std::path::{Path, PathBuf};
use sys::PathError;
use sys::space::Space;

/// Parameters of a phone's use.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Number of days.
    pub days: u32,
    /// Sessions a day, each of ten minutes and with one app.
    pub sessions: u32,
    /// Space for files and free space together, in bytes.
    pub capacity_bytes: u64,
    /// Size of all files, from the first day to the last, in bytes.
    pub target_bytes: u64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Use {
    /// Usual sessions a day: 220 minutes.
    pub const SESSIONS: u32 = 22;
    /// Usual number of days: six months.
    pub const DAYS: u32 = 180;
    /// Usual utilisation of the file system, in per cent.
    pub const FILL: u32 = 83;
}

/// Reasons why an ageing did not end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] PathError),
    /// The file system is full; holds the path that could not be written.
    #[error("{0} is full: something else has grown, or --fill is too high for it")]
    NoSpace(PathBuf),
    /// The apps alone exceed the size that files may have.
    #[error(
        "six apps take {apps_bytes} bytes, and only {target_bytes} are to be in use: raise --fill or --size"
    )]
    TooSmall {
        /// Size of the apps, in bytes.
        apps_bytes: u64,
        /// Size that was requested for all files, in bytes.
        target_bytes: u64,
    },
    /// The caller set the stop flag.
    #[error("interrupted")]
    Interrupted,
}

/// Capacity and use of the file system of `directory`.
///
/// # Errors
/// [`Error::Io`].
pub fn room(directory: &Path) -> Result<Space, Error> {
    Ok(Space::at(directory).map_err(PathError::of("measure", directory))?)
}
