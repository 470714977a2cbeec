//! The background as a process: it shares nothing with the foreground but one
//! page of counters, has its own descriptors and can be put into a cgroup.
//!
//! The child of a process with threads may only make system calls, so all it
//! needs is made before the fork and it never allocates.

use crate::Error;
use crate::content::{PAGE_BYTES, Pages};
use crate::load::Pattern;
use crate::memcg::MemoryCgroup;
use crate::seed::Random;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// All a background process does.
pub(crate) struct Script {
    pub(crate) pattern: Pattern,
    pub(crate) file: File,
    pub(crate) file_bytes: u64,
    /// Passes over the file; after the last the file is made durable.
    pub(crate) rounds: u64,
    pub(crate) data: Pages,
    pub(crate) random: Random,
}

/// A running background. Dropping it ends the process and removes its file.
pub(crate) struct Background {
    pid: libc::pid_t,
    ended: bool,
    progress: Progress,
    started: Instant,
    path: PathBuf,
    cgroup: Option<MemoryCgroup>,
}

/// What the child tells the parent.
#[derive(Default)]
#[repr(C)]
struct Shared {
    written_bytes: AtomicU64,
    /// Passes over the file that have begun.
    rounds: AtomicU64,
    errno: AtomicI32,
    /// CLOCK_MONOTONIC when the last round was durable.
    finished_ns: AtomicU64,
}

/// `Shared` in memory that survives the fork as one.
struct Progress(*mut Shared);

impl Progress {
    fn new() -> io::Result<Self> {
        // SAFETY: a fresh anonymous mapping; nothing else refers to it.
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let shared = place.cast::<Shared>();
        // SAFETY: page-aligned and large enough, see above.
        unsafe { shared.write(Shared::default()) };
        Ok(Progress(shared))
    }

    fn shared(&self) -> &Shared {
        // SAFETY: mapped and initialized in `new`, unmapped in `drop`.
        unsafe { &*self.0 }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this size, and no borrow outlives self.
        unsafe { libc::munmap(self.0.cast(), size_of::<Shared>()) };
    }
}

impl Background {
    /// Forks the process. It dies with the caller's thread.
    pub(crate) fn start(
        script: Script,
        path: PathBuf,
        cgroup: Option<MemoryCgroup>,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Background {
            path: path.clone(),
            source,
        };
        let progress = Progress::new().map_err(failed)?;
        let entrance = cgroup.as_ref().map(MemoryCgroup::entrance);
        let started = Instant::now();
        // SAFETY: the child makes system calls only and leaves by _exit.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(failed(io::Error::last_os_error())),
            0 => child(script, progress.shared(), entrance),
            _ => Ok(Background {
                pid,
                ended: false,
                progress,
                started,
                path,
                cgroup,
            }),
        }
    }

    /// Bytes that the kernel has taken from it so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.progress.shared().written_bytes.load(Ordering::Relaxed)
    }

    /// Passes over its file that have begun.
    pub(crate) fn rounds(&self) -> u64 {
        self.progress.shared().rounds.load(Ordering::Relaxed)
    }

    /// Start to durable, once a bounded load is through.
    pub(crate) fn completion(&self) -> Option<Duration> {
        let finished_ns = self.progress.shared().finished_ns.load(Ordering::Acquire);
        let since_ns = monotonic_ns().saturating_sub(finished_ns);
        match finished_ns {
            0 => None,
            _ => Some(self.started.elapsed() - Duration::from_nanos(since_ns)),
        }
    }

    /// An error if the process has ended though nobody stopped it.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        if self.ended || self.completion().is_some() {
            return Ok(());
        }
        let mut status = 0;
        // SAFETY: waits for our own child without blocking.
        if unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) } == 0 {
            return Ok(());
        }
        self.ended = true;
        let errno = self.progress.shared().errno.load(Ordering::Acquire);
        match errno {
            0 if self.completion().is_some() => Ok(()),
            0 => Err(Error::BackgroundGone {
                pid: self.pid,
                how: format!("wait status {status:#x}"),
            }),
            libc::ENOSPC | libc::EDQUOT => Err(Error::NoSpace {
                path: self.path.clone(),
            }),
            _ => Err(Error::Background {
                path: self.path.clone(),
                source: io::Error::from_raw_os_error(errno),
            }),
        }
    }

    fn end(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        // SAFETY: the child is ours and not yet waited for, so the id is its.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, std::ptr::null_mut(), 0) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
        // Before the cgroup goes, so that its dirty pages go with the file.
        // The caller removes the directory and reports what is left in it.
        let _ = std::fs::remove_file(&self.path);
        self.cgroup.take();
    }
}

