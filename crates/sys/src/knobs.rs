//! Every change to a running system: set, reason, journal, restore.
//!
//! A knob is a small text file of the kernel's (sysfs, procfs, cgroup): reading it gives
//! its value, writing changes it. [`Journal::set`] first writes down what the knob holds,
//! then changes it; [`Journal::restore`] puts everything back, last knob first, and leaves
//! what somebody else has set since. A crash at any point leaves a journal from which the
//! next run restores. Each knob has a [`Form`], by which it is read; what has none is not
//! touched.
//!
//! All paths are given as they are on the running system; a [`Journal`] has the root
//! directory that they are below, so that tests have a tree of their own.

mod change;
mod form;
mod journal;
mod knob;

pub(crate) use change::below;
pub use change::{Change, Restored, Standing, net, shown};
pub use form::Form;
pub use journal::{Home, Journal};
pub use knob::{read, read_choice};

use rustix::io::Errno;
use std::io;
use std::path::PathBuf;

/// A knob could not be read or changed, or the journal not be kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A knob could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the knob.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A knob did not take its value.
    #[error("cannot write {value:?} to {path}: {source}")]
    Write {
        /// Path of the knob.
        path: PathBuf,
        /// Value that was to be written.
        value: String,
        /// Error of the system.
        source: io::Error,
    },
    /// Nothing is changed where the change cannot be written down first.
    #[error("cannot keep the journal {path}, so nothing is changed: {source}")]
    Journal {
        /// Path of the journal.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Another process has locked the journal for longer than the time limit.
    #[error("another frontrow command holds {path}: try again when it has ended")]
    Locked {
        /// Path of the lock file.
        path: PathBuf,
    },
    /// The path in a journal or of a caller is not a known knob.
    #[error(
        "{0} is not a knob of Frontrow: if a journal in /run names it, another program wrote the journal; delete it"
    )]
    NoKnob(PathBuf),
    /// A line other than the last one, which a crash may cut, is damaged.
    #[error(
        "line {line} of the journal {path} is damaged: compare the knobs named in it with their values, then delete it"
    )]
    Damaged {
        /// Path of the journal.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
}

impl Error {
    /// Error of the system, if there is one.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Read { source, .. }
            | Self::Write { source, .. }
            | Self::Journal { source, .. } => Some(source),
            Self::Damaged { .. } | Self::Locked { .. } | Self::NoKnob(_) => None,
        }
    }

    /// Whether the knob vanished before or during the access, with its device or cgroup.
    pub fn is_gone(&self) -> bool {
        let (Self::Read { path, source } | Self::Write { path, source, .. }) = self else {
            return false;
        };
        // The second is what a file says that was open when its cgroup was removed.
        !path.exists() || source.raw_os_error() == Some(Errno::NODEV.raw_os_error())
    }
}
