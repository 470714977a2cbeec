//! Each class of waiting, on a stream of events that causes it.

use crate::synthetic::*;
use iopro::event::*;
use iopro::link::Foreground;
use iopro::report::Report;

const WAITS: &str = "SELECT class, reason, other.process_name, request_id,
                         block_ns / 1000000, device_ns / 1000000
                     FROM waits LEFT JOIN tasks AS other ON other.task_id = other_task_id";

/// A wait for the writeback of the page that [`written_back`] writes back.
fn the_page() -> Reason {
    Reason::Writeback {
        file: file(10),
        index: 0,
    }
}

const TRANSACTION: Transaction = Transaction {
    dev: PARTITION,
    tid: 3,
};

/// The transaction's commit enters a phase.
fn commit(stream: &mut Stream, phase: CommitPhase) {
    let transaction = TRANSACTION;
    stream.push(JBD2, What::Commit(Commit { transaction, phase }));
}

/// The kernel's worker writes back another app's page, and a task begins to wait for it.
fn written_back(stream: &mut Stream) {
    stream.write(OTHER_APP, file(10), 0, PAGE, true);
    stream.write_back(file(10), 0, 1);
}

#[test]
fn d_data_names_who_dirtied_the_page() {
    let mut stream = Stream::new();
    written_back(&mut stream);
    stream.blocked(APP, 3 * MS, the_page(), Some(CallKind::Pwrite64));
    assert_eq!(
        stream.link().ask(WAITS),
        ["D_data writeback other-app 1 1 1"]
    );
}

#[test]
fn the_parts_of_a_wait_are_those_of_its_request() {
    let mut stream = Stream::new();
    stream.write(OTHER_APP, file(10), 0, PAGE, true);
    stream.cleaned(KWORKER, file(10), 0, 1);
    let begin = stream.now;
    stream.pass(MS);
    stream.io(KWORKER, io(Op::Write, 0, 0, PAGE), Some((file(10), 0)));
    stream.pass(MS);
    let since = stream.now - begin;
    stream.blocked(APP, since, the_page(), Some(CallKind::Fsync));
    let parts = "SELECT before_ns / 1000000, block_ns / 1000000, device_ns / 1000000,
                 driver_ns / 1000000, before_ns + block_ns + device_ns + driver_ns = woken_ns - begin_ns
                 FROM waits";
    assert_eq!(stream.link().ask(parts), ["1 1 1 1 1"]);
}

#[test]
fn d_sync_is_an_fsync_on_pages_written_for_somebody_else() {
    for kind in [CallKind::Fsync, CallKind::Ftruncate, CallKind::Unlink] {
        let mut stream = Stream::new();
        written_back(&mut stream);
        stream.blocked(APP, 3 * MS, the_page(), Some(kind));
        assert_eq!(
            stream.link().ask(WAITS),
            ["D_sync writeback other-app 1 1 1"]
        );
    }
}

#[test]
fn an_fsync_that_waits_for_what_it_submitted_is_served() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, PAGE, true);
    let fsync = Stream::call(CallKind::Fsync, file(10), 0, 0);
    let begin = stream.enter(APP, &fsync);
    stream.cleaned(APP, file(10), 0, 1);
    stream.io(
        APP,
        io(Op::Write, IoFlags::SYNC.0, 0, PAGE),
        Some((file(10), 0)),
    );
    stream.blocked(APP, 2 * MS, the_page(), Some(CallKind::Fsync));
    stream.exit(APP, fsync, begin, 0);
    let tables = stream.link();
    assert_eq!(tables.ask("SELECT class FROM waits"), ["service"]);
    let layers = "SELECT device_ns > 900000, block_ns > 900000, blocked_ns FROM syscalls WHERE kind = 'fsync'";
    assert_eq!(tables.ask(layers), ["1 1 2000000"]);
}

