//! Traced run of the app with all its processes and threads, from the first instruction.

use super::limit::{PATIENCE, supervise};
use super::touched::Touched;
use super::{Error, Request, Started};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_EXITKILL;

/// Starts the app traced, and returns the pages that it and what it started touched, and how it ended.
/// It is asked to end after the limit, or when `stop` becomes true. What it started and left behind
/// then goes on untraced.
///
/// # Errors
/// [`Error::Start`], [`Error::NoTrace`] or [`Error::System`].
pub fn trace(request: &Request, stop: &AtomicBool) -> Result<Started, Error> {
    let name = request.command.first().cloned().unwrap_or_default();
    let mut start = Command::new(&name);
    start.args(request.command.iter().skip(1));
    // SAFETY: makes one system call.
    unsafe {
        start.pre_exec(|| {
            let nothing = ptr::null_mut::<libc::c_void>();
            match libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    let child = start
        .spawn()
        .map_err(|source| match source.raw_os_error() {
            Some(libc::EPERM) => Error::NoTrace(source),
            _ => Error::Start {
                command: name.to_string_lossy().into_owned(),
                source,
            },
        })?;
    let app = child.id() as i32;
    let mut tracer = Tracer {
        app,
        begun: false,
        ended: None,
        calls: HashMap::new(),
        known: HashSet::new(),
        touched: Touched::default(),
    };
    supervise(child.id(), request.limit, stop, |is_over| {
        tracer.run(is_over)
    })??;
    Ok(Started {
        touched: tracer.touched,
        failed: tracer.ended.and_then(failed),
        asked: tracer.ended.is_none_or(|it| it.asked),
    })
}

/// How an app ended that failed by itself; None for one that did what it should or was asked to end.
fn failed(ended: Ended) -> Option<ExitStatus> {
    let status = ExitStatus::from_raw(ended.status);
    (!ended.asked && !status.success()).then_some(status)
}

/// End of the app: its wait status, and whether it was asked to end.
#[derive(Clone, Copy, Debug)]
struct Ended {
    status: i32,
    asked: bool,
}

struct Tracer {
    app: i32,
    /// Whether the app's own exec was seen, and the options are set.
    begun: bool,
    ended: Option<Ended>,
    /// System call that each thread is in: its number and arguments.
    calls: HashMap<i32, (libc::c_long, [u64; 6])>,
    /// Threads that have begun: their first stop comes from ptrace and not from a signal.
    known: HashSet<i32>,
    touched: Touched,
}

impl Tracer {
    /// Traces until the app and all processes that it started have ended, or, once `is_over` is true,
    /// until the app has.
    fn run(&mut self, is_over: &AtomicBool) -> io::Result<()> {
        self.known.insert(self.app);
        loop {
            let over = is_over.load(Ordering::Relaxed);
            if over && self.ended.is_some() {
                return self.let_go();
            }
            match wait()? {
                Waited::Nobody => return Ok(()),
                Waited::Interrupted => {}
                Waited::Stopped(id, status) => {
                    let signal = self.stopped(id, status)?;
                    go_on(id, signal);
                }
                Waited::Ended(id, status) => self.forget(id, status, over),
            }
        }
    }

    fn forget(&mut self, id: i32, status: i32, asked: bool) {
        self.calls.remove(&id);
        self.known.remove(&id);
        if id == self.app {
            self.ended = Some(Ended { status, asked });
        }
    }

    /// Takes down what is mapped by the threads that go on, and stops tracing them. A thread that the
    /// kernel does not let stop is given up after a while.
    fn let_go(&mut self) -> io::Result<()> {
        for id in &self.known {
            // SAFETY: takes numbers only. The thread is traced, so its number is not another's.
            unsafe { libc::syscall(libc::SYS_tkill, *id, libc::SIGSTOP) };
        }
        let begun = Instant::now();
        while !self.known.is_empty() && begun.elapsed() < PATIENCE {
            match wait()? {
                Waited::Nobody => return Ok(()),
                Waited::Interrupted => {}
                Waited::Ended(id, status) => self.forget(id, status, true),
                // This stop is ours, or that of a new thread.
                Waited::Stopped(id, status) if status >> 8 == libc::SIGSTOP => {
                    self.touched.mapped(id, None);
                    detach(id);
                    self.known.remove(&id);
                }
                Waited::Stopped(id, status) => {
                    let signal = self.stopped(id, status)?;
                    go_on(id, signal);
                }
            }
        }
        Ok(())
    }

    /// Handles a stop and returns the signal to deliver, or 0.
    fn stopped(&mut self, id: i32, status: i32) -> io::Result<i32> {
        if !self.begun && id == self.app {
            self.begun = true;
            let nothing = ptr::null_mut::<libc::c_void>();
            // SAFETY: the thread is stopped and ours.
            if unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, id, nothing, OPTIONS) } != 0 {
                return Err(io::Error::last_os_error());
            }
            self.touched.execs(id);
            return Ok(0);
        }
        let is_new = self.known.insert(id);
        match (libc::WSTOPSIG(status), status >> 16) {
            (signal, 0) if signal == libc::SIGTRAP | 0x80 => self.system_call(id),
            (libc::SIGTRAP, libc::PTRACE_EVENT_EXIT) => self.touched.mapped(id, None),
            (libc::SIGTRAP, libc::PTRACE_EVENT_EXEC) => self.touched.execs(id),
            (libc::SIGTRAP, 1..) => {}
            (libc::SIGSTOP, _) if is_new => {}
            (_, event) if event != 0 => {}
            (signal, _) => return Ok(signal),
        }
        Ok(0)
    }

    fn system_call(&mut self, id: i32) {
        let Some(info) = system_call_info(id) else {
            return;
        };
        match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                // SAFETY: `op` says which of the union it is.
                let entry = unsafe { info.u.entry };
                let number = entry.nr as libc::c_long;
                self.calls.insert(id, (number, entry.args));
                match number {
                    libc::SYS_munmap => {
                        let (begin, bytes) = (entry.args[0], entry.args[1]);
                        self.touched
                            .mapped(id, Some((begin, begin.saturating_add(bytes))));
                    }
                    // The exec will replace the mappings of the old program.
                    libc::SYS_execve | libc::SYS_execveat => self.touched.mapped(id, None),
                    _ => {}
                }
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => {
                // SAFETY: as above.
                let result = unsafe { info.u.exit }.sval;
                if let (Some((number, args)), 1..) = (self.calls.remove(&id), result) {
                    self.returned(id, number, &args, result as u64);
                }
            }
            _ => {}
        }
    }

    fn returned(&mut self, id: i32, number: libc::c_long, args: &[u64; 6], bytes: u64) {
        match number {
            libc::SYS_mmap if args[3] & libc::MAP_ANONYMOUS as u64 == 0 => {
                self.touched.maps(id, args[4]);
            }
            libc::SYS_read | libc::SYS_readv => self.touched.read(id, args[0], bytes, None),
            libc::SYS_pread64 | libc::SYS_preadv => {
                self.touched.read(id, args[0], bytes, Some(args[3]));
            }
            // preadv2 takes -1 for the file's position.
            libc::SYS_preadv2 => {
                let offset = Some(args[3]).filter(|&it| it != u64::MAX);
                self.touched.read(id, args[0], bytes, offset);
            }
            // sendfile with an offset pointer (the third argument) does not move the position.
            libc::SYS_sendfile if args[2] == 0 => self.touched.read(id, args[1], bytes, None),
            libc::SYS_copy_file_range if args[1] == 0 => {
                self.touched.read(id, args[0], bytes, None);
            }
            _ => {}
        }
    }
}

