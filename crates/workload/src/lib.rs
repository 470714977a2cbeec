//! Workloads M1 to M5, scenarios, background loads, and their latencies.
//!
//! [`run`] runs one workload under one load in a directory and returns its figures. The lab's
//! guests and `frontrow bench` run the same code.

mod aged;
mod app;
mod background;
mod calibrate;
mod camera;
mod cold;
mod content;
mod database;
mod device;
pub mod direct;
mod error;
mod footprint;
mod front;
mod install;
mod launch;
mod layout;
mod load;
mod loader;
mod loading;
mod memcg;
mod meter;
mod micro;
mod phone;
mod pieces;
mod price;
mod programmed;
mod programs;
mod seed;
mod simflash;
mod sizes;
mod sqlite;
mod stage;
mod throttle;
mod timed;
mod upkeep;
mod writeback;

pub use error::Error;
pub use footprint::{Footprint, footprint};
pub use load::{LOADS, processes};
pub use loader::Loader;
pub use upkeep::Upkeep;

use crate::launch::Launches;
use aged::Aged;
use calibrate::Sweep;
use camera::Bursts;
use database::Journal;
use device::{Place, Requests};
use install::Installs;
use load::Load;
use loading::Loading;
use phone::Reading;
use pieces::Grid;
use price::Price;
use programs::{Program, Starts};
use record::{Histogram, Run, Scale, Series};
use sizes::Sizes;
use sqlite::Statements;
use stage::{Foreground, Ground};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Arguments of a run.
pub struct RunRequest<'a> {
    /// The workload and the load.
    pub run: &'a Run,
    /// An existing directory on the file system under test. The run makes its files in it, and
    /// removes those of the load.
    pub dir: &'a Path,
    /// The bare device for the workloads of [`Surface::Device`], which overwrite it. With `None`
    /// they use a file in `dir`.
    pub device: Option<&'a Path>,
    /// Seed of the file layout, the load's start and random places.
    pub seed: u64,
    /// Size of the workload and the load.
    pub scale: Scale,
    /// Loader of an app's pages, for the launch experiment.
    pub loader: Loader,
    /// Upkeep of the phone in the janusd experiment, and of the aged apps' files.
    pub upkeep: Upkeep,
    /// Mount point of tracefs, to measure the time in dirty throttling (needs root). `None` leaves
    /// those figures out.
    pub tracefs: Option<&'a Path>,
    /// Cgroups for the load's processes, one each, unless its name gives it one of its own.
    pub background_cgroups: &'a [PathBuf],
    /// Whether the load has the idle class of I/O priorities (`ionice -c idle`).
    pub background_is_idle_class: bool,
    /// Stop flag. Once it is set, the run cleans up and ends with [`Error::Interrupted`].
    pub stop: &'a AtomicBool,
    /// Observer of the measured part.
    pub observer: &'a mut dyn Observer,
}

/// Observer of the begin and the end of the measured part, without preparation, warm-up and
/// clean-up.
pub trait Observer {
    /// Called just before the first measured operation.
    fn before(&mut self) {}

    /// Called just after the last measured operation, also after a failure.
    fn after(&mut self) {}
}

/// An observer that does nothing.
impl Observer for () {}

/// One figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Name in the result contract, such as `fsync_mean_ms`.
    pub metric: String,
    /// Unit of the value: `ms`, `MB/s`, `1` …
    pub unit: &'static str,
    /// The value in `unit`.
    pub value: f64,
    /// Distribution of which the value is the mean; None without one.
    pub histogram: Option<Histogram>,
    /// Values in order whose mean the figure is; None unless their order matters.
    pub series: Option<Series>,
}

impl Measurement {
    /// A figure without a distribution.
    pub fn new(metric: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Measurement {
            metric: metric.into(),
            unit,
            value,
            histogram: None,
            series: None,
        }
    }

    /// A figure in milliseconds without a distribution.
    pub fn milliseconds(metric: String, value: f64) -> Self {
        Measurement::new(metric, "ms", value)
    }

    pub(crate) fn duration(metric: &str, time: Duration) -> Self {
        Measurement::milliseconds(metric.to_owned(), time.as_nanos() as f64 / 1e6)
    }
}

/// A name and its meaning, for lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name in experiments and on the command line.
    pub name: &'static str,
    /// Meaning of the name in one line.
    pub title: &'static str,
}

impl Entry {
    pub(crate) const fn new(name: &'static str, title: &'static str) -> Self {
        Entry { name, title }
    }

    pub(crate) fn names(entries: &[Entry]) -> String {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        names.join(", ")
    }
}

