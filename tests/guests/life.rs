//! A machine's life with Frontrow: a Debian with systemd is given the packages, boots, tries them, uses them, loses
//! the daemon to kill -9, reboots, crashes, and is purged. `make stress` runs this: each release takes half a
//! gigabyte from the network, root or sudo, and ten boots of an emulated machine.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::new_debian::Debian;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const INSTALL: &str = "apt-get -qq update
    apt-get -qq -y --no-install-recommends install systemd-sysv udev dbus kmod e2fsprogs linux-image-amd64 linux-headers-amd64
    apt-get -qq -y --no-install-recommends install /packages/*.deb
    rm -r /packages
    dkms status frontrow | grep installed
    echo '/dev/vda / ext4 defaults 0 1' > /etc/fstab
    cp /root/life.service /etc/systemd/system/
    systemctl enable life.service
    systemctl mask serial-getty@ttyS0.service
    cp -L /vmlinuz /boot/kernel && cp -L /initrd.img /boot/initrd";

/// Its last line says how the steps of this boot ended.
const UNIT: &str = "[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -exc '. /root/steps && echo life goes on'
ExecStopPost=/sbin/poweroff
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
TimeoutStartSec=infinity
[Install]
WantedBy=multi-user.target
";

/// Shell functions: the scheduler of the flash disk, whether it becomes that, and the state that `on` and
/// `off` may not differ in, with each file's content.
const WORDS: &str = "mkdir -p /data
    scheduler() { sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/block/nvme0n1/queue/scheduler; }
    becomes() { timeout 120 sh -c 'until grep -qF \"[$1]\" /sys/block/nvme0n1/queue/scheduler; do sleep 1; done' - $1; }
    state() {
        find /etc /var/lib/frontrow ! -name '*.cache' -printf '%p %y %m %l\\n' | sort
        find /etc -type f ! -name '*.cache' -exec sha256sum {} + | sort -k 2
        grep . /sys/block/*/queue/scheduler /sys/block/*/queue/nr_requests /sys/block/*/queue/wbt_lat_usec || true
        find /sys/fs/cgroup/user.slice -name cgroup.subtree_control -exec grep -H . {} + || true
        systemctl list-unit-files --no-legend 'frontrow*'
        systemctl list-units --all --plain --no-legend 'frontrow*'
        ls /sys/module | grep frontrow || true
    }
    ";

/// What one word does for a user's own disk shows in five minutes, and another undoes it.
const TRY: &str = "mkfs.ext4 -q /dev/nvme0n1
    mkfs.ext4 -q /dev/vdb
    mount /dev/nvme0n1 /data
    udevadm settle
    seconds() { cut -d. -f1 /proc/uptime; }
    began=$(seconds)
    frontrow bench /data --workload m1 --scale 0.01 --out /root/before.json
    frontrow on
    frontrow bench /data --workload m1 --scale 0.01 --out /root/after.json
    frontrow bench compare /root/before.json /root/after.json | tee /root/compared
    frontrow off
    test $(($(seconds) - began)) -le 300
    grep '^m1 under writer fsync mean .* better' /root/compared
    umount /data";

/// A rule as CachyOS ships it, for disks of this kind.
const RULE: &str = "/etc/udev/rules.d/60-ioschedulers.rules";

/// On twice; beside a rule of somebody else's, and a write by hand, twice; off. Then on, to stay so.
const SWITCH: &str = "state > /root/before
    frontrow on --dry-run | grep 'nvme0n1: serves first'
    state | cmp - /root/before
    frontrow on | grep 'the scheduler on nvme0n1 (was '
    frontrow on
    test $(scheduler) = frontrow
    systemctl is-active frontrowd frontrow-sched@nvme0n1 frontrow-watch@nvme0n1.path
    echo 'ACTION==\"add|change\", KERNEL==\"nvme[0-9]*\", ATTR{queue/scheduler}=\"mq-deadline\"' > RULE
    udevadm control --reload
    : >> /dev/nvme0n1
    sleep 2
    udevadm settle
    becomes frontrow
    frontrow status | grep 'by the udev rule RULE:1, and it was taken back'
    systemctl is-active frontrow-sched@nvme0n1
    echo mq-deadline > /sys/block/nvme0n1/queue/scheduler
    becomes frontrow
    sleep 5
    echo mq-deadline > /sys/block/nvme0n1/queue/scheduler
    timeout 120 sh -c 'until frontrow status | grep \"it is left so\"; do sleep 1; done'
    : >> /dev/nvme0n1
    sleep 2
    udevadm settle
    test $(scheduler) = mq-deadline
    frontrow on
    test $(scheduler) = frontrow
    rm RULE
    udevadm control --reload
    frontrow off
    sleep 1
    state > /root/after
    diff /root/before /root/after
    frontrow on
    systemctl start frontrow-settled";

/// It is on after a reboot, and on a disk that is taken out and put in. The next boot has no module.
const STILL_ON: &str = "becomes frontrow
    systemctl is-active frontrowd
    echo 1 > /sys/class/nvme/nvme0/device/remove
    timeout 60 sh -c 'while systemctl is-active frontrow-sched@nvme0n1; do sleep 1; done'
    echo 1 > /sys/bus/pci/rescan
    becomes frontrow
    timeout 60 sh -c 'until systemctl is-active frontrow-sched@nvme0n1; do sleep 1; done'
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
    sleep 1
    state > /root/after
    diff /root/before /root/after";

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
    timeout 60 sh -c 'sleep 2; until systemctl is-active frontrowd; do sleep 1; done'
    systemctl stop frontrowd
    frontrow sched disable vdb
    test $(scheduler) = $before
    systemctl enable frontrow-sched@vdb frontrowd";

