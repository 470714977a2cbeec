//! The command that is recorded, and processes that were started by others.

use super::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};

/// The command or process whose end ends the recording.
#[derive(Debug)]
pub enum Subject {
    /// Nothing: the recording ends by time or by request.
    Open,
    /// A command that was started for the recording.
    Child(Child),
    /// The pidfd of a process that ran already.
    Process(OwnedFd),
}

impl Subject {
    /// Starts `command`, whose first element is the program.
    pub fn start(command: &[String]) -> Result<Subject, Error> {
        let name = command.first().map(String::as_str).unwrap_or_default();
        let child = Command::new(name)
            .args(command.iter().skip(1))
            .spawn()
            .map_err(|source| Error::Command {
                command: name.to_owned(),
                source,
            })?;
        Ok(Subject::Child(child))
    }

    /// Watches the process `pid`.
    pub fn process(pid: u32) -> Result<Subject, Error> {
        // SAFETY: the call takes plain numbers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if fd < 0 {
            return Err(Error::NoTarget(format!("process {pid}")));
        }
        // SAFETY: the kernel just gave it to us.
        Ok(Subject::Process(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Whether the command or process has ended.
    pub fn ended(&mut self) -> bool {
        match self {
            Subject::Open => false,
            // A child that cannot be waited for has ended.
            Subject::Child(child) => !matches!(child.try_wait(), Ok(None)),
            Subject::Process(fd) => is_readable(fd),
        }
    }

    /// Sends SIGTERM to a command that was started for the recording and still runs.
    pub fn ask_to_end(&mut self) {
        if self.is_running_command()
            && let Subject::Child(child) = self
        {
            // SAFETY: the child was not waited for, so its id is its own.
            unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        }
    }

    /// Whether it is a command that was started for the recording and still runs.
    pub fn is_running_command(&mut self) -> bool {
        matches!(self, Subject::Child(_)) && !self.ended()
    }

    /// Waits for a command that was started for the recording, and returns its status.
    pub fn end(&mut self) -> Option<ExitStatus> {
        match self {
            Subject::Child(child) => child.wait().ok(),
            Subject::Open | Subject::Process(_) => None,
        }
    }
}

/// A pidfd becomes readable when the process ends.
fn is_readable(fd: &OwnedFd) -> bool {
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one structure is there, and it does not wait.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_seen_and_its_status_kept() {
        let mut subject = Subject::start(&["false".to_owned()]).unwrap();
        while !subject.ended() {
            std::thread::yield_now();
        }
        assert_eq!(subject.end().and_then(|it| it.code()), Some(1));
    }

    #[test]
    fn a_command_that_still_runs_is_ended_with_the_recording() {
        let mut subject = Subject::start(&["sleep".to_owned(), "1000".to_owned()]).unwrap();
        assert!(!subject.ended());
        subject.ask_to_end();
        let status = subject.end().unwrap();
        assert!(!subject.is_running_command());
        assert!(!status.success());
    }

    #[test]
    fn somebody_elses_process_is_seen_to_end() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut subject = Subject::process(child.id()).unwrap();
        assert!(!subject.ended());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(subject.ended());
        assert!(matches!(
            Subject::process(u32::MAX >> 1),
            Err(Error::NoTarget(_))
        ));
    }
}
