//! A command in a guest, and the files that it leaves.

use crate::Error;
use crate::cache::Cache;
use crate::image::{FRONTROW, Image};
use crate::kept::Keep;
use crate::kernel::Kernel;
use crate::past::{Ageing, Past};
use crate::qemu::Clock;
use crate::run::PROGRAMS;
use crate::session::Session;
use crate::sources::Sources;
use guest::outbox::Item;
use record::{Device, GuestSpec, Policy, Task};
use std::sync::atomic::AtomicBool;

/// A command to run in a guest.
pub struct Exec {
    /// The kernel to boot.
    pub kernel: Kernel,
    /// The emulated device, mounted where the command runs.
    pub device: Device,
    /// A second device, new and empty, as `/dev/simflash1`.
    pub second: Option<Device>,
    /// Policy of the first device.
    pub policy: Policy,
    /// Additional programs, such as `fio` or `frontrow-lab`.
    pub programs: Vec<String>,
    /// Additional kernel modules, such as `xfs`.
    pub modules: Vec<String>,
    /// Number of CPUs, which take turns on the host's clock; None for one CPU and exact time.
    pub cpus: Option<u32>,
    /// Shifts the file system's layout.
    pub seed: u64,
    /// Memory of the guest in MiB.
    pub memory_mib: u64,
    /// Time limit in seconds of the guest's time.
    pub limit_s: u64,
    /// The command and its arguments.
    pub command: Vec<String>,
}

/// Exit status and files of a command that ran in a guest.
pub struct CommandOutput {
    /// Its exit code as a number, or how else it ended.
    pub status: String,
    /// `stdout`, `stderr`, and what it put into /out, by name.
    pub files: Vec<Item>,
}

/// Runs the command until `stop` becomes true. `ageing` is called while an aged device is made.
pub fn exec(
    cache: &Cache,
    sources: &Sources,
    exec: &Exec,
    keep: Option<&Keep>,
    ageing: Ageing,
    stop: &AtomicBool,
) -> Result<CommandOutput, Error> {
    let mut programs = PROGRAMS.to_vec();
    programs.extend([FRONTROW, "busybox"]);
    programs.extend(exec.programs.iter().map(String::as_str));
    let past = Past::of(cache, &exec.device, ageing, stop)?;
    let policies = std::slice::from_ref(&exec.policy);
    let mut image = Image::make(cache, sources, &exec.kernel, policies, &programs)?;
    let mut modules = image.modules(&exec.policy, &exec.device.simflash);
    if let (Some(second), Some(simflash)) = (&exec.second, modules.last_mut()) {
        simflash.parameters.push_str(&second_device(second));
    }
    if !exec.modules.is_empty() {
        modules.extend(image.add_modules(&exec.kernel, &exec.modules)?);
    }
    let (flash_image, memory_mib) = (past.path(), exec.memory_mib + past.memory_mib());
    image.add_past(past);
    let task = Task::Command(exec.command.clone());
    let spec = GuestSpec {
        seed: exec.seed,
        flash_image,
        limit_virtual_s: exec.limit_s,
        ..GuestSpec::new("exec", exec.policy.clone(), modules, task)
    };
    let clock = match exec.cpus {
        // What records changes code that is run on another CPU ([`Clock::HostInTurn`]).
        Some(cpus) => Clock::HostInTurn { cpus },
        None => Clock::Instructions,
    };
    let mut session = Session::new(cache, &spec, stop, &image.with_spec(&spec)?)?;
    session.keep(keep);
    let ((_, status), files) = session.run_for_outbox(&exec.kernel, memory_mib, clock)?;
    Ok(CommandOutput {
        status: String::from_utf8_lossy(&status).into_owned(),
        files,
    })
}

/// The parameter of simflash that has another device's (`kernel/simflash/profile.c`).
fn second_device(device: &Device) -> String {
    let settings = device.simflash.iter();
    let settings: Vec<_> = settings.map(|(name, it)| format!("{name}:{it}")).collect();
    format!(" second={}", settings.join(","))
}
