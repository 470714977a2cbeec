//! Traced run of the app with all its processes and threads, from the first instruction.

use super::touched::Touched;
use super::{Error, Request};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Time between SIGTERM and SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);

const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_EXITKILL;

/// Starts the app traced, and returns the pages that it touched until it ended. It is asked to end
/// after the limit.
///
/// # Errors
/// [`Error::Start`], [`Error::NoTrace`] or [`Error::System`].
pub fn trace(request: &Request) -> Result<Touched, Error> {
    run(&request.command, request.limit)
}

fn run(command: &[OsString], limit: Duration) -> Result<Touched, Error> {
    let name = command.first().cloned().unwrap_or_default();
    let mut start = Command::new(&name);
    start.args(command.iter().skip(1));
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
        calls: HashMap::new(),
        known: HashSet::new(),
        touched: Touched::default(),
    };
    let over = ask_to_end(app, limit);
    let outcome = tracer.run();
    // Dropping the sender ends the thread that would signal the app.
    drop(over);
    outcome?;
    Ok(tracer.touched)
}

/// Ends the app, a child of this process, when the start is over. It gets SIGTERM after `limit`,
/// and SIGKILL later. Dropping the returned sender prevents both.
pub fn ask_to_end(app: i32, limit: Duration) -> Sender<()> {
    let (over, wait) = channel::<()>();
    thread::spawn(move || {
        for (time, signal) in [(limit, libc::SIGTERM), (PATIENCE, libc::SIGKILL)] {
            if wait.recv_timeout(time) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            // SAFETY: the app is our child, and not waited for while the line stands.
            unsafe { libc::kill(app, signal) };
        }
    });
    over
}

struct Tracer {
    app: i32,
    /// Whether the app's own exec was seen, and the options are set.
    begun: bool,
    /// System call that each thread is in: its number and arguments.
    calls: HashMap<i32, (libc::c_long, [u64; 6])>,
    /// Threads that have begun: their first stop comes from ptrace and not from a signal.
    known: HashSet<i32>,
    touched: Touched,
}

impl Tracer {
    /// Traces until the app and all processes that it started have ended.
    fn run(&mut self) -> io::Result<()> {
        self.known.insert(self.app);
        loop {
            let mut status = 0;
            // `__WNOTHREAD`: children of other threads are not traced here.
            let whose = libc::__WALL | libc::__WNOTHREAD;
            // SAFETY: writes to a local.
            let id = unsafe { libc::waitpid(-1, &mut status, whose) };
            if id < 0 {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(libc::ECHILD) => return Ok(()),
                    _ => return Err(error),
                }
            }
            if libc::WIFSTOPPED(status) {
                let signal = self.stopped(id, status)?;
                go_on(id, signal);
            } else {
                self.calls.remove(&id);
                self.known.remove(&id);
            }
        }
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
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;

    /// Makes a sparse file of 64 pages.
    fn file() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("file");
        let file = File::create(&path).unwrap();
        file.write_all_at(b"end", 64 * 4096 - 3).unwrap();
        (directory, path)
    }

    fn touched(command: &[&str], path: &PathBuf) -> Vec<u64> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let touched = run(&command, Duration::from_secs(300)).unwrap();
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
        let command = ["sh", "-c", &script].map(OsString::from);
        let touched = run(&command, Duration::from_secs(300)).unwrap();
        let order: Vec<PathBuf> = touched.need.order();
        let place = |path: &PathBuf| order.iter().position(|it| it == path).unwrap();
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        assert!(place(&shell) < place(&two) && place(&two) < place(&one));
    }

    #[test]
    fn an_app_that_does_not_end_is_ended() {
        let command = ["sleep", "1000000"].map(OsString::from);
        let touched = run(&command, Duration::from_millis(200)).unwrap();
        assert!(!touched.files.is_empty());
    }

    #[test]
    fn an_app_that_cannot_be_started_is_named() {
        let command = [OsString::from("/nonexistent/app")];
        let Err(error) = run(&command, Duration::from_secs(1)) else {
            panic!("it was started");
        };
        assert!(error.to_string().contains("/nonexistent/app"), "{error}");
    }
}
