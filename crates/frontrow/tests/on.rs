//! `frontrow on`, `off` and `status` on a machine made of files, whose systemctl and udevadm are scripts.

use crate::sched::{Machine, Outcome, outcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Not a user of this machine.
const NOBODY: u32 = 65534;
const RELEASE: &str = "6.12.0-test";
const RULE: &str = "etc/udev/rules.d/zz-frontrow.rules";
const RECORD: &str = "var/lib/frontrow/on.json";
/// A graphical session, as the script keeps it.
const DESKTOP: &str = "run/systemd/active/--machine=1000@.host/graphical-session.target";
const TAKEN: &str = "run/frontrow/taken.json";

/// Keeps units as files. The call whose number is in `die-at` kills who called.
const SYSTEMCTL: &str = r#"PATH=/usr/bin:/bin
R=ROOT
echo "$*" >> $R/calls
die_at=$(cat $R/die-at 2>/dev/null)
test -z "$die_at" || test "$(wc -l < $R/calls)" != "$die_at" || { kill -9 $PPID; sleep 1; }
scope=system
case $1 in
--global) scope=global; shift ;;
--user) scope=$2; shift 2 ;;
esac
verb=$1; shift; now=
case $1 in
--now) now=y; shift ;;
--no-block) shift ;;
esac
unit=$1
wants=$R/etc/systemd/system/multi-user.target.wants
test $scope = system || wants=$R/etc/systemd/user/graphical-session.target.wants
active=$R/run/systemd/active/$scope
start() { mkdir -p $active; touch "$active/$unit"; }
case $verb in
enable) mkdir -p $wants; ln -sf /x "$wants/$unit"; test -z "$now" || start ;;
disable) rm -f "$wants/$unit"; rmdir $wants 2>/dev/null || true ;;
is-enabled) test -L "$wants/$unit" && echo enabled || { echo disabled; exit 1; } ;;
start) start ;;
stop) rm -f "$active/$unit" ;;
is-active) test -e "$active/$unit" ;;
list-units) for it in $active/*; do case ${it##*/} in $4) echo "${it##*/} loaded" ;; esac; done ;;
esac"#;

trait Switched {
    fn with_systemd() -> Self;
    fn frontrow(&self, words: &[&str]) -> Outcome;
    fn json(&self, words: &[&str]) -> Value;
    fn has(&self, path: &str) -> bool;
    fn state(&self) -> BTreeMap<String, String>;
    fn take(&self, disk: &str, scheduler: &str);
    fn is_on(&self, disk: &str) -> bool;
}

impl Switched for Machine {
    /// A machine of one user's, whose kernel has the module's file.
    fn with_systemd() -> Self {
        let machine = Machine::new();
        machine.write("proc/cmdline", "quiet");
        machine.write("proc/uptime", "100.25 90.00");
        machine.write("run/systemd/seats/seat0", "ACTIVE_UID=1000");
        machine.write("run/user/1000/systemd/private", "");
        let modules = format!("lib/modules/{RELEASE}/modules.dep");
        machine.write(&modules, "updates/dkms/frontrow_iosched.ko.xz:");
        for directory in [
            "run/systemd/system",
            "etc/systemd/system",
            "etc/udev",
            "var/lib",
        ] {
            fs::create_dir_all(machine.path(directory)).unwrap();
        }
        machine.write(DESKTOP, "");
        let root = machine.root.path().to_str().unwrap();
        machine.script("systemctl", &SYSTEMCTL.replace("ROOT", root));
        machine.script("udevadm", "exit 0");
        machine.script("modprobe", "exit 0");
        machine
    }

    fn frontrow(&self, words: &[&str]) -> Outcome {
        let mut command = Command::new(env!("CARGO_BIN_EXE_frontrow"));
        let (name, rest) = words.split_first().unwrap();
        command.arg(name).arg("--sysroot").arg(self.root.path());
        outcome({
            command.args(rest).env("PATH", self.path("bin"));
            command
        })
    }

    fn json(&self, words: &[&str]) -> Value {
        let said = self.frontrow(&[words, &["--json"]].concat());
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        serde_json::from_str(&said.stdout).unwrap()
    }

