//! `frontrow doctor` in a guest, where the answers are known: an fsync loop beside a writer, a CPU
//! hog, and nobody.

mod known;

use crate::harness::Left;
use known::{Case, Told, points_off};
use serde_json::Value;

/// A page of each case, as JSON.
const SCRIPT: &str = r#"
cd /mnt
frontrow doctor --seconds 3 --json > /out/idle
sh -c 'while :; do :; done' & hog=$!
frontrow doctor --seconds 3 --json > /out/hog
kill $hog
dd if=/dev/zero of=big bs=1M count=96
fio --name=saver --rw=write --bs=4k --size=4m --fsync=1 --time_based --runtime=1000 > /dev/null &
sh -c 'while :; do dd if=/dev/zero of=big bs=1M count=96 conv=notrunc; done' &
sleep 2
frontrow doctor --seconds 3 --json > /out/fsync
"#;

#[test]
fn the_known_answer_comes_first_and_what_is_not_storage_is_not_called_so() {
    let left = Left::by(&["--with", "fio"], SCRIPT);
    assert_eq!(left.json("idle")["verdicts"], Value::Array(Vec::new()));

    let hog = left.json("hog");
    let kinds = hog["verdicts"].as_array().unwrap().iter();
    let kinds: Vec<&Value> = kinds.map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["elsewhere"], "{hog}");
    assert_eq!(hog["verdicts"][0]["cause"], "cpu");

    let fsync = left.json("fsync");
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
$level2
frontrow doctor --seconds 3 --try --pairs 4 --window 1 --seed 3 --json > /out/pages
cat $disk > /out/after
ls /run/frontrow > /out/left
"#;
/// Without BTF.
const LEVEL_2: &str = "mount -t tmpfs none /sys/kernel/btf";

/// What a trial said; it has left nothing.
fn tried(script: &str) -> Value {
    let left = Left::by(&["--with", "fio", "--policy", "frontrow"], script);
    let pages = left.text("pages");
    let mut pages = serde_json::Deserializer::from_str(&pages).into_iter::<Value>();
    let trial = pages.nth(1).unwrap().unwrap()["trial"].clone();
    assert_eq!(trial["who"], "fio", "{trial}");
    assert!(!left.text("after").contains("[frontrow]"));
    assert!(!left.text("left").contains("doctor-trial"));
    trial
}

/// Of windows of a second a guest's few samples tell no effect.
#[test]
fn a_trial_has_all_its_windows_and_leaves_nothing() {
    let trial = tried(&TRIAL.replace("$level2", LEVEL_2));
    for which in ["with", "without"] {
        let windows = trial["outcome"][which].as_array().map(Vec::len);
        assert_eq!(windows, Some(4), "{trial}");
    }
}

#[test]
#[ignore = "loads iopro's programs for each window, which takes minutes; `make slow-tests` runs it"]
fn a_trial_finds_that_the_scheduler_helps() {
    let trial = tried(&TRIAL.replace("$level2", ""));
    assert_eq!(trial["outcome"]["effect"], "helps", "{trial}");
}

fn show(all: &[Told]) {
    for told in all {
        let off = points_off(told).map_or("-".to_owned(), |it| format!("{it:.0}"));
        println!(
            "| {} | {} | {} | {off} | {} |",
            told.case, told.level, told.is_right, told.verdicts
        );
    }
}

/// The share of right verdicts at a level.
fn right(all: &[Told], level: u64) -> f64 {
    let of_level: Vec<_> = all.iter().filter(|it| it.level == level).collect();
    of_level.iter().filter(|it| it.is_right).count() as f64 / of_level.len() as f64
}

#[test]
fn known_causes_come_first_at_both_levels() {
    let names = ["sync of everything", "evicted working set"];
    let cases: Vec<_> = names.iter().map(|it| Case::named(it)).collect();
    let all = known::run(&cases, 1, 2);
    show(&all);
    assert!(all.iter().all(|it| it.is_right), "{all:#?}");
}

/// Which cases, with commas between, and how many seeds; all and one if they are not set.
const CASES: &str = "FRONTROW_DOCTOR_CASES";
const SEEDS: &str = "FRONTROW_DOCTOR_SEEDS";

#[test]
#[ignore = "20 minutes for each seed; `make slow-tests` runs it"]
fn all_known_causes_and_pairs_come_first() {
    let wanted = std::env::var(CASES).unwrap_or_default();
    let is_wanted =
        |it: &Case| wanted.is_empty() || wanted.split(',').any(|name| it.name() == name);
    let cases: Vec<_> = known::singles().into_iter().chain(known::pairs()).collect();
    let cases: Vec<_> = cases.into_iter().filter(is_wanted).collect();
    let seeds = std::env::var(SEEDS).map_or(1, |it| it.parse().unwrap());
    let mut all = Vec::new();
    for seed in 1..=seeds {
        for some in cases.chunks(4) {
            let seen = known::run(some, seed, 4);
            show(&seen);
            all.extend(seen);
        }
    }
    assert!(right(&all, 1) >= 0.95);
    assert!(right(&all, 2) >= 0.80);
}
