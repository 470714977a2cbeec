//! Level 1: iopro's programs are in the kernel while tasks are held up, and only then cost anything.

use super::{Frames, How, Watching, give_up};
use crate::atomic_file::AtomicFile;
use crate::exit::{Exit, Failure};
use crate::iopro::linked::failed;
use doctor::Level;
use doctor::live::Waits;
use doctor::observe::Wait;
use doctor::stall::Next;
use doctor::watch::HELD_UP;
use iopro::capture::{self, Loaded, Progress, What};
use iopro::recording::Reader;
use iopro::report::{self, UnderWay};
use std::io::{self, BufReader, PipeReader, PipeWriter, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use sys::confine::{self, Capabilities, Programs};

/// Interval for which iopro tells of waits, and names the longest.
const INTERVAL: Duration = Duration::from_secs(1);
/// Parts of a frame of which it tells one after the other, so that little of a frame comes late.
const PARTS_OF_FRAME: u32 = 4;
/// Time in which no task is held up, after which the programs are taken out.
const CALM: Duration = Duration::from_secs(10);
/// Name in errors of a recording without a file.
const NAME: &str = "the running recording";

/// Reasons why level 1 cannot be used.
pub enum Unlinked {
    /// The kernel does not support iopro.
    Impossible(capture::Error),
    /// The measurement failed.
    Failed(Failure),
}

/// All waits, and the number of lost events.
pub type Linked = (Vec<Wait>, u64);

/// Measures by iopro: at first, and from when some task is held up until none was for a while.
/// Meanwhile blocked tasks are sampled, as at level 2.
pub fn link<'a>(
    root: &'a Path,
    how: How<'_>,
    frames: &mut Option<Frames<'_>>,
    stop: &AtomicBool,
) -> Result<(Watching<'a>, Linked, Loaded), Unlinked> {
    let every = frames.as_ref().map(|it| it.every / PARTS_OF_FRAME);
    let told = Told::new(how.is_coarse, every.unwrap_or(INTERVAL));
    let mut linking = Linking {
        root,
        length: how.length,
        until_stall: how.until_stall,
        keeps: how.recording.is_some(),
        kept: how.kept,
        failed: None,
        stop,
        told: &told,
        frames,
        watching: None,
        held_up: Instant::now(),
        is_over: false,
    };
    let (what, btf) = (What::System(None), how.btf);
    let (recorded, linked) = linking
        .record(how.recording, |pipe, stop, progress| {
            capture::stream(&what, btf, pipe, stop, progress)
        })
        .map_err(Unlinked::Failed)?;
    let mut programs = match recorded {
        Err(error) if is_impossible(&error) => return Err(Unlinked::Impossible(error)),
        recorded => finish(recorded, linked).map_err(Unlinked::Failed)?.1,
    };
    linking.go_on(&mut programs).map_err(Unlinked::Failed)?;
    let watching = linking.watching.take();
    let watching = watching.unwrap_or_else(|| Watching::begin(root, None));
    drop(linking);
    Ok((watching, told.end(), programs))
}

fn is_impossible(error: &capture::Error) -> bool {
    use capture::Error;
    matches!(
        error,
        Error::NoPermission
            | Error::NoBtf
            | Error::Refused { .. }
            | Error::KernelLacks(_)
            | Error::UnknownField(_)
            | Error::Load(_)
    )
}

/// The pipe breaks once nobody links any more, so that is the cause.
fn finish<T>(
    recorded: Result<T, capture::Error>,
    linked: Result<(), Failure>,
) -> Result<T, Failure> {
    linked?;
    Ok(recorded?)
}

/// Waits of all recordings since the measurement began, possibly anew.
struct Told {
    is_coarse: bool,
    every: Duration,
    waits: Mutex<Waits>,
    /// Calls that go on.
    under_way: Mutex<Vec<UnderWay>>,
    /// Number of events in all recordings.
    events: AtomicU64,
    was_long: AtomicBool,
}

