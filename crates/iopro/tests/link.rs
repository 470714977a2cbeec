//! Links of each kind of I/O, on streams of events with known answers.

use crate::synthetic::*;
use iopro::event::*;

const LINKS: &str = "SELECT syscalls.kind, links.kind, page_index, pages, bytes, request_id
                     FROM links JOIN syscalls USING (syscall_id) ORDER BY link_id";

#[test]
fn a_buffered_write_is_linked_to_the_request_that_the_worker_issues() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, 3 * PAGE, true);
    stream.pass(5_000 * MS);
    stream.write_back(file(10), 0, 3);
    let tables = stream.link();
    assert_eq!(tables.ask(LINKS), ["pwrite64 write 0 3 12288 1"]);
    assert_eq!(
        tables.ask("SELECT content, op, tasks.name FROM requests JOIN tasks USING (task_id)"),
        ["data write kworker/u4:1"]
    );
    assert_eq!(
        tables.ask("SELECT path FROM files JOIN links USING (file_id)"),
        ["/data/a"]
    );
}

#[test]
fn all_dirtiers_of_a_page_are_linked_to_its_request() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, 100, true);
    stream.write(OTHER_APP, file(10), 100, 50, false);
    stream.write_back(file(10), 0, 1);
    assert_eq!(
        stream.link().ask(LINKS),
        ["pwrite64 write 0 1 100 1", "pwrite64 write 0 1 50 1"]
    );
}

#[test]
fn what_is_overwritten_before_it_is_written_counts_apart() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, 3 * PAGE, true);
    stream.write(OTHER_APP, file(10), PAGE, PAGE, false);
    stream.write_back(file(10), 0, 3);
    assert_eq!(
        stream.link().ask(LINKS),
        [
            "pwrite64 overwritten 1 1 4096 -",
            "pwrite64 write 0 1 4096 1",
            "pwrite64 write 2 1 4096 1",
            "pwrite64 write 1 1 4096 1",
        ]
    );
}

#[test]
fn a_page_that_becomes_dirty_again_during_writeback_is_a_new_version() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, PAGE, true);
    stream.cleaned(KWORKER, file(10), 0, 1);
    let first = io(Op::Write, 0, 0, PAGE);
    let bio = stream.queue(KWORKER, first);
    stream.write(OTHER_APP, file(10), 0, PAGE, true);
    let request = stream.issue(first, &[(bio, Some((file(10), 0)), PAGE)]);
    stream.complete(request, first);
    stream.write_back(file(10), 0, 1);
    assert_eq!(
        stream.link().ask("SELECT tasks.name, request_id FROM links JOIN syscalls USING (syscall_id) JOIN tasks USING (task_id)"),
        ["app 1", "other-app 2"]
    );
}

#[test]
fn truncated_and_removed_pages_count_apart() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, 2 * PAGE, true);
    stream.write(APP, file(11), 0, PAGE, true);
    let cut = |file, from_bytes, removed| {
        What::Truncated(Truncated {
            file,
            from_bytes,
            to_bytes: u64::MAX,
            removed,
        })
    };
    stream.push(APP, cut(file(10), PAGE, false));
    stream.push(APP, cut(file(11), 0, true));
    stream.write_back(file(10), 0, 1);
    assert_eq!(
        stream
            .link()
            .ask("SELECT kind, sum(pages) FROM links GROUP BY kind ORDER BY kind"),
        ["removed 1", "truncated 1", "write 1"]
    );
}

#[test]
fn what_is_not_written_at_the_end_is_pending() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, PAGE, true);
    assert_eq!(stream.link().ask(LINKS), ["pwrite64 pending 0 1 4096 -"]);
}

#[test]
fn pages_taken_and_in_no_request_are_unlinked() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, PAGE, true);
    stream.cleaned(KWORKER, file(10), 0, 1);
    stream.pass(5_000 * MS);
    stream.push(APP, What::ThreadEnd);
    assert_eq!(stream.link().ask(LINKS), ["pwrite64 unlinked 0 1 4096 -"]);
}

#[test]
fn a_store_to_a_mapped_page_is_linked_beside_writes() {
    let mut stream = Stream::new();
    stream.write(OTHER_APP, file(10), 0, PAGE, true);
    let fault = Stream::call(CallKind::WriteFault, file(10), 8, 1);
    let begin = stream.now;
    stream.exit(APP, fault, begin, 0);
    stream.write_back(file(10), 0, 1);
    assert_eq!(
        stream.link().ask(LINKS),
        ["pwrite64 write 0 1 4096 1", "write-fault write 0 1 4096 1"]
    );
}

