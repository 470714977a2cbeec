//! `frontrow replay` as a user runs it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const TRACE: &str = "fio version 3 iolog\n0 d write 0 65536\n10 d read 0 4096\n\
    20 d trim 65536 4096\n30 d sync 0 0\n500 d write 4096 4096\n";

fn replay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .arg("replay")
        .args(arguments)
        .output()
        .unwrap()
}

fn written(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn through_the_flash_core_the_same_trace_gives_the_same_figures() {
    let directory = tempfile::tempdir().unwrap();
    let trace = written(directory.path(), "trace", TRACE);
    let of = || -> Value {
        let output = replay(&[&trace, &trace, "--loops", "3", "--pace", "mixed", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["host_ns"].take();
        report["page_operations_per_host_s"].take();
        report
    };
    let report = of();
    assert_eq!(report, of());
    assert_eq!(report["operations"], 30);
    assert_eq!(report["counters"]["host_write_pages"], 6 * 17);
    assert_eq!(report["times"]["discard"]["count"], 6);
    assert!(report["write_amplification"].as_f64().unwrap() > 0.0);
}

#[test]
fn onto_a_file_it_says_how_long_operations_took() {
    let directory = tempfile::tempdir().unwrap();
    let trace = written(directory.path(), "trace", TRACE);
    let file = directory.path().join("file");
    let onto = ["--onto", file.to_str().unwrap(), "--buffered"];
    let output = replay(&[&[trace.as_str()], onto.as_slice()].concat());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("5 operations onto "), "{text}");
    assert_eq!(file.metadata().unwrap().len(), 17 * 4096);
    let again = replay(&[&[trace.as_str()], onto.as_slice()].concat());
    assert_eq!(again.status.code(), Some(7));
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("--overwrite destroys"), "{said}");
}

#[test]
fn what_cannot_be_replayed_is_said_in_one_sentence_with_its_own_code() {
    let directory = tempfile::tempdir().unwrap();
    let broken = written(
        directory.path(),
        "broken",
        &TRACE.replace("20 d trim", "20 d trip"),
    );
    let no_trace = written(directory.path(), "no-trace", "hello\n");
    for (arguments, code, part) in [
        (vec![broken.as_str()], 2, "line 4 of"),
        (vec![no_trace.as_str()], 2, "no trace that is known"),
        (vec!["/nonexistent"], 2, "cannot read /nonexistent"),
        (vec![broken.as_str(), "--device", "tape"], 2, "line 4 of"),
        (vec![broken.as_str(), "--speed", "0"], 2, "give a number"),
    ] {
        let output = replay(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{said}");
        assert!(output.stdout.is_empty());
    }
}
