//! What the kernel modules have to withstand and the profiler to tell, as trials
//! inside a guest.
//!
//! A trial is the only thing that runs in its machine, as root. It may load and
//! unload the modules, take the device away and use up the memory; it finds the
//! modules loaded, the device under `frontrow` and nothing mounted, and leaves
//! it so. That the kernel logged nothing bad meanwhile is for the lab to see.

mod attributes;
mod backlog;
mod change;
mod defrag;
mod dependencies;
mod drivers;
mod failure;
mod faults;
mod fio;
mod inherit;
mod late;
mod launch;
mod leak;
mod links;
mod lists;
mod load;
mod memory;
mod module;
mod order;
mod power;
mod powercut;
mod pressure;
mod queues;
mod recording;
mod removal;
mod requeue;
mod share;
mod stacked;
mod stand;
mod trace;
mod unload;
mod volume;
mod waits;

pub use drivers::{BYTES_PER_S, DISKS, Disk};
pub use failure::Failure;
pub use stand::Stand;

/// Written to the kernel's log by a trial that takes the device away: from here
/// to [`IO_ERRORS_END`] it is no trouble that I/O fails.
pub const IO_ERRORS_BEGIN: &str = "frontrow: I/O errors are expected from here on";
/// See [`IO_ERRORS_BEGIN`].
pub const IO_ERRORS_END: &str = "frontrow: no more I/O errors are expected";

type Outcome<T> = Result<T, Failure>;

/// How time has to go in a trial's guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// One CPU, and the same run every time: for what has an exact answer.
    Instructions,
    /// Two CPUs and the host's clock: for races.
    TwoCpus,
    /// The same, but the CPUs take turns: for trials that change the kernel's own
    /// code under load, as probes do. A QEMU before 8.1 does not see it if one CPU
    /// writes code while it translates it for another (its commit "always lock
    /// pages before translation"), and the other meets a breakpoint that the kernel
    /// has long taken away.
    TwoCpusInTurn,
    /// Two CPUs, the host's clock, and [`DISKS`] besides the simulated device.
    WithDisks,
}

/// What a trial measured, as a result's rows are.
#[derive(Clone, Debug)]
pub struct Figure {
    /// On what.
    pub workload: String,
    /// Beside what.
    pub load: String,
    /// Under which scheduler.
    pub policy: String,
    /// What; ends in its unit.
    pub metric: &'static str,
    /// `ms`, or `1` for a share.
    pub unit: &'static str,
    /// The figure.
    pub value: f64,
}

/// One thing to withstand.
pub struct Trial {
    /// As the command line has it.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// The guest's clock.
    pub clock: Clock,
    /// Modules of the kernel's own that it needs, where the kernel has them as such, and with which
    /// parameters.
    pub modules: &'static [&'static str],
    run: fn(&Stand) -> Outcome<()>,
}

