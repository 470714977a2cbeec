//! Disks that the scheduler helps, for commands that choose disks by themselves.

use crate::sched::Error;
use crate::sched::enable::schedulers;
use std::fmt;
use sys::device::Device;

/// Why a disk is left as it is when nobody has named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// No medium, or no file behind it.
    Empty,
    /// A loop device, zram, or another disk without hardware of its own.
    Virtual,
    /// It passes its requests on to the disks named.
    PassesOn(Vec<String>),
    /// The kernel takes no writes for it.
    ReadOnly,
    /// Its seeks take longer than anything that the scheduler decides.
    Rotating,
    /// It says that it rotates, and may lie on flash all the same.
    RotatingByHost,
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Empty => out.write_str("no medium is in it"),
            Unfit::Virtual => out.write_str("it is no hardware, and the disk below it counts"),
            Unfit::PassesOn(below) if below.is_empty() => {
                out.write_str("it passes its requests on")
            }
            Unfit::PassesOn(below) => {
                write!(out, "it passes its requests on to {}", below.join(" and "))
            }
            Unfit::ReadOnly => out.write_str("it is read-only"),
            Unfit::Rotating => out.write_str("it rotates, and the scheduler is made for flash"),
            Unfit::RotatingByHost => out.write_str(
                "it says that it rotates, as virtual machines' disks do: `sudo frontrow sched enable DISK` if it lies on flash",
            ),
        }
    }
}

/// Why `device` does not gain by the scheduler; None if it does.
///
/// # Errors
/// [`Error::Device`].
pub fn unfit(device: &Device) -> Result<Option<Unfit>, Error> {
    if device.size_bytes()? == 0 {
        return Ok(Some(Unfit::Empty));
    }
    let passes_on = |below| Ok(Some(Unfit::PassesOn(below)));
    let below = device.below()?;
    if !below.is_empty() {
        return passes_on(below);
    }
    if device.is_virtual() {
        return Ok(Some(Unfit::Virtual));
    }
    match schedulers(device) {
        Err(Error::NoScheduler { below, .. }) => return passes_on(below),
        other => other?,
    };
    if device.is_read_only()? {
        return Ok(Some(Unfit::ReadOnly));
    }
    Ok(match (device.rotates()?, device.is_of_virtual_machine()) {
        (false, _) => None,
        (true, false) => Some(Unfit::Rotating),
        (true, true) => Some(Unfit::RotatingByHost),
    })
}
