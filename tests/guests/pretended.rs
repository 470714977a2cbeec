//! How `frontrow-lab` takes what a guest does, from a pretended one: a program in QEMU's place that
//! writes to the console and the port what a test wants, and boots nothing.

use crate::harness::{code, lab, output, stderr, succeeds};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Finds both files among QEMU's arguments.
const EMULATOR: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo 'QEMU emulator version 7.2.22 (pretended)'; exit; }
for argument; do
    case $argument in
    file:*) console=${argument#file:};;
    *id=port,path=*) port=${argument#*path=};;
    esac
done
"#;

const ROW: &str = r#"{"message":"row","workload":"m1","load":"idle","policy":"none","metric":"total_ms","unit":"ms","seed":1,"value":1.5}"#;

struct Pretended {
    root: TempDir,
}

impl Pretended {
    /// A guest that does this, in the shell.
    fn guest(does: &str) -> Pretended {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("qemu-system-x86_64");
        fs::write(&program, format!("{EMULATOR}{does}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Pretended { root }
    }

    fn out(&self) -> PathBuf {
        self.root.path().join("out")
    }

    /// A run of one guest.
    fn run(&self) -> Command {
        let paths = format!(
            "{}:{}",
            self.root.path().display(),
            std::env::var("PATH").unwrap()
        );
        let mut run = lab(&["run", "smoke", "--policy", "none", "--load", "idle"]);
        run.args(["--seeds", "1", "--json", "--out"])
            .arg(self.out())
            .env("PATH", paths);
        run
    }

    /// The error of a run that has to fail because of its guest.
    #[track_caller]
    fn failure(&self) -> String {
        let output = output(&mut self.run());
        let said = stderr(&output);
        assert_eq!(code(&output), 6, "{said}");
        assert!(output.stdout.is_empty());
        assert!(!self.out().join("result.json").exists());
        assert!(said.contains("experiment smoke, policy none, seed 1"));
        said
    }
}

#[test]
fn figures_arrive_when_the_guest_says_how_many_it_sent() {
    let says = format!("printf '%s\\n' '{ROW}' '{{\"message\":\"done\",\"rows\":1}}' > $port");
    let result = succeeds(&mut Pretended::guest(&says).run()).json();
    assert_eq!(result["rows"][0]["value"], 1.5);
}

#[test]
fn a_message_that_is_lost_damaged_or_cut_short_is_a_failure() {
    let done = r#"{"message":"done","rows":2}"#;
    let lost = format!("printf '%s\\n' '{ROW}' '{done}' > $port");
    let said = Pretended::guest(&lost).failure();
    assert!(said.contains("it sent 2 figures and 1 arrived"), "{said}");

    let damaged = r#"printf '{"message":"row","wor\n' > $port"#;
    let said = Pretended::guest(damaged).failure();
    assert!(said.contains("is damaged"), "{said}");
    assert!(said.contains(r#"{"message":"row","wor"#), "{said}");

    let cut = r#"printf '{"message":"do' > $port"#;
    let said = Pretended::guest(cut).failure();
    assert!(said.contains("is cut short"), "{said}");
}

#[test]
fn a_kernel_that_complains_is_a_failure_whatever_was_measured() {
    let all_is_well =
        format!("printf '%s\\n' '{ROW}' '{{\"message\":\"done\",\"rows\":1}}' > $port");
    let complains = |line: &str| {
        Pretended::guest(&format!("{all_is_well}; echo '[ 1.0] {line}' > $console")).failure()
    };
    let said = complains("WARNING: CPU: 0 PID: 1 at block/test.c:1 test+0x1/0x2");
    assert!(said.contains("its kernel printed a WARNING"), "{said}");
    assert!(said.contains("block/test.c:1"), "{said}");
    let said = complains("Kernel panic - not syncing: sysrq triggered crash");
    assert!(said.contains("its kernel panicked"), "{said}");
    assert!(said.contains("From the guest's console:"), "{said}");
    assert!(said.contains("sysrq triggered crash"), "{said}");
}

#[test]
fn an_emulator_that_fails_is_told_with_its_complaint() {
    let said = Pretended::guest("echo 'no memory left' >&2; exit 1").failure();
    assert!(
        said.contains("QEMU failed (exit status: 1): no memory left"),
        "{said}"
    );
}

#[test]
fn an_interrupt_ends_the_guests_and_removes_their_files() {
    let guest = Pretended::guest("exec sleep 1000");
    let temporary = guest.root.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut run = guest.run();
    let mut lab = run
        .env("TMPDIR", &temporary)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_up = || children(lab.id()).iter().any(|it| it.contains("sleep"));
    until(is_up);
    let guests = children(lab.id());
    // SAFETY: the process is a child that was not waited for yet.
    unsafe { libc::kill(lab.id() as i32, libc::SIGINT) };
    assert_eq!(lab.wait().unwrap().code(), Some(130));
    until(|| {
        guests
            .iter()
            .all(|it| !Path::new(it.split(' ').next().unwrap()).exists())
    });
    assert!(fs::read_dir(&temporary).unwrap().next().is_none());
    assert!(!guest.out().join("result.json").exists());
}

/// Directory in /proc and command line of each process that `parent` has started.
fn children(parent: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten();
    let mut children = Vec::new();
    for task in tasks {
        let listed = fs::read_to_string(task.unwrap().path().join("children"));
        for child in listed.unwrap_or_default().split_whitespace() {
            let directory = format!("/proc/{child}");
            let line = fs::read_to_string(format!("{directory}/cmdline")).unwrap_or_default();
            children.push(format!("{directory} {line}"));
        }
    }
    children
}

/// More than it takes on a busy machine; only a hang is longer.
const LONG: Duration = Duration::from_secs(600);

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONG, "it never happened");
        thread::sleep(Duration::from_millis(20));
    }
}
