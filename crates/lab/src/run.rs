//! Running an experiment: one guest for each policy and seed.

use crate::cache::Cache;
use crate::error::GuestFailure;
use crate::image::Image;
use crate::kernel::Kernel;
use crate::messages::Messages;
use crate::qemu::{self, Clock, Console, Guest, Machine};
use crate::sources::Sources;
use crate::{Error, console};
use record::{Device, Experiment, GuestSpec, Inputs, ResultFile, Row, Scale, Task, policy};
use std::fs::{self, File};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a guest's messages are looked at.
const POLL: Duration = Duration::from_millis(50);

/// What a second of the guest's time may cost on the host before the guest
/// counts as stuck: some fifty times what it costs on an idle host.
const HOST_SECONDS_PER_VIRTUAL: u64 = 60;
const HOST_SECONDS_TO_BOOT: u64 = 300;

/// As much of the console log as an error shows.
const SHOWN_LINES: usize = 25;

/// The block device that simflash makes.
pub(crate) const DEVICE: &str = "simflash0";

/// What the guests need to mount and check the file system under test.
const PROGRAMS: [&str; 1] = ["mke2fs"];

/// What to run and how.
pub struct Request {
    /// The experiment; its policies and runs are what is done.
    pub experiment: Experiment,
    /// The emulated device.
    pub device: Device,
    /// The kernel to boot.
    pub kernel: Kernel,
    /// One guest for each of these and each policy.
    pub seeds: Vec<u64>,
    /// How large the workloads are.
    pub scale: Scale,
    /// Guests at once.
    pub jobs: usize,
}

/// Hears how far the guests are; called from several threads.
pub trait Watcher: Sync {
    /// All guests there will be.
    fn begins(&self, _guests: usize) {}
    /// Run `index` of `count` begins in a guest.
    fn progress(&self, _guest: &Name, _index: usize, _count: usize, _text: &str) {}
    /// A guest has sent all it had.
    fn done(&self, _guest: &Name, _rows: usize) {}
}

/// Hears nothing.
impl Watcher for () {}

/// Which guest it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its policy.
    pub policy: String,
    /// Its seed.
    pub seed: u64,
}

/// Runs all guests and gives the result, or the reason of the first that
/// failed; the others are ended then, as they are when `stop` becomes true.
pub fn run(
    cache: &Cache,
    sources: &Sources,
    request: &Request,
    watcher: &dyn Watcher,
    stop: &AtomicBool,
) -> Result<ResultFile, Error> {
    let experiment = &request.experiment;
    let image = Image::make(
        cache,
        sources,
        &request.kernel,
        &experiment.policies,
        &PROGRAMS,
    )?;
    let mut inputs = Inputs {
        items: image.inputs.clone(),
    };
    inputs.items.insert("qemu".to_owned(), qemu::version()?);
    let guests: Vec<Name> = experiment
        .policies
        .iter()
        .flat_map(|policy| request.seeds.iter().map(move |seed| (policy, *seed)))
        .map(|(policy, seed)| Name {
            policy: policy.clone(),
            seed,
        })
        .collect();
    watcher.begins(guests.len());
    let lab = Lab {
        request,
        image: &image,
        watcher,
        stop,
        given_up: AtomicBool::new(false),
    };
    Ok(ResultFile {
        experiment: experiment.name.clone(),
        kernel: request.kernel.release().to_owned(),
        device: request.device.name.clone(),
        scale: request.scale,
        stock_default: policy::kernel_default(1).to_owned(),
        inputs,
        rows: lab.all(&guests)?,
    })
}

struct Lab<'a> {
    request: &'a Request,
    image: &'a Image,
    watcher: &'a dyn Watcher,
    stop: &'a AtomicBool,
    given_up: AtomicBool,
}

