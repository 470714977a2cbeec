//! A machine's life with Frontrow: a Debian with systemd is given the packages, boots, tries them, uses them, loses
//! the daemon to kill -9, reboots, crashes, and is purged. `make stress` runs this: each release takes half a
//! gigabyte from the network, root or sudo, and twelve boots of an emulated machine.

use crate::machine::{Machine, WORDS};

/// What one word does for a user's own disk, and another undoes it.
const TRY: &str = "mkfs.ext4 -q /dev/nvme0n1
    mkfs.ext4 -q /dev/vdb
    mount /dev/nvme0n1 /data
    udevadm settle
    frontrow bench /data --workload m1 --scale 0.01 --out /root/before.json
    frontrow on
    frontrow bench /data --workload m1 --scale 0.01 --out /root/after.json
    frontrow bench compare /root/before.json /root/after.json | tee /root/compared
    frontrow off
    grep '^m1 under writer fsync mean .* better' /root/compared
    umount /data";

/// A rule as CachyOS ships it, for disks of this kind.
const RULE: &str = "/etc/udev/rules.d/60-ioschedulers.rules";

/// On twice; beside a rule of somebody else's, and a write by hand, twice; off. Then on, to stay so.
const SWITCH: &str = "state > /root/before
    frontrow on --dry-run | grep 'nvme0n1.*: serves first'
    state | cmp - /root/before
    frontrow on | grep 'the scheduler on nvme0n1 (was '
    frontrow on
    test $(scheduler) = frontrow
    systemctl is-active frontrowd frontrow-sched@nvme0n1 frontrow-watch@nvme0n1.path
    echo 'ACTION==\"add|change\", KERNEL==\"nvme[0-9]*\", ATTR{queue/scheduler}=\"mq-deadline\"' > RULE
    udevadm control --reload
    event
    becomes frontrow
    frontrow status | grep 'by the udev rule RULE:1, and it was taken back'
    systemctl is-active frontrow-sched@nvme0n1
    echo mq-deadline > /sys/block/nvme0n1/queue/scheduler
    becomes frontrow
    rests
    echo mq-deadline > /sys/block/nvme0n1/queue/scheduler
    until_so \"frontrow status | grep 'it is left so'\"
    event
    test $(scheduler) = mq-deadline
    frontrow on
    test $(scheduler) = frontrow
    rm RULE
    udevadm control --reload
    frontrow off
    is_as_before
    frontrow on
    systemctl start frontrow-settled";

/// It sleeps in memory under load, twice, and then on disk: everything is still on, no request is lost, and
/// nothing stands in the log. It ends its image by a reboot, at which QEMU ends: after a sleep in memory QEMU's
/// machine does not go off.
const SLEEP: &str = "becomes frontrow
    mount /dev/nvme0n1 /data
    swapon /dev/vdc
    ( while :; do dd if=/dev/zero of=/data/big bs=1M count=96 conv=notrunc; done ) 2> /dev/null & writer=$!
    ( while :; do dd if=/dev/zero of=/data/small bs=4k count=1 conv=fsync; sleep 0.2; done ) 2> /dev/null & saver=$!
    is_well() {
        dd if=/dev/urandom of=/data/$1 bs=4k count=4 conv=fsync
        sha256sum /data/$1 >> /root/sums
        test $(scheduler) = frontrow
        systemctl is-active frontrowd frontrow-sched@nvme0n1 frontrow-watch@nvme0n1.path
        frontrow status
        test -z \"$(dmesg | grep -v 'ommand line: ' | grep -E 'I/O error|blocked for more than|nvme.*(timeout|reset)|PM:.*(error|failed)')\"
        test -z \"$(systemctl list-units --failed --plain --no-legend)\"
    }
    is_well awake
    for sleep in first second; do
        sleep 2
        rtcwake -m mem -s 45
        is_well $sleep
    done
    test $(cat /sys/power/suspend_stats/success) -ge 2
    echo reboot > /sys/power/disk
    echo disk > /sys/power/state
    is_well hibernation
    kill $writer $saver
    wait $writer $saver || true
    until_so 'umount /data'
    e2fsck -fn /dev/nvme0n1
    mount /dev/nvme0n1 /data
    sha256sum -c /root/sums
    umount /data";

/// A stick gets the scheduler when it is plugged in, also after it was pulled out in the middle of a write.
/// To the kernel it is a disk that rotates, as most are.
const STICK: &str = "becomes frontrow sda
    test $(cat /sys/block/sda/queue/rotational) = 1
    port=$(basename $(readlink -f /sys/block/sda | sed 's,/[^/]*/host.*,,'))
    ( dd if=/dev/zero of=/dev/sda bs=1M count=512 oflag=direct 2> /dev/null || true ) & writer=$!
    sleep 1
    echo $port > /sys/bus/usb/drivers/usb/unbind
    wait $writer
    until_so 'test ! -e /sys/block/sda'
    until_so '! systemctl is-active frontrow-sched@sda'
    echo $port > /sys/bus/usb/drivers/usb/bind
    until_so 'test -e /sys/block/sd?'
    stick=$(basename /sys/block/sd?)
    becomes frontrow $stick
    until_so \"systemctl is-active frontrow-sched@$stick\"
    timeout 900 dd if=/dev/zero of=/dev/$stick bs=1M count=4 oflag=direct";

