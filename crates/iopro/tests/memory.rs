//! The memory that a recording takes does not depend on its length.
//!
//! The test repeats a recording of a real kernel, lap after lap. Each lap has files and commits of
//! its own, and pages that are never written back, as many as the memory's limit allows.
//!
//! `MEMORY_LAPS=N` makes it longer. It is one test, since memory is counted for the process.

use iopro::export::{Export, Format};
use iopro::link::link;
use iopro::recording::{Reader, Writer};
use iopro::report::{self, Report};
use iopro::store::Store;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

const MOST_KIB: u64 = 200 << 10;

const LAPS: u64 = 25;
/// Longer than the recording, in nanoseconds.
const LAP_NS: u64 = 600_000_000_000;
/// More commits than the recording has.
const LAP_COMMITS: u64 = 1000;

/// Dirty pages of each lap, and the most of all laps. Each is in a region of its own, so they
/// exceed the linker's memory. After that the same pages are written again.
const PENDING: u64 = 1500;
const PENDING_AT_MOST: u64 = 100_000;
const REGION_BYTES: u64 = 16 << 20;
const PAGE_BYTES: u64 = 4096;

/// Length of a block's header, which has its kind, CPU, length and time.
const BLOCK_HEADER_BYTES: usize = 32;
const DATA: u64 = 1;
const ROUND: u64 = 2;

/// Length of the field before a record that holds its length.
const RING_HEADER_BYTES: usize = 8;

const CALL_EXIT: u8 = 2;
const DIRTIED: u8 = 7;
const BLOCKED: u8 = 25;
const JOURNAL_COMMIT: u8 = 5;
const PWRITE64: u8 = 7;
/// Flags of a call whose file, offset and size are known.
const HAS_ALL: u64 = 7;

/// Offsets of times, files and transactions in a kind of record (`bpf/wire.h`), without the time at
/// its begin.
struct Places {
    times: &'static [usize],
    files: &'static [usize],
    transactions: &'static [usize],
}

fn places(kind: u8, op: u8) -> Places {
    let (times, files, transactions): (&[usize], &[usize], &[usize]) = match (kind, op) {
        (1 | 2, _) => (&[16], &[48], &[]),
        (3, _) => (&[16], &[48, 72], &[]),
        (4 | 20, _) => (&[], &[48], &[]),
        (6..=8, _) => (&[16], &[24], &[]),
        (9 | 29, _) => (&[], &[16], &[]),
        (10, _) => (&[32], &[16], &[]),
        (19, _) => (&[], &[64], &[]),
        (23 | 24, _) => (&[], &[], &[20]),
        (BLOCKED, JOURNAL_COMMIT) => (&[16, 24], &[], &[48]),
        (BLOCKED, 1 | 2 | 14) => (&[16, 24], &[32], &[]),
        (BLOCKED, _) => (&[16, 24], &[], &[]),
        (26, _) => (&[16], &[], &[]),
        _ => (&[], &[], &[]),
    };
    Places {
        times,
        files,
        transactions,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()).into()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn add(bytes: &mut [u8], at: usize, more: u64) {
    let sum = u32_at(bytes, at) + more;
    bytes[at..at + 4].copy_from_slice(&(sum as u32).to_le_bytes());
}

/// The records in the content of a ring, each with the padding after it.
fn records(ring: &mut [u8]) -> impl Iterator<Item = &mut [u8]> {
    let mut rest = ring;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (length, behind) = std::mem::take(&mut rest).split_at_mut(RING_HEADER_BYTES);
        let length = u64_at(length, 0).next_multiple_of(8) as usize;
        let (record, behind) = behind.split_at_mut(length);
        rest = behind;
        Some(record)
    })
}

/// Changes a record to one that is `lap` laps later.
fn move_on(record: &mut [u8], lap: u64) {
    let places = places(record[12] & 0x7f, record[13]);
    put(record, 0, u64_at(record, 0) + lap * LAP_NS);
    for &at in places.times {
        let time_ns = u64_at(record, at);
        if time_ns != 0 {
            put(record, at, time_ns + lap * LAP_NS);
        }
    }
    // The generation of an inode number that was used again; a block device has none.
    for &at in places.files {
        if record.len() >= at + 16 && u64_at(record, at) != 0 {
            add(record, at + 12, lap);
        }
    }
    for &at in places.transactions {
        add(record, at, lap * LAP_COMMITS);
    }
}

enum Block {
    Data(u16, Vec<u8>),
    Round(u64),
}

/// The blocks of a recording, without the last one.
fn blocks(path: &Path) -> Vec<Block> {
    let file = fs::read(path).unwrap();
    let mut at = 12 + u32_at(&file, 8) as usize + 8;
    let mut blocks = Vec::new();
    while at < file.len() {
        let kinds = u32_at(&file, at + 4);
        let start = at + BLOCK_HEADER_BYTES;
        let end = start + u32_at(&file, at + 8) as usize;
        match kinds & 0xffff {
            DATA => blocks.push(Block::Data((kinds >> 16) as u16, file[start..end].to_vec())),
            ROUND => blocks.push(Block::Round(u64_at(&file, at + 16))),
            _ => {}
        }
        at = end;
    }
    blocks
}

