//! Recording: programs in the kernel, and the process that brings what they see
//! to disk.

mod background;
mod command;
mod machine;
mod permission;
mod programs;
mod recorder;
mod ring;
mod symbols;

pub use background::Background;
pub use machine::clock_ns;
pub use recorder::{Closing, Progress, Request, Summary, What, record, stream};

use std::path::PathBuf;

/// Why nothing was recorded, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user may not.
    #[error(
        "recording needs root's rights (CAP_SYS_ADMIN): run it with sudo, or try it in a guest with `frontrow lab exec`"
    )]
    NoPermission,
    /// The kernel, or a sandbox around it, loads no tracing programs.
    #[error(
        "this kernel refuses tracing programs even to root ({reason}): record on another machine, or in a guest with `frontrow lab exec`"
    )]
    Refused {
        /// What is known of the reason.
        reason: &'static str,
    },
    /// The kernel does not describe its types.
    #[error(
        "this kernel has no BTF type information (/sys/kernel/btf/vmlinux): boot one built with CONFIG_DEBUG_INFO_BTF, or record in a guest with `frontrow lab exec`"
    )]
    NoBtf,
    /// Something is not there without which nothing can be linked.
    #[error(
        "this kernel has no {0}, which recording needs: boot 6.1 or newer, on arm64 6.4, or record in a guest with `frontrow lab exec`"
    )]
    KernelLacks(String),
    /// A field is not where, or not what, these programs know.
    #[error(
        "this kernel's {0} is none that this version of frontrow knows: use a newer frontrow, boot a kernel from 6.1 to 7.3, or record in a guest with `frontrow lab exec`"
    )]
    UnknownField(String),
    /// The kernel found fault with a program: ours.
    #[error(
        "the kernel does not accept frontrow's tracing programs; please report this with your kernel's version:\n{0}"
    )]
    Load(String),
    /// The recording's file system is full.
    #[error(
        "{path} is full: the recording is good up to there; record to another disk with -o, or free some space"
    )]
    DiskFull {
        /// The recording.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("cannot access {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no such process or cgroup.
    #[error("there is no {0}: give one that runs")]
    NoTarget(String),
    /// The command could not be started.
    #[error("cannot run {command}: {source}")]
    Command {
        /// Its name.
        command: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A system call failed that never should.
    #[error("the system failed unexpectedly: {0}")]
    System(#[source] std::io::Error),
}
