//! TestBed of a trial: the modules, the device and its request queue.

use crate::failure::require;
use crate::{Failure, Figure, Outcome, Report, module};
use ::module::sched::Counters;
use record::Module;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};
use sys::device::Statistics;

/// Name of the scheduler under test.
pub(crate) const FRONTROW: &str = "frontrow";
const FRONTROW_MODULE: &str = "frontrow_iosched";
const FLASH_MODULE: &str = "simflash";

/// Longest time until a device comes or goes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that a trial works on.
#[derive(Clone, Debug)]
pub struct TestBed {
    /// Name of the block device, such as `simflash0`.
    pub device: String,
    /// Directory to mount a file system on.
    pub mount_point: PathBuf,
    /// All modules that the guest has loaded, in their order.
    pub modules: Vec<Module>,
    /// Seed of everything random.
    pub seed: u64,
    /// Multiple of each trial's usual number of repetitions.
    pub rounds: u32,
    /// Receives the figures that trials measure, and their remarks.
    pub reports: Sender<Report>,
}

impl TestBed {
    /// Brings the machine into the state that each trial begins with.
    pub(crate) fn prepare(&self) -> Outcome<()> {
        module::load(self.scheduler()?)?;
        module::load(self.flash()?)?;
        self.await_device()?;
        self.set("scheduler", FRONTROW)?;
        self.set("nr_requests", &::module::sched::NR_REQUESTS.to_string())
    }

    /// Takes both modules out, which nothing may hold.
    pub(crate) fn unload(&self) -> Outcome<()> {
        module::unload(self.flash()?)?;
        module::unload(self.scheduler()?)
    }

    /// The same, and loads them again.
    pub(crate) fn reload(&self) -> Outcome<()> {
        self.unload()?;
        self.prepare()
    }

    /// Replaces the device by one with `parameters` besides the guest's own.
    pub(crate) fn replace_device(&self, parameters: &str) -> Outcome<()> {
        let flash = self.flash()?;
        let other = Module {
            path: flash.path.clone(),
            parameters: format!("{} {parameters}", flash.parameters),
        };
        module::unload(flash)?;
        module::load(&other)?;
        self.prepare()
    }

    /// The scheduler's module with its usual parameters, and without return probes.
    pub(crate) fn schedulers_modules(&self) -> Outcome<(&Module, Module)> {
        let with_probes = self.scheduler()?;
        let without_probes = Module {
            path: with_probes.path.clone(),
            parameters: "probes=0".to_owned(),
        };
        Ok((with_probes, without_probes))
    }

    /// Loads the scheduler's module anew, with other parameters.
    pub(crate) fn replace_scheduler(&self, other: &Module) -> Outcome<()> {
        self.set("scheduler", "none")?;
        module::unload(other)?;
        module::load(other)?;
        self.prepare()
    }

    /// Sends a figure; nothing happens if nobody receives it.
    pub(crate) fn tell(&self, figure: Figure) {
        let _ = self.reports.send(Report::Figure(figure));
    }

    /// Sends a remark for people; nothing happens if nobody receives it.
    pub(crate) fn remark(&self, text: String) {
        let _ = self.reports.send(Report::Remark(text));
    }

    /// Module of the scheduler.
    pub(crate) fn scheduler(&self) -> Outcome<&Module> {
        self.module(FRONTROW_MODULE)
    }

    /// Module of the device.
    pub(crate) fn flash(&self) -> Outcome<&Module> {
        self.module(FLASH_MODULE)
    }

    /// One of those that the guest has loaded, by the name that the kernel knows it by.
    pub(crate) fn module(&self, name: &str) -> Outcome<&Module> {
        let module = self.modules.iter().find(|it| module::name(it) == name);
        module.ok_or_else(|| Failure::new(format!("the guest was given no module {name}")))
    }

    /// Path of the device's node in /dev.
    pub(crate) fn device_node(&self) -> PathBuf {
        Path::new("/dev").join(&self.device)
    }

    /// Waits until the device and its queue exist.
    pub(crate) fn await_device(&self) -> Outcome<()> {
        let is_there = || self.device_node().exists() && self.queue_attribute("scheduler").exists();
        await_some(
            || Ok(is_there().then_some(())),
            || format!("{} does not appear", self.device),
        )
    }