/// All workloads, by name.
pub const WORKLOADS: &[Entry] = &[
    Entry::new("m1", "creat, write 4 KB, fsync, close of one file"),
    Entry::new("m2", "creat, write 1 MB, fsync, close of one file"),
    Entry::new("m3", "1 KB writes to a new file"),
    Entry::new("m4", "truncate a 2 MB file and write it again"),
    Entry::new("m5", "a new 4 KB file while a big one is rewritten"),
    Entry::new("a", "an app's start: cold reads, SQLite, preference files"),
    Entry::new("b", "a camera's bursts beside a thumbnail maker"),
    Entry::new("c", "an app's installation"),
    Entry::new("launch", "16 apps start cold, one after another"),
    Entry::new("python", "Python imports its modules, cold, loaded and not"),
    Entry::new("sqlite3", "SQLite scans a table, cold, loaded and not"),
    Entry::new("java", "Java lists a keystore, cold, loaded and not"),
    Entry::new("gallery", "an album is opened: 50 photos become thumbnails"),
    Entry::new("camera", "a camera is left: its burst is made durable"),
    Entry::new("game", "a game loads: assets are read, caches written"),
    Entry::new("aged-gallery", "an album in pieces is opened cold"),
    Entry::new("aged-game", "a game in pieces loads cold"),
    Entry::new("phone", "six apps' files read cold after months of use"),
    Entry::new("pieces", "a 512 KB file read cold, by how it lies"),
    Entry::new("sqlite-wal", "SQLite statements with a write-ahead log"),
    Entry::new(
        "sqlite-rollback",
        "SQLite statements with a rollback journal",
    ),
    Entry::new(
        "completion",
        "the load's time for its file, M1 beside it for a tenth",
    ),
    Entry::new(
        "third",
        "the load's time for its work, an album opened cold beside it for a third",
    ),
    Entry::new(
        "undisturbed",
        "the load's time for its work, nothing beside it",
    ),
    Entry::new(
        "share",
        "the load's rate beside a busy M1 over its rate alone",
    ),
    Entry::new(
        "seq-read-1",
        "direct 128 KB reads in sequence, one at a time",
    ),
    Entry::new(
        "seq-read-32",
        "direct 128 KB reads in sequence, 32 at a time",
    ),
    Entry::new(
        "seq-write-1",
        "direct 128 KB writes in sequence, one at a time",
    ),
    Entry::new(
        "seq-write-32",
        "direct 128 KB writes in sequence, 32 at a time",
    ),
    Entry::new("rand-read-1", "direct 4 KB reads at random, one at a time"),
    Entry::new("rand-read-32", "direct 4 KB reads at random, 32 at a time"),
    Entry::new(
        "rand-write-1",
        "direct 4 KB writes at random, one at a time",
    ),
    Entry::new(
        "rand-write-32",
        "direct 4 KB writes at random, 32 at a time",
    ),
    Entry::new(
        "calibrate-seq-read",
        "direct reads in sequence, 4 KB to 512 KB a request",
    ),
    Entry::new(
        "calibrate-seq-write",
        "direct writes in sequence, 4 KB to 512 KB a request",
    ),
    Entry::new(
        "calibrate-rand-read",
        "direct reads at random, 4 KB to 512 KB a request",
    ),
    Entry::new(
        "calibrate-rand-write",
        "direct writes at random, 4 KB to 512 KB a request",
    ),
    Entry::new(
        "overhead-read-1",
        "instructions of a direct 4 KB read, one at a time",
    ),
    Entry::new(
        "overhead-read-32",
        "instructions of a direct 4 KB read, 32 at a time",
    ),
    Entry::new(
        "overhead-write-1",
        "instructions of a direct 4 KB write, one at a time",
    ),
    Entry::new(
        "overhead-write-32",
        "instructions of a direct 4 KB write, 32 at a time",
    ),
];

/// Surface that a workload runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// A directory of a mounted file system.
    FileSystem,
    /// The bare device, without a mounted file system.
    Device,
}

/// Surface of `workload`. Unknown names belong to the file system, and [`run`] refuses them.
pub fn surface(workload: &str) -> Surface {
    let bare =
        device::Plan::parse(workload).is_some() || calibrate::Plan::parse(workload).is_some();
    match bare {
        true => Surface::Device,
        false => Surface::FileSystem,
    }
}

/// Program of Debian that `workload` starts, by its name in the lab's guests. None for other
/// workloads.
pub fn program(workload: &str) -> Option<&'static str> {
    Program::parse(workload).map(Program::name)
}

