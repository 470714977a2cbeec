//! Recordings that were changed, by accident or on purpose. Events before the damage are read, no
//! event is invented, nothing panics, and memory does not depend on numbers in the file.
//!
//! The changes are the same each time; `FUZZ_ROUNDS=N` makes N times as many.

use iopro::event::Event;
use iopro::export::{Export, Format};
use iopro::link::link;
use iopro::recording::{Ending, Reader};
use iopro::report::{self, Report};
use iopro::store::Store;
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use sys::random::Random;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// No recording of this size takes more, however it is linked.
const MEMORY_BYTES: usize = 256 << 20;

/// Allocator that counts allocated bytes and their maximum.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Only one test runs at a time, since the counters are the process's.
static ALONE: Mutex<()> = Mutex::new(());

fn most_memory(what: impl FnOnce()) -> usize {
    let before = USED.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    what();
    MOST.load(Ordering::Relaxed) - before
}

fn rounds() -> u64 {
    let rounds = std::env::var("FUZZ_ROUNDS").ok();
    rounds.map_or(1, |rounds| rounds.parse().expect("FUZZ_ROUNDS is a number"))
}

fn recordings() -> Vec<Vec<u8>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "iopro"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

const BLOCK_HEADER_BYTES: usize = 32;

/// Offset of the header and of the payload of each block.
fn blocks(file: &[u8]) -> Vec<(usize, usize)> {
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let mut blocks = Vec::new();
    let mut at = header_end(file);
    while at + BLOCK_HEADER_BYTES <= file.len() {
        let end = at + BLOCK_HEADER_BYTES + number(at + 8);
        blocks.push((at, end));
        at = end;
    }
    blocks
}

fn header_end(file: &[u8]) -> usize {
    12 + u32::from_le_bytes(file[8..12].try_into().unwrap()) as usize + 8
}

/// Corrects all checksums, as the forger of a recording would.
fn sign(file: &mut [u8]) {
    let end = header_end(file);
    let checksum = xxh3_64(&file[8..end - 8]);
    file[end - 8..end].copy_from_slice(&checksum.to_le_bytes());
    for (start, end) in blocks(file) {
        let mut checksum = Xxh3::new();
        checksum.update(&file[start..start + 24]);
        checksum.update(&file[start + BLOCK_HEADER_BYTES..end]);
        file[start + 24..start + 32].copy_from_slice(&checksum.digest().to_le_bytes());
    }
}

/// Numbers at the limits of integer arithmetic.
const EDGES: [u64; 10] = [
    0,
    1,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_f000,
    0xffff_ffff_ffff_fffe,
    u64::MAX,
];

/// Changes some bytes of `part`.
fn change(part: &mut [u8], random: &mut Random) {
    if part.len() < 8 {
        return;
    }
    let at = random.index(part.len());
    match random.index(5) {
        0 => part[at] ^= 1 << random.index(8),
        1 => part[at] = random.next_u64() as u8,
        2 => {
            let at = (at & !3).min(part.len() - 4);
            let edge = EDGES[random.index(EDGES.len())] as u32;
            part[at..at + 4].copy_from_slice(&edge.to_le_bytes());
        }
        3 => {
            let at = (at & !7).min(part.len() - 8);
            let edge = EDGES[random.index(EDGES.len())];
            part[at..at + 8].copy_from_slice(&edge.to_le_bytes());
        }
        _ => {
            // A number from elsewhere: another file's, or an earlier time.
            let at = (at & !7).min(part.len() - 8);
            let from = (random.index(part.len()) & !7).min(part.len() - 8);
            part.copy_within(from..from + 8, at);
        }
    }
}

/// A forged recording: numbers in records are wrong, checksums are right.
fn forged(file: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut forged = file.to_vec();
    let full: Vec<(usize, usize)> = blocks(file)
        .into_iter()
        .filter(|(start, end)| end - start > BLOCK_HEADER_BYTES)
        .collect();
    for _ in 0..1 + random.index(30) {
        let (start, end) = full[random.index(full.len())];
        change(&mut forged[start + BLOCK_HEADER_BYTES..end], &mut random);
    }
    if random.index(4) == 0 {
        let digits: Vec<usize> = (12..header_end(file) - 8)
            .filter(|at| file[*at].is_ascii_digit())
            .collect();
        for _ in 0..4 {
            forged[digits[random.index(digits.len())]] = b'0' + random.index(10) as u8;
        }
    }
    sign(&mut forged);
    forged
}

/// All events and the ending; None if it is no recording.
fn read(file: &[u8]) -> Option<(Vec<Event>, Option<Ending>)> {
    let reader = match Reader::new(file, Path::new("x")) {
        Ok(reader) => reader,
        Err(error) => {
            assert_is_sentence(&error.to_string());
            return None;
        }
    };
    let mut events = reader.events();
    let read = (&mut events).map(Result::unwrap).collect();
    Some((read, events.ending()))
}

