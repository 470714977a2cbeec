//! Kinds of stalls that people reported: each has an observation by which its cause, its victim and its
//! culprit are known.

use super::tests::{MB, SECOND, disk, mounted, seen, user, wait, writer, writes_to};
use super::*;
use crate::groups::{Group, Limit};
use crate::kernel_threads::DISCARDS;
use crate::machine::{Disk, Mounted};
use crate::observe::{Owner, Part, Party, Traffic, User};
use crate::page;
use iopro::wait::Class;

fn party(process: u32, name: &str, kernel: bool) -> Owner {
    Owner::Party(Party {
        process,
        name: name.to_owned(),
        kernel,
    })
}

fn part(owner: Owner, ns: u64) -> Part {
    on("8:0", owner, ns)
}

fn on(disk: &str, owner: Owner, ns: u64) -> Part {
    Part {
        disk: disk.to_owned(),
        owner,
        ns,
    }
}

/// A wait of five seconds of process 7, with these parts.
fn waited(call: &str, class: Class, parts: Vec<Part>) -> Wait {
    Wait {
        process: 7,
        parts,
        ..wait("app", call, class, 5 * SECOND)
    }
}

/// The first verdict: cause, who, because of whom, how sure.
fn first(seen: &Observation) -> (Cause, String, String, Confidence) {
    let verdict = judge(seen).verdicts.remove(0);
    let culprit = verdict.culprit.unwrap_or_default();
    (verdict.cause, verdict.who, culprit, verdict.confidence)
}

fn first_of(seen: &Observation) -> (Cause, String, Confidence) {
    let (cause, _, culprit, confidence) = first(seen);
    (cause, culprit, confidence)
}

/// A volume above others, with what it did.
fn add(seen: &mut Observation, name: &str, on: &[&str], traffic: Traffic) {
    seen.machine.disks.push(Disk {
        number: format!("254:{}", seen.machine.disks.len()),
        on: on.iter().map(|it| (*it).to_owned()).collect(),
        scheduler: None,
        ..disk(name, false)
    });
    seen.disks.push(Traffic {
        disk: name.to_owned(),
        ..traffic
    });
}

#[test]
fn another_process_of_the_same_name_and_another_thread_are_told_apart_from_the_waiter() {
    let users = || vec![user("app", 200 * MB, 0)];
    let sync = |owner| waited("fdatasync", Class::Sync, vec![part(owner, 4 * SECOND)]);
    let another = seen(vec![sync(party(9, "app", false))], users());
    let behind = Cause::FsyncBehindWriteback;
    assert_eq!(
        first_of(&another),
        (behind, "app".to_owned(), Confidence::Sure)
    );
    let text = page::text(&judge(&another));
    assert!(
        text.contains("because of app, another process of that name (9)"),
        "{text}"
    );
    let thread = seen(vec![sync(party(7, "app", false))], users());
    assert_eq!(first_of(&thread).0, behind);
    assert!(page::text(&judge(&thread)).contains("app itself, by its other threads"));
    let alone = seen(vec![sync(Owner::Waiter)], users());
    assert_eq!(
        first_of(&alone),
        (Cause::OwnCommits, String::new(), Confidence::Sure)
    );
}

/// github.com/syncthing/syncthing/issues/2992: four threads that wait for each other's reads lose most of
/// the time, and whoever they hold up a part of its own.
#[test]
fn whose_threads_hold_up_each_other_and_another_one_is_told_of_after_that() {
    let read = |who: &str, process, lost_ns, parts| Wait {
        who: who.to_owned(),
        process,
        lost_ns,
        ..waited("read", Class::Service, parts)
    };
    let hashing = party(8, "syncthing", false);
    let waits = vec![
        read(
            "syncthing",
            8,
            30 * SECOND,
            vec![
                part(Owner::Waiter, 7 * SECOND),
                part(hashing.clone(), 20 * SECOND),
            ],
        ),
        read("spotify", 9, SECOND, vec![part(hashing, SECOND * 4 / 5)]),
    ];
    let told = first(&seen(waits, vec![]));
    assert_eq!((told.1.as_str(), told.2.as_str()), ("spotify", "syncthing"));
}