/// It is on after a reboot, and on a disk that is taken out and put in. The next boot has no module.
const STILL_ON: &str = "becomes frontrow
    systemctl is-active frontrowd
    echo 1 > /sys/class/nvme/nvme0/device/remove
    until_so '! systemctl is-active frontrow-sched@nvme0n1'
    echo 1 > /sys/bus/pci/rescan
    becomes frontrow
    until_so 'systemctl is-active frontrow-sched@nvme0n1'
    systemctl start frontrow-settled
    mv /lib/modules/$(uname -r)/updates /root/
    depmod";

/// A kernel without the module is one without complaints. Off undoes what another kernel had on.
const OTHER_KERNEL: &str = "systemctl is-active frontrowd
    test $(scheduler) != frontrow
    frontrow status | grep 'the scheduler: the module frontrow_iosched is not installed'
    test -z \"$(systemctl list-units --failed --plain --no-legend)\"
    frontrow on | grep 'Left out'
    frontrow off
    mv /root/updates /lib/modules/$(uname -r)/
    depmod
    is_as_before";

/// The doctor finds who waits, tries what helps, keeps it across boots, and takes it back. Without BTF, as loading
/// iopro's programs for each window takes an emulated CPU minutes.
const KEEP: &str = "scheduler() { sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/block/vdb/queue/scheduler; }
    before=$(scheduler)
    mount /dev/vdb /data
    mount -t tmpfs none /sys/kernel/btf
    for it in writer saver; do cp /bin/dd /usr/local/bin/$it; done
    ( while :; do writer if=/dev/zero of=/data/big bs=1M count=96 conv=notrunc; done ) 2> /dev/null &
    ( while :; do saver if=/dev/zero of=/data/small bs=4k count=1 conv=fsync; sleep 0.2; done ) 2> /dev/null &
    frontrow doctor --seconds 10 --try --keep --pairs 4 --window 4 | tee /root/tried
    grep 'because of writer' /root/tried
    grep 'It is kept: frontrow-sched@vdb.service is enabled' /root/tried
    systemctl is-enabled frontrow-sched@vdb
    test $(scheduler) = frontrow
    frontrow doctor --undo
    systemctl is-enabled frontrow-sched@vdb | grep disabled
    test $(scheduler) = $before
    frontrow doctor --undo | grep 'Nothing is kept'";

/// What a user does on the first day.
const USE: &str = "scheduler() { sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/block/vdb/queue/scheduler; }
    before=$(scheduler)
    test -z \"$(systemctl list-units --all --plain --no-legend 'frontrow*')\"
    test -n \"$(modinfo -F signer frontrow_iosched)\"
    frontrow sched enable vdb
    test $(scheduler) = frontrow
    systemctl start frontrowd
    frontrow fg status
    kill -9 $(systemctl show -P MainPID frontrowd)
    timeout 900 sh -c 'sleep 2; until systemctl is-active frontrowd; do sleep 1; done'
    systemctl stop frontrowd
    frontrow sched disable vdb
    test $(scheduler) = $before
    systemctl enable frontrow-sched@vdb frontrowd";

/// A boot that breaks off while the scheduler is new.
const BREAK_OFF: &str =
    "timeout 900 sh -c 'until systemctl is-active frontrow-sched@vdb; do sleep 1; done'
    systemctl restart frontrow-sched@vdb
    systemctl is-active frontrow-settled.timer
    echo c > /proc/sysrq-trigger";

/// The next one does without, says so, and goes on with it once it is told to.
const DO_WITHOUT: &str =
    "timeout 900 sh -c 'until systemctl is-failed frontrow-sched@vdb; do sleep 1; done'
    test ! -d /sys/module/frontrow_iosched
    journalctl -u frontrow-sched@vdb | grep 'broke off'
    frontrow sched status | grep 'broke off'
    frontrow sched enable vdb
    frontrow sched disable vdb";

/// After a reboot all is as it was enabled, as soon as the disk is there; then it goes.
const PURGE: &str =
    "scheduler() { sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/block/vdb/queue/scheduler; }
    timeout 900 sh -c 'until grep -qF \"[frontrow\" /sys/block/vdb/queue/scheduler; do sleep 1; done'
    systemctl is-active frontrowd
    dd if=/dev/zero of=/dev/vdb bs=1M count=64 conv=fsync
    apt-get -qq -y purge frontrow frontrow-dkms frontrow-lab
    test $(scheduler) != frontrow
    test ! -d /sys/module/frontrow_iosched
    test ! -e /run/frontrow
    test -z \"$(find / -xdev -name '*frontrow*')\"";

/// What is left starts as ever.
const WITHOUT: &str = "test -z \"$(systemctl list-units --failed --plain --no-legend)\"
    test ! -d /sys/module/frontrow_iosched";

fn lives(release: &str) {
    let _alone = Machine::alone();
    let machine = Machine::install(release, "");
    machine.boot(&[WORDS, TRY].concat());
    machine.boot(&[WORDS, SWITCH].concat().replace("RULE", RULE));
    machine.boot_and_resume(&[WORDS, SLEEP].concat());
    machine.boot(&[WORDS, STICK].concat());
    machine.boot(&[WORDS, STILL_ON].concat());
    machine.boot(&[WORDS, OTHER_KERNEL].concat());
    machine.boot(KEEP);
    machine.boot(USE);
    machine.crash(BREAK_OFF);
    machine.boot(DO_WITHOUT);
    machine.boot(PURGE);
    machine.boot(WITHOUT);
}

#[test]
#[ignore = "takes the network, root and twelve boots: make stress-machines"]
fn debian_12_is_used_rebooted_and_purged() {
    lives("bookworm");
}

#[test]
#[ignore = "takes the network, root and twelve boots: make stress-machines"]
fn debian_13_is_used_rebooted_and_purged() {
    lives("trixie");
}
