//! `frontrow fg` and its daemon at work on a tree that stands for a system.
// Each test file is a crate of its own and uses a part of it.
#![allow(dead_code)]

use crate::system::{APPS, System};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

pub const GAME: &str = "app-game-1.scope";
pub const MAIL: &str = "app-mail-3.scope";

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_frontrow");

/// Not a user of this machine.
pub const NOBODY: u32 = 65534;

/// A program's exit code, output and what it said besides.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

pub fn command(system: &System, arguments: &[&str]) -> Command {
    command_of(Path::new(PROGRAM), system, arguments)
}

pub fn command_of(program: &Path, system: &System, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .arg("fg")
        .args(arguments)
        .arg("--sysroot")
        .arg(system.root())
        .stdin(Stdio::null());
    command
}

pub fn fg(system: &System, arguments: &[&str]) -> Ended {
    let output = command(system, arguments).output().unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn status(system: &System) -> Value {
    let ended = fg(system, &["status", "--json"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let status = serde_json::from_str(&ended.stdout).unwrap();
    crate::schema::check("fg status", &status);
    status
}

/// A daemon that listens.
pub struct Daemon(pub Child);

impl Daemon {
    pub fn start(system: &System) -> Self {
        let mut command = command(system, &["daemon"]);
        let daemon = Daemon(command.stderr(Stdio::piped()).spawn().unwrap());
        until(|| status(system)["daemon"] == true);
        daemon
    }

    pub fn signal(&mut self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Its exit code, if no signal ended it.
    pub fn wait(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended, as it should.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Nothing takes a minute, on any machine.
pub fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("it does not come to be so");
}

pub fn path(app: &str) -> String {
    format!("/{APPS}/{app}")
}