fn assert_is_sentence(text: &str) {
    assert!(!text.contains('\n') && text.len() < 300, "{text}");
}

/// Whether `whole` has all events of `part` in the same order.
fn is_part(part: &[Event], whole: &[Event]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|event| whole.any(|it| it == event))
}

#[test]
fn what_is_read_of_a_damaged_recording_was_recorded() {
    let _alone = ALONE.lock();
    for file in recordings() {
        let (whole, ending) = read(&file).unwrap();
        assert!(matches!(ending, Some(Ending::Complete { .. })));
        for seed in 0..200 * rounds() {
            let mut random = Random::new(seed);
            let mut damaged = file.clone();
            match random.index(4) {
                0 => damaged.truncate(random.index(file.len())),
                1 => {
                    let at = random.index(file.len());
                    damaged.drain(at..(at + random.index(5000)).min(file.len()));
                }
                2 => {
                    let (at, from) = (random.index(file.len()), random.index(file.len()));
                    let piece = file[from..(from + random.index(5000)).min(file.len())].to_vec();
                    damaged.splice(at..at, piece);
                }
                _ => {
                    for _ in 0..1 + random.index(5) {
                        change(&mut damaged, &mut random);
                    }
                }
            }
            let unchanged = damaged == file;
            let Some((events, ending)) = read(&damaged) else {
                continue;
            };
            // A block that the file has twice is complete both times.
            let mut events = events;
            events.dedup();
            assert!(is_part(&events, &whole), "seed {seed}");
            let complete = matches!(ending, Some(Ending::Complete { .. }));
            assert!(
                !complete
                    || unchanged
                    || events.len() == whole.len()
                    || file.len() != damaged.len(),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn a_recording_cut_at_any_block_is_linked_and_reported_up_to_there() {
    let _alone = ALONE.lock();
    let file = &recordings()[0];
    let blocks = blocks(file);
    let mut most = 0;
    for (start, _) in blocks.iter().step_by((blocks.len() / 8).max(1)) {
        // The cut is in the middle of the block's header.
        let report = report_of(&file[..start + 16]).unwrap();
        assert_eq!(report.recording.ending, "cut short");
        let text = report::text(&report, 100);
        assert!(text.contains("was cut short"), "{text}");
        let requests = report.io.iter().map(|io| io.requests).sum::<u64>();
        assert!(requests >= most);
        most = requests;
    }
    assert!(most > 0);
}

fn report_of(file: &[u8]) -> Result<Report, String> {
    let path = Path::new("x");
    let reader = Reader::new(file, path).map_err(|error| error.to_string())?;
    let store = Store::temporary().unwrap();
    let linked = link(reader, path, None, store, &mut |_| {}).map_err(|error| error.to_string())?;
    Report::of(&linked).map_err(|error| error.to_string())
}

#[test]
fn forged_recordings_are_read_in_bounded_memory() {
    let _alone = ALONE.lock();
    for file in recordings() {
        for seed in 0..150 * rounds() {
            let forged = forged(&file, seed);
            let memory = most_memory(|| {
                let reader = Reader::new(&forged[..], Path::new("x"));
                if let Ok(reader) = reader {
                    reader.events().for_each(|event| drop(event.unwrap()));
                }
            });
            assert!(memory < 8 * file.len() + (1 << 20), "seed {seed}: {memory}");
        }
    }
}

#[test]
fn forged_recordings_are_linked_reported_and_exported_in_bounded_memory() {
    let _alone = ALONE.lock();
    for file in recordings() {
        for seed in 0..25 * rounds() {
            let forged = forged(&file, 1_000_000 + seed);
            let format = Format::ALL[seed as usize % Format::ALL.len()];
            let used = || most_memory(|| use_all_of(&forged, format));
            let outcome = catch_unwind(AssertUnwindSafe(used));
            match outcome {
                Ok(memory) => assert!(memory < MEMORY_BYTES, "seed {seed}: {memory}"),
                Err(_) => panic!("seed {seed} panics"),
            }
        }
    }
}

/// A user's operations on a recording: a report and an export. Errors are allowed and must be
/// sentences.
fn use_all_of(file: &[u8], format: Format) {
    if let Ok(report) = report_of(file) {
        report::text(&report, 80);
        report::html(&report);
        serde_json::to_string(&report).unwrap();
    }
    let path = Path::new("x");
    let Ok(reader) = Reader::new(file, path) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join(format.name());
    let export = Export::begin(format, &output).unwrap();
    let store = export.store().unwrap();
    if let Ok(store) = link(reader, path, None, store, &mut |_| {}) {
        // Times before the boot of the machine are refused with a sentence.
        if let Err(error) = export.finish(store) {
            assert_is_sentence(&error.to_string());
        }
    }
}
