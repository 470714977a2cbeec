//! Months of a phone's use, in a directory: what fragments a file system
//! (dissertation §6.1).
//!
//! ```text
//! Usage ──> Usage::session() ──> [Step]  ──> age()  ──> files on a file system ──> Aged
//! (apps, seed)  (a pure plan)               (writes, fdatasync, unlink, rename)
//! ```
//!
//! The plan is a function of its parameters and the seed; which place a write gets is the file
//! system's own doing.

mod apps;
mod plan;
mod play;
mod room;

pub use apps::APPS;
pub use plan::{Step, Usage};
pub use play::{Aged, AgedApp, Phone, age};
pub use room::{Room, room};

use std::io;
use std::path::PathBuf;

/// How long a phone is used, and how full it is.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Days.
    pub days: u32,
    /// Of ten minutes, a day; each is one app's.
    pub sessions: u32,
    /// The room that files and free space share.
    pub capacity_bytes: u64,
    /// What files take of it, from the first day to the last.
    pub target_bytes: u64,
    /// Of all that is left to chance.
    pub seed: u64,
}

impl Use {
    /// 220 minutes a day.
    pub const SESSIONS: u32 = 22;
    /// Six months.
    pub const DAYS: u32 = 180;
    /// Per cent: the file system's utilisation.
    pub const FILL: u32 = 83;
}

/// Why ageing did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be written, or its place not be found.
    #[error("cannot {verb} {path}: {source}")]
    Io {
        /// Such as `write`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no room for what the plan wants to write.
    #[error("{0} is full: something else has grown, or --fill is too high for it")]
    NoSpace(PathBuf),
    /// The apps alone take more than files may.
    #[error(
        "six apps take {apps_bytes} bytes, and only {target_bytes} are to be in use: raise --fill or --size"
    )]
    TooSmall {
        /// What the apps take.
        apps_bytes: u64,
        /// What was asked for.
        target_bytes: u64,
    },
    /// The caller's flag was set.
    #[error("interrupted")]
    Interrupted,
}
