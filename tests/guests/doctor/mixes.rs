//! Mixes of apps drawn by chance, over one to three file systems with volumes between. Nobody knows the
//! answer; but a page's parts add up, and what it is sure of agrees with counters of the same seconds that
//! the doctor does not read: the bytes of each cgroup (`io.stat`), and the disks' own (`diskstats`).

use super::reports::{PRELUDE, in_words};
use crate::harness::Left;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use sys::random::Random;

/// What apps do, as options of fio. Each has a cgroup and a file of its own.
const BEHAVIOURS: [(&str, &str); 9] = [
    ("writer", "--rw=write --bs=1m --size=64m"),
    ("patcher", "--rw=randwrite --bs=64k --size=48m"),
    (
        "saver",
        "--rw=write --bs=4k --size=4m --fsync=1 --thinktime=50ms",
    ),
    (
        "database",
        "--rw=randwrite --bs=8k --size=16m --fdatasync=4 --thinktime=20ms",
    ),
    (
        "log",
        "--rw=write --bs=4k --size=4m --sync=dsync --thinktime=30ms",
    ),
    (
        "store",
        "--ioengine=mmap --rw=randwrite --bs=4k --size=1m --fsync=4 --thinktime=30ms",
    ),
    (
        "viewer",
        "--rw=randread --bs=64k --size=64m --direct=1 --thinktime=20ms",
    ),
    ("scanner", "--rw=read --bs=256k --size=64m --direct=1"),
    (
        "copier",
        "--rw=randrw --bs=16k --size=32m --direct=1 --numjobs=2",
    ),
];

/// What lies between a file system and the second disk.
const VOLUMES: [(&str, &str); 4] = [
    ("/dev/simflash1", ""),
    (
        "/dev/mapper/linear",
        "dmsetup create linear --table \"0 524288 linear /dev/simflash1 2048\"",
    ),
    (
        "/dev/loop0",
        "ext4 /dev/simflash1; mkdir -p /below; mount /dev/simflash1 /below; truncate -s 256M /below/image; losetup /dev/loop0 /below/image",
    ),
    (
        "/dev/md_mix",
        "dmsetup create a --table \"0 524288 linear /dev/simflash1 0\"
dmsetup create b --table \"0 524288 linear /dev/simflash1 524288\"
echo md_mix > /sys/module/md_mod/parameters/new_array; at=/sys/block/md_mix/md
echo raid1 > $at/level; echo 2 > $at/raid_disks; echo none > $at/metadata_version
for d in 0 1; do cat /sys/block/dm-$d/dev > $at/new_dev; echo 262144 > $at/dev-dm-$d/size; echo $d > $at/dev-dm-$d/slot; done
echo 262144 > $at/component_size; echo active > $at/array_state",
    ),
];

/// The second disk.
const DISKS: [&str; 4] = ["emmc:fresh", "sd:fresh", "ufs:fresh", "usb-stick"];