    fn has(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// Each file and directory with its content, but for locks; of a scheduler only which it is, as these
    /// files do not list what else there is.
    fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        collect(self.root.path(), self.root.path(), &mut state);
        state.retain(|path, _| {
            let is_own = path.starts_with("run/frontrow") && !path.ends_with(".json");
            let is_scripts = ["calls", "die-at", "run/systemd/active"];
            !is_own && !is_scripts.iter().any(|it| path.starts_with(it))
        });
        for (path, text) in &mut state {
            if path.ends_with("queue/scheduler") {
                let mut words = text.split_whitespace();
                let chosen = words.find_map(|it| it.strip_prefix('[')?.strip_suffix(']'));
                *text = chosen.unwrap_or(text.trim()).to_owned();
            } else if path.starts_with("sys/") {
                *text = text.trim().to_owned();
            }
        }
        state
    }

    /// As somebody else does, who chooses among what there is.
    fn take(&self, disk: &str, scheduler: &str) {
        let text = format!("[{scheduler}] none frontrow");
        self.write(&format!("sys/block/{disk}/queue/scheduler"), &text);
        self.write(&format!("sys/block/{disk}/queue/nr_requests"), "256");
    }

    fn is_on(&self, disk: &str) -> bool {
        self.queue(disk, "scheduler") == "frontrow"
    }
}

/// Fails with what differs, and only that.
fn assert_same(
    state: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
    when: impl std::fmt::Display,
) {
    let paths = state.keys().chain(wanted.keys());
    let differs = |it: &&String| state.get(*it) != wanted.get(*it);
    let differing: BTreeMap<_, _> = paths
        .filter(differs)
        .map(|it| (it, (state.get(it), wanted.get(it))))
        .collect();
    assert!(differing.is_empty(), "{when}: {differing:#?}");
}

fn collect(root: &Path, directory: &Path, state: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if path.is_symlink() {
            state.insert(name, format!("{:?}", fs::read_link(&path).unwrap()));
        } else if path.is_dir() {
            state.insert(name, "a directory".to_owned());
            collect(root, &path, state);
        } else {
            let content = fs::read(&path).unwrap();
            state.insert(name, String::from_utf8_lossy(&content).into_owned());
        }
    }
}

/// The kernel calls them rotating, as they do not say that they are not; a disc and a USB hard disk are.
#[test]
fn sticks_get_the_scheduler_and_discs_and_usb_hard_disks_do_not() {
    let machine = Machine::with_systemd();
    for (name, removable, kind) in [("sdb", "1", "0"), ("sdc", "0", "0"), ("sr0", "1", "5")] {
        machine.disk(name, "[mq-deadline] none frontrow", "2", 1);
        machine.write(&format!("sys/block/{name}/queue/rotational"), "1");
        machine.write(&format!("sys/block/{name}/removable"), removable);
        machine.write(&format!("sys/block/{name}/device/type"), kind);
    }
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    let on = ["sdb", "sdc", "sr0"].map(|it| machine.is_on(it));
    assert_eq!(on, [true, false, false]);
}

