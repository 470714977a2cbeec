//! Reads every export format with a reader of that format.

use crate::perfetto::Trace;
use crate::synthetic::*;
use iopro::event::*;
use iopro::export::{Error, Export, Format};
use iopro::link::Linker;
use iopro::recording::Ending;
use iopro::tables::TABLES;
use parquet::file::reader::{FileReader, SerializedFileReader};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A write by one app, an fsync by another app that waits for it, and a read.
fn stream() -> Stream {
    let mut stream = Stream::new();
    stream.write(OTHER_APP, file(10), 0, 2 * PAGE, true);
    stream.write_back(file(10), 0, 2);
    let fsync = Stream::call(CallKind::Fsync, file(10), 0, 0);
    let begin = stream.enter(APP, &fsync);
    stream.pass(3 * MS);
    let page = Reason::Writeback {
        file: file(10),
        index: 0,
    };
    stream.blocked(APP, 2 * MS, page, Some(CallKind::Fsync));
    stream.exit(APP, fsync, begin, 0);
    let begin = stream.now;
    // Both requests are in flight at the same time.
    let reads = [io(Op::Read, 0, 0, PAGE), io(Op::Read, 0, 80, PAGE)];
    let bios = reads.map(|read| stream.queue(APP, read));
    let requests =
        [0, 1].map(|at| stream.issue(reads[at], &[(bios[at], Some((file(11), at as u64)), PAGE)]));
    stream.pass(MS);
    for (request, read) in requests.iter().zip(reads) {
        stream.complete(*request, read);
    }
    let call = Stream::call(CallKind::Pread64, file(11), 0, 2 * PAGE);
    stream.exit(APP, call, begin, 2 * PAGE as i64);
    stream
}

fn export(format: Format, directory: &Path) -> PathBuf {
    let output = directory.join(format.suffix());
    let stream = stream();
    let export = Export::begin(format, &output).unwrap();
    let store = export.store().unwrap();
    let mut linker = Linker::new(&header(), None, store).unwrap();
    for event in &stream.events {
        linker.event(event).unwrap();
    }
    let end_ns = stream.now;
    let store = linker.finish(Some(Ending::Complete { end_ns })).unwrap();
    export.finish(store).unwrap();
    output
}

/// Number of rows of each table in the SQLite export.
fn counts(database: &rusqlite::Connection) -> BTreeMap<&'static str, u64> {
    let count = |name| {
        let query = format!("SELECT count(*) FROM {name}");
        database.query_row(&query, [], |row| row.get(0)).unwrap()
    };
    TABLES
        .iter()
        .map(|table| (table.name, count(table.name)))
        .collect()
}

#[test]
fn sqlite_has_all_tables_whole() {
    let directory = tempfile::tempdir().unwrap();
    let output = export(Format::Sqlite, directory.path());
    let database = rusqlite::Connection::open(output).unwrap();
    let check: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    let counts = counts(&database);
    assert_eq!(
        (counts["syscalls"], counts["requests"], counts["waits"]),
        (4, 3, 1)
    );
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn parquet_and_csv_have_the_rows_of_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = export(Format::Sqlite, directory.path());
    let database = rusqlite::Connection::open(sqlite).unwrap();
    let counts = counts(&database);
    let parquet = export(Format::Parquet, directory.path());
    let csv = export(Format::Csv, directory.path());
    for table in TABLES {
        let file = std::fs::File::open(parquet.join(format!("{}.parquet", table.name))).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.metadata().file_metadata().num_rows() as u64;
        assert_eq!(rows, counts[table.name], "{}", table.name);
        let path = csv.join(format!("{}.csv", table.name));
        let mut reader = csv::Reader::from_path(path).unwrap();
        let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        assert_eq!(reader.headers().unwrap(), names.as_slice());
        assert_eq!(
            reader.records().count() as u64,
            counts[table.name],
            "{}",
            table.name
        );
    }
}

