//! FastTrack in a guest, or the kernel's own settings for a foreground. The workload is in the
//! foreground cgroup, each app of the load in a background cgroup. The third kind has no foreground
//! and applies frontrowd's limits for writers.

use super::{Outcome, write};
use foreground::{Cgroup, Parts, Roles, Visible, WriterLimits};
use record::GuestSpec;
use record::Policy;
use record::policy::{Part, SCREEN_PERCENT, Screen, Setting};
use std::collections::BTreeSet;
use std::fs;
use std::io::{PipeWriter, pipe};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Instant;

const HIERARCHY: &str = "/sys/fs/cgroup";

/// Largest and smallest `io.bfq.weight`.
const FOREGROUND_WEIGHT: &str = "1000";
const BACKGROUND_WEIGHT: &str = "1";

/// io.cost's promise to the device, from the example in the kernel's cgroup-v2.rst with
/// latencies a tenth as long, since its 75 ms are a rotating disk's.
const COST_QUALITY: &str =
    "enable=1 ctrl=user rpct=95.00 rlat=7500 wpct=95.00 wlat=15000 min=50.00 max=150.00";

/// The cgroups and settings of a policy while it is in force. The guest's own process is in the
/// foreground cgroup.
pub struct ActivePolicy {
    /// Cgroups of the apps on the screen, first the active one's.
    screen: Vec<PathBuf>,
    background: Vec<PathBuf>,
    /// Number of the device whose io.cost is on, such as `259:0`.
    costed: Option<String>,
    limiting: Option<Limiting>,
}

/// A thread that applies frontrowd's limits for writers. (frontrowd itself would treat the device as
/// removable, since the guest's root file system is not on it.)
struct Limiting {
    thread: JoinHandle<Outcome<()>>,
    stop: PipeWriter,
}

impl Limiting {
    fn start() -> Outcome<Self> {
        let (stopped, stop) = pipe().map_err(|error| error.to_string())?;
        let thread = thread::spawn(move || {
            WriterLimits::start(Path::new("/"), Instant::now())
                .and_then(|ahead| ahead.run(stopped.as_fd()))
                .map_err(|error| error.to_string())
        });
        Ok(Self { thread, stop })
    }

    fn end(self) -> Outcome<()> {
        drop(self.stop);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err("the rule for writers panicked".to_owned()))
    }
}

/// Settings that follow the creation of the cgroups.
enum Kind {
    FastTrack(Parts),
    KernelSettings(BTreeSet<Setting>),
    WriterLimits,
}

impl Kind {
    /// `None` for a policy that changes nothing.
    fn of_policy(policy: &Policy) -> Option<Self> {
        if !policy.settings.is_empty() {
            return Some(Kind::KernelSettings(policy.settings.clone()));
        }
        if policy.limits_writers {
            return Some(Kind::WriterLimits);
        }
        let parts = Parts {
            allocator: policy.has_part(Part::Allocator),
            reclaimer: policy.has_part(Part::Reclaimer),
            dispatcher: policy.has_part(Part::Dispatcher),
        };
        (parts.allocator || parts.reclaimer || parts.dispatcher).then_some(Kind::FastTrack(parts))
    }
}

impl ActivePolicy {
    /// Makes cgroups of the foreground, of what else is on the screen and of `apps` background apps,
    /// and applies the policy; `None` for a policy without settings.
    pub fn of_policy(spec: &GuestSpec, apps: usize) -> Outcome<Option<Self>> {
        let Some(kind) = Kind::of_policy(&spec.policy) else {
            return Ok(None);
        };
        let screen = spec.policy.screen;
        let mut active = ActivePolicy::make_cgroups(screen, apps)?;
        match kind {
            Kind::FastTrack(parts) => active.apply(parts, screen)?,
            Kind::KernelSettings(settings) => active.set(&settings, spec)?,
            Kind::WriterLimits => active.limiting = Some(Limiting::start()?),
        }
        Ok(Some(active))
    }

    fn make_cgroups(screen: Option<Screen>, apps: usize) -> Outcome<Self> {
        let hierarchy = Path::new(HIERARCHY);
        set(
            &hierarchy.join("cgroup.subtree_control"),
            "+cpu +memory +io",
        )?;
        let background = (1..=apps.max(1)).map(|app| hierarchy.join(format!("behind-{app}")));
        let others = SCREEN_PERCENT.iter().skip(1).filter(|_| screen.is_some());
        let others = others.map(|percent| hierarchy.join(format!("beside-{percent}")));
        let active = ActivePolicy {
            screen: [hierarchy.join("front")]
                .into_iter()
                .chain(others)
                .collect(),
            background: background.collect(),
            costed: None,
            limiting: None,
        };
        for path in active.cgroups() {
            fs::create_dir(path)
                .map_err(|error| format!("it cannot make {}: {error}", path.display()))?;
        }
        move_self(active.foreground())?;
        Ok(active)
    }

