//! `frontrow doctor` in a guest, where the answers are known: an fsync loop beside a writer, a CPU
//! hog, and nobody.

mod known;
mod mixes;
mod noted;
mod reports;
mod trials;

use crate::harness::Left;
use known::{Case, Told, points_off};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use trials::{Answer, Found, How};

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
cp /sys/kernel/btf/vmlinux /tmp/types
mount -t tmpfs none /sys/kernel/btf
frontrow doctor --seconds 3 --btf /tmp/types --json > /out/types
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

    // With the kernel's own types, and with a file's where it has none.
    for page in ["fsync", "types"] {
        let fsync = left.json(page);
        let first = &fsync["verdicts"][0];
        assert_eq!(fsync["level"], "linked", "{fsync}");
        assert_eq!(first["cause"], "fsync_behind_writeback", "{fsync}");
        assert_eq!(
            (&first["who"], &first["culprit"]),
            (&"fio".into(), &"dd".into())
        );
        assert!(first["advice"]["undo"].is_string(), "{fsync}");
    }
}

/// After ten seconds in which nobody is held up the programs are out; they are back for the stall.
const LATER: &str = r#"
cd /mnt
dd if=/dev/zero of=big bs=1M count=96
sync
frontrow doctor --seconds 28 --json > /out/page & doctor=$!
sleep 20
fio --name=saver --rw=write --bs=4k --size=4m --fsync=1 --time_based --runtime=1000 > /dev/null &
sh -c 'while :; do dd if=/dev/zero of=big bs=1M count=96 conv=notrunc; done' &
wait $doctor
"#;

