//! Replaces this process by the app, with the state as if started without Frontrow.

use crate::exit::{Exit, Failure};
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether SIGPIPE was ignored when this program was started: Rust's runtime ignores it
/// before `main`, and an ignored signal stays ignored in the app.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: writes to a local that zeros are good for.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: asks, and changes nothing.
        unsafe { libc::sigaction(libc::SIGPIPE, ptr::null(), &mut action) };
        PIPE_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    }
    look
};

/// Replaces this process; returns only with the reason why that failed. The app gets the signal
/// mask, environment, terminal and limits that this program was started with.
pub fn become_app(command: &[OsString]) -> Failure {
    let name = command.first().map(|it| it.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let failed = |exit, error: &dyn std::fmt::Display| {
        Failure::new(exit, format_args!("cannot start {name}: {error}"))
    };
    let words: Result<Vec<CString>, _> = command
        .iter()
        .map(|word| CString::new(word.as_bytes()))
        .collect();
    let words = match words {
        Ok(words) => words,
        Err(error) => return failed(Exit::Usage, &error),
    };
    let mut pointers: Vec<*const libc::c_char> = words.iter().map(|it| it.as_ptr()).collect();
    pointers.push(ptr::null());
    if !PIPE_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: back to what it was before the runtime.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    // SAFETY: a list of terminated strings that ends with a null pointer.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    let error = io::Error::last_os_error();
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::Missing,
        _ => (&error).into(),
    };
    failed(exit, &error)
}
