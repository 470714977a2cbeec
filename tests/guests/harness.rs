//! How a test starts `frontrow-lab`, and reads what that prints and leaves.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

/// End of the line by which `frontrow-lab` tells of a guest that it did not run.
const KEPT: &str = "the verdict of the same guest was kept";

pub const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A program that is started in the checkout.
pub fn program(path: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    command
        .args(arguments)
        .current_dir(CHECKOUT)
        .stdin(Stdio::null());
    command
}

/// `frontrow-lab` with these arguments.
pub fn lab(arguments: &[&str]) -> Command {
    program(Path::new(env!("CARGO_BIN_EXE_frontrow-lab")), arguments)
}

/// The option by which a guest of exact time that ran before is not run again. `FRESH=1` runs all.
pub fn keep() -> &'static [&'static str] {
    match std::env::var_os("FRESH") {
        Some(_) => &[],
        None => &["--keep"],
    }
}

/// `frontrow-lab exec` with these options and a script for the guest's shell.
pub fn exec(options: &[&str], script: &str) -> Command {
    let mut command = lab(&["exec"]);
    command
        .args(keep())
        .args(options)
        .args(["--", "busybox", "sh", "-c", script]);
    command
}

/// Runs a command to its end, good or bad.
pub fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    // So that whoever runs all tests can count the guests that were not run.
    for line in stderr(&output).lines().filter(|it| it.ends_with(KEPT)) {
        println!("{line}");
    }
    output
}

/// Runs a command, which has to succeed.
#[track_caller]
pub fn succeeds(command: &mut Command) -> Said {
    Said::of(output(command))
}

/// How a command ended that was not killed.
pub fn code(output: &Output) -> i32 {
    output.status.code().expect("not ended by a signal")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command printed that succeeded.
pub struct Said {
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    #[track_caller]
    fn of(output: Output) -> Said {
        let stderr = stderr(&output);
        assert!(output.status.success(), "{}: {stderr}", output.status);
        let stdout = String::from_utf8(output.stdout).unwrap();
        Said { stdout, stderr }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// One JSON value after another.
    pub fn values(&self) -> Vec<Value> {
        let values = serde_json::Deserializer::from_str(&self.stdout).into_iter();
        values.collect::<Result<_, _>>().unwrap()
    }
}

/// What a guest's script left in `/out`.
pub struct Left(TempDir);

impl Left {
    /// By a script that has to succeed, with these options of `frontrow-lab exec`.
    #[track_caller]
    pub fn by(options: &[&str], script: &str) -> Left {
        let left = Left(TempDir::new().unwrap());
        let out = ["--out", left.0.path().to_str().unwrap()];
        succeeds(&mut exec(&[options, &out].concat(), script));
        left
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Without the line's end after the last word.
    pub fn text(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(name)).unwrap();
        text.trim_end().to_owned()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }
}

/// Keeps two cores busy until it is dropped.
pub struct Busy(&'static AtomicBool);

impl Busy {
    pub fn new() -> Busy {
        let stop: &AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        for _ in 0..2 {
            thread::spawn(|| while !stop.load(Ordering::Relaxed) {});
        }
        Busy(stop)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
