//! `frontrow iopro` held against what else knows of the same I/O, in guests of
//! both stock kernels: strace and blktrace run beside the recording.

use crate::harness::Left;
use iopro::event::{CallKind, Event, What};
use iopro::recording::Reader;
use std::collections::BTreeMap;

/// Of the same event, once the clocks' offset is known.
const CLOSE_NS: i64 = 50_000;

/// As blktrace calls them: queued, inserted, issued, completed.
const ACTIONS: [char; 4] = ['Q', 'I', 'D', 'C'];

/// What strace has to tell; the rest would only take time.
const CALLS: &str = "read,write,pread64,pwrite64,readv,writev,preadv,pwritev,preadv2,pwritev2,\
    fsync,fdatasync,sync_file_range,ftruncate,fallocate,fadvise64,open,openat,creat,getdents64,\
    rename,unlink,unlinkat,io_submit,io_getevents";

/// Calls that belong to a file by their first argument.
const ON_FILE: [&str; 17] = [
    "read",
    "write",
    "pread64",
    "pwrite64",
    "readv",
    "writev",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "ftruncate",
    "fallocate",
    "fadvise64",
    "getdents64",
];

/// Nothing is under way when the recording ends, so that both sides see all of it.
const SCRIPT: &str = r#"
set -e
cd /tmp
mkdir blk
cat > jobs <<END
[global]
directory=/mnt
size=512k
randseed=7
group_reporting
[buffered]
rw=randrw
bsrange=4k-64k
ioengine=psync
fsync=8
number_ios=30
[vectors]
rw=randrw
bs=8k
ioengine=pvsync2
fdatasync=8
number_ios=20
[direct]
rw=randrw
bsrange=4k-16k
ioengine=libaio
iodepth=4
direct=1
number_ios=30
END
cat > work <<END
set -e
strace -f -q -y -e signal=none -e trace=$CALLS -o /out/fio.strace fio --thread jobs > /out/fio
strace -f -q -y -e signal=none -e trace=$CALLS -o /out/bench.strace \
    frontrow bench /mnt --workload m1,m2,m3,m4,m5 --load idle --scale 0.001 --seeds 1 > /out/bench
# Without a scheduler requests are issued at once, which one record tells of.
echo none > /sys/block/simflash0/queue/scheduler
strace -f -q -y -e signal=none -e trace=$CALLS -o /out/alone.strace fio --thread --name=alone \
    --directory=/mnt --size=512k --rw=randrw --bs=4k --ioengine=psync --direct=1 --number_ios=30 \
    > /out/alone
mv /mnt/buffered.0.0 /mnt/renamed
rm /mnt/vectors.*
sync
sleep 1
END
sync
blktrace -d /dev/simflash0 -o trace -D blk > /out/blktrace 2>&1 &
sleep 1
frontrow iopro record --json -o /out/recording -- sh work
kill -INT %1
wait
blkparse -q -i trace -D blk -f '%a %T %t %S %N\n' > /out/blkparse
"#;

#[test]
fn strace_and_blktrace_know_of_nothing_else_on_6_12() {
    same_as_others("6.12");
}

#[test]
#[ignore = "make stress-guests: the other kernel's takes a minute"]
fn strace_and_blktrace_know_of_nothing_else_on_6_1() {
    same_as_others("6.1");
}

fn same_as_others(kernel: &str) {
    let script = format!("CALLS={CALLS}\n{SCRIPT}");
    let guest = ["--kernel", kernel, "--device", "ufs"];
    let with = ["--with", "fio,strace,blktrace,blkparse"];
    judge(&Left::by(&[&guest[..], &with].concat(), &script));
}

fn judge(left: &Left) {
    let traced = left.text("blktrace");
    assert!(traced.contains("(dropped 0)"), "{traced}");
    let summary = left.json("stdout");
    assert_eq!(summary["lost"], serde_json::json!({}), "{summary}");
    assert_eq!(summary["missed"], serde_json::json!([]), "{summary}");
    assert_eq!(summary["missing"], serde_json::json!([]), "{summary}");

    let reader = Reader::open(&left.path("recording")).unwrap();
    let begin_ns = reader.header().begin_ns as i64;
    let events: Vec<Event> = reader.events().collect::<Result<_, _>>().unwrap();
    let traced = ["fio.strace", "bench.strace", "alone.strace"].map(|it| left.text(it) + "\n");
    let traced = strace(&traced.concat());
    assert!(traced.values().map(Vec::len).sum::<usize>() > 200);
    let recorded = calls(&events);
    for (thread, calls) in &traced {
        let none = Vec::new();
        let ours = recorded.get(thread).unwrap_or(&none);
        assert_eq!(ours, calls, "of thread {thread}");
    }
    compare_block(&blkparse(&left.text("blkparse")), &block(&events), begin_ns);
}

/// A call's name and result.
type Call = (String, i64);

