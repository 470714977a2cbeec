//! A device's policy by its name in experiments: `mq-deadline`, `frontrow`, `frontrow:meta`.

use crate::enable::change;
use crate::{Boost, Error, Module};
use device::Device;
use knobs::Change;
use std::path::Path;
use std::str::FromStr;

/// The kernel's own schedulers.
const STOCK: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// What decides the order of a device's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One of the kernel's schedulers, with the kernel's settings.
    Stock(String),
    /// Ours, with these waits promoting.
    Frontrow(Boost),
}

/// `frontrow` may be followed by `:` and what promotes.
impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if STOCK.contains(&text) {
            return Ok(Self::Stock(text.to_owned()));
        }
        match text.split_once(':') {
            None if text == crate::SCHEDULER => Ok(Self::Frontrow(Boost::all())),
            Some((crate::SCHEDULER, boost)) => Ok(Self::Frontrow(boost.parse()?)),
            _ => Err(Error::UnknownPolicy(text.to_owned())),
        }
    }
}

/// Gives the device that `device` names the policy `policy`, after undoing what an earlier
/// one changed. For a stock policy nothing but the scheduler is set.
///
/// # Errors
/// [`Error`]: the device, the name, the module, or a knob.
pub fn apply(root: &Path, device: &str, policy: &str) -> Result<Vec<Change>, Error> {
    let policy = policy.parse()?;
    let device = Device::resolve(root, device)?;
    match policy {
        Policy::Frontrow(boost) => crate::enable(root, &device, &boost, &Module::Installed),
        Policy::Stock(scheduler) => {
            crate::disable(root, &device)?;
            change(root, &device, |journal| {
                let path = device.queue_attribute("scheduler");
                Ok(journal.set(&path, &scheduler, "the policy that was asked for")?)
            })
        }
    }
}
