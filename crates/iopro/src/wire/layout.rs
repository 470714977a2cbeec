//! Compares the decoder with the C declarations in `bpf/wire.h`: a C program prints a record of each
//! structure and the value of each constant.

use super::*;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::process::Command;

const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bpf");
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/wire/samples.c");
const WIRE_H: &str = include_str!("../bpf/wire.h");

/// Compiles and runs a C program, and returns what it prints.
fn output_of(source: &Path) -> String {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Werror", "-I", HEADERS, "-o"])
        .args([program.as_path(), source])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    let ran = Command::new(&program).output().unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

/// `CopyFileRange` as `COPY_FILE_RANGE`. The fields of a variant are left out.
fn in_capitals(variant: impl Debug) -> String {
    let text = format!("{variant:?}");
    let name = text.split(|letter: char| !letter.is_alphanumeric());
    let mut capitals = String::new();
    for letter in name.take(1).flat_map(str::chars) {
        if letter.is_uppercase() && !capitals.is_empty() {
            capitals.push('_');
        }
        capitals.push(letter.to_ascii_uppercase());
    }
    capitals
}

fn numbers<T: Copy + Debug>(
    prefix: &str,
    all: &[T],
    number: impl Fn(T) -> u8,
) -> Vec<(String, u64)> {
    let name = |variant: T| format!("{prefix}_{}", in_capitals(variant));
    all.iter()
        .map(|&variant| (name(variant), number(variant).into()))
        .collect()
}

/// Names of constants in `wire.h`, with the values that the decoder takes them to have.
fn constants() -> BTreeMap<String, u64> {
    let flags: [(&str, u64); 18] = [
        ("REC_IN_FAULT", IN_FAULT.into()),
        ("CALL_HAS_FILE", CALL_HAS_FILE.into()),
        ("CALL_HAS_OFFSET", CALL_HAS_OFFSET.into()),
        ("CALL_HAS_SIZE", CALL_HAS_SIZE.into()),
        ("CALL_UNFINISHED", CALL_UNFINISHED.into()),
        ("FLAG_DIRECT", CallFlags::DIRECT.0.into()),
        ("FLAG_SYNC", CallFlags::SYNC.0.into()),
        ("FLAG_APPEND", CallFlags::APPEND.0.into()),
        ("FLAG_HALF", CallFlags::HALF.0.into()),
        ("SEGMENT_HAS_PAGES", SEGMENT_HAS_PAGES.into()),
        ("SEGMENT_AT_SHIFT", SEGMENT_AT_SHIFT.into()),
        ("NAME_CUT", NAME_CUT.into()),
        ("BLOCKED_UNINTERRUPTIBLE", BLOCKED_UNINTERRUPTIBLE.into()),
        ("BLOCKED_IOWAIT", BLOCKED_IOWAIT.into()),
        ("BLOCKED_IN_RECLAIM", BLOCKED_IN_RECLAIM.into()),
        ("BLOCKED_OF_FILE", BLOCKED_OF_FILE.into()),
        (
            "BLOCKED_FOR_JOURNAL_SPACE",
            BLOCKED_FOR_JOURNAL_SPACE.into(),
        ),
        ("LOST_KINDS", LostKind::ALL.len() as u64),
    ];
    let reasons: Vec<(u8, Reason)> = (0..=u8::MAX)
        .filter_map(|number| Some((number, reason(number, key(), 0, false)?)))
        .collect();
    let mut all = numbers("REC", Kind::ALL, |it| it as u8);
    all.extend(numbers("CALL", CallKind::ALL, |it| it as u8));
    all.extend(numbers("IO", Op::ALL, |it| it as u8));
    all.extend(numbers("COMMIT", CommitPhase::ALL, |it| it as u8));
    all.extend(numbers("NAME", NameReason::ALL, |it| it as u8));
    all.extend(numbers("LOST", LostKind::ALL, |it| it as u8));
    all.extend(
        reasons.iter().flat_map(|(number, reason)| {
            numbers("WAIT", std::slice::from_ref(reason), |_| *number)
        }),
    );
    all.extend(flags.map(|(name, value)| (name.to_owned(), value)));
    all.into_iter().collect()
}

#[test]
fn each_constant_has_the_value_of_the_kernel_side() {
    let constants = constants();
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("constants.c");
    let prints: String = constants
        .keys()
        .map(|name| format!("\tprintf(\"{name} %llu\\n\", (unsigned long long)({name}));\n"))
        .collect();
    let program = format!(
        "#include <linux/types.h>\n#include <stdio.h>\n#include \"wire.h\"\n\
         int main(void)\n{{\n{prints}\treturn 0;\n}}\n"
    );
    std::fs::write(&source, program).unwrap();
    let output = output_of(&source);
    assert_eq!(output.lines().count(), constants.len());
    for line in output.lines() {
        let (name, value) = line.split_once(' ').unwrap();
        assert_eq!(value, constants[name].to_string(), "{name}");
    }
}

#[test]
fn the_decoder_knows_each_constant_of_the_kernel_side() {
    let known = constants();
    let enumerators = WIRE_H.lines().filter_map(|line| {
        let name = line.strip_prefix('\t')?.split([' ', ',']).next()?;
        let is_constant = name
            .chars()
            .all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_');
        (is_constant && name != "WAIT_NONE").then_some(name)
    });
    let enumerators: Vec<&str> = enumerators.collect();
    assert!(enumerators.len() > 100);
    for name in enumerators {
        assert!(known.contains_key(name), "{name}");
    }
}

/// The file that all samples are about.
fn key() -> FileId {
    FileId {
        dev: Dev::new(8, 1),
        inode: 12,
        generation: 6,
    }
}

fn call(kind: CallKind) -> Call {
    Call {
        kind,
        fd: None,
        file: None,
        from: None,
        offset_bytes: None,
        size_bytes: None,
        flags: CallFlags::default(),
    }
}

fn io(op: Op) -> Io {
    Io {
        dev: Dev::new(8, 0),
        op,
        flags: IoFlags(3),
        sector: 509,
        bytes: 510,
    }
}

fn request(op: Op) -> Request {
    Request {
        request: 501,
        io: io(op),
        ioprio: 513,
    }
}

fn segment(bytes: u32, pages: Option<(FileId, u64)>, at_bytes: u32) -> Segment {
    Segment {
        request: 501,
        bio: 508,
        dev: Dev::new(8, 0),
        sector: 509,
        bytes,
        pages,
        at_bytes,
    }
}

/// What the sample of each structure says.
fn expected() -> BTreeMap<&'static str, What> {
    let transaction = Transaction {
        dev: Dev::new(8, 1),
        tid: 516,
    };
    BTreeMap::from([
        ("rec", What::ThreadEnd),
        (
            "rec_call",
            What::CallExit(CallExit {
                call: Call {
                    fd: Some(4),
                    file: Some(key()),
                    offset_bytes: Some(4096),
                    size_bytes: Some(512),
                    flags: CallFlags::DIRECT,
                    ..call(CallKind::Pwrite64)
                },
                begin_ns: 1000,
                result: -5,
                unfinished: true,
            }),
        ),
        (
            "rec_call_from",
            What::CallExit(CallExit {
                call: Call {
                    from: Some(key()),
                    flags: CallFlags::HALF,
                    ..call(CallKind::Splice)
                },
                begin_ns: 0,
                result: 0,
                unfinished: false,
            }),
        ),
        (
            "rec_ring_submit",
            What::RingSubmit(RingSubmit {
                request: 501,
                opcode: 22,
                user_data: 502,
                file: Some(key()),
                offset_bytes: None,
                size_bytes: Some(504),
                flags: CallFlags::SYNC,
            }),
        ),
        (
            "rec_ring_complete",
            What::RingComplete(RingComplete {
                request: 501,
                user_data: 502,
                result: -4,
            }),
        ),
        (
            "rec_pages",
            What::Dirtied(PageRun {
                file: key(),
                index: 505,
                pages: 3,
                begin_ns: 1000,
            }),
        ),
        (
            "rec_truncated",
            What::Truncated(Truncated {
                file: key(),
                from_bytes: 506,
                to_bytes: 507,
                removed: true,
            }),
        ),
        (
            "rec_writeback",
            What::Writeback(Writeback {
                file: key(),
                begin_ns: 1000,
                pages: 3,
                sync: true,
            }),
        ),
        (
            "rec_bio",
            What::Merge(Merge {
                bio: 508,
                io: io(Op::SecureErase),
                front: true,
            }),
        ),
        (
            "rec_split",
            What::Split(Split {
                bio: 508,
                parent: 511,
                io: io(Op::Write),
                rest_sector: 512,
            }),
        ),
        (
            "rec_plug",
            What::Unplug {
                dev: Dev::new(8, 0),
                requests: 3,
                explicit: true,
            },
        ),
        ("rec_request", What::Insert(request(Op::Read))),
        ("rec_issue", What::Issue(request(Op::Write))),
        ("rec_direct", What::Issue(request(Op::Write))),
        (
            "rec_segment",
            What::Segment(segment(510, Some((key(), 505)), 127 * 512)),
        ),
        (
            "rec_complete",
            What::Complete(Complete {
                request: 501,
                sector: 509,
                bytes: 510,
                remaining_bytes: 515,
                status: 10,
            }),
        ),
        (
            "rec_journal",
            What::Commit(Commit {
                transaction,
                phase: CommitPhase::Logging,
            }),
        ),
        (
            "rec_blocked",
            What::Blocked(Blocked {
                begin_ns: 1000,
                woken_ns: 2000,
                waker: 518,
                reason: Reason::Lock {
                    address: 517,
                    of_file: true,
                },
                uninterruptible: true,
                iowait: false,
                in_reclaim: true,
                for_journal_space: false,
                call: Some(CallKind::Fsync),
            }),
        ),
        (
            "rec_reclaim",
            What::Reclaim {
                begin_ns: 1000,
                reclaimed_pages: 3,
            },
        ),
        (
            "rec_thread",
            What::Thread(ThreadInfo {
                thread: 521,
                process: 522,
                parent: 523,
                start_ns: 519,
                cgroup: 520,
                name: "thread".to_owned(),
                process_name: "process".to_owned(),
                kernel: true,
            }),
        ),
        (
            "rec_name",
            What::Name(Name {
                file: key(),
                path: String::new(),
                cut: true,
                why: NameReason::Renamed,
                mode: 0o100_644,
            }),
        ),
        (
            "rec_cgroup",
            What::Cgroup {
                id: 520,
                path: String::new(),
            },
        ),
        (
            "rec_stack",
            What::Stack {
                id: 524,
                functions: Vec::new(),
            },
        ),
        (
            "rec_lost",
            What::Lost(Lost {
                kind: LostKind::LongRequests,
                count: 525,
            }),
        ),
    ])
}

