//! Direct I/O for throughput, CPU cost and calibration.
//!
//! Depth 1 uses `pread` and `pwrite`; deeper queues are kept full with io_uring. Both bypass the
//! page cache. The number of requests is fixed, not the time.

use crate::Error;
use crate::content;
use crate::meter::{Meter, go_on};
use crate::sizes::Sizes;
use io_uring::{IoUring, opcode, squeue, types};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use sys::device::Pages;
use sys::random::Random;

/// Size of a request of [`Target::fill`].
const FILL_BYTES: usize = 1 << 20;

/// Direction of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device into memory.
    Read,
    /// From memory to the device.
    Write,
}

/// Place of a request relative to the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Right after the previous one; at the span's begin after its end.
    Sequential,
    /// At any multiple of the request's size in the span.
    Random,
}

/// Parameters of direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Whether it reads or writes.
    pub direction: Direction,
    /// Whether requests are sequential or at random places.
    pub order: Order,
    /// Size of a request in bytes, a multiple of 4096.
    pub request_bytes: usize,
    /// Number of requests in flight, at least 1.
    pub depth: usize,
    /// Number of all requests.
    pub requests: u64,
    /// Size in bytes of the target's part that requests go to, from its begin.
    pub span_bytes: u64,
}

impl Job {
    /// Requests of `size_kib`, one at a time, as many as measure what one of this size takes.
    pub(crate) fn of_size(size_kib: u64, order: Order, direction: Direction, sizes: &Sizes) -> Job {
        let request_bytes = size_kib << 10;
        let requests = sizes.calibration_bytes / request_bytes;
        Job {
            direction,
            order,
            request_bytes: request_bytes as usize,
            depth: 1,
            requests: requests.clamp(1, sizes.calibration_requests),
            span_bytes: sizes.direct_span_bytes,
        }
    }
}

/// Result of direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Time from the first submission to the last completion.
    pub elapsed: Duration,
    /// Number of bytes that were read or written.
    pub bytes: u64,
}

impl Outcome {
    /// Rate in 10^6 bytes per second.
    pub fn rate_mb_s(&self) -> f64 {
        crate::stage::rate_mb_s(self.bytes, self.elapsed)
    }
}

/// A block device or a file that is open for direct I/O.
pub struct Target {
    file: File,
    path: PathBuf,
}

impl Target {
    /// Opens a block device. Writes overwrite its data.
    pub fn device(path: &Path) -> Result<Self, Error> {
        Target::open(path, OpenOptions::new().read(true).write(true))
    }

    /// Makes an empty file; [`Target::fill`] gives it its size.
    pub fn file(path: &Path) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        Target::open(
            path,
            options.read(true).write(true).create(true).truncate(true),
        )
    }

    fn open(path: &Path, options: &mut OpenOptions) -> Result<Self, Error> {
        let file =
            options
                .custom_flags(libc::O_DIRECT)
                .open(path)
                .map_err(|source| match source.raw_os_error() {
                    Some(libc::EINVAL) => Error::Interface {
                        path: path.to_owned(),
                        reason: "its file system has no direct I/O; choose a directory on a disk"
                            .to_owned(),
                    },
                    _ => Error::io("open", path, source),
                })?;
        Ok(Target {
            file,
            path: path.to_owned(),
        })
    }

    pub(crate) fn handle(&self) -> &File {
        &self.file
    }

    /// Waits until the device has programmed the content of its cache.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        let failed = |source| Error::io("sync", &self.path, source);
        self.file.sync_all().map_err(failed)
    }

    /// Size of the device or file, in bytes.
    pub fn bytes(&self) -> Result<u64, Error> {
        (&self.file)
            .seek(SeekFrom::End(0))
            .map_err(|source| Error::io("find the size of", &self.path, source))
    }

    /// Writes the first `bytes` bytes once and syncs them, so that reads find data there.
    pub fn fill(&self, bytes: u64, seed: u64, stop: &AtomicBool) -> Result<(), Error> {
        let failed = |source| Error::io("write", &self.path, source);
        let chunk = (FILL_BYTES as u64).min(bytes) as usize;
        let data = content::uniform(chunk, &mut Random::for_purpose(seed, "fill"));
        let mut offset = 0;
        while offset < bytes {
            go_on(stop)?;
            let now = (bytes - offset).min(data.len() as u64) as usize;
            self.file
                .write_all_at(&data[..now], offset)
                .map_err(failed)?;
            offset += now as u64;
        }
        self.file.sync_all().map_err(failed)
    }

    /// Performs one request.
    fn transfer(&self, job: &Job, buffer: &mut Pages, offset: u64) -> Result<(), Error> {
        match job.direction {
            Direction::Read => self.file.read_exact_at(buffer, offset),
            Direction::Write => self.file.write_all_at(buffer, offset),
        }
        .map_err(|source| Error::io(name(job), &self.path, source))
    }
}

