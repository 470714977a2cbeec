//! Execution of e2fsprogs.

use crate::snapshot::Error;
use rustix::fs::fchown;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Gid, Uid, geteuid};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Interval between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(20);

/// What the C library calls ENOSPC.
const NO_SPACE: &str = "No space left on device";

/// Most output of a program that is read. A file system decides how much dumpe2fs prints of it.
const MOST_OUTPUT_BYTES: u64 = 64 << 20;

/// User and group without rights.
const NOBODY: u32 = 65534;

/// Files that a program gets to read and write, and nothing else of root's: what it reads may be made
/// to take it over.
pub(crate) struct Lent {
    files: Vec<File>,
    is_root: bool,
}

impl Lent {
    /// Opens these files, makes those that are missing, and gives them to nobody if this is root.
    pub(crate) fn to_nobody<'a>(paths: impl IntoIterator<Item = &'a Path>) -> io::Result<Self> {
        let is_root = geteuid().is_root();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut files = Vec::new();
        for path in paths {
            let file = options.mode(0o600).open(path)?;
            if is_root {
                fchown(
                    &file,
                    Some(Uid::from_raw(NOBODY)),
                    Some(Gid::from_raw(NOBODY)),
                )?;
            }
            // The program inherits it.
            fcntl_setfd(&file, FdFlags::empty())?;
            files.push(file);
        }
        Ok(Lent { files, is_root })
    }

    /// A file that a program reads with this user's rights.
    pub(crate) fn to_read(file: File) -> io::Result<Self> {
        fcntl_setfd(&file, FdFlags::empty())?;
        Ok(Lent {
            files: vec![file],
            is_root: false,
        })
    }

    /// The paths by which the program opens them.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let numbers = self.files.iter().map(AsRawFd::as_raw_fd);
        numbers.map(|it| PathBuf::from(format!("/proc/self/fd/{it}")))
    }

    /// Has the program run without root's rights.
    pub(crate) fn run_as_nobody(&self, command: &mut Command) {
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY).current_dir("/");
        }
    }
}

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
    let overflows = Arc::new(AtomicBool::new(false));
    let printed = gather(child.stdout.take(), &overflows);
    let said = gather(child.stderr.take(), &overflows);
    let may_go_on = || may_go_on() && !overflows.load(Ordering::Relaxed);
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

/// Reads a pipe to its end in a thread of its own, so that the program never blocks on it. Sets
/// `overflows` if it prints too much.
fn gather(
    pipe: Option<impl Read + Send + 'static>,
    overflows: &Arc<AtomicBool>,
) -> thread::JoinHandle<String> {
    let overflows = overflows.clone();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A read fails only if the program has ended, which its status tells.
        let _ = pipe.map(|it| it.take(MOST_OUTPUT_BYTES).read_to_end(&mut bytes));
        if bytes.len() as u64 == MOST_OUTPUT_BYTES {
            overflows.store(true, Ordering::Relaxed);
        }
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

    /// Like dumpe2fs of a file system that is all small pieces.
    #[test]
    fn a_program_that_prints_too_much_is_ended() {
        let mut command = Command::new("yes");
        let ended = run("yes", &mut command, &AtomicBool::new(false));
        assert!(matches!(ended, Err(Error::Exhausted)), "{ended:?}");
    }

    #[test]
    fn a_program_that_reads_what_others_made_has_no_rights_of_roots() {
        if !geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let secret = directory.path().join("secret");
        std::fs::write(&secret, "root's").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&secret, mode).unwrap();
        let lent = Lent::to_nobody([path.as_path()]).unwrap();
        let mut command = Command::new("sh");
        let script = "id -u; grep CapEff /proc/self/status; cat \"$1\" 2>&1; echo x > \"$0\"";
        command.args(["-c", script]).args(lent.paths()).arg(&secret);
        lent.run_as_nobody(&mut command);
        let said = run("sh", &mut command, &AtomicBool::new(false)).unwrap();
        assert!(
            said.starts_with("65534\nCapEff:\t0000000000000000\n"),
            "{said}"
        );
        assert!(said.contains("Permission denied"), "{said}");
        assert_eq!(std::fs::read(&path).unwrap(), b"x\n");
    }

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
