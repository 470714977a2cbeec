//! What can go wrong while a workload runs, each as one sentence that says
//! what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a workload gave no figures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No workload has this name.
    #[error("'{name}' is not a workload: choose from {choices}")]
    UnknownWorkload {
        /// What was asked for.
        name: String,
        /// All names, by commas.
        choices: String,
    },
    /// No background load has this name.
    #[error("'{name}' is not a background load: choose from {choices}")]
    UnknownLoad {
        /// What was asked for.
        name: String,
        /// All names, by commas.
        choices: String,
    },
    /// No loader has this name.
    #[error("'{name}' is not a loader: choose from {choices}")]
    UnknownLoader {
        /// What was asked for.
        name: String,
        /// All names, by commas.
        choices: String,
    },
    /// No upkeep has this name.
    #[error("'{name}' is not an upkeep: choose from {choices}")]
    UnknownUpkeep {
        /// What was asked for.
        name: String,
        /// All names, by commas.
        choices: String,
    },
    /// The phone could not be used for so long.
    #[error("ageing failed: {0}")]
    Ageing(#[from] age::Error),
    /// Its files could not be defragmented.
    #[error("upkeep failed: {0}")]
    Upkeep(String),
    /// The pair measures nothing.
    #[error("workload '{workload}' cannot run under load '{load}': {reason}")]
    NotTogether {
        /// The workload.
        workload: String,
        /// The load.
        load: String,
        /// What to choose instead.
        reason: &'static str,
    },
    /// A system call on a file failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, such as `creat` or `fsync`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The file system is full.
    #[error("no space left for {}: free some, or choose a smaller scale", path.display())]
    NoSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// SQLite failed.
    #[error("SQLite cannot use {}: {source}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// SQLite's reason.
        source: rusqlite::Error,
    },
    /// The background process ended on an error of its own.
    #[error("the background load cannot write {}: {source}", path.display())]
    Background {
        /// The background's file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The background process was killed by something else.
    #[error("the background load (process {pid}) was killed while it was needed: {how}")]
    BackgroundGone {
        /// Its process id.
        pid: i32,
        /// Its wait status in words.
        how: String,
    },
    /// Dirty data never went to the device.
    #[error(
        "the background load wrote for {waited_s} s and the kernel wrote nothing back: \
         choose a larger scale or lower vm.dirty_background_bytes"
    )]
    NoWriteback {
        /// How long was waited, in seconds.
        waited_s: u64,
    },
    /// A kernel interface the workload needs is not there or not as known.
    #[error("cannot use {}: {reason}", path.display())]
    Interface {
        /// The file or directory of the interface.
        path: PathBuf,
        /// What is wrong and what to do about it.
        reason: String,
    },
    /// A program that is measured, or that measures, failed.
    #[error("{} failed: {reason}", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
    /// The caller's stop flag was set.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A failed system call on `path`; a full file system gets its own sentence.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Error::NoSpace { path },
            _ => Error::Io {
                action,
                path,
                source,
            },
        }
    }
}
