//! A guest to look around in.

use crate::Error;
use crate::cache::Cache;
use crate::emulator::Emulator;
use crate::image::{FRONTROW, FRONTROW_LAB, Image};
use crate::kernel::Kernel;
use crate::past::{Ageing, Past};
use crate::qemu::{self, Clock, Console, Machine};
use crate::run::PROGRAMS;
use crate::sources::Sources;
use record::{Device, GuestSpec, Policy, Task};
use std::fs;
use std::sync::atomic::AtomicBool;

/// Enough for file trees and tools beside the device's pages.
const MEMORY_MIB: u64 = 2048;

/// A guest with a shell.
pub struct Shell {
    /// The kernel to boot.
    pub kernel: Kernel,
    /// The emulated device.
    pub device: Device,
    /// Policy at the start; all policies can be chosen in the guest.
    pub policy: Policy,
    /// Programs besides the shell's own, such as `fio`.
    pub programs: Vec<String>,
    /// CPUs; time is the host's.
    pub cpus: u32,
}

/// Opens a shell on this terminal in a guest with all modules loaded and the
/// device mounted, until it is left; `ageing` hears of an aged device that is made, which ends
/// when `stop` becomes true.
pub fn shell(
    cache: &Cache,
    sources: &Sources,
    shell: &Shell,
    ageing: Ageing,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let past = Past::of(cache, &shell.device, ageing, stop)?;
    let mut programs = PROGRAMS.to_vec();
    programs.extend([FRONTROW, FRONTROW_LAB, "busybox"]);
    programs.extend(shell.programs.iter().map(String::as_str));
    let mut image = Image::make(
        cache,
        sources,
        &shell.kernel,
        &Policy::schedulers(),
        &programs,
    )?;
    let (flash_image, memory_mib) = (past.path(), MEMORY_MIB + past.memory_mib());
    image.add_past(past);
    let modules = image.all_modules(&shell.device.simflash);
    let spec = GuestSpec {
        flash_image,
        ..GuestSpec::new("shell", shell.policy.clone(), modules, Task::Shell)
    };
    let initramfs = tempfile::NamedTempFile::new().map_err(Error::file(std::env::temp_dir()))?;
    fs::write(initramfs.path(), image.with_spec(&spec)?).map_err(Error::file(initramfs.path()))?;
    let machine = Machine {
        emulator: &Emulator::of_host(shell.kernel.tree.arch),
        kernel: &shell.kernel,
        initramfs: initramfs.path(),
        memory_mib,
        seed: spec.seed,
        clock: Clock::Host { cpus: shell.cpus },
        console: Console::Terminal,
        outbox: None,
        disks: &[],
        host_cpu: None,
    };
    let status = qemu::interact(&machine)?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Tool {
        tool: "QEMU".to_owned(),
        output: status.to_string(),
    })
}