#[test]
fn a_page_is_awaited_until_the_last_part_of_its_bio_is_done() {
    let mut stream = Stream::new();
    stream.write(OTHER_APP, file(10), 0, 2 * PAGE, true);
    stream.cleaned(KWORKER, file(10), 0, 2);
    let (whole, front) = (io(Op::Write, 0, 0, 2 * PAGE), io(Op::Write, 0, 0, PAGE));
    let rest = io(Op::Write, 0, 8, PAGE);
    let bio = stream.queue(KWORKER, whole);
    let cut = stream.address();
    stream.push(
        KWORKER,
        What::Split(Split {
            bio: cut,
            parent: bio,
            io: front,
            rest_sector: 8,
        }),
    );
    let first = stream.issue(front, &[(cut, Some((file(10), 0)), PAGE)]);
    stream.complete(first, front);
    stream.pass(5 * MS);
    let second = stream.issue(rest, &[(bio, Some((file(10), 1)), PAGE)]);
    stream.pass(MS);
    stream.complete(second, rest);
    stream.blocked(APP, 6 * MS, the_page(), Some(CallKind::Fsync));
    let tables = stream.link();
    assert_eq!(tables.ask("SELECT split FROM bios"), ["1", "1"]);
    assert_eq!(
        tables.ask("SELECT request_id, driver_ns < 10, device_ns / 1000000 FROM waits"),
        ["2 1 1"]
    );
}

#[test]
fn a_wait_for_the_flusher_tells_what_the_flusher_waited_for() {
    let mut stream = Stream::new();
    written_back(&mut stream);
    stream.blocked(KWORKER, 2 * MS, Reason::QueueThrottle, None);
    stream.blocked(APP, 3 * MS, Reason::FlusherDone, Some(CallKind::Sync));
    if let Some(Event {
        what: What::Blocked(blocked),
        ..
    }) = stream.events.last_mut()
    {
        blocked.waker = KWORKER;
    }
    let waited = "SELECT class, cause, other.process_name FROM waits
                  JOIN tasks AS other ON other.task_id = other_task_id WHERE class = 'D_sync'";
    assert_eq!(stream.link().ask(waited), ["D_sync wbt other-app"]);
}

#[test]
fn d_meta_is_a_buffer_that_is_being_written() {
    let mut stream = Stream::new();
    let block = 40;
    let sector = PARTITION_START + block * 8;
    stream.io(
        KWORKER,
        io(Op::Write, 4, sector, PAGE),
        Some((metadata(), block)),
    );
    let buffer = Reason::Buffer {
        dev: PARTITION,
        block,
        block_bytes: 4096,
    };
    stream.blocked(APP, 3 * MS, buffer, Some(CallKind::Creat));
    assert_eq!(
        stream.link().ask(WAITS),
        ["D_meta buffer kworker/u4:1 1 1 1"]
    );
}

#[test]
fn a_metadata_block_that_is_read_is_service() {
    let mut stream = Stream::new();
    let sector = PARTITION_START + 8;
    let begin = stream.now;
    stream.io(APP, io(Op::Read, 2, sector, PAGE), Some((metadata(), 1)));
    let buffer = Reason::Buffer {
        dev: PARTITION,
        block: 1,
        block_bytes: 4096,
    };
    let since = stream.now - begin;
    stream.blocked(APP, since, buffer, Some(CallKind::Openat));
    assert_eq!(
        stream.link().ask("SELECT class, request_id FROM waits"),
        ["service 1"]
    );
}

#[test]
fn d_discard_is_the_journal_waiting_for_discards() {
    let mut stream = Stream::new();
    stream.io(JBD2, io(Op::Discard, 0, 0, 1 << 20), None);
    stream.blocked(JBD2, 2 * MS, Reason::OwnBio { op: Op::Discard }, None);
    assert_eq!(
        stream.link().ask("SELECT class, request_id FROM waits"),
        ["D_discard 1"]
    );
}

#[test]
fn i_jcommit_tells_what_the_commit_waited_for() {
    let mut stream = Stream::new();
    commit(&mut stream, CommitPhase::Start);
    stream.io(JBD2, io(Op::Discard, 0, 0, 1 << 20), None);
    stream.blocked(JBD2, 2 * MS, Reason::OwnBio { op: Op::Discard }, None);
    commit(&mut stream, CommitPhase::End);
    stream.blocked(
        APP,
        2 * MS,
        Reason::JournalCommit(TRANSACTION),
        Some(CallKind::Fsync),
    );
    assert_eq!(
        stream.link().ask("SELECT class, cause, commit_id, other.name FROM waits JOIN tasks AS other ON other.task_id = other_task_id"),
        ["I_jcommit D_discard 1 jbd2/sda1-8"]
    );
}

