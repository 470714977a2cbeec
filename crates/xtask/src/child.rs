//! A program from its start to its end: what it printed, and what it took.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A test that takes longer hangs: the longest takes minutes.
const LIMIT: Duration = Duration::from_secs(1800);

/// Longest interval at which a running program is looked at.
const LONGEST_POLL: Duration = Duration::from_millis(50);

/// What a program took, with all programs that it started and waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Took {
    /// Seconds on the wall.
    pub wall_s: f64,
    /// CPU seconds, of user and kernel together.
    pub cpu_s: f64,
}

/// How a program ended.
pub struct Ended {
    pub status: ExitStatus,
    /// What it printed, in the order of its writing.
    pub output: String,
    pub took: Took,
    /// It was killed, since it took longer than a test may.
    pub is_late: bool,
}

/// Runs `command` to its end, with no input. It is killed if it takes longer than a test may.
pub fn run(command: &mut Command) -> io::Result<Ended> {
    run_within(Some(LIMIT), command)
}

/// The same for what builds, or runs many tests: however long it takes.
pub fn run_without_limit(command: &mut Command) -> io::Result<Ended> {
    run_within(None, command)
}

fn run_within(limit: Option<Duration>, command: &mut Command) -> io::Result<Ended> {
    let output = tempfile::tempfile()?;
    command.stderr(output.try_clone()?);
    run_into(output, limit, command)
}

/// Builds, with errors shown as they come, which are not in the output then.
pub fn run_with_errors_shown(command: &mut Command) -> io::Result<Ended> {
    run_into(tempfile::tempfile()?, None, command)
}

fn run_into(mut output: File, limit: Option<Duration>, command: &mut Command) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stdout(output.try_clone()?);
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let mut is_late = false;
    let (status, cpu_s) = loop {
        if let Some(ended) = ended(child.id())? {
            break ended;
        }
        if !is_late && limit.is_some_and(|limit| begun.elapsed() > limit) {
            child.kill()?;
            is_late = true;
        }
        // A tenth of a short test is little, and so is the interval of a long one.
        thread::sleep((begun.elapsed() / 10).clamp(Duration::from_micros(500), LONGEST_POLL));
    };
    Ok(Ended {
        status,
        output: text(&mut output)?,
        took: Took {
            wall_s: begun.elapsed().as_secs_f64(),
            cpu_s,
        },
        is_late,
    })
}

/// Exit status and CPU seconds of a child that has ended. It is waited for by that.
fn ended(pid: u32) -> io::Result<Option<(ExitStatus, f64)>> {
    let mut status = 0;
    // SAFETY: all zeroes is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let pid = pid.cast_signed();
    // SAFETY: both pointers are to live variables of this function.
    match unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ => {
            let cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
            Ok(Some((ExitStatus::from_raw(status), cpu_s)))
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_status_and_time_of_a_program_and_its_children_are_told() {
        let script = "echo out; echo error >&2; sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; exit 3";
        let ended = run(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!(ended.output, "out\nerror\n");
        assert!(ended.took.cpu_s > 0.01, "{:?}", ended.took);
        assert!(run(&mut Command::new("/nonexistent")).is_err());
    }

    #[test]
    fn what_hangs_is_killed_where_there_is_a_limit() {
        let limit = Some(Duration::from_millis(10));
        let ended = run_within(limit, Command::new("sleep").arg("60")).unwrap();
        assert!(ended.is_late && !ended.status.success());
        assert!(
            !run_without_limit(&mut Command::new("true"))
                .unwrap()
                .is_late
        );
    }
}
