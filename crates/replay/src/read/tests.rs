use super::*;
use proptest::prelude::*;
use std::io::Write;

fn parse(text: &[u8]) -> Result<Trace, Error> {
    parse_as(text, &Options::default())
}

fn parse_as(text: &[u8], options: &Options) -> Result<Trace, Error> {
    read_lines(Path::new("trace"), text, options).map(Recording::into_blocks)
}

fn played(text: &str) -> Vec<Operation> {
    parse(text.as_bytes()).unwrap().operations().to_vec()
}

fn said(text: &str) -> String {
    parse(text.as_bytes()).unwrap_err().to_string()
}

fn operation(time_ns: u64, kind: Kind, sector: u64, sectors: u64, lane: u32) -> Operation {
    Operation {
        time_ns,
        kind,
        offset_bytes: sector * 512,
        size_bytes: sectors * 512,
        lane,
    }
}

#[test]
fn a_phones_trace_with_a_comma_in_a_threads_name() {
    let trace = parse(
        b"proces,device,rw_flag,sector,size,timestamp\n\
          <...>-21102,8388608,R,3104240,152,48746.442531\n\
          a,b-7,8388608,W,8,16,48746.4425320001\n\
          <...>-21102,8388608,D,0,8,48747\n",
    )
    .unwrap();
    assert_eq!(
        trace.operations(),
        [
            operation(0, Kind::Read, 3_104_240, 152, 0),
            operation(1_000, Kind::Write, 8, 16, 1),
            operation(557_469_000, Kind::Discard, 0, 8, 0),
        ]
    );
}

#[test]
fn what_blkparse_prints() {
    let trace = parse(
        b"  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n\
          8,0    3        2     0.000001829   697  P   N [kjournald]\n\
          8,0    3        3     0.000002197   697  Q   W 223490 + 8 [kjournald]\n\
          8,0    3        4     0.000005000   697  D  WS 223490 + 8 [kjournald]\n\
          8,0    3        5     0.000006000    12  D  RA 96 + 256 [a b]\n\
          8,0    3        6     0.000007000    12  D  FN [a b]\n\
          8,0    1        7     0.001000000     0  C  WS 223490 + 8 [0]\n\
          CPU3 (8,0):\n\
           Reads Queued:           0,        0KiB\t Writes Queued: 1\n\
          8,0 is no event here\n",
    )
    .unwrap();
    assert_eq!(
        trace.operations(),
        [
            operation(0, Kind::Write, 223_490, 8, 0),
            operation(1_000, Kind::Read, 96, 256, 1),
            operation(2_000, Kind::Flush, 0, 0, 1),
        ]
    );
}

#[test]
fn both_versions_of_fios_log() {
    let expected = [
        Operation {
            time_ns: 0,
            kind: Kind::Read,
            offset_bytes: 45_056,
            size_bytes: 4096,
            lane: 0,
        },
        Operation {
            time_ns: 201_625_000,
            kind: Kind::Flush,
            offset_bytes: 0,
            size_bytes: 0,
            lane: 0,
        },
        Operation {
            time_ns: 201_625_000,
            kind: Kind::Discard,
            offset_bytes: 0,
            size_bytes: 8192,
            lane: 0,
        },
    ];
    let third = parse(
        b"fio version 3 iolog\n20 a.0.0 add\n185 a.0.0 open\n200861 a.0.0 read 45056 4096\n\
          402486 a.0.0 sync 45056 0\n402486 a.0.0 trim 0 8192\n402700 a.0.0 close\n",
    )
    .unwrap();
    assert_eq!(third.operations(), expected);
    let second = parse(
        b"fio version 2 iolog\na.0.0 add\na.0.0 open\na.0.0 wait 20\na.0.0 read 45056 4096\n\
          a.0.0 wait 201625\na.0.0 datasync\na.0.0 trim 0 8192\n",
    )
    .unwrap();
    assert_eq!(second.operations(), expected);
}

fn read_file(path: &Path) -> Result<Trace, Error> {
    read(Input::open(path)?, &Options::default()).map(Recording::into_blocks)
}

