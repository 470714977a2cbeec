//! QEMU's program: the host's own, or a newer one where a guest's disks need it.

use crate::cache::Cache;
use crate::debian::BACKPORTS;
use crate::{Error, tool, toolchain};
use std::path::PathBuf;
use std::process::Command;
use sys::arch::Arch;

/// First series that is known to emulate all of [`torture::SOLDERED`]. 7.2 (Debian 12) has neither
/// disk, and in 10.0 (Debian 13) a user may not create an eMMC.
const WITH_SOLDERED_DISKS: u32 = 11;

/// Directories of the firmware in unpacked packages.
const FIRMWARE: [&str; 2] = ["usr/share/seabios", "usr/share/qemu"];

/// A program of QEMU's.
#[derive(Clone, Debug)]
pub struct Emulator {
    program: PathBuf,
    /// Where its firmware is; empty if it finds that itself.
    firmware: Vec<PathBuf>,
}

impl Emulator {
    /// The host's own for guests of `arch`.
    pub fn of_host(arch: Arch) -> Emulator {
        Emulator {
            program: arch.machine.program.into(),
            firmware: Vec::new(),
        }
    }

    /// One that has all of [`torture::SOLDERED`]: if the host's own is older, that of Debian 13's
    /// backports.
    pub fn with_soldered_disks(cache: &Cache, arch: Arch) -> Result<Emulator, Error> {
        let host = series(&version(arch)?);
        if host.is_some_and(|it| it >= WITH_SOLDERED_DISKS) {
            return Ok(Emulator::of_host(arch));
        }
        let root = toolchain::qemu(cache, BACKPORTS, arch)?;
        Ok(Emulator {
            program: root.join("usr/bin").join(arch.machine.program),
            firmware: FIRMWARE.map(|it| root.join(it)).into(),
        })
    }

    /// A command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for directory in &self.firmware {
            command.arg("-L").arg(directory);
        }
        command
    }
}

/// The host's version as it tells it.
pub fn version(arch: Arch) -> Result<String, Error> {
    tool::version(arch.machine.program, arch.machine.package)
}

/// First number of the version in "QEMU emulator version 7.2.22 (Debian …)".
fn series(version: &str) -> Option<u32> {
    let (_, number) = version.split_once(" version ")?;
    number.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_qemu_tells_it() {
        let old = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)";
        assert_eq!(series(old), Some(7));
        assert_eq!(series("QEMU emulator version 11.1.3"), Some(11));
        assert_eq!(series("no version"), None);
    }

    #[test]
    fn what_is_unpacked_is_told_where_its_firmware_is() {
        let host = Emulator::of_host(sys::arch::X86_64).command();
        assert_eq!(host.get_program(), sys::arch::X86_64.machine.program);
        assert_eq!(host.get_args().count(), 0);
        let unpacked = Emulator {
            program: "/cache/qemu".into(),
            firmware: vec!["/cache/firmware".into()],
        };
        let arguments: Vec<_> = unpacked
            .command()
            .get_args()
            .map(ToOwned::to_owned)
            .collect();
        assert_eq!(arguments, ["-L", "/cache/firmware"]);
    }
}