    fn cgroups(&self) -> impl Iterator<Item = &PathBuf> {
        self.background.iter().chain(&self.screen)
    }

    /// Without shares of the screen all apps on it are the foreground.
    fn roles(&self, screen: Option<Screen>) -> Outcome<Roles> {
        let all = |paths: &[PathBuf]| {
            paths
                .iter()
                .map(|it| cgroup(it))
                .collect::<Outcome<Vec<_>>>()
        };
        let mut foreground = all(&self.screen)?;
        let visible = match screen {
            Some(Screen::ByShare) => foreground.split_off(1),
            _ => Vec::new(),
        };
        let percents = SCREEN_PERCENT.iter().skip(1);
        let visible = visible
            .into_iter()
            .zip(percents)
            .map(|(cgroup, &percent)| Visible { cgroup, percent });
        Ok(Roles {
            foreground,
            visible: visible.collect(),
            background: all(&self.background)?,
        })
    }

    fn apply(&self, parts: Parts, screen: Option<Screen>) -> Outcome<()> {
        let roles = self.roles(screen)?;
        let active = foreground::apply(Path::new("/"), &roles, parts);
        active.map(drop).map_err(|error| error.to_string())
    }

    fn set(&mut self, settings: &BTreeSet<Setting>, spec: &GuestSpec) -> Outcome<()> {
        if settings.contains(&Setting::MemoryLow) {
            let parts = Parts {
                allocator: false,
                reclaimer: true,
                dispatcher: false,
            };
            self.apply(parts, None)?;
        }
        if settings.contains(&Setting::BfqWeight) {
            self.weigh("io.bfq.weight")?;
        }
        if settings.contains(&Setting::IoCost) {
            let number = device_number(&spec.device)?;
            let hierarchy = Path::new(HIERARCHY);
            let model = format!("{number} ctrl=user model=linear {}", spec.io_cost_model);
            set(&hierarchy.join("io.cost.model"), &model)?;
            set(
                &hierarchy.join("io.cost.qos"),
                &format!("{number} {COST_QUALITY}"),
            )?;
            self.costed = Some(number);
            self.weigh("io.weight")?;
        }
        Ok(())
    }

    fn weigh(&self, knob: &str) -> Outcome<()> {
        set(&self.foreground().join(knob), FOREGROUND_WEIGHT)?;
        self.background
            .iter()
            .try_for_each(|it| set(&it.join(knob), BACKGROUND_WEIGHT))
    }

    /// Directory of the foreground cgroup.
    pub fn foreground(&self) -> &Path {
        &self.screen[0]
    }

    /// Directories of the cgroups of the apps on the screen, the active one's first.
    pub fn screen(&self) -> &[PathBuf] {
        &self.screen
    }

    /// Directories of the background cgroups, one for each app of the load.
    pub fn background(&self) -> &[PathBuf] {
        &self.background
    }

    /// Undoes the settings and removes the cgroups, whose background processes must have ended.
    pub fn release(mut self) -> Outcome<()> {
        if let Some(limiting) = self.limiting.take() {
            limiting.end()?;
        }
        foreground::release(Path::new("/")).map_err(|error| error.to_string())?;
        if let Some(number) = &self.costed {
            let quality = Path::new(HIERARCHY).join("io.cost.qos");
            set(&quality, &format!("{number} enable=0"))?;
        }
        move_self(Path::new(HIERARCHY))?;
        for path in self.cgroups() {
            fs::remove_dir(path)
                .map_err(|error| format!("it cannot remove {}: {error}", path.display()))?;
        }
        Ok(())
    }
}

/// Device number, such as `259:0`.
fn device_number(device: &str) -> Outcome<String> {
    let path = format!("/sys/block/{device}/dev");
    let text =
        fs::read_to_string(&path).map_err(|error| format!("it cannot read {path}: {error}"))?;
    Ok(text.trim().to_owned())
}

fn set(path: &Path, value: &str) -> Outcome<()> {
    write(&path.to_string_lossy(), value)
}

fn move_self(cgroup: &Path) -> Outcome<()> {
    set(&cgroup.join("cgroup.procs"), "0")
}

fn cgroup(path: &Path) -> Outcome<Cgroup> {
    Cgroup::resolve(Path::new("/"), &path.to_string_lossy()).map_err(|error| error.to_string())
}
