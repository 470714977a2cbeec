//! A trace in two processes, those of its threads in front and the others behind, each in a
//! cgroup of its own if the user has some: a cgroup of the I/O controller takes whole processes.
//!
//! The one in front opens the target and starts the other, which is this program with the same
//! arguments after `--behind`. That one reads the trace, says `ready`, waits for a line, plays, and
//! says what came of it as JSON.

use super::{failed, file_text};
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::json;
use ::replay::{Error, OnFile, Pace, Part, Target, Trace, on_file};
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

/// How many of a trace's threads are named where one is not known.
const NAMED: usize = 12;

/// One that comes just before the waiting does not end it.
const LOOKS_FOR_SIGNALS: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

#[derive(clap::Args)]
pub struct Grounds {
    /// Threads of the trace that are in front, by name: `Pool*` for all that begin so. A process of
    /// its own plays them, and their times are told apart
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "THREAD,…",
        requires = "onto"
    )]
    pub front: Vec<String>,
    /// Leave out what the other threads did
    #[arg(long, requires = "front", group = "others")]
    alone: bool,
    /// The directory of a cgroup that the process in front is moved to. Give the others one as
    /// well, or leave them out: the process that plays them begins in its parent's
    #[arg(long, value_name = "DIR", requires_all = ["front", "others"])]
    front_cgroup: Option<PathBuf>,
    /// The directory of a cgroup that the process of the other threads is moved to
    #[arg(long, value_name = "DIR", requires = "front", group = "others")]
    behind_cgroup: Option<PathBuf>,
    /// This is the process behind.
    #[arg(long, hide = true, requires = "front")]
    behind: bool,
}

/// What came of both.
#[derive(Serialize)]
struct Report {
    front: OnFile,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<OnFile>,
}

/// What is played, and how.
pub struct Play<'a> {
    pub trace: &'a Trace,
    pub pace: Pace,
    pub loops: u32,
    pub target: Target,
    pub json: bool,
}

impl Grounds {
    /// Plays it and says what came of it.
    pub fn play(&self, play: &Play) -> Result<String, Failure> {
        let (front, behind) = play.trace.split(|name| self.is_front(name));
        if front.operations().is_empty() {
            return Err(unknown(play.trace));
        }
        match self.behind {
            true => self.play_behind(play, &behind),
            false => self.play_front(play, &front, behind.operations().is_empty()),
        }
    }

    fn is_front(&self, name: &str) -> bool {
        self.front.iter().any(|it| match it.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == it,
        })
    }

    fn play_front(&self, play: &Play, front: &Trace, alone: bool) -> Result<String, Failure> {
        let stop = catch_signals()?;
        enter(self.front_cgroup.as_deref())?;
        let part = Part {
            whole: play.trace,
            trace: front,
        };
        let mut other = None;
        let begin = || {
            if !self.alone && !alone {
                other = Some(Other::start()?);
            }
            Ok(())
        };
        let front = on_file(part, play.pace, play.loops, &play.target, begin, &stop);
        // An error ends the other one, too: it is dropped.
        let report = Report {
            front: front.map_err(failed)?,
            behind: other.map(|it| it.finish(&stop)).transpose()?,
        };
        match play.json {
            true => json(&report),
            false => Ok(report.text(&play.target.path)),
        }
    }

    fn play_behind(&self, play: &Play, behind: &Trace) -> Result<String, Failure> {
        let stop = catch_signals()?;
        enter(self.behind_cgroup.as_deref())?;
        let part = Part {
            whole: play.trace,
            trace: behind,
        };
        let target = Target {
            overwrite: true,
            prepare: false,
            claimed: true,
            ..play.target.clone()
        };
        let begin = || wait_for_the_word().map_err(lost);
        let played = on_file(part, play.pace, play.loops, &target, begin, &stop);
        json(&played.map_err(failed)?)
    }
}

impl Report {
    fn text(&self, path: &Path) -> String {
        let mut text = String::new();
        let behind = self.behind.as_ref().map(|it| ("behind", it));
        for (ground, result) in [("in front", &self.front)].into_iter().chain(behind) {
            let _ = write!(text, "{ground}: {}", file_text(result, path));
        }
        text
    }
}

/// The process behind; it ends with this value.
struct Other {
    process: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Other {
    /// Returns when both may begin.
    fn start() -> Result<Other, Error> {
        let mut arguments = std::env::args_os().skip(1);
        let mut process = Command::new("/proc/self/exe")
            .arg0("frontrow")
            .args(arguments.by_ref().take(1))
            // Before what a user may have put after `--`.
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

    /// Reads nothing before there is something, or a signal would wait as long.
    fn wait(&self, stop: &AtomicBool) -> Result<(), Error> {
        while !stop.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(self.said.get_ref(), PollFlags::IN)];
            match poll(&mut fds, Some(&LOOKS_FOR_SIGNALS)) {
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
            // It has said why.
            _ => Err(Failure::new(
                Exit::Internal,
                format_args!("the process behind ended with {ended}"),
            )),
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const READY: &str = "ready";

fn wait_for_the_word() -> io::Result<()> {
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
    Error::Io {
        verb: "play beside",
        path: "the other process".into(),
        source,
    }
}

/// Moves this process, before it has threads that matter.
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
        [] => "the trace does not name its threads, so none can be put in front: use one in the format phone".to_owned(),
        most => format!(
            "the trace has no such thread in that time; those with the most operations are {}",
            most.join(", ")
        ),
    };
    Failure::new(Exit::Usage, sentence)
}
