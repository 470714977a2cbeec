//! A machine with systemd and Frontrow's packages: a Debian that is installed from the network, and boots in
//! QEMU as often as one likes. Takes root or sudo.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::new_debian::Debian;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const INSTALL: &str = "apt-get -qq update
    apt-get -qq -y --no-install-recommends install systemd-sysv udev dbus kmod e2fsprogs linux-image-amd64 linux-headers-amd64 MORE
    apt-get -qq -y --no-install-recommends install /packages/*.deb
    rm -r /packages
    dkms status frontrow | grep installed
    echo '/dev/vda / ext4 defaults 0 1' > /etc/fstab
    mkdir -p /etc/systemd/system.conf.d
    printf '[Manager]\\nDefaultTimeoutStartSec=900\\n' > /etc/systemd/system.conf.d/emulated.conf
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
/// `off` may not differ in, with each file's content. Waits end with what is waited for: their limits are of
/// a machine that emulates this one beside much else.
pub const WORDS: &str = "mkdir -p /data
    scheduler() { sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/block/nvme0n1/queue/scheduler; }
    until_so() { timeout 900 sh -c \"until $1; do sleep 1; done\"; }
    becomes() { until_so \"grep -qF '[$1]' /sys/block/${2:-nvme0n1}/queue/scheduler\"; }
    event() {
        number=$(cat /sys/kernel/uevent_seqnum)
        : >> /dev/nvme0n1
        until_so \"test \\$(cat /sys/kernel/uevent_seqnum) -gt $number\"
        udevadm settle --timeout=900
    }
    rests() { until_so \"test \\$(systemctl is-active frontrow-watch@nvme0n1.service) = inactive\"; }
    state() {
        find /etc /var/lib/frontrow ! -name '*.cache' -printf '%p %y %m %l\\n' | sort
        find /etc -type f ! -name '*.cache' -exec sha256sum {} + | sort -k 2
        grep . /sys/block/*/queue/scheduler /sys/block/*/queue/nr_requests /sys/block/*/queue/wbt_lat_usec || true
        find /sys/fs/cgroup/user.slice -name cgroup.subtree_control -exec grep -H . {} + || true
        systemctl list-unit-files --no-legend 'frontrow*'
        systemctl list-units --all --plain --no-legend 'frontrow*'
        ls /sys/module | grep frontrow || true
    }
    is_as_before() {
        for second in $(seq 60); do
            state > /root/after
            cmp -s /root/before /root/after && return
            sleep 1
        done
        diff /root/before /root/after
    }
    ";

/// Rate of the disk for data: that is what is waited for, not the emulated CPU.
const DATA_BYTES_PER_S: &str = "20000000";

/// On a host with much else to do the machine stands still for half a minute at times. To its kernel that is no
/// lockup, and no request that its disk has lost.
const COMMAND_LINE: &str = "root=/dev/vda resume=/dev/vdc console=ttyS0 panic=-1 \
    watchdog_thresh=60 nvme_core.io_timeout=255";

/// Its disks, and how it is booted.
pub struct Machine {
    scratch: tempfile::TempDir,
}

impl Machine {
    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Boots it with these steps to take, and waits until it is off.
    pub fn boot(&self, steps: &str) {
        assert_well(steps, &self.console_of(steps));
    }

    /// The same with steps that end in a crash.
    pub fn crash(&self, steps: &str) {
        let console = self.console_of(steps);
        assert!(console.contains("sysrq: Trigger a crash"), "{console}");
        // The next steps are written to it.
        let root = self.file("root.img");
        let checked = Command::new("e2fsck").arg("-fy").arg(root).output();
        assert!(matches!(checked.unwrap().status.code(), Some(0 | 1)));
    }

    /// The same with steps in the middle of which the machine writes itself to disk.
    pub fn boot_and_resume(&self, steps: &str) {
        let hibernated = self.console_of(steps);
        let is_off = hibernated.contains("PM: hibernation: hibernation entry");
        assert!(is_off && !hibernated.contains("life"), "{hibernated}");
        let console = hibernated + &self.run();
        assert_well(steps, &console);
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
        self.run()
    }

    /// Runs the machine until it is off; its console.
    fn run(&self) -> String {
        let drive = |name: &str| format!("file={},format=raw,if=virtio", self.file(name).display());
        let mut machine = Command::new("qemu-system-x86_64");
        machine.args(["-M", "q35", "-m", "1024", "-nographic", "-no-reboot"]);
        machine.arg("-kernel").arg(self.file("kernel"));
        machine.arg("-initrd").arg(self.file("initrd"));
        machine.arg("-append").arg(COMMAND_LINE);
        machine.args(["-drive", &drive("root.img"), "-drive"]);
        machine.arg(drive("data.img") + ",throttling.bps-total=" + DATA_BYTES_PER_S);
        // QEMU's virtio disks rotate; its NVMe disks do not.
        let flash = self.file("flash.img");
        let flash = format!("file={},format=raw,if=none,id=flash", flash.display());
        let flash = flash + ",throttling.bps-total=" + DATA_BYTES_PER_S;
        machine.args(["-drive", &flash, "-device", "nvme,serial=1,drive=flash"]);
        machine.args(["-drive", &drive("swap.img")]);
        let stick = self.file("stick.img");
        let stick = format!("file={},format=raw,if=none,id=stick", stick.display());
        machine.args(["-drive", &stick, "-device", "qemu-xhci", "-device"]);
        machine.arg("usb-storage,drive=stick,removable=on");
        let output = machine.stdin(Stdio::null()).output().unwrap();
        let console = String::from_utf8_lossy(&output.stdout).into_owned();
        // With --nocapture the figures of a user's own disk can be read.
        println!("{console}");
        console
    }

    /// A new one, with these packages of Debian's besides.
    pub fn install(release: &str, more: &str) -> Machine {
        let machine = Machine {
            scratch: tempfile::tempdir_in("/var/tmp").unwrap(),
        };
        let packages = machine.file("packages");
        let mut pack = Command::new("make");
        pack.args(["pack", "PROFILE=debug"])
            .arg(format!("PACKAGES_OUT={}", packages.display()));
        assert!(pack.current_dir(CHECKOUT).status().unwrap().success());
        let unit = machine.file("life.service");
        fs::write(&unit, UNIT).unwrap();
        let debian = Debian::new(release);
        debian.copy_in(&packages, "packages");
        debian.copy_in(&unit, "root/life.service");
        debian.run(&INSTALL.replace("MORE", more));
        debian.copy_out("boot/kernel", &machine.file("kernel"));
        debian.copy_out("boot/initrd", &machine.file("initrd"));
        debian.image(&machine.file("root.img"));
        for (name, gibibytes) in [
            ("data.img", 4),
            ("flash.img", 4),
            ("swap.img", 2),
            ("stick.img", 1),
        ] {
            let data = fs::File::create(machine.file(name)).unwrap();
            data.set_len(gibibytes << 30).unwrap();
        }
        // Each boot looks there for a machine that sleeps, and waits for half a minute where nothing is.
        let mut format = Command::new("mkswap");
        let formatted = format.arg("-q").arg(machine.file("swap.img")).status();
        assert!(formatted.unwrap().success());
        machine
    }

    /// Emulated machines are slow enough one at a time.
    pub fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn assert_well(steps: &str, console: &str) {
    let wrong = ["WARNING:", "BUG:", "Oops", "Kernel panic"];
    let went_well =
        console.contains("life goes on") && !wrong.iter().any(|it| console.contains(it));
    assert!(went_well, "{steps}\n{console}");
}