/// github.com/namjaejeon/linux-exfat-oot/issues/36: deleting large files holds up who saves.
#[test]
fn who_syncs_behind_a_file_systems_discards_is_told_of_them() {
    let parts = vec![part(party(0, DISCARDS, true), 4 * SECOND)];
    let told = judge(&seen(vec![waited("fdatasync", Class::Sync, parts)], vec![]));
    let verdict = &told.verdicts[0];
    assert_eq!(verdict.culprit.as_deref(), Some("discards"));
    assert!(verdict.to_do.as_ref().unwrap().contains("fstrim.timer"));
    assert_eq!(verdict.advice, None);
}

#[test]
fn workers_of_one_name_that_sync_are_no_victims_of_each_other() {
    let worker = |process, other| Wait {
        who: "npm".to_owned(),
        process,
        ..waited(
            "fsync",
            Class::Sync,
            vec![part(party(other, "npm", false), 4 * SECOND)],
        )
    };
    let shop = Wait {
        who: "shop".to_owned(),
        lost_ns: SECOND,
        ..waited(
            "fsync",
            Class::Sync,
            vec![part(party(11, "npm", false), SECOND / 2)],
        )
    };
    let users = vec![user("npm", 60 * MB, 0), user("shop", MB, 0)];
    let at = seen(vec![worker(11, 12), worker(12, 11), shop], users);
    let told: Vec<_> = judge(&at)
        .verdicts
        .into_iter()
        .map(|it| (it.cause, it.who, it.culprit))
        .collect();
    let npm = "npm".to_owned();
    assert_eq!(
        told,
        [
            (
                Cause::FsyncBehindWriteback,
                "shop".to_owned(),
                Some(npm.clone())
            ),
            (Cause::OwnCommits, npm, None)
        ]
    );
}

/// A sync of a process as samples meet it, for so long.
fn met(who: &str, process: u32, lost_ns: u64) -> Wait {
    Wait {
        who: who.to_owned(),
        process,
        waits: 0,
        samples: 30,
        longest_ns: 0,
        ..wait(who, "fsync", Class::JournalCommit, lost_ns)
    }
}

/// At level 2.
fn seen_sampled(waits: Vec<Wait>, users: Vec<User>) -> Observation {
    Observation {
        level: Level::Sampled,
        linked_ns: 0,
        ..seen(waits, users)
    }
}

/// A user whose processes wrote these bytes.
fn users_of(name: &str, written_by: &[(u32, u64)]) -> User {
    User {
        written_by: written_by.iter().copied().collect(),
        ..writes_to(user(name, written_by.iter().map(|it| it.1).sum(), 0), "sda")
    }
}

#[test]
fn by_samples_another_process_of_the_same_name_and_another_thread_are_told_by_their_bytes() {
    let behind = Cause::FsyncBehindWriteback;
    let postgres = users_of("app", &[(7, MB), (9, 150 * MB)]);
    let at = seen_sampled(vec![met("app", 7, 4 * SECOND)], vec![postgres]);
    let told = first(&at);
    assert_eq!((told.0, told.2.as_str()), (behind, "app"));
    assert!(page::text(&judge(&at)).contains("another process of that name"));

    let mut log = met("app", 7, 4 * SECOND);
    let one = || users_of("app", &[(7, 150 * MB)]);
    let own = seen_sampled(vec![log.clone()], vec![one()]);
    assert_eq!(first(&own).0, Cause::OwnCommits);
    log.own_share = Some(0.01);
    let at = seen_sampled(vec![log], vec![one()]);
    assert_eq!(first(&at).0, behind);
    assert!(page::text(&judge(&at)).contains("app itself, by its other threads"));
}

#[test]
fn by_samples_workers_of_one_name_are_no_victims_of_each_other() {
    let workers: Vec<(u32, u64)> = (11..19).map(|it| (it, 5 * MB)).collect();
    let mut waits: Vec<_> = workers
        .iter()
        .map(|it| met("npm", it.0, 9 * SECOND))
        .collect();
    waits.push(met("shop", 7, SECOND));
    let users = vec![users_of("npm", &workers), user("shop", MB / 20, 0)];
    let verdicts = judge(&seen_sampled(waits, users)).verdicts;
    let told: Vec<_> = verdicts
        .iter()
        .map(|it| (it.cause, it.who.as_str()))
        .collect();
    let expected = [
        (Cause::FsyncBehindWriteback, "shop"),
        (Cause::OwnCommits, "npm"),
    ];
    assert_eq!(told, expected);
    assert_eq!(verdicts[0].culprit.as_deref(), Some("npm"));
}

