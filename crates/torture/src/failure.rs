//! Failures of trials.

use std::fmt;
use std::io;
use std::path::Path;

/// A sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Failure(sentence.into())
    }

    /// The failure of `action` on `path`.
    pub(crate) fn io(action: &str, path: &Path) -> impl FnOnce(io::Error) -> Failure + use<> {
        let action = format!("it cannot {action} {}", path.display());
        move |error| Failure(format!("{action}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// `Ok` if `condition` holds, else a failure with the sentence.
pub(crate) fn require(condition: bool, sentence: impl FnOnce() -> String) -> Result<(), Failure> {
    match condition {
        true => Ok(()),
        false => Err(Failure(sentence())),
    }
}
