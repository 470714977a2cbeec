//! Replay of a trace in two processes: one plays the foreground threads, the other all others. Each
//! can have its own cgroup, since the I/O controller accounts whole processes.
//!
//! The foreground process opens the target and starts the background process: this program with
//! the same arguments after `--behind`. The background process reads the trace, writes `ready` to
//! stdout, waits for a line on stdin, plays, and writes its result as JSON.

use super::{account, failed, file_text};
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::json;
use ::replay::{Account, Error, OnFile, Pace, Part, Target, Trace, on_file};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use sys::PathError;

/// Number of threads that the error for an unknown thread names.
const NAMED: usize = 12;

/// Interval at which the wait looks at the stop flag: a signal that arrives just before `poll` does
/// not interrupt it.
const SIGNAL_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

#[derive(clap::Args)]
pub struct RoleArgs {
    /// Foreground threads of the trace, by name; `Pool*` selects all names that begin with Pool. A
    /// process of its own plays them, and their times are reported apart
    #[arg(
        id = "front",
        long,
        value_delimiter = ',',
        value_name = "THREAD,…",
        requires = "onto"
    )]
    pub foreground: Vec<String>,
    /// Leave out the operations of all other threads
    #[arg(long, requires = "front", group = "others")]
    alone: bool,
    /// Move the foreground process to the cgroup of this directory. Requires --behind-cgroup or
    /// --alone, since the background process would inherit this cgroup
    #[arg(long = "front-cgroup", value_name = "DIR", requires_all = ["front", "others"])]
    foreground_cgroup: Option<PathBuf>,
    /// Move the background process to the cgroup of this directory
    #[arg(
        long = "behind-cgroup",
        value_name = "DIR",
        requires = "front",
        group = "others"
    )]
    background_cgroup: Option<PathBuf>,
    /// Play the background threads: set only by the foreground process.
    #[arg(long = "behind", hide = true, requires = "front")]
    background: bool,
}

/// Results of both processes.
#[derive(Serialize)]
struct Report {
    #[serde(rename = "front")]
    foreground: OnFile,
    #[serde(rename = "behind", skip_serializing_if = "Option::is_none")]
    background: Option<OnFile>,
    #[serde(flatten)]
    account: Account,
}

/// The trace and the parameters of its replay.
pub struct Play<'a> {
    pub trace: &'a Trace,
    pub pace: Pace,
    pub loops: u32,
    pub target: Target,
    pub json: bool,
}

impl RoleArgs {
    /// Plays the trace and returns the result as text or JSON.
    ///
    /// # Errors
    /// [`Exit::Usage`] if the trace has none of the foreground threads.
    pub fn play(&self, play: &Play) -> Result<String, Failure> {
        let (foreground, background) = play.trace.split(|name| self.is_foreground(name));
        if foreground.operations().is_empty() {
            return Err(unknown(play.trace));
        }
        match self.background {
            true => self.play_background(play, &background),
            false => self.play_foreground(play, &foreground, background.operations().is_empty()),
        }
    }

    fn is_foreground(&self, name: &str) -> bool {
        self.foreground.iter().any(|it| match it.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == it,
        })
    }

    fn play_foreground(
        &self,
        play: &Play,
        foreground: &Trace,
        alone: bool,
    ) -> Result<String, Failure> {
        let stop = catch_signals()?;
        enter(self.foreground_cgroup.as_deref())?;
        let part = Part {
            whole: play.trace,
            trace: foreground,
        };
        let mut other = None;
        let begin = || {
            if !self.alone && !alone {
                other = Some(Other::start()?);
            }
            Ok(())
        };
        let played = on_file(part, play.pace, play.loops, &play.target, begin, &stop);
        // After an error, dropping `other` ends the background process.
        let report = Report {
            foreground: played.map_err(failed)?,
            background: other.map(|it| it.finish(&stop)).transpose()?,
            account: self.account(play.trace, foreground),
        };
        match play.json {
            true => json(&report),
            false => Ok(report.text(&play.target.path)),
        }
    }

    /// The account of the trace, of which `--alone` leaves out the other threads.
    fn account(&self, whole: &Trace, foreground: &Trace) -> Account {
        let mut account = whole.account().clone();
        if self.alone {
            let others = whole.operations().len() - foreground.operations().len();
            account.unplay("of other threads (--alone)", others as u64);
        }
        account
    }

    fn play_background(&self, play: &Play, background: &Trace) -> Result<String, Failure> {
        let stop = catch_signals()?;
        enter(self.background_cgroup.as_deref())?;
        let part = Part {
            whole: play.trace,
            trace: background,
        };
        let target = Target {
            overwrite: true,
            prepare: false,
            claimed: true,
            ..play.target.clone()
        };
        let begin = || await_start().map_err(lost);
        let played = on_file(part, play.pace, play.loops, &target, begin, &stop);
        json(&played.map_err(failed)?)
    }
}

