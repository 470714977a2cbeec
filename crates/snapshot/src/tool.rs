//! Running e2fsprogs.

use crate::Error;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often the flag that ends it all is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Runs `command`, whose program is `name`, to its end; what it printed.
///
/// # Errors
/// [`Error::NoTool`], [`Error::Tool`], or [`Error::Interrupted`], and then the program has been
/// ended.
pub(crate) fn run(
    name: &'static str,
    command: &mut Command,
    stop: &AtomicBool,
) -> Result<String, Error> {
    let mut child = command
        // They are in sbin, which not everybody's path has.
        .env("PATH", path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(name, &error))?;
    let printed = gather(child.stdout.take());
    let said = gather(child.stderr.take());
    let good = wait(&mut child, stop).map_err(|error| tool_failed(name, &error.to_string()));
    let printed = printed.join().unwrap_or_default();
    let said = said.join().unwrap_or_default();
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    match good? {
        true => Ok(printed),
        false => Err(tool_failed(name, last_line(&said))),
    }
}

fn path() -> String {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
    format!("{path}:/usr/sbin:/sbin")
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

/// Reads a pipe to its end, whatever else goes on, so that the program never waits for it.
fn gather(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read is a program that has gone: its status tells.
        let _ = pipe.map(|mut it| it.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, stop: &AtomicBool) -> io::Result<bool> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if stop.load(Ordering::Relaxed) {
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