fn child(mut script: Script, shared: &Shared, entrance: Option<RawFd>) -> ! {
    let outcome = prepare_child(entrance).and_then(|()| script.perform(shared));
    if let Err(errno) = outcome {
        shared.errno.store(errno, Ordering::Release);
    }
    // SAFETY: ends the child without running the parent's exit handlers.
    unsafe { libc::_exit(i32::from(outcome.is_err())) }
}

fn prepare_child(entrance: Option<RawFd>) -> Result<(), i32> {
    // SAFETY: plain system calls on values.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // A Ctrl-C is for the parent, which ends this process in order.
        libc::signal(libc::SIGINT, libc::SIG_IGN);
    }
    match entrance {
        // SAFETY: writes one static byte; "0" means the writing process.
        Some(procs) => succeeded(unsafe { libc::write(procs, c"0".as_ptr().cast(), 1) }),
        None => Ok(()),
    }
}

impl Script {
    fn perform(&mut self, shared: &Shared) -> Result<(), i32> {
        let mut round = 0;
        while round < self.rounds {
            round += 1;
            shared.rounds.store(round, Ordering::Relaxed);
            match self.pattern {
                Pattern::Writer => self.write_through(shared)?,
                Pattern::Rewrite => {
                    // SAFETY: our own descriptor.
                    succeeded(unsafe { libc::ftruncate(self.file.as_raw_fd(), 0) } as isize)?;
                    self.write_through(shared)?;
                }
                Pattern::Random => self.write_randomly(shared)?,
            }
        }
        // SAFETY: our own descriptor.
        succeeded(unsafe { libc::fdatasync(self.file.as_raw_fd()) } as isize)?;
        shared.finished_ns.store(monotonic_ns(), Ordering::Release);
        Ok(())
    }

    fn write_through(&self, shared: &Shared) -> Result<(), i32> {
        let mut offset = 0;
        while offset < self.file_bytes {
            let bytes = (self.file_bytes - offset).min(self.data.len() as u64);
            offset += self.write_at(&self.data[..bytes as usize], offset, shared)?;
        }
        Ok(())
    }

    /// As many pages as the file has, at random places.
    fn write_randomly(&mut self, shared: &Shared) -> Result<(), i32> {
        let pages = self.file_bytes.div_ceil(PAGE_BYTES as u64);
        for _ in 0..pages {
            let offset = self.random.below(pages) * PAGE_BYTES as u64;
            let source = self.random.below((self.data.len() / PAGE_BYTES) as u64) as usize;
            let page = &self.data[source * PAGE_BYTES..][..PAGE_BYTES];
            self.write_at(page, offset, shared)?;
        }
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64, shared: &Shared) -> Result<u64, i32> {
        // SAFETY: our own descriptor and a live buffer of that length.
        let written = unsafe {
            libc::pwrite(
                self.file.as_raw_fd(),
                data.as_ptr().cast(),
                data.len(),
                offset as libc::off_t,
            )
        };
        match succeeded(written) {
            Err(libc::EINTR) => Ok(0),
            Err(errno) => Err(errno),
            Ok(()) => {
                shared
                    .written_bytes
                    .fetch_add(written as u64, Ordering::Relaxed);
                Ok(written as u64)
            }
        }
    }
}

fn succeeded(status: isize) -> Result<(), i32> {
    match status {
        // SAFETY: errno is this thread's own.
        -1 => Err(unsafe { *libc::__errno_location() }),
        _ => Ok(()),
    }
}

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to a local; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
