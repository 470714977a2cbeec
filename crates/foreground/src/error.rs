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
    /// Nothing would be done.
    #[error("no disk uses the frontrow scheduler: run `frontrow sched enable DEVICE` first")]
    NoScheduler,
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
