//! A kernel to build modules against, and the build.

mod build;
mod source;
mod tree;

pub use build::build;
pub use source::Source;
pub use tree::{Tree, Wanted};

use std::path::{Path, PathBuf};
use sys::PathError;

/// Why a module could not be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] PathError),
    /// The kernel's headers are not there.
    #[error(
        "the headers of kernel {release} are missing at {path}: install them (Debian: linux-headers-{release})"
    )]
    NoHeaders {
        /// The kernel's release.
        release: String,
        /// Path where the headers should be.
        path: PathBuf,
    },
    /// None of the usual places holds the kernel's type information.
    #[error(
        "kernel {release} has no BTF type information in its headers or its image: use a kernel built with CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf {
        /// The kernel's release.
        release: String,
    },
    /// The path has characters that make would interpret.
    #[error(
        "make cannot build in {path}: give a directory whose path has only letters, digits and /._+-,@=~"
    )]
    Path {
        /// Path of the directory.
        path: PathBuf,
    },
    /// Others could change what is built.
    #[error("no module is built in {path}: {reason}")]
    Shared {
        /// Path of the directory.
        path: PathBuf,
        /// What others may change, and what to do.
        reason: String,
    },
    /// `make` is not installed.
    #[error("cannot run make ({source}): install make and gcc (Debian: apt-get install make gcc)")]
    NoMake {
        /// Error of the system.
        source: std::io::Error,
    },
    /// The compiler refused.
    #[error("building the module {module} for kernel {release} failed:\n{output}")]
    Build {
        /// The module's name.
        module: String,
        /// The kernel's release.
        release: String,
        /// The end of what make and the compiler said.
        output: String,
    },
}

impl Error {
    fn file(path: impl AsRef<Path>) -> impl Fn(std::io::Error) -> Error {
        let failed = PathError::of("access", path.as_ref());
        move |source| Error::File(failed(source))
    }
}
