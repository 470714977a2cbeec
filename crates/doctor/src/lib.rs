//! Diagnosis of a machine that stutters: who waited, how long, for what, and what caused it.
//!
//! [`watch`] reads `/proc` and `/sys` below a root directory, [`live`] sums up iopro's frames; both
//! fill an [`Observation`]. [`judge()`], a pure function, makes a [`Diagnosis`] of it, and [`page`]
//! and [`html`] show that.

mod account;
mod apps;
pub mod cause;
pub mod fleet;
pub mod groups;
pub mod html;
pub mod judge;
mod kernel_threads;
pub mod live;
pub mod machine;
pub mod metrics;
pub mod noted;
pub mod observe;
mod over_time;
pub mod page;
pub mod pieces;
pub mod recorded;
pub mod settle;
mod silence;
mod stacks;
pub mod stall;
pub mod study;
mod task;
pub mod top;
pub mod trial;
pub mod watch;

pub use judge::{Diagnosis, judge};
pub use machine::Machine;
pub use observe::{Level, Observation};

/// Reasons why a machine cannot be diagnosed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// /proc is not mounted.
    #[error(
        "cannot read {0}, which tells what processes wait for: mount /proc, or leave the sandbox"
    )]
    NoProc(String),
    /// This is a container, where only its own processes are visible.
    #[error(
        "this is a container, which sees neither who else uses the disk nor how it is set: run frontrow doctor on its host, or in a container with its PID namespace and privileges (docker run --privileged --pid=host)"
    )]
    Container,
    /// The kernel has no pressure files (PSI).
    #[error(
        "this kernel measures no pressure (/proc/pressure/io): add psi=1 to its command line (on Raspberry Pi OS in /boot/firmware/cmdline.txt) and boot again, or boot one built with CONFIG_PSI"
    )]
    NoPressure,
    /// The pressure files are those of the unified hierarchy.
    #[error(
        "this machine uses control groups of version 1 only: boot with systemd.unified_cgroup_hierarchy=1"
    )]
    OldCgroups,
    /// /sys is read-only.
    #[error(
        "/sys is read-only here, so nothing can be tried: run frontrow doctor without --try, or mount -o remount,rw /sys"
    )]
    ReadOnly,
    /// A disk's description could not be read.
    #[error(transparent)]
    Device(#[from] sys::device::Error),
}
