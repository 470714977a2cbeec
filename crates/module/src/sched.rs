//! The scheduler module from user space: build, enable, disable, counters.
//!
//! What makes a device use `frontrow` is more than the scheduler's name: the module has to
//! be loaded, the queue needs enough tags, and writeback throttling has to be off. All of it
//! is done by [`enable`](fn@enable), written down by [`sys::knobs`], and undone by [`disable`].

mod boost;
pub mod boot;
pub mod build;
mod counters;
mod enable;
mod fit;
pub mod hour;
mod module;
pub mod policy;
mod state;
mod status;
pub mod taken;
mod takers;

pub use boost::Boost;
pub use counters::{Counters, Dependency, Waits};
pub use enable::{NR_REQUESTS, SCHEDULER, changes, disable, enable, is_enabled};
pub use fit::{Unfit, unfit};
pub use module::Module;
pub use status::{Status, counters_of, status};
pub use takers::{OWN_RULE, Taker};

use std::io;
use std::path::PathBuf;
use sys::PathError;

/// Why the scheduler cannot be used, or not be left.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device was not found or not understood.
    #[error(transparent)]
    Device(#[from] sys::device::Error),
    /// A knob or the journal of changes.
    #[error(transparent)]
    Knobs(#[from] sys::knobs::Error),
    /// The module could not be built.
    #[error(transparent)]
    Build(#[from] crate::kmod::Error),
    /// No declarations can be made for the kernel.
    #[error("{path}: {source}")]
    Abi {
        /// Path where BTF was searched.
        path: PathBuf,
        /// Error in the BTF, or difference of the kernel.
        source: crate::abi::Error,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] PathError),
    /// The device has no requests that could be scheduled.
    #[error("{device} has no I/O scheduler, as it passes its requests on{}", hint(.below))]
    NoScheduler {
        /// Name of the device.
        device: String,
        /// Names of the disks below it.
        below: Vec<String>,
    },
    /// A scheduler that the kernel does not have.
    #[error(
        "the kernel has no scheduler {name:?}: its modules registered {offered}; use one of these, or load the module of the other"
    )]
    UnknownPolicy {
        /// Name of the scheduler.
        name: String,
        /// Names of the schedulers that the device can have.
        offered: String,
    },
    /// A promotion's name that is not one.
    #[error(
        "there is nothing to boost called {0:?}: use all, none, or some of meta, data, journal and discard, separated by commas"
    )]
    UnknownBoost(String),
    /// The module is not installed for the running kernel.
    #[error(
        "the module frontrow_iosched is not installed for kernel {release}: install the kernel's headers (Debian: linux-headers-{release}) and the package frontrow-dkms, which builds it (from a checkout: `make install`)"
    )]
    NoModule {
        /// The running kernel.
        release: String,
    },
    /// The program that loads modules is not there.
    #[error("cannot run modprobe ({0}): install kmod (Debian: apt-get install kmod)")]
    NoModprobe(io::Error),
    /// The kernel takes only modules with a signature it trusts.
    #[error(
        "kernel {release} loads only modules that are signed with a key it trusts ({}), and this one is not: {}", why_signed(*.locked_down), how_trusted(*.locked_down)
    )]
    NotTrusted {
        /// The running kernel.
        release: String,
        /// Whether Secure Boot locked the kernel down, rather than a setting.
        locked_down: bool,
    },
    /// Others could have put their own module in its place, or could yet.
    #[error("{path} is not loaded as a module: {reason}")]
    Shared {
        /// Path of the module.
        path: PathBuf,
        /// What others may change, and what to do.
        reason: String,
    },
    /// The user turned it off for this boot.
    #[error(
        "frontrow.disable is on the kernel's command line, so disks keep their schedulers: boot without it"
    )]
    TurnedOff,
    /// A boot with the scheduler did not come to its end.
    #[error(
        "an earlier boot broke off soon after it had enabled the scheduler, so this one goes without: look what that boot said last (`journalctl -b -1`), and run `frontrow on`, or `frontrow sched enable DISK`, to have it at boot again"
    )]
    BootFailed,
    /// The module was built for another kernel.
    #[error(
        "the module was built for another kernel than the running {release}: build it again (`frontrow sched build --kernel {release} --out DIR`, or `dkms autoinstall`)"
    )]
    OtherKernel {
        /// The running kernel.
        release: String,
    },
    /// The module refuses the kernel (`frontrow_detect_init()`).
    #[error(
        "the scheduler does not run on kernel {release}, which is built with PREEMPT_RT, or tells nobody of waits (`dmesg` says which): boot another kernel"
    )]
    KernelUnsupported {
        /// The running kernel.
        release: String,
    },
    /// Only root may load modules and change devices.
    #[error("{what} needs root: run the command with sudo")]
    Permission {
        /// Description of the refused action.
        what: String,
    },
    /// The kernel refused the module for another reason.
    #[error("the kernel did not take the module: {0} (`dmesg` may say more)")]
    ModuleRefused(String),
    /// The module was loaded, yet its scheduler is not offered.
    #[error(
        "the module is loaded, but {device} does not offer its scheduler frontrow: see `dmesg`"
    )]
    NotOffered {
        /// Name of the device.
        device: String,
    },
    /// `frontrow` is active, but what was there before is not known.
    #[error(
        "{device} uses frontrow, but `frontrow sched enable` did not set it, so what was there before is not known: choose a scheduler by writing its name to /sys/block/{device}/queue/scheduler"
    )]
    NotOurs {
        /// Name of the device.
        device: String,
    },
}

fn why_signed(locked_down: bool) -> &'static str {
    match locked_down {
        true => "Secure Boot",
        false => "module.sig_enforce=1, or its configuration",
    }
}

fn how_trusted(locked_down: bool) -> &'static str {
    match locked_down {
        true => {
            "DKMS signs it; enrol its key with `mokutil --import /var/lib/dkms/mok.pub` and confirm that at the next boot, or turn Secure Boot off"
        }
        false => {
            "boot without module.sig_enforce=1, or with Secure Boot and DKMS's key enrolled (`mokutil --import /var/lib/dkms/mok.pub`)"
        }
    }
}

fn hint(below: &[String]) -> String {
    if below.is_empty() {
        return String::new();
    }
    format!(": use what is below it, {}", below.join(" or "))
}

impl Error {
    /// Whether root would have been allowed to.
    pub fn is_permission(&self) -> bool {
        let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        match self {
            Self::Permission { .. } | Self::NotTrusted { .. } => true,
            Self::Knobs(error) => error.io().is_some_and(denied),
            Self::Device(sys::device::Error::Read { source, .. })
            | Self::Build(crate::kmod::Error::File(PathError { source, .. }))
            | Self::File(PathError { source, .. }) => denied(source),
            _ => false,
        }
    }
}
