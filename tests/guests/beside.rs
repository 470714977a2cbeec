//! Frontrow beside other programs that set priorities, weights and schedulers: Debian's packages of gamemode,
//! power-profiles-daemon and tuned, and by hand what ananicy-cpp, system76-scheduler and uresourced set by
//! their rules, as Debian has none of these. `make stress-machines` runs this.

use crate::machine::{Machine, WORDS};

const PACKAGES: &str =
    "dbus-user-session fdisk libpam-systemd gamemode gamemode-daemon power-profiles-daemon tuned";

/// A user with apps, of which a loop that saves a small file is the one to serve.
const APPS: &str = "mkfs.ext4 -q /dev/nvme0n1
    mount /dev/nvme0n1 /data
    chmod 777 /data
    useradd -m -u 1000 alice
    loginctl enable-linger alice
    until_so 'test -S /run/user/1000/bus'
    session='XDG_RUNTIME_DIR=/run/user/1000 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus'
    as() { runuser -u alice -- env $session \"$@\"; }
    app() {
        name=$1
        shift
        as systemd-run --user --scope -q --slice=app.slice --unit=app-test-$name-1.scope \"$@\" &
    }
    slice=/user.slice/user-1000.slice/user@1000.service/app.slice
    unit() { echo $slice/app-test-$1-1.scope; }
    knob() { cat /sys/fs/cgroup$(unit game)/$1; }
    dispatched() { sed -n \"s/^$1_dispatched //p\" /sys/block/nvme0n1/queue/iosched/dispatched; }
    grows() {
        before=$(dispatched $1)
        until_so \"test \\$(sed -n 's/^$1_dispatched //p' /sys/block/nvme0n1/queue/iosched/dispatched) -gt $((before + 3))\"
    }
    save='while :; do dd if=/dev/zero of=/data/game bs=4k count=1 conv=fsync; sleep 0.2; done 2> /dev/null'
    echo \"$save\" > /data/save
    frontrow on
    becomes frontrow
    ";

/// I/O classes and nice values of processes, as the rules of ananicy-cpp and system76-scheduler give them: idle for
/// what they call background.
const PRIORITIES: &str = "app game sh /data/save
    until_so \"test -d /sys/fs/cgroup$(unit game)\"
    grows sync_write
    idle() { for pid in $(cat /sys/fs/cgroup$(unit game)/cgroup.procs); do renice -n 19 -p $pid && ionice -c 3 -p $pid || true; done; }
    idle
    grows bg_sync
    frontrow fg set $(unit game)
    grows fg_write
    frontrow fg release
    grows bg_sync
    ";

/// gamemode gives a game the highest level of best effort, which no class of ours looks at. It does so only where
/// the kernel tells level 4 of the process. Of one whose level was never set kernels of today tell 0: gamemode
/// 1.8.2 then skips it, and says so (its issue 365).
const GAMEMODE: &str = "plays() {
        as systemctl --user stop app-test-game-1.scope
        until_so \"test ! -d /sys/fs/cgroup$(unit game)\"
        app game \"$@\"
        until_so \"grep -q . /sys/fs/cgroup$(unit game)/cgroup.procs\"
        first=$(head -n 1 /sys/fs/cgroup$(unit game)/cgroup.procs)
    }
    plays /usr/games/gamemoderun sh /data/save
    until_so \"journalctl -b _COMM=gamemoded | grep 'client .$first,$first.: ioprio was (0) but we expected (4)'\"
    ionice -p $first | grep 'none: prio 0'
    grows sync_write
    plays ionice -c 2 -n 4 /usr/games/gamemoderun sh /data/save
    until_so \"ionice -p $first | grep 'best-effort: prio 0'\"
    grows sync_write
    frontrow fg set $(unit game)
    grows fg_write
    ";

/// Status tells for whom waits were shortened, beside an app that writes a big file.
const HELPED: &str = "echo 'while :; do dd if=/dev/zero of=/data/big bs=1M count=96 conv=notrunc; done 2> /dev/null' > /data/write
    app writer sh /data/write
    until_so \"frontrow status | grep 'by the app in the foreground meanwhile: game [1-9][0-9]* of '\"
    frontrow status
    as systemctl --user stop app-test-writer-1.scope
    ";

/// uresourced weighs the active user's slice and, by the focus, apps. Both are beside what frontrowd sets. With a
/// weight systemd writes the unit's other attributes anew, so the next change of focus has to set ours again.
const URESOURCED: &str =
    "systemctl set-property --runtime user-1000.slice CPUWeight=500 IOWeight=500 MemoryLow=250M
    as systemctl --user set-property --runtime app-test-game-1.scope CPUWeight=300 IOWeight=300
    grows fg_write
    frontrow fg release
    frontrow fg set $(unit game)
    test $(knob memory.low) -gt 0
    test $(knob cpu.weight) = 300
    grows fg_write
    frontrow fg release
    test $(knob memory.low) = 0
    test $(knob cpu.weight) = 300
    test $(cat /sys/fs/cgroup/user.slice/user-1000.slice/memory.low) = 262144000
    ";

/// The platform's profile, and a profile of tuned's that sets dirty limits for the whole machine.
const PROFILES: &str = "systemctl start power-profiles-daemon
    busctl call org.freedesktop.UPower.PowerProfiles /org/freedesktop/UPower/PowerProfiles org.freedesktop.DBus.Properties Set ssv org.freedesktop.UPower.PowerProfiles ActiveProfile s power-saver
    test $(scheduler) = frontrow
    systemctl stop power-profiles-daemon
    systemctl start tuned
    tuned-adm profile throughput-performance
    tuned-adm active | grep throughput-performance
    test $(scheduler) = frontrow
    test $(cat /proc/sys/vm/dirty_ratio) = 40
    ";

/// `elevator=` is a write to the disk's scheduler: taken back once, then theirs and named.
const ELEVATOR: &str = "mkdir -p /etc/tuned/profiles/desk /etc/tuned/desk
    printf '[main]\\ninclude=balanced\\n[disk]\\nelevator=kyber\\n' | tee /etc/tuned/profiles/desk/tuned.conf > /etc/tuned/desk/tuned.conf
    tuned-adm profile desk
    until_so \"frontrow status | grep 'tuned.s profile desk, and it was taken back'\"
    becomes frontrow
    rests
    systemctl restart tuned
    until_so \"frontrow status | grep 'tuned.s profile desk, and it is left so'\"
    test $(scheduler) = kyber
    systemctl stop tuned
    frontrow on
    becomes frontrow
    ";

/// `IOWeight=` is bfq's alone, and a session's systemd writes it only where it was given the io controller. Debian
/// gives it none: there the property may set our weight back to the default, and the next order sets it again.
/// The last writer of a weight wins, and frontrowd leaves what is not its own.
const WEIGHTS: &str = "rests
    frontrow off
    test $(scheduler) != frontrow
    modprobe bfq
    echo bfq > /sys/block/nvme0n1/queue/scheduler
    systemctl start frontrowd
    weight() { sed -n 's/^default //p' /sys/fs/cgroup$(unit game)/io.bfq.weight; }
    frontrow fg set $(unit game)
    until_so 'frontrow fg status | grep io.bfq.weight'
    test $(weight) = 1000
    as systemctl --user set-property --runtime app-test-game-1.scope IOWeight=200
    test \"$(weight)\" != 200
    frontrow fg release
    frontrow fg set $(unit game)
    test $(weight) = 1000
    echo 200 > /sys/fs/cgroup$(unit game)/io.bfq.weight
    frontrow fg release
    test $(weight) = 200
    systemctl stop frontrowd
    as systemctl --user stop app-test-game-1.scope";

/// Rules as users publish them: one for the partitions of ZFS (here of ext4), one that runs a shell, and one whose
/// program goes on after the rules. The first two are told our word in the same event. The last is somebody else.
const RULES: &str = "umount /data || true
    echo 'size=1G' | sfdisk -q --wipe=always /dev/nvme0n1
    udevadm settle
    mkfs.ext4 -q /dev/nvme0n1p1
    udevadm settle
    state > /root/before
    frontrow on
    becomes frontrow
    taken_by() {
        echo \"$2\" > RULE
        udevadm control --reload
        for time in first second third; do
            udevadm trigger --action=change --settle /sys/block/nvme0n1$1
            becomes frontrow
            rests
        done
        frontrow status | tee /dev/stderr | grep 'given none at .* times), by the udev rule RULE:1, and it was taken back'
        systemctl is-active frontrow-sched@nvme0n1
        frontrow on
    }
    when='ACTION==\"add|change\", KERNEL=='
    taken_by /nvme0n1p1 \"$when\\\"nvme[0-9]*n[0-9]*p[0-9]*\\\", ENV{ID_FS_TYPE}==\\\"ext4\\\", ATTR{../queue/scheduler}=\\\"none\\\"\"
    writes='echo none > /sys/block/%k/queue/scheduler'
    taken_by '' \"$when\\\"nvme*n1\\\", RUN+=\\\"/bin/sh -c '$writes'\\\"\"
    echo \"$when\\\"nvme*n1\\\", RUN+=\\\"/usr/bin/systemd-run --no-block /bin/sh -c 'sleep 1; $writes'\\\"\" > RULE
    udevadm control --reload
    udevadm trigger --action=change --settle /sys/block/nvme0n1
    until_so \"frontrow status | grep 'by a program that the udev rule RULE:1 starts, and it was taken back'\"
    becomes frontrow
    rests
    udevadm trigger --action=change --settle /sys/block/nvme0n1
    until_so \"frontrow status | grep 'by a program that the udev rule RULE:1 starts, and it is left so'\"
    test $(scheduler) = none
    rm RULE
    udevadm control --reload
    frontrow on
    frontrow off
    is_as_before";

const RULE: &str = "/etc/udev/rules.d/99-local.rules";

#[test]
#[ignore = "takes the network and root: make stress-machines"]
fn what_other_programs_set_is_left_and_who_wins_is_as_the_page_says() {
    let _alone = Machine::alone();
    let machine = Machine::install("trixie", PACKAGES);
    let steps = [
        WORDS, APPS, PRIORITIES, GAMEMODE, HELPED, URESOURCED, PROFILES, ELEVATOR, WEIGHTS,
    ];
    machine.boot(&steps.concat());
    machine.boot(&[WORDS, RULES].concat().replace("RULE", RULE));
}