#[test]
fn gzip_is_unpacked_and_its_damage_is_an_error() {
    let text = b"proces,device,rw_flag,sector,size,timestamp\na-1,0,R,0,8,1\na-1,0,W,8,8,2\n";
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    let packed = encoder.finish().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.csv.gz");
    std::fs::write(&path, &packed).unwrap();
    assert_eq!(read_file(&path).unwrap(), parse(text).unwrap());
    for length in 2..packed.len() {
        std::fs::write(&path, &packed[..length]).unwrap();
        assert!(read_file(&path).is_err(), "cut at {length}");
    }
}

#[test]
fn a_bad_line_is_named_and_nothing_is_read_past_it() {
    let header = "proces,device,rw_flag,sector,size,timestamp\na-1,0,R,0,8,1\n";
    for (line, reason) in [
        ("a-1,0,R,0,8", "5 of 6 fields"),
        ("a-1,0,X,0,8,1", "neither R, W nor D"),
        ("a-1,0,R,-1,8,1", "'-1' is no number"),
        ("a-1,0,R,0,0,1", "no size"),
        ("a-1,0,R,0,8,1e9", "no time in seconds"),
        ("a-1,0,R,0,8,NaN", "no time in seconds"),
        ("a-1,0,R,0,8,99999999999999999999", "no time in seconds"),
        ("a-1,0,R,18446744073709551615,8,1", "beyond any device"),
        ("a-1,0,R,18014398509481983,8,1", "beyond any device"),
    ] {
        let error = parse(format!("{header}{line}\n").as_bytes()).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("line 3 of trace"), "{said}");
        assert!(said.contains(reason), "{said}");
    }
    for (log, reason) in [
        (
            "fio version 3 iolog\n1 a read 0 4096\n2 b read 0 4096\n",
            "one file at a time",
        ),
        (
            "fio version 2 iolog\na wait 18446744073709551615\na wait 1\n",
            "waits for ever",
        ),
        (
            "8,0 1 1 0.1 7 D R 8 + 8 [x]\n8,16 1 2 0.2 7 D R 8 + 8 [x]\n",
            "8,0 (1), 8,16 (1): choose one with --trace-device",
        ),
        ("8,0 1 1 0.1 7 D R 8 + x [x]\n", "no numbers"),
    ] {
        let said = parse(log.as_bytes()).unwrap_err().to_string();
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    assert!(matches!(parse(b"\x7fELF\n"), Err(Error::Format(_))));
    assert!(matches!(parse(b""), Err(Error::Empty(_))));
    assert!(matches!(
        parse(b"fio version 2 iolog\n"),
        Err(Error::Empty(_))
    ));
    let endless = vec![b'8'; 1 << 17];
    assert!(matches!(parse(&endless), Err(Error::Io(_))));
    assert!(matches!(parse(b"fio \xff\n"), Err(Error::Io(_))));
    assert!(matches!(
        read_file(Path::new("/nonexistent")),
        Err(Error::Io(_))
    ));
}

/// A driver without room puts a request back, and gets it again.
#[test]
fn a_request_that_is_put_back_is_played_once() {
    let blkparse = "8,0 1 1 0.000000000 590 D WS 96 + 8 [app]\n\
        8,0 1 2 0.000000500 590 R WS 96 + 8 [0]\n\
        8,0 1 3 0.000001000 590 D R 512 + 8 [app]\n\
        8,0 1 4 0.000002000 590 D WS 96 + 8 [app]\n\
        8,0 1 5 0.000003000 590 D WS 96 + 8 [app]\n";
    let ftrace = "# tracer: nop\n\
        app-590 [001] ..... 1.000000: block_rq_issue: 8,0 WS 4096 () 96 + 8 [app]\n\
        app-590 [001] ..... 1.000001: block_rq_requeue: 8,0 WS () 96 + 8 [0\n\
        app-590 [001] ..... 1.000001: block_rq_issue: 8,0 R 4096 () 512 + 8 [app]\n\
        app-590 [001] ..... 1.000002: block_rq_issue: 8,0 WS 4096 () 96 + 8 [app]\n\
        app-590 [001] ..... 1.000003: block_rq_issue: 8,0 WS 4096 () 96 + 8 [app]\n";
    for text in [blkparse, ftrace] {
        let trace = parse(text.as_bytes()).unwrap();
        let extents: Vec<_> = trace
            .operations()
            .iter()
            .map(|it| it.offset_bytes / 512)
            .collect();
        assert_eq!(extents, [96, 512, 96], "{text}");
        let left_out: u64 = trace.account().left_out.values().sum();
        assert_eq!((left_out, trace.account().read_events), (1, 4));
    }
}

