//! Trials of what the modules withstand: a guest for each kind of clock.

use crate::Error;
use crate::cache::Cache;
use crate::debug_kernel;
use crate::emulator::Emulator;
use crate::image::Image;
use crate::kept::Keep;
use crate::kernel::Kernel;
use crate::qemu::Clock;
use crate::run::PROGRAMS;
use crate::session::{Owner, Session};
use crate::sources::Sources;
use record::{GuestSpec, Policy, Row, Task};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Enough for the modules under a debug kernel; a trial that wants memory to be
/// short uses it up.
const MEMORY_MIB: u64 = 1024;

/// Programs that trials start.
const TRIAL_PROGRAMS: [&str; 8] = [
    "fio",
    "e2fsck",
    "e2image",
    "dumpe2fs",
    "mkfs.xfs",
    "mkfs.f2fs",
    "mkfs.btrfs",
    "dmsetup",
];

/// A trial that takes longer than this hangs, on a busy host too.
const LIMIT_S: u64 = 900;

/// On each disk, under each scheduler, with each file system.
const DISKS_LIMIT_S: u64 = 7200;

/// A debug kernel checks each access to memory and each lock.
const DEBUG_LIMIT_S: u64 = 3600;

/// Little dirty memory, so that a change which waits for all of it is quick.
const SYSCTLS: [(&str, &str); 2] = [
    ("vm.dirty_bytes", "16777216"),
    ("vm.dirty_background_bytes", "4194304"),
];

/// KCSAN checks one in this many accesses in trials for races: eight times as often as otherwise
/// (`kernel/kcsan.config`). With that rate, a CPU of exact time is slower than the device.
const WATCHED_ONE_IN: (&str, &str) = ("/sys/module/kcsan/parameters/skip_watch", "50");

/// Trials to run in a guest.
pub struct Torture {
    /// The kernel to boot.
    pub kernel: Kernel,
    /// Names of [`::torture::TRIALS`].
    pub trials: Vec<String>,
    /// Multiple of each trial's usual number of repetitions.
    pub rounds: u32,
    /// Shifts what is random.
    pub seed: u64,
}

/// Does the trials and gives what they measured; `begins` hears the name of each. The first that
/// fails ends them, as `stop` does when it becomes true.
pub fn torture(
    cache: &Cache,
    sources: &Sources,
    torture: &Torture,
    keep: Option<&Keep>,
    begins: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<Vec<Row>, Error> {
    let mut by_clock: [(::torture::Clock, Vec<String>); 5] = [
        (::torture::Clock::Instructions, Vec::new()),
        (::torture::Clock::TwoCpus, Vec::new()),
        (::torture::Clock::TwoCpusInTurn, Vec::new()),
        (::torture::Clock::WithDisks, Vec::new()),
        (::torture::Clock::WithSolderedDisks, Vec::new()),
    ];
    for name in &torture.trials {
        let clock = ::torture::find(name).map_err(Error::Usage)?.clock;
        for (kind, names) in &mut by_clock {
            if *kind == clock {
                names.push(name.clone());
            }
        }
    }
    let programs = [PROGRAMS.as_slice(), &TRIAL_PROGRAMS].concat();
    let mut image = Image::make(
        cache,
        sources,
        &torture.kernel,
        &Policy::schedulers(),
        &programs,
    )?;
    let owner = Attendant { begins, stop };
    let mut rows = Vec::new();
    for (clock, names) in by_clock {
        if names.is_empty() {
            continue;
        }
        let mut needed = Vec::new();
        for name in &names {
            let trial = ::torture::find(name).map_err(Error::Usage)?;
            needed.extend(trial.modules);
        }
        let mut spec = spec(&image, sources, torture, clock, names)?;
        let added = image.add_modules_there_are(&torture.kernel, &needed)?;
        // Two may need the same module, and the device's stays the last.
        spec.modules.retain(|it| !added.contains(it));
        spec.modules.splice(0..0, added);
        let mut session = Session::new(cache, &spec, &owner, &image.with_spec(&spec)?)?;
        session.keep(keep);
        match clock {
            ::torture::Clock::WithDisks => session.attach(&::torture::DISKS)?,
            ::torture::Clock::WithSolderedDisks => {
                let arch = torture.kernel.tree.arch;
                session.run_on(Emulator::with_soldered_disks(cache, arch)?);
                session.attach(&::torture::SOLDERED)?;
            }
            _ => {}
        }
        rows.extend(session.run(&torture.kernel, MEMORY_MIB, clock_of(clock))?);
    }
    Ok(rows)
}

fn clock_of(clock: ::torture::Clock) -> Clock {
    match clock {
        ::torture::Clock::Instructions => Clock::Instructions,
        ::torture::Clock::TwoCpus
        | ::torture::Clock::WithDisks
        | ::torture::Clock::WithSolderedDisks => Clock::Host { cpus: 2 },
        ::torture::Clock::TwoCpusInTurn => Clock::HostInTurn { cpus: 2 },
    }
}

/// Parameter of the devices of all trials.
const STABLE_PAGES: (&str, u64) = ("stable_pages", 1);

/// Parameters of the slow device, whose driver does not wait for it as an eMMC's does: who submits would
/// sleep there, and a single task could not have several discards queued.
const SHORT_QUEUE: [(&str, u64); 2] = [("in_turn", 0), ("queue_depth", 2)];

/// Exact answers are asked of a slow device, where a backlog lasts; races of a
/// fast one, where more happens. Both are new: a trial counts what it caused itself,
/// and makes several devices. Both ask for stable pages, or nobody would wait for data.
fn spec(
    image: &Image,
    sources: &Sources,
    torture: &Torture,
    clock: ::torture::Clock,
    names: Vec<String>,
) -> Result<GuestSpec, Error> {
    let (device, shape, sysctls) = match clock {
        ::torture::Clock::Instructions => ("emmc:fresh", &SHORT_QUEUE[..], BTreeMap::new()),
        ::torture::Clock::TwoCpus
        | ::torture::Clock::TwoCpusInTurn
        | ::torture::Clock::WithDisks
        | ::torture::Clock::WithSolderedDisks => (
            "ufs:fresh",
            &[][..],
            SYSCTLS
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        ),
    };
    let limit_s = match debug_kernel::is_slow(torture.kernel.release()) {
        true => DEBUG_LIMIT_S,
        false if clock.has_disks() => DISKS_LIMIT_S,
        false => LIMIT_S,
    };
    let watches = clock != ::torture::Clock::Instructions
        && debug_kernel::looks_for_races(torture.kernel.release());
    let writes = watches.then_some(WATCHED_ONE_IN);
    let limit_virtual_s = limit_s * names.len() as u64 * u64::from(torture.rounds);
    let mut parameters = sources.device(device)?.simflash;
    for (name, value) in shape.iter().chain(&[STABLE_PAGES]) {
        parameters.insert((*name).to_owned(), *value);
    }
    let modules = image.all_modules(&parameters);
    let task = Task::Trials {
        names,
        rounds: torture.rounds,
    };
    Ok(GuestSpec {
        seed: torture.seed,
        sysctls,
        writes: (writes.into_iter())
            .map(|(path, value)| (path.to_owned(), value.to_owned()))
            .collect(),
        mount_options: Vec::new(),
        limit_virtual_s,
        ..GuestSpec::new("torture", Policy::frontrow(), modules, task)
    })
}

struct Attendant<'a> {
    begins: &'a dyn Fn(&str),
    stop: &'a AtomicBool,
}

impl Owner for Attendant<'_> {
    fn progress(&self, _index: usize, _count: usize, text: &str) {
        (self.begins)(text);
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