/// Outcome of a wait for any traced thread.
enum Waited {
    Stopped(i32, i32),
    Ended(i32, i32),
    /// A signal came instead.
    Interrupted,
    /// There is no traced thread any more.
    Nobody,
}

fn wait() -> io::Result<Waited> {
    let mut status = 0;
    // `__WNOTHREAD`: children of other threads are not traced here.
    let whose = libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: writes to a local.
    let id = unsafe { libc::waitpid(-1, &mut status, whose) };
    if id < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EINTR) => Ok(Waited::Interrupted),
            Some(libc::ECHILD) => Ok(Waited::Nobody),
            _ => Err(error),
        };
    }
    Ok(match libc::WIFSTOPPED(status) {
        true => Waited::Stopped(id, status),
        false => Waited::Ended(id, status),
    })
}

/// Lets a stopped thread go on untraced, without the signal that stopped it.
fn detach(id: i32) {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: the thread is stopped and ours.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, id, nothing, nothing) };
}

fn system_call_info(id: i32) -> Option<libc::ptrace_syscall_info> {
    // SAFETY: plain numbers, for which zeros are as good as any.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the kernel writes at most `bytes` to a local of that size.
    let written = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, id, bytes, &raw mut info) };
    (written > 0).then_some(info)
}

/// Lets a thread continue; one that was killed meanwhile is ignored.
fn go_on(id: i32, signal: i32) {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: the thread is stopped and ours.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, id, nothing, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;
    use std::time::Duration;

    /// Makes a sparse file of 64 pages.
    fn file() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("file");
        let file = File::create(&path).unwrap();
        file.write_all_at(b"end", 64 * 4096 - 3).unwrap();
        (directory, path)
    }

    fn run(command: &[&str], limit: Duration) -> Result<Started, Error> {
        let request = Request {
            command: command.iter().map(OsString::from).collect(),
            runs: 1,
            limit,
            failing: false,
        };
        trace(&request, &AtomicBool::new(false))
    }

    fn touched(command: &[&str], path: &PathBuf) -> Vec<u64> {
        let touched = run(command, Duration::from_secs(300)).unwrap().touched;
        let pages = touched.files.get(path).cloned();
        pages.unwrap_or_default().into_iter().collect()
    }

    #[test]
    fn what_a_child_of_the_app_reads_is_touched() {
        let (_directory, path) = file();
        let dd = format!(
            "dd if={} of=/dev/null bs=4096 skip=5 count=3 status=none; true",
            path.display()
        );
        assert_eq!(touched(&["sh", "-c", &dd], &path), [5, 6, 7]);
    }

    #[test]
    fn the_program_itself_is_touched() {
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        assert!(!touched(&["sh", "-c", "true"], &shell).is_empty());
    }

    #[test]
    fn files_come_in_the_order_in_which_the_app_first_needs_them() {
        let (_first, one) = file();
        let (_second, two) = file();
        let cat = |path: &PathBuf| format!("cat {} >/dev/null; ", path.display());
        let script = cat(&two) + &cat(&one) + &cat(&two) + "true";
        let command = ["sh", "-c", &script];
        let touched = run(&command, Duration::from_secs(300)).unwrap().touched;
        let order: Vec<PathBuf> = touched.need.order();
        let place = |path: &PathBuf| order.iter().position(|it| it == path).unwrap();
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        assert!(place(&shell) < place(&two) && place(&two) < place(&one));
    }

    #[test]
    fn an_app_that_does_not_end_is_ended() {
        let started = run(&["sleep", "1000000"], Duration::from_millis(200)).unwrap();
        assert!(!started.touched.files.is_empty());
        assert!(started.failed.is_none());
    }

    /// It ends long before what the app left behind, which goes on.
    #[test]
    fn what_an_app_leaves_behind_goes_on_and_is_not_waited_for() {
        let (directory, path) = file();
        let number = directory.path().join("number");
        let script = format!(
            "cat {} >/dev/null; sleep 1000000 & echo $! > {}; wait",
            path.display(),
            number.display()
        );
        let started = run(&["sh", "-c", &script], Duration::from_secs(2)).unwrap();
        assert!(started.touched.files.contains_key(&path));
        let left: i32 = std::fs::read_to_string(&number)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let status = std::fs::read_to_string(format!("/proc/{left}/status")).unwrap();
        assert!(status.contains("TracerPid:\t0"), "{status}");
        assert!(!status.contains("State:\tT"), "{status}");
        // SAFETY: ends a process that this test has started.
        unsafe { libc::kill(left, libc::SIGKILL) };
    }

    #[test]
    fn an_interruption_ends_it_at_once() {
        let request = Request {
            command: ["sleep", "1000000"].map(OsString::from).to_vec(),
            runs: 1,
            limit: Duration::from_secs(1_000_000),
            failing: false,
        };
        trace(&request, &AtomicBool::new(true)).unwrap();
    }

    #[test]
    fn an_app_that_fails_by_itself_is_told_from_one_that_was_ended() {
        let failed = |script| {
            let started = run(&["sh", "-c", script], Duration::from_secs(300)).unwrap();
            started.failed.map(|it| it.to_string())
        };
        assert_eq!(failed("exit 0"), None);
        assert_eq!(failed("exit 3"), Some("exit status: 3".to_owned()));
        assert!(failed("kill -SEGV $$").unwrap().contains("SIGSEGV"));
    }

    #[test]
    fn an_app_that_cannot_be_started_is_named() {
        let Err(error) = run(&["/nonexistent/app"], Duration::from_secs(1)) else {
            panic!("it was started");
        };
        assert!(error.to_string().contains("/nonexistent/app"), "{error}");
    }
}