#[test]
fn by_samples_a_program_that_is_run_again_and_again_is_no_victim_of_itself_where_others_feel_it() {
    let runs: Vec<(u32, u64)> = (11..51).map(|it| (it, MB)).collect();
    let mut waits: Vec<_> = [20, 40].map(|it| met("dpkg", it, 4 * SECOND)).into();
    let users = || vec![users_of("dpkg", &runs), user("firefox", MB / 20, 0)];
    let told = first(&seen_sampled(waits.clone(), users()));
    assert_eq!(told.1, "dpkg", "nobody else waits");
    waits.push(met("firefox", 7, SECOND));
    let told = first(&seen_sampled(waits, users()));
    assert_eq!(
        (told.0, told.1.as_str(), told.2.as_str()),
        (Cause::FsyncBehindWriteback, "firefox", "dpkg")
    );
}

#[test]
fn of_two_that_hold_each_other_up_the_one_that_moves_less_is_the_victim() {
    let read = |who: &str, process, lost_ns, other| Wait {
        who: who.to_owned(),
        process,
        lost_ns,
        parts: vec![part(other, lost_ns)],
        ..waited("read", Class::Service, Vec::new())
    };
    let waits = || {
        vec![
            read("steam", 8, 9 * SECOND, party(9, "browser", false)),
            read("browser", 9, 2 * SECOND, party(8, "steam", false)),
        ]
    };
    let reader = |name: &str, read_bytes| User {
        read_bytes,
        ..user(name, 0, 0)
    };
    let users = vec![reader("steam", 200 * MB), reader("browser", 5 * MB)];
    let told = first(&seen(waits(), users));
    assert_eq!((told.1.as_str(), told.2.as_str()), ("browser", "steam"));
    let users = vec![reader("steam", MB), reader("browser", 5 * MB)];
    let told = first(&seen(waits(), users));
    assert_eq!((told.1.as_str(), told.2.as_str()), ("steam", "browser"));
}

#[test]
fn by_samples_what_no_process_wrote_is_the_kernels() {
    let mut at = seen_sampled(vec![met("app", 7, 4 * SECOND)], vec![user("app", MB, 0)]);
    assert_eq!(first(&at).0, Cause::OwnCommits);
    at.kernel_blocked.insert("ext4lazyinit".to_owned(), SECOND);
    assert_eq!(first(&at).0, Cause::OwnCommits, "it was seldom at work");
    at.kernel_blocked
        .insert("ext4lazyinit".to_owned(), 4 * SECOND);
    let told = first(&at);
    assert_eq!(
        (told.0, told.2.as_str()),
        (Cause::FsyncBehindWriteback, "ext4lazyinit")
    );
}

#[test]
fn by_samples_who_reads_for_itself_is_apart_from_who_waits_for_that() {
    let reads = |who: &str, lost_ns| Wait {
        class: Class::Service,
        call: Some("read".to_owned()),
        ..met(who, 7, lost_ns)
    };
    let reader = |name: &str, read_bytes| User {
        read_bytes,
        ..user(name, 0, 0)
    };
    let waits = vec![reads("backup", 8 * SECOND), reads("viewer", SECOND)];
    let users = vec![reader("backup", 98 * MB), reader("viewer", 2 * MB)];
    let mut at = seen_sampled(waits, users);
    at.disks[0].written_bytes = 0;
    at.disks[0].busy_ns = 9 * SECOND;
    let told = first(&at);
    assert_eq!(
        (told.0, told.1.as_str(), told.2.as_str()),
        (Cause::DeviceBusy, "viewer", "backup")
    );
}

#[test]
fn who_waits_for_an_unknown_disk_waits_for_the_only_one_that_is_at_a_standstill() {
    let opens = Wait {
        call: Some("openat".to_owned()),
        class: Class::Meta,
        file: None,
        ..met("pull", 8, 8 * SECOND)
    };
    let mut at = seen_sampled(vec![opens], Vec::new());
    at.disks[0].busy_ns = 0;
    add(&mut at, "dm-3", &["sda"], Traffic::default());
    assert_eq!(first(&at).0, Cause::ChangeBehindWriteback);
    at.machine.disks.last_mut().unwrap().trouble = Some("its thin pool is full".to_owned());
    let told = first(&at);
    assert_eq!((told.0, told.3), (Cause::NoAnswer, Confidence::Sure));
    assert!(page::text(&judge(&at)).contains("extend the pool"));
    at.disks[0].busy_ns = 5 * SECOND;
    assert_eq!(
        first(&at).0,
        Cause::ChangeBehindWriteback,
        "it may be this one"
    );
}