#[test]
fn i_jhandle_names_the_commit_that_is_locked() {
    let mut stream = Stream::new();
    commit(&mut stream, CommitPhase::Start);
    commit(&mut stream, CommitPhase::Locking);
    stream.pass(5 * MS);
    commit(&mut stream, CommitPhase::Flushing);
    stream.blocked(
        APP,
        4 * MS,
        Reason::JournalHandle { dev: PARTITION },
        Some(CallKind::Creat),
    );
    stream.blocked(
        APP,
        MS,
        Reason::JournalSpace { dev: PARTITION },
        Some(CallKind::Creat),
    );
    assert_eq!(
        stream
            .link()
            .ask("SELECT class, reason, commit_id FROM waits ORDER BY 2"),
        ["I_jhandle journal handle 1", "I_jhandle journal space 1"]
    );
}

#[test]
fn the_queues_and_the_memorys_limits_have_classes_of_their_own() {
    for (reason, class) in [
        (Reason::Tag, "tag"),
        (Reason::QueueThrottle, "wbt"),
        (Reason::DirtyThrottle, "dirty throttling"),
        (Reason::ReclaimThrottle, "reclaim"),
        (Reason::FlusherDone, "D_sync"),
        (
            Reason::Lock {
                address: 1,
                of_file: true,
            },
            "lock",
        ),
    ] {
        let mut stream = Stream::new();
        written_back(&mut stream);
        stream.blocked(APP, 2 * MS, reason, Some(CallKind::Pwrite64));
        assert_eq!(stream.link().ask("SELECT class FROM waits"), [class]);
    }
}

#[test]
fn who_had_the_device_is_named_for_a_wait_for_a_tag() {
    let mut stream = Stream::new();
    written_back(&mut stream);
    stream.blocked(APP, 2 * MS, Reason::Tag, Some(CallKind::Pread64));
    assert_eq!(stream.link().ask(WAITS), ["tag tag other-app - 0 0"]);
}

#[test]
fn whatever_a_task_waits_for_in_reclaim_is_reclaim() {
    let mut stream = Stream::new();
    written_back(&mut stream);
    stream.blocked(APP, MS, the_page(), Some(CallKind::Read));
    if let Some(Event {
        what: What::Blocked(blocked),
        ..
    }) = stream.events.last_mut()
    {
        blocked.in_reclaim = true;
    }
    assert_eq!(stream.link().ask("SELECT class FROM waits"), ["reclaim"]);
}

#[test]
fn a_read_that_is_queued_behind_another_app_names_it() {
    let mut stream = Stream::new();
    let (own, others) = (io(Op::Read, 0, 0, PAGE), io(Op::Read, 0, 800, PAGE));
    let begin = stream.now;
    let bio = stream.queue(APP, own);
    let other_bio = stream.queue(OTHER_APP, others);
    let other = stream.issue(others, &[(other_bio, Some((file(11), 0)), PAGE)]);
    stream.pass(5 * MS);
    stream.complete(other, others);
    let request = stream.issue(own, &[(bio, Some((file(10), 0)), PAGE)]);
    stream.pass(MS);
    stream.complete(request, own);
    let page = Reason::PageLock {
        file: file(10),
        index: 0,
    };
    let since = stream.now - begin;
    stream.blocked(APP, since, page, Some(CallKind::Read));
    let waited = "SELECT class, other.process_name, block_ns / 1000000, device_ns / 1000000
                  FROM waits JOIN tasks AS other ON other.task_id = other_task_id";
    assert_eq!(stream.link().ask(waited), ["service other-app 5 1"]);
}

