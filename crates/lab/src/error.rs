//! Why the lab gave no result.

use std::fmt;
use std::io;
use std::path::Path;
use sys::PathError;

/// Why the lab gave no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name, range or file on the command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] PathError),
    /// A program that the lab runs is not installed.
    #[error("cannot run {tool} ({source}): install it (Debian: apt-get install {package})")]
    NoTool {
        /// Name of the program.
        tool: String,
        /// The Debian package that has it.
        package: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// A program that the lab runs failed.
    #[error("{tool} failed: {output}")]
    Tool {
        /// Name of the program.
        tool: String,
        /// Output of the program.
        output: String,
    },
    /// The host's apt does not say where Debian's archive is.
    #[error(
        "this machine's apt knows no archive of Debian's, which the lab takes its kernels from: add one to its sources, and run `sudo apt-get update`"
    )]
    NoArchive,
    /// A Debian package is unknown or could not be fetched.
    #[error(
        "cannot get the Debian package {package}: check that the machine is online and that its apt sources have Debian with its security updates ({reason})"
    )]
    Package {
        /// Name of the package.
        package: String,
        /// Error message of apt.
        reason: String,
    },
    /// `--kernel` does not name a kernel that the lab can boot.
    #[error("{0}")]
    Kernel(String),
    /// A module could not be built.
    #[error(transparent)]
    Module(#[from] module::kmod::Error),
    /// The scheduler could not be built for this kernel.
    #[error(transparent)]
    Scheduler(#[from] module::sched::Error),
    /// The guest's specification could not be serialized.
    #[error("cannot make the guest's orders: {0}")]
    Spec(#[from] serde_json::Error),
    /// A guest gave no result.
    #[error(transparent)]
    Guest(Box<GuestFailure>),
    /// Stopped by Ctrl-C.
    #[error("interrupted; no result was written")]
    Interrupted,
}

/// A guest that gave no result, and what its console said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct GuestFailure {
    /// The experiment's name.
    pub experiment: String,
    /// The guest's policy.
    pub policy: String,
    /// The guest's seed.
    pub seed: u64,
    /// Reason, as a sentence without full stop.
    pub reason: String,
    /// The lines of the console log that tell what happened.
    pub console: String,
}

impl fmt::Display for GuestFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "experiment {}, policy {}, seed {}: {}; no result was written",
            self.experiment, self.policy, self.seed, self.reason
        )?;
        if self.console.is_empty() {
            return write!(out, ". The guest's console is empty.");
        }
        write!(out, ". From the guest's console:\n{}", self.console)
    }
}

impl Error {
    pub(crate) fn file(path: impl AsRef<Path>) -> impl Fn(io::Error) -> Error {
        let failed = PathError::of("access", path.as_ref());
        move |source| Error::File(failed(source))
    }
}
