//! Trials of the kernel modules and of the profiler, inside a guest.
//!
//! A trial runs as root and alone in its machine. It may load and unload the modules, remove the
//! device and use up the memory. At its begin and its end the modules are loaded, the device is
//! under `frontrow`, and nothing is mounted. The lab checks that the kernel logged no errors
//! meanwhile.

mod attributes;
mod backlog;
mod beside;
mod change;
mod defrag;
mod dependencies;
mod disks;
mod drivers;
mod failure;
mod faults;
mod fio;
mod indirect;
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
mod queued;
mod queues;
mod recording;
mod removal;
mod requeue;
mod share;
mod stacked;
mod test_bed;
mod trace;
mod unload;
mod unplug;
mod volume;
mod waits;
mod zram;

pub use disks::{BYTES_PER_S, DISKS, Disk, SOLDERED};
pub use failure::Failure;
pub use test_bed::TestBed;

/// Line that a trial writes to the kernel's log before it removes the device. From here to
/// [`IO_ERRORS_END`] errors of I/O are expected.
pub const IO_ERRORS_BEGIN: &str = "frontrow: I/O errors are expected from here on";
/// Line that ends the errors of [`IO_ERRORS_BEGIN`].
pub const IO_ERRORS_END: &str = "frontrow: no more I/O errors are expected";

type Outcome<T> = Result<T, Failure>;

/// Clock and CPUs of a trial's guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// One CPU and virtual time, the same in each run: for trials with an exact result.
    Instructions,
    /// Two CPUs and the host's clock: for races.
    TwoCpus,
    /// Two CPUs that take turns, and the host's clock: for trials that change the kernel's code
    /// under load, as probes do.
    ///
    /// A QEMU before 8.1 misses a write to code by one CPU while it translates that code for
    /// another (its commit "always lock pages before translation"). The other CPU then meets a
    /// breakpoint that the kernel has removed.
    TwoCpusInTurn,
    /// Two CPUs, the host's clock, and [`DISKS`] besides the simulated device.
    WithDisks,
    /// The same with [`SOLDERED`] instead, for which the host's QEMU may be too old.
    WithSolderedDisks,
}

impl Clock {
    /// Whether the guest has disks of QEMU's.
    pub fn has_disks(self) -> bool {
        matches!(self, Clock::WithDisks | Clock::WithSolderedDisks)
    }
}

/// A figure of a trial, in the form of a result's row.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name of the workload or the disk.
    pub workload: String,
    /// Name of the load beside it.
    pub load: String,
    /// Name of the scheduler.
    pub policy: String,
    /// Name of the metric, with its unit at the end.
    pub metric: &'static str,
    /// Unit of the value: `ms`, or `1` for a share.
    pub unit: &'static str,
    /// The value in `unit`.
    pub value: f64,
}

/// What a trial tells besides its outcome.
#[derive(Clone, Debug)]
pub enum Report {
    /// A value for the tables of results.
    Figure(Figure),
    /// A line for people, such as what was passed over.
    Remark(String),
}

/// One test of what the modules must withstand.
pub struct Trial {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub title: &'static str,
    /// Clock and CPUs of the guest.
    pub clock: Clock,
    /// Modules of the kernel that it needs, with their parameters; a kernel may have them built in.
    pub modules: &'static [&'static str],
    run: fn(&TestBed) -> Outcome<()>,
}