#[test]
fn a_thread_of_the_kernel_is_blamed_for_what_it_does_of_its_own_accord() {
    for (name, culprit, to_do) in [
        ("ext4lazyinit", "ext4lazyinit", "init_itable"),
        ("md0_resync", "md0's check", "sync_speed_max"),
        (
            "kworker/0:1-kcopyd",
            "the snapshot's copying (kcopyd)",
            "snapshot",
        ),
    ] {
        let parts = vec![part(party(70, name, true), 4 * SECOND)];
        let mut at = seen(
            vec![waited("fsync", Class::JournalCommit, parts)],
            Vec::new(),
        );
        let traffic = Traffic {
            requests: 100,
            ..Traffic::default()
        };
        add(&mut at, "md0", &["sda"], traffic);
        let raid = at.machine.disks.last_mut().unwrap();
        raid.syncing = Some("check".to_owned());
        raid.targets = vec!["snapshot-origin".to_owned()];
        at.machine.mounts[0] = mounted("/", "ext4", Some("md0"));
        let (cause, told, _) = first_of(&at);
        assert_eq!(
            (cause, told.as_str()),
            (Cause::FsyncBehindWriteback, culprit)
        );
        let verdict = judge(&at).verdicts.remove(0);
        assert!(
            verdict.to_do.as_ref().unwrap().contains(to_do),
            "{verdict:?}"
        );
    }
    // The journal works for all: nobody else wrote.
    let journal = vec![part(party(70, "jbd2/sda-8", true), 4 * SECOND)];
    let at = seen(
        vec![waited("fsync", Class::JournalCommit, journal)],
        Vec::new(),
    );
    assert_eq!(
        first_of(&at),
        (Cause::OwnCommits, String::new(), Confidence::Sure)
    );
}

#[test]
fn what_a_raid_passes_on_beyond_its_own_traffic_is_its_check() {
    let carrier = part(party(71, "md0_raid1", true), 3 * SECOND);
    let parts = vec![part(Owner::Waiter, SECOND), carrier];
    let mut at = seen(vec![waited("pread64", Class::Service, parts)], Vec::new());
    let traffic = |read_bytes| Traffic {
        requests: 100,
        read_bytes,
        ..Traffic::default()
    };
    add(&mut at, "md0", &["sda"], traffic(3 * MB));
    at.machine.mounts[0] = mounted("/", "ext4", Some("md0"));
    assert_eq!(first_of(&at).1, "", "nothing is done to it");
    at.machine.disks.last_mut().unwrap().syncing = Some("check".to_owned());
    let (cause, culprit, _) = first_of(&at);
    assert_eq!(
        (cause, culprit.as_str()),
        (Cause::DeviceBusy, "md0's check")
    );
    at.disks[1].read_bytes = 300 * MB;
    assert_eq!(first_of(&at).1, "", "all was for who uses it");
}

#[test]
fn a_database_in_a_loop_device_waits_for_who_writes_to_the_disk_of_its_file() {
    let parts = vec![
        part(party(80, "kworker/u9:0-loop0", true), SECOND),
        part(party(9, "tar", false), 3 * SECOND),
    ];
    let mut at = seen(
        vec![waited("fsync", Class::Sync, parts)],
        vec![writes_to(user("tar", 200 * MB, 0), "sda")],
    );
    // Its requests take long, as the disk below is busy.
    let slow = Traffic {
        requests: 10,
        request_ns: 5 * SECOND,
        busy_ns: 5 * SECOND,
        unanswered_ns: 2 * SECOND,
        ..Traffic::default()
    };
    add(&mut at, "loop0", &["sda"], slow);
    at.machine.mounts[0] = mounted("/", "ext4", Some("loop0"));
    let told = first_of(&at);
    assert_eq!(
        told,
        (
            Cause::FsyncBehindWriteback,
            "tar".to_owned(),
            Confidence::Sure
        )
    );
    let advice = judge(&at).verdicts.remove(0).advice.unwrap();
    assert_eq!(advice.command, "sudo frontrow sched enable sda");
    // The same by samples: whoever writes to the disk below is known by bytes.
    at.waits[0].waits = 0;
    at.waits[0].samples = 20;
    at.waits[0].parts.clear();
    let told = first_of(&at);
    assert_eq!(
        told,
        (
            Cause::FsyncBehindWriteback,
            "tar".to_owned(),
            Confidence::Likely
        )
    );
}

