//! The end of a recorded start. After its limit, or when the user interrupts, the app is asked to
//! end; what it left behind goes on without being recorded.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Time between two looks at the clock and the stop flag.
const LOOK: Duration = Duration::from_millis(50);

/// Interrupts a system call of the thread that waits; it does nothing else.
const WAKE: libc::c_int = libc::SIGURG;

/// Calls `wait` for the app, a child of this process that is not waited for yet. It gets SIGTERM
/// after `limit` or when `stop` becomes true, and SIGKILL later. From then on the flag that `wait`
/// is given is true, and each of its system calls is interrupted.
///
/// # Errors
/// The app ended too early for a descriptor of it.
pub fn supervise<T>(
    app: u32,
    limit: Duration,
    stop: &AtomicBool,
    wait: impl FnOnce(&AtomicBool) -> T,
) -> io::Result<T> {
    let pid = i32::try_from(app).ok().and_then(Pid::from_raw);
    // A descriptor, since the number may be another process's once the app was waited for.
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    wake_does_nothing();
    // SAFETY: asks for this thread's own number.
    let waiter = unsafe { libc::pthread_self() };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (done, running) = channel::<()>();
        let (process, is_over) = (&process, &is_over);
        scope.spawn(move || {
            let send = |signal| {
                // An app that has ended needs no signal.
                let _ = pidfd_send_signal(process, signal);
            };
            let wake = || {
                // SAFETY: the thread is in `wait`, and waits for this one at the end of the scope.
                unsafe { libc::pthread_kill(waiter, WAKE) };
            };
            end(&running, limit, stop, is_over, &send, &wake);
        });
        let outcome = wait(is_over);
        drop(done);
        Ok(outcome)
    })
}

fn end(
    running: &Receiver<()>,
    limit: Duration,
    stop: &AtomicBool,
    is_over: &AtomicBool,
    send: &dyn Fn(Signal),
    wake: &dyn Fn(),
) {
    let begun = Instant::now();
    let mut asked: Option<Instant> = None;
    let mut killed = false;
    while running.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        match asked {
            None if begun.elapsed() >= limit || stop.load(Ordering::Relaxed) => {
                is_over.store(true, Ordering::Relaxed);
                asked = Some(Instant::now());
                send(Signal::TERM);
            }
            Some(asked) if !killed && asked.elapsed() >= PATIENCE => {
                killed = true;
                send(Signal::KILL);
            }
            _ => {}
        }
        if asked.is_some() {
            // Again and again: the signal may come just before the call that it is to interrupt.
            wake();
        }
    }
}

fn wake_does_nothing() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: installs a handler that does nothing. All fields are numbers, and no flag
        // restarts the interrupted call.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(WAKE, &action, ptr::null_mut());
        }
    });
}
