//! Linking of a recording while it is made.

use crate::synthetic::*;
use iopro::event::*;
use iopro::link::Linker;
use iopro::recording::Step;
use iopro::report::{self, Frame, Report};
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

fn frames(steps: Vec<Step>, most: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    let steps = steps.into_iter().map(Ok);
    let path = Path::new("x");
    report::watch(&header(), steps, path, INTERVAL, &mut |frame| {
        frames.push(frame.clone());
        frames.len() < most
    })
    .unwrap();
    frames
}

#[test]
fn waits_are_the_same_without_rows_of_io() {
    let (stream, path) = (stream(), Path::new("x"));
    let mut waits = Vec::new();
    let steps_again = steps(&stream).into_iter().map(Ok);
    report::watch_waits(&header(), steps_again, path, INTERVAL, &mut |interval| {
        waits.push(interval.foreground.clone());
        true
    })
    .unwrap();
    let frames = frames(steps(&stream), usize::MAX);
    let all: Vec<_> = frames.into_iter().map(|it| it.foreground).collect();
    assert!(all.iter().any(|it| it.total_ns > 0));
    assert_eq!(waits, all);
}

#[test]
fn all_intervals_together_are_the_report() {
    let stream = stream();
    let report = Report::of(&stream.link().0).unwrap();
    let frames = frames(steps(&stream), usize::MAX);
    assert!(frames.len() > 7, "{}", frames.len());
    let waited = |frame: &Frame| frame.foreground.total_ns;
    assert_eq!(
        frames.iter().map(waited).sum::<u64>(),
        report.foreground.total_ns
    );
    let requests = |frame: &Frame| frame.io.iter().map(|io| io.requests).sum::<u64>();
    let all: u64 = report.io.iter().map(|io| io.requests).sum();
    assert_eq!(frames.iter().map(requests).sum::<u64>(), all);
    for place in 0..report.layers.len() {
        let spent = |frame: &Frame| frame.layers[place].total_ns;
        assert_eq!(
            frames.iter().map(spent).sum::<u64>(),
            report.layers[place].total_ns,
            "{}",
            report.layers[place].layer
        );
    }
    let last = frames.last().unwrap();
    assert_eq!(last.at_ns, stream.events.last().unwrap().time_ns);
}

#[test]
fn a_wait_has_its_call_its_file_and_who_it_is_because_of() {
    let frames = frames(steps(&stream()), usize::MAX);
    let waits: Vec<_> = frames.iter().flat_map(|it| &it.foreground.top).collect();
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
    let frames = frames(steps, usize::MAX);
    assert_eq!(frames.len(), 6);
    // In the first frame the call has only just begun.
    assert!(frames[0].under_way.is_empty());
    for (before, frame) in frames.iter().zip(&frames[1..]) {
        let call = &frame.under_way[0];
        assert_eq!((&*call.process, &*call.call), ("app", "fsync"));
        assert_eq!(call.file.as_deref(), Some("/data/a"));
        let earlier = before.under_way.first().map_or(0, |call| call.so_far_ns);
        assert!(call.so_far_ns > earlier);
    }
    let text = report::frame_text(&frames[5], 80);
    assert!(text.contains("app in fsync of /data/a"), "{text}");
    assert!(text.contains("nothing blocked"), "{text}");
}

#[test]
fn it_ends_when_nobody_watches_any_more() {
    assert_eq!(frames(steps(&stream()), 2).len(), 2);
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
