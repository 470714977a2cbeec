//! FastTrack in a guest, or what the kernel itself has for the same end: the workload in
//! front and the load's apps behind, each in a cgroup of its own; or nobody in front and the daemon's rule for writers.

use super::{Outcome, write};
use foreground::{Ahead, Cgroup, Grounds, Parts};
use record::GuestSpec;
use record::policy::{FastTrack, Means, limits_writers};
use std::fs;
use std::io::{PipeWriter, pipe};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Instant;

const HIERARCHY: &str = "/sys/fs/cgroup";

/// The weights that a user would give who wants most for the foreground: as far apart as
/// `io.bfq.weight` goes.
const FRONT_WEIGHT: &str = "1000";
const BEHIND_WEIGHT: &str = "1";

/// io.cost's promise to the device, from the example in the kernel's cgroup-v2.rst with
/// latencies a tenth as long, since its 75 ms are a rotating disk's.
const COST_QUALITY: &str =
    "enable=1 ctrl=user rpct=95.00 rlat=7500 wpct=95.00 wlat=15000 min=50.00 max=150.00";

/// The grounds while they are held. The guest's own process is in front.
pub struct Held {
    front: PathBuf,
    behind: Vec<PathBuf>,
    /// The device whose io.cost is on.
    costed: Option<String>,
    limiting: Option<Limiting>,
}

/// The daemon's rule for who writes far ahead, in a thread. (The daemon itself would take the device
/// for one that can be taken out, as the guest's system is not on it.)
struct Limiting {
    thread: JoinHandle<Outcome<()>>,
    stop: PipeWriter,
}

impl Limiting {
    fn start() -> Outcome<Self> {
        let (stopped, stop) = pipe().map_err(|error| error.to_string())?;
        let thread = thread::spawn(move || {
            Ahead::start(Path::new("/"), Instant::now())
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

/// What is set for the grounds once their cgroups are there.
enum Kind {
    FastTrack(Parts),
    Means(Means),
    Ahead,
}

impl Kind {
    /// `None` for a policy that sets nothing: there the kernel is as it boots.
    fn of_policy(policy: &str) -> Option<Self> {
        if let Some(means) = Means::of(policy) {
            return Some(Kind::Means(means));
        }
        if limits_writers(policy).is_some() {
            return Some(Kind::Ahead);
        }
        let parts = FastTrack::of(policy)?;
        let parts = Parts {
            allocator: parts.allocator,
            reclaimer: parts.reclaimer,
            dispatcher: parts.dispatcher,
        };
        (parts.allocator || parts.reclaimer || parts.dispatcher).then_some(Kind::FastTrack(parts))
    }
}

impl Held {
    /// With so many cgroups behind; `None` for a policy that needs none.
    pub fn of_policy(spec: &GuestSpec, apps: usize) -> Outcome<Option<Self>> {
        let Some(kind) = Kind::of_policy(&spec.policy) else {
            return Ok(None);
        };
        let mut held = Held::make(apps)?;
        match kind {
            Kind::FastTrack(parts) => held.hold(parts)?,
            Kind::Means(means) => held.set(means, spec)?,
            Kind::Ahead => held.limiting = Some(Limiting::start()?),
        }
        Ok(Some(held))
    }

    fn make(apps: usize) -> Outcome<Self> {
        let hierarchy = Path::new(HIERARCHY);
        set(
            &hierarchy.join("cgroup.subtree_control"),
            "+cpu +memory +io",
        )?;
        let behind = (1..=apps.max(1)).map(|app| hierarchy.join(format!("behind-{app}")));
        let held = Held {
            front: hierarchy.join("front"),
            behind: behind.collect(),
            costed: None,
            limiting: None,
        };
        for path in held.cgroups() {
            fs::create_dir(path)
                .map_err(|error| format!("it cannot make {}: {error}", path.display()))?;
        }
        move_self(&held.front)?;
        Ok(held)
    }

    fn cgroups(&self) -> impl Iterator<Item = &PathBuf> {
        self.behind.iter().chain([&self.front])
    }

    fn hold(&self, parts: Parts) -> Outcome<()> {
        let grounds = Grounds {
            front: vec![cgroup(&self.front)?],
            behind: self
                .behind
                .iter()
                .map(|it| cgroup(it))
                .collect::<Outcome<_>>()?,
            ..Grounds::default()
        };
        let held = foreground::hold(Path::new("/"), &grounds, parts);
        held.map(drop).map_err(|error| error.to_string())
    }

    fn set(&mut self, means: Means, spec: &GuestSpec) -> Outcome<()> {
        if means.memory_low {
            self.hold(Parts {
                allocator: false,
                reclaimer: true,
                dispatcher: false,
            })?;
        }
        if means.bfq_weight {
            self.weigh("io.bfq.weight")?;
        }
        if means.io_cost {
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
        set(&self.front.join(knob), FRONT_WEIGHT)?;
        self.behind
            .iter()
            .try_for_each(|it| set(&it.join(knob), BEHIND_WEIGHT))
    }

    /// Where this process is, and what it starts.
    pub fn front(&self) -> &Path {
        &self.front
    }

    /// Where the load's apps belong.
    pub fn behind(&self) -> &[PathBuf] {
        &self.behind
    }

    /// Leaves the guest as it was. The load is gone by now.
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

/// `259:0`.
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
