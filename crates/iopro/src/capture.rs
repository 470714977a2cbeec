//! Recording: the programs in the kernel, and the threads that write their events to disk.

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
pub use recorder::{
    EVENTS_PER_MISSED, Loaded, Progress, Request, Summary, What, kept, record, stream,
};

use std::path::PathBuf;
use sys::PathError;

/// Reasons why nothing was recorded, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user lacks the capabilities for tracing programs.
    #[error(
        "recording needs root's rights (CAP_SYS_ADMIN): run it with sudo, or try it in a guest with `frontrow-lab exec`"
    )]
    NoPermission,
    /// The kernel, or a sandbox around it, loads no tracing programs.
    #[error(
        "this kernel refuses tracing programs even to root ({reason}): record on another machine, or in a guest with `frontrow-lab exec`"
    )]
    Refused {
        /// Cause of the refusal, as far as it is known.
        reason: &'static str,
    },
    /// The kernel has no BTF type information.
    #[error(
        "this kernel has no BTF type information (/sys/kernel/btf/vmlinux): give that of this very kernel with `--btf FILE`, boot one built with CONFIG_DEBUG_INFO_BTF, or record in a guest with `frontrow-lab exec`"
    )]
    NoBtf,
    /// The kernel lets no functions be traced. Recording then does without them.
    #[error("this kernel has no way to trace its functions (fentry)")]
    FunctionsNotTraced,
    /// The kernel lacks a program's place without which nothing can be linked.
    #[error(
        "this kernel has no {0}, which recording needs: boot 6.1 or newer, or record in a guest with `frontrow-lab exec`"
    )]
    KernelLacks(String),
    /// A field of a kernel structure has an unknown place or type.
    #[error(
        "this kernel's {0} is none that this version of frontrow knows: use a newer frontrow, boot a kernel from 6.1 to 7.3, or record in a guest with `frontrow-lab exec`"
    )]
    UnknownField(String),
    /// The verifier rejects a program, which is a fault of frontrow; holds the verifier's log.
    #[error(
        "the kernel does not accept frontrow's tracing programs; please report this with your kernel's version:\n{0}"
    )]
    Load(String),
    /// The recording's file system is full.
    #[error(
        "{path} is full: the recording is good up to there; record to another disk with -o, or free some space"
    )]
    DiskFull {
        /// Path of the recording.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] PathError),
    /// No process or cgroup matches the named target.
    #[error("there is no {0}: give one that runs")]
    NoTarget(String),
    /// The command to record could not be started.
    #[error("cannot run {command}: {source}")]
    Command {
        /// Name of the command's program.
        command: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A system call failed that does not fail in normal operation.
    #[error("the system failed unexpectedly: {0}")]
    System(#[source] std::io::Error),
}
