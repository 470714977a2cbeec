//! The background as a process. It shares only a page of counters with the foreground, has its own
//! descriptors, and can be put into a cgroup.
//!
//! The child of a process with threads may only make system calls. So all that it needs is made
//! before the fork, and it never allocates memory.

use crate::Error;
use crate::memcg::MemoryCgroup;
use crate::sizes::Sizes;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;
use sys::device::Pages;
use sys::random::Random;

/// `IOPRIO_WHO_PROCESS`, and the class of `ionice -c idle` (uapi/linux/ioprio.h).
const WHO_PROCESS: libc::c_int = 1;
const CLASS_IDLE: libc::c_int = 3 << 13;

/// What a background process does.
pub(crate) struct Pattern {
    /// Size of its file, or of all files in its directory.
    pub(crate) bytes: fn(&Sizes) -> u64,
    /// Whether writeback keeps up with it from its first steps. Otherwise it needs a warm-up, and a
    /// file larger than the dirty limit.
    pub(crate) is_steady: bool,
    /// Whether it can make one pass over its file and end.
    pub(crate) has_an_end: bool,
    /// Makes its file of so many bytes, or its directory, with the content that it has at the start.
    pub(crate) make: Make,
    /// The process, which makes system calls only.
    pub(crate) perform: fn(&mut Script, &Shared) -> Result<(), i32>,
}

/// Makes a file or a directory for a pattern.
pub(crate) type Make = fn(&Path, u64, &mut Random, &AtomicBool) -> Result<File, Error>;

/// Parameters of a background process.
pub(crate) struct Script {
    pub(crate) pattern: &'static Pattern,
    /// The file; for a pattern with several files, their directory.
    pub(crate) file: File,
    pub(crate) file_bytes: u64,
    /// Number of passes over the file, which is synced after the last one.
    pub(crate) rounds: u64,
    pub(crate) data: Pages,
    pub(crate) random: Random,
    /// Whether its requests have the idle class (ioprio_set(2)).
    pub(crate) idle_class: bool,
}

/// A running background. Its drop ends the process and removes its files.
pub(crate) struct Background {
    pid: libc::pid_t,
    ended: bool,
    progress: Progress,
    started_ns: u64,
    path: PathBuf,
    cgroup: Option<MemoryCgroup>,
}

/// Counters that the child and the parent share.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Shared {
    written_bytes: AtomicU64,
    /// Time of the last progress, and longest time between two.
    progressed_ns: AtomicU64,
    longest_stall_ns: AtomicU64,
    /// Passes over the file that have begun.
    pub(crate) rounds: AtomicU64,
    /// Number of thumbnails that the parent wants by now.
    pub(crate) wanted: AtomicU64,
    /// Number of the calls whose time the child notes, their total time and the longest.
    calls: AtomicU64,
    calls_ns: AtomicU64,
    longest_call_ns: AtomicU64,
    errno: AtomicI32,
    /// CLOCK_MONOTONIC when the last pass was durable; 0 before.
    finished_ns: AtomicU64,
}

impl Shared {
    pub(crate) fn progress(&self, bytes: u64) {
        let now_ns = monotonic_ns();
        let since_ns = self.progressed_ns.load(Ordering::Relaxed);
        // There is no stall before the first progress.
        let stall_ns = if since_ns == 0 { 0 } else { now_ns - since_ns };
        // The order ensures that a reader does not miss a stall that has just ended.
        self.longest_stall_ns.fetch_max(stall_ns, Ordering::Relaxed);
        self.progressed_ns.store(now_ns, Ordering::Release);
        self.written_bytes.fetch_add(bytes, Ordering::Release);
    }

    pub(crate) fn finish(&self) {
        self.finished_ns.store(monotonic_ns(), Ordering::Release);
    }

    pub(crate) fn note_call(&self, time_ns: u64) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.calls_ns.fetch_add(time_ns, Ordering::Relaxed);
        self.longest_call_ns.fetch_max(time_ns, Ordering::Relaxed);
    }
}

