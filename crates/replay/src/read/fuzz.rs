//! Damaged traces of each format: whatever the text, reading it ends, with operations that a device can have or with
//! a sentence. `make stress-fuzz` tries more of them.

use super::*;
use proptest::prelude::*;
use std::path::Path;

/// A trace of each format.
const SAMPLES: [&str; 8] = [
    "proces,device,rw_flag,sector,size,timestamp\n\
     app-21102,8388608,R,3104240,152,48746.442531\n\
     a,b-7,8388608,W,8,16,48746.4425320001\n",
    "  8,0    3        3     0.000002197   697  Q   W 223490 + 8 [kjournald]\n\
       8,0    3        4     0.000005000   697  D  WS 223490 + 8 [kjournald]\n\
       8,0    3        5     0.000005500   697  R  WS 223490 + 8 [0]\n\
       8,0    3        6     0.000006000    12  D  RA 96 + 256 [a b]\n\
       8,0    1        7     0.001000000     0  C  WS 223490 + 8 [0]\n\
     CPU3 (8,0):\n",
    "fio version 3 iolog\n20 a.0.0 add\n185 a.0.0 open\n200861 a.0.0 read 45056 4096\n",
    "4042  1479201234.100000 open(\"/data/app.db\", O_RDWR|O_CREAT, 0644) = 3</data/app.db> <0.000050>\n\
     4042  1479201234.120300 _llseek(3</data/app.db>, 8192, [8192], SEEK_SET) = 0 <0.000010>\n\
     4042  1479201234.120400 write(3</data/app.db>, \"abc\"..., 512) = 512 <0.000010>\n",
    "9819  07:52:41.138257 openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.000217>\n\
     9819  07:52:41.139620 pread64(3, <unfinished ...>\n\
     9819  07:52:41.139666 <... pread64 resumed>\"x\", 4096, 0) = 4096 <0.000007>\n",
    "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
     0.000000    supervise      1950   sda     W 13092560   4096      0.74\n\
     0.000427    dd             1956   sda     R 96         8192      0.61\n",
    "# tracer: nop\n\
     app-590 [001] ..... 1.000000: block_rq_issue: 8,0 WS 4096 () 96 + 8 [app]\n\
     app-590 [001] ..... 1.000001: block_rq_requeue: 8,0 WS () 96 + 8 [0]\n\
     app-590 [001] ..... 1.000002: block_rq_issue: 8,0 R 4096 () 512 + 8 [app]\n",
    "128166372003061629,hm,1,Read,383496192,32768,413\n\
     128166372016382155,hm,1,Write,310983168,4096,1285\n",
];

/// Texts that take the place of others.
const PUT: [&str; 14] = [
    "",
    "\n",
    "\t",
    ",",
    " + ",
    "-1",
    "0",
    "18446744073709551615",
    "1e999",
    "\u{fffd}",
    "<unfinished ...>",
    "[",
    "\"",
    "9999999999999999999999",
];

/// A sample, of which some places are changed, and which may be cut.
fn damaged() -> impl Strategy<Value = String> {
    let change = (
        any::<prop::sample::Index>(),
        0..12_usize,
        prop::sample::select(&PUT[..]),
    );
    let changes = prop::collection::vec(change, 1..6);
    (prop::sample::select(&SAMPLES[..]), changes).prop_map(|(sample, changes)| {
        let mut text: Vec<char> = sample.repeat(2).chars().collect();
        for (at, length, put) in changes {
            let from = at.index(text.len() + 1);
            let to = (from + length).min(text.len());
            text.splice(from..to, put.chars());
        }
        text.into_iter().collect()
    })
}

#[test]
fn each_sample_is_of_its_format() {
    for sample in SAMPLES {
        let options = Options::default();
        let recording = read_lines(Path::new("trace"), sample.as_bytes(), &options);
        let trace = recording.map(Recording::into_blocks);
        assert!(
            trace.is_ok_and(|it| !it.operations().is_empty()),
            "{sample}"
        );
    }
}

proptest! {
    #[test]
    fn a_damaged_trace_gives_operations_or_a_sentence(text in damaged()) {
        let options = Options::default();
        match read_lines(Path::new("trace"), text.as_bytes(), &options) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(recording) => {
                let trace = recording.into_blocks();
                for operation in trace.operations() {
                    let end = operation.offset_bytes.checked_add(operation.size_bytes);
                    prop_assert!(end.is_some(), "{operation:?}");
                }
                let account = trace.account();
                let left: u64 = account.left_out.values().sum();
                prop_assert_eq!(account.played_events + left, account.read_events);
            }
        }
    }
}