impl Told {
    fn new(is_coarse: bool, every: Duration) -> Told {
        Told {
            is_coarse,
            every,
            waits: Mutex::new(none(is_coarse)),
            under_way: Mutex::default(),
            events: AtomicU64::new(0),
            was_long: AtomicBool::new(false),
        }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(self) -> Linked {
        let waits = self.waits.into_inner();
        let waits = waits.unwrap_or_else(PoisonError::into_inner);
        waits.end(self.events.into_inner())
    }

    fn begin_anew(&self) {
        *self.waits() = none(self.is_coarse);
    }

    /// What was told since the begin or since this was called last, and the calls that go on.
    fn take(&self) -> (Option<Linked>, Vec<UnderWay>) {
        let waits = std::mem::replace(&mut *self.waits(), none(self.is_coarse));
        let linked = waits.end(self.events.swap(0, Ordering::Relaxed));
        let under_way = self.under_way.lock();
        let mut under_way = under_way.unwrap_or_else(PoisonError::into_inner);
        (Some(linked), std::mem::take(&mut *under_way))
    }

    fn add(&self, interval: &report::Waits) {
        self.waits().add(interval);
        let under_way = self.under_way.lock();
        let mut under_way = under_way.unwrap_or_else(PoisonError::into_inner);
        under_way.clone_from(&interval.under_way);
        drop(under_way);
        let longest = interval.foreground.longest.as_ref();
        if longest.is_some_and(|it| it.what.longest_ns >= HELD_UP.as_nanos() as u64) {
            self.was_long.store(true, Ordering::Relaxed);
        }
    }
}

fn none(is_coarse: bool) -> Waits {
    match is_coarse {
        true => Waits::coarse(),
        false => Waits::default(),
    }
}

struct Linking<'a, 't, 'f> {
    root: &'a Path,
    length: Duration,
    until_stall: Option<Duration>,
    /// Whether the recording is kept, which then has no gaps.
    keeps: bool,
    /// Capabilities that stay once the programs are in the kernel.
    kept: Option<Capabilities>,
    /// Why the others did not go.
    failed: Option<Failure>,
    stop: &'t AtomicBool,
    told: &'t Told,
    frames: &'t mut Option<Frames<'f>>,
    watching: Option<Watching<'a>>,
    /// When some task was known to be held up last.
    held_up: Instant,
    is_over: bool,
}