/// Performs `job`; `seed` determines random places.
pub fn perform(target: &Target, job: &Job, seed: u64, stop: &AtomicBool) -> Result<Outcome, Error> {
    let places = Places::new(job, seed);
    let begun = Instant::now();
    match job.depth {
        1 => one_by_one(target, job, places, stop)?,
        _ => queued(target, job, places, stop)?,
    }
    Ok(Outcome {
        elapsed: begun.elapsed(),
        bytes: job.requests * job.request_bytes as u64,
    })
}

/// Performs `job`, one request at a time whatever its depth, and records each one's latency as
/// `operation`.
pub(crate) fn perform_timed(
    target: &Target,
    job: &Job,
    seed: u64,
    operation: &'static str,
    meter: &mut Meter,
) -> Result<Outcome, Error> {
    let mut places = Places::new(job, seed);
    let mut buffer = buffer(job, &places);
    let begun = Instant::now();
    for _ in 0..job.requests {
        let offset = places.next();
        meter.span(operation, |_| target.transfer(job, &mut buffer, offset))?;
    }
    Ok(Outcome {
        elapsed: begun.elapsed(),
        bytes: job.requests * job.request_bytes as u64,
    })
}

/// Offsets of a job's requests.
struct Places {
    order: Order,
    request_bytes: u64,
    /// Number of requests that fit into the span.
    slots: u64,
    next: u64,
    random: Random,
}

impl Places {
    fn new(job: &Job, seed: u64) -> Self {
        let request_bytes = job.request_bytes as u64;
        Places {
            order: job.order,
            request_bytes,
            slots: (job.span_bytes / request_bytes).max(1),
            next: 0,
            random: Random::for_purpose(seed, "places"),
        }
    }

    fn next(&mut self) -> u64 {
        let slot = match self.order {
            Order::Sequential => self.next % self.slots,
            Order::Random => self.random.below(self.slots),
        };
        self.next += 1;
        slot * self.request_bytes
    }
}

fn one_by_one(
    target: &Target,
    job: &Job,
    mut places: Places,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut buffer = buffer(job, &places);
    for _ in 0..job.requests {
        go_on(stop)?;
        target.transfer(job, &mut buffer, places.next())?;
    }
    Ok(())
}

/// A buffer for one request.
fn buffer(job: &Job, places: &Places) -> Pages {
    content::uniform(job.request_bytes, &mut places.random.clone())
}

fn queued(target: &Target, job: &Job, places: Places, stop: &AtomicBool) -> Result<(), Error> {
    let ring = IoUring::new(job.depth as u32).map_err(|source| Error::Interface {
        path: target.path.clone(),
        reason: format!(
            "io_uring is not to be had here ({source}); allow it (sysctl kernel.io_uring_disabled) \
             or choose a depth of 1"
        ),
    })?;
    let buffer_bytes = job.depth * job.request_bytes;
    let mut queue = Queue {
        buffers: content::uniform(buffer_bytes, &mut places.random.clone()),
        ring,
        target,
        job,
        places,
        started: 0,
        in_flight: 0,
    };
    let outcome = queue.run(stop);
    // The kernel may still write into the buffers, so they are dropped after the last completion.
    queue.drain();
    outcome
}

struct Queue<'a> {
    ring: IoUring,
    buffers: Pages,
    target: &'a Target,
    job: &'a Job,
    places: Places,
    started: u64,
    in_flight: usize,
}

