//! A real-time priority, for what has to run in time whatever else runs.

use std::io;

/// Above the real-time programs of users, which get up to 95, and below the kernel's own threads, at 99.
const PRIORITY: i32 = 98;

/// Gives this thread, and those that it starts from now on, a real-time priority (SCHED_FIFO).
///
/// # Errors
/// What the system says, such as EPERM without CAP_SYS_NICE.
pub fn begin() -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: PRIORITY,
    };
    // SAFETY: the structure is alive during the call, and 0 is this thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