#[test]
fn a_write_that_returns_after_its_pages_were_written_is_linked() {
    let mut stream = Stream::new();
    let call = Stream::call(CallKind::Write, file(10), 0, 4 * PAGE);
    let begin = stream.enter(APP, &call);
    stream.dirtied(APP, file(10), 0, 2);
    stream.write_back(file(10), 0, 2);
    stream.dirtied(APP, file(10), 2, 2);
    stream.exit(APP, call, begin, 4 * PAGE as i64);
    stream.write_back(file(10), 2, 2);
    let tables = stream.link();
    assert_eq!(
        tables.ask(LINKS),
        ["write write 0 2 8192 1", "write write 2 2 8192 2"]
    );
    assert_eq!(
        tables.ask("SELECT dirtied_pages FROM syscalls WHERE kind = 'write'"),
        ["4"]
    );
}

#[test]
fn a_read_is_linked_and_readahead_to_whoever_uses_it() {
    let mut stream = Stream::new();
    let begin = stream.now;
    stream.io(APP, io(Op::Read, 0, 0, 8 * PAGE), Some((file(10), 0)));
    stream.exit(
        APP,
        Stream::call(CallKind::Read, file(10), 0, 2 * PAGE),
        begin,
        2 * PAGE as i64,
    );
    let begin = stream.now;
    let second = Stream::call(CallKind::Pread64, file(10), 0, 3 * PAGE);
    stream.exit(OTHER_APP, second, begin, 3 * PAGE as i64);
    let tables = stream.link();
    assert_eq!(
        tables.ask(LINKS),
        [
            "read read 0 2 8192 1",
            "read readahead 2 6 24576 1",
            "pread64 readahead-hit 2 1 4096 1",
        ]
    );
    assert_eq!(
        tables.ask(
            "SELECT kind, cached_pages, missed_pages, readahead_pages FROM syscalls ORDER BY 1"
        ),
        ["pread64 2 0 1", "read 0 2 0"]
    );
}

#[test]
fn direct_io_is_linked_to_its_call() {
    let mut stream = Stream::new();
    let mut call = Stream::call(CallKind::Pwrite64, file(10), 0, PAGE);
    call.flags = CallFlags::DIRECT;
    let begin = stream.enter(APP, &call);
    stream.io(APP, io(Op::Write, 1, 0, PAGE), None);
    stream.exit(APP, call, begin, PAGE as i64);
    // The file of a read is known when the read returns.
    let begin = stream.now;
    stream.io(APP, io(Op::Read, 1, 0, PAGE), None);
    stream.blocked(APP, MS, Reason::DirectIo, Some(CallKind::Pread64));
    let mut call = Stream::call(CallKind::Pread64, file(10), 0, PAGE);
    call.flags = CallFlags::DIRECT;
    stream.exit(APP, call, begin, PAGE as i64);
    let tables = stream.link();
    assert_eq!(
        tables.ask(LINKS),
        [
            "pwrite64 direct-write - 0 4096 1",
            "pread64 direct-read - 0 4096 2",
        ]
    );
    assert_eq!(
        tables.ask("SELECT DISTINCT content, path FROM requests JOIN links USING (request_id) JOIN files USING (file_id)"),
        ["direct /data/a"]
    );
    assert_eq!(
        tables.ask("SELECT class, path FROM waits JOIN files USING (file_id)"),
        ["service /data/a"]
    );
}

#[test]
fn merged_and_split_bios_are_in_their_requests() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, 2 * PAGE, true);
    stream.cleaned(KWORKER, file(10), 0, 2);
    let first = stream.queue(KWORKER, io(Op::Write, 0, 0, PAGE));
    let second = stream.queue(KWORKER, io(Op::Write, 0, 8, PAGE));
    stream.push(
        KWORKER,
        What::Merge(Merge {
            bio: second,
            io: io(Op::Write, 0, 8, PAGE),
            front: false,
        }),
    );
    let whole = io(Op::Write, 0, 0, 2 * PAGE);
    let request = stream.issue(
        whole,
        &[
            (first, Some((file(10), 0)), PAGE),
            (second, Some((file(10), 1)), PAGE),
        ],
    );
    stream.complete(request, whole);
    let tables = stream.link();
    assert_eq!(
        tables.ask("SELECT request_id, merged FROM bios ORDER BY bio_id"),
        ["1 0", "1 1"]
    );
    assert_eq!(
        tables.ask("SELECT sum(pages) FROM links WHERE kind = 'write'"),
        ["2"]
    );
}

/// Where in its first page the segment begins that was told last.
fn begins_at(stream: &mut Stream, at_bytes: u32) {
    let Some(What::Segment(segment)) = stream.events.last_mut().map(|it| &mut it.what) else {
        panic!("the last event is no segment");
    };
    segment.at_bytes = at_bytes;
}

