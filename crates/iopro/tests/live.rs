//! Linking of a recording while it is made.

use crate::synthetic::*;
use iopro::event::*;
use iopro::link::Linker;
use iopro::recording::Step;
use iopro::report::{self, Report, Waits};
use iopro::store::Store;
use std::path::Path;

const INTERVAL: u64 = 100 * MS;

/// Five fsyncs, a sixth of a second apart. Each waits for another app's write.
fn stream() -> Stream {
    let mut stream = Stream::new();
    for round in 0..5 {
        stream.write(OTHER_APP, file(10), 0, 2 * PAGE, true);
        let fsync = Stream::call(CallKind::Fsync, file(10), 0, 0);
        let begin = stream.enter(APP, &fsync);
        stream.pass(110 * MS);
        stream.write_back(file(10), 0, 2);
        let page = Reason::Writeback {
            file: file(10),
            index: 0,
        };
        stream.blocked(APP, (10 + round) * MS, page, Some(CallKind::Fsync));
        stream.exit(APP, fsync, begin, 0);
        stream.pass(57 * MS);
    }
    stream
}

/// Steps that the reader gives for a recording with one round every 20 ms.
fn steps(stream: &Stream) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut round_ns = 20 * MS;
    for event in &stream.events {
        while event.time_ns >= round_ns {
            steps.push(Step::Until(round_ns));
            round_ns += 20 * MS;
        }
        steps.push(Step::Event(event.clone()));
    }
    steps
}

fn intervals(steps: Vec<Step>, most: usize) -> Vec<Waits> {
    let mut intervals = Vec::new();
    let steps = steps.into_iter().map(Ok);
    let path = Path::new("x");
    report::watch_waits(&header(), steps, path, INTERVAL, &mut |interval| {
        intervals.push(interval.clone());
        intervals.len() < most
    })
    .unwrap();
    intervals
}

#[test]
fn all_intervals_together_are_the_report() {
    let stream = stream();
    let report = Report::of(&stream.link().0).unwrap();
    let intervals = intervals(steps(&stream), usize::MAX);
    assert!(intervals.len() > 7, "{}", intervals.len());
    let waited = |it: &Waits| it.foreground.total_ns;
    assert_eq!(
        intervals.iter().map(waited).sum::<u64>(),
        report.foreground.total_ns
    );
    let accounts = intervals.iter().flat_map(|it| &it.accounts);
    assert_eq!(
        accounts.map(|it| it.total_ns).sum::<u64>(),
        report.foreground.total_ns
    );
    let used = intervals.iter().flat_map(|it| it.uses.values());
    let all: u64 = report.io.iter().map(|io| io.requests).sum();
    assert_eq!(used.map(|it| it.requests).sum::<u64>(), all);
    let last = intervals.last().unwrap();
    assert_eq!(last.at_ns, stream.events.last().unwrap().time_ns);
}

#[test]
fn a_wait_has_its_call_its_file_and_who_it_is_because_of() {
    let intervals = intervals(steps(&stream()), usize::MAX);
    let waits: Vec<_> = intervals.iter().flat_map(|it| &it.foreground.top).collect();
    assert_eq!(waits.len(), 5);
    for wait in waits {
        assert_eq!(wait.process, "app");
        assert_eq!(wait.call.as_deref(), Some("fsync"));
        assert_eq!(wait.class.name(), "D_sync");
        assert_eq!(wait.file.as_deref(), Some("/data/a"));
        assert_eq!(wait.other.as_deref(), Some("other-app"));
    }
}

#[test]
fn a_call_that_does_not_return_is_shown_meanwhile() {
    let mut stream = Stream::new();
    let fsync = Stream::call(CallKind::Fsync, file(10), 0, 0);
    stream.enter(APP, &fsync);
    let mut steps = steps(&stream);
    steps.extend((1..=30).map(|round| Step::Until(round * 20 * MS)));
    let intervals = intervals(steps, usize::MAX);
    assert_eq!(intervals.len(), 6);
    // In the first interval the call has only just begun.
    assert!(intervals[0].under_way.is_empty());
    for (before, interval) in intervals.iter().zip(&intervals[1..]) {
        let call = &interval.under_way[0];
        assert_eq!((&*call.process, &*call.call), ("app", "fsync"));
        assert_eq!(call.file.as_deref(), Some("/data/a"));
        let earlier = before.under_way.first().map_or(0, |call| call.so_far_ns);
        assert!(call.so_far_ns > earlier);
    }
}

#[test]
fn it_ends_when_nobody_watches_any_more() {
    assert_eq!(intervals(steps(&stream()), 2).len(), 2);
}

#[test]
fn what_is_over_is_forgotten_and_names_are_not() {
    let stream = stream();
    let mut linker = Linker::new(&header(), None, Store::temporary().unwrap()).unwrap();
    for event in &stream.events {
        linker.event(event).unwrap();
    }
    let count = |store: &Store, table: &str| -> u64 {
        let query = format!("SELECT count(*) FROM {table}");
        let database = store.database();
        database.query_row(&query, [], |row| row.get(0)).unwrap()
    };
    let known = ["tasks", "files", "devices"];
    let store = linker.interval(stream.now).unwrap();
    let before = known.map(|table| count(store, table));
    assert_eq!(count(store, "waits"), 5);
    linker.forget().unwrap();
    let store = linker.interval(stream.now).unwrap();
    for table in ["waits", "syscalls", "requests", "bios", "segments", "links"] {
        assert_eq!(count(store, table), 0, "{table}");
    }
    assert_eq!(known.map(|table| count(store, table)), before);
}
