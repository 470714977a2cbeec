//! `frontrow bench` as a user runs it: output, exit codes, nothing left behind.

use crate::terminal::Session;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Below the build directory, which is on a disk where /tmp may not be.
fn disk_directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frontrow"));
    command.arg("bench").args(arguments);
    command
}

/// A tiny run that has to succeed.
fn tiny(path: &str, options: &[&str]) -> Output {
    let arguments = [&[path, "--load=idle", "--scale=0.01"], options].concat();
    let output = bench(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_run_prints_figures_and_leaves_nothing() {
    let directory = disk_directory();
    let path = directory.path().to_str().unwrap();
    let output = tiny(path, &["--workload=m1,m4", "--seeds=1"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("fsync mean") && text.contains("truncate mean"),
        "{text}"
    );
    let progress = stderr(&output);
    assert!(progress.contains("will be written"), "{progress}");
    assert!(progress.contains("[2/2] m4, seed 1"), "{progress}");
    assert_eq!(entries(directory.path()), 0);
}

/// Without --seeds it runs until it knows, and says how well.
#[test]
fn how_often_it_runs_is_decided_by_the_spread() {
    let directory = disk_directory();
    let path = directory.path().to_str().unwrap();
    let output = tiny(path, &["--workload=m1", "--json"]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = result["rows"].as_array().unwrap().iter();
    let seeds = rows.map(|row| row["seed"].as_u64().unwrap()).max().unwrap();
    assert!((3..=10).contains(&seeds), "{seeds}");
    let said = stderr(&output);
    let is_known = said.contains(&format!("{seeds} seeds: each mean is known"));
    assert!(
        is_known || said.contains(&format!("Too noisy: after {seeds} seeds")),
        "{said}"
    );
}

#[test]
fn two_results_are_compared() {
    let directory = disk_directory();
    let path = directory.path().to_str().unwrap();
    let results = tempfile::tempdir().unwrap();
    let file = results.path().join("result.json");
    let file = file.to_str().unwrap();
    tiny(path, &["--workload=m1", "--seeds=1", "--out", file]);
    let output = bench(&["compare", file, file]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("m1 total") && text.contains("×1.00"),
        "{text}"
    );
    assert!(text.contains("One seed cannot tell"), "{text}");

    let slower = results.path().join("slower.json");
    let mut result: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    for row in result["rows"].as_array_mut().unwrap() {
        row["value"] = (2.0 * row["value"].as_f64().unwrap()).into();
    }
    fs::write(&slower, result.to_string()).unwrap();
    let output = bench(&["compare", file, slower.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("×2.00  unclear") && !text.contains("worse"),
        "{text}"
    );
}

#[test]
fn an_interrupt_ends_the_run_and_removes_its_files() {
    let directory = disk_directory();
    let path = directory.path().to_str().unwrap();
    let mut child = bench(&[path, "--workload", "a", "--load", "idle", "--scale", "full"])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while entries(directory.path()) == 0 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(entries(directory.path()), 0);
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence_with_its_own_code() {
    let directory = disk_directory();
    let here = directory.path().to_str().unwrap();
    let refused: [(&[&str], i32, &str); 5] = [
        (&["/nonexistent"], 2, "is not a directory"),
        (&["/dev/shm"], 3, "is in memory"),
        (
            &[here, "--workload", "share", "--load", "idle"],
            2,
            "choose one",
        ),
        (
            &[here, "--load", "idle", "--out", "/nonexistent/file"],
            2,
            "cannot write /nonexistent",
        ),
        (
            &["compare", "/dev/null", "/dev/null"],
            2,
            "cannot use /dev/null as a result",
        ),
    ];
    for (arguments, code, part) in refused {
        let output = bench(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let text = stderr(&output);
        let sentence = text.lines().last().unwrap_or_default();
        assert!(sentence.contains(part), "{sentence}");
    }
    assert_eq!(entries(directory.path()), 0);
}

/// Flash wears out, so a user at a terminal is asked before much is written.
#[test]
fn much_is_not_written_without_a_yes() {
    let directory = disk_directory();
    let path = directory.path().to_str().unwrap();
    let mut command = bench(&[path, "--workload=m2", "--load=writer", "--scale=full"]);
    let mut session = Session::start((24, 100), &mut command);
    session.wait_for("GB will be written", 0);
    session.wait_for("Go on? [y/N]", 0);
    session.press("n\n");
    assert_eq!(session.wait_for_end().code(), Some(7));
    session.wait_for("nothing was written", 0);
    assert_eq!(entries(directory.path()), 0);
}