/// A `Shared` in memory that parent and child share after the fork.
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
    /// Forks the process, which is killed when the caller's thread ends.
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
        let started_ns = monotonic_ns();
        // SAFETY: the child makes system calls only and leaves by _exit.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(failed(io::Error::last_os_error())),
            0 => child(script, progress.shared(), entrance),
            _ => Ok(Background {
                pid,
                ended: false,
                progress,
                started_ns,
                path,
                cgroup,
            }),
        }
    }

    /// Bytes that the process has written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.progress.shared().written_bytes.load(Ordering::Acquire)
    }

    /// Resets the longest stall; one in progress still counts.
    pub(crate) fn forget_stalls(&self) {
        let longest_ns = &self.progress.shared().longest_stall_ns;
        longest_ns.store(0, Ordering::Relaxed);
    }

    /// Longest time without progress, from the first progress until now or until the end of the
    /// work.
    pub(crate) fn longest_stall(&self) -> Duration {
        let shared = self.progress.shared();
        let progressed_ns = shared.progressed_ns.load(Ordering::Acquire);
        let ended_ns = shared.longest_stall_ns.load(Ordering::Relaxed);
        let lasting_ns = match self.completion() {
            None if progressed_ns > 0 => monotonic_ns().saturating_sub(progressed_ns),
            _ => 0,
        };
        Duration::from_nanos(ended_ns.max(lasting_ns))
    }

    /// Passes over its file that have begun, or thumbnails that were made.
    pub(crate) fn rounds(&self) -> u64 {
        self.progress.shared().rounds.load(Ordering::Relaxed)
    }

    /// Asks a thumbnail maker for this many thumbnails in all.
    pub(crate) fn want(&self, thumbnails: u64) {
        let wanted = &self.progress.shared().wanted;
        wanted.store(thumbnails, Ordering::Relaxed);
    }

    /// Mean and longest time of the calls that the child notes; None before the first.
    pub(crate) fn noted_calls(&self) -> Option<(Duration, Duration)> {
        let shared = self.progress.shared();
        let total_ns = shared.calls_ns.load(Ordering::Relaxed);
        let longest_ns = shared.longest_call_ns.load(Ordering::Relaxed);
        let mean_ns = total_ns.checked_div(shared.calls.load(Ordering::Relaxed))?;
        Some((
            Duration::from_nanos(mean_ns),
            Duration::from_nanos(longest_ns),
        ))
    }

    /// Time from the start until the last pass was durable; None before.
    pub(crate) fn completion(&self) -> Option<Duration> {
        match self.progress.shared().finished_ns.load(Ordering::Acquire) {
            0 => None,
            finished_ns => Some(Duration::from_nanos(finished_ns - self.started_ns)),
        }
    }

    /// An error if the process has ended although it was not stopped.
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
                how: ExitStatus::from_raw(status).to_string(),
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
        // The files go before the cgroup, so that their dirty pages are dropped first. The caller
        // removes the directory and reports files that are left in it.
        let _ = match self.path.is_dir() {
            true => std::fs::remove_dir_all(&self.path),
            false => std::fs::remove_file(&self.path),
        };
        self.cgroup.take();
    }
}

fn child(mut script: Script, shared: &Shared, entrance: Option<RawFd>) -> ! {
    let outcome = prepare_child(entrance, script.idle_class)
        .and_then(|()| (script.pattern.perform)(&mut script, shared));
    if let Err(errno) = outcome {
        shared.errno.store(errno, Ordering::Release);
    }
    // SAFETY: ends the child without running the parent's exit handlers.
    unsafe { libc::_exit(i32::from(outcome.is_err())) }
}

fn prepare_child(entrance: Option<RawFd>, idle_class: bool) -> Result<(), i32> {
    // SAFETY: plain system calls on values.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Ctrl-C is for the parent, which ends this process in order.
        libc::signal(libc::SIGINT, libc::SIG_IGN);
    }
    if idle_class {
        // SAFETY: a system call on values; 0 is the calling process.
        let status = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE) };
        succeeded(status as isize)?;
    }
    match entrance {
        // SAFETY: writes one static byte; "0" means the writing process.
        Some(procs) => succeeded(unsafe { libc::write(procs, c"0".as_ptr().cast(), 1) }),
        None => Ok(()),
    }
}

impl Script {
    /// Passes over the file, each of which is `round`, and syncs it after the last one.
    pub(crate) fn in_rounds(
        &mut self,
        shared: &Shared,
        round: impl Fn(&mut Script) -> Result<(), i32>,
    ) -> Result<(), i32> {
        for number in 1..=self.rounds {
            shared.rounds.store(number, Ordering::Relaxed);
            round(self)?;
        }
        sync(&self.file)?;
        shared.finish();
        Ok(())
    }

    pub(crate) fn open_in(&self, name: &CStr, flags: libc::c_int) -> Result<File, i32> {
        // SAFETY: our own descriptor and a string that ends.
        let file = unsafe { libc::openat(self.file.as_raw_fd(), name.as_ptr(), flags, 0o644) };
        succeeded(file as isize)?;
        // SAFETY: just opened, and nobody else's.
        Ok(unsafe { File::from_raw_fd(file) })
    }

