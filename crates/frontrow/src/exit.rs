//! How the program ends: the exit codes and the one error type that carries
//! them to `main`, which prints it.

use std::path::Path;
use std::{fmt, io};

/// All codes with their meanings, for the man pages.
pub const CODES: [(u8, &str); 14] = [
    (0, "done"),
    (
        1,
        "something went wrong inside, or reading or writing failed",
    ),
    (
        2,
        "the command line makes no sense, or names what is not there or of another kind",
    ),
    (3, "this kernel or device is not supported"),
    (4, "permission is missing"),
    (5, "a tool, package or kernel header is missing"),
    (
        6,
        "a guest failed: panic, kernel warning, time limit, lost result",
    ),
    (7, "refused, because it would not be safe"),
    (8, "the kernel refuses tracing programs even to root"),
    (9, "there is no space left for what is to be written"),
    (10, "more of a trace would be left out than is allowed"),
    (11, "shards are not of one campaign"),
    (12, "shards of a campaign lack figures"),
    (130, "interrupted"),
];

/// Exit codes, the same for each mistake in every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Internal error, or an I/O error.
    Internal = 1,
    /// Invalid command line (clap uses the same code), or it names something missing or of another
    /// kind.
    Usage = 2,
    /// The kernel or device is not supported.
    Unsupported = 3,
    /// The user lacks the permission.
    Permission = 4,
    /// A tool, package or kernel header is missing.
    Missing = 5,
    /// A guest failed.
    #[cfg(feature = "lab")]
    Guest = 6,
    /// Refused, since it would not be safe.
    Refused = 7,
    /// The kernel refuses tracing programs, even from root.
    KernelRefuses = 8,
    /// No space left on the file system.
    DiskFull = 9,
    /// More of a trace would be left out than the user allows.
    #[cfg(feature = "lab")]
    LeftOut = 10,
    /// Shards differ in what went in.
    #[cfg(feature = "lab")]
    Apart = 11,
    /// Shards are missing, or have guests without figures.
    #[cfg(feature = "lab")]
    Incomplete = 12,
    /// Ended by Ctrl-C.
    Interrupted = 130,
}

/// Code for an error on a file or directory.
impl From<&io::Error> for Exit {
    fn from(error: &io::Error) -> Exit {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Exit::Permission,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Exit::DiskFull,
            io::ErrorKind::NotFound
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory => Exit::Usage,
            _ => Exit::Internal,
        }
    }
}

/// An error: a sentence and an exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The error and its remedy, in one sentence.
    pub sentence: String,
}

impl Failure {
    /// Makes a failure from a code and a sentence.
    pub fn new(exit: Exit, sentence: impl fmt::Display) -> Self {
        Failure {
            exit,
            sentence: sentence.to_string(),
        }
    }

    /// Error of reading `path`.
    pub fn unreadable(path: &Path, error: &io::Error) -> Self {
        let path = path.display();
        Failure::new(error.into(), format_args!("cannot read {path}: {error}"))
    }

    /// Error of writing to `path`.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        let path = path.display();
        Failure::new(error.into(), format_args!("cannot write {path}: {error}"))
    }
}

/// Rights that stay are none of the user's mistakes.
impl From<sys::confine::Error> for Failure {
    fn from(error: sys::confine::Error) -> Failure {
        Failure::new(Exit::Internal, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_lists_every_code() {
        let page = include_str!("../../../docs/use/reference.md");
        let rows = page.lines().filter(|line| line.starts_with("| "));
        let listed: Vec<&str> = rows.skip(1).collect();
        let wanted: Vec<String> = CODES
            .iter()
            .map(|(code, meaning)| format!("| {code} | {meaning} |"))
            .collect();
        assert_eq!(listed, wanted);
    }
}
