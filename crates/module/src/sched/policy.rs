//! A device's policy by its name in experiments: `mq-deadline`, `frontrow`, `frontrow:meta`.

use crate::sched::enable::{change, schedulers};
use crate::sched::{Boost, Error, Module};
use std::path::Path;
use std::str::FromStr;
use sys::device::Device;
use sys::knobs::Change;

/// The kernel's own schedulers, which it loads itself when they are asked for.
const STOCK: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Policy for a device's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// A scheduler of the kernel or of another module, with default settings.
    Other(String),
    /// Ours, with these waits promoting.
    Frontrow(Boost),
}

/// What follows `frontrow:` if the module was loaded with `probes=0`.
const NO_PROBES: &str = "no-probes";

/// `frontrow` may be followed by `:` and what promotes.
impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            None if text == crate::sched::SCHEDULER => Ok(Self::Frontrow(Boost::all())),
            Some((crate::sched::SCHEDULER, NO_PROBES)) => Ok(Self::Frontrow(Boost::all())),
            Some((crate::sched::SCHEDULER, boost)) => Ok(Self::Frontrow(boost.parse()?)),
            _ => Ok(Self::Other(text.to_owned())),
        }
    }
}

/// Applies `policy` to `device` after undoing an earlier one. A policy that is not ours sets only
/// the scheduler.
///
/// # Errors
/// [`Error`]: the device, the name, the module, or a knob.
pub fn apply(root: &Path, device: &str, policy: &str) -> Result<Vec<Change>, Error> {
    let policy = policy.parse()?;
    let device = Device::resolve(root, device)?;
    match policy {
        Policy::Frontrow(boost) => crate::sched::enable(root, &device, &boost, &Module::Installed),
        Policy::Other(scheduler) => {
            let offered = schedulers(&device)?.available;
            if !STOCK.contains(&scheduler.as_str()) && !offered.contains(&scheduler) {
                return Err(Error::UnknownPolicy {
                    name: scheduler,
                    offered: offered.join(", "),
                });
            }
            crate::sched::disable(root, &device)?;
            change(root, &device, |journal| {
                let path = device.queue_attribute("scheduler");
                Ok(journal.set(&path, &scheduler, "the policy that was asked for")?)
            })
        }
    }
}