impl<'a> Linking<'a, '_, '_> {
    /// Rests and records in turn until the end.
    fn go_on(&mut self, programs: &mut Loaded) -> Result<(), Failure> {
        while !self.is_over {
            self.rest(programs)?;
            if self.is_over {
                break;
            }
            let (recorded, linked) = self.record(None, |pipe, stop, progress| {
                programs.stream(pipe, stop, progress)
            })?;
            finish(recorded, linked)?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Records into a pipe until all is over or nobody is held up; another thread links the events.
    fn record<T>(
        &mut self,
        recording: Option<&mut AtomicFile>,
        stream: impl FnOnce(PipeWriter, &AtomicBool, &mut dyn FnMut(Progress)) -> T,
    ) -> Result<(T, Result<(), Failure>), Failure> {
        let (reader, writer) = io::pipe().map_err(|error| Failure::new(Exit::Internal, error))?;
        let (told, ends) = (self.told, AtomicBool::new(false));
        let (recorded, linked) = thread::scope(|scope| {
            let linking = scope.spawn(|| fold(reader, recording, told));
            let mut begun = false;
            let recorded = stream(writer, &ends, &mut |_| {
                // The programs are loaded by now: that is not what is to be watched.
                if !std::mem::replace(&mut begun, true) {
                    self.give_up();
                    self.watching().begin_linking();
                    self.held_up = Instant::now();
                }
                if self.turn() || told.was_long.swap(false, Ordering::Relaxed) {
                    self.held_up = Instant::now();
                }
                let is_calm = !self.keeps && self.held_up.elapsed() >= CALM;
                ends.store(self.is_over || is_calm, Ordering::Relaxed);
            });
            let is_over = self.is_over;
            match (&mut self.watching, is_over) {
                (Some(watching), true) => watching.watch.stop(),
                (Some(watching), false) => watching.end_linking(),
                (None, _) => {}
            }
            (recorded, linking.join())
        });
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        let ended = |_| Failure::new(Exit::Internal, "the linker ended unexpectedly");
        Ok((recorded, linked.map_err(ended)?))
    }

    /// The first time, gives up what is not needed with the programs in the kernel.
    fn give_up(&mut self) {
        self.failed = give_up(self.kept.take(), Programs::Attached).err();
        self.is_over |= self.failed.is_some();
    }

    /// Takes the programs out and samples, until some task is held up.
    fn rest(&mut self, programs: &mut Loaded) -> Result<(), Failure> {
        let rested = thread::scope(|scope| {
            let resting = scope.spawn(|| programs.rest());
            let mut is_held_up = false;
            loop {
                thread::sleep(self.watching().pause());
                is_held_up |= self.turn();
                if self.is_over || is_held_up && resting.is_finished() {
                    break;
                }
            }
            if let (Some(watching), true) = (&mut self.watching, self.is_over) {
                watching.watch.stop();
            }
            resting.join()
        });
        match rested {
            Ok(rested) => Ok(rested?),
            Err(_) => Err(Failure::new(Exit::Internal, "a thread ended unexpectedly")),
        }
    }

    /// Measures; returns whether samples say that some task is held up.
    fn turn(&mut self) -> bool {
        let (told, stop, length) = (self.told, self.stop, self.length);
        let watching = self.watching();
        let next = watching.turn();
        let is_over =
            next == Next::End || stop.load(Ordering::Relaxed) || watching.begun.elapsed() >= length;
        let is_held_up = watching.watch.take_held_up();
        if next == Next::BeginAnew {
            told.begin_anew();
        }
        self.is_over |= is_over || !self.tell();
        is_held_up
    }

    /// Tells a frame if one is due. Returns whether to go on.
    fn tell(&mut self) -> bool {
        let (told, Some(watching)) = (self.told, &mut self.watching) else {
            return true;
        };
        let gone_on = watching.tell(self.frames, Level::Linked, || told.take());
        gone_on.unwrap_or_else(|failure| {
            self.failed = Some(failure);
            false
        })
    }

    fn watching(&mut self) -> &mut Watching<'a> {
        let (root, until_stall) = (self.root, self.until_stall);
        self.watching
            .get_or_insert_with(|| Watching::begin(root, until_stall))
    }
}

/// Copies what is read from the pipe to the recording file.
struct Tee<'a> {
    pipe: PipeReader,
    recording: Option<&'a mut AtomicFile>,
    /// Why the file could not be written.
    failed: &'a mut Option<Failure>,
}

impl Read for Tee<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.pipe.read(into)?;
        if let Some(recording) = &mut self.recording {
            recording.add(&into[..bytes]).map_err(|failure| {
                *self.failed = Some(failure);
                io::Error::other("the recording cannot be written")
            })?;
        }
        Ok(bytes)
    }
}

fn fold(pipe: PipeReader, recording: Option<&mut AtomicFile>, told: &Told) -> Result<(), Failure> {
    // It began before the programs were loaded, and reads and writes what is open.
    confine::drop_capabilities()?;
    let mut failed = None;
    let tee = Tee {
        pipe,
        recording,
        failed: &mut failed,
    };
    let linked = add_intervals(tee, told);
    match failed {
        Some(failure) => Err(failure),
        None => linked,
    }
}

fn add_intervals(events: impl Read, told: &Told) -> Result<(), Failure> {
    let path = Path::new(NAME);
    let reader = Reader::new(BufReader::with_capacity(1 << 18, events), path)
        .map_err(|error| Failure::new(Exit::Internal, error))?;
    let header = reader.header().clone();
    let mut events = reader.events();
    let steps = std::iter::from_fn(|| {
        told.events.fetch_add(1, Ordering::Relaxed);
        events.step()
    });
    let every_ns = told.every.as_nanos() as u64;
    report::watch_waits(&header, steps, path, every_ns, &mut |interval| {
        told.add(interval);
        true
    })
    .map_err(|error| failed(&error))
}
