//! `frontrowd`'s dirty limits for disks that can be taken out, in a guest with two: saves on the
//! first take no longer for a copy to the second, and all is as before when the daemon was killed.

use std::process::Command;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Prints what six saves of 4 MB with fsync and six of 24 MB without took, alone and beside the
/// copy, in ms.
const SCRIPT: &str = r#"
now() { awk '/^now at/ { printf "%d", $3 / 1000000 }' /proc/timer_list; }
save() { dd if=/dev/zero of=/mnt/$1.$2 bs=64k count=$3 $4 2> /dev/null; }
saves() {
    sum=0
    for i in 1 2 3 4 5 6; do
        begun=$(now); save $1 $i $2 $3; ended=$(now)
        sum=$((sum + ended - begun)); sleep 2
    done
    echo $sum
}
app() { echo $(($(saves small 64 conv=fsync) + $(saves large 384 conv=notrunc))); rm /mnt/*.?; }
limits() { cat $bdi/strict_limit $bdi/max_ratio_fine $bdi/min_ratio_fine | tr '\n' ' '; echo; }

/bin/mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 /dev/simflash1
mkdir /stick
mount -t ext4 -o noinit_itable /dev/simflash1 /stick
bdi=/sys/class/bdi/$(cat /sys/block/simflash1/dev)
echo "+memory +io" > /sys/fs/cgroup/cgroup.subtree_control
app
sync
frontrow fg daemon 2> /dev/null & daemon=$!
sleep 1
dd if=/dev/zero of=/stick/copy bs=1M count=300 2> /dev/null & copy=$!
sleep 4
app
limits
kill -9 $daemon $copy
wait
frontrow fg release > /dev/null
limits
"#;

#[test]
fn a_copy_to_a_stick_holds_up_nobody_on_another_disk() {
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["lab", "exec", "--device", "emmc:fresh", "--memory", "512"])
        .args(["--second", "usb-stick-slow"])
        .args(["--", "busybox", "sh", "-c", SCRIPT])
        .current_dir(CHECKOUT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let [alone, beside, during, after] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("{said}");
    };
    let [alone, beside] = [alone, beside].map(|it| it.parse::<f64>().unwrap());
    assert!(beside <= 1.15 * alone, "{said}");
    assert!(during.starts_with("1 "), "{said}");
    assert_eq!(after.trim(), "0 1000000 0");
}
