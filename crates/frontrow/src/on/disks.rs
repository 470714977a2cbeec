//! Which disks `frontrow on` puts under the scheduler, and why the others are left out.

use crate::exit::Failure;
use crate::sched::failure;
use module::sched::{Error, Module, Unfit, boot, unfit};
use std::path::Path;
use sys::device::Device;

/// Something that is left as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Names of disks, or of a part of Frontrow.
    pub(super) what: Vec<String>,
    pub(super) why: String,
}

impl LeftOut {
    pub(super) fn new(what: &str, why: impl ToString) -> Self {
        LeftOut {
            what: vec![what.to_owned()],
            why: why.to_string(),
        }
    }
}

/// The disks of a machine.
pub(super) struct Disks {
    pub(super) chosen: Vec<Device>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Chooses the disks that gain. Drives without a medium are no disks, and not worth a word.
pub(super) fn choose(root: &Path) -> Result<Disks, Failure> {
    let mut chosen = Vec::new();
    let mut left_out: Vec<LeftOut> = Vec::new();
    for device in Device::all(root).map_err(|error| failure(error.into()))? {
        let why = match unfit(&device).map_err(failure)? {
            None => {
                chosen.push(device);
                continue;
            }
            Some(Unfit::Empty) => continue,
            Some(why) => why.to_string(),
        };
        let name = device.name().to_owned();
        match left_out.iter_mut().find(|it| it.why == why) {
            Some(known) => known.what.push(name),
            None => left_out.push(LeftOut::new(&name, why)),
        }
    }
    Ok(Disks { chosen, left_out })
}

/// Why this boot is without the scheduler, whichever the disk; None if nothing is known against it.
pub(super) fn against_scheduler(root: &Path) -> Result<Option<Error>, Failure> {
    if boot::is_turned_off(root).map_err(failure)? {
        return Ok(Some(Error::TurnedOff));
    }
    match Module::Installed.find(root) {
        Ok(()) => Ok(None),
        Err(error @ Error::NoModule { .. }) => Ok(Some(error)),
        Err(error) => Err(failure(error)),
    }
}

/// Whether an error is one of the machine, which every other disk would meet as well.
pub(super) fn is_of_machine(error: &Error) -> bool {
    matches!(
        error,
        Error::NoModule { .. }
            | Error::NoModprobe(_)
            | Error::NotTrusted { .. }
            | Error::OtherKernel { .. }
            | Error::KernelUnsupported { .. }
            | Error::ModuleRefused(_)
            | Error::TurnedOff
    )
}
