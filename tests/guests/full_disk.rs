//! A disk without room: every command that writes says so, with the same exit code, and leaves nothing half
//! written.

use crate::harness::{exec, succeeds};

/// A file system that one file fills, and what there is to write to it.
const PREPARE: &str = "set -e
    frontrow bench . --workload m1 --load idle --seeds 1 --scale 0.01 --out /tmp/bench.json > /tmp/said 2>&1
    frontrow iopro record -o /tmp/recorded -- busybox dd if=/dev/zero of=a bs=4k count=64 conv=fsync > /tmp/said 2>&1
    busybox dd if=/dev/zero of=image bs=1M count=16 2> /tmp/said
    busybox mke2fs -F image > /tmp/said
    mkdir /full
    mount -t tmpfs -o size=64k,mode=755 tmpfs /full
    ! busybox dd if=/dev/zero of=/full/rest bs=4k 2> /tmp/said
    set +e
";

/// What writes to a file of one's own.
const WRITERS: [&str; 8] = [
    "frontrow bench compare /tmp/bench.json /tmp/bench.json --html /full/b",
    "frontrow completions bash > /dev/full",
    "frontrow doctor --seconds 1 --recording /full/d",
    "frontrow doctor --study 1s --out /full",
    "frontrow iopro export --to perfetto --output /full/e /tmp/recorded",
    "frontrow iopro report --html /full/f /tmp/recorded",
    "frontrow sched abi --out /full/g",
    "frontrow snapshot save image /full/h",
];

/// A recording is good up to where the room ended, so it alone stays.
const RECORD: &str = "frontrow iopro record --system 1s --output /full/recorded";

#[test]
fn no_room_is_exit_9_in_every_command_and_nothing_stays() {
    let commands = WRITERS.iter().chain([&RECORD]);
    let tries = commands
        .map(|it| format!("{it} 2> /tmp/said; echo \"exit $? of {it}: $(tail -n 1 /tmp/said)\"\n"));
    let script = [PREPARE, &tries.collect::<String>(), "ls /full\n"].concat();
    let said = succeeds(&mut exec(&["--with", "e2image,e2fsck"], &script)).stdout;
    let ends = said.lines().filter(|it| it.starts_with("exit "));
    let (right, wrong): (Vec<_>, Vec<_>) = ends.partition(|it| it.starts_with("exit 9 of "));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(right.len(), WRITERS.len() + 1, "{said}");
    let (_, left) = said.rsplit_once("exit 9 of ").unwrap();
    let left: Vec<&str> = left.lines().skip(1).collect();
    assert_eq!(left, ["recorded", "rest"]);
}
