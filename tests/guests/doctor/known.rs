//! Workloads whose answers are known: each has one cause, which its victim waits for and nobody else.

use crate::harness::Left;
use iopro::link;
use iopro::recording::Reader;
use iopro::store::Store;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use sys::random::Random;

/// The second disk: a slow stick, whose discards and merges are as slow as bad ones' are.
const STICK: &str = include_str!("../../../experiments/devices/usb-stick-slow.toml");
const WORSE: [(&str, &str); 2] = [
    (
        "discard_command_ns = 1000000",
        "discard_command_ns = 40000000",
    ),
    ("merge_ns = 62000000", "merge_ns = 190000000"),
];

/// A cause and its workload, which stops when its shell is killed.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    /// The verdict, as in the JSON; none if there is to be none of storage or memory.
    pub cause: Option<&'static str>,
    /// The name of the process that waits.
    pub victim: &'static str,
    /// The classes of its waits that have this cause, if not all have; between commas.
    pub classes: &'static str,
    /// Shell lines before the workload.
    pub setup: &'static str,
    /// The workload. Of [`PRELUDE`]'s functions.
    pub load: &'static str,
}

const fn row(
    name: &'static str,
    cause: Option<&'static str>,
    victim: &'static str,
    setup: &'static str,
    load: &'static str,
) -> Row {
    Row {
        name,
        cause,
        victim,
        classes: "",
        setup,
        load,
    }
}

/// All of them; the six commonest, of which pairs are made, first.
pub const ROWS: [Row; 18] = [
    row(
        "dirty throttling",
        Some("dirty_throttling"),
        "saver",
        "stick",
        "hog copier /stick/copy & i=0; while :; do sleep $PAUSE_S; i=$((i + 1)); as saver dd if=/dev/zero of=/mnt/save$i bs=64k count=$SAVE_COUNT; done",
    ),
    row(
        "fsync behind writeback",
        Some("fsync_behind_writeback"),
        "mailer",
        "",
        "hog dumper /mnt/big & app mailer --rw=write --bs=${SYNC_KB}k --size=4m --fsync=1 --thinktime=${THINK_MS}ms",
    ),
    row(
        "sync of everything",
        Some("sync_all"),
        "syncer",
        "",
        "app loader --rw=write --bs=256k --size=64m --rate=25m & while :; do sleep $PAUSE_S; as syncer sync; done",
    ),
    row(
        "own commits",
        Some("own_commits"),
        "database",
        "own",
        "app database --directory=/own --rw=write --bs=${SYNC_KB}k --size=4m --fsync=1 --thinktime=10ms",
    ),
    row(
        "evicted working set",
        Some("evicted"),
        "browser",
        "dd if=/dev/zero of=/mnt/pages bs=1M count=40; cold; small 20M",
        "cd /; while :; do small as browser cat /mnt/pages; done > /dev/null",
    ),
    row(
        "CPU",
        Some("cpu"),
        "",
        "",
        "for i in 1 2; do sh -c 'while :; do :; done' & done; wait",
    ),
    row(
        // When fio begins it measures how well it sleeps. Beside another it would go round in a loop
        // for half a millisecond instead.
        "change behind writeback",
        Some("change_behind_writeback"),
        "editor",
        "dd if=/dev/zero of=/mnt/own bs=256k count=1; cold",
        "app editor --filename=/mnt/own --rw=randwrite --bs=4k --size=256k --thinktime=500 & sleep 0.5; app loader --rw=write --bs=256k --size=64m --rate=25m",
    ),
    Row {
        // The device takes 64 requests, more than a guest has readers for. Whoever has got one waits for the
        // device.
        classes: "tag,wbt",
        ..row(
            "queue full",
            Some("queue_full"),
            "reader",
            "dd if=/dev/zero of=/mnt/own bs=1M count=32; cold; short_queue",
            "app reader --filename=/mnt/own --rw=randread --bs=64k --size=32m --direct=1 --numjobs=12",
        )
    },
    row(
        "device busy",
        Some("device_busy"),
        "reader",
        "dd if=/dev/zero of=/mnt/own bs=1M count=32; cold",
        "app reader --filename=/mnt/own --rw=randread --bs=64k --size=32m --direct=1 --numjobs=2",
    ),
    row(
        "fragments",
        Some("fragments"),
        "player",
        "pieces; cold",
        "app player --filename=/stick/film --rw=read --bs=128k --size=8m --direct=1",
    ),
    row(
        "slow device",
        Some("slow_device"),
        "camera",
        "stick",
        "app camera --filename=/stick/film --rw=randwrite --bs=4k --size=256m --direct=1",
    ),
    row(
        "discards",
        Some("discards"),
        "cleaner",
        "stick discard; cd /stick; for i in $(seq 400); do echo $i > $i; done; cd /; cold",
        "for i in $(seq 400); do as cleaner rm /stick/$i; done",
    ),
    row(
        "reclaim",
        Some("reclaim"),
        "filler",
        "stick; swap /stick; small 20M",
        "while :; do small as filler dd if=/dev/zero of=/tmp/fill bs=1M count=40; rm /tmp/fill; done",
    ),
    row(
        "swap",
        Some("swap"),
        "sheet",
        "swap /mnt; small 20M",
        "small as sheet awk 'BEGIN { for (i = 0; i < 30000; i++) a[i] = sprintf(\"%01000d\", i); while (1) for (i = 0; i < 30000; i++) n += length(a[i]) }'",
    ),
    row(
        // Whose server does not answer.
        "network or FUSE",
        Some("remote"),
        "",
        "mkdir -p /fuse",
        "exec 5<> /dev/fuse; mount -t fuse -o fd=5,rootmode=40000,user_id=0,group_id=0 none /fuse; as client ls /fuse",
    ),
    // Until its memory is gone: it holds no file page that could be read again, and there is no swap.
    row(
        "memory leak",
        Some("reclaim"),
        "",
        "small 40M; echo 20M > /sys/fs/cgroup/small/memory.high",
        "while :; do small as leaker awk 'BEGIN { while (1) a[i++] = sprintf(\"%01000d\", i) }'; done",
    ),
    // A client of a server that says something once a second.
    row(
        "network wait",
        None,
        "",
        "ifconfig lo 127.0.0.1 up",
        "while sleep 1; do echo $SEED; done | nc -l -p 7777 & sleep 0.5; sleep 1000 | as client nc 127.0.0.1 7777 > /dev/null",
    ),
    row("idle", None, "", "", "sleep 1000"),
];

