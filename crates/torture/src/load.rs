//! A load that knows its data: buffered and direct writes with syncs, truncation and deletion at
//! the same time. Each page that is read back is compared.

use crate::failure::require;
use crate::{Failure, Outcome};
use rustix::fs::Advice;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use sys::device::{PAGE_BYTES, Pages};
use sys::random::Random;

/// Operations after which every thread of the load is busy.
pub(crate) const UNDER_WAY_OPERATIONS: u64 = 32;

/// Most pages of one write.
const RUN_PAGES: usize = 32;

/// Numbers of pages of the files that are written in place.
const BUFFERED_PAGES: usize = 3072;
const DIRECT_PAGES: usize = 1024;
const REWRITTEN_PAGES: usize = 512;

/// Threads that write and check until they are told to end.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    operations: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Outcome<()>>>,
}

impl Load {
    /// Starts the load in `directory`.
    pub(crate) fn start(directory: &Path, seed: u64) -> Load {
        let mut load = Load {
            stop: Arc::default(),
            operations: Arc::default(),
            threads: Vec::new(),
        };
        load.spawn(directory.join("buffered"), seed, buffered);
        load.spawn(directory.join("direct"), seed, direct);
        load.spawn(directory.join("rewritten"), seed, rewritten);
        load.spawn(directory.join("churn"), seed, churn);
        load
    }

    fn spawn(&mut self, path: PathBuf, seed: u64, work: fn(&Worker) -> Outcome<()>) {
        let worker = Worker {
            path,
            seed: seed ^ (self.threads.len() as u64) << 48,
            stop: Arc::clone(&self.stop),
            operations: Arc::clone(&self.operations),
        };
        self.threads.push(thread::spawn(move || work(&worker)));
    }

    /// Waits for this many more operations, however slow the machine is. If the load is stuck, the
    /// guest's time limit ends it.
    pub(crate) fn goes_on(&self, operations: u64) -> Outcome<()> {
        let wanted = self.operations() + operations;
        while self.operations() < wanted {
            self.check()?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Number of operations of all threads so far, which only grows.
    fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Fails if a thread has ended, which happens only after an error.
    pub(crate) fn check(&self) -> Outcome<()> {
        require(!self.threads.iter().any(JoinHandle::is_finished), || {
            "a thread of the load failed".to_owned()
        })
    }

    /// Tells all threads to end, waits for them, and returns the first failure.
    pub(crate) fn end(self) -> Outcome<()> {
        self.stop.store(true, Ordering::Relaxed);
        let mut outcome = Ok(());
        for thread in self.threads {
            let ended = thread
                .join()
                .unwrap_or_else(|_| Err(Failure::new("a thread of the load died")));
            outcome = outcome.and(ended);
        }
        outcome
    }

    /// The same, where the device is gone: each thread must end with an error of I/O.
    pub(crate) fn ends_by_removal(self) -> Outcome<()> {
        require(self.end().is_err(), || {
            "the load noticed nothing of its device's removal".to_owned()
        })
    }
}

struct Worker {
    path: PathBuf,
    seed: u64,
    stop: Arc<AtomicBool>,
    operations: Arc<AtomicU64>,
}

impl Worker {
    fn goes_on(&self) -> bool {
        self.operations.fetch_add(1, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }

    fn open(&self, flags: i32) -> Outcome<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(flags)
            .open(&self.path)
            .map_err(Failure::io("make", &self.path))
    }

    fn failed(&self, action: &str) -> impl FnOnce(io::Error) -> Failure + use<> {
        Failure::io(action, &self.path)
    }
}

/// A file whose content is known: each page has its number, and how often it was written.
struct Checked<'a> {
    worker: &'a Worker,
    file: File,
    generations: Vec<u32>,
    buffer: Pages,
    expected: Pages,
}

impl<'a> Checked<'a> {
    fn new(worker: &'a Worker, file: File, pages: usize) -> Outcome<Checked<'a>> {
        let mut checked = Checked {
            worker,
            file,
            generations: vec![0; pages],
            buffer: Pages::zeroed(RUN_PAGES * PAGE_BYTES),
            expected: Pages::zeroed(PAGE_BYTES),
        };
        for first in (0..pages).step_by(RUN_PAGES) {
            checked.write(first, RUN_PAGES.min(pages - first))?;
        }
        Ok(checked)
    }

    fn run(&self, random: &mut Random) -> (usize, usize) {
        let first = random.index(self.generations.len());
        let most = RUN_PAGES.min(self.generations.len() - first);
        (first, 1 + random.index(most))
    }

    fn write(&mut self, first: usize, pages: usize) -> Outcome<()> {
        let bytes = &mut self.buffer[..pages * PAGE_BYTES];
        for (page, bytes) in (first..).zip(bytes.chunks_exact_mut(PAGE_BYTES)) {
            self.generations[page] += 1;
            fill(bytes, self.worker.seed, page, self.generations[page]);
        }
        self.file
            .write_all_at(bytes, (first * PAGE_BYTES) as u64)
            .map_err(self.worker.failed("write"))
    }

    fn read(&mut self, first: usize, pages: usize) -> Outcome<()> {
        let bytes = &mut self.buffer[..pages * PAGE_BYTES];
        self.file
            .read_exact_at(bytes, (first * PAGE_BYTES) as u64)
            .map_err(self.worker.failed("read"))?;
        for (page, bytes) in (first..).zip(bytes.chunks_exact(PAGE_BYTES)) {
            let expected = &mut *self.expected;
            fill(expected, self.worker.seed, page, self.generations[page]);
            require(bytes == expected, || {
                format!(
                    "page {page} of {} does not hold what was written last",
                    self.worker.path.display()
                )
            })?;
        }
        Ok(())
    }

    fn sync(&self) -> Outcome<()> {
        self.file.sync_all().map_err(self.worker.failed("sync"))
    }

    /// Reads and checks all pages from the device.
    fn read_all_from_device(&mut self) -> Outcome<()> {
        self.sync()?;
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
        let pages = self.generations.len();
        for first in (0..pages).step_by(RUN_PAGES) {
            self.read(first, RUN_PAGES.min(pages - first))?;
        }
        Ok(())
    }
}

fn fill(bytes: &mut [u8], seed: u64, page: usize, generation: u32) {
    let mut random = Random::new(seed ^ (page as u64) << 24 ^ u64::from(generation));
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&random.next_u64().to_le_bytes());
    }
}