#[test]
fn a_verdict_that_the_disks_counters_deny_is_not_sure() {
    let parts = vec![part(party(9, "dd", false), 5 * SECOND)];
    let mut at = seen(vec![waited("fsync", Class::Sync, parts)], writer());
    assert_eq!(first_of(&at).2, Confidence::Sure);
    at.disks[0].busy_ns = SECOND / 10;
    assert_eq!(first_of(&at).2, Confidence::Likely);
    let idle = vec![part(Owner::Waiter, SECOND / 100)];
    let at = seen(vec![waited("read", Class::Service, idle)], Vec::new());
    let (cause, _, confidence) = first_of(&at);
    assert_eq!(
        (cause, confidence),
        (Cause::Unexplained, Confidence::Likely)
    );
}

#[test]
fn a_volume_that_takes_long_above_an_idle_disk_is_the_slow_one() {
    let parts = vec![on("8:0", Owner::Waiter, SECOND / 50)];
    let mut at = seen(vec![waited("pread64", Class::Service, parts)], Vec::new());
    at.disks[0].busy_ns = SECOND / 50;
    let slow = Traffic {
        requests: 15,
        request_ns: 5 * SECOND,
        busy_ns: 5 * SECOND,
        ..Traffic::default()
    };
    add(&mut at, "dm-0", &["sda"], slow);
    at.machine.disks.last_mut().unwrap().title = Some("old".to_owned());
    at.machine.mounts[0] = mounted("/", "ext4", Some("dm-0"));
    assert_eq!(first_of(&at).0, Cause::SlowDevice);
    let text = page::text(&judge(&at));
    assert!(
        text.contains("dm-0 (old) was busy 50 % of the time, 333.3 ms"),
        "{text}"
    );
}

#[test]
fn a_device_that_finishes_nothing_is_named_and_not_the_app() {
    let mut stuck = waited("fsync", Class::JournalCommit, Vec::new());
    (stuck.waits, stuck.samples, stuck.longest_ns) = (0, 20, 0);
    let mut at = seen(vec![stuck], writer());
    at.disks[0].unanswered_ns = 3 * SECOND;
    assert_eq!(first_of(&at).0, Cause::NoAnswer);
    assert_eq!(first_of(&at).2, Confidence::Sure);
    // A pool that puts requests aside does not count them as begun.
    at.disks[0].unanswered_ns = 0;
    add(&mut at, "dm-3", &["sda"], Traffic::default());
    at.machine.mounts[0] = mounted("/", "ext4", Some("dm-3"));
    at.machine.disks.last_mut().unwrap().trouble = Some("its thin pool is full".to_owned());
    let verdict = judge(&at).verdicts.remove(0);
    assert_eq!(verdict.cause, Cause::NoAnswer);
    assert!(verdict.to_do.unwrap().contains("extend the pool"));
    let one_slow = Wait {
        longest_ns: SECOND / 3,
        ..wait("app", "fsync", Class::Service, SECOND)
    };
    let at = seen(vec![one_slow], writer());
    assert_ne!(first_of(&at).0, Cause::NoAnswer);
}

fn group(path: &str, used: f64) -> Group {
    Group {
        path: path.to_owned(),
        limits: vec![Limit {
            disk: "sda".to_owned(),
            words: "2.10 MB/s written".to_owned(),
            file: "io.max",
            used,
        }],
        ..Group::default()
    }
}

#[test]
fn a_limit_that_is_used_up_is_named_and_no_scheduler_advised() {
    let idle = || vec![part(Owner::Waiter, SECOND / 10)];
    let of = |groups, cgroup: &str| {
        let mut app = user("app", MB, 0);
        app.cgroup = Some(cgroup.to_owned());
        let mut at = seen(
            vec![waited("fsync", Class::JournalCommit, idle())],
            vec![app],
        );
        at.disks[0].busy_ns = SECOND;
        at.groups = groups;
        at
    };
    let outside = of(vec![group("/pods", 0.95)], "/");
    assert_eq!(
        first_of(&outside),
        (Cause::Limit, "pods".to_owned(), Confidence::Sure)
    );
    let verdict = judge(&outside).verdicts.remove(0);
    assert!(verdict.advice.is_none() && verdict.to_do.unwrap().contains("raise io.max of /pods"));
    let inside = of(vec![group("/pods", 0.95)], "/pods/web");
    assert_eq!(first_of(&inside).1, "", "its own");
    let unused = of(vec![group("/pods", 0.1)], "/");
    assert_ne!(first_of(&unused).0, Cause::Limit);
}