/// How many of [`ROWS`] pairs are made of.
pub const COMMONEST: usize = 6;

/// Functions of the guest's shell. `own` makes a third disk, which its user has alone; `as NAME APPLET` and `app NAME OPTION` run busybox and fio under
/// a name of their own.
pub const PRELUDE: &str = r#"
as() { ln -sf /bin/busybox /tmp/$1; ( n=$1; a=$2; shift 2; exec -a $a /tmp/$n "$@" ) 2> /dev/null; }
app() { ln -sf /bin/fio /tmp/$1; n=$1; shift; cd /mnt; /tmp/$n --name=$n --invalidate=0 --randseed=$SEED --time_based --runtime=1000 "$@" > /dev/null 2>&1; }
hog() { while :; do as $1 dd if=/dev/zero of=$2 bs=1M count=64 conv=notrunc; done; }
small() {
    group=/sys/fs/cgroup/small
    case $1 in
    *M) echo +memory > /sys/fs/cgroup/cgroup.subtree_control; mkdir -p $group; echo $1 > $group/memory.max;;
    *) ( sh -c 'echo $PPID' > $group/cgroup.procs; "$@" );;
    esac
}
swap() { dd if=/dev/zero of=$1/.swap bs=1M count=64 conv=fsync; mkswap $1/.swap; swapon $1/.swap; }
stick() {
    mkdir -p /stick; umount /stick
    /bin/mke2fs -q -F -t ext4 -O ${1:+^}has_journal -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 /dev/simflash1 $2
    mount -t ext4 -o noinit_itable${1:+,$1} /dev/simflash1 /stick
}
own() {
    at=/sys/kernel/config/nullb/nullb0
    if ! [ -e $at ]; then
        mount -t configfs none /sys/kernel/config
        mkdir $at
        for it in size=256 memory_backed=1 irqmode=2 completion_nsec=2000000 power=1; do echo ${it#*=} > $at/${it%=*}; done
        /bin/mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 /dev/nullb0
    fi
    mkdir -p /own
    mount -t ext4 -o noinit_itable /dev/nullb0 /own
}
# Full of small files of which every other one goes, so that a large one has to fill the gaps.
pieces() {
    stick "" 24M
    i=0
    while dd if=/dev/zero of=/stick/$i bs=16k count=1; do i=$((i + 1)); done
    sync
    rm /stick/*[13579]
    sync
    dd if=/dev/zero of=/stick/film bs=1M count=8
}
queue=/sys/block/simflash0/queue
short_queue() { depth=$(cat $queue/nr_requests); echo 8 > $queue/nr_requests; }
cold() { sync; echo 3 > /proc/sys/vm/drop_caches; }
end() {
    for it in /proc/[0-9]*; do
        number=${it#/proc/}
        [ -e $it/exe ] && [ $number -gt $$ ] && [ $number != $doctor ] && kill -9 $number
    done
    wait
    rm -f /tmp/fill
    for it in max high; do echo max > /sys/fs/cgroup/small/memory.$it; done
    swapoff /mnt/.swap
    swapoff /stick/.swap
    rm -rf /*/.swap /mnt/[a-z]* /stick/[a-z0-9]*
    umount -l /fuse
    umount /own
    [ -z "$depth" ] || echo $depth > $queue/nr_requests
    depth=
    cold
}
see() {
    echo case $1 > /dev/kmsg
    sleep 1.5
    unshare -m sh -c "mount -t tmpfs none /sys/kernel/btf; exec frontrow doctor --seconds $SECONDS_SEEN --json" > /out/$1.2
    frontrow doctor --seconds $SECONDS_SEEN --json --recording /out/$1.iopro > /out/$1.1 2> /out/$1.error & doctor=$!
    until [ -s /out/$1.1 ] || ! [ -e /proc/$doctor/exe ]; do sleep 0.1; done
    sleep 0.1
    end
}
exec 2> /dev/null
echo 8000000 > /proc/sys/vm/dirty_background_bytes
echo 24000000 > /proc/sys/vm/dirty_bytes
cd /tmp
"#;

/// What a seed varies of the workloads, as variables of the guest's shell.
fn varied(seed: u64) -> String {
    let mut random = Random::for_purpose(seed, "the doctor's workloads");
    let mut between = |low, high| random.between(low, high);
    let (think_ms, sync_kb) = (between(20, 60), 4 * between(1, 4));
    let (pause_tenths, save_count) = (between(2, 5), between(96, 192));
    format!(
        "SEED={seed}; THINK_MS={think_ms}; SYNC_KB={sync_kb}; PAUSE_S=0.{pause_tenths}; SAVE_COUNT={save_count}\n"
    )
}

/// No case takes as long.
const LIMIT_S: usize = 120;

/// Rows that happen at once.
#[derive(Clone, Debug)]
pub struct Case(pub Vec<&'static Row>);

impl Case {
    pub fn named(name: &str) -> Case {
        let row = ROWS.iter().find(|it| it.name == name);
        Case(vec![row.unwrap()])
    }

    pub fn name(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|it| it.name).collect();
        names.join(" + ")
    }

    fn script(&self, place: usize) -> String {
        let part = |of: fn(&Row) -> &'static str| self.0.iter().map(move |it| of(it));
        let setup: Vec<_> = part(|it| it.setup).collect();
        let load: String = part(|it| it.load)
            .map(|it| format!("( {it} ) &\n"))
            .collect();
        format!("{}\n{load}see {place}\n", setup.join("\n"))
    }
}

/// Each cause alone.
pub fn singles() -> Vec<Case> {
    ROWS.iter().map(|it| Case(vec![it])).collect()
}

/// Each pair of the commonest.
pub fn pairs() -> Vec<Case> {
    let common = &ROWS[..COMMONEST];
    let places = (0..COMMONEST).flat_map(|a| (a + 1..COMMONEST).map(move |b| (a, b)));
    places
        .map(|(a, b)| Case(vec![&common[a], &common[b]]))
        .collect()
}

/// What one level said of a case, and what iopro knows.
#[derive(Debug)]
pub struct Told {
    pub case: String,
    pub level: u64,
    pub is_right: bool,
    /// Of causes that waits have: cause, share of the lost time told, share by iopro.
    pub shares: Vec<(String, f64, f64)>,
    pub verdicts: String,
}

/// Runs cases one after another in a guest.
pub fn run(cases: &[Case], kernel: &str, seed: u64, seconds: u64) -> Vec<Told> {
    let scripts = cases.iter().enumerate().map(|(place, it)| it.script(place));
    let script = format!(
        "SECONDS_SEEN={seconds}\n{PRELUDE}{}",
        scripts.collect::<String>()
    );
    let left = in_guest(&script, &[], kernel, seed, LIMIT_S * cases.len());
    let mut told = Vec::new();
    for (place, case) in cases.iter().enumerate() {
        assert_eq!(left.text(&format!("{place}.error")), "", "{}", case.name());
        let truth = lost_by_process(&left.path(&format!("{place}.iopro")));
        for level in [1, 2] {
            let page = left.json(&format!("{place}.{level}"));
            told.push(judged(case, level, &page, &truth));
        }
    }
    told
}

/// Runs a script on both disks; `more` are further options of `frontrow-lab exec`.
pub fn in_guest(script: &str, more: &[&str], kernel: &str, seed: u64, limit_s: usize) -> Left {
    let profiles = tempfile::tempdir().unwrap();
    let stick = profiles.path().join("stick.toml");
    let worse = WORSE.iter().fold(STICK.to_owned(), |profile, (from, to)| {
        assert!(profile.contains(from), "{from}");
        profile.replace(from, to)
    });
    std::fs::write(&stick, worse).unwrap();
    let script = format!("{}{script}exit 0\n", varied(seed));
    let limit_s = limit_s.to_string();
    let guest = ["--kernel", kernel, "--memory", "640", "--limit", &limit_s];
    let with = ["--with", "fio", "--modules", "fuse,null_blk nr_devices=0"];
    let devices = [
        "--device",
        "emmc:fresh",
        "--second",
        stick.to_str().unwrap(),
    ];
    let seed = ["--seed", &seed.to_string()];
    Left::by(
        &[&guest[..], &with, &devices, &seed, more].concat(),
        &script,
    )
}

/// Seconds by process and class.
type Lost = BTreeMap<(String, String), f64>;

/// Time that each process was blocked in the storage stack, as iopro's tables have it.
fn lost_by_process(recording: &Path) -> Lost {
    let reader = Reader::open(recording).unwrap();
    let store = Store::temporary().unwrap();
    let store = link::link(reader, recording, None, store, &mut |_| {}).unwrap();
    let database = store.database();
    let mut query = database
        .prepare(
            "SELECT process_name, class, sum(woken_ns - begin_ns) / 1e9 FROM waits JOIN tasks USING (task_id)
             WHERE NOT kernel GROUP BY 1, 2",
        )
        .unwrap();
    let rows = query.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

fn judged(case: &Case, level: u64, page: &Value, truth: &Lost) -> Told {
    let verdicts = page["verdicts"].as_array().unwrap();
    let words = verdicts.iter().map(|it| {
        format!(
            "{} {:.0} % ({} <- {})",
            it["cause"].as_str().unwrap(),
            it["share"].as_f64().unwrap() * 100.0,
            it["who"].as_str().unwrap(),
            it["culprit"].as_str().unwrap_or("-")
        )
    });
    let waited = |it: &&Value| it["cause"] != "cpu";
    let lost = |it: &Value| it["lost_ns"].as_f64().unwrap() / 1e9;
    let all_lost: f64 = verdicts.iter().filter(waited).map(lost).sum();
    let all_true: f64 = truth.values().sum();
    let mut shares = Vec::new();
    for row in case.0.iter().filter(|it| !it.victim.is_empty()) {
        let cause = row.cause.unwrap();
        let of_cause = verdicts.iter().filter(|it| it["cause"] == cause);
        let told = of_cause.map(lost).sum::<f64>() / all_lost.max(1e-9);
        let of_row = truth.iter().filter(|((process, class), _)| {
            let is_class = row.classes.is_empty() || row.classes.split(',').any(|it| it == class);
            process == row.victim && is_class
        });
        let is = of_row.map(|it| it.1).sum::<f64>() / all_true.max(1e-9);
        shares.push((cause.to_owned(), told, is));
    }
    Told {
        case: case.name(),
        level,
        is_right: is_right(case, verdicts),
        shares,
        verdicts: words.collect::<Vec<_>>().join(", "),
    }
}

/// Of two causes either may be first, and both have to be there.
fn is_right(case: &Case, verdicts: &[Value]) -> bool {
    let expected: Vec<_> = case.0.iter().filter_map(|it| it.cause).collect();
    let told: Vec<_> = verdicts
        .iter()
        .filter_map(|it| it["cause"].as_str())
        .collect();
    match told.first() {
        None => expected.is_empty(),
        Some(first) => expected.contains(first) && expected.iter().all(|it| told.contains(it)),
    }
}

/// The largest distance from iopro's share, in points; none where nobody waits in the storage stack.
pub fn points_off(told: &Told) -> Option<f64> {
    let off = told
        .shares
        .iter()
        .map(|(_, said, is)| (said - is).abs() * 100.0);
    off.reduce(f64::max)
}