/// What strace saw of files on the device, by thread in the order of its returns; a
/// thread that did something else only is there, too.
fn strace(text: &str) -> BTreeMap<u32, Vec<Call>> {
    let mut calls: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
    let mut begun: BTreeMap<u32, String> = BTreeMap::new();
    for line in text.lines() {
        let Some((thread, line)) = line.split_once(char::is_whitespace) else {
            continue;
        };
        let thread: u32 = thread.parse().unwrap();
        let of_thread = calls.entry(thread).or_default();
        let line = line.trim_start();
        if let Some(begin) = line.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, begin.to_owned());
            continue;
        }
        let whole = match line.strip_prefix("<... ") {
            Some(rest) => {
                let (_, rest) = rest.split_once("resumed>").unwrap();
                begun.remove(&thread).unwrap() + rest
            }
            None => line.to_owned(),
        };
        of_thread.extend(on_device(&whole));
    }
    calls
}

/// A whole line, if it is about a file on the device.
fn on_device(line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let first = arguments.split(',').next()?;
    let is_there = |text: &str| text.contains("</mnt") || text.contains("</dev/simflash0");
    let shown = match name {
        _ if ON_FILE.contains(&name) => is_there(first),
        "open" | "openat" | "creat" => is_there(result),
        _ => true,
    };
    let number = result
        .split(|it: char| it.is_whitespace() || it == '<')
        .next()?;
    shown.then(|| (name.to_owned(), errno(number, result)))
}

/// What the kernel returned: strace shows -1 and the error's name.
fn errno(number: &str, result: &str) -> i64 {
    match result.split_whitespace().nth(1) {
        Some("ENOENT") => -2,
        Some("EAGAIN") => -11,
        Some("EINVAL") => -22,
        Some("ENOTTY") => -25,
        _ => number.parse().unwrap(),
    }
}

fn calls(events: &[Event]) -> BTreeMap<u32, Vec<Call>> {
    let mut calls: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
    for event in events {
        let What::CallExit(exit) = &event.what else {
            continue;
        };
        let kind = exit.call.kind;
        let is_fault = matches!(kind, CallKind::ReadFault | CallKind::WriteFault);
        if !is_fault && CALLS.split(',').any(|name| name == kind.name()) {
            let call = (kind.name().to_owned(), exit.result);
            calls.entry(event.thread).or_default().push(call);
        }
    }
    calls
}

/// An event of the block layer: the letter of blktrace's action, sector, bytes.
type Place = (char, u64, u64);

/// When, and what.
type Moment = (i64, Place);

fn blkparse(text: &str) -> Vec<Moment> {
    let of_line = |line: &str| {
        let mut fields = line.split_whitespace();
        let action = fields.next()?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (seconds, ns, sector, bytes) = (number()?, number()?, number()?, number()?);
        let action = action.chars().next().filter(|it| ACTIONS.contains(it))?;
        let at = (seconds * 1_000_000_000 + ns) as i64;
        Some((at, (action, sector, bytes)))
    };
    text.lines().filter_map(of_line).collect()
}

fn block(events: &[Event]) -> Vec<Moment> {
    // A flush has no place.
    let place = |sector: u64| if sector == u64::MAX { 0 } else { sector };
    let of_event = |event: &Event| {
        let place = match &event.what {
            What::Queue(queue) => ('Q', place(queue.io.sector), queue.io.bytes),
            What::Insert(request) => ('I', place(request.io.sector), request.io.bytes),
            What::Issue(request) => ('D', place(request.io.sector), request.io.bytes),
            What::Complete(complete) => ('C', place(complete.sector), complete.bytes),
            _ => return None,
        };
        Some((event.time_ns as i64, (place.0, place.1, u64::from(place.2))))
    };
    events.iter().filter_map(of_event).collect()
}

/// The same events in the same order, each at the same time. blktrace has seen what
/// came before the recording, too.
fn compare_block(theirs: &[Moment], ours: &[Moment], begin_ns: i64) {
    let of = |all: &[Moment], action: char| -> Vec<Moment> {
        let mut of: Vec<Moment> = all.iter().filter(|it| it.1.0 == action).copied().collect();
        of.sort_by_key(|(at, _)| *at);
        of
    };
    let offset = offset_ns(&of(ours, 'C'), &of(theirs, 'C'));
    for action in ACTIONS {
        let (ours, mut theirs) = (of(ours, action), of(theirs, action));
        // Probes that are attached first may see something before all are.
        let first_ns = ours.first().map_or(begin_ns, |(at, _)| at - CLOSE_NS);
        theirs.retain(|(at, _)| at + offset >= begin_ns.min(first_ns));
        assert!(theirs.len() > 100, "{action}: {}", theirs.len());
        let places = |all: &[Moment]| all.iter().map(|(_, place)| *place).collect::<Vec<_>>();
        assert_eq!(places(&ours), places(&theirs), "{action}");
        for ((our, place), (their, _)) in ours.iter().zip(&theirs) {
            let apart = our - their - offset;
            assert!(apart.abs() <= CLOSE_NS, "{place:?} {apart} ns apart");
        }
    }
}

/// Of our clock from theirs: both have seen the end, so that is where events are the same.
fn offset_ns(ours: &[Moment], theirs: &[Moment]) -> i64 {
    let pairs = ours.iter().rev().zip(theirs.iter().rev());
    let mut apart: Vec<i64> = pairs.map(|(our, their)| our.0 - their.0).collect();
    apart.sort_unstable();
    apart[apart.len() / 2]
}
