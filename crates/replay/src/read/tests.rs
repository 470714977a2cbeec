use super::*;
use proptest::prelude::*;
use std::io::Write;

fn parse(text: &[u8]) -> Result<Trace, Error> {
    read_lines(Path::new("trace"), text, None).map(Recording::into_blocks)
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

#[test]
fn gzip_is_unpacked_and_its_damage_is_an_error() {
    let text = b"proces,device,rw_flag,sector,size,timestamp\na-1,0,R,0,8,1\na-1,0,W,8,8,2\n";
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    let packed = encoder.finish().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.csv.gz");
    std::fs::write(&path, &packed).unwrap();
    assert_eq!(
        read(&path, None).unwrap().into_blocks(),
        parse(text).unwrap()
    );
    for length in 2..packed.len() {
        std::fs::write(&path, &packed[..length]).unwrap();
        assert!(read(&path, None).is_err(), "cut at {length}");
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
            "one device",
        ),
        ("8,0 1 1 0.1 7 D R 8 [x]\n", "no SECTOR + SECTORS"),
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
        read(Path::new("/nonexistent"), None),
        Err(Error::Io(_))
    ));
}

fn operations() -> impl Strategy<Value = Vec<(u32, bool, u64, u64, u64)>> {
    let sector = 0u64..1 << 54;
    prop::collection::vec(
        (0u32..5, any::<bool>(), sector, 1u64..1 << 20, 0u64..1 << 50),
        1..40,
    )
}

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
            let lane = threads.number(&format!("t-{thread}"));
            expected.push(operation(time_ns, kind, sector, sectors, lane));
        }
        let names = vec!["t".to_owned(); threads.names().len()];
        let expected = Trace::new(expected).with_names(names);
        prop_assert_eq!(parse(text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        first in 0usize..4, bytes in prop::collection::vec(any::<u8>(), 0..400)
    ) {
        let firsts: [&[u8]; 4] = [
            b"proces,device,rw_flag,sector,size,timestamp\n",
            b"fio version 2 iolog\n",
            b"fio version 3 iolog\n",
            b"",
        ];
        let _ = parse(&[firsts[first], &bytes].concat());
    }

    #[test]
    fn no_line_of_words_makes_a_reader_panic(
        first in 0usize..4,
        words in prop::collection::vec(
            prop::sample::select(vec![
                "8,0", "1", "0.5", "D", "WS", "FN", "+", "18446744073709551615", "read", "wait",
                "trim", "a", ",", "R", "\n", "[x]", "CPU0", "(8,0):",
            ]),
            0..60,
        )
    ) {
        let firsts = [
            "proces,device,rw_flag,sector,size,timestamp\n",
            "fio version 2 iolog\n",
            "fio version 3 iolog\n",
            "8,0 1 1 0.1 7 D R 8 + 8 [x]\n",
        ];
        let _ = parse((firsts[first].to_owned() + &words.join(" ")).as_bytes());
        let _ = parse((firsts[first].to_owned() + &words.join(",")).as_bytes());
    }
}