/// Records of a page that is written and stays dirty, as a ring has them.
fn pending(file: &[u8], thread: &[u8], number: u64, time_ns: u64) -> Vec<u8> {
    let offset = number % PENDING_AT_MOST * REGION_BYTES;
    let head = |kind: u8, op: u8| [&time_ns.to_le_bytes(), thread, &[kind, op, 0, 0]].concat();
    let numbers =
        |numbers: &[u64]| -> Vec<u8> { numbers.iter().flat_map(|it| it.to_le_bytes()).collect() };
    let begin = numbers(&[time_ns]);
    let place = numbers(&[offset / PAGE_BYTES, 1]);
    let dirtied = [&head(DIRTIED, 0)[..], &begin, file, &place].concat();
    let range = numbers(&[PAGE_BYTES, offset, PAGE_BYTES]);
    let fd_and_has = numbers(&[3 | HAS_ALL << 32]);
    let call = [
        &head(CALL_EXIT, PWRITE64)[..],
        &begin,
        &range,
        file,
        &fd_and_has,
    ]
    .concat();
    let with_length = |record: &[u8]| [&numbers(&[record.len() as u64])[..], record].concat();
    match number < PENDING_AT_MOST {
        true => [with_length(&dirtied), with_length(&call)].concat(),
        false => with_length(&call),
    }
}

/// The file and the thread of any call.
fn somebody(blocks: &mut [Block]) -> (Vec<u8>, Vec<u8>) {
    for block in blocks {
        let Block::Data(_, ring) = block else {
            continue;
        };
        for record in records(ring) {
            if record[12] == CALL_EXIT && u32_at(record, 68) == HAS_ALL {
                return (record[48..64].to_vec(), record[8..12].to_vec());
            }
        }
    }
    panic!("there is no call with a file");
}

/// Writes a recording of `laps` laps and returns its number of records.
fn write_laps(of: &Path, laps: u64, to: &Path) -> u64 {
    let header = Reader::open(of).unwrap().header().clone();
    let mut blocks = blocks(of);
    let (file, thread) = somebody(&mut blocks);
    let out = BufWriter::new(File::create(to).unwrap());
    let mut writer = Writer::new(out, &header).unwrap();
    let mut count = 0;
    for lap in 0..laps {
        let later_ns = lap * LAP_NS;
        for block in &blocks {
            match block {
                Block::Round(begin_ns) => writer.round(begin_ns + later_ns).unwrap(),
                Block::Data(cpu, ring) => {
                    let mut ring = ring.clone();
                    for record in records(&mut ring) {
                        move_on(record, lap);
                        count += 1;
                    }
                    writer.data(*cpu, &[&ring]).unwrap();
                }
            }
        }
        for number in lap * PENDING..(lap + 1) * PENDING {
            let begin_ns = header.begin_ns + later_ns + LAP_NS / 2;
            let mut written = pending(&file, &thread, number, begin_ns + number);
            writer.data(0, &[&written]).unwrap();
            count += records(&mut written).count() as u64;
        }
        writer
            .round(header.begin_ns + later_ns + LAP_NS / 4 * 3)
            .unwrap();
    }
    writer.end(header.begin_ns + laps * LAP_NS).unwrap();
    count
}

/// Most memory that this process ever had (`VmHWM`), in KiB.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_is_bounded_whatever_the_length_of_the_recording() {
    let laps = std::env::var("MEMORY_LAPS").ok();
    let laps = laps.map_or(LAPS, |laps| laps.parse().expect("MEMORY_LAPS is a number"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.iopro");
    let short = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/6.12.iopro");
    let records = write_laps(Path::new(short), laps, &path);
    let within = |what: &str| {
        let most = most_memory();
        println!("{records} records, {what}: {most} KiB");
        assert!(most <= MOST_KIB, "{what} of {records} records: {most} KiB");
    };
    within("before");
    let linked = |store| {
        let reader = Reader::open(&path).unwrap();
        link(reader, &path, None, store, &mut |_| {}).unwrap()
    };
    let store = linked(Store::temporary().unwrap());
    let ask = |query: &str| -> u64 {
        let database = store.database();
        database.query_row(query, [], |row| row.get(0)).unwrap()
    };
    let ending = "SELECT count(*) FROM recording WHERE value = 'complete'";
    let damaged = "SELECT count(*) FROM recording WHERE name = 'damaged_records'";
    let pending = "SELECT sum(pages) FROM links WHERE kind = 'pending'";
    assert_eq!((ask(ending), ask(damaged)), (1, 0));
    assert!(ask(pending) >= (laps * PENDING).min(PENDING_AT_MOST));
    within("linked");
    let said = Report::of(&store).unwrap();
    assert!(report::text(&said, 120).contains("waited"));
    within("report");
    drop(store);
    for format in Format::ALL {
        let output = directory.path().join(format.name());
        let export = Export::begin(format, &output).unwrap();
        let store = linked(export.store().unwrap());
        export.finish(store).unwrap();
        within(format.name());
        if output.is_dir() {
            fs::remove_dir_all(&output).unwrap();
        } else {
            fs::remove_file(&output).unwrap();
        }
    }
}
