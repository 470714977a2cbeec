//! What a recording withstands: the highest rate of a machine with two CPUs, and
//! all that ends it early.

use crate::harness::Left;
use iopro::event::{CallKind, What};
use iopro::recording::{Ending, Reader};
use std::path::Path;

/// Of the recorder, with the rings.
const MOST_MEMORY_KIB: u64 = 200 << 10;

/// What two threads read at the highest rate.
const READS: u64 = 2 * (16 << 20) / (4 << 10);

/// Of each at least: a call, its wait and its request, begin and end.
const EVENTS: u64 = 6;

/// What is written while somebody records.
const WRITES: usize = 16;

/// A recording has begun when there is something in its file.
const SCRIPT: &str = r#"
cd /tmp
fio --thread --name=lay --filename=/mnt/data --rw=write --bs=1m --size=8m > /out/lay || exit
frontrow iopro record --json -o fast -- fio --output=/out/fio --thread --name=fast --numjobs=2 \
    --filename=/mnt/data --size=8m --io_size=16m --rw=randread --bs=4k --direct=1 --ioengine=psync \
    > /out/fast 2> /out/fast.error &
recorder=$!
while grep VmHWM /proc/$recorder/status > memory 2> /dev/null; do
    cp memory /out/memory
    sleep 0.1
done
wait $recorder
echo $? > /out/fast.exit

write_while_recorded() {
    frontrow iopro record --system -o /out/$1 2> /out/$1.error &
    recorder=$!
    until [ -s /out/$1 ]; do sleep 0.1; done
    dd if=/dev/zero of=/mnt/$1 bs=4k count=16 conv=fsync 2> /dev/null
    # Each round of the recorder's makes the file longer: at least one is from after it.
    for round in 1 2 3; do
        bytes=$(wc -c < /out/$1)
        until [ $(wc -c < /out/$1) -gt $bytes ]; do sleep 0.1; done
    done
    kill -$1 $recorder
    wait $recorder
    echo $? > /out/$1.exit
}
write_while_recorded INT
write_while_recorded KILL

mkdir small
mount -t tmpfs -o size=256k none small
frontrow iopro record --system -o small/full 2> /out/full.error &
recorder=$!
# Slowly, since of what is written at once all is lost if not all of it has room.
while grep -q VmHWM /proc/$recorder/status 2> /dev/null; do
    dd if=/dev/zero of=/mnt/full bs=512 count=64 2> /dev/null
    sleep 0.1
done
wait $recorder
echo $? > /out/full.exit
cp small/full /out/full

# What is made of a recording, where there is no room at all.
for format in sqlite parquet csv vcd perfetto; do
    mkdir $format
    mount -t tmpfs -o size=4k none $format
    echo other > $format/other
    frontrow iopro export --to $format -o $format/export /out/KILL 2> /out/$format.error
    echo $? > /out/$format.exit
    ls -A $format > /out/$format.left
done
frontrow iopro report --html sqlite/page /out/KILL 2> /out/html.error
echo $? > /out/html.exit
ls -A sqlite > /out/html.left
"#;

/// The recorder stands still, as if it got no CPU: the rings run full.
const STANDSTILL: &str = r#"
cd /tmp
frontrow iopro record --json -o late -- fio --output=/out/fio --thread --name=late --numjobs=2 \
    --directory=/mnt --size=1m --rw=write --bs=512 --loops=122 --ioengine=psync > /out/late.json &
recorder=$!
until [ -s late ]; do sleep 0.1; done
kill -STOP $recorder
until [ -s /out/fio ]; do sleep 0.1; done
kill -CONT $recorder
wait $recorder || exit
cp late /out/late
"#;

/// What fio writes there.
const LATE_WRITES: u64 = 2 * 122 * 2048;

/// With more than one CPU a guest goes by the host's clock.
const GUEST: [&str; 6] = ["--cpus", "2", "--device", "zero", "--with", "fio"];

#[test]
fn nothing_is_lost_at_the_highest_rate_and_what_was_recorded_stays_whatever_ends_it() {
    let left = Left::by(&GUEST, SCRIPT);
    at_the_highest_rate(&left);
    // How the shell tells of a signal.
    for (name, exit, whole) in [("INT", "0", true), ("KILL", "137", false)] {
        assert_eq!(left.text(&format!("{name}.exit")), exit, "{name}");
        assert_eq!(writes(&left.path(name)), (WRITES, whole), "{name}");
    }
    let error = left.text("full.error");
    assert_eq!(left.text("full.exit"), "9", "{error}");
    assert!(error.contains("small/full is full"), "{error}");
    let (writes, whole) = writes(&left.path("full"));
    assert!(writes > 100 && !whole, "{writes}, {whole}");
    for made in ["sqlite", "parquet", "csv", "vcd", "perfetto", "html"] {
        let error = left.text(&format!("{made}.error"));
        assert_eq!(left.text(&format!("{made}.exit")), "9", "{error}");
        assert_eq!(left.text(&format!("{made}.left")), "other", "{made}");
    }
}

#[test]
#[ignore = "make stress-guests: filling the rings takes a minute"]
fn what_is_lost_is_counted() {
    let left = Left::by(&GUEST, STANDSTILL);
    let summary = left.json("late.json");
    let lost = summary["lost"]["Calls"].as_u64().unwrap();
    let (writes, whole) = writes(&left.path("late"));
    let writes = writes as u64;
    assert!(whole && writes < LATE_WRITES, "{writes}");
    assert!(writes + lost >= LATE_WRITES, "{writes} {summary}");
}

fn at_the_highest_rate(left: &Left) {
    let error = left.text("fast.error");
    assert_eq!(left.text("fast.exit"), "0", "{error}");
    let summary = left.json("fast");
    // The kernel skips a program that is called while its task is preempted in it, and tells
    // so: on a starved host that happens. The rings have room for everything.
    let missed = summary["lost"]["Missed"].as_u64().unwrap_or_default();
    let lost = summary["lost"].as_object().unwrap();
    assert!(lost.keys().all(|kind| kind == "Missed"), "{summary}");
    assert!(missed * 1000 <= READS * EVENTS, "{summary}");
    let memory = left.text("memory");
    let kib = memory.split_whitespace().nth(1).unwrap();
    let kib: u64 = kib.parse().unwrap();
    assert!(kib <= MOST_MEMORY_KIB, "{memory}");
}

/// The `write` calls in a recording, and whether it is whole; it is cut short if not.
fn writes(path: &Path) -> (usize, bool) {
    let mut events = Reader::open(path).unwrap().events();
    let mut writes = 0;
    for event in events.by_ref() {
        if let What::CallExit(exit) = &event.unwrap().what
            && exit.call.kind == CallKind::Write
        {
            writes += 1;
        }
    }
    let ending = events.ending().unwrap();
    assert!(!matches!(ending, Ending::Damaged), "{}", path.display());
    (writes, matches!(ending, Ending::Complete { .. }))
}