#[test]
fn a_run_that_begins_inside_of_a_page_goes_on_into_the_next() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 1024, PAGE, true);
    stream.cleaned(KWORKER, file(10), 0, 2);
    let write = io(Op::Write, 0, 0, PAGE);
    let bio = stream.queue(KWORKER, write);
    let request = stream.issue(write, &[(bio, Some((file(10), 0)), PAGE)]);
    begins_at(&mut stream, 1024);
    stream.complete(request, write);
    assert_eq!(
        stream
            .link()
            .ask("SELECT kind, sum(pages) FROM links GROUP BY kind"),
        ["write 2"]
    );
}

/// The second request is issued when the first is done: both carry the page.
#[test]
fn a_page_may_be_written_in_parts_one_after_another() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, PAGE, true);
    stream.cleaned(KWORKER, file(10), 0, 1);
    for at_bytes in [0, 3072] {
        let write = io(Op::Write, 0, u64::from(at_bytes) / 512, 1024);
        let bio = stream.queue(KWORKER, write);
        let request = stream.issue(write, &[(bio, Some((file(10), 0)), 1024)]);
        begins_at(&mut stream, at_bytes);
        stream.complete(request, write);
    }
    let tables = stream.link();
    assert_eq!(
        tables.ask("SELECT request_id, kind, pages FROM links ORDER BY request_id"),
        ["1 write 1", "2 write 0"]
    );
    let missing = "SELECT missing FROM unlinked WHERE kind = 'written pages without dirtier'";
    assert_eq!(tables.ask(missing), ["0"]);
}

#[test]
fn a_request_that_the_driver_gave_back_counts_once() {
    let mut stream = Stream::new();
    stream.write(APP, file(10), 0, PAGE, true);
    stream.cleaned(KWORKER, file(10), 0, 1);
    let write = io(Op::Write, 0, 0, PAGE);
    let bio = stream.queue(KWORKER, write);
    let request = stream.issue(write, &[(bio, Some((file(10), 0)), PAGE)]);
    let told = Request {
        request,
        io: write,
        ioprio: 0,
    };
    stream.push(0, What::Requeue(told.clone()));
    stream.push(0, What::Issue(told));
    stream.push(
        0,
        What::Segment(Segment {
            request,
            bio,
            dev: DISK,
            sector: 0,
            bytes: PAGE as u32,
            pages: Some((file(10), 0)),
            at_bytes: 0,
        }),
    );
    stream.complete(request, write);
    let tables = stream.link();
    assert_eq!(tables.ask("SELECT requeues, bios FROM requests"), ["1 1"]);
    assert_eq!(tables.ask("SELECT count(*) FROM bios"), ["1"]);
    assert_eq!(tables.ask("SELECT sum(pages) FROM links"), ["1"]);
}

#[test]
fn a_journals_requests_belong_to_the_commit_and_the_commit_to_its_fsync() {
    let mut stream = Stream::new();
    let transaction = Transaction {
        dev: PARTITION,
        tid: 7,
    };
    let write = Stream::call(CallKind::Creat, file(10), 0, 0);
    let begin = stream.enter(APP, &write);
    stream.push(APP, What::Joined(transaction));
    stream.exit(APP, write, begin, 0);
    let fsync = Stream::call(CallKind::Fsync, file(10), 0, 0);
    let begin = stream.enter(APP, &fsync);
    let phase = |phase| What::Commit(Commit { transaction, phase });
    stream.push(JBD2, phase(CommitPhase::Start));
    stream.push(JBD2, phase(CommitPhase::Logging));
    // The journal holds a copy of a dirty metadata page.
    stream.dirtied(JBD2, metadata(), 7, 1);
    stream.io(JBD2, io(Op::Write, 1, 800, 2 * PAGE), Some((metadata(), 7)));
    stream.push(JBD2, phase(CommitPhase::End));
    let since = stream.now - begin;
    stream.blocked(
        APP,
        since,
        Reason::JournalCommit(transaction),
        Some(CallKind::Fsync),
    );
    stream.exit(APP, fsync, begin, 0);
    let tables = stream.link();
    assert_eq!(
        tables.ask("SELECT content, commit_id FROM requests"),
        ["journal 1"]
    );
    assert_eq!(
        tables.ask("SELECT kind, pages FROM links"),
        ["journal 2", "pending 1"]
    );
    assert_eq!(
        tables.ask("SELECT tid, requests, bytes FROM commits"),
        ["7 1 8192"]
    );
    assert_eq!(
        tables.ask(
            "SELECT role, kind FROM commit_calls JOIN syscalls USING (syscall_id) ORDER BY time_ns"
        ),
        ["changed creat", "waited fsync"]
    );
    assert_eq!(
        tables.ask("SELECT class, commit_id, tasks.name FROM waits JOIN tasks ON tasks.task_id = other_task_id"),
        ["I_jcommit 1 jbd2/sda1-8"]
    );
}

