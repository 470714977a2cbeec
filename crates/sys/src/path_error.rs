//! The error of whatever is done to a file.

use std::io;
use std::path::{Path, PathBuf};

/// Something could not be done to a file, a directory or a device.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {}: {source}", crate::plain::path(path))]
pub struct PathError {
    /// The verb of the failed operation, such as `read`.
    pub verb: &'static str,
    /// Path of the file.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl PathError {
    /// For `map_err`: what `verb` came to with the file at `path`.
    pub fn of(verb: &'static str, path: &Path) -> impl Fn(io::Error) -> PathError + use<> {
        let path = path.to_owned();
        move |source| PathError {
            verb,
            path: path.clone(),
            source,
        }
    }
}