/// Checks that the names are known and the pair measures something.
///
/// # Errors
/// [`Error::UnknownWorkload`], [`Error::UnknownLoad`] or [`Error::NotTogether`].
pub fn check(run: &Run) -> Result<(), Error> {
    let loads = Load::parse_all(&run.load)?;
    let loaded = !loads.is_empty();
    let refused = |reason| {
        Err(Error::NotTogether {
            workload: run.workload.clone(),
            load: run.load.clone(),
            reason,
        })
    };
    if !WORKLOADS.iter().any(|entry| entry.name == run.workload) {
        return Err(Error::UnknownWorkload {
            name: run.workload.clone(),
            choices: Entry::names(WORKLOADS),
        });
    }
    match surface(&run.workload) {
        Surface::Device if loaded => refused("it measures the unloaded device; choose idle"),
        _ => match (Price::parse(&run.workload), &loads[..]) {
            (None, _) => Ok(()),
            (Some(_), []) => refused("it measures the load; choose one"),
            (Some(price), [load]) if price.is_for(*load) => Ok(()),
            _ => refused("it measures one load whose work ends; choose reinstall or backup"),
        },
    }
}

/// Runs one workload under one load and returns its figures in a fixed order.
///
/// The calling thread is the foreground. The load is a child process that has ended when this
/// returns. The caller must not wait for arbitrary children meanwhile.
///
/// # Errors
/// The errors of [`check`] before anything is done; later any other, after the load has ended.
pub fn run(request: &mut RunRequest) -> Result<Vec<Measurement>, Error> {
    check(request.run)?;
    let sizes = Sizes::of_workload(request.scale, &request.run.workload);
    run_sized(request, sizes)
}

fn run_sized(request: &mut RunRequest, sizes: Sizes) -> Result<Vec<Measurement>, Error> {
    let loads = Load::parse_all(&request.run.load)?;
    if let Some(mut foreground) = choose_on_device(request, &sizes) {
        foreground.prepare()?;
        return stage::measure(request, &mut [], foreground.as_mut());
    }
    let ground = Ground {
        directory: request.dir.join("foreground"),
        seed: request.seed,
        sizes,
    };
    if let (Some(price), [load]) = (Price::parse(&request.run.workload), &loads[..]) {
        ground.create()?;
        return price::perform(request, &ground, *load, price);
    }
    let mut foreground = choose(request, &ground)?;
    ground.create()?;
    stage::perform(request, &ground, &loads, foreground.as_mut())
}

/// The workload on the bare device with this name; `None` for one of the file system.
fn choose_on_device<'a>(
    request: &RunRequest<'a>,
    sizes: &Sizes,
) -> Option<Box<dyn Foreground + 'a>> {
    let (name, seed, stop) = (&request.run.workload, request.seed, request.stop);
    let place = match request.device {
        Some(device) => Place::Device(device.to_owned()),
        None => Place::File(request.dir.join("direct")),
    };
    if let Some(plan) = device::Plan::parse(name) {
        return Some(Box::new(Requests::new(plan, place, seed, sizes, stop)));
    }
    let plan = calibrate::Plan::parse(name)?;
    Some(Box::new(Sweep::new(plan, place, seed, sizes, stop)))
}

fn choose(request: &RunRequest, ground: &Ground) -> Result<Box<dyn Foreground>, Error> {
    Ok(match request.run.workload.as_str() {
        "m1" => Box::new(micro::Recreate::m1(ground)),
        "m2" => Box::new(micro::Recreate::m2(ground)),
        "m3" => Box::new(micro::SmallWrites::m3(ground)),
        "m4" => Box::new(micro::Truncate::m4(ground)),
        "m5" => Box::new(micro::NewFile::m5(ground)),
        "a" => Box::new(Launches::new(ground)),
        "b" => Box::new(Bursts::new(ground)),
        "c" => Box::new(Installs::new(ground)),
        "gallery" => Box::new(front::gallery(ground)),
        "camera" => Box::new(front::camera(ground)),
        "game" => Box::new(front::game(ground)),
        "aged-gallery" => Box::new(Aged::new(front::gallery(ground), ground, request.upkeep)),
        "aged-game" => Box::new(Aged::new(front::game(ground), ground, request.upkeep)),
        "launch" => Box::new(Loading::new(ground, request.loader)),
        "pieces" => Box::new(Grid::new(ground)),
        "phone" => Box::new(Reading::new(ground, request.upkeep)),
        "sqlite-wal" => Box::new(Statements::new(ground, Journal::Wal)),
        "sqlite-rollback" => Box::new(Statements::new(ground, Journal::Rollback)),
        workload => match Program::parse(workload) {
            Some(program) => Box::new(Starts::new(ground, program)),
            None => {
                return Err(Error::UnknownWorkload {
                    name: workload.to_owned(),
                    choices: Entry::names(WORKLOADS),
                });
            }
        },
    })
}

#[cfg(test)]
mod tests;
