//! Errors of workloads, each with a sentence that says what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Reasons why a workload gave no figures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No workload or no load has this name.
    #[error(transparent)]
    Unknown(#[from] record::Unknown),
    /// The ageing of the phone failed.
    #[error("ageing failed: {0}")]
    Ageing(#[from] crate::age::Error),
    /// The defragmentation of the phone's files failed.
    #[error("upkeep failed: {0}")]
    Upkeep(String),
    /// The pair of workload and load measures nothing.
    #[error("workload '{workload}' cannot run under load '{load}': {reason}")]
    NotTogether {
        /// Name of the workload.
        workload: String,
        /// Name of the load.
        load: String,
        /// Reason, and what to choose instead.
        reason: &'static str,
    },
    /// A system call on a file failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, such as `creat` or `fsync`.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file system is full.
    #[error("no space left for {}: free some, or choose a smaller scale", path.display())]
    NoSpace {
        /// Path of the file that could not grow.
        path: PathBuf,
    },
    /// An operation of SQLite failed.
    #[error("SQLite cannot use {}: {source}", path.display())]
    Database {
        /// Path of the database.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The background process ended with an error of its own.
    #[error("the background load cannot write {}: {source}", path.display())]
    Background {
        /// Path of the background's file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The background process was killed from outside.
    #[error("the background load (process {pid}) was killed while it was needed: {how}")]
    BackgroundGone {
        /// Process id of the background.
        pid: i32,
        /// Wait status in words.
        how: String,
    },
    /// The kernel did not write dirty data back.
    #[error(
        "the background load wrote for {waited_s} s and the kernel wrote nothing back: \
         choose a larger scale or lower vm.dirty_background_bytes"
    )]
    NoWriteback {
        /// Time waited, in seconds.
        waited_s: u64,
    },
    /// A kernel interface that the workload needs is missing or has another form.
    #[error("cannot use {}: {reason}", path.display())]
    Interface {
        /// File or directory of the interface.
        path: PathBuf,
        /// What is wrong, and what to do about it.
        reason: String,
    },
    /// A program that is measured, or that measures, failed.
    #[error("{} failed: {reason}", path.display())]
    Program {
        /// Path of the program.
        path: PathBuf,
        /// Output of the program.
        reason: String,
    },
    /// The caller set the stop flag.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Error of a system call on `path`; a full file system becomes [`Error::NoSpace`].
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