#[test]
fn parquets_values_are_those_of_the_tables() {
    let directory = tempfile::tempdir().unwrap();
    let output = export(Format::Parquet, directory.path());
    let file = std::fs::File::open(output.join("waits.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<String> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().to_string())
        .collect();
    assert_eq!(rows.len(), 1);
    for part in ["class: \"D_sync\"", "cause: null", "iowait: true"] {
        assert!(rows[0].contains(part), "{}", rows[0]);
    }
}

#[test]
fn vcd_goes_up_and_down_to_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let output = export(Format::Vcd, directory.path());
    let file = std::io::BufReader::new(std::fs::File::open(output).unwrap());
    let mut parser = vcd::Parser::new(file);
    let header = parser.parse_header().unwrap();
    let reads = header
        .find_var(&["storage", "reads_in_the_device"])
        .unwrap()
        .code;
    let (mut time, mut levels) = (0, Vec::new());
    for command in parser {
        match command.unwrap() {
            vcd::Command::Timestamp(at) => {
                assert!(at >= time);
                time = at;
            }
            vcd::Command::ChangeVector(line, bits) if line == reads => {
                let level = bits
                    .iter()
                    .fold(0, |sum, bit| sum << 1 | u64::from(bit == vcd::Value::V1));
                levels.push(level);
            }
            _ => {}
        }
    }
    assert_eq!(levels, [0, 1, 2, 1, 0]);
}

#[test]
fn perfettos_slices_nest_and_arrows_lead_from_calls_to_requests() {
    let directory = tempfile::tempdir().unwrap();
    let output = export(Format::Perfetto, directory.path());
    let trace = Trace::decode(std::fs::read(output).unwrap().as_slice()).unwrap();
    let mut tracks = BTreeSet::new();
    let mut open: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let (mut time, mut from, mut to) = (0, BTreeSet::new(), BTreeSet::new());
    let mut deepest = 0;
    for packet in trace.packet {
        if let Some(track) = packet.track_descriptor {
            assert!(
                track
                    .parent_uuid
                    .is_none_or(|parent| tracks.contains(&parent))
            );
            tracks.insert(track.uuid.unwrap());
        }
        let Some(event) = packet.track_event else {
            continue;
        };
        assert!(packet.timestamp.unwrap() >= time);
        time = packet.timestamp.unwrap();
        let track = event.track_uuid.unwrap();
        assert!(tracks.contains(&track));
        let stack = open.entry(track).or_default();
        match event.r#type {
            Some(1) => stack.push(event.name.unwrap()),
            Some(2) => assert!(stack.pop().is_some()),
            other => panic!("{other:?}"),
        }
        deepest = deepest.max(stack.len());
        from.extend(event.flow_ids);
        to.extend(event.terminating_flow_ids);
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    assert_eq!(deepest, 2, "the wait is inside of its call");
    assert!(!from.is_empty());
    assert_eq!(from, to);
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        let output = directory.path().join(format.name());
        std::fs::write(&output, "precious").unwrap();
        let refused = Export::begin(format, &output);
        assert!(matches!(refused, Err(Error::Exists { .. })));
        assert_eq!(std::fs::read(&output).unwrap(), b"precious");
    }
}

#[test]
fn what_was_not_finished_leaves_nothing_and_is_in_nobodys_way() {
    let directory = tempfile::tempdir().unwrap();
    let left = || std::fs::read_dir(directory.path()).unwrap().count();
    for format in Format::ALL {
        let output = directory.path().join(format.suffix());
        // The directory of an export that was killed and could not remove it.
        let dead = directory.path().join(".frontrow-dead");
        std::fs::create_dir(&dead).unwrap();
        std::fs::set_permissions(&dead, Permissions::from_mode(0o700)).unwrap();
        std::fs::write(dead.join("export"), "half").unwrap();
        let half = Export::begin(format, &output).unwrap();
        let store = half.store().unwrap();
        drop((store, half));
        assert_eq!(left(), 0, "{format:?}");
        export(format, directory.path());
        assert_eq!(left(), 1, "{format:?}");
        let mode = std::fs::metadata(&output).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{format:?} names all users' files");
        match output.is_dir() {
            true => std::fs::remove_dir_all(&output).unwrap(),
            false => std::fs::remove_file(&output).unwrap(),
        }
    }
}