/// As `../shared/files` has them: what blkparse prints for disks that are in use.
#[test]
fn blkparse_as_it_really_comes() {
    let quiet = "  8,16   1        1     0.000000000   590  D  FN [backup]\n\
          8,16   1        2     0.000100000   590  D  WS 488442149 + 8 [backup]\n\
          8,16   1        3     0.000900000     0  C  WS 488442149 + 8 [0]\n\
        Input file sdb.blktrace.1 added\n";
    let expected = [
        operation(0, Kind::Flush, 0, 0, 0),
        operation(100_000, Kind::Write, 488_442_149, 8, 0),
    ];
    assert_eq!(played(quiet), expected);
    assert_eq!(
        played(&format!("Input file sdb.blktrace.0 added\n{quiet}")),
        expected
    );

    let smart = "259,0    3        1     0.000000000   697  D  FN [fio]\n\
        259,0    3        3     0.000200000   697  D  WFSM 16 + 8 [jbd2]\n\
        259,0    3        4     0.000300000   697  D  DS 1024 + 2048 [fio]\n\
        259,0    3        5     0.000400000   697  D   N 0 [smartd]\n\
        259,0    3        7     0.000600000   697  D   R 36 (12 01 00 00 24 00 ..) [smartctl]\n";
    let trace = parse(smart.as_bytes()).unwrap();
    assert_eq!(trace.operations().len(), 3);
    assert_eq!(trace.account().left_out["passthrough requests"], 2);
    assert_eq!(trace.account().read_events, 5);

    let bios = "252,0    3        1     0.000000000   697  Q  WS 223490 + 8 [fio]\n\
        252,0    3        2     0.001000000   697  C  WS 223490 + 8 [0]\n";
    let trace = parse(bios.as_bytes()).unwrap();
    assert_eq!(
        trace.operations(),
        [operation(0, Kind::Write, 223_490, 8, 0)]
    );
    assert!(
        trace.account().notes[0].contains("bios"),
        "{:?}",
        trace.account()
    );
    let completed = bios.lines().nth(1).unwrap();
    let trace = parse(completed.as_bytes()).unwrap();
    assert_eq!(trace.operations().len(), 1);
    assert!(trace.account().notes[0].contains("completions only"));
}

#[test]
fn of_two_devices_the_trace_asks_for_one() {
    let two = "  8,0    3        1     0.000000000   697  D  WS 223490 + 8 [fio]\n\
          8,16   3        2     0.001000000   697  D  RS 96 + 8 [fio]\n\
          8,16   3        3     0.002000000   697  Q  RS 96 + 8 [fio]\n";
    assert!(
        said(two).contains("8,0 (1), 8,16 (1): choose one with --trace-device"),
        "{}",
        said(two)
    );
    let of = |device: &str| {
        let options = Options {
            device: Some(device.to_owned()),
            ..Options::default()
        };
        parse_as(two.as_bytes(), &options)
    };
    let trace = of("8,16").unwrap();
    assert_eq!(trace.operations(), [operation(0, Kind::Read, 96, 8, 0)]);
    assert_eq!(trace.account().left_out["of other devices"], 1);
    assert!(
        of("8,32")
            .unwrap_err()
            .to_string()
            .contains("no requests of device 8,32")
    );
    // A device without requests of its own lies on one that has them.
    let above = "252,0 3 1 0.0 7 Q WS 8 + 8 [fio]\n  8,0 3 2 0.1 7 D WS 16 + 8 [fio]\n";
    assert_eq!(played(above), [operation(0, Kind::Write, 16, 8, 0)]);
}

#[test]
fn a_last_line_that_is_cut_ends_it() {
    let whole = "  8,16  18        9     1.576175154 23311  D   W 786263520 + 8 [kworker/u82:6]\n";
    let last = "  8,16  18       10     1.576197335 23311  D   W 786263632 + 8 [kworker/u82:6]";
    assert_eq!(played(&format!("{whole}{last}")).len(), 2);
    for length in 30..last.len() {
        let cut = format!("{whole}{}", &last[..length]);
        // Up to the action it may be another one, which says nothing of the request.
        let is_other = last[..length].trim_end().len() <= last.find("D   W").unwrap();
        assert!(is_other || parse(cut.as_bytes()).is_err(), "{cut}");
    }
}