impl Lab<'_> {
    /// The rows of all guests, in the order of `guests`.
    fn all(&self, guests: &[Name]) -> Result<Vec<Row>, Error> {
        let next = AtomicUsize::new(0);
        let outcomes: Vec<Mutex<Option<Result<Vec<Row>, Error>>>> =
            guests.iter().map(|_| Mutex::new(None)).collect();
        thread::scope(|scope| {
            for _ in 0..self.request.jobs.clamp(1, guests.len().max(1)) {
                scope.spawn(|| {
                    while let Some(guest) = guests.get(next.load(Ordering::Relaxed)) {
                        let _ = guest;
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let (Some(guest), false) = (guests.get(index), self.is_over()) else {
                            return;
                        };
                        let outcome = self.one(guest);
                        if outcome.is_err() {
                            self.given_up.store(true, Ordering::Relaxed);
                        }
                        if let Ok(mut place) = outcomes[index].lock() {
                            *place = Some(outcome);
                        }
                    }
                });
            }
        });
        collect(outcomes)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.given_up.load(Ordering::Relaxed)
    }

    fn one(&self, name: &Name) -> Result<Vec<Row>, Error> {
        let dir = tempfile::Builder::new()
            .prefix("frontrow-guest-")
            .tempdir()
            .map_err(Error::file(std::env::temp_dir()))?;
        let files = Files::make(dir.path(), &self.image.with_spec(&self.spec(name)))?;
        let machine = Machine {
            kernel: &self.request.kernel.image,
            initramfs: &files.initramfs,
            memory_mib: self.request.experiment.memory_mib,
            seed: name.seed,
            clock: Clock::Instructions,
            console: Console::Files {
                log: &files.console,
                messages: &files.messages,
            },
        };
        let complaints = File::create(&files.complaints).map_err(Error::file(&files.complaints))?;
        let mut guest = Guest::start(&machine, complaints)?;
        let said = self.attend(name, &mut guest, &files);
        drop(guest);
        let log = text_of(&files.console)?;
        let outcome = match said? {
            Ok(rows) => match console::problem(&log) {
                None => Ok(rows),
                Some((meaning, line)) => Err(format!("{meaning}: {line}")),
            },
            Err(reason) => Err(match console::problem(&log) {
                None => reason,
                Some((meaning, line)) => format!("{meaning}: {line}"),
            }),
        };
        if let Ok(rows) = &outcome {
            self.watcher.done(name, rows.len());
        }
        outcome.map_err(|reason| self.failure(name, reason, &log))
    }

    fn failure(&self, name: &Name, reason: String, log: &str) -> Error {
        Error::Guest(Box::new(GuestFailure {
            experiment: self.request.experiment.name.clone(),
            policy: name.policy.clone(),
            seed: name.seed,
            reason,
            console_end: console::end(log, SHOWN_LINES),
        }))
    }

    fn spec(&self, name: &Name) -> GuestSpec {
        let experiment = &self.request.experiment;
        GuestSpec {
            experiment: experiment.name.clone(),
            policy: name.policy.clone(),
            seed: name.seed,
            scale: self.request.scale,
            modules: self
                .image
                .modules(&name.policy, &self.request.device.simflash),
            device: DEVICE.to_owned(),
            sysctls: experiment.sysctls.clone(),
            writes: experiment.writes.clone(),
            mount_options: experiment.mount_options.clone(),
            limit_virtual_s: experiment.limit_virtual_s,
            task: Task::Runs(experiment.runs.clone()),
        }
    }

    /// Listens until the guest has ended or has to be ended. The inner error is
    /// a sentence about the guest.
    fn attend(
        &self,
        name: &Name,
        guest: &mut Guest,
        files: &Files,
    ) -> Result<Result<Vec<Row>, String>, Error> {
        let mut messages = Messages::open(&files.messages).map_err(Error::file(&files.messages))?;
        let mut progress =
            |index, count, text: &str| self.watcher.progress(name, index, count, text);
        let limit = Duration::from_secs(
            HOST_SECONDS_TO_BOOT
                + HOST_SECONDS_PER_VIRTUAL * self.request.experiment.limit_virtual_s,
        );
        let begun = Instant::now();
        loop {
            let ended = guest.ended().map_err(Error::file("QEMU"))?;
            if let Err(reason) = messages.read(&mut progress) {
                return Ok(Err(reason));
            }
            if let Some(status) = ended {
                let complaint = text_of(&files.complaints)?;
                return Ok(match status.success() {
                    true => messages.finish(),
                    false => Err(format!("QEMU failed ({status}): {}", complaint.trim())),
                });
            }
            if self.is_over() {
                return Err(Error::Interrupted);
            }
            if begun.elapsed() > limit {
                return Ok(Err(format!(
                    "it was still running after {} s",
                    limit.as_secs()
                )));
            }
            thread::sleep(POLL);
        }
    }
}

/// The first failure in the guests' order that is not just a consequence of
/// another; else all rows.
fn collect(outcomes: Vec<Mutex<Option<Result<Vec<Row>, Error>>>>) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    let mut interrupted = false;
    for outcome in outcomes {
        match outcome.into_inner().ok().flatten() {
            Some(Ok(more)) => rows.extend(more),
            Some(Err(Error::Interrupted)) | None => interrupted = true,
            Some(Err(error)) => return Err(error),
        }
    }
    if interrupted {
        Err(Error::Interrupted)
    } else {
        Ok(rows)
    }
}

/// One guest's files on the host.
struct Files {
    initramfs: std::path::PathBuf,
    console: std::path::PathBuf,
    messages: std::path::PathBuf,
    complaints: std::path::PathBuf,
}

impl Files {
    fn make(dir: &Path, initramfs: &[u8]) -> Result<Files, Error> {
        let files = Files {
            initramfs: dir.join("initramfs"),
            console: dir.join("console"),
            messages: dir.join("messages"),
            complaints: dir.join("qemu"),
        };
        fs::write(&files.initramfs, initramfs).map_err(Error::file(&files.initramfs))?;
        for path in [&files.console, &files.messages] {
            File::create(path).map_err(Error::file(path))?;
        }
        Ok(files)
    }
}

fn text_of(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(Error::file(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
