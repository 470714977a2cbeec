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
    [ "$last" = -initrd ] && orders=$argument
    last=$argument
done
"#;

const ROW: &str = r#"{"message":"row","workload":"m1","load":"idle","policy":"none","metric":"total_ms","unit":"ms","seed":1,"value":1.5}"#;

/// Figures that follow from the guest's orders, as a guest's do, with all digits that a figure may have.
const FIGURES: &str = r#"
of() { tail -c 16384 "$orders" | grep -ao "\"$1\":[^,]*" | head -n 1 | cut -d : -f 2; }
seed=$(of seed) policy=$(of policy)
figure() {
    printf '{"message":"row","workload":"m1","load":"%s","policy":%s,"metric":"%s","unit":"ms","seed":%s,"value":%s' \
        "$1" "$policy" "$2" "$seed" "$(awk "BEGIN { printf \"%.17g\", $3 * ($seed + 0.1) / 3 }")"
    [ -z "$4" ] || printf ',"series":{"values":[%s]}' "$4"
    echo '}'
}
answer() {
    figure idle step_mean_ms 0.7 1.25,2.5
    figure writer step_mean_ms 2.9 "$seed.5,7.75"
    figure writer background_mb_s 1.3
    echo '{"message":"done","rows":3}'
}
"#;

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

    /// A run of eight guests, of the whole or of a shard.
    fn campaign(&self, shard: &[&str], out: &str) -> Command {
        let mut run = lab(&["run", "smoke", "--policy", "stock,none", "--seeds", "1..4"]);
        run.args(shard)
            .arg("--out")
            .arg(self.root.path().join(out))
            .env(
                "PATH",
                self.run()
                    .get_envs()
                    .find(|it| it.0 == "PATH")
                    .unwrap()
                    .1
                    .unwrap(),
            );
        run
    }

    fn join(&self, directories: &[&str], out: &str) -> Command {
        let root = self.root.path();
        let mut join = lab(&["join"]);
        join.args(directories.iter().map(|it| root.join(it)));
        join.arg("--out").arg(root.join(out));
        join
    }

    fn written(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap()
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
fn joined_shards_are_the_undivided_result_to_the_byte() {
    let guests = Pretended::guest(&format!("{FIGURES} answer > $port"));
    succeeds(&mut guests.campaign(&[], "whole"));
    assert!(guests.written("whole/result.json").contains("isolation_05"));
    for (number, out) in [(5, "b"), (3, "a"), (1, "a"), (2, "a"), (4, "b")] {
        let shard = format!("{number}/5");
        let run = succeeds(&mut guests.campaign(&["--shard", &shard, "--keep"], out));
        assert!(run.stdout.is_empty());
    }
    succeeds(&mut guests.join(&["b", "a"], "joined"));
    for file in ["result.json", "report.html"] {
        let of = |directory: &str| guests.written(&format!("{directory}/{file}"));
        assert!(of("joined") == of("whole"), "{file} differs");
    }
}

#[test]
fn a_shard_writes_down_who_failed_and_is_run_again() {
    let fails = "[ -e \"$0\".repaired ] || [ \"$seed\" != 3 ] || exec echo '{\"message\":\"failed\",\"reason\":\"the disk is away\"}' > $port";
    let guests = Pretended::guest(&format!("{FIGURES} {fails}; answer > $port"));
    let shard = |number: &str| output(&mut guests.campaign(&["--shard", number], "campaign"));
    assert_eq!(code(&shard("1/2")), 6);
    let even = shard("2/2");
    assert_eq!(code(&even), 0, "{}", stderr(&even));
    let written = guests.written("campaign/shard-1-of-2.json");
    assert!(written.contains("the disk is away"));
    assert_eq!(written.matches("\"failure\"").count(), 2);
    assert_eq!(
        written.matches("\"rows\": [").count(),
        3,
        "two guests', and the result's"
    );

    let refused = output(&mut guests.join(&["campaign"], "joined"));
    assert_eq!(code(&refused), 12);
    let said = stderr(&refused);
    assert!(said.contains("lack figures: 1 (2 guests of"), "{said}");
    assert!(!guests.root.path().join("joined").exists());

    fs::write(guests.root.path().join("qemu-system-x86_64.repaired"), "").unwrap();
    assert_eq!(code(&shard("1/2")), 0);
    succeeds(&mut guests.join(&["campaign"], "joined"));
}

#[test]
fn shards_of_other_inputs_are_not_joined() {
    let guests = Pretended::guest(&format!("{FIGURES} answer > $port"));
    succeeds(&mut guests.campaign(&["--shard", "1/2"], "a"));
    for (changed, said) in [
        (["--device", "sd"], "device sd for emmc"),
        (["--scale", "0.5"], "scale 0.5 for demo"),
        (["--workload", "m1"], ""),
        (["--load", "writer"], "seeds, workloads or settings"),
    ] {
        let of_other = [&["--shard", "2/2"][..], &changed].concat();
        succeeds(&mut guests.campaign(&of_other, "b"));
        let joined = output(&mut guests.join(&["a", "b"], "joined"));
        let expected = if said.is_empty() { 0 } else { 11 };
        assert_eq!(code(&joined), expected, "{}", stderr(&joined));
        assert!(stderr(&joined).contains(said), "{}", stderr(&joined));
    }
    let empty = output(&mut guests.join(&["."], "joined"));
    assert_eq!(code(&empty), 12, "{}", stderr(&empty));
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