/// All trials, in the order in which one guest does them.
pub const TRIALS: [Trial; 25] = [
    Trial {
        name: "dependencies",
        title: "each dependency's wait is counted as what it is, and promoted unless that is off",
        clock: Clock::Instructions,
        modules: &[],
        run: dependencies::run,
    },
    Trial {
        name: "inheritance",
        title: "what somebody behind has written goes early where who is in front waits for it",
        clock: Clock::Instructions,
        modules: &[],
        run: inherit::run,
    },
    Trial {
        name: "order",
        title: "a backlog is dispatched in the order of the class table",
        clock: Clock::Instructions,
        modules: &[],
        run: order::run,
    },
    Trial {
        name: "share",
        title: "under continuous synchronous load background writes keep their share and get no older than 5 s",
        clock: Clock::Instructions,
        modules: &[],
        run: share::run,
    },
    Trial {
        name: "idle-class",
        title: "what has the I/O class idle reads and writes without holding up writeback",
        clock: Clock::Instructions,
        modules: &[],
        run: share::run_idle_class,
    },
    Trial {
        name: "launch",
        title: "what is loaded for an app comes in the requests that were planned, under every scheduler",
        clock: Clock::Instructions,
        modules: &[],
        run: launch::run,
    },
    Trial {
        name: "waits",
        title: "iopro names what a task waited for, where one thing causes all of its waiting",
        clock: Clock::Instructions,
        modules: &[],
        run: waits::run,
    },
    Trial {
        name: "links",
        title: "iopro links what was written and read, and knows of the time that a task is off the CPU",
        clock: Clock::Instructions,
        modules: &[],
        run: links::run,
    },
    Trial {
        name: "powercut",
        title: "the power is cut while files are moved without a copy; they are whole when it is back",
        clock: Clock::Instructions,
        modules: &[],
        run: powercut::run,
    },
    Trial {
        name: "fio",
        title: "fio reads back what it wrote: buffered, direct, random, in sequence, with discards",
        clock: Clock::TwoCpus,
        modules: &[],
        run: fio::run,
    },
    Trial {
        name: "change",
        title: "scheduler, nr_requests and settings change under load",
        clock: Clock::TwoCpus,
        modules: &[],
        run: change::run,
    },
    Trial {
        name: "late",
        title: "a file system that is loaded after the scheduler is probed, and may be unloaded before it",
        clock: Clock::TwoCpusInTurn,
        modules: &[],
        run: late::run,
    },
    Trial {
        name: "unload",
        title: "the module stays while it is used, and goes under load when it is not",
        clock: Clock::TwoCpusInTurn,
        modules: &[],
        run: unload::run,
    },
    Trial {
        name: "pressure",
        title: "load with hardly any memory left, and in a small memory cgroup",
        clock: Clock::TwoCpus,
        modules: &[],
        run: pressure::run,
    },
    Trial {
        name: "removal",
        title: "the device goes away under load",
        clock: Clock::TwoCpus,
        modules: &[],
        run: removal::run,
    },
    Trial {
        name: "faults",
        title: "allocations of a module's start and of a change of scheduler fail one at a time (debug kernel)",
        clock: Clock::TwoCpusInTurn,
        modules: &[],
        run: faults::run,
    },
    Trial {
        name: "defrag",
        title: "files are moved while they are written and read, and what must not be moved stays",
        clock: Clock::TwoCpus,
        modules: &[],
        run: defrag::run,
    },
    Trial {
        name: "attributes",
        title: "whatever is written to the attributes and asked by ioctl, both modules stay whole",
        clock: Clock::TwoCpus,
        modules: &[],
        run: attributes::run,
    },
    Trial {
        name: "lists",
        title: "lists are written while the cgroups in them come and go, and none is held for ever",
        clock: Clock::TwoCpus,
        modules: &[],
        run: lists::run,
    },
    Trial {
        name: "queues",
        title: "one tag, several hardware queues that come and go, tags that two disks share",
        clock: Clock::TwoCpus,
        modules: &queues::MODULES,
        run: queues::run,
    },
    Trial {
        name: "requeue",
        title: "requests come back, from a host that is busy and a transport that fails",
        clock: Clock::TwoCpus,
        modules: &requeue::MODULES,
        run: requeue::run,
    },
    Trial {
        name: "stacked",
        title: "data are right above dm-linear, dm-crypt and a RAID1 while schedulers change below",
        clock: Clock::TwoCpus,
        modules: &stacked::MODULES,
        run: stacked::run,
    },
    Trial {
        name: "leak",
        title: "loading, using and unloading the modules leaves no memory behind",
        clock: Clock::TwoCpusInTurn,
        modules: &[],
        run: leak::run,
    },
    Trial {
        name: "disk",
        title: "data are right on a disk of QEMU's while schedulers change, and what a small fsync costs under each",
        clock: Clock::WithDisks,
        modules: &drivers::MODULES,
        run: drivers::run_one,
    },
    Trial {
        name: "drivers",
        title: "the same on each disk that QEMU and the kernel have, with ext4 and XFS",
        clock: Clock::WithDisks,
        modules: &drivers::MODULES,
        run: drivers::run,
    },
];

/// The trial called `name`.
///
/// # Errors
/// A sentence with the names there are.
pub fn find(name: &str) -> Result<&'static Trial, String> {
    TRIALS.iter().find(|it| it.name == name).ok_or_else(|| {
        let names: Vec<_> = TRIALS.iter().map(|it| it.name).collect();
        format!("there is no trial '{name}': use {}", names.join(", "))
    })
}

impl Trial {
    /// Does it.
    ///
    /// # Errors
    /// What was not withstood.
    pub fn run(&self, stand: &Stand) -> Result<(), Failure> {
        stand.prepare()?;
        (self.run)(stand)
    }
}
