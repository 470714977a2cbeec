//! Running an experiment: one guest for each policy and seed.

use crate::Error;
use crate::cache::Cache;
use crate::emulator;
use crate::image::{self, FRONTROW, FRONTROW_LAB, Image, hex};
use crate::kept::Keep;
use crate::kernel::Kernel;
use crate::past::Past;
use crate::qemu::Clock;
use crate::session::{Owner, Session};
use crate::sources::Sources;
use guest::TRACE_PATH;
use record::shard::{End, Outcome};
use record::{
    Device, Experiment, GuestSpec, Inputs, Policy, ResultFile, Row, Scale, Shard, ShardFile, Task,
    TracePart, policy,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

/// Programs that guests need to make the file system under test.
pub(crate) const PROGRAMS: [&str; 1] = ["mke2fs"];

/// An experiment to run.
pub struct Request {
    /// The experiment; its policies and runs are what is done.
    pub experiment: Experiment,
    /// The emulated device.
    pub device: Device,
    /// The kernel to boot.
    pub kernel: Kernel,
    /// Seeds; there is one guest for each policy and seed.
    pub seeds: Vec<u64>,
    /// How large the workloads are.
    pub scale: Scale,
    /// Guests at once.
    pub jobs: usize,
    /// The trace, where the experiment plays one.
    pub trace: Option<PathBuf>,
}

/// Hears how far the guests are; called from several threads.
pub trait Watcher: Sync {
    /// All guests there will be.
    fn begins(&self, _guests: usize) {}
    /// Called while an aged device is made, with pages written so far and in all.
    fn ages(&self, _written: u64, _all: u64) {}
    /// Run `index` of `count` begins in a guest.
    fn progress(&self, _guest: &Name, _index: usize, _count: usize, _text: &str) {}
    /// A guest has sent all it had.
    fn done(&self, _guest: &Name, _rows: usize) {}
    /// A guest of a shard failed; the others go on.
    fn failed(&self, _guest: &Name, _error: &Error) {}
    /// All guests of the first of several seeds are done, with this result.
    fn first_seed(&self, _result: &ResultFile) {}
}

/// Ignores all events.
impl Watcher for () {}

/// Which guest it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Policy of the guest.
    pub policy: Policy,
    /// Seed of the guest.
    pub seed: u64,
}

/// Runs all guests and gives the result, or the reason of the first that
/// failed; the others are ended then, as they are when `stop` becomes true. With `keep` a run that was
/// interrupted goes on.
pub fn run(
    cache: &Cache,
    sources: &Sources,
    request: &Request,
    keep: Option<&Keep>,
    watcher: &dyn Watcher,
    stop: &AtomicBool,
) -> Result<ResultFile, Error> {
    let prepared = Prepared::of(cache, sources, request, watcher, stop)?;
    let lab = Lab {
        cache,
        keep,
        request,
        prepared: &prepared,
        watcher,
        stop,
        goes_on: false,
        given_up: AtomicBool::new(false),
    };
    let guests = guests(request);
    let outcomes = lab.run(&guests, &by_seed(&guests));
    let missing = outcomes.len() < guests.len();
    let rows = collect(outcomes)?;
    match missing {
        true => Err(Error::Interrupted),
        false => Ok(lab.result(rows)),
    }
}

/// Runs the guests of one shard. Those that fail are written down, and the others go on.
pub fn run_shard(
    cache: &Cache,
    sources: &Sources,
    request: &Request,
    shard: Shard,
    keep: Option<&Keep>,
    watcher: &dyn Watcher,
    stop: &AtomicBool,
) -> Result<ShardFile, Error> {
    let prepared = Prepared::of(cache, sources, request, watcher, stop)?;
    let lab = Lab {
        cache,
        keep,
        request,
        prepared: &prepared,
        watcher,
        stop,
        goes_on: true,
        given_up: AtomicBool::new(false),
    };
    let guests = guests(request);
    let mut order = by_seed(&guests);
    order.retain(|place| shard.has(*place));
    let outcomes = lab.run(&guests, &order);
    let is_cut = |it: &Result<_, Error>| matches!(it, Err(Error::Interrupted));
    if outcomes.len() < order.len() || outcomes.values().any(is_cut) {
        return Err(Error::Interrupted);
    }
    let ended = |(place, outcome): (usize, Result<Vec<Row>, Error>)| Outcome {
        place,
        policy: guests[place].policy.name().to_owned(),
        seed: guests[place].seed,
        end: match outcome {
            Ok(rows) => End::Rows(rows),
            Err(error) => End::Failure(error.to_string()),
        },
    };
    Ok(ShardFile {
        shard,
        guests: guests.len(),
        orders_sha256: lab.orders_sha256(&guests)?,
        result: lab.result(Vec::new()),
        outcomes: outcomes.into_iter().map(ended).collect(),
    })
}