impl Report {
    fn text(&self, path: &Path) -> String {
        let mut text = String::new();
        let background = self.background.as_ref().map(|it| ("background", it));
        for (role, result) in [("foreground", &self.foreground)]
            .into_iter()
            .chain(background)
        {
            let _ = write!(text, "{role}: {}", file_text(result, path));
        }
        text + &account::text(&self.account)
    }
}

/// The background process; it is killed when this value is dropped.
struct Other {
    process: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Other {
    /// Starts the process and returns when both may begin.
    fn start() -> Result<Other, Error> {
        let mut arguments = std::env::args_os().skip(1);
        let mut process = Command::new("/proc/self/exe")
            .arg0("frontrow-lab")
            .args(arguments.by_ref().take(1))
            // Before any `--` of the user's.
            .arg("--behind")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(lost)?;
        let said = process.stdout.take().ok_or_else(|| lost(no_pipe()))?;
        let mut other = Other {
            process,
            said: BufReader::new(said),
        };
        let mut line = String::new();
        other.said.read_line(&mut line).map_err(lost)?;
        if line.trim() != READY {
            return Err(lost(io::Error::other("it ended before it began")));
        }
        let mut word = other.process.stdin.take().ok_or_else(|| lost(no_pipe()))?;
        word.write_all(b"\n").map_err(lost)?;
        Ok(other)
    }

    /// Waits until the process has written something, or `stop` becomes true.
    fn wait(&self, stop: &AtomicBool) -> Result<(), Error> {
        while !stop.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(self.said.get_ref(), PollFlags::IN)];
            match poll(&mut fds, Some(&SIGNAL_POLL)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(lost(errno.into())),
            }
        }
        Err(Error::Interrupted)
    }

    fn finish(mut self, stop: &AtomicBool) -> Result<OnFile, Failure> {
        self.wait(stop).map_err(failed)?;
        let mut text = String::new();
        let read = self.said.read_to_string(&mut text);
        let ended = read.and_then(|_| self.process.wait());
        let ended = ended.map_err(|source| failed(lost(source)))?;
        let result = serde_json::from_str(&text);
        match (ended.success(), result) {
            (true, Ok(result)) => Ok(result),
            // It has printed the reason to stderr.
            _ => Err(Failure::new(
                Exit::Internal,
                format_args!("the background process ended with {ended}"),
            )),
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const READY: &str = "ready";

fn await_start() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{READY}")?;
    stdout.flush()?;
    match io::stdin().lock().read_line(&mut String::new())? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn no_pipe() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

fn lost(source: io::Error) -> Error {
    PathError::of("play beside", Path::new("the other process"))(source).into()
}

/// Moves this process to `cgroup`. It must have one thread only, since threads move together.
fn enter(cgroup: Option<&Path>) -> Result<(), Failure> {
    let Some(cgroup) = cgroup else {
        return Ok(());
    };
    let procs = cgroup.join("cgroup.procs");
    fs::write(&procs, "0").map_err(|error| {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::Usage,
            _ => Exit::from(&error),
        };
        Failure::new(
            exit,
            format_args!(
                "cannot move into the cgroup {} ({error}): make it, and be root",
                cgroup.display()
            ),
        )
    })
}

fn unknown(trace: &Trace) -> Failure {
    let names = trace.operations_by_name();
    let most: Vec<&str> = names
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.is_empty())
        .take(NAMED)
        .collect();
    let sentence = match most.as_slice() {
        [] => "the trace does not name its threads, so none can be played as foreground: use a trace in the format phone".to_owned(),
        most => format!(
            "the trace has no such thread in that time; those with the most operations are {}",
            most.join(", ")
        ),
    };
    Failure::new(Exit::Usage, sentence)
}
