//! `frontrowd`'s dirty limits for disks that can be taken out, in a guest with two: saves on the
//! first take no longer for a copy to the second, and all is as before when the daemon was killed. Where
//! disks have no limits of their own, the copy's app gets one. And what the scheduler costs a copy.

use crate::harness::{exec, succeeds};

/// The guest's time in ms.
const NOW: &str = r#"
now() { awk '/^now at/ { printf "%d", $3 / 1000000 }' /proc/timer_list; }
"#;

/// Six saves of 4 MB with fsync and six of 24 MB without: what they took, in ms.
const SAVES: &str = r#"
save() { dd if=/dev/zero of=/mnt/$1 bs=64k count=$2 $3 2> /dev/null; }
saves() {
    sum=0
    for i in 1 2 3 4 5 6; do
        begun=$(now); save $1.$i $2 $3; ended=$(now)
        sum=$((sum + ended - begun)); sleep 2
    done
    echo $sum
}
app() { echo $(($(saves small 64 conv=fsync) + $(saves large 384 conv=notrunc))); rm /mnt/*.?; }

/bin/mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 /dev/simflash1
mkdir /stick
mount -t ext4 -o noinit_itable /dev/simflash1 /stick
echo "+memory +io" > /sys/fs/cgroup/cgroup.subtree_control
app
sync
frontrow fg daemon 2> /dev/null & daemon=$!
sleep 1
"#;

/// The disk's limits during the copy, the saves beside it, and the limits after it.
const BY_DISK: &str = r#"
bdi=/sys/class/bdi/$(cat /sys/block/simflash1/dev)
limits() { cat $bdi/strict_limit $bdi/max_ratio_fine $bdi/min_ratio_fine | tr '\n' ' '; echo; }
dd if=/dev/zero of=/stick/copy bs=1M count=300 2> /dev/null & copy=$!
sleep 4
limits
app
kill -9 $daemon $copy
wait
frontrow fg release > /dev/null
limits
"#;

/// The same with the app's limit, which the first save that stalls sets.
const BY_APP: &str = r#"
mkdir /sys/fs/cgroup/copy
sh -c 'echo 0 > /sys/fs/cgroup/copy/cgroup.procs; exec /bin/dd if=/dev/zero of=/stick/copy bs=1M count=300' 2> /dev/null & copy=$!
sleep 4
save first 64 conv=fsync
sleep 2
cat /sys/fs/cgroup/copy/memory.high
app
kill -9 $daemon $copy
wait
frontrow fg release > /dev/null
cat /sys/fs/cgroup/copy/memory.high
"#;

/// What the saves took alone and beside the copy, and what limited the copy during and after it.
fn beside_a_copy(kernel: &str, rule: &str) -> (f64, f64, String, String) {
    // A save of 24 MB beside what the copy may have dirty is below where the kernel throttles.
    let guest = ["--kernel", kernel, "--memory", "768"];
    let devices = ["--device", "emmc:fresh", "--second", "usb-stick-slow"];
    let script = NOW.to_owned() + SAVES + rule;
    let said = succeeds(&mut exec(&[guest, devices].concat(), &script)).stdout;
    let [alone, during, beside, after] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("{said}");
    };
    let [alone, beside] = [alone, beside].map(|it| it.parse().unwrap());
    (alone, beside, during.to_owned(), after.trim().to_owned())
}

#[test]
fn a_copy_to_a_stick_holds_up_nobody_on_another_disk() {
    let (alone, beside, during, after) = beside_a_copy("6.12", BY_DISK);
    assert!(beside <= 1.15 * alone, "{beside} instead of {alone}");
    assert!(during.starts_with("1 "), "{during}");
    assert_eq!(after, "0 1000000 0");
}

/// ×0.95 to ×1.1 with guests of 700 to 1024 MB, ×3.3 without the daemon.
#[test]
fn nor_where_disks_have_no_limits_but_the_copy_is_an_app_of_its_own() {
    let (alone, beside, during, after) = beside_a_copy("6.1", BY_APP);
    assert!(beside <= 1.5 * alone, "{beside} instead of {alone}");
    assert!(during.parse::<u64>().is_ok(), "{during}");
    assert_eq!(after, "max");
}

/// Without the scheduler and twice with it: what a copy took, in ms, and the largest request then. In between
/// something is written that nobody waits for, from which it learns.
const COPIES: &str = r#"
queue=/sys/block/simflash0/queue
copy() {
    begun=$(now); dd if=/dev/zero of=copy bs=1M count=120 conv=fsync 2> /dev/null
    echo $(($(now) - begun)) $(cat $queue/max_sectors_kb)
    rm copy; sleep 2
}
echo none > $queue/scheduler; copy
echo frontrow > $queue/scheduler
echo 512 > $queue/nr_requests
echo 1048576 > /proc/sys/vm/dirty_background_bytes
dd if=/dev/zero of=learn bs=1M count=60 2> /dev/null; sleep 9
copy; copy
"#;

/// Each request costs the first stick a part of its rate, so its requests stay large. On the second a
/// reader would wait 50 ms for one of 512 KB, and small ones cost nothing.
#[test]
fn requests_to_a_stick_are_as_small_as_its_rate_allows() {
    let script = NOW.to_owned() + COPIES;
    for (stick, least_kib, most_kib) in [
        ("usb-stick:fresh", 256, 512),
        ("usb-stick-slow:fresh", 64, 128),
    ] {
        let guest = ["--device", stick, "--policy", "frontrow"];
        let said = succeeds(&mut exec(&guest, &script)).stdout;
        let copies: Vec<[u32; 2]> = said
            .lines()
            .map(|line| {
                let (ms, kib) = line.split_once(' ').unwrap();
                [ms, kib].map(|it| it.parse().unwrap())
            })
            .collect();
        let [[without_ms, 512], [first_ms, _], [second_ms, kib]] = copies[..] else {
            panic!("{stick}: {said}");
        };
        for ms in [first_ms, second_ms] {
            assert!(ms * 9 <= without_ms * 10, "{stick}: {said}");
        }
        assert!((least_kib..=most_kib).contains(&kib), "{stick}: {said}");
    }
}