#[test]
fn tracepoints_as_four_tools_print_them() {
    let lines = [
        "             fio-697   [003] d..1.   123.456789: block_rq_issue: 8,0 WS 4096 () 223490 + 8 none,0,0 [fio]",
        "             fio   697 [003]   123.456789: block:block_rq_issue: 8,0 WS 4096 () 223490 + 8 [fio]",
        "   fio-697   (  697) [003] d..1 123.456789: block_rq_issue: 8,0 WS 4096 () 223490 + 8 [fio]",
        "             fio-697   [003]   123.456789: block_rq_issue:       8,0 WS 4096 () 223490 + 8 [fio]",
    ];
    for line in lines {
        assert_eq!(
            played(line),
            [operation(0, Kind::Write, 223_490, 8, 0)],
            "{line}"
        );
        assert_eq!(parse(line.as_bytes()).unwrap().name(0), "fio");
        assert!(parse(&line.as_bytes()[..line.len() - 3]).is_err(), "{line}");
    }
    let whole = "# tracer: nop\n#\n\
        #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n\
          my app-1    [000] .....  1.000000: block_bio_queue: 8,0 R 8 + 8 [my app]\n\
          my app-1    [000] .....  1.000100: sched_switch: prev_comm=my app\n\
          my app-1    [000] .....  1.000200: block_rq_issue: 8,0 R 4096 () 8 + 8 [my app]\n\
        CPU:2 [LOST 3 EVENTS]\n\
          kworker-2   [000] .....  1.000300: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker]\n\
          smart-3     [000] .....  1.000400: block_rq_issue: 8,0 N 512 (a1 08 ..) 0 + 0 [smart]\n\
          <idle>-0    [000] ..s..  1.000500: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]\n";
    let trace = parse(whole.as_bytes()).unwrap();
    let expected = [
        operation(0, Kind::Read, 8, 8, 0),
        operation(100_000, Kind::Flush, 0, 0, 1),
    ];
    assert_eq!(trace.operations(), expected);
    let left: Vec<_> = trace.account().left_out.values().collect();
    assert_eq!(left, [&3, &1], "{:?}", trace.account());
}

#[test]
fn biosnoop_of_bcc_and_of_libbpf() {
    let bcc = "Tracing block device I/O... Hit Ctrl-C to end.\n\
        TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
        0.000004    my app         1950   xvda1   W 13092560   4096      0.002\n\
        0.000178    supervise      1951   xvda1   R 13092432   8192      0.05\n";
    let trace = parse(bcc.as_bytes()).unwrap();
    let expected = [
        operation(0, Kind::Write, 13_092_560, 8, 0),
        operation(126_000, Kind::Read, 13_092_432, 16, 1),
    ];
    assert_eq!(trace.operations(), expected);
    assert_eq!(trace.name(0), "my app");
    let queued = "TIME(s)     COMM           PID     DISK      T    SECTOR     BYTES   QUE(ms) LAT(ms)\n\
        0.000000    fio            12      sda       FWS  0          0       0.001   1.000\n\
        0.000100    fio            12      sda       WS   8          4096    0.001   1.000\n\
        0.000200    fio            12      sdb       WS   8          4096    0.001   1.000\n";
    assert!(
        said(queued).contains("sda (2), sdb (1)"),
        "{}",
        said(queued)
    );
    // Lines of drives' own commands name no disk.
    let driveless = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
        0.000000    ?              0              R 0          8         4.04\n\
        1.000000    jbd2/sda1-8    184    sda     W 2694656    12288     6.72\n\
        2.000000    kworker/23:1   9126           R 18446744073709551615 0         0.61\n";
    let trace = parse(driveless.as_bytes()).unwrap();
    assert_eq!(
        trace.operations(),
        [operation(0, Kind::Write, 2_694_656, 24, 0)]
    );
    assert_eq!(trace.account().left_out["of other devices"], 2);
    let without = "TIME(s)     COMM           PID    DISK    T  BYTES\n1 a 1 sda R 512\n";
    assert!(said(without).contains("no SECTOR"), "{}", said(without));
}