impl Queue<'_> {
    fn run(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        for slot in 0..self.job.depth {
            self.start_next(slot);
        }
        while self.in_flight > 0 {
            go_on(stop)?;
            self.wait()?;
            while let Some((slot, result)) = self.completed() {
                self.judge(result)?;
                self.start_next(slot);
            }
        }
        Ok(())
    }

    fn start_next(&mut self, slot: usize) {
        if self.started == self.job.requests {
            return;
        }
        let entry = self.entry(slot);
        // SAFETY: the slot's buffer is used by this request alone until its
        // completion, and lives until `drain` has seen the last one.
        unsafe { self.ring.submission().push(&entry) }
            .expect("the ring has an entry for every slot");
        self.started += 1;
        self.in_flight += 1;
    }

    fn entry(&mut self, slot: usize) -> squeue::Entry {
        let bytes = self.job.request_bytes;
        let buffer = self.buffers[slot * bytes..][..bytes].as_mut_ptr();
        let file = types::Fd(self.target.file.as_raw_fd());
        let (offset, length) = (self.places.next(), bytes as u32);
        let entry = match self.job.direction {
            Direction::Read => opcode::Read::new(file, buffer, length)
                .offset(offset)
                .build(),
            Direction::Write => opcode::Write::new(file, buffer, length)
                .offset(offset)
                .build(),
        };
        entry.user_data(slot as u64)
    }

    fn wait(&mut self) -> Result<(), Error> {
        match self.ring.submit_and_wait(1) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                Err(Error::io(name(self.job), &self.target.path, error))
            }
            _ => Ok(()),
        }
    }

    fn completed(&mut self) -> Option<(usize, i32)> {
        let entry = self.ring.completion().next()?;
        self.in_flight -= 1;
        Some((entry.user_data() as usize, entry.result()))
    }

    fn judge(&self, result: i32) -> Result<(), Error> {
        let failed = |source| Error::io(name(self.job), &self.target.path, source);
        match usize::try_from(result) {
            Err(_) => Err(failed(io::Error::from_raw_os_error(-result))),
            Ok(bytes) if bytes < self.job.request_bytes => {
                Err(failed(io::ErrorKind::UnexpectedEof.into()))
            }
            Ok(_) => Ok(()),
        }
    }

    fn drain(&mut self) {
        while self.in_flight > 0 {
            if self.wait().is_err() {
                // Without the ring, the end of the requests is unknown, so the buffers are leaked.
                std::mem::forget(std::mem::replace(&mut self.buffers, Pages::zeroed(0)));
                return;
            }
            while self.completed().is_some() {}
        }
    }
}

fn name(job: &Job) -> &'static str {
    match job.direction {
        Direction::Read => "read",
        Direction::Write => "write",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static GO: AtomicBool = AtomicBool::new(false);

    fn job(direction: Direction, order: Order, depth: usize) -> Job {
        Job {
            direction,
            order,
            request_bytes: 4096,
            depth,
            requests: 50,
            span_bytes: 16 * 4096,
        }
    }

    fn drawn(seed: u64, order: Order) -> Vec<u64> {
        let mut places = Places::new(&job(Direction::Read, order, 1), seed);
        (0..40).map(|_| places.next()).collect()
    }

    #[test]
    fn places_stay_inside_the_span_and_follow_the_seed() {
        assert_eq!(drawn(1, Order::Random), drawn(1, Order::Random));
        assert_ne!(drawn(1, Order::Random), drawn(2, Order::Random));
        for order in [Order::Sequential, Order::Random] {
            assert!(
                drawn(1, order)
                    .iter()
                    .all(|offset| offset % 4096 == 0 && *offset < 65536)
            );
        }
        assert_eq!(drawn(1, Order::Sequential)[..3], [0, 4096, 8192]);
        assert_eq!(drawn(1, Order::Sequential)[16], 0);
    }

    #[test]
    fn every_job_moves_all_its_bytes() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let target = Target::file(&directory.path().join("file")).unwrap();
        target.fill(16 * 4096, 1, &GO).unwrap();
        for direction in [Direction::Read, Direction::Write] {
            for (order, depth) in [
                (Order::Sequential, 1),
                (Order::Random, 1),
                (Order::Random, 8),
            ] {
                let outcome = perform(&target, &job(direction, order, depth), 1, &GO).unwrap();
                assert_eq!(outcome.bytes, 50 * 4096);
            }
        }
        assert_eq!(target.bytes().unwrap(), 16 * 4096);
    }

    #[test]
    fn reading_past_the_end_is_an_error_at_any_depth() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let target = Target::file(&directory.path().join("file")).unwrap();
        target.fill(4096, 1, &GO).unwrap();
        for depth in [1, 4] {
            let job = job(Direction::Read, Order::Sequential, depth);
            let error = perform(&target, &job, 1, &GO).unwrap_err().to_string();
            assert!(error.contains("cannot read"), "{error}");
        }
    }
}