#[test]
fn discards_and_flushes_are_linked_to_who_asked() {
    let mut stream = Stream::new();
    let trim = Stream::call(CallKind::Fallocate, file(10), 0, PAGE);
    let begin = stream.enter(APP, &trim);
    stream.io(APP, io(Op::Discard, 0, 0, 1 << 20), None);
    stream.exit(APP, trim, begin, 0);
    let fsync = Stream::call(CallKind::Fsync, file(10), 0, 0);
    let begin = stream.enter(APP, &fsync);
    let flush = io(Op::Write, 1 | 16, 0, 0);
    let bio = stream.queue(APP, flush);
    let request = stream.issue(io(Op::Flush, 16, 0, 0), &[]);
    stream.complete(request, flush);
    let _ = bio;
    stream.exit(APP, fsync, begin, 0);
    assert_eq!(
        stream.link().ask("SELECT syscalls.kind, links.kind, content FROM links JOIN syscalls USING (syscall_id) JOIN requests USING (request_id)"),
        ["fallocate discard discard", "fsync flush flush"]
    );
}

#[test]
fn io_uring_operations_are_calls() {
    let mut stream = Stream::new();
    stream.push(
        APP,
        What::RingSubmit(RingSubmit {
            request: 77,
            opcode: 23,
            user_data: 1,
            file: Some(file(10)),
            offset_bytes: Some(0),
            size_bytes: None,
            flags: CallFlags::default(),
        }),
    );
    // A worker submits it again.
    if let Some(submit) = stream.events.last().map(|event| event.what.clone()) {
        stream.push(OTHER_APP, submit);
    }
    stream.dirtied(OTHER_APP, file(10), 0, 1);
    stream.push(
        APP,
        What::RingComplete(RingComplete {
            request: 77,
            user_data: 1,
            result: PAGE as i32,
        }),
    );
    stream.write_back(file(10), 0, 1);
    assert_eq!(stream.link().ask(LINKS), ["io_uring:23 write 0 1 4096 1"]);
}

#[test]
fn runs_told_late_change_nothing() {
    let mut stream = Stream::new();
    // The worker's run that took the page is told after the page became dirty anew. The request is
    // told before the event of its dirtier.
    stream.write(APP, file(10), 0, PAGE, true);
    let taken = stream.run(file(10), 0, 1);
    stream.write(OTHER_APP, file(10), 0, PAGE, true);
    stream.push(KWORKER, What::Cleaned(taken));
    stream.io(KWORKER, io(Op::Write, 0, 0, PAGE), Some((file(10), 0)));
    stream.write_back(file(10), 0, 1);
    let late = stream.run(file(11), 5, 1);
    stream.write_back(file(11), 5, 1);
    let owner = "SELECT tasks.name, page_index, links.kind, request_id FROM links
                 JOIN syscalls USING (syscall_id) JOIN tasks USING (task_id) ORDER BY link_id";
    assert_eq!(
        stream.link().ask(owner),
        ["app 0 write 1", "other-app 0 write 2"]
    );
    let _ = late;
}

#[test]
fn a_page_told_of_after_its_call_is_the_calls() {
    let mut stream = Stream::new();
    let late = stream.run(file(10), 0, 1);
    stream.write(APP, file(10), 0, PAGE, false);
    stream.push(OTHER_APP, What::Dirtied(late));
    stream.write_back(file(10), 0, 1);
    let tables = stream.link();
    assert_eq!(tables.ask(LINKS), ["pwrite64 write 0 1 4096 1"]);
    assert_eq!(tables.ask("SELECT sum(dirtied_pages) FROM syscalls"), ["1"]);
}

#[test]
fn pages_dirty_since_before_the_recording_are_counted() {
    let mut stream = Stream::new();
    stream.write_back(file(10), 0, 4);
    assert_eq!(
        stream.link().ask(
            "SELECT missing, total FROM unlinked WHERE kind = 'written pages without dirtier'"
        ),
        ["4 4"]
    );
}

#[test]
fn what_is_under_way_at_the_end_is_in_the_tables() {
    let mut stream = Stream::new();
    let call = Stream::call(CallKind::Fsync, file(10), 0, 0);
    stream.enter(APP, &call);
    let write = io(Op::Write, 1, 0, PAGE);
    let bio = stream.queue(APP, write);
    stream.issue(write, &[(bio, Some((file(10), 0)), PAGE)]);
    let tables = stream.link();
    assert_eq!(
        tables.ask("SELECT kind, unfinished FROM syscalls"),
        ["fsync 1"]
    );
    assert_eq!(tables.ask("SELECT completed_ns FROM requests"), ["-"]);
}