#[test]
fn tables_of_public_sets_and_of_anybodys() {
    let msr = "128166372003061629,hm,1,Read,383496192,32768,1331\n\
        128166372016382155,hm,1,Write,310983168,20480,2326\n";
    assert_eq!(
        played(msr),
        [
            operation(0, Kind::Read, 749_016, 64, 0),
            operation(1_332_052_600, Kind::Write, 607_389, 40, 0),
        ]
    );
    let spc = "0,20941264,8192,W,0.551706\n0,20939840,8192,W,0.554041\n";
    assert_eq!(
        played(spc),
        [
            operation(0, Kind::Write, 20_941_264, 16, 0),
            operation(2_335_000, Kind::Write, 20_939_840, 16, 0),
        ]
    );
    let alibaba = "3,W,1024,4096,1577808000000046\n3,R,0,512,1577808000000047\n";
    assert_eq!(
        played(alibaba),
        [
            operation(0, Kind::Write, 2, 8, 0),
            operation(1000, Kind::Read, 0, 1, 0),
        ]
    );
    // Copies of the sets have a line of names.
    for (header, line, offset, bytes) in [
        (
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            "128166372003061629,hm,1,Read,383496192,32768,413",
            383_496_192,
            32_768,
        ),
        (
            "device_id, opcode, offset, length, timestamp",
            "419,R,8792731648,16384,1577808144360767",
            8_792_731_648,
            16_384,
        ),
    ] {
        let trace = parse(format!("{header}\n{line}\n").as_bytes()).unwrap();
        let read = trace.operations()[0];
        assert_eq!((read.offset_bytes, read.size_bytes), (offset, bytes));
        assert_eq!(trace.account().read_events, 1);
    }
    let cloudphysics =
        "version,time,op,size,lbn\n1,33898,2a,512,42932745\n1,33899,28,4096,8\n1,33899,12,36,0\n";
    let trace = parse(cloudphysics.as_bytes()).unwrap();
    let expected = [
        operation(0, Kind::Write, 42_932_745, 1, 0),
        operation(1_000_000_000, Kind::Read, 8, 8, 0),
    ];
    assert_eq!(trace.operations(), expected);
    assert_eq!(trace.account().left_out.values().sum::<u64>(), 1);

    let own = "when;what;where;length;who\n2.5;flush;0;0;db\n2.0;READ;3;1;db\n2.25;trim;4;2;gc\n";
    let columns = "time=when:ms,op=what,offset=where:4096,size=length:pages,thread=who";
    let options = Options {
        columns: Some(Columns::parse(columns).unwrap()),
        ..Options::default()
    };
    let trace = parse_as(own.as_bytes(), &options).unwrap();
    assert_eq!(
        trace.operations(),
        [
            operation(0, Kind::Read, 24, 8, 0),
            operation(250_000, Kind::Discard, 32, 16, 1),
            operation(500_000, Kind::Flush, 0, 0, 0),
        ]
    );
    assert_eq!(trace.name(1), "gc");
    for (wrong, reason) in [
        ("nobody", "give msr, spc"),
        ("time=1:h,op=2,offset=3,size=4", "no unit of time"),
        ("op=2,offset=3", "size=COLUMN"),
        ("op=0,offset=3,size=4", "counted from 1"),
        ("op=1,offset=3:miles,size=4", "no unit of size"),
        ("op=1,offset=3,size=4,colour=5", "'colour' is none"),
    ] {
        let said = Columns::parse(wrong).unwrap_err();
        assert!(said.contains(reason), "{wrong}: {said}");
    }
    let missing = Options {
        columns: Some(Columns::parse("op=what,offset=nowhere,size=length").unwrap()),
        ..Options::default()
    };
    let said = parse_as(own.as_bytes(), &missing).unwrap_err().to_string();
    assert!(said.contains("no column nowhere, but when, what"), "{said}");
}

