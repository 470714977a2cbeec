//! `frontrow defrag` where it can do nothing: one sentence, a code of its own, nothing changed.
//! Moving files is for guests (tests/torture.rs).

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn defrag(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .arg("defrag")
        .args(arguments)
        .output()
        .unwrap()
}

fn refuses(arguments: &[&str], code: i32, part: &str) {
    let output = defrag(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(part), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    refuses(&["--check", "/nonexistent"], 2, "cannot open /nonexistent");
    refuses(&["--check", link.to_str().unwrap()], 2, "cannot open");
    refuses(&["/tmp", "--factor", "0.5"], 2, "give a number from 1");
    refuses(&["/tmp", "--check", "--all"], 2, "cannot be used with");
    refuses(&["/tmp", "--rate", "0"], 2, "0 is not in");
}

#[test]
fn what_is_no_recording_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    refuses(
        &[path, "--recording", "/etc/passwd"],
        2,
        "/etc/passwd is not a recording",
    );
    refuses(
        &[path, "--recording", "/nonexistent"],
        1,
        "cannot access /nonexistent",
    );
    refuses(
        &[path, "--recording", "x", "--all"],
        2,
        "cannot be used with",
    );
}

#[test]
fn a_file_system_that_does_not_tell_is_named() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, [1; 9000]).unwrap();
    refuses(
        &["--check", path.to_str().unwrap()],
        3,
        "on a tmpfs file system",
    );
    assert_eq!(std::fs::read(&path).unwrap(), [1; 9000]);
}

#[test]
fn an_empty_directory_is_not_fragmented() {
    let directory = tempfile::tempdir().unwrap();
    let output = defrag(&[directory.path().to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["all"]["files"], 0);
    assert_eq!(report["repair"]["moved_bytes"], 0);
    let output = defrag(&["--check", directory.path().to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Nothing is fragmented."), "{text}");
}

#[test]
fn a_check_changes_nothing() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path: &Path = &directory.path().join("file");
    std::fs::write(path, [1; 9000]).unwrap();
    let before = std::fs::metadata(path).unwrap().modified().unwrap();
    let output = defrag(&["--check", directory.path().to_str().unwrap()]);
    // A file system without FIEMAP says so.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    assert_eq!(std::fs::metadata(path).unwrap().modified().unwrap(), before);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}