/// All trials, in the order in which one guest runs them.
pub const TRIALS: [Trial; 38] = [
    Trial {
        name: "dependencies",
        title: "each dependency's wait is counted as what it is, and promoted",
        clock: Clock::Instructions,
        modules: &[],
        run: dependencies::run,
    },
    Trial {
        name: "tracepoints",
        title: "without return probes, waits for file pages are still detected and promoted",
        clock: Clock::Instructions,
        modules: &[],
        run: dependencies::run_without_probes,
    },
    Trial {
        name: "unpromoted",
        title: "where promotion is off, waits are counted and nothing is promoted",
        clock: Clock::Instructions,
        modules: &[],
        run: dependencies::run_without_promotion,
    },
    Trial {
        name: "inheritance",
        title: "a background task's write is served early if a foreground task waits for it",
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
        title: "under continuous synchronous load background writes keep their share, later half, and get no older than 5 s",
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
        name: "untyped",
        title: "on a kernel without types and without traced functions, iopro links writes and reads, and knows most waits",
        clock: Clock::Instructions,
        modules: &[],
        run: links::run_untyped,
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
        name: "in-turn",
        title: "a driver that waits for the device is given the next request when it has begun the last",
        clock: Clock::Instructions,
        modules: &[],
        run: queued::run_in_turn,
    },
    Trial {
        name: "stacked",
        title: "data are right above dm-linear, dm-crypt and a RAID1 while schedulers change below",
        clock: Clock::TwoCpus,
        modules: &stacked::MODULES,
        run: stacked::run,
    },
    Trial {
        name: "indirect",
        title: "a wait above a RAID1 or on Btrfs, where a file names no disk, promotes its writes on each",
        clock: Clock::Instructions,
        modules: &indirect::MODULES,
        run: indirect::run,
    },
    Trial {
        name: "zram",
        title: "zram is refused in one sentence, and a swap on it keeps its pages while schedulers change",
        clock: Clock::TwoCpus,
        modules: &zram::MODULES,
        run: zram::run,
    },
    Trial {
        name: "leak",
        title: "loading, using and unloading the modules leaks no memory",
        clock: Clock::TwoCpusInTurn,
        modules: &[],
        run: leak::run,
    },
    Trial {
        name: "disk",
        title: "a disk of QEMU's goes away and comes back, its data are right while schedulers change, and what a small fsync costs",
        clock: Clock::WithDisks,
        modules: &["virtio_pci", "virtio_blk"],
        run: drivers::run_one,
    },
    Trial {
        name: "drivers",
        title: "data are right, and what a small fsync costs, on each disk that QEMU and the kernel have, with ext4 and XFS",
        clock: Clock::WithDisks,
        modules: &disks::MODULES,
        run: drivers::run,
    },
    Trial {
        name: "soldered",
        title: "the same on UFS and eMMC with ext4; both also go away under load and come back",
        clock: Clock::WithSolderedDisks,
        modules: &disks::SOLDERED_MODULES,
        run: drivers::run_soldered,
    },
    Trial {
        name: "queued",
        title: "how many requests leave the scheduler at once on each disk, and that simflash does as its drivers",
        clock: Clock::WithDisks,
        modules: &disks::MODULES,
        run: queued::run,
    },
    Trial {
        name: "queued-soldered",
        title: "the same on UFS and eMMC",
        clock: Clock::WithSolderedDisks,
        modules: &disks::SOLDERED_MODULES,
        run: queued::run_soldered,
    },
    Trial {
        name: "unplug",
        title: "each disk that QEMU and the kernel have goes away under load and comes back",
        clock: Clock::WithDisks,
        modules: &disks::MODULES,
        run: unplug::run,
    },
    Trial {
        name: "file-systems",
        title: "`drivers` with f2fs and Btrfs, on four of the disks",
        clock: Clock::WithDisks,
        modules: &disks::MODULES,
        run: drivers::run_file_systems,
    },
    Trial {
        name: "above",
        title: "`drivers` with ext4 on dm-crypt, dm-linear, RAID1 and loop, on two of the disks",
        clock: Clock::WithDisks,
        modules: &stacked::MODULES_ABOVE,
        run: drivers::run_above,
    },
    Trial {
        name: "rate",
        title: "what the writer beside a task that syncs gets of a disk's rate, and what it depends on",
        clock: Clock::WithDisks,
        modules: &disks::MODULES,
        run: drivers::run_rate,
    },
];

/// The trial called `name`.
///
/// # Errors
/// A sentence with all names.
pub fn find(name: &str) -> Result<&'static Trial, String> {
    TRIALS.iter().find(|it| it.name == name).ok_or_else(|| {
        let names: Vec<_> = TRIALS.iter().map(|it| it.name).collect();
        format!("there is no trial '{name}': use {}", names.join(", "))
    })
}

impl Trial {
    /// Brings the test bed into its initial state, and runs the trial.
    ///
    /// # Errors
    /// A sentence that says what the modules did not withstand.
    pub fn run(&self, bed: &TestBed) -> Result<(), Failure> {
        bed.prepare()?;
        (self.run)(bed)
    }
}
