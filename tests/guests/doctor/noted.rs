//! `frontrow blame watch` in a guest: it sleeps while nothing happens, and stalls are noted with their causes,
//! after a kill and on a full disk as well.

use crate::harness::Left;
use serde_json::Value;

/// Reads with direct I/O for 300 ms, as `viewer`, and writes beside a sync, as `dumper` and `mailer`.
const SCRIPT: &str = r#"
as() { ln -sf /bin/busybox /tmp/$1; ( n=$1; a=$2; shift 2; exec -a $a /tmp/$n "$@" ) 2> /dev/null; }
begin() { frontrow blame watch --file /mnt/stalls 2>> /out/said & watch=$!; }
switches() { awk '/ctxt_switches/ { n += $2 } END { print n }' /proc/$watch/task/*/status; }
echo 8000000 > /proc/sys/vm/dirty_background_bytes
echo 24000000 > /proc/sys/vm/dirty_bytes
cd /mnt
/bin/dd if=/dev/zero of=film bs=1M count=64
/bin/dd if=/dev/zero of=small bs=4k count=1
begin
sync
sleep 6
switches > /out/before
sleep 20
switches > /out/after
# How many of its 256 blocks take 300 ms of pressure.
held_us() { awk -F= '/some/ { print $NF }' /proc/pressure/io; }
before=$(held_us)
as viewer dd if=film of=/dev/null bs=256k iflag=direct
sleep 4
count=$((256 * 300000 / ($(held_us) - before)))
for it in 1 2 3 4 5 6; do
    # They begin anywhere in a tenth of a second.
    as viewer dd if=film of=/dev/null bs=256k iflag=direct count=$count
    sleep 3.03
done
frontrow blame --file /mnt/stalls --json > /out/reads
kill -9 $watch
wait $watch
begin
sleep 2
( while :; do as dumper dd if=/dev/zero of=big bs=1M count=64 conv=notrunc; done ) & dumper=$!
sleep 2
for it in 1 2 3 4 5; do as mailer dd if=/dev/zero of=small bs=4k count=1 conv=notrunc,fsync; sleep 0.1; done
kill $dumper
killall dumper 2> /dev/null
sync
sleep 5
frontrow blame --file /mnt/stalls --json > /out/syncs
fallocate -l $(df -k /mnt | awk 'END { print $4 }')k full
/bin/dd if=/dev/zero of=rest bs=4k 2> /dev/null
sync
sleep 5
frontrow blame --file /mnt/stalls --json > /out/full
as viewer dd if=film of=/dev/null bs=256k iflag=direct count=$((count * 2))
sleep 4
frontrow blame --file /mnt/stalls --json > /out/later
frontrow blame --file /mnt/stalls > /out/text
kill $watch
wait $watch
echo $? > /out/ended
exit 0
"#;

fn stalls(left: &Left, name: &str) -> Vec<Value> {
    left.json(name)["stalls"].as_array().unwrap().clone()
}

#[test]
fn stalls_are_noted_with_their_causes_and_without_pressure_nothing_wakes() {
    let guest = ["--device", "emmc:fresh", "--limit", "400"];
    let left = Left::by(&guest, SCRIPT);
    assert_eq!(left.text("before"), left.text("after"), "it woke up");
    let reads = stalls(&left, "reads");
    let of_viewer = reads.iter().filter(|it| {
        let first = &it["verdicts"][0];
        first["who"] == "viewer" && first["cause"] == "device busy"
    });
    // The first one was to find out for how long it reads.
    assert_eq!(of_viewer.count(), 7, "{reads:#?}");
    // What was noted before the kill is there, and the rest after it.
    let syncs = stalls(&left, "syncs");
    assert_eq!(syncs[..reads.len()], reads[..]);
    let is_sync = |it: &Value| {
        let verdicts = it["verdicts"].as_array().unwrap();
        verdicts.iter().any(|it| {
            it["who"] == "mailer"
                && it["culprit"] == "dumper"
                && it["cause"] == "fsync behind writeback"
        })
    };
    assert!(syncs[reads.len()..].iter().any(is_sync), "{syncs:#?}");
    let (full, later) = (stalls(&left, "full"), stalls(&left, "later"));
    assert!(later.len() > full.len(), "{later:#?}");
    assert_eq!(later.last().unwrap()["verdicts"][0]["who"], "viewer");
    assert!(
        left.text("text").contains("viewer waited "),
        "{}",
        left.text("text")
    );
    assert_eq!(
        (left.text("said"), left.text("ended")),
        (String::new(), "0".to_owned())
    );
}