#[test]
fn a_frozen_file_system_needs_no_pressure() {
    let mut frozen = wait("app", "write", Class::Frozen, 4 * SECOND);
    frozen.other = Some("agent".to_owned());
    let mut at = seen(vec![frozen], writer());
    at.pressure.io_ns = 0;
    assert_eq!(
        first_of(&at),
        (Cause::Frozen, "agent".to_owned(), Confidence::Sure)
    );
    assert!(page::text(&judge(&at)).contains("fsfreeze -u /"));
}

#[test]
fn syncs_by_other_ways_are_told_once() {
    let parts = || vec![part(party(9, "dd", false), 4 * SECOND)];
    let worker = waited("io_uring:3", Class::JournalCommit, parts());
    let mut write = waited("io_uring:3", Class::Data, parts());
    write.syncs = true;
    let enter = waited("io_uring_enter", Class::Service, parts());
    let at = seen(vec![worker, write, enter], writer());
    let page = judge(&at);
    assert_eq!(page.verdicts.len(), 1, "{page:?}");
    assert_eq!(page.verdicts[0].cause, Cause::FsyncBehindWriteback);
    assert_eq!(page.verdicts[0].lost_ns, 10 * SECOND);
    let mut synchronous = waited("pwrite64", Class::Service, parts());
    synchronous.syncs = true;
    let at = seen(vec![synchronous], writer());
    assert_eq!(first_of(&at).0, Cause::FsyncBehindWriteback);
    let umount = waited("umount", Class::Sync, Vec::new());
    assert_eq!(first_of(&seen(vec![umount], Vec::new())).0, Cause::SyncAll);
}

#[test]
fn a_server_in_io_uring_that_waits_for_words_is_idle() {
    let events = Wait {
        file: None,
        ..waited("io_uring_enter", Class::Other, Vec::new())
    };
    let at = seen(vec![events], Vec::new());
    assert_eq!(
        first_of(&at),
        (Cause::Idle, String::new(), Confidence::Sure)
    );
    assert!(page::text(&judge(&at)).starts_with("Nothing to see"));
}

#[test]
fn whoever_waits_for_a_fuse_file_system_waits_for_its_server_or_for_what_that_waits_for() {
    let server = Party {
        process: 30,
        name: "mergerfs".to_owned(),
        kernel: false,
    };
    let pool = Mounted {
        server: Some(server),
        ..mounted("/pool", "fuse.mergerfs", None)
    };
    let client = Wait {
        file: Some("/pool/film".to_owned()),
        ..wait("player", "read", Class::Lock, 4 * SECOND)
    };
    let slow = || {
        let mut at = seen(vec![client.clone()], Vec::new());
        at.machine.mounts.push(pool.clone());
        at
    };
    let told = first(&slow());
    assert_eq!((told.0, told.2.as_str()), (Cause::Remote, "mergerfs"));
    let mut local = slow();
    local.waits.push(Wait {
        who: "mergerfs".to_owned(),
        process: 30,
        ..waited(
            "pread64",
            Class::Service,
            vec![part(party(9, "copier", false), 4 * SECOND)],
        )
    });
    let page = judge(&local);
    assert_eq!(page.verdicts.len(), 1, "counted once");
    let told = first(&local);
    assert_eq!((told.1.as_str(), told.2.as_str()), ("player", "copier"));
    assert!(page::text(&page).contains("through mergerfs"));
}

#[test]
fn who_holds_a_files_lock_is_named() {
    let mut reader = wait("viewer", "pread64", Class::Lock, 3 * SECOND);
    reader.other = Some("capture".to_owned());
    reader.cause = Some(Class::DirtyThrottle);
    let own = wait("capture", "write", Class::DirtyThrottle, 4 * SECOND);
    let at = seen(vec![reader, own], vec![user("capture", 200 * MB, 0)]);
    let page = judge(&at);
    let told: Vec<_> = page
        .verdicts
        .iter()
        .map(|it| (it.cause, it.who.as_str()))
        .collect();
    assert_eq!(
        told,
        [(Cause::FileLock, "viewer"), (Cause::OwnWrites, "capture")]
    );
    assert_eq!(page.verdicts[0].culprit.as_deref(), Some("capture"));
    assert!(page.verdicts[0].advice.is_none());
}