/// Overwrites pages at random, with occasional syncs.
fn buffered(worker: &Worker) -> Outcome<()> {
    let mut random = Random::new(worker.seed);
    let mut file = Checked::new(worker, worker.open(0)?, BUFFERED_PAGES)?;
    while worker.goes_on() {
        let (first, pages) = file.run(&mut random);
        file.write(first, pages)?;
        if random.index(16) == 0 {
            file.sync()?;
        }
        if random.index(8) == 0 {
            let (first, pages) = file.run(&mut random);
            file.read(first, pages)?;
        }
    }
    file.read_all_from_device()
}

/// Reads and writes with O_DIRECT.
fn direct(worker: &Worker) -> Outcome<()> {
    let mut random = Random::new(worker.seed);
    let mut file = Checked::new(worker, worker.open(libc::O_DIRECT)?, DIRECT_PAGES)?;
    while worker.goes_on() {
        let (first, pages) = file.run(&mut random);
        match random.index(2) {
            0 => file.write(first, pages)?,
            _ => file.read(first, pages)?,
        }
    }
    file.read_all_from_device()
}

/// Makes tasks wait for background writes: starts writeback of a file, then writes the same pages
/// again or truncates the file.
fn rewritten(worker: &Worker) -> Outcome<()> {
    let mut random = Random::new(worker.seed);
    let mut file = Checked::new(worker, worker.open(0)?, REWRITTEN_PAGES)?;
    while worker.goes_on() {
        start_writeback(&file.file).map_err(worker.failed("start writeback of"))?;
        if random.index(4) > 0 {
            let (first, pages) = file.run(&mut random);
            file.write(first, pages)?;
            continue;
        }
        file.file.set_len(0).map_err(worker.failed("truncate"))?;
        for first in (0..REWRITTEN_PAGES).step_by(RUN_PAGES) {
            file.write(first, RUN_PAGES)?;
        }
    }
    file.read_all_from_device()
}

/// Makes and deletes files, so that blocks are discarded.
fn churn(worker: &Worker) -> Outcome<()> {
    let mut random = Random::new(worker.seed);
    let mut bytes = vec![0; RUN_PAGES * PAGE_BYTES];
    while worker.goes_on() {
        let file = worker.open(0)?;
        fill(&mut bytes, worker.seed, 0, 0);
        for _ in 0..1 + random.index(8) {
            let at = file.metadata().map_err(worker.failed("look at"))?.len();
            file.write_all_at(&bytes, at)
                .map_err(worker.failed("write"))?;
        }
        if random.index(2) == 0 {
            file.sync_all().map_err(worker.failed("sync"))?;
        }
        drop(file);
        fs::remove_file(&worker.path).map_err(worker.failed("delete"))?;
    }
    Ok(())
}

/// Starts asynchronous writeback of all dirty pages, without a wait for its end.
pub(crate) fn start_writeback(file: &File) -> io::Result<()> {
    // SAFETY: the call takes no pointers; zero bytes mean up to the file's end.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
