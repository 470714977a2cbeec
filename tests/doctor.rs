//! `frontrow doctor` in a guest, where the answers are known: an fsync loop beside a writer, a CPU
//! hog, and nobody.

use serde_json::Value;
use std::process::Command;
use tempfile::TempDir;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A page of each case, as JSON.
const SCRIPT: &str = r#"
cd /mnt
frontrow doctor --seconds 4 --json > /out/idle
sh -c 'while :; do :; done' & hog=$!
frontrow doctor --seconds 4 --json > /out/hog
kill $hog
dd if=/dev/zero of=big bs=1M count=96
fio --name=saver --rw=write --bs=4k --size=4m --fsync=1 --time_based --runtime=1000 > /dev/null &
sh -c 'while :; do dd if=/dev/zero of=big bs=1M count=96 conv=notrunc; done' &
sleep 2
frontrow doctor --seconds 5 --json > /out/fsync
"#;

/// Runs a script in a guest with fio; gives what it left in `/out`.
fn in_guest(options: &[&str], script: &str) -> TempDir {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["lab", "exec", "--with", "fio"])
        .args(options)
        .arg("--out")
        .arg(out.path())
        .args(["--", "busybox", "sh", "-c", script])
        .current_dir(CHECKOUT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    out
}

#[test]
fn the_known_answer_comes_first_and_what_is_not_storage_is_not_called_so() {
    let out = in_guest(&[], SCRIPT);
    let page = |name: &str| -> Value {
        let bytes = std::fs::read(out.path().join(name)).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    assert_eq!(page("idle")["verdicts"], Value::Array(Vec::new()));

    let hog = page("hog");
    let kinds = hog["verdicts"].as_array().unwrap().iter();
    let kinds: Vec<&Value> = kinds.map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["elsewhere"], "{hog}");
    assert_eq!(hog["verdicts"][0]["cause"], "cpu");

    let fsync = page("fsync");
    let first = &fsync["verdicts"][0];
    assert_eq!(fsync["level"], "linked");
    assert_eq!(first["cause"], "fsync_behind_writeback", "{fsync}");
    assert_eq!(
        (&first["who"], &first["culprit"]),
        (&"fio".into(), &"dd".into())
    );
    assert!(first["advice"]["undo"].is_string(), "{fsync}");
}

/// An app that saves five times a second beside a writer, and a trial of what is advised for it.
const TRIAL: &str = r#"
cd /mnt
disk=/sys/block/simflash0/queue/scheduler
frontrow sched disable simflash0 > /out/disabled
/bin/dd if=/dev/zero of=big bs=1M count=96
fio --name=saver --rw=write --bs=4k --size=4m --fsync=1 --thinktime=200ms --time_based --runtime=1000 > /dev/null &
sh -c 'while :; do /bin/dd if=/dev/zero of=big bs=1M count=96 conv=notrunc; done' &
sleep 2
frontrow doctor --seconds 5 --try --pairs 4 --window 2 --seed 3 --json > /out/pages
cat $disk > /out/after
ls /run/frontrow > /out/left
"#;

#[test]
fn a_trial_finds_that_the_scheduler_helps_and_leaves_nothing() {
    let out = in_guest(&["--policy", "frontrow"], TRIAL);
    let left = |name: &str| std::fs::read_to_string(out.path().join(name)).unwrap();
    let pages = left("pages");
    let mut pages = serde_json::Deserializer::from_str(&pages).into_iter::<Value>();
    let trial = pages.nth(1).unwrap().unwrap()["trial"].clone();
    assert_eq!(trial["outcome"]["effect"], "helps", "{trial}");
    assert_eq!(trial["who"], "fio");
    assert!(!left("after").contains("[frontrow]"));
    assert!(!left("left").contains("doctor-trial"));
}