#[test]
fn a_stall_after_a_calm_time_is_linked_as_well() {
    let page = Left::by(&["--with", "fio"], LATER).json("page");
    let first = &page["verdicts"][0];
    assert_eq!(first["cause"], "fsync_behind_writeback", "{page}");
    let names = (&first["who"], &first["culprit"]);
    assert_eq!(names, (&"fio".into(), &"dd".into()));
    let count = |name: &str| first[name].as_u64().unwrap();
    assert!(count("waits") > 5 && count("samples") > 0, "{page}");
    assert_eq!(first["confidence"], "sure", "{page}");
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
frontrow doctor --seconds 3 --try $keep --pairs 4 --window 1 --seed 3 --json > /out/pages
cat $disk > /out/kept
frontrow doctor --undo > /out/undone
cat $disk > /out/after
ls /run/frontrow > /out/left
"#;
/// Without BTF.
const LEVEL_2: &str = "mount -t tmpfs none /sys/kernel/btf";

/// What a trial said, and left; it is undone.
fn tried(level2: &str, keep: &str) -> (Value, Left) {
    let script = TRIAL.replace("$level2", level2).replace("$keep", keep);
    let left = Left::by(&["--with", "fio", "--policy", "frontrow"], &script);
    let pages = left.text("pages");
    let mut pages = serde_json::Deserializer::from_str(&pages).into_iter::<Value>();
    let trial = pages.nth(1).unwrap().unwrap()["trial"].clone();
    assert_eq!(trial["who"], "fio", "{trial}");
    assert!(!left.text("after").contains("[frontrow]"));
    assert!(!left.text("left").contains("doctor-trial"));
    (trial, left)
}

/// Of windows of a second a guest's few samples tell no effect.
#[test]
fn a_trial_has_all_its_windows_and_leaves_nothing() {
    let (trial, left) = tried(LEVEL_2, "");
    assert!(!left.text("kept").contains("[frontrow]"));
    for which in ["with", "without"] {
        let windows = trial["outcome"][which].as_array().map(Vec::len);
        assert_eq!(windows, Some(4), "{trial}");
    }
}

#[test]
#[ignore = "loads iopro's programs for each window, which takes minutes; make stress-doctor"]
fn a_trial_finds_that_the_scheduler_helps_and_keeps_it_until_it_is_undone() {
    let (trial, left) = tried("", "--keep");
    assert_ne!(trial["outcome"]["effect"], "harms", "{trial}");
    assert_eq!(trial["kept"], true, "{trial}");
    assert!(left.text("kept").contains("[frontrow]"));
    assert!(left.text("undone").contains("Undone: "));
}

/// An app that saves beside a copy to a stick, which is what a disk's own dirty limit is for.
const COPY: &str = r#"
/bin/mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 /dev/simflash1
mkdir /stick
mount -t ext4 -o noinit_itable /dev/simflash1 /stick
strict=/sys/class/bdi/$(cat /sys/block/simflash1/dev)/strict_limit
for it in copier saver; do ln -s /bin/busybox /tmp/$it; done
( while :; do ( exec -a dd /tmp/copier if=/dev/zero of=/stick/copy bs=1M count=300 conv=notrunc ); done ) 2> /dev/null &
( while :; do sleep 0.3; ( exec -a dd /tmp/saver if=/dev/zero of=/mnt/save bs=64k count=384 conv=notrunc ); done ) 2> /dev/null &
sleep 4
mount -t tmpfs none /sys/kernel/btf
"#;

fn beside_a_copy(script: &str) -> Left {
    let guest = ["--memory", "768", "--device", "emmc:fresh"];
    let second = ["--second", "usb-stick-slow"];
    Left::by(
        &[guest, [second[0], second[1], "--limit", "300"]].concat(),
        &format!("{COPY}{script}"),
    )
}

/// Killed while the limit is there; the process that waits for its end undoes it.
const KILLED: &str = r#"
frontrow doctor --seconds 2 --try --pairs 4 --window 60 > /dev/null & doctor=$!
until [ "$(cat $strict)" = 1 ]; do sleep 0.1; done
kill -9 $doctor
until [ "$(cat $strict)" = 0 ] && ! [ -e /run/frontrow/doctor-trial ]; do sleep 0.1; done
ls /run/frontrow /run/frontrowd > /out/left
exit 0
"#;

#[test]
fn a_trial_that_is_killed_while_its_change_is_there_is_undone() {
    let left = beside_a_copy(KILLED).text("left");
    assert!(!left.contains("dirty.jsonl"), "{left}");
}

const LIMITS: &str = r#"
frontrow doctor --seconds 4 --try --keep --pairs 4 --window 4 --seed 3 --json > /out/pages
cat $strict > /out/after
ls /run/frontrow /run/frontrowd > /out/left
exit 0
"#;

#[test]
#[ignore = "minutes, as a copy of 300 MB goes on; make stress-doctor"]
fn a_trial_of_dirty_limits_harms_nobody_and_leaves_none() {
    let left = beside_a_copy(LIMITS);
    let pages = left.text("pages");
    let mut pages = serde_json::Deserializer::from_str(&pages).into_iter::<Value>();
    let trial = pages.nth(1).unwrap().unwrap()["trial"].clone();
    assert_eq!(trial["command"], "sudo systemctl enable --now frontrowd");
    assert_ne!(trial["outcome"]["effect"], "harms", "{trial}");
    // The guest has no systemd that could start the service.
    assert_eq!(left.text("after"), "0");
    assert!(!left.text("left").contains("doctor-trial"));
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
    let all = known::run(&cases, "6.12", 1, 2);
    show(&all);
    assert!(all.iter().all(|it| it.is_right), "{all:#?}");
}

/// Which cases, with commas between, which seeds, and which kernel; if they are not set, all, `1..1`
/// and 6.12.
const CASES: &str = "FRONTROW_DOCTOR_CASES";
const SEEDS: &str = "FRONTROW_DOCTOR_SEEDS";
const KERNEL: &str = "FRONTROW_DOCTOR_KERNEL";

fn variable(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn number(name: &str, default: &str) -> u64 {
    variable(name, default).parse().unwrap()
}

fn seeds(default: &str) -> RangeInclusive<u64> {
    let seeds = variable(SEEDS, default);
    let (first, last) = seeds.split_once("..").unwrap();
    first.parse().unwrap()..=last.parse().unwrap()
}

fn is_wanted(case: &str) -> bool {
    let wanted = variable(CASES, "");
    wanted.is_empty() || wanted.split(',').any(|name| name == case)
}

#[test]
#[ignore = "20 minutes for each seed; make stress-doctor"]
fn all_known_causes_and_pairs_come_first() {
    let kernel = variable(KERNEL, "6.12");
    let cases = known::singles().into_iter().chain(known::pairs());
    let cases: Vec<_> = cases.filter(|it| is_wanted(&it.name())).collect();
    let mut all = Vec::new();
    for seed in seeds("1..1") {
        for some in cases.chunks(4) {
            let seen = known::run(some, &kernel, seed, 4);
            show(&seen);
            all.extend(seen);
        }
    }
    assert!(right(&all, 1) >= 0.95);
    assert!(right(&all, 2) >= 0.80);
}

fn show_reports(all: &[reports::Told]) {
    for told in all {
        let right = if told.is_right { "right" } else { "wrong" };
        println!(
            "| {} | {} | {right} | {} |",
            told.case, told.level, told.verdicts
        );
    }
}

#[test]
fn reports_of_stalls_end_in_their_causes() {
    for name in ["postgres", "failing"] {
        let told = reports::run(name, "6.12", 1);
        show_reports(&told);
        assert!(told[0].is_right, "{told:#?}");
        assert!(told.iter().all(|it| !it.is_wrongly_sure), "{told:#?}");
    }
}

/// The bars: nine of ten at level 1, three of four at level 2, and nothing wrong that is said to be sure.
#[test]
#[ignore = "a minute for each case and seed; make stress-doctor"]
fn all_reports_of_stalls_end_in_their_causes() {
    let kernel = variable(KERNEL, "6.12");
    let names = reports::CASES.iter().map(|it| it.name);
    let names: Vec<_> = names.filter(|it| is_wanted(it)).collect();
    let mut all = Vec::new();
    for seed in seeds("1..1") {
        for name in &names {
            let told = reports::run(name, &kernel, seed);
            show_reports(&told);
            all.extend(told);
        }
    }
    let right = |level| {
        let of_level = all.iter().filter(|it| it.level == level);
        let right = of_level.clone().filter(|it| it.is_right).count();
        right as f64 / of_level.count().max(1) as f64
    };
    assert!(all.iter().all(|it| !it.is_wrongly_sure));
    assert!(right(1) >= 0.9, "{}", right(1));
    assert!(right(2) >= 0.75, "{}", right(2));
}

#[test]
#[ignore = "a minute for each of a dozen seeds; make stress-doctor"]
fn whatever_a_mix_of_apps_is_told_agrees_with_other_counters() {
    let kernel = variable(KERNEL, "6.12");
    let faults = seeds("1..12").flat_map(|seed| mixes::run(seed, &kernel));
    let faults: Vec<_> = faults.collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The known answer *fragments*, and room for a second copy after it. How fast the file is read before
/// and after what is advised.
const PIECES: &str = r#"
/bin/mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 /dev/simflash1 40M
mkdir /stick
mount -t ext4 -o noinit_itable /dev/simflash1 /stick
/bin/dd if=/dev/zero of=/stick/room bs=1M count=12
i=0
while /bin/dd if=/dev/zero of=/stick/$i bs=16k count=1; do i=$((i + 1)); done 2> /dev/null
sync
rm /stick/*[13579]
sync
/bin/dd if=/dev/zero of=/stick/film bs=1M count=8
rm /stick/room
sync
echo 3 > /proc/sys/vm/drop_caches
play="fio --name=player --filename=/stick/film --rw=read --bs=128k --size=8m --direct=1 --time_based --output-format=json"
$play --runtime=1000 > /dev/null & player=$!
frontrow doctor --seconds 3 --json > /out/page
kill $player
wait
$play --runtime=2 > /out/before
frontrow defrag --all /stick/film > /out/moved
$play --runtime=2 > /out/after
exit 0
"#;

#[test]
fn a_file_in_pieces_is_read_in_half_the_time_after_what_is_advised() {
    let disks = ["--device", "emmc:fresh", "--second", "usb-stick-slow"];
    let guest = ["--with", "fio", "--memory", "640"];
    let left = Left::by(&[disks, guest].concat(), PIECES);
    let page = left.json("page");
    let first = &page["verdicts"][0];
    assert_eq!(first["cause"], "fragments", "{page}");
    let command = first["advice"]["command"].as_str();
    assert_eq!(command, Some("sudo frontrow defrag --all /stick/film"));
    let rate = |name: &str| {
        left.json(name)["jobs"][0]["read"]["bw_bytes"]
            .as_f64()
            .unwrap()
    };
    let (before, after) = (rate("before"), rate("after"));
    println!(
        "{before} and {after} bytes a second; {}",
        left.text("moved")
    );
    // Each byte waits half as long.
    assert!(after * (1.0 - WON) >= before, "{before} {after}");
}

/// At which level trials are made, of how many pairs and of windows of how many seconds; if they are
/// not set, level 2, 4 and 4.
const LEVEL: &str = "FRONTROW_DOCTOR_LEVEL";
const PAIRS: &str = "FRONTROW_DOCTOR_PAIRS";
const WINDOW: &str = "FRONTROW_DOCTOR_WINDOW";

/// The bars: the sign of what helps in 95 % of the trials, half of the lost time won back on average.
const SIGN: f64 = 0.95;
const WON: f64 = 0.5;
/// Of trials without an effect one in twenty may claim one. So many or more in so few trials happen
/// to a 95 % interval in less than one run of a hundred.
fn most_claims(trials: usize) -> usize {
    let at_most = |claims: usize| {
        let mut chance = 0.95_f64.powi(trials as i32);
        let mut sum = chance;
        for it in 0..claims {
            chance *= (trials - it) as f64 / (it + 1) as f64 / 19.0;
            sum += chance;
        }
        sum
    };
    (0..=trials).find(|it| at_most(*it) >= 0.99).unwrap()
}

#[test]
#[ignore = "minutes for each seed; make stress-doctor"]
fn what_helps_is_told_by_a_trial_and_nothing_where_nothing_is() {
    let how = How {
        kernel: variable(KERNEL, "6.12"),
        level: number(LEVEL, "2"),
        pairs: number(PAIRS, "4"),
        window_s: number(WINDOW, "4"),
    };
    let mut all = Vec::new();
    for seed in seeds("1..1") {
        let trials = trials::all(&how.kernel).into_iter();
        for trial in trials.filter(|it| is_wanted(it.name)) {
            let found = trials::run(&[trial], &how, seed);
            trials::show(&found);
            all.extend(found);
        }
    }
    judge_trials(&all);
}

fn judge_trials(all: &[Found]) {
    let of = |right| all.iter().filter(move |it| it.right == right);
    for it in of(Answer::Nothing) {
        assert!(it.is_right, "{it:?}");
    }
    let (helps, without) = (of(Answer::Helps).count(), of(Answer::NoDifference).count());
    let right = of(Answer::Helps).filter(|it| it.is_right).count();
    assert!(right as f64 >= SIGN * helps as f64, "{right} of {helps}");
    let claims = of(Answer::NoDifference).filter(|it| it.is_effect).count();
    assert!(claims <= most_claims(without), "{claims} of {without}");
    let names: BTreeSet<_> = of(Answer::Helps).map(|it| &it.trial).collect();
    for name in names {
        let won = of(Answer::Helps).filter(|it| it.trial == *name);
        let won: Vec<f64> = won.filter_map(Found::won).collect();
        let mean = won.iter().sum::<f64>() / won.len().max(1) as f64;
        assert!(won.is_empty() || mean >= WON, "{name}: {won:?}");
    }
}
