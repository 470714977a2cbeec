//! How the program ends: the exit codes and the one error type that carries
//! them to `main`, which prints it.

use std::path::Path;
use std::{fmt, io};

/// Every code and what it means, for the man pages.
pub const CODES: [(u8, &str); 11] = [
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
    (130, "interrupted"),
];

/// Why the program ends, as a shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Something went wrong inside, or reading or writing failed.
    Internal = 1,
    /// The command line makes no sense (clap ends with the same code), or names what is not there or
    /// of another kind.
    Usage = 2,
    /// This kernel or device is not supported.
    Unsupported = 3,
    /// Permission is missing.
    Permission = 4,
    /// A tool, package or kernel header is missing.
    Missing = 5,
    /// A guest failed.
    Guest = 6,
    /// Refused, because it would not be safe.
    Refused = 7,
    /// The kernel loads no tracing programs, whoever asks.
    KernelRefuses = 8,
    /// There is no space for what is to be written.
    DiskFull = 9,
    /// Ended by Ctrl-C.
    Interrupted = 130,
}

/// Of a file or a directory that cannot be used.
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

/// One clear sentence and the code that goes with it.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What went wrong and what to do about it.
    pub sentence: String,
}

impl Failure {
    /// A failure that says `sentence`.
    pub fn new(exit: Exit, sentence: impl fmt::Display) -> Self {
        Failure {
            exit,
            sentence: sentence.to_string(),
        }
    }

    /// Nothing could be written to `path`.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        let path = path.display();
        Failure::new(error.into(), format_args!("cannot write {path}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_lists_every_code() {
        let page = include_str!("../../../docs/reference.md");
        let rows = page.lines().filter(|line| line.starts_with("| "));
        let listed: Vec<&str> = rows.skip(1).collect();
        let wanted: Vec<String> = CODES
            .iter()
            .map(|(code, meaning)| format!("| {code} | {meaning} |"))
            .collect();
        assert_eq!(listed, wanted);
    }
}
