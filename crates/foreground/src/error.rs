use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Why nothing can be put in front.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device was not understood.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// A knob or the journal of changes.
    #[error(transparent)]
    Knobs(#[from] knobs::Error),
    /// Only cgroup v1, or none.
    #[error(
        "no cgroup v2 hierarchy is mounted: boot with systemd.unified_cgroup_hierarchy=1, or mount -t cgroup2 none /sys/fs/cgroup"
    )]
    NoHierarchy,
    /// The process or cgroup does not exist.
    #[error(
        "{0} is neither a process nor a cgroup: give a process id, or a path as /proc/PID/cgroup shows it"
    )]
    Unknown(String),
    /// All processes are in the root cgroup.
    #[error(
        "{0} is in the root cgroup, with everybody else: start it in one of its own (systemd-run --user --scope COMMAND)"
    )]
    Root(String),
    /// The controller does not reach the cgroup.
    #[error("the {controller} controller is not enabled for {cgroup}: write +{controller} to {}", switch.display())]
    NoController {
        /// `memory` or `io`.
        controller: &'static str,
        /// The cgroup.
        cgroup: String,
        /// The file that enables it.
        switch: PathBuf,
    },
    /// It existed a moment ago.
    #[error("the cgroup {0} has vanished: its last process has ended")]
    Gone(String),
    /// The kernel was told to do without.
    #[error(
        "this kernel runs without the {0} controller: boot with cgroup_enable={0}, or without cgroup_disable={0}"
    )]
    Disabled(&'static str),
    /// There is nobody to be served first.
    #[error("no process is in {0}: start the app first")]
    Empty(String),
    /// More than anybody has on a screen.
    #[error("an order may name {0} cgroups: name those that matter")]
    TooMany(usize),
    /// Not who sits at the machine.
    #[error(
        "your session is not the one at the screen (loginctl seat-status), so it has nobody in front: run the command there, or with sudo"
    )]
    NotSeated,
    /// Others are to be served, too.
    #[error("too many requests: ask again in a second, and no more than twenty times in one")]
    TooOften,
    /// Somebody else's app.
    #[error("{0} belongs to somebody else: run the command with sudo")]
    NotYours(String),
    /// There can be one.
    #[error("frontrowd runs already: `frontrow fg status` says what it does")]
    Running,
    /// Talking to the daemon, or being it.
    #[error("cannot talk through {path}: {source}")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A message is not what it should be.
    #[error(
        "frontrowd and this program do not understand each other: restart frontrowd, so that both are of one version"
    )]
    Garbled,
    /// What the daemon said.
    #[error("{sentence}")]
    Daemon {
        /// Its kind.
        kind: Kind,
        /// What went wrong and what to do, as one sentence for a person.
        sentence: String,
    },
    /// Cgroups cannot be watched.
    #[error("cannot watch {path}: {source}")]
    Watch {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else is in front.
    #[error("somebody is in front already: `frontrow fg release` first")]
    Held,
    /// The system's memory could not be read.
    #[error("cannot read how much memory there is from {path}: {reason}")]
    Memory {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// What kind of trouble an [`Error`] is, for exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What was asked for makes no sense.
    Usage,
    /// This system cannot do it.
    Unsupported,
    /// Somebody else may.
    Permission,
    /// It would not be safe.
    Refused,
    /// Reading or writing failed.
    Internal,
}

impl Error {
    /// What kind of trouble it is.
    pub fn kind(&self) -> Kind {
        let denied = match self {
            Error::Knobs(error) => error.io(),
            Error::Socket { source, .. } => Some(source),
            _ => None,
        };
        match self {
            _ if denied.is_some_and(|it| it.kind() == ErrorKind::PermissionDenied) => {
                Kind::Permission
            }
            Error::Unknown(_) | Error::Root(_) | Error::Empty(_) | Error::Gone(_) => Kind::Usage,
            Error::TooMany(_) => Kind::Usage,
            Error::NoHierarchy | Error::NoController { .. } => Kind::Unsupported,
            Error::Disabled(_) => Kind::Unsupported,
            Error::Held | Error::Running | Error::TooOften => Kind::Refused,
            Error::NotYours(_) | Error::NotSeated => Kind::Permission,
            Error::Daemon { kind, .. } => *kind,
            Error::Knobs(knobs::Error::Held { .. }) => Kind::Refused,
            Error::Device(_) | Error::Knobs(_) | Error::Memory { .. } => Kind::Internal,
            Error::Socket { .. } | Error::Garbled | Error::Watch { .. } => Kind::Internal,
        }
    }

    /// Whether a cgroup or a disk was there a moment ago: whoever asks again gets an answer.
    pub(crate) fn is_vanished(&self) -> bool {
        match self {
            Error::Gone(_) => true,
            Error::Knobs(
                knobs::Error::Read { source, .. } | knobs::Error::Write { source, .. },
            ) => source.kind() == ErrorKind::NotFound,
            Error::Knobs(error) => error.is_gone(),
            _ => false,
        }
    }
}
