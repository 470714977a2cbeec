//! A command in a guest, and the files that it leaves.

use crate::Error;
use crate::cache::Cache;
use crate::image::Image;
use crate::kernel::Kernel;
use crate::parcel::Item;
use crate::past::{Ageing, Past};
use crate::qemu::Clock;
use crate::run::{DEVICE, PROGRAMS};
use crate::session::Session;
use crate::sources::Sources;
use record::{Device, GuestSpec, Scale, Task};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// What to run, and where.
pub struct Exec {
    /// The kernel to boot.
    pub kernel: Kernel,
    /// The emulated device, mounted where the command runs.
    pub device: Device,
    /// Another one, new and empty, as `/dev/simflash1`.
    pub second: Option<Device>,
    /// The policy that the first runs under.
    pub policy: String,
    /// Programs besides the shell's own, such as `fio`.
    pub programs: Vec<String>,
    /// Modules of the kernel's own, such as `xfs`.
    pub modules: Vec<String>,
    /// CPUs that take turns, and the host's clock; none for one CPU and exact time.
    pub cpus: Option<u32>,
    /// Shifts the file system's layout.
    pub seed: u64,
    /// Memory.
    pub memory_mib: u64,
    /// The guest gives up after this.
    pub limit_s: u64,
    /// The command and its arguments.
    pub command: Vec<String>,
}

/// What a command left.
pub struct Left {
    /// Its exit code as a number, or how else it ended.
    pub status: String,
    /// `stdout`, `stderr`, and what it put into /out, by name.
    pub files: Vec<Item>,
}

/// Runs the command, until `stop` becomes true; `ageing` hears of an aged device that is made.
pub fn exec(
    cache: &Cache,
    sources: &Sources,
    exec: &Exec,
    ageing: Ageing,
    stop: &AtomicBool,
) -> Result<Left, Error> {
    let mut programs = PROGRAMS.to_vec();
    programs.push("busybox");
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
    let spec = GuestSpec {
        experiment: "exec".to_owned(),
        policy: exec.policy.clone(),
        seed: exec.seed,
        scale: Scale::Demo,
        modules,
        device: DEVICE.to_owned(),
        flash_image,
        sysctls: BTreeMap::new(),
        writes: BTreeMap::new(),
        io_cost_model: String::new(),
        mount_options: vec!["discard".to_owned()],
        limit_virtual_s: exec.limit_s,
        task: Task::Command(exec.command.clone()),
    };
    let clock = match exec.cpus {
        // What records changes code that is run on another CPU ([`Clock::HostInTurn`]).
        Some(cpus) => Clock::HostInTurn { cpus },
        None => Clock::Instructions,
    };
    let session = Session::new(&spec, stop, &image.with_spec(&spec)?)?;
    let ((_, status), files) = session.run_for_parcel(&exec.kernel, memory_mib, clock)?;
    Ok(Left {
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