    /// Names of the schedulers that the queue offers.
    pub(crate) fn schedulers(&self) -> Outcome<Vec<String>> {
        let text = self.get("scheduler")?;
        let bare = |name: &str| name.trim_matches(['[', ']']).to_owned();
        Ok(text.split_whitespace().map(bare).collect())
    }

    /// Path of a file below `queue/`.
    pub(crate) fn queue_attribute(&self, name: &str) -> PathBuf {
        Path::new("/sys/block")
            .join(&self.device)
            .join("queue")
            .join(name)
    }

    /// Trimmed text of a file below `queue/`.
    pub(crate) fn get(&self, name: &str) -> Outcome<String> {
        let path = self.queue_attribute(name);
        let text = fs::read_to_string(&path).map_err(Failure::io("read", &path))?;
        Ok(text.trim().to_owned())
    }

    /// Writes to a file below `queue/`.
    pub(crate) fn set(&self, name: &str, value: &str) -> Outcome<()> {
        let path = self.queue_attribute(name);
        self.try_set(name, value)
            .map_err(Failure::io(&format!("write '{value}' to"), &path))
    }

    /// As [`TestBed::set`], with the kernel's own error.
    pub(crate) fn try_set(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.queue_attribute(name), value)
    }

    /// Statistics of the device.
    pub(crate) fn statistics(&self) -> Outcome<Statistics> {
        let text = read(&format!("/sys/block/{}/stat", self.device))?;
        Statistics::parse(&text).ok_or_else(|| Failure::new(format!("its statistics say '{text}'")))
    }

    /// Counters of the scheduler.
    pub(crate) fn counters(&self) -> Outcome<Counters> {
        Ok(Counters::parse(&self.get("iosched/stats")?))
    }
}

/// File of a debug kernel that lists leaked allocations.
pub(crate) const KMEMLEAK: &str = "/sys/kernel/debug/kmemleak";

/// File of a debug kernel that reports data races.
const KCSAN: &str = "/sys/kernel/debug/kcsan";

/// What `look` finds when it is asked again and again; a failure as `late` says it after
/// [`PATIENCE`].
pub(crate) fn await_some<T>(
    look: impl Fn() -> Outcome<Option<T>>,
    late: impl Fn() -> String,
) -> Outcome<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        require(begun.elapsed() < PATIENCE, &late)?;
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the kernel checks each access, lock and allocation. It reports an error the first time
/// and is slow, so trials need few repetitions.
pub(crate) fn is_debug_kernel() -> bool {
    Path::new(KMEMLEAK).exists() || Path::new(KCSAN).exists()
}

/// Writes `value` to the file `path`.
pub(crate) fn write(path: &str, value: &str) -> Outcome<()> {
    fs::write(path, value).map_err(Failure::io(&format!("write '{value}' to"), Path::new(path)))
}

/// Switches controllers on or off for all cgroups below the root.
pub(crate) fn set_controllers(switches: &str) -> Outcome<()> {
    write("/sys/fs/cgroup/cgroup.subtree_control", switches)
}

/// Drops all clean pages, directories and inodes from memory.
pub(crate) fn drop_caches() -> Outcome<()> {
    sys::memory::drop_caches().map_err(Failure::io("drop", Path::new("the caches")))
}

/// Runs `work` with these limits of dirty pages, in bytes. The kernel's usual ones follow.
pub(crate) fn with_dirty_limits<T>(
    background_bytes: &str,
    bytes: &str,
    work: impl FnOnce() -> Outcome<T>,
) -> Outcome<T> {
    write("/proc/sys/vm/dirty_background_bytes", background_bytes)?;
    write("/proc/sys/vm/dirty_bytes", bytes)?;
    let done = work();
    write("/proc/sys/vm/dirty_background_ratio", "10")?;
    write("/proc/sys/vm/dirty_ratio", "20")?;
    done
}

/// Text of the file `path`.
pub(crate) fn read(path: &str) -> Outcome<String> {
    fs::read_to_string(path).map_err(Failure::io("read", Path::new(path)))
}
