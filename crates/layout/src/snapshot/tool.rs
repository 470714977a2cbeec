//! Execution of e2fsprogs.

use crate::snapshot::Error;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Interval between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(20);

/// What the C library calls ENOSPC.
const NO_SPACE: &str = "No space left on device";

/// Runs `command`, whose program is `name`, to its end, and returns its output.
///
/// # Errors
/// [`Error::NoTool`], [`Error::NoSpace`], [`Error::Tool`], or [`Error::Interrupted`] after the program was stopped.
pub(crate) fn run(
    name: &'static str,
    command: &mut Command,
    stop: &AtomicBool,
) -> Result<String, Error> {
    run_while(name, command, &|| true, stop)
}

/// As [`run`], as long as `may_go_on` returns true.
///
/// # Errors
/// As [`run`], and [`Error::Exhausted`] after the program was stopped.
pub(crate) fn run_while(
    name: &'static str,
    command: &mut Command,
    may_go_on: &dyn Fn() -> bool,
    stop: &AtomicBool,
) -> Result<String, Error> {
    let mut child = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(name, &error))?;
    let printed = gather(child.stdout.take());
    let said = gather(child.stderr.take());
    let ends = || stop.load(Ordering::Relaxed) || !may_go_on();
    let good = wait(&mut child, &ends).map_err(|error| tool_failed(name, &error.to_string()));
    let printed = printed.join().unwrap_or_default();
    let said = said.join().unwrap_or_default();
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    if !may_go_on() {
        return Err(Error::Exhausted);
    }
    match good? {
        true => Ok(printed),
        false if said.contains(NO_SPACE) => Err(Error::NoSpace(name)),
        false => Err(tool_failed(name, last_line(&said))),
    }
}

fn not_started(name: &'static str, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::NoTool(name),
        _ => tool_failed(name, &error.to_string()),
    }
}

fn tool_failed(tool: &'static str, said: &str) -> Error {
    Error::Tool {
        tool,
        said: said.to_owned(),
    }
}

/// Reads a pipe to its end in a thread of its own, so that the program never blocks on it.
fn gather(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A read fails only if the program has ended, which its status tells.
        let _ = pipe.map(|mut it| it.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, ends: &dyn Fn() -> bool) -> io::Result<bool> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if ends() {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(LOOK);
    }
}

fn last_line(text: &str) -> &str {
    let lines = text.lines().map(str::trim).rev();
    lines
        .into_iter()
        .find(|line| !line.is_empty())
        .unwrap_or("it said nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Like e2image with a snapshot whose pieces all are the same one.
    #[test]
    fn a_program_that_writes_too_much_is_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let mut command = Command::new("dd");
        command.args(["if=/dev/zero", "bs=64k"]);
        command.arg(format!("of={}", path.display()));
        let is_small = || std::fs::metadata(&path).is_ok_and(|it| it.len() < 1 << 20);
        let may_go_on = || !path.exists() || is_small();
        let ended = run_while("dd", &mut command, &may_go_on, &AtomicBool::new(false));
        assert!(matches!(ended, Err(Error::Exhausted)), "{ended:?}");
    }
}
