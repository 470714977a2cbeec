//! Limits that the daemon sets by itself: their journal, and what its log says of them.

use crate::Error;
use std::path::Path;
use sys::knobs::{Change, Home, Journal, Restored};

/// The journal of limits, and log lines that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) journal: Journal,
    pub(crate) lines: Vec<String>,
}

impl Kept {
    /// Opens the daemon's journal of this name.
    pub(crate) fn open(root: &Path, name: &str) -> Result<Self, Error> {
        Ok(Kept {
            journal: Journal::open(root, Home::Daemon, name)?,
            lines: Vec::new(),
        })
    }

    /// Takes the log lines since the last call.
    pub(crate) fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Changes in force.
    pub(crate) fn changes(&self) -> &[Change] {
        self.journal.changes()
    }

    /// Undoes all limits.
    pub(crate) fn release(self) -> Result<Vec<(Change, Restored)>, Error> {
        Ok(self.journal.restore()?)
    }
}
