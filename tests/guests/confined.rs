//! Commands that watch a machine give up what they do not need any more, and still see all; the command that is
//! recorded keeps its rights.

use crate::harness::Left;
use iopro::event::What;
use iopro::recording::Reader;
use std::collections::BTreeSet;

/// A thread's state is taken once its process is confined. The recorded command ends when that was done, and is
/// another user's by then.
const SCRIPT: &str = r#"
cd /tmp
states() {
    until grep -q 'Seccomp:.2' /proc/$1/status; do sleep 0.1; done
    sleep 0.2
    grep -hE '^(NoNewPrivs|Seccomp|CapEff|CapPrm|CapBnd):' /proc/$1/task/*/status > /out/$2
}
cat > command <<END
grep -E '^(NoNewPrivs|Seccomp|CapEff|CapPrm|CapBnd):' /proc/self/status > /out/command
dd if=/dev/zero of=/mnt/a bs=4k count=16 conv=fsync
exec $(which setpriv) --reuid 65534 sleep 1000
END
# By tracepoints alone, each wait is told by its stack, whose functions have to be known.
cp /sys/kernel/btf/vmlinux types
frontrow iopro record --btf types --json -o recording -- sh command > /out/summary & recorder=$!
states $recorder record
until grep -q 'Uid:.65534' /proc/$(pidof sleep | cut -d' ' -f1)/status; do sleep 0.1; done
kill -INT $recorder
wait $recorder
echo $? > /out/record.exit
cp recording /out/recording

frontrow top --json > /out/frames & top=$!
states $top top
for i in $(seq 60); do dd if=/dev/zero of=/mnt/b bs=4k count=16 conv=fsync; done
sleep 2
kill -INT $top
wait $top
echo $? > /out/top.exit

frontrow doctor --seconds 4 --json --html page.html > /out/page & doctor=$!
states $doctor doctor
while [ -d /proc/$doctor ]; do dd if=/dev/zero of=/mnt/c bs=4k count=16 conv=fsync; done
wait $doctor
echo $? > /out/doctor.exit
"#;

/// Capabilities by their numbers in `linux/capability.h`.
const KILL: u64 = 1 << 5;
const SYS_ADMIN: u64 = 1 << 21;
const SYS_BOOT: u64 = 1 << 22;
const BPF: u64 = 1 << 39;

/// Values that a field has in any of the threads.
fn values(left: &Left, name: &str, field: &str) -> BTreeSet<u64> {
    let text = left.text(name);
    let values = text
        .lines()
        .filter_map(|it| it.strip_prefix(field)?.strip_prefix(":\t"));
    values
        .map(|it| u64::from_str_radix(it, 16).unwrap())
        .collect()
}

fn is_confined(left: &Left, name: &str) {
    assert_eq!(values(left, name, "Seccomp"), [2].into(), "{name}");
    assert_eq!(values(left, name, "NoNewPrivs"), [1].into(), "{name}");
    assert_eq!(left.text(&format!("{name}.exit")), "0", "{name}");
}

fn watch(kernel: &str) {
    let left = Left::by(&["--kernel", kernel, "--with", "setpriv"], SCRIPT);
    is_confined(&left, "record");
    // Some of its threads keep nothing.
    assert_eq!(values(&left, "record", "CapEff"), [0, BPF | KILL].into());
    assert_eq!(values(&left, "record", "CapPrm"), [0, BPF | KILL].into());
    assert_eq!(values(&left, "command", "Seccomp"), [0].into());
    assert_eq!(values(&left, "command", "NoNewPrivs"), [0].into());
    for field in ["CapEff", "CapPrm", "CapBnd"] {
        let has = values(&left, "command", field);
        let all = |it: &u64| it & (SYS_ADMIN | SYS_BOOT) == SYS_ADMIN | SYS_BOOT;
        assert!(has.iter().all(all), "{field} of the command: {has:?}");
    }
    let summary = left.json("summary");
    assert_eq!(summary["lost"], serde_json::json!({}), "{summary}");
    let events = Reader::open(&left.path("recording")).unwrap().events();
    let mut stacks = 0;
    let mut functions = 0;
    for event in events {
        if let What::Stack {
            functions: names, ..
        } = event.unwrap().what
        {
            stacks += 1;
            functions += usize::from(names.iter().any(|it| !it.starts_with("0x")));
        }
    }
    assert!(stacks > 0 && functions == stacks, "{functions} of {stacks}");

    is_confined(&left, "top");
    let frames = left.text("frames");
    assert!(frames.contains(r#""who":"dd""#), "{frames}");
    assert!(frames.contains(r#""level":"linked""#), "{frames}");

    is_confined(&left, "doctor");
    for name in ["top", "doctor"] {
        let has = values(&left, name, "CapEff");
        assert!(has.iter().all(|it| it & SYS_BOOT == 0), "{name}: {has:?}");
    }
    let page = left.json("page");
    assert_eq!(page["level"], "linked", "{page}");
}

#[test]
fn who_watches_keeps_little_and_who_is_recorded_all_on_6_12() {
    watch("6.12");
}

#[test]
fn who_watches_keeps_little_and_who_is_recorded_all_on_6_1() {
    watch("6.1");
}