/// The samples by the name of their structure.
fn samples() -> BTreeMap<String, Vec<u8>> {
    let output = output_of(Path::new(SAMPLES));
    let sample = |line: &str| {
        let (name, digits) = line.split_once(' ').unwrap();
        let bytes = (0..digits.len()).step_by(2);
        let bytes = bytes.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
        (name.to_owned(), bytes.collect())
    };
    output.lines().map(sample).collect()
}

#[test]
fn each_structure_is_decoded_field_by_field() {
    let samples = samples();
    let structures = WIRE_H.lines().filter_map(|line| {
        let name = line.strip_prefix("struct ")?.strip_suffix(" {")?;
        name.starts_with("rec").then_some(name)
    });
    let expected = expected();
    assert_eq!(
        samples.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    for name in structures {
        let (event, second) = decode(&samples[name], 3).unwrap();
        assert_eq!(event.what, expected[name], "{name}");
        assert_eq!((event.time_ns, event.thread), (9000, 77), "{name}");
        assert_eq!(event.in_fault, name == "rec", "{name}");
        let second = second.map(|second| second.what);
        let first_segment = match name {
            "rec_issue" => Some(segment(514, Some((key(), 505)), 512)),
            "rec_direct" => Some(segment(510, None, 0)),
            _ => None,
        };
        assert_eq!(second, first_segment.map(What::Segment), "{name}");
    }
    assert_eq!(queued_ns(&samples["rec_direct"]), Some(9000 - 400));
}

/// Puts the bytes of a sample together as the recorder would write it.
#[test]
fn the_recorders_own_records_are_those_of_the_kernel_side() {
    let samples = samples();
    let lost = super::lost(
        9000,
        Lost {
            kind: LostKind::LongRequests,
            count: 525,
        },
    );
    let own = [
        ("rec_cgroup", cgroup(9000, 520, "")),
        ("rec_stack", stack(9000, 524, &[])),
        ("rec_lost", lost),
    ];
    for (name, mut ring) in own {
        let record = &mut ring[RING_HEADER_BYTES..];
        record[8..12].copy_from_slice(&77u32.to_le_bytes());
        assert_eq!(record, samples[name], "{name}");
    }
}