/// What all guests of a run share.
struct Prepared {
    device: Device,
    flash_image: Option<String>,
    memory_mib: u64,
    image: Image,
    /// Modules of the kernel besides those of policies and devices.
    more_modules: Vec<record::Module>,
    inputs: Inputs,
}

impl Prepared {
    fn of(
        cache: &Cache,
        sources: &Sources,
        request: &Request,
        watcher: &dyn Watcher,
        stop: &AtomicBool,
    ) -> Result<Prepared, Error> {
        let (experiment, kernel) = (&request.experiment, &request.kernel);
        let mut programs = programs(experiment);
        let trace = trace_of(request)?;
        programs.extend(trace.is_some().then_some(FRONTROW_LAB));
        let device = device_of(request);
        let past = Past::of(cache, &device, &|done, all| watcher.ages(done, all), stop)?;
        let mut image = Image::make(cache, sources, kernel, &experiment.policies, &programs)?;
        if let Some(content) = trace {
            image.add_file(TRACE_PATH.trim_start_matches('/'), content);
        }
        let names = modules(experiment);
        let more_modules = match names.is_empty() {
            true => Vec::new(),
            false => image.add_modules(kernel, &names)?,
        };
        let (flash_image, more_memory_mib) = (past.path(), past.memory_mib());
        image.add_past(past);
        let mut items = image.inputs.clone();
        items.insert("qemu".to_owned(), emulator::version(kernel.tree.arch)?);
        Ok(Prepared {
            device,
            flash_image,
            memory_mib: experiment.memory_mib + more_memory_mib,
            image,
            more_modules,
            inputs: Inputs { items },
        })
    }
}

/// Puts into the cache what the guests of `request` need besides programs of our own, so that
/// `run` finds it there: tools, modules and the aged device.
pub fn prepare(
    cache: &Cache,
    sources: &Sources,
    request: &Request,
    watcher: &dyn Watcher,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let (experiment, kernel) = (&request.experiment, &request.kernel);
    let programs = programs(experiment);
    image::prepare(cache, sources, kernel, &experiment.policies, &programs)?;
    let ages = |done, all| watcher.ages(done, all);
    Past::of(cache, &device_of(request), &ages, stop).map(|_| ())
}

/// Programs in the guests of `experiment`.
fn programs(experiment: &Experiment) -> Vec<&'static str> {
    let mut programs = PROGRAMS.to_vec();
    let of_runs = experiment.runs.iter();
    for run in of_runs {
        let of_run = workload::programs(run.workload);
        // It is measured by `frontrow launch bench`.
        let measures = (!of_run.is_empty()).then_some(FRONTROW);
        for name in of_run.into_iter().chain(measures) {
            if !programs.contains(&name) {
                programs.push(name);
            }
        }
    }
    let of_policies = experiment.policies.iter();
    programs.extend(of_policies.flat_map(|policy| policy.programs()));
    programs
}

/// Modules of the kernel in the guests of `experiment`, besides those of policies and devices.
fn modules(experiment: &Experiment) -> Vec<String> {
    let runs = experiment.runs.iter();
    let mut names: Vec<_> = runs
        .flat_map(|run| workload::modules(run.workload))
        .map(|name| (*name).to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The device as the experiment wants it.
fn device_of(request: &Request) -> Device {
    let experiment = &request.experiment;
    let mut device = match experiment.aged {
        true => request.device.clone(),
        false => request.device.without_past(),
    };
    device.simflash.extend(experiment.simflash.clone());
    device
}

/// The trace's content, if the experiment plays one.
fn trace_of(request: &Request) -> Result<Option<Vec<u8>>, Error> {
    let name = &request.experiment.name;
    match (&request.experiment.trace, &request.trace) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::Usage(format!(
            "experiment {name} replays no trace; omit --trace"
        ))),
        (Some(part), None) => Err(Error::Usage(format!(
            "experiment {name} plays {}, which does not come with frontrow: get it from {} and name the file with --trace",
            part.file, part.source
        ))),
        (Some(part), Some(path)) => {
            check_trace(part, path)?;
            fs::read(path).map(Some).map_err(Error::file(path))
        }
    }
}

