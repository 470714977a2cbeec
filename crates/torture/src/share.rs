//! Background writes beside a foreground without pauses: they must keep their guaranteed share, which
//! is larger once the foreground has used the device for long, and none may wait too long.

use crate::failure::require;
use crate::test_bed::with_dirty_limits;
use crate::trace::{Class, Dispatch, Tracing};
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use sys::device::{PAGE_BYTES, Pages};
use sys::random::Random;

/// Limits that keep this much under writeback, so that there always is a backlog.
const BACKGROUND_BYTES: &str = "4194304";
const DIRTY_BYTES: &str = "67108864";

/// Number of pages, so large that the writer does not meet pages that are still under writeback.
const BACKGROUND_PAGES: usize = 65536;
const FOREGROUND_PAGES: usize = 4096;
const WARM_UP: Duration = Duration::from_secs(2);
const ALONE: Duration = Duration::from_secs(3);
const BESIDE: Duration = Duration::from_secs(12);

/// Number of foreground threads, which always have a request in the device.
const FOREGROUND: usize = 4;

/// Promised share, and longest wait in µs (docs/how/qasio.md).
const LEAST_SHARE: f64 = 0.10;
const OLDEST_US: u64 = 5_000_000;

/// Smallest share beside what is not preferred to writeback: the I/O class idle, and bulk.
const LEAST_BESIDE_EQUALS: f64 = 0.25;

/// Smallest rate of the foreground, in requests per second; otherwise it was no load.
const LEAST_LOAD: f64 = 100.0;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    judge(&beside(bed, || Ok(()))?)
}

/// The same trial with tasks of the I/O class idle, which must not delay writeback.
pub(crate) fn run_idle_class(bed: &TestBed) -> Outcome<()> {
    judge_idle_class(&beside(bed, into_idle_class)?)
}

/// Measures background writes beside the foreground, whose threads call `join` first.
fn beside(bed: &TestBed, join: fn() -> Outcome<()>) -> Outcome<Measured> {
    with_dirty_limits(BACKGROUND_BYTES, DIRTY_BYTES, || {
        let volume = Volume::make(bed)?;
        let measured = measure(bed, volume.path(), join)?;
        volume.unmount()?;
        Ok(measured)
    })
}

/// Gives the calling thread the idle class, as `ionice -c 3` does (`linux/ioprio.h`).
fn into_idle_class() -> Outcome<()> {
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_IDLE: libc::c_int = 3 << 13;
    // SAFETY: the call takes no pointers; 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE) } {
        0 => Ok(()),
        _ => Err(Failure::io("set the I/O class of", Path::new("a thread"))(
            std::io::Error::last_os_error(),
        )),
    }
}

struct Measured {
    alone: Vec<Dispatch>,
    beside: Vec<Dispatch>,
}

fn measure(bed: &TestBed, directory: &Path, join: fn() -> Outcome<()>) -> Outcome<Measured> {
    let background = file(directory, "background", 0)?;
    fill(&file(directory, "foreground", 0)?, FOREGROUND_PAGES)?;
    let writer = Writer::start(&background)?;
    let measured = in_phases(bed, directory, join);
    writer.stop()?;
    measured
}

/// Writes in a process of its own: what one thread dirties counts as use by its whole process.
struct Writer(libc::pid_t);

impl Writer {
    fn start(file: &File) -> Outcome<Self> {
        // SAFETY: the child only allocates, which the C library allows, and writes to a file.
        match unsafe { libc::fork() } {
            -1 => Err(Failure::io("begin", Path::new("a process"))(
                std::io::Error::last_os_error(),
            )),
            0 => std::process::exit(write_on(file).is_err().into()),
            child => Ok(Self(child)),
        }
    }

    /// Fails if it has ended by itself, which is a failed write.
    fn stop(self) -> Outcome<()> {
        let mut status = 0;
        // SAFETY: the child is ours and not yet waited for; `status` outlives the call.
        let waited = unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, &mut status, 0)
        };
        let is_killed = waited == self.0 && libc::WIFSIGNALED(status);
        require(is_killed, || "the background could not write".into())
    }
}

fn in_phases(bed: &TestBed, directory: &Path, join: fn() -> Outcome<()>) -> Outcome<Measured> {
    thread::sleep(WARM_UP);
    let tracing = Tracing::start()?;
    thread::sleep(ALONE);
    let alone = tracing.finish()?.dispatches;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..FOREGROUND)
            .map(|index| {
                let (seed, stop) = (bed.seed + index as u64, &stop);
                scope.spawn(move || join().and_then(|()| use_directly(directory, seed, stop)))
            })
            .collect();
        let tracing = Tracing::start()?;
        thread::sleep(BESIDE);
        let beside = tracing.finish();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread
                .join()
                .unwrap_or_else(|_| Err(Failure::new("the foreground died")))?;
        }
        Ok(Measured {
            alone,
            beside: beside?.dispatches,
        })
    })
}

