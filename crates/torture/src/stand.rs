//! What a trial works on: the modules, the device and its request queue.

use crate::failure::require;
use crate::{Failure, Figure, Outcome, module};
use device::Statistics;
use record::Module;
use sched::Counters;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

/// The scheduler under test.
pub(crate) const FRONTROW: &str = "frontrow";
const FRONTROW_MODULE: &str = "frontrow_iosched";
const FLASH_MODULE: &str = "simflash";

/// How long a device may take to appear.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a trial works on.
#[derive(Clone, Debug)]
pub struct Stand {
    /// The block device, such as `simflash0`.
    pub device: String,
    /// A directory to mount it on.
    pub mount_point: PathBuf,
    /// All that the guest has loaded, in loading order.
    pub modules: Vec<Module>,
    /// Shifts what is random.
    pub seed: u64,
    /// How often a trial repeats what it repeats, as a multiple of its usual.
    pub rounds: u32,
    /// Takes what trials measure.
    pub figures: Sender<Figure>,
}

impl Stand {
    /// Brings about what every trial begins with.
    pub(crate) fn prepare(&self) -> Outcome<()> {
        module::load(self.scheduler()?)?;
        module::load(self.flash()?)?;
        self.await_device()?;
        self.set("scheduler", FRONTROW)?;
        self.set("nr_requests", &sched::NR_REQUESTS.to_string())
    }

    /// Another device in the place of the one there is, with `parameters` besides
    /// the guest's own.
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

    /// Tells what was measured; whoever does not listen does not want it.
    pub(crate) fn tell(&self, figure: Figure) {
        let _ = self.figures.send(figure);
    }

    /// The scheduler's module.
    pub(crate) fn scheduler(&self) -> Outcome<&Module> {
        self.module(FRONTROW_MODULE)
    }

    /// The device's module.
    pub(crate) fn flash(&self) -> Outcome<&Module> {
        self.module(FLASH_MODULE)
    }

    /// One of those that the guest has loaded, by the name that the kernel knows it by.
    pub(crate) fn module(&self, name: &str) -> Outcome<&Module> {
        let module = self.modules.iter().find(|it| module::name(it) == name);
        module.ok_or_else(|| Failure::new(format!("the guest was given no module {name}")))
    }

    /// `/dev/NAME`.
    pub(crate) fn device_node(&self) -> PathBuf {
        Path::new("/dev").join(&self.device)
    }

    /// Waits for the device and its queue.
    pub(crate) fn await_device(&self) -> Outcome<()> {
        let begun = Instant::now();
        let is_there = || self.device_node().exists() && self.queue_attribute("scheduler").exists();
        while !is_there() {
            require(begun.elapsed() < PATIENCE, || {
                format!("{} does not appear", self.device)
            })?;
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// The schedulers that the queue offers.
    pub(crate) fn schedulers(&self) -> Outcome<Vec<String>> {
        let text = self.get("scheduler")?;
        let bare = |name: &str| name.trim_matches(['[', ']']).to_owned();
        Ok(text.split_whitespace().map(bare).collect())
    }

    /// A file below `queue/`.
    pub(crate) fn queue_attribute(&self, name: &str) -> PathBuf {
        Path::new("/sys/block")
            .join(&self.device)
            .join("queue")
            .join(name)
    }

    /// What a file below `queue/` says.
    pub(crate) fn get(&self, name: &str) -> Outcome<String> {
        let path = self.queue_attribute(name);
        let text = fs::read_to_string(&path).map_err(Failure::io("read", &path))?;
        Ok(text.trim().to_owned())
    }

    /// Writes a file below `queue/`.
    pub(crate) fn set(&self, name: &str, value: &str) -> Outcome<()> {
        let path = self.queue_attribute(name);
        self.try_set(name, value)
            .map_err(Failure::io(&format!("write '{value}' to"), &path))
    }

    /// The same; the error is the kernel's.
    pub(crate) fn try_set(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.queue_attribute(name), value)
    }

    /// What the device has done.
    pub(crate) fn statistics(&self) -> Outcome<Statistics> {
        let text = read(&format!("/sys/block/{}/stat", self.device))?;
        Statistics::parse(&text).ok_or_else(|| Failure::new(format!("its statistics say '{text}'")))
    }

    /// The scheduler's counters.
    pub(crate) fn counters(&self) -> Outcome<Counters> {
        Ok(Counters::parse(&self.get("iosched/stats")?))
    }
}

/// Where a debug kernel tells of allocations that nobody refers to any more.
pub(crate) const KMEMLEAK: &str = "/sys/kernel/debug/kmemleak";

/// Where one tells of data races.
const KCSAN: &str = "/sys/kernel/debug/kcsan";

/// A kernel that checks each access, lock and allocation tells of a mistake the
/// first time it is made, and takes long for everything: it need not be asked often.
pub(crate) fn is_debug_kernel() -> bool {
    Path::new(KMEMLEAK).exists() || Path::new(KCSAN).exists()
}

/// Writes `value` to the file `path`.
pub(crate) fn write(path: &str, value: &str) -> Outcome<()> {
    fs::write(path, value).map_err(Failure::io(&format!("write '{value}' to"), Path::new(path)))
}

/// What the file `path` says.
pub(crate) fn read(path: &str) -> Outcome<String> {
    fs::read_to_string(path).map_err(Failure::io("read", Path::new(path)))
}