#[test]
fn one_groups_swapping_is_not_everybodys() {
    let reads = Wait {
        who: "game".to_owned(),
        ..waited(
            "pread64",
            Class::Service,
            vec![part(party(9, "tabs", false), 3 * SECOND)],
        )
    };
    let fault = Wait {
        who: "tabs".to_owned(),
        process: 9,
        call: None,
        file: None,
        ..waited("", Class::Service, vec![part(Owner::Waiter, 4 * SECOND)])
    };
    let in_group = |name: &str, cgroup: &str| {
        let mut user = user(name, 0, 0);
        user.cgroup = Some(cgroup.to_owned());
        user
    };
    let mut at = seen(
        vec![reads, fault],
        vec![in_group("game", "/"), in_group("tabs", "/tabs")],
    );
    at.memory.paged_in_bytes = 100 * MB;
    at.memory.swapped_in_bytes = 80 * MB;
    at.groups = vec![Group {
        path: "/tabs".to_owned(),
        memory_bytes: Some(30 * MB),
        memory_file: "memory.max",
        memory_hits: 500,
        swapped_in_bytes: 80 * MB,
        ..Group::default()
    }];
    let page = judge(&at);
    let of = |who: &str| page.verdicts.iter().find(|it| it.who == who).unwrap();
    assert_eq!(of("game").cause, Cause::DeviceBusy);
    assert_eq!(of("game").culprit.as_deref(), Some("tabs"));
    assert_eq!(of("tabs").cause, Cause::Swap);
    assert!(
        of("tabs")
            .evidence
            .join("")
            .contains("at its limit of 30.0 MB (memory.max)")
    );
}

#[test]
fn swapping_to_memory_is_a_lack_of_memory_and_a_leak_is_who_takes_it() {
    let mut tabs = user("tabs", 0, 9 * SECOND);
    tabs.cgroup = Some("/small".to_owned());
    let mut at = seen(Vec::new(), vec![tabs]);
    at.cpu_busy = 0.97;
    at.pressure.memory_ns = 6 * SECOND;
    at.pressure.cpu_ns = SECOND;
    at.memory.swapped_in_bytes = 50 * MB;
    at.groups = vec![Group {
        path: "/small".to_owned(),
        memory_bytes: Some(40 * MB),
        memory_file: "memory.max",
        memory_hits: 100,
        memory_ns: 6 * SECOND,
        ..Group::default()
    }];
    let page = judge(&at);
    let told: Vec<_> = page
        .verdicts
        .iter()
        .map(|it| (it.cause, it.who.as_str()))
        .collect();
    assert_eq!(told, [(Cause::Swap, "tabs")]);

    let short = |who: &str| Wait {
        who: who.to_owned(),
        ..wait(who, "read-fault", Class::Reclaim, 3 * SECOND)
    };
    let mut leaky = user("leaky", 0, 0);
    leaky.grown_bytes = 120 * MB;
    let mut at = seen(
        vec![short("leaky"), short("office")],
        vec![leaky, user("office", 0, 0)],
    );
    at.pressure.memory_ns = 5 * SECOND;
    let (cause, who, culprit, _) = first(&at);
    assert_eq!(
        (cause, who.as_str(), culprit.as_str()),
        (Cause::Reclaim, "office", "leaky")
    );
}

#[test]
fn a_hog_is_named_for_a_fifth_of_the_cpus_time() {
    let mut at = seen(Vec::new(), vec![user("make", 0, SECOND / 5)]);
    at.cpu_busy = 0.97;
    assert_eq!(
        first_of(&at),
        (Cause::Cpu, String::new(), Confidence::Likely)
    );
    at.users[0].cpu_ns = 4 * SECOND;
    assert_eq!(first_of(&at).1, "make");
}

#[test]
fn the_first_lines_have_who_because_of_whom_and_what_to_do() {
    let parts = vec![part(party(9, "dd", false), 4 * SECOND)];
    let text = page::text(&judge(&seen(
        vec![waited("fsync", Class::Sync, parts)],
        writer(),
    )));
    let lines: Vec<&str> = text.lines().take(5).collect();
    assert_eq!(lines[0], "Storage: fsync behind writeback.");
    assert!(lines[1].starts_with("app waited 5.00 s") && lines[1].contains("because of dd"));
    assert_eq!(lines[2], "What to do: sudo frontrow sched enable sda.");
}
