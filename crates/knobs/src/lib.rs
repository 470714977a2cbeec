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
        /// The knob.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A knob did not take its value.
    #[error("cannot write {value:?} to {path}: {source}")]
    Write {
        /// The knob.
        path: PathBuf,
        /// What it was to become.
        value: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing is changed where the change cannot be written down first.
    #[error("cannot keep the journal {path}, so nothing is changed: {source}")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process changes the same knobs, and goes on doing so.
    #[error("another frontrow command holds {path}: try again when it has ended")]
    Held {
        /// The lock.
        path: PathBuf,
    },
    /// A journal names it, or a caller, and it is none of the knobs that there are.
    #[error(
        "{0} is no knob of Frontrow's, so it is neither read nor written: if a journal in /run names it, somebody else wrote that; delete the journal"
    )]
    NoKnob(PathBuf),
    /// Only the journal's end may be torn; this is something else.
    #[error(
        "line {line} of the journal {path} is damaged: compare the knobs named in it with their values, then delete it"
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
}

impl Error {
    /// What the system said, where it said something.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Read { source, .. }
            | Self::Write { source, .. }
            | Self::Journal { source, .. } => Some(source),
            Self::Damaged { .. } | Self::Held { .. } | Self::NoKnob(_) => None,
        }
    }

    /// Whether the knob went away before or while it was read or written: its device was
    /// taken out, its cgroup removed.
    pub fn is_gone(&self) -> bool {
        let (Self::Read { path, source } | Self::Write { path, source, .. }) = self else {
            return false;
        };
        // The second is what a file says that was open when its cgroup was removed.
        !path.exists() || source.raw_os_error() == Some(Errno::NODEV.raw_os_error())
    }
}