/// Checks the trace before any guest starts.
fn check_trace(part: &TracePart, path: &Path) -> Result<(), Error> {
    let input = replay::Input::open(path).map_err(|error| Error::Usage(error.to_string()))?;
    let recording = replay::read(input, &replay::Options::default());
    let recording = recording.map_err(|error| Error::Usage(error.to_string()))?;
    let second_ns = 1_000_000_000;
    let window = recording
        .into_blocks()
        .window(part.from_s * second_ns, part.length_s * second_ns);
    match window.operations().is_empty() {
        false => Ok(()),
        true => Err(Error::Usage(format!(
            "nothing happens in {} from second {} on for {} s: give --trace the file {}",
            path.display(),
            part.from_s,
            part.length_s,
            part.file
        ))),
    }
}

/// All guests: by policy in the experiment's order, then by seed.
fn guests(request: &Request) -> Vec<Name> {
    let of_policy = |policy: &Policy| {
        let policy = policy.clone();
        request.seeds.iter().map(move |&seed| Name {
            policy: policy.clone(),
            seed,
        })
    };
    request
        .experiment
        .policies
        .iter()
        .flat_map(of_policy)
        .collect()
}

/// How guests ended, by their place in the list; those that were never started
/// are not in it.
type Outcomes = BTreeMap<usize, Result<Vec<Row>, Error>>;

/// Places of `guests` in the order they start in: seed by seed, so that there is a figure of each
/// policy early.
fn by_seed(guests: &[Name]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..guests.len()).collect();
    places.sort_by_key(|&place| guests[place].seed);
    places
}

struct Lab<'a> {
    cache: &'a Cache,
    keep: Option<&'a Keep<'a>>,
    request: &'a Request,
    prepared: &'a Prepared,
    watcher: &'a dyn Watcher,
    stop: &'a AtomicBool,
    /// Whether a failure leaves the other guests running.
    goes_on: bool,
    given_up: AtomicBool,
}

impl Lab<'_> {
    /// How the guests at these places of `guests` ended, which start in this order.
    fn run(&self, guests: &[Name], order: &[usize]) -> Outcomes {
        self.watcher.begins(order.len());
        let next = AtomicUsize::new(0);
        let (ended, receiver) = mpsc::channel();
        let mut outcomes = Outcomes::new();
        thread::scope(|scope| {
            for _ in 0..self.request.jobs.clamp(1, order.len().max(1)) {
                let (ended, next) = (ended.clone(), &next);
                scope.spawn(move || self.one_after_another(guests, order, next, &ended));
            }
            drop(ended);
            for (place, outcome) in receiver {
                outcomes.insert(place, outcome);
                self.tell_first_seed(guests, place, &outcomes);
            }
        });
        outcomes
    }

    /// Tells the first seed's result if the guest at `place` was the last that it lacked.
    fn tell_first_seed(&self, guests: &[Name], place: usize, outcomes: &Outcomes) {
        let [first, _, ..] = self.request.seeds[..] else {
            return;
        };
        let is_first = |place: &usize| guests[*place].seed == first;
        let places: Vec<usize> = (0..guests.len()).filter(is_first).collect();
        let rows_of = |place| Some(outcomes.get(place)?.as_ref().ok()?.as_slice());
        let rows: Option<Vec<&[Row]>> = places.iter().map(rows_of).collect();
        if let Some(rows) = rows.filter(|_| places.contains(&place)) {
            self.watcher.first_seed(&self.result(rows.concat()));
        }
    }

    fn result(&self, rows: Vec<Row>) -> ResultFile {
        let request = self.request;
        ResultFile {
            experiment: request.experiment.name.clone(),
            kernel: request.kernel.release().to_owned(),
            device: request.device.name.clone(),
            scale: request.scale,
            stock_default: policy::kernel_default(1).to_owned(),
            baselines: request.experiment.baselines.clone(),
            bars: match Experiment::embedded(&request.experiment.name) {
                Some(_) => Vec::new(),
                None => request.experiment.bars.clone(),
            },
            inputs: self.prepared.inputs.clone(),
            rows: record::isolation::add(rows),
        }
    }

    fn one_after_another(
        &self,
        guests: &[Name],
        order: &[usize],
        next: &AtomicUsize,
        ended: &Sender<(usize, Result<Vec<Row>, Error>)>,
    ) {
        while !self.is_over() {
            let Some(&place) = order.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            let guest = &guests[place];
            let outcome = self.one(guest);
            match &outcome {
                Err(error) if self.goes_on => self.watcher.failed(guest, error),
                Err(_) => self.given_up.store(true, Ordering::Relaxed),
                Ok(_) => {}
            }
            // The receiver lives until all threads have ended.
            let _ = ended.send((place, outcome));
        }
    }

    fn one(&self, guest: &Name) -> Result<Vec<Row>, Error> {
        let spec = self.spec(guest);
        let image = self.prepared.image.with_spec(&spec)?;
        let kernel = &self.request.kernel;
        let owner = Attendant { lab: self, guest };
        let mut session = Session::new(self.cache, &spec, &owner, &image)?;
        session.keep(self.keep);
        let rows = session.run(kernel, self.prepared.memory_mib, Clock::Instructions)?;
        self.watcher.done(guest, rows.len());
        Ok(rows)
    }

    /// Digest of all that guests are told, and of their memory.
    fn orders_sha256(&self, guests: &[Name]) -> Result<String, Error> {
        let mut digest = Sha256::new();
        digest.update(self.prepared.memory_mib.to_le_bytes());
        for guest in guests {
            digest.update(serde_json::to_vec(&self.spec(guest))?);
        }
        Ok(hex(&digest.finalize()))
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.given_up.load(Ordering::Relaxed)
    }

    fn spec(&self, guest: &Name) -> GuestSpec {
        let experiment = &self.request.experiment;
        let Prepared { image, device, .. } = self.prepared;
        let mut modules = image.modules(&guest.policy, &device.simflash);
        modules.extend(self.prepared.more_modules.iter().cloned());
        GuestSpec {
            seed: guest.seed,
            scale: self.request.scale,
            flash_image: self.prepared.flash_image.clone(),
            io_cost_model: io_cost_model(device),
            sysctls: experiment.sysctls.clone(),
            writes: experiment.writes.clone(),
            mount_options: experiment.mount_options.clone(),
            limit_virtual_s: experiment.limit_virtual_s,
            ..GuestSpec::new(
                &experiment.name,
                guest.policy.clone(),
                modules,
                task(experiment),
            )
        }
    }
}

