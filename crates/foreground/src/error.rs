use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Reasons why an app cannot be made the foreground.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device could not be identified.
    #[error(transparent)]
    Device(#[from] sys::device::Error),
    /// A knob, or the journal of changes, could not be read or written.
    #[error(transparent)]
    Knobs(#[from] sys::knobs::Error),
    /// No cgroup v2 hierarchy is mounted.
    #[error(
        "no cgroup v2 hierarchy is mounted: boot with systemd.unified_cgroup_hierarchy=1, or mount -t cgroup2 none /sys/fs/cgroup"
    )]
    NoHierarchy,
    /// The process or cgroup does not exist.
    #[error(
        "{0} is neither a process nor a cgroup: give a process id, or a path as /proc/PID/cgroup shows it"
    )]
    Unknown(String),
    /// The process is in the root cgroup, which has no settings.
    #[error(
        "{0} is in the root cgroup: start it in a cgroup of its own (systemd-run --user --scope COMMAND)"
    )]
    Root(String),
    /// The controller is not enabled for the cgroup.
    #[error("the {controller} controller is not enabled for {cgroup}: write +{controller} to {}", switch.display())]
    NoController {
        /// `memory` or `io`.
        controller: &'static str,
        /// Path of the cgroup in the hierarchy.
        cgroup: String,
        /// The file that enables it.
        switch: PathBuf,
    },
    /// The cgroup was removed meanwhile.
    #[error("the cgroup {0} has vanished: its last process has ended")]
    Gone(String),
    /// The controller is disabled on the kernel's command line.
    #[error(
        "this kernel runs without the {0} controller: boot with cgroup_enable={0}, or without cgroup_disable={0}"
    )]
    Disabled(&'static str),
    /// The cgroup has no process.
    #[error("no process is in {0}: start the app first")]
    Empty(String),
    /// The order names too many cgroups.
    #[error("at most {0} cgroups can be named: name the most important ones")]
    TooMany(usize),
    /// The user's session is not active on a seat.
    #[error(
        "your session is not the one at the screen (loginctl seat-status), so it has no say in the foreground: run the command there, or with sudo"
    )]
    NotSeated,
    /// The user exceeds the rate of requests.
    #[error("too many requests: try again in a second; the limit is twenty per second")]
    TooOften,
    /// The cgroup belongs to another user.
    #[error("{0} belongs to another user: run the command with sudo")]
    NotYours(String),
    /// Another daemon is running.
    #[error("frontrowd runs already: `frontrow fg status` says what it does")]
    Running,
    /// The daemon's socket could not be used.
    #[error("cannot talk through {path}: {source}")]
    Socket {
        /// Path of the socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A message could not be parsed.
    #[error("frontrowd and this program have different versions: restart frontrowd")]
    Garbled,
    /// Error that the daemon reported.
    #[error("{sentence}")]
    Daemon {
        /// Kind of the error.
        kind: Kind,
        /// The error and its remedy, in one sentence.
        sentence: String,
    },
    /// inotify failed for this path.
    #[error("cannot watch {path}: {source}")]
    Watch {
        /// The watched file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Earlier settings are still in force.
    #[error("settings for a foreground are in force already: run `frontrow fg release` first")]
    AlreadyApplied,
    /// The size of memory could not be read.
    #[error("cannot read how much memory there is from {path}: {reason}")]
    Memory {
        /// Path of meminfo.
        path: PathBuf,
        /// Reason of the failure.
        reason: String,
    },
}

/// Kinds of [`Error`], for exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The arguments are invalid.
    Usage,
    /// The system lacks a feature.
    Unsupported,
    /// The user lacks the permission.
    Permission,
    /// Refused because of the present state.
    Refused,
    /// Reading or writing failed.
    Internal,
}

impl Error {
    /// Kind of the error.
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
            Error::AlreadyApplied | Error::Running | Error::TooOften => Kind::Refused,
            Error::NotYours(_) | Error::NotSeated => Kind::Permission,
            Error::Daemon { kind, .. } => *kind,
            Error::Knobs(sys::knobs::Error::Locked { .. }) => Kind::Refused,
            Error::Device(_) | Error::Knobs(_) | Error::Memory { .. } => Kind::Internal,
            Error::Socket { .. } | Error::Garbled | Error::Watch { .. } => Kind::Internal,
        }
    }

    /// Whether a cgroup or a disk was removed meanwhile, so that a retry may succeed.
    pub(crate) fn is_vanished(&self) -> bool {
        match self {
            Error::Gone(_) => true,
            Error::Knobs(
                sys::knobs::Error::Read { source, .. } | sys::knobs::Error::Write { source, .. },
            ) => source.kind() == ErrorKind::NotFound,
            Error::Knobs(error) => error.is_gone(),
            _ => false,
        }
    }
}