#[test]
fn what_is_packed_is_read_as_what_is_not() {
    let text = "3,W,1024,4096,1577808000000046\n".repeat(5000);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let wanted = parse(text.as_bytes()).unwrap();
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(text.as_bytes()).unwrap();
    let xz = encoder.finish().unwrap();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let (one, two) = text.split_at(text.len() / 2);
    let frames = [one, two].map(|it| ruzstd::encoding::compress_to_vec(it.as_bytes(), level));
    // A frame to skip is between the two.
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let zstd = [
        frames[0].as_slice(),
        skipped.as_slice(),
        frames[1].as_slice(),
    ]
    .concat();
    for packed in [xz, zstd] {
        std::fs::write(&path, &packed).unwrap();
        assert_eq!(read_file(&path).unwrap(), wanted);
        for length in [packed.len() - 1, packed.len() - 9, packed.len() / 3, 7] {
            std::fs::write(&path, &packed[..length]).unwrap();
            assert!(read_file(&path).is_err(), "cut at {length}");
        }
        let mut damaged = packed.clone();
        damaged[packed.len() / 2] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        assert!(read_file(&path).is_err(), "damaged");
    }
}

#[test]
fn a_line_over_the_end_of_a_buffer_is_whole() {
    let text = "3,W,1024,4096,1577808000000046\n".repeat(20);
    let wanted = parse(text.as_bytes()).unwrap();
    for capacity in 1..80 {
        let input = std::io::BufReader::with_capacity(capacity, text.as_bytes());
        let read = read_lines(Path::new("trace"), input, &Options::default());
        assert_eq!(read.unwrap().into_blocks(), wanted, "{capacity}");
    }
}

fn operations() -> impl Strategy<Value = Vec<(u32, bool, u64, u64, u64)>> {
    let sector = 0u64..1 << 54;
    prop::collection::vec(
        (0u32..5, any::<bool>(), sector, 1u64..1 << 20, 0u64..1 << 50),
        1..40,
    )
}

/// First lines of formats, by which they are found.
const FIRSTS: [&str; 9] = [
    "proces,device,rw_flag,sector,size,timestamp\n",
    "fio version 2 iolog\n",
    "fio version 3 iolog\n",
    "8,0 1 1 0.1 7 D R 8 + 8 [x]\n",
    "",
    "# tracer: nop\n",
    "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n",
    "version,time,op,size,lbn\n",
    "3,W,1024,4096,1577808000000046\n",
];

proptest! {
    #[test]
    fn what_a_phone_wrote_down_is_read_back(operations in operations()) {
        let mut text = "proces,device,rw_flag,sector,size,timestamp\n".to_owned();
        let mut expected = Vec::new();
        let mut threads = Threads::default();
        for (thread, reads, sector, sectors, time_ns) in operations {
            let (second, ns) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
            let flag = if reads { "R" } else { "W" };
            text += &format!("t-{thread},0,{flag},{sector},{sectors},{second}.{ns:09}\n");
            let kind = if reads { Kind::Read } else { Kind::Write };
            let lane = threads.number(&format!("t-{thread}"), "t");
            expected.push(operation(time_ns, kind, sector, sectors, lane));
        }
        let expected = Trace::new(expected);
        let trace = parse(text.as_bytes()).unwrap();
        prop_assert_eq!(trace.operations(), expected.operations());
        prop_assert_eq!(trace.account().played_events, expected.operations().len() as u64);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        first in 0usize..9, bytes in prop::collection::vec(any::<u8>(), 0..400)
    ) {
        let _ = parse(&[FIRSTS[first].as_bytes(), &bytes].concat());
    }

    #[test]
    fn no_line_of_words_makes_a_reader_panic(
        first in 0usize..9,
        words in prop::collection::vec(
            prop::sample::select(vec![
                "8,0", "1", "0.5", "D", "WS", "FN", "+", "18446744073709551615", "read", "wait",
                "trim", "a", ",", "R", "\n", "[x]", "CPU0", "(8,0):", "block_rq_issue:", "Q", "C",
                "()", "1.5:", "Read", "128166372003061629", "sda", "LOST 9 EVENTS", "2a",
            ]),
            0..60,
        )
    ) {
        let _ = parse((FIRSTS[first].to_owned() + &words.join(" ")).as_bytes());
        let _ = parse((FIRSTS[first].to_owned() + &words.join(",")).as_bytes());
    }
}