/// A boot that breaks off while the scheduler is new.
const BREAK_OFF: &str =
    "timeout 120 sh -c 'until systemctl is-active frontrow-sched@vdb; do sleep 1; done'
    systemctl restart frontrow-sched@vdb
    systemctl is-active frontrow-settled.timer
    echo c > /proc/sysrq-trigger";

/// The next one does without, says so, and goes on with it once it is told to.
const DO_WITHOUT: &str =
    "timeout 120 sh -c 'until systemctl is-failed frontrow-sched@vdb; do sleep 1; done'
    test ! -d /sys/module/frontrow_iosched
    journalctl -u frontrow-sched@vdb | grep 'broke off'
    frontrow sched status | grep 'broke off'
    frontrow sched enable vdb
    frontrow sched disable vdb";

/// After a reboot all is as it was enabled, as soon as the disk is there; then it goes.
const PURGE: &str =
    "scheduler() { sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/block/vdb/queue/scheduler; }
    timeout 120 sh -c 'until grep -qF \"[frontrow\" /sys/block/vdb/queue/scheduler; do sleep 1; done'
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

/// Rate of the disk for data: that is what is waited for, not the emulated CPU.
const DATA_BYTES_PER_S: &str = "20000000";

struct Machine {
    scratch: tempfile::TempDir,
}

impl Machine {
    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Boots it with these steps to take, and waits until it is off.
    fn boot(&self, steps: &str) {
        let console = self.console_of(steps);
        let wrong = ["WARNING:", "BUG:", "Oops", "Kernel panic"];
        let went_well =
            console.contains("life goes on") && !wrong.iter().any(|it| console.contains(it));
        assert!(went_well, "{steps}\n{console}");
    }

    /// The same with steps that end in a crash.
    fn crash(&self, steps: &str) {
        let console = self.console_of(steps);
        assert!(console.contains("sysrq: Trigger a crash"), "{console}");
        // The next steps are written to it.
        let root = self.file("root.img");
        let checked = Command::new("e2fsck").arg("-fy").arg(root).output();
        assert!(matches!(checked.unwrap().status.code(), Some(0 | 1)));
    }

    fn console_of(&self, steps: &str) -> String {
        let steps_file = self.file("steps");
        fs::write(&steps_file, steps.replace("\n    ", "\n") + "\n").unwrap();
        let root = self.file("root.img");
        let place = format!("write {} /root/steps", steps_file.display());
        for request in ["rm /root/steps", &place] {
            let mut debugfs = Command::new("debugfs");
            debugfs.args(["-w", "-R", request]).arg(&root);
            assert!(debugfs.output().unwrap().status.success(), "{request}");
        }
        let drive = |name: &str| format!("file={},format=raw,if=virtio", self.file(name).display());
        let mut machine = Command::new("qemu-system-x86_64");
        machine.args(["-M", "q35", "-m", "1024", "-nographic", "-no-reboot"]);
        machine.arg("-kernel").arg(self.file("kernel"));
        machine.arg("-initrd").arg(self.file("initrd"));
        machine.args(["-append", "root=/dev/vda console=ttyS0 panic=-1"]);
        machine.args(["-drive", &drive("root.img"), "-drive"]);
        machine.arg(drive("data.img") + ",throttling.bps-total=" + DATA_BYTES_PER_S);
        // QEMU's virtio disks rotate; its NVMe disks do not.
        let flash = self.file("flash.img");
        let flash = format!("file={},format=raw,if=none,id=flash", flash.display());
        let flash = flash + ",throttling.bps-total=" + DATA_BYTES_PER_S;
        machine.args(["-drive", &flash, "-device", "nvme,serial=1,drive=flash"]);
        let output = machine.stdin(Stdio::null()).output().unwrap();
        let console = String::from_utf8_lossy(&output.stdout).into_owned();
        // With --nocapture the figures of a user's own disk can be read.
        println!("{console}");
        console
    }
}

fn install(release: &str) -> Machine {
    let machine = Machine {
        scratch: tempfile::tempdir_in("/var/tmp").unwrap(),
    };
    let packages = machine.file("packages");
    let mut pack = Command::new("make");
    pack.arg("pack")
        .arg(format!("PACKAGES_OUT={}", packages.display()));
    assert!(pack.current_dir(CHECKOUT).status().unwrap().success());
    let unit = machine.file("life.service");
    fs::write(&unit, UNIT).unwrap();
    let debian = Debian::new(release);
    debian.copy_in(&packages, "packages");
    debian.copy_in(&unit, "root/life.service");
    debian.run(INSTALL);
    debian.copy_out("boot/kernel", &machine.file("kernel"));
    debian.copy_out("boot/initrd", &machine.file("initrd"));
    debian.image(&machine.file("root.img"));
    for name in ["data.img", "flash.img"] {
        let data = fs::File::create(machine.file(name)).unwrap();
        data.set_len(4 << 30).unwrap();
    }
    machine
}

/// What a user waits for is bounded in seconds, so that one machine at a time is emulated.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn lives(release: &str) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = install(release);
    machine.boot(&[WORDS, TRY].concat());
    machine.boot(&[WORDS, SWITCH].concat().replace("RULE", RULE));
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
#[ignore = "takes the network, root and ten boots: make stress-machines"]
fn debian_12_is_used_rebooted_and_purged() {
    lives("bookworm");
}

#[test]
#[ignore = "takes the network, root and ten boots: make stress-machines"]
fn debian_13_is_used_rebooted_and_purged() {
    lives("trixie");
}
