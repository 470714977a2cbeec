use super::*;
use crate::files::Sum;
use crate::stream::tests::{CONFIG, Writer};
use crate::stream::{PAGE_BYTES, Page, Record};
use replay::flash::OPERATION_COUNTERS;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Time between two commands: each has ended when the next is sent.
const STEP_NS: u64 = 50_000_000;
/// First of the pages that the file system does not use.
const FREE_PAGE: u32 = 3000;
/// Commands that a FLUSH follows.
const ROUNDS: u32 = 24;

const FILE: &str = "kept";
const CONTENT: &[u8] = b"this is in flash";

/// The bytes of an ext4 of the device's size, with one file.
fn file_system() -> Vec<u8> {
    let scratch = tempfile::tempdir().unwrap();
    let (files, image) = (scratch.path().join("files"), scratch.path().join("image"));
    fs::create_dir(&files).unwrap();
    fs::write(files.join(FILE), CONTENT).unwrap();
    let made = Command::new("mke2fs")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .args(["-q", "-t", "ext4", "-b", "4096", "-O", "^has_journal", "-d"])
        .args([&files, &image])
        .arg(CONFIG[0].to_string())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    fs::read(image).unwrap()
}

/// A host that makes a file system, and then writes pages besides it and flushes each.
struct Host {
    writer: Writer,
    now_ns: u64,
}

impl Host {
    fn send(&mut self, what: What, pages: &[Page]) {
        self.now_ns += STEP_NS;
        let now_ns = self.now_ns;
        self.writer.record(&Record { now_ns, what }, pages);
    }

    fn write(&mut self, lba: u32, page: Page) {
        let what = What::Write {
            lba,
            pages: vec![0],
            stream: 0,
            fua: false,
        };
        self.send(what, &[page]);
    }

    fn mark(&mut self, begins: Phase) {
        let files = BTreeMap::from([(FILE.to_owned(), Sum::of(CONTENT))]);
        let text = serde_json::to_vec(&Mark { begins, files }).unwrap();
        self.send(What::Mark(text), &[]);
    }
}

fn stream() -> Stream {
    let mut host = Host {
        writer: Writer::new(CONFIG),
        now_ns: 0,
    };
    let image = file_system();
    for (lba, page) in (0..).zip(image.chunks_exact(PAGE_BYTES)) {
        if page.iter().any(|byte| *byte != 0) {
            host.write(lba, Page::Bytes(Box::new(page.try_into().unwrap())));
        }
    }
    host.send(What::Flush, &[]);
    host.mark(Phase::Defragmentation);
    for round in 0..ROUNDS {
        host.write(FREE_PAGE + round % 5, Page::Word(u64::from(round) + 1));
        host.send(What::Flush, &[]);
    }
    host.mark(Phase::End);
    let end_ns = host.now_ns + STEP_NS;
    let bytes = host.writer.end(0, end_ns, [0; OPERATION_COUNTERS]);
    let mut stream = Stream::read(&bytes).unwrap();
    stream.counters = counters(&stream);
    stream
}

/// What a device counts that gets this stream.
fn counters(stream: &Stream) -> [u64; OPERATION_COUNTERS] {
    let mut player = Player::new(stream).unwrap();
    while player.go_on().unwrap().is_some() {}
    player.flash().run(stream.end_ns);
    player.flash().operation_counters()
}

fn cut_everywhere(stream: &Stream) -> Result<Outcome, Error> {
    let request = Request {
        random_points: 60,
        seed: 7,
        jobs: 1,
    };
    cut(stream, request, &|_, _| {}, &AtomicBool::new(false))
}

#[test]
fn a_device_that_keeps_its_promise_loses_nothing() {
    let outcome = cut_everywhere(&stream()).unwrap();
    assert!(outcome.defragmentation_operations > 10, "{outcome:?}");
    assert!(outcome.files_read > 60, "{outcome:?}");
}

#[test]
fn a_device_that_ignores_a_flush_is_caught() {
    let mut stream = stream();
    stream.ignores_flush = true;
    stream.counters = counters(&stream);
    let error = cut_everywhere(&stream).unwrap_err();
    let Error::Cut { what, .. } = &error else {
        panic!("{error}");
    };
    assert!(matches!(**what, Error::Page(_)), "{error}");
}

#[test]
fn what_ends_in_a_step_is_acknowledged_unless_the_step_is_cut() {
    let acknowledged = |operation| {
        let point = Point {
            step: 7,
            operation,
            seed: 1,
        };
        (point.moment().sent, point.moment().acknowledged)
    };
    assert_eq!(acknowledged(0), (7, 8));
    assert_eq!(acknowledged(3), (7, 7));
}