#[test]
fn the_stack_names_what_no_reason_does() {
    let mut stream = Stream::new();
    for id in [1, 2] {
        let stack = Reason::Other { stack: Some(id) };
        stream.blocked(APP, MS, stack, Some(CallKind::Pwrite64));
    }
    let told = |id, names: &[&str]| What::Stack {
        id,
        functions: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    stream.push(
        0,
        told(
            1,
            &["schedule", "flush_work", "ext4_should_retry_alloc.part.0"],
        ),
    );
    stream.push(0, told(2, &["schedule", "somewhere"]));
    assert_eq!(
        stream
            .link()
            .ask("SELECT class FROM waits ORDER BY wait_id"),
        ["D_discard", "other"]
    );
}

#[test]
fn foreground_is_who_was_recorded_or_who_is_named() {
    let mut stream = Stream::new();
    written_back(&mut stream);
    for thread in [APP, OTHER_APP] {
        stream.blocked(thread, MS, Reason::Tag, Some(CallKind::Read));
    }
    let foreground = "SELECT process_name FROM tasks WHERE foreground";
    assert_eq!(stream.link().ask(foreground), ["app"]);
    let named = stream.link_for(Some(Foreground::named("other-app")));
    assert_eq!(named.ask(foreground), ["other-app"]);
    let report = Report::of(&named.0).unwrap();
    assert_eq!(
        (report.foreground.total_ns, report.everybody.total_ns),
        (MS, 2 * MS)
    );
}

#[test]
fn a_cgroup_and_those_below_it_are_the_foreground() {
    let mut stream = Stream::new();
    for (thread, cgroup, path) in [(APP, 5, "/apps/top/one"), (OTHER_APP, 6, "/apps/topmost")] {
        stream.push(
            thread,
            What::Cgroup {
                id: cgroup,
                path: path.to_owned(),
            },
        );
        stream.thread(ThreadInfo {
            cgroup,
            name: "x".to_owned(),
            ..thread_info(thread, path)
        });
    }
    let tables = stream.link_for(Some(Foreground::named("/apps/top")));
    assert_eq!(
        tables.ask("SELECT process_name FROM tasks WHERE foreground"),
        ["/apps/top/one"]
    );
}

#[test]
fn the_report_says_who_waited_for_whom() {
    let mut stream = Stream::new();
    written_back(&mut stream);
    let fsync = Stream::call(CallKind::Fsync, file(10), 0, 0);
    let begin = stream.enter(APP, &fsync);
    stream.pass(3 * MS);
    stream.blocked(APP, 3 * MS, the_page(), Some(CallKind::Fsync));
    stream.exit(APP, fsync, begin, 0);
    let report = Report::of(&stream.link().0).unwrap();
    let text = iopro::report::text(&report, 120);
    assert!(text.contains("D_sync"), "{text}");
    assert!(
        text.contains("app in fsync of /data/a, D_sync, because of other-app"),
        "{text}"
    );
    assert!(
        text.contains("100.00 % of the dirtied page versions"),
        "{text}"
    );
    let page = iopro::report::html(&report);
    assert!(
        page.contains("<svg") && page.contains("/data/a") && !page.contains("http"),
        "{page}"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["foreground"]["classes"][0]["class"], "D_sync");
}

#[test]
fn a_guessed_page_is_taken_for_one_that_was_read_when_the_wait_ended() {
    let mut stream = Stream::new();
    let ahead = io(Op::Read, 0, 800, PAGE);
    let bio = stream.queue(APP, ahead);
    let request = stream.issue(ahead, &[(bio, Some((file(10), 100)), PAGE)]);
    stream.pass(5 * MS);
    stream.complete(request, ahead);
    let page = Reason::PageLock {
        file: file(10),
        index: 0,
    };
    stream.blocked(APP, 5 * MS, page, Some(CallKind::Sendfile));
    // A wait that ended without a request.
    stream.pass(5 * MS);
    stream.blocked(APP, MS, page, Some(CallKind::Sendfile));
    assert_eq!(
        stream
            .link()
            .ask("SELECT class, page_index, request_id FROM waits ORDER BY wait_id"),
        ["service - 1", "lock 0 -"]
    );
}
