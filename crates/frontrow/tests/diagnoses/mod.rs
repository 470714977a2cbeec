//! Pages of `frontrow doctor` and of its study, of observations made up for them.

use doctor::machine::{Disk, Machine, Mounted};
use doctor::observe::{HeldUp, Memory, Observation, Pressure, Span, Traffic, User, Wait};
use doctor::study::{self, study};
use doctor::{Level, html, judge};
use iopro::wait::Class;
use std::collections::BTreeMap;

const MB: u64 = 1_000_000;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// What is longest: a name of 15 letters, and a file far down.
const LONG_NAME: &str = "Isolated Web Co";
const LONG_FILE: &str = "/home/me/.mozilla/firefox/abcdefgh.default-release/storage/default/https+++\
                         example.org/idb/1234567890aVeryLongNameWithoutAnyBlank.sqlite-wal";

pub fn pages() -> [(&'static str, String); 3] {
    let again = "sudo frontrow doctor --seconds 60 --html why.html";
    let page = |seen: &Observation| html::page(&judge(seen), again);
    [
        ("doctor", page(&stutters())),
        ("doctor-idle", page(&idle())),
        (
            "doctor-study",
            study::page(&study(&stutters(), 3600 * SECOND)),
        ),
    ]
}

fn wait(who: &str, call: &str, class: Class, lost_ns: u64) -> Wait {
    Wait {
        who: who.to_owned(),
        call: Some(call.to_owned()),
        class,
        file: Some("/home/me/notes.db-journal".to_owned()),
        waits: 433,
        lost_ns,
        longest_ns: lost_ns / 80,
        ..Wait::default()
    }
}

fn user(name: &str, written_bytes: u64) -> User {
    User {
        name: name.to_owned(),
        written_bytes,
        cpu_ns: 2 * SECOND,
        ..Default::default()
    }
}

/// A minute in which an app and others wait, most of them for a program that is named to break a page.
fn stutters() -> Observation {
    let mut browser = wait(LONG_NAME, "fsync", Class::JournalCommit, 21 * SECOND);
    browser.other = Some("<script>".to_owned());
    browser.file = Some(LONG_FILE.to_owned());
    let mut saver = wait("sqlite3", "pwrite64", Class::Data, 9 * SECOND);
    saver.other = Some("<script>".to_owned());
    Observation {
        level: Level::Linked,
        watched_ns: 60 * SECOND,
        linked_ns: 60 * SECOND,
        pieces: BTreeMap::new(),
        waits: vec![
            browser,
            saver,
            wait("gcc", "read", Class::Reclaim, 6 * SECOND),
            wait("<script>", "pwrite64", Class::DirtyThrottle, 12 * SECOND),
        ],
        pressure: sum(&minute()),
        over_time: minute(),
        memory: Memory::default(),
        cpu_busy: 0.97,
        users: vec![
            user(LONG_NAME, 3 * MB),
            user("<script>", 2_400 * MB),
            user("sqlite3", 20 * MB),
        ],
        disks: vec![Traffic {
            disk: "mmcblk0".to_owned(),
            requests: 40_000,
            request_ns: 110 * SECOND,
            read_bytes: 700 * MB,
            written_bytes: 2_430 * MB,
            busy_ns: 51 * SECOND,
            unanswered_ns: 0,
        }],
        groups: Vec::new(),
        kernel_blocked: BTreeMap::new(),
        held_up: vec![HeldUp {
            app: "app-notes.scope".to_owned(),
            io_ns: 19 * SECOND,
        }],
        lost_events: 12,
        machine: machine(),
    }
}

/// Pressure by half seconds: a writer begins after 12 seconds, and ends after 48.
fn minute() -> Vec<Span> {
    let span = |place: u64| {
        let phase = place as f64;
        let burst = (24..96).contains(&place);
        let wave = (phase * 0.7).sin() * 0.5 + (phase * 0.23).cos() * 0.5;
        let part = |share: f64| (share.clamp(0.0, 1.0) * 500.0) as u64 * MS;
        Span {
            from_ns: place * 500 * MS,
            until_ns: (place + 1) * 500 * MS,
            pressure: Pressure {
                io_ns: part(if burst {
                    0.75 + wave * 0.3
                } else {
                    wave * 0.06
                }),
                memory_ns: part(if burst { wave * 0.25 } else { 0.0 }),
                cpu_ns: part(0.14 + wave * 0.1),
            },
        }
    };
    (0..120).map(span).collect()
}

fn sum(spans: &[Span]) -> Pressure {
    let all = |of: fn(&Span) -> u64| spans.iter().map(of).sum();
    Pressure {
        io_ns: all(|it| it.pressure.io_ns),
        memory_ns: all(|it| it.pressure.memory_ns),
        cpu_ns: all(|it| it.pressure.cpu_ns),
    }
}

fn idle() -> Observation {
    let mut seen = stutters();
    seen.waits.clear();
    seen.pressure = Pressure::default();
    seen.over_time
        .iter_mut()
        .for_each(|it| it.pressure = Pressure::default());
    seen.cpu_busy = 0.02;
    seen.lost_events = 0;
    seen
}

fn machine() -> Machine {
    let disk = Disk {
        name: "mmcblk0".to_owned(),
        number: "179:0".to_owned(),
        scheduler: Some("mq-deadline".to_owned()),
        depth: 64,
        ..Disk::default()
    };
    let mount = |point: &str, filesystem: &str, disk: Option<&str>| Mounted {
        point: point.to_owned(),
        filesystem: filesystem.to_owned(),
        disk: disk.map(str::to_owned),
        remote: disk.is_none(),
        ..Mounted::default()
    };
    Machine {
        failing: Vec::new(),
        disks: vec![disk],
        mounts: vec![
            mount("/", "ext4", Some("mmcblk0")),
            mount("/srv/music", "nfs4", None),
        ],
        scheduler_rules: vec!["/etc/udev/rules.d/60-<b>scheduler</b>.rules".to_owned()],
        untrimmed: Vec::new(),
        hidden: Vec::new(),
    }
}