fn file(directory: &Path, name: &str, flags: i32) -> Outcome<File> {
    let path = directory.join(name);
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags)
        .open(&path)
        .map_err(Failure::io("open", &path))
}

fn fill(file: &File, pages: usize) -> Outcome<()> {
    let failed = || Failure::io("write", Path::new("a file"));
    let chunk = vec![5; 256 * PAGE_BYTES];
    for at in (0..pages * PAGE_BYTES).step_by(chunk.len()) {
        file.write_all_at(&chunk, at as u64).map_err(failed())?;
    }
    file.sync_all().map_err(failed())
}

/// Overwrites a file sequentially and without end; the kernel throttles it.
fn write_on(file: &File) -> Outcome<()> {
    let chunk = vec![6; 64 * PAGE_BYTES];
    for at in (0..BACKGROUND_PAGES * PAGE_BYTES)
        .step_by(chunk.len())
        .cycle()
    {
        file.write_all_at(&chunk, at as u64)
            .map_err(Failure::io("write", Path::new("the background's file")))?;
    }
    Ok(())
}

/// Reads, and sometimes writes, with O_DIRECT and without a pause.
fn use_directly(directory: &Path, seed: u64, stop: &AtomicBool) -> Outcome<()> {
    let file = file(directory, "foreground", libc::O_DIRECT)?;
    let mut random = Random::new(seed);
    let mut buffer = Pages::zeroed(4 * PAGE_BYTES);
    while !stop.load(Ordering::Relaxed) {
        let at = (random.index(FOREGROUND_PAGES - 4) * PAGE_BYTES) as u64;
        match random.index(4) {
            0 => file.write_all_at(&buffer, at),
            _ => file.read_exact_at(&mut buffer, at),
        }
        .map_err(Failure::io("use", Path::new("the foreground's file")))?;
    }
    Ok(())
}

/// Judges the foreground's three levels one after another: it has no pause, so it never goes back.
fn judge(measured: &Measured) -> Outcome<()> {
    let oldest_us = asynchronous(&measured.beside).map(|it| it.age_us).max();
    require(oldest_us.is_some_and(|age_us| age_us <= OLDEST_US), || {
        format!("a background write was {oldest_us:?} us old")
    })?;
    let first = |class| measured.beside.iter().position(|it| it.class == class);
    let (Some(long), Some(bulk)) = (first(Class::Long), first(Class::Bulk)) else {
        return Err(Failure::new("the foreground never became bulk"));
    };
    require(long <= bulk, || {
        format!("bulk from dispatch {bulk} on, before long from {long} on")
    })?;
    let alone = rate(&measured.alone, ALONE);
    let (single, beside) = measured.beside.split_at(long);
    let (long, bulk) = beside.split_at(bulk - long);
    let single_classes = [Class::SyncRead, Class::SyncWrite];
    judge_share(&single_classes, single, alone, LEAST_SHARE)?;
    judge_share(&[Class::Long], long, alone, LEAST_SHARE)?;
    judge_share(&[Class::Bulk], bulk, alone, LEAST_BESIDE_EQUALS)
}

fn judge_idle_class(measured: &Measured) -> Outcome<()> {
    let alone = rate(&measured.alone, ALONE);
    judge_share(
        &[Class::BgSync],
        &measured.beside,
        alone,
        LEAST_BESIDE_EQUALS,
    )
}

/// Judges what writeback kept of its rate alone beside requests of `classes`, and that these were a
/// load.
fn judge_share(classes: &[Class], dispatches: &[Dispatch], alone: f64, least: f64) -> Outcome<()> {
    let (Some(first), Some(last)) = (dispatches.first(), dispatches.last()) else {
        return Err(Failure::new(format!(
            "nothing was dispatched beside {classes:?}"
        )));
    };
    let time = Duration::from_micros(last.at_us - first.at_us);
    let share = rate(dispatches, time) / alone;
    require(share >= least, || {
        format!(
            "beside {classes:?} writeback kept {share:.3} of its rate alone, {alone:.0} bytes/s"
        )
    })?;
    let load = dispatches.iter().filter(|it| classes.contains(&it.class));
    let load = load.count() as f64 / time.as_secs_f64();
    require(load >= LEAST_LOAD, || {
        format!("{classes:?} came to {load:.0} requests a second only")
    })
}

fn asynchronous(dispatches: &[Dispatch]) -> impl Iterator<Item = &Dispatch> {
    dispatches.iter().filter(|it| it.class == Class::Async)
}

/// Rate of background writes, in bytes per second.
fn rate(dispatches: &[Dispatch], time: Duration) -> f64 {
    let bytes: u64 = asynchronous(dispatches).map(|it| it.bytes).sum();
    bytes as f64 / time.as_secs_f64()
}
