//! `frontrow-lab age` as a user runs it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn age(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frontrow-lab"))
        .arg("age")
        .arg(directory)
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn a_directory_is_used_for_days_and_another_like_it() {
    let parent = tempfile::tempdir().unwrap();
    let of = ["--size", "32", "--days", "11", "--sessions", "1", "--json"];
    let [one, same] = ["one", "same"].map(|name| -> Value {
        let output = age(&parent.path().join(name), &of);
        assert!(output.status.success(), "{output:?}");
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        for app in report["apps"].as_array_mut().unwrap() {
            // Where files come to lie is the file system's doing.
            app["dof_l"].take();
        }
        report
    });
    assert_eq!(one, same);
    assert_eq!(one["sessions"], 11);
    let bytes = one["files_bytes"].as_u64().unwrap();
    assert!(bytes.abs_diff(32_000_000 / 100 * 83) < 1_000_000, "{bytes}");
    let again = age(&parent.path().join("one"), &of);
    assert_eq!(again.status.code(), Some(7));
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("is not empty"), "{said}");
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    for (path, arguments, code, part) in [
        (file.clone(), &["--size", "32"][..], 2, "cannot use"),
        (
            parent.path().join("new"),
            &["--size", "8", "--fill", "10"],
            7,
            "raise --fill",
        ),
        (parent.path().join("new"), &["--fill", "99"], 2, "99"),
    ] {
        let output = age(&path, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{said}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}
