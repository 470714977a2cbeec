//! `frontrow blame`: what it says without stalls, and of those in a file.

use doctor::noted::{Blamed, Ledger, Noted, Readers};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

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

/// `frontrow blame notify` with a notify-send that leaves its words in a file.
fn notify(directory: &Path) -> Child {
    let sender = directory.join("notify-send");
    let leave = format!(
        "#!/bin/sh\nfor it; do echo \"$it\"; done >> {}/shown\n",
        directory.display()
    );
    fs::write(&sender, leave).unwrap();
    fs::set_permissions(&sender, fs::Permissions::from_mode(0o755)).unwrap();
    Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["blame", "notify", "--told"])
        .arg(directory.join("told"))
        .env("PATH", directory)
        .spawn()
        .unwrap()
}

fn stall(stalled_ms: u64, who: &str) -> Noted {
    let verdict = Blamed {
        cause: "fsync behind writeback".to_owned(),
        who: who.to_owned(),
        culprit: Some("dd".to_owned()),
        disk: None,
        file: None,
        lost_ns: 1,
        confidence: "likely".to_owned(),
        sentence: format!("{who} waited for <dd>"),
        to_do: None,
    };
    Noted {
        number: 0,
        ended_ms: 0,
        stalled_ns: stalled_ms * 1_000_000,
        verdicts: vec![verdict],
    }
}

#[test]
fn a_session_is_told_of_long_stalls_once_a_minute() {
    let directory = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(&directory.path().join("told"), Readers::All).unwrap();
    ledger.add(stall(5000, "before")).unwrap();
    let mut notify = notify(directory.path());
    let shown = || fs::read_to_string(directory.path().join("shown")).unwrap_or_default();
    let until = Instant::now() + Duration::from_secs(60);
    while !shown().contains("What to do") && Instant::now() < until {
        ledger.add(stall(300, "short")).unwrap();
        ledger.add(stall(2000, "long")).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    notify.kill().unwrap();
    notify.wait().unwrap();
    assert_eq!(
        shown(),
        "--app-name=Frontrow\n--icon=drive-harddisk\n--\nStorage stalled for 2.00 s\n\
         long waited for &lt;dd&gt; (likely). What to do: sudo frontrow blame\n"
    );
}

#[test]
fn a_session_without_notes_of_stalls_is_told_how_to_begin() {
    let directory = tempfile::tempdir().unwrap();
    let mut none = notify(directory.path());
    assert_eq!(none.wait().unwrap().code(), Some(2));
}
