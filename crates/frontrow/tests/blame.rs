//! `frontrow blame`: what it says without stalls, and of those in a file.

use std::path::Path;
use std::process::{Command, Output};

/// Two stalls as frontrow-watch.service notes them, and a line that a power cut tore.
const STALLS: &str = r#"{"number":1,"ended_ms":1764457200000,"stalled_ns":310000000,"verdicts":[{"cause":"fsync behind writeback","who":"fio","culprit":"dd","disk":"sda","file":"/mnt/a","lost_ns":300000000,"confidence":"likely","sentence":"fio waited 300 ms for its fsync behind others' writes, because of dd; disk sda","to_do":"sudo frontrow sched enable sda"}]}
{"number":2,"ended_ms":17644
{"number":0,"ended_ms":1764450000000,"stalled_ns":200000000,"verdicts":[]}
"#;

fn blame(file: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["blame", "--file"])
        .arg(file)
        .args(arguments)
        .env("TZ", "UTC")
        .output()
        .unwrap()
}

#[test]
fn stalls_are_told_the_last_one_first() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("stalls");
    std::fs::write(&file, STALLS).unwrap();
    let all = blame(&file, &["--since", "2025-11-29"]);
    let text = String::from_utf8(all.stdout).unwrap();
    assert_eq!(
        text,
        "2 stalls since 2025-11-29 00:00:00, 510 ms in all.\n\n\
         2025-11-29 23:00:00, for 310 ms: fsync behind writeback\n   \
         fio waited 300 ms for its fsync behind others' writes, because of dd; disk sda; likely.\n   \
         What to do: sudo frontrow sched enable sda.\n\n\
         2025-11-29 21:00:00, for 200 ms: not known; no task was seen to wait\n"
    );
    let late = blame(&file, &["--since", "2025-11-29 22:00", "--json"]);
    crate::schema::check_text("blame", &late.stdout);
    let late: serde_json::Value = serde_json::from_slice(&late.stdout).unwrap();
    assert_eq!(late["stalls"][0]["verdicts"][0]["culprit"], "dd");
    assert_eq!(late["stalls"].as_array().map(Vec::len), Some(1));
    let none = blame(&file, &["--since", "0s"]);
    assert!(none.stdout.starts_with(b"No stall since "), "{none:?}");
}

#[test]
fn where_nothing_was_noted_it_says_how_to_begin() {
    let directory = tempfile::tempdir().unwrap();
    let none = blame(&directory.path().join("stalls"), &[]);
    assert_eq!(none.status.code(), Some(2));
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(
        said.contains("systemctl enable --now frontrow-watch"),
        "{said}"
    );
    let wrong = blame(directory.path(), &["--since", "lately"]);
    assert_eq!(wrong.status.code(), Some(2));
}