    pub(crate) fn unlink_in(&self, name: &CStr) -> Result<(), i32> {
        // SAFETY: our own descriptor and a string that ends.
        succeeded(unsafe { libc::unlinkat(self.file.as_raw_fd(), name.as_ptr(), 0) } as isize)
    }

    pub(crate) fn read_at(&mut self, bytes: u64, offset: u64) -> Result<(), i32> {
        // SAFETY: our own descriptor and a live buffer that is longer than any step.
        let read = unsafe {
            libc::pread(
                self.file.as_raw_fd(),
                self.data.as_mut_ptr().cast(),
                bytes as usize,
                offset as libc::off_t,
            )
        };
        match succeeded(read) {
            Err(libc::EINTR) => Ok(()),
            outcome => outcome,
        }
    }

    pub(crate) fn write_at(&self, data: &[u8], offset: u64, shared: &Shared) -> Result<u64, i32> {
        write_to(&self.file, data, offset, shared)
    }
}

pub(crate) fn write_to(file: &File, data: &[u8], offset: u64, shared: &Shared) -> Result<u64, i32> {
    // SAFETY: our own descriptor and a live buffer of that length.
    let written = unsafe {
        libc::pwrite(
            file.as_raw_fd(),
            data.as_ptr().cast(),
            data.len(),
            offset as libc::off_t,
        )
    };
    match succeeded(written) {
        Err(libc::EINTR) => Ok(0),
        Err(errno) => Err(errno),
        Ok(()) => {
            shared.progress(written as u64);
            Ok(written as u64)
        }
    }
}

/// fdatasync(2), which also commits the journal for a new file or one that grew.
pub(crate) fn sync(file: &File) -> Result<(), i32> {
    // SAFETY: our own descriptor.
    succeeded(unsafe { libc::fdatasync(file.as_raw_fd()) } as isize)
}

pub(crate) fn nap(time: Duration) {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    // SAFETY: reads a local; an early wake-up only shortens the nap.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}

pub(crate) fn succeeded(status: isize) -> Result<(), i32> {
    match status {
        // SAFETY: errno is this thread's own.
        -1 => Err(unsafe { *libc::__errno_location() }),
        _ => Ok(()),
    }
}

pub(crate) fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to a local; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use sys::device::PAGE_BYTES;

    fn script(file: File, rounds: u64) -> Script {
        Script {
            pattern: &crate::load::WRITER,
            file,
            file_bytes: 3 * PAGE_BYTES as u64,
            rounds,
            data: Pages::zeroed(2 * PAGE_BYTES),
            random: Random::for_purpose(1, "test"),
            idle_class: false,
        }
    }

    fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing came");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_bounded_load_writes_its_file_once_and_is_through() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = crate::timed::create(&path).unwrap();
        let mut background = Background::start(script(file, 1), path.clone(), None).unwrap();
        until(|| background.completion());
        assert_eq!(background.written_bytes(), 3 * PAGE_BYTES as u64);
        assert_eq!(
            std::fs::metadata(&path).unwrap().len(),
            3 * PAGE_BYTES as u64
        );
        background.check().unwrap();
        drop(background);
        assert!(!path.exists());
    }

    #[test]
    fn a_stall_is_told_while_it_lasts_and_forgotten_when_asked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = crate::timed::create(&path).unwrap();
        let background = Background::start(script(file, u64::MAX), path, None).unwrap();
        until(|| (background.written_bytes() > 0).then_some(()));
        // SAFETY: a signal for our own child.
        unsafe { libc::kill(background.pid, libc::SIGSTOP) };
        let long = Duration::from_millis(30);
        until(|| (background.longest_stall() >= long).then_some(()));
        // SAFETY: as above.
        unsafe { libc::kill(background.pid, libc::SIGCONT) };
        let written = background.written_bytes();
        until(|| (background.written_bytes() > written).then_some(()));
        assert!(background.longest_stall() >= long);
        background.forget_stalls();
        until(|| (background.longest_stall() < long).then_some(()));
    }

    #[test]
    fn a_load_on_a_full_disk_says_so() {
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let path = PathBuf::from("/nonexistent/file");
        let mut background = Background::start(script(file, 1), path, None).unwrap();
        let error = until(|| background.check().err()).to_string();
        assert!(
            error.contains("no space left for /nonexistent/file"),
            "{error}"
        );
    }

    #[test]
    fn a_load_that_someone_kills_is_missed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = crate::timed::create(&path).unwrap();
        let mut background = Background::start(script(file, u64::MAX), path, None).unwrap();
        // SAFETY: our own child, not yet waited for.
        unsafe { libc::kill(background.pid, libc::SIGKILL) };
        let error = until(|| background.check().err()).to_string();
        assert!(error.contains("was killed"), "{error}");
    }
}
