//! Power of an emulated device (`SIMFLASH_IOC_POWER`).

use crate::{Failure, Outcome};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// `struct simflash_power`: the argument of the ioctl.
#[repr(C)]
struct Raw {
    version: u32,
    op: u32,
    operations: u64,
    seed: u64,
    off: u32,
    unused: u32,
}

const VERSION: u32 = 3;
const CUT: u32 = 0;
const ON: u32 = 1;

/// `_IOWR(0xf5, 7, struct simflash_power)`.
const IOC_POWER: libc::c_ulong =
    (3 << 30) | ((size_of::<Raw>() as libc::c_ulong) << 16) | (0xf5 << 8) | 7;

/// A device never does this many operations.
const NEVER: u64 = 1 << 62;

/// A device whose power can be cut.
pub(crate) struct Power {
    node: PathBuf,
    file: File,
}

impl Power {
    pub(crate) fn of(node: &Path) -> Outcome<Power> {
        Ok(Power {
            node: node.to_owned(),
            file: File::open(node).map_err(Failure::io("open", node))?,
        })
    }

    /// Cuts the power during the `operations`th program or erase from now; 0 is at once. `seed`
    /// determines how that operation is torn.
    pub(crate) fn cut(&self, operations: u64, seed: u64) -> Outcome<()> {
        self.command(CUT, operations, seed).map(drop)
    }

    /// Switches the power on; the device mounts.
    pub(crate) fn on(&self) -> Outcome<()> {
        self.command(ON, 0, 0).map(drop)
    }

    /// Whether the power is off. A cut that has not come yet is cancelled.
    pub(crate) fn is_off(&self) -> Outcome<bool> {
        self.command(CUT, NEVER, 0)
    }

    fn command(&self, op: u32, operations: u64, seed: u64) -> Outcome<bool> {
        let mut raw = Raw {
            version: VERSION,
            op,
            operations,
            seed,
            off: 0,
            unused: 0,
        };
        // SAFETY: the device reads and writes one `struct simflash_power`.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), IOC_POWER, &mut raw) } {
            0 => Ok(raw.off != 0),
            _ => {
                let failed = Failure::io("command the power of", &self.node);
                Err(failed(io::Error::last_os_error()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_that_of_the_header() {
        // _IOWR(0xf5, 7, 32 bytes).
        assert_eq!(IOC_POWER, 0xc020_f507);
    }
}
