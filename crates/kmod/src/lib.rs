//! A kernel to build modules against, and the build.

mod build;
mod source;
mod tree;

pub use build::build;
pub use source::Source;
pub use tree::{Tree, Wanted};

use std::path::PathBuf;

/// Why a module could not be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot access {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The kernel's headers are not there.
    #[error(
        "the headers of kernel {release} are missing at {path}: install them (Debian: linux-headers-{release})"
    )]
    NoHeaders {
        /// The kernel's release.
        release: String,
        /// Where they would be.
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
    /// make would take the path for something else.
    #[error(
        "make cannot build in {path}: give a directory whose path has only letters, digits and /._+-,@=~"
    )]
    Path {
        /// The directory.
        path: PathBuf,
    },
    /// `make` is not installed.
    #[error("cannot run make ({source}): install make and gcc (Debian: apt-get install make gcc)")]
    NoMake {
        /// What the system said.
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
    fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { path, source }
    }
}
