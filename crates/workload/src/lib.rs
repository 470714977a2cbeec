//! Workloads M1 to M5, scenarios, background loads, and their latencies.
//!
//! [`run`] runs one workload under one load in a directory and returns its figures. The lab's
//! guests and `frontrow bench` run the same code.

pub mod age;
mod aged;
mod app;
mod background;
mod calibrate;
mod camera;
mod code;
mod cold;
mod content;
mod counters;
mod cpu_time;
mod database;
mod device;
pub mod direct;
mod dof;
mod error;
mod footprint;
mod front;
mod gaps;
mod install;
mod launch;
mod layout;
mod load;
mod loader;
mod loading;
mod memcg;
mod meter;
mod micro;
mod package;
mod phone;
mod pieces;
mod price;
mod programmed;
mod programs;
mod resuming;
mod simflash;
mod sizes;
mod split_view;
mod sqlite;
mod stage;
mod storage;
mod throttle;
mod timed;
mod transactions;
mod unpack;
mod upkeep;
mod writeback;

pub use counters::Watch;
pub use error::Error;
pub use footprint::{Footprint, footprint};

use calibrate::Sweep;
use code::{Code, Start};
use device::{Place, Requests};
use load::Load;
use programs::Starts;
use record::metric::Metric;
pub use record::policy::{Loader, Upkeep};
use record::{Histogram, Run, Scale, Series, Workload};
use sizes::Sizes;
use stage::{Foreground, RunContext};
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
    /// Cgroups for the apps of the workload `split-view`, the active one's first; none to leave them
    /// in the caller's.
    pub screen_cgroups: &'a [PathBuf],
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
    /// A figure without a distribution. Its metric has a line in [`record::metric`].
    pub fn new(metric: impl Into<String>, unit: &'static str, value: f64) -> Self {
        let metric = metric.into();
        debug_assert!(
            Metric::find(&metric).is_some_and(|it| it.unit == unit),
            "the table of metrics has no {metric} in {unit}"
        );
        Measurement {
            metric,
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

/// Surface that a workload runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// A directory of a mounted file system.
    FileSystem,
    /// The bare device, without a mounted file system.
    Device,
}

/// Surface of `workload`.
pub fn surface(workload: &Workload) -> Surface {
    match Code::of(workload).start {
        Start::Requests(_) | Start::Sweep(_) => Surface::Device,
        _ => Surface::FileSystem,
    }
}

/// Whether a recording of `workload` tells in which layer its calls spend their time.
pub fn tells_layers(workload: &Workload) -> bool {
    Code::of(workload).tells_layers
}

/// Programs of Debian that `workload` needs, by their names in the lab's guests; empty for most.
pub fn programs(workload: &Workload) -> Vec<&'static str> {
    match Code::of(workload).start {
        Start::Program(app) => app.programs(),
        _ => Vec::new(),
    }
}

/// Modules of the kernel that `workload` needs in the lab's guests; empty for most.
pub fn modules(workload: &Workload) -> &'static [&'static str] {
    match Code::of(workload).start {
        Start::Program(app) => app.modules(),
        _ => &[],
    }
}

/// Checks that the pair measures something.
///
/// # Errors
/// [`Error::NotTogether`].
pub fn check(run: &Run) -> Result<(), Error> {
    let loads = Load::all(&run.load);
    let reason = match (Code::of(run.workload).start, &loads[..]) {
        (Start::Trace, _) => "it plays a trace; run the lab's experiment traces",
        _ if run.load.recorded || run.load.is_rest_of_trace() => {
            "only the lab's guests have this load; choose another"
        }
        (Start::Requests(_) | Start::Sweep(_), [_, ..]) => {
            "it measures the unloaded device; choose idle"
        }
        (Start::Price(_), []) => "it measures the load; choose one",
        (Start::Price(price), [load]) if price.is_for(*load) => return Ok(()),
        (Start::Price(_), _) => "it measures one load whose work ends; choose reinstall or backup",
        _ => return Ok(()),
    };
    Err(Error::NotTogether {
        workload: run.workload.to_string(),
        load: run.load.to_string(),
        reason,
    })
}

/// Runs one workload under one load and returns its figures in a fixed order.
///
/// The calling thread is the foreground. The load is a child process that has ended when this
/// returns. The caller must not wait for arbitrary children meanwhile.
///
/// # Errors
/// The errors of [`check`] before anything is done; later any other, after the load has ended.
pub fn run(request: &mut RunRequest) -> Result<Vec<Measurement>, Error> {
    let sizes = Sizes::of_workload(request.scale, Code::of(request.run.workload));
    run_sized(request, sizes)
}

fn run_sized(request: &mut RunRequest, sizes: Sizes) -> Result<Vec<Measurement>, Error> {
    check(request.run)?;
    let loads = Load::all(&request.run.load);
    let (seed, stop) = (request.seed, request.stop);
    let context = RunContext {
        directory: request.dir.join("foreground"),
        seed,
        sizes,
    };
    let mut foreground: Box<dyn Foreground> = match Code::of(request.run.workload).start {
        Start::App(start) => start(request, &context),
        Start::Program(app) => Box::new(Starts::new(&context, app)),
        Start::Price(price) => return price::perform(request, &context, &loads, price),
        Start::Requests(plan) => {
            let place = Place::of(request);
            let mut requests = Requests::new(plan, place, seed, &context.sizes, stop);
            return on_device(request, &mut requests);
        }
        Start::Sweep(plan) => {
            let place = Place::of(request);
            let mut sweep = Sweep::new(plan, place, seed, &context.sizes, stop);
            return on_device(request, &mut sweep);
        }
        Start::Trace => return Ok(Vec::new()),
    };
    context.create()?;
    stage::perform(request, &context, &loads, foreground.as_mut())
}

fn on_device(
    request: &mut RunRequest,
    foreground: &mut dyn Foreground,
) -> Result<Vec<Measurement>, Error> {
    foreground.prepare()?;
    stage::measure(request, &mut [], foreground)
}

#[cfg(test)]
mod tests;