#[test]
fn on_says_what_it_changed_and_off_leaves_the_state_of_before() {
    let machine = Machine::with_systemd();
    machine.disk("sda", "[mq-deadline] none frontrow", "64", 1);
    machine.disk("vda", "[mq-deadline] none frontrow", "64", 1);
    for rotating in ["sda", "vda"] {
        machine.write(&format!("sys/block/{rotating}/queue/rotational"), "1");
    }
    let before = machine.state();
    let said = machine.frontrow(&["on"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(
        said.stdout,
        "Frontrow is on, now and at each boot:\n  \
         the scheduler on mmcblk0 (was mq-deadline), nvme0n1 (was none): serves first what somebody waits for\n  \
         /etc/udev/rules.d/zz-frontrow.rules: it stays on beside other rules, and new disks get it\n  \
         frontrowd: the app with the focus comes first, and who writes much is limited\n  \
         frontrow-follow: tells frontrowd the focus, for each login, and now for user 1000\n\
         Left out:\n  \
         dm-0: it passes its requests on to mmcblk0p2\n  \
         sda: it rotates, and the scheduler is made for flash\n  \
         vda: it says that it rotates, as virtual machines' disks do: `sudo frontrow sched enable DISK` if it lies on flash\n\
         `frontrow status` shows what it does; `sudo frontrow off` undoes all of it.\n"
    );
    assert!(machine.is_on("mmcblk0") && machine.is_on("nvme0n1"));
    assert_eq!(
        machine.queue("sda", "scheduler"),
        "[mq-deadline] none frontrow"
    );
    for path in [
        RULE,
        "var/lib/frontrow/starting",
        "etc/systemd/system/multi-user.target.wants/frontrowd.service",
        "etc/systemd/user/graphical-session.target.wants/frontrow-follow.service",
        "run/systemd/active/system/frontrow-sched@mmcblk0.service",
        "run/systemd/active/--machine=1000@.host/frontrow-follow.service",
    ] {
        assert!(machine.has(path), "{path}");
    }
    let on = machine.state();
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    // The counters are written down each time.
    let [on, again] = [on, machine.state()].map(|mut state| {
        state.remove("run/frontrow/counted.json");
        state
    });
    assert_same(&again, &on, "twice is once");

    let said = machine.frontrow(&["off"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_same(&machine.state(), &before, "before");
    let units = fs::read_dir(machine.path("run/systemd/active/system"));
    assert_eq!(units.unwrap().count(), 0);
    assert!(
        machine
            .frontrow(&["off"])
            .stdout
            .contains("nothing to undo")
    );
    assert_same(&machine.state(), &before, "before");
}

#[test]
fn a_session_without_a_desktop_has_nobody_to_follow() {
    let machine = Machine::with_systemd();
    fs::remove_file(machine.path(DESKTOP)).unwrap();
    let said = machine.json(&["on"]);
    assert_eq!(said["users"], json!([]));
    let left_out = said["left_out"].to_string();
    assert!(left_out.contains("the focus of user 1000"), "{left_out}");
    let follower = "run/systemd/active/--machine=1000@.host/frontrow-follow.service";
    assert!(!machine.has(follower));
}

#[test]
fn a_plan_changes_nothing() {
    let machine = Machine::with_systemd();
    let before = machine.state();
    let plan = machine.json(&["on", "--dry-run"]);
    crate::schema::check("on", &plan);
    assert_eq!(plan["disks"][1]["device"], "nvme0n1");
    assert_eq!(plan["users"], json!([1000]));
    assert_same(&machine.state(), &before, "before");
}

/// Killed at any of its calls of systemctl, and with the disk's own steps before and after them.
#[test]
fn whenever_it_is_killed_off_undoes_it() {
    let machine = Machine::with_systemd();
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    let calls = fs::read_to_string(machine.path("calls")).unwrap();
    let calls = calls.lines().count();
    assert!(calls > 6, "{calls}");
    for die_at in 1..=calls {
        let machine = Machine::with_systemd();
        let before = machine.state();
        machine.write("die-at", &die_at.to_string());
        let mut on = Command::new(env!("CARGO_BIN_EXE_frontrow"));
        on.args(["on", "--sysroot"]).arg(machine.root.path());
        let status = on.env("PATH", machine.path("bin")).status().unwrap();
        assert_eq!(status.code(), None, "it was to be killed at {die_at}");
        fs::remove_file(machine.path("die-at")).unwrap();
        let said = machine.frontrow(&["off"]);
        assert_eq!(said.code, 0, "{die_at}: {said:?}");
        assert_same(&machine.state(), &before, die_at);
    }
}

/// Each word is for the whole machine: who names a disk is told the command for one, and nothing is changed.
#[test]
fn who_names_a_disk_is_told_the_command_for_one() {
    let machine = Machine::with_systemd();
    let before = machine.state();
    let commands = [
        ("on", "sudo frontrow sched enable nvme0n1"),
        ("off", "sudo frontrow sched disable nvme0n1"),
        ("status", "frontrow sched status nvme0n1"),
    ];
    for (word, for_one) in commands {
        for disk in ["nvme0n1", "/dev/nvme0n1"] {
            let said = machine.frontrow(&[word, disk]);
            assert_eq!(said.code, 2, "{said:?}");
            assert!(said.stderr.contains(&format!("`{for_one}`")), "{said:?}");
        }
    }
    assert_same(&machine.state(), &before, "before");
}

/// The sentence on a record that cannot be read is one to go by.
#[test]
fn a_record_that_is_broken_is_deleted_and_then_off_switches_everything_off() {
    let machine = Machine::with_systemd();
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    machine.write(RECORD, "{");
    for word in ["on", "off", "status"] {
        let said = machine.frontrow(&[word]);
        assert_eq!(said.code, 1, "{said:?}");
        let todo = "delete it, and `sudo frontrow off` switches everything off";
        assert!(said.stderr.contains(todo), "{said:?}");
    }
    assert!(machine.is_on("nvme0n1"));
    fs::remove_file(machine.path(RECORD)).unwrap();
    assert_eq!(machine.frontrow(&["off"]).code, 0);
    let wants = "etc/systemd/system/multi-user.target.wants/frontrowd.service";
    assert!(!machine.is_on("nvme0n1") && !machine.has(RULE) && !machine.has(wants));
}

#[test]
fn what_a_user_had_on_by_hand_stays() {
    let machine = Machine::with_systemd();
    assert_eq!(machine.frontrow(&["sched", "enable", "mmcblk0"]).code, 0);
    let wants = "etc/systemd/system/multi-user.target.wants/frontrowd.service";
    fs::create_dir_all(machine.path(wants).parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/x", machine.path(wants)).unwrap();
    let before = machine.state();
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    assert_eq!(machine.frontrow(&["off"]).code, 0);
    assert_same(&machine.state(), &before, "before");
    assert!(machine.is_on("mmcblk0") && !machine.is_on("nvme0n1"));
}

#[test]
fn after_a_reboot_off_puts_back_what_that_boot_had() {
    let machine = Machine::with_systemd();
    let before = machine.state();
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    // The machine goes down in order, and comes up under another kernel.
    fs::remove_dir_all(machine.path("run/frontrow")).unwrap();
    fs::remove_dir_all(machine.path("run/systemd/active")).unwrap();
    fs::remove_file(machine.path("var/lib/frontrow/starting")).unwrap();
    machine.write("proc/sys/kernel/random/boot_id", "boot-2");
    for (disk, schedulers, nr_requests) in [
        ("mmcblk0", "[mq-deadline] none frontrow", "4"),
        ("nvme0n1", "[none] mq-deadline frontrow", "1023"),
    ] {
        machine.disk(disk, schedulers, nr_requests, 0);
    }
    let unit = ["sched", "enable", "--at-boot", "mmcblk0"];
    assert_eq!(machine.frontrow(&unit).code, 0);
    assert_eq!(machine.frontrow(&["off"]).code, 0);
    let mut after = machine.state();
    let boot = "proc/sys/kernel/random/boot_id".to_owned();
    after.insert(boot.clone(), before[&boot].clone());
    assert_same(&after, &before, "before");
}

#[test]
fn without_the_module_the_rest_is_on_and_it_says_so() {
    let machine = Machine::with_systemd();
    fs::remove_file(machine.path(&format!("lib/modules/{RELEASE}/modules.dep"))).unwrap();
    let before = machine.state();
    let said = machine.frontrow(&["on"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!machine.is_on("mmcblk0") && machine.has(RULE));
    let why = "the scheduler: the module frontrow_iosched is not installed for kernel 6.12.0-test";
    assert!(said.stdout.contains(why), "{said:?}");
    assert!(said.stdout.contains("frontrowd: "), "{said:?}");
    let status = machine.frontrow(&["status"]);
    assert!(status.stdout.contains(why), "{status:?}");
    // The rule is for kernels that have it.
    assert_eq!(machine.frontrow(&["sched", "gains", "mmcblk0"]).code, 5);
    assert_eq!(machine.frontrow(&["off"]).code, 0);
    assert_same(&machine.state(), &before, "before");
}

#[test]
fn where_nothing_can_be_on_nothing_is_changed() {
    let machine = Machine::with_systemd();
    fs::remove_dir_all(machine.path("run/systemd")).unwrap();
    machine.write("proc/cmdline", "quiet frontrow.disable=1");
    let before = machine.state();
    let plan = machine.frontrow(&["on", "--dry-run"]);
    let said = machine.frontrow(&["on"]);
    assert_eq!((said.code, plan.code), (3, 3), "{said:?} {plan:?}");
    assert!(
        said.stderr
            .contains("frontrow.disable is on the kernel's command line")
    );
    assert!(said.stderr.contains("systemd does not run"), "{said:?}");
    assert_same(&machine.state(), &before, "before");
}

/// One in its partition's event, one by a program, and one by a program that goes on after the rules.
#[test]
fn a_disk_is_kept_from_rules_that_set_it_in_other_ways() {
    let machine = Machine::with_systemd();
    machine.write("sys/block/mmcblk0/mmcblk0p1/partition", "1");
    let rules = "etc/udev/rules.d/60-local.rules";
    let partitions = r#"KERNEL=="mmcblk[0-9]*p[0-9]*", ATTR{../queue/scheduler}="kyber""#;
    let program =
        r#"KERNEL=="mmcblk0", RUN+="/bin/sh -c 'echo bfq > /sys/block/%k/queue/scheduler'""#;
    machine.write(rules, &format!("{partitions}\n{program}"));
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    let keep = |more: &[&str]| {
        let said = machine.frontrow(&[&["sched", "keep"], more, &["mmcblk0"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said.stdout
    };
    for (scheduler, line) in [("kyber", 1), ("kyber", 1), ("bfq", 2), ("bfq", 2)] {
        machine.take("mmcblk0", scheduler);
        let said = keep(&["--after-rules"]);
        let by = format!("the udev rule /{rules}:{line}: taken back");
        assert!(said.contains(&by), "{said}");
    }
    let by = format!("by a program that the udev rule /{rules}:2 starts");
    machine.take("mmcblk0", "bfq");
    let said = keep(&[]);
    assert!(said.contains(&format!("{by}: taken back")), "{said}");
    machine.take("mmcblk0", "bfq");
    let said = keep(&[]);
    assert!(
        said.contains(&format!("{by}, again: it is left so")),
        "{said}"
    );
    crate::schema::check("status", &machine.json(&["status"]));
}

#[test]
fn a_disk_is_kept_from_rules_and_taken_back_once_from_others() {
    let machine = Machine::with_systemd();
    let before = machine.state();
    let rules = "usr/lib/udev/rules.d/60-ioschedulers.rules";
    machine.write(
        rules,
        "KERNEL==\"mmcblk0\", ATTR{queue/scheduler}=\"kyber\"",
    );
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    let keep = |more: &[&str]| {
        let said = machine.frontrow(&[&["sched", "keep"], more, &["mmcblk0"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said.stdout
    };
    assert_eq!(keep(&[]), "");
    for _ in 0..3 {
        machine.take("mmcblk0", "kyber");
        let said = keep(&["--after-rules"]);
        assert!(
            said.contains("/60-ioschedulers.rules:1: taken back"),
            "{said}"
        );
        assert!(machine.is_on("mmcblk0"));
    }
    // A rule may set no more than the number of tags.
    machine.write("sys/block/mmcblk0/queue/nr_requests", "64");
    assert_eq!(keep(&["--after-rules"]), "");
    assert_eq!(machine.queue("mmcblk0", "nr_requests"), "512");
    // tuned sets it some time after the boot.
    machine.write("run/tuned/tuned.pid", "1");
    machine.write("etc/tuned/active_profile", "mine");
    machine.write("etc/tuned/mine/tuned.conf", "[disk]\nelevator=bfq");
    machine.take("mmcblk0", "bfq");
    assert!(keep(&[]).contains("tuned's profile mine: taken back"));
    assert!(machine.is_on("mmcblk0"));
    machine.take("mmcblk0", "bfq");
    assert!(keep(&[]).contains("left so until `frontrow on`"));
    assert_eq!(machine.queue("mmcblk0", "scheduler"), "[bfq] none frontrow");
    assert_eq!(machine.queue("mmcblk0", "nr_requests"), "256", "bfq's own");
    assert_eq!(machine.queue("mmcblk0", "wbt_lat_usec"), "2000");
    assert!(!machine.has("run/systemd/active/system/frontrow-sched@mmcblk0.service"));
    assert_eq!(machine.frontrow(&["sched", "gains", "mmcblk0"]).code, 7);
    assert_eq!(machine.frontrow(&["sched", "gains", "nvme0n1"]).code, 0);
    // A rule that comes by has no last word any more.
    assert_eq!(keep(&["--after-rules"]), "");

    let status = machine.json(&["status"]);
    crate::schema::check("status", &status);
    let taken = &status["disks"][0]["taken"];
    assert_eq!(taken[0]["by"]["kind"], "udev_rule");
    assert_eq!(taken[0]["times"], 3);
    assert_eq!(taken[1]["by"]["profile"], "mine");
    assert_eq!(taken[1]["left"], true);
    let words = machine.frontrow(&["status"]).stdout;
    assert!(
        words.contains("mmcblk0: bfq, without the frontrow scheduler"),
        "{words}"
    );
    assert!(
        words.contains("by tuned's profile mine, and it is left so"),
        "{words}"
    );

    assert_eq!(machine.frontrow(&["on"]).code, 0);
    assert!(machine.is_on("mmcblk0") && !machine.has(TAKEN));
    // What the others set in the meantime is what was there before.
    assert_eq!(machine.frontrow(&["off"]).code, 0);
    let after = machine.state();
    assert_eq!(after["sys/block/mmcblk0/queue/scheduler"], "bfq");
    assert_eq!(after["sys/block/nvme0n1/queue/scheduler"], "none");
    assert!(before.keys().all(|it| after.contains_key(it)));
    assert!(!machine.has(RECORD));
}

/// tuned saves the scheduler that it finds, and puts that back when it stops: ours.
#[test]
fn off_gives_a_disk_back_that_its_taker_has_given_back() {
    for switches_on_again in [false, true] {
        let machine = Machine::with_systemd();
        let before = machine.state();
        assert_eq!(machine.frontrow(&["on"]).code, 0);
        for _ in ["taken back", "left"] {
            machine.take("mmcblk0", "bfq");
            assert_eq!(machine.frontrow(&["sched", "keep", "mmcblk0"]).code, 0);
        }
        assert!(!machine.is_on("mmcblk0"));
        machine.write("sys/block/mmcblk0/queue/scheduler", "[frontrow] none bfq");
        machine.write("sys/block/mmcblk0/queue/nr_requests", "4");
        if switches_on_again {
            assert_eq!(machine.frontrow(&["on"]).code, 0);
        }
        let said = machine.frontrow(&["off"]);
        assert_eq!(said.code, 0, "{said:?}");
        let given = "/sys/block/mmcblk0/queue/scheduler: frontrow -> mq-deadline";
        assert!(said.stdout.contains(given), "{said:?}");
        assert!(!machine.is_on("mmcblk0"));
        let mut after = machine.state();
        // The kernel gives tags anew with a scheduler; these files do not.
        let tags = "sys/block/mmcblk0/queue/nr_requests";
        after.insert(tags.to_owned(), before[tags].clone());
        assert_same(&after, &before, "before");
    }
}

#[test]
fn only_root_switches_it() {
    let machine = Machine::with_systemd();
    let program = machine.path("frontrow");
    // Another process writes it: see `Machine::script`.
    let mut copy = Command::new("cp");
    copy.args([Path::new(env!("CARGO_BIN_EXE_frontrow")), &program]);
    assert_eq!(outcome(copy).code, 0);
    for directory in ["", "bin"] {
        let readable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(machine.path(directory), readable).unwrap();
    }
    let users = |word: &str| {
        let mut command = Command::new(&program);
        command.args([word, "--sysroot"]).arg(machine.root.path());
        command.env("PATH", machine.path("bin"));
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY);
        }
        outcome(command)
    };
    // What root made is not this user's to write, whoever runs the test.
    let closed = fs::Permissions::from_mode(0o555);
    fs::set_permissions(machine.path("var/lib"), closed).unwrap();
    let before = machine.state();
    let refused = users("on");
    assert_eq!(refused.code, 4, "{refused:?}");
    let needs_root =
        "frontrow: switching Frontrow on or off needs root: run the command with sudo\n";
    assert_eq!(refused.stderr, needs_root);
    assert_same(&machine.state(), &before, "refused");
    assert_eq!(users("status").code, 0);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    let on = machine.state();
    assert_eq!(users("off").code, 4);
    assert_same(&machine.state(), &on, "refused");
}

/// A unit ends with its disk, and is not to fail for that.
#[test]
fn a_disk_that_was_taken_out_has_nothing_to_undo() {
    let machine = Machine::with_systemd();
    let gone = ["sched", "disable", "--if-there", "sdz"];
    assert_eq!(machine.frontrow(&gone).code, 0);
    assert_eq!(machine.frontrow(&["sched", "disable", "sdz"]).code, 2);
    let unit = include_str!("../../../packaging/frontrow-sched@.service");
    assert!(unit.contains("ExecStop=@BINDIR@/frontrow sched disable --if-there %I\n"));
}

/// A path unit comes before basic.target by itself, and a service after it. In a circle systemd leaves one
/// of them out, as the disk's at a shutdown, and the next boot would be taken for one after a crash.
#[test]
fn what_comes_after_a_service_has_no_order_of_its_own() {
    let unit = include_str!("../../../packaging/frontrow-watch@.path");
    let has = |line: &str| unit.lines().any(|it| it == line);
    assert!(has("After=frontrow-sched@%i.service") && has("DefaultDependencies=no"));
    assert!(has("Conflicts=shutdown.target") && has("Before=shutdown.target"));
}

#[test]
fn status_tells_of_the_last_hour_and_who_is_in_front() {
    let machine = Machine::with_systemd();
    let words = machine.frontrow(&["status"]).stdout;
    assert_eq!(
        words,
        "Frontrow is off: `sudo frontrow on` switches it on.\n\
         mmcblk0: mq-deadline\nnvme0n1: none\n\
         Foreground: unknown, as frontrowd does not run\n\
         Left out: dm-0: it passes its requests on to mmcblk0p2\n"
    );
    assert_eq!(machine.frontrow(&["on"]).code, 0);
    let stats = |waits: u64, boosted: u64| {
        let text = format!("data_waits {waits}\ndata_boosted {boosted}\ndata_wait_ns 5");
        machine.write("sys/block/mmcblk0/queue/iosched/stats", &text);
    };
    let count = |at_s: u64| {
        machine.write("proc/uptime", &format!("{at_s}.00 1.00"));
        assert_eq!(machine.frontrow(&["sched", "count"]).code, 0);
    };
    stats(100, 50);
    count(1000);
    stats(110, 57);
    count(3000);
    stats(140, 77);
    machine.write("proc/uptime", "4700.00 1.00");
    let status = machine.json(&["status"]);
    crate::schema::check("status", &status);
    let hour = &status["disks"][0]["hour"];
    assert_eq!(hour["seconds"], 3700);
    assert_eq!(
        (&hour["waits"], &hour["shortened"]),
        (&json!(40), &json!(27))
    );
    machine.write("proc/uptime", "7000.00 1.00");
    let words = machine.frontrow(&["status"]).stdout;
    let helped =
        "mmcblk0: frontrow; in the last 66 min 30 waits on background writes, 20 of them shortened";
    assert!(words.contains(helped), "{words}");
    assert_eq!(machine.frontrow(&["off"]).code, 0);
    assert!(!machine.has("run/frontrow/counted.json"));
}