/// The counters beside a page.
const COUNT: &str = r#"
count() {
    cat /proc/diskstats > /out/disks.$1
    for it in /sys/fs/cgroup/*/io.stat; do sed "s|^|$(basename $(dirname $it)) |" $it; done > /out/groups.$1
}
"#;

/// A drawn mix.
#[derive(Debug)]
struct Mix {
    /// Names of apps, and their lines.
    apps: Vec<(String, String)>,
    volume: usize,
    disk: &'static str,
}

impl Mix {
    fn drawn(seed: u64) -> Mix {
        let mut random = Random::for_purpose(seed, "a mix of apps");
        let volume = random.index(VOLUMES.len());
        let disk = DISKS[random.index(DISKS.len())];
        let places = ["/mnt", "/second"];
        let number = random.between(2, 5);
        let apps = (0..number).map(|it| {
            let (name, options) = BEHAVIOURS[random.index(BEHAVIOURS.len())];
            let place = places[random.index(places.len())];
            (
                format!("{name}{it}"),
                format!("--filename={place}/{name}{it} {options}"),
            )
        });
        Mix {
            apps: apps.collect(),
            volume,
            disk,
        }
    }

    fn script(&self) -> String {
        let (device, volume) = VOLUMES[self.volume];
        let mut script = format!(
            "export DM_DISABLE_UDEV=1\n{volume}\next4 {device}; mkdir -p /second; mount {device} /second\n"
        );
        for (name, options) in &self.apps {
            let _ = writeln!(script, "group {name}; app {name} {options} --create_only=1");
        }
        script += "cold\n";
        for (name, options) in &self.apps {
            let _ = writeln!(script, "inside {name} app {name} {options} &");
        }
        script += "sleep 3\ncount 0\nfrontrow doctor --seconds 5 --json > /out/page\ncount 1\n";
        script + "sync & kill -9 $(pidof fio) 2> /dev/null\nexit 0\n"
    }
}

/// Counters of the seconds of a page.
struct Counted {
    /// Counters of `io.stat` by cgroup, disk number and name.
    groups: BTreeMap<(String, String, String), u64>,
    /// Numbers of disks by name.
    numbers: BTreeMap<String, String>,
    /// Milliseconds in which a disk was busy, by name.
    busy_ms: BTreeMap<String, u64>,
}

impl Counted {
    fn of(left: &Left) -> Counted {
        let mut counted = Counted {
            groups: BTreeMap::new(),
            numbers: BTreeMap::new(),
            busy_ms: BTreeMap::new(),
        };
        for (name, adds) in [("1", true), ("0", false)] {
            for line in left.text(&format!("disks.{name}")).lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                let disk = words[2].to_owned();
                let number = format!("{}:{}", words[0], words[1]);
                counted.numbers.insert(disk.clone(), number);
                change(counted.busy_ms.entry(disk).or_default(), words[12], adds);
            }
            for line in left.text(&format!("groups.{name}")).lines() {
                let mut words = line.split_whitespace();
                let (group, number) = (words.next().unwrap(), words.next().unwrap_or_default());
                for (counter, value) in words.filter_map(|it| it.split_once('=')) {
                    let key = [group, number, counter].map(str::to_owned);
                    change(counted.groups.entry(key.into()).or_default(), value, adds);
                }
            }
        }
        counted
    }

    /// Sum of these counters of an app on a disk, or on any if that is not named.
    fn sum(&self, app: &str, counters: [&str; 2], disk: Option<&str>) -> u64 {
        let number = disk.and_then(|it| self.numbers.get(it));
        let of_app = self.groups.iter().filter(|((group, on, counter), _)| {
            let is_on = number.is_none_or(|number| number == on);
            group == app && counters.contains(&counter.as_str()) && is_on
        });
        of_app.map(|it| *it.1).sum()
    }
}

fn change(counter: &mut u64, by: &str, adds: bool) {
    let by: u64 = by.parse().unwrap();
    *counter = match adds {
        true => *counter + by,
        false => counter.saturating_sub(by),
    };
}

/// What of a page does not add up, or disagrees with the counters.
fn faults(mix: &Mix, page: &Value, counted: &Counted) -> Vec<String> {
    let verdicts = page["verdicts"].as_array().unwrap();
    let number = |it: &Value, key: &str| it[key].as_f64().unwrap();
    let mut faults = Vec::new();
    let shares: f64 = verdicts.iter().map(|it| number(it, "share")).sum();
    if shares > 1.001 {
        faults.push(format!("shares of {shares}"));
    }
    let apps: Vec<&str> = mix.apps.iter().map(|it| it.0.as_str()).collect();
    for verdict in verdicts {
        let text = |key: &str| verdict[key].as_str().unwrap_or_default();
        if number(verdict, "who_ns") > number(verdict, "lost_ns")
            || number(verdict, "longest_ns") > number(verdict, "lost_ns")
        {
            faults.push(format!("a part above the whole: {verdict}"));
        }
        if verdict["confidence"] != "sure" {
            continue;
        }
        let (who, culprit) = (text("who"), text("culprit"));
        if !apps.contains(&who) {
            faults.push(format!("{who} is surely a victim, and no app of the mix"));
        }
        let is_other = apps.contains(&culprit) && culprit != who;
        // A slow disk works long for few bytes, but not for none.
        if is_other && counted.sum(culprit, ["rbytes", "wbytes"], None) == 0 {
            faults.push(format!(
                "{culprit} is surely to blame, and moved nothing: {verdict}"
            ));
        }
        let is_direct = |it: &&(String, String)| it.0 == culprit && it.1.contains("--direct=1");
        if text("cause") == "dirty_throttling" && mix.apps.iter().any(|it| is_direct(&it)) {
            faults.push(format!("{culprit} makes no page dirty: {verdict}"));
        }
        if let Some(busy_ms) = counted.busy_ms.get(text("disk")) {
            // The doctor watches a part of the counted seconds.
            let waited = (number(verdict, "who_ns") / number(page, "watched_ns")).min(1.0);
            let watched_ms = number(page, "watched_ns") / 1e6;
            let is_of_disk = [
                "device_busy",
                "fsync_behind_writeback",
                "own_commits",
                "slow_device",
            ];
            if is_of_disk.contains(&text("cause")) && (*busy_ms as f64) < 0.25 * waited * watched_ms
            {
                faults.push(format!(
                    "the disk was busy for {busy_ms} ms alone: {verdict}"
                ));
            }
        }
        if text("cause") == "own_commits" {
            let disk = Some(text("disk"));
            let others = apps.iter().filter(|it| **it != who);
            let written = ["wbytes", "dbytes"];
            let others: u64 = others.map(|it| counted.sum(it, written, disk)).sum();
            let own = counted.sum(who, written, disk);
            if others > 4 * own + (16 << 20) {
                faults.push(format!(
                    "others wrote {others} bytes, itself {own}: {verdict}"
                ));
            }
        }
    }
    faults
}

/// The faults of the mix of a seed, with what was drawn.
pub fn run(seed: u64, kernel: &str) -> Vec<String> {
    let mix = Mix::drawn(seed);
    let guest = [
        "--memory",
        "640",
        "--device",
        "emmc:fresh",
        "--limit",
        "200",
    ];
    let with = [
        "--with",
        "fio,dmsetup",
        "--modules",
        "loop,dm_mod,md_mod,raid1",
    ];
    let of_run = ["--kernel", kernel, "--second", mix.disk, "--seed"];
    let seed = seed.to_string();
    let options = [&guest[..], &with, &of_run, &[&seed]].concat();
    let left = Left::by(&options, &format!("{PRELUDE}{COUNT}{}", mix.script()));
    let page = left.json("page");
    let verdicts = in_words(page["verdicts"].as_array().unwrap());
    println!("| {seed} | {mix:?} | {verdicts} |");
    faults(&mix, &page, &Counted::of(&left))
}
