//! `frontrow doctor` in a guest, where the answers are known: an fsync loop beside a writer, a CPU
//! hog, and nobody.

use serde_json::Value;
use std::process::Command;

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

#[test]
fn the_known_answer_comes_first_and_what_is_not_storage_is_not_called_so() {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["lab", "exec", "--with", "fio", "--out"])
        .arg(out.path())
        .args(["--", "busybox", "sh", "-c", SCRIPT])
        .current_dir(CHECKOUT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
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

/// Two trials and one that is killed in the middle of a window with the change.
const TRIALS: &str = r#"
cd /mnt
disk=/sys/block/simflash0/queue/scheduler
frontrow sched disable simflash0 > /out/disabled
write() { while [ ! -e /out/enough ]; do /bin/dd if=/dev/zero of=big bs=1M count=96 conv=notrunc; done; }
/bin/dd if=/dev/zero of=big bs=1M count=96
fio --name=saver --rw=write --bs=4k --size=4m --fsync=1 --thinktime=200ms --time_based --runtime=1000 > /dev/null &
write &
sleep 2
frontrow doctor --seconds 4 --try --pairs 4 --window 3 --json > /out/helps
cat $disk > /out/after
# Of seed 4 the first window is one with the change.
frontrow doctor --seconds 3 --try --window 600 --seed 4 > /out/page & trial=$!
for second in $(seq 60); do grep -q '\[frontrow\]' $disk && break; sleep 1; done
cat $disk > /out/in_force
kill -9 $trial
for second in $(seq 60); do [ -e /run/frontrow/doctor-trial ] || break; sleep 1; done
cat $disk > /out/undone
# Nobody writes any more when the windows begin.
(sleep 6; touch /out/enough; killall dd) &
frontrow doctor --seconds 5 --try --pairs 4 --window 3 --json > /out/nothing
cat $disk >> /out/after
"#;

#[test]
fn a_trial_finds_the_effect_and_none_where_there_is_none_and_leaves_nothing() {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["lab", "exec", "--device", "emmc:fresh"])
        .args(["--policy", "frontrow", "--with", "fio", "--out"])
        .arg(out.path())
        .args(["--", "busybox", "sh", "-c", TRIALS])
        .current_dir(CHECKOUT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let left = |name: &str| std::fs::read_to_string(out.path().join(name)).unwrap();
    let trial = |name: &str| {
        let text = left(name);
        let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        documents.nth(1).unwrap().unwrap()["trial"].clone()
    };
    let helps = trial("helps");
    assert_eq!(helps["outcome"]["effect"], "helps", "{helps}");
    assert_eq!(helps["who"], "fio");
    let nothing = trial("nothing");
    assert_eq!(nothing["outcome"]["effect"], "no_difference", "{nothing}");
    assert!(left("in_force").contains("[frontrow]"));
    assert!(!left("undone").contains("[frontrow]"));
    assert!(!left("after").contains("[frontrow]"));
}