fn task(experiment: &Experiment) -> Task {
    let runs = experiment.runs.clone();
    match experiment.trace.clone() {
        Some(part) => Task::Replays { part, runs },
        None => Task::Runs(runs),
    }
}

/// As the kernel's `io.cost.model` takes it.
fn io_cost_model(device: &Device) -> String {
    let numbers = device
        .io_cost
        .iter()
        .map(|(name, number)| format!("{name}={number}"));
    numbers.collect::<Vec<_>>().join(" ")
}

/// The lab's ear for one guest.
struct Attendant<'a> {
    lab: &'a Lab<'a>,
    guest: &'a Name,
}

impl Owner for Attendant<'_> {
    fn progress(&self, index: usize, count: usize, text: &str) {
        self.lab.watcher.progress(self.guest, index, count, text);
    }

    fn is_over(&self) -> bool {
        self.lab.is_over()
    }
}

/// All rows, or the first failure that is not just a consequence of another.
fn collect(outcomes: Outcomes) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    let mut interrupted = None;
    for outcome in outcomes.into_values() {
        match outcome {
            Ok(more) => rows.extend(more),
            Err(Error::Interrupted) => interrupted = Some(Error::Interrupted),
            Err(error) => return Err(error),
        }
    }
    interrupted.map_or(Ok(rows), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_start_seed_by_seed() {
        let guest = |policy: &str, seed| Name {
            policy: policy.parse().unwrap(),
            seed,
        };
        let guests = [
            guest("none", 2),
            guest("none", 3),
            guest("bfq", 2),
            guest("bfq", 3),
        ];
        assert_eq!(by_seed(&guests), [0, 2, 1, 3]);
    }

    #[test]
    fn the_failure_is_told_and_not_what_it_ended() {
        let failure = || Err(Error::Usage("the reason".to_owned()));
        let outcomes = BTreeMap::from([
            (0, Err(Error::Interrupted)),
            (1, failure()),
            (2, Ok(Vec::new())),
        ]);
        assert_eq!(collect(outcomes).unwrap_err().to_string(), "the reason");
        let outcomes = BTreeMap::from([(0, Ok(Vec::new())), (1, Err(Error::Interrupted))]);
        assert!(matches!(collect(outcomes), Err(Error::Interrupted)));
    }
}
