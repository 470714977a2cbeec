//! `frontrow sched` on a machine made of files: exit code, stdout and stderr of each command.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const RELEASE: &str = "6.12.0-test";
const STATS: &str = "meta_waits 1\nmeta_boosted 0\nmeta_in_device 1\nmeta_wait_ns 600000\n\
    data_waits 13\ndata_boosted 9\ndata_pending_matched 2\ndata_in_device 2\n\
    data_wait_ns 209400000\nnow_async_limit 4\n";

/// Not a user of this machine.
const NOBODY: u32 = 65534;

/// A machine whose kernel has the module loaded, with an eMMC, an NVMe disk with four
/// hardware queues, and an encrypted volume on the eMMC.
pub struct Machine {
    pub root: TempDir,
}

/// What a command did.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Machine {
    pub fn new() -> Self {
        let machine = Self {
            root: tempfile::tempdir().unwrap(),
        };
        machine.write("proc/sys/kernel/random/boot_id", "boot-1");
        machine.write("proc/sys/kernel/osrelease", RELEASE);
        machine.write(
            "proc/self/mountinfo",
            "21 1 179:1 / / rw - ext4 /dev/mmcblk0p1 rw\n22 21 0:30 / /tmp rw - tmpfs tmpfs rw",
        );
        fs::create_dir(machine.path("tmp")).unwrap();
        machine.disk("mmcblk0", "[mq-deadline] none frontrow", "4", 1);
        machine.disk("nvme0n1", "[none] mq-deadline frontrow", "1023", 4);
        machine.disk("dm-0", "none", "128", 0);
        machine.disk("loop0", "[none] mq-deadline frontrow", "128", 1);
        machine.write("sys/block/loop0/size", "0");
        fs::create_dir_all(machine.path("sys/block/dm-0/slaves/mmcblk0p2")).unwrap();
        machine
    }

    pub fn disk(&self, name: &str, schedulers: &str, nr_requests: &str, hardware_queues: usize) {
        for (attribute, value) in [
            ("size", "2048"),
            ("diskseq", "1"),
            ("queue/scheduler", schedulers),
            ("queue/rotational", "0"),
            ("queue/nr_requests", nr_requests),
            ("queue/wbt_lat_usec", "2000"),
            ("queue/iosched/boost", "meta data journal discard"),
            ("queue/iosched/stats", STATS),
        ] {
            self.write(&format!("sys/block/{name}/{attribute}"), value);
        }
        for queue in 0..hardware_queues {
            let directory = format!("sys/block/{name}/mq/{queue}");
            fs::create_dir_all(self.path(&directory)).unwrap();
        }
        fs::create_dir_all(self.path("sys/class/block")).unwrap();
        let link = self.path(&format!("sys/class/block/{name}"));
        if !link.exists() {
            symlink(format!("../../block/{name}"), link).unwrap();
        }
    }

    pub fn path(&self, path: &str) -> std::path::PathBuf {
        self.root.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), format!("{text}\n")).unwrap();
    }

    pub fn queue(&self, disk: &str, attribute: &str) -> String {
        let path = self.path(&format!("sys/block/{disk}/queue/{attribute}"));
        fs::read_to_string(path).unwrap().trim().to_owned()
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(["sched", "--sysroot"])
            .arg(self.root.path())
            .args(arguments)
            .env("PATH", self.path("bin"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        outcome(self.command(Path::new(env!("CARGO_BIN_EXE_frontrow")), arguments))
    }

    /// Asserts that `arguments` is refused with `code` and a sentence that has all of `words`.
    fn refuses(&self, arguments: &[&str], code: i32, words: &[&str]) {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, code, "{arguments:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{arguments:?}");
        assert!(outcome.stderr.starts_with("frontrow: "), "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        for word in words {
            assert!(outcome.stderr.contains(word), "{word}: {outcome:?}");
        }
    }

    /// A program of the machine's. Another process writes it, since a test beside this one that forks
    /// just now would have it open for writing, and a program in that state is not run (ETXTBSY).
    pub fn script(&self, name: &str, body: &str) {
        fs::create_dir_all(self.path("bin")).unwrap();
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$2\" && chmod 755 \"$2\"";
        let mut shell = Command::new("sh");
        shell
            .args(["-c", write, "sh", body])
            .arg(self.path("bin").join(name));
        assert_eq!(outcome(shell).code, 0);
    }

    /// A modprobe that fails in the kernel's words.
    fn modprobe_says(&self, words: &str) {
        self.script("modprobe", &format!("echo '{words}' >&2; exit 1"));
        self.write(
            &format!("lib/modules/{RELEASE}/modules.dep"),
            "updates/dkms/frontrow_iosched.ko.xz:",
        );
        self.write("sys/block/mmcblk0/queue/scheduler", "[mq-deadline] none");
    }
}

pub fn outcome(mut command: Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn done(stdout: &str) -> Outcome {
    Outcome {
        code: 0,
        stdout: stdout.to_owned(),
        stderr: String::new(),
    }
}

#[test]
fn enable_says_what_it_changed_and_disable_undoes_it() {
    let machine = Machine::new();
    assert_eq!(
        machine.run(&["enable", "mmcblk0", "--boost", "data,meta"]),
        done(
            "mmcblk0 now uses frontrow; changed:\n  \
             /sys/block/mmcblk0/queue/nr_requests: 4 -> 512 (a request that waits for a tag cannot be scheduled)\n  \
             /sys/block/mmcblk0/queue/wbt_lat_usec: 2000 -> 0 (writeback throttling holds writes back where they cannot be promoted)\n  \
             /sys/block/mmcblk0/queue/scheduler: mq-deadline -> frontrow (serves first what somebody waits for)\n  \
             /sys/block/mmcblk0/queue/iosched/boost: meta data journal discard -> meta,data (which waits promote a write)\n\
             To undo: frontrow sched disable mmcblk0\n"
        )
    );
    assert_eq!(machine.queue("mmcblk0", "scheduler"), "frontrow");
    assert_eq!(machine.queue("mmcblk0", "nr_requests"), "512");

    assert_eq!(
        machine.run(&["enable", "mmcblk0", "--boost", "data,meta"]),
        done("mmcblk0 uses frontrow already\n")
    );
    assert_eq!(
        machine.run(&["disable", "mmcblk0"]),
        done(
            "mmcblk0 is as it was before:\n  \
             /sys/block/mmcblk0/queue/nr_requests: 512 -> 4\n  \
             /sys/block/mmcblk0/queue/wbt_lat_usec: 0 -> 2000\n  \
             /sys/block/mmcblk0/queue/scheduler: frontrow -> mq-deadline\n  \
             /sys/block/mmcblk0/queue/iosched/boost: meta,data -> meta data journal discard\n"
        )
    );
    assert_eq!(
        machine.run(&["disable", "mmcblk0"]),
        done("mmcblk0 does not use frontrow: nothing to restore\n")
    );
}

#[test]
fn a_disk_with_many_queues_keeps_its_many_tags() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["enable", "nvme0n1"]).code, 0);
    assert_eq!(machine.queue("nvme0n1", "scheduler"), "frontrow");
    assert_eq!(machine.queue("nvme0n1", "nr_requests"), "1023");
}

#[test]
fn the_tags_a_user_had_chosen_come_back() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["enable", "mmcblk0"]).code, 0);
    // Restoring the scheduler makes the kernel choose anew, which these files cannot.
    machine.write("sys/block/mmcblk0/queue/wbt_lat_usec", "75000");
    assert_eq!(machine.run(&["disable", "mmcblk0"]).code, 0);
    assert_eq!(machine.queue("mmcblk0", "nr_requests"), "4");
    assert_eq!(machine.queue("mmcblk0", "wbt_lat_usec"), "2000");
}

/// A dmsetup that tells of the volume as cryptsetup made it, with these words at the end.
fn dmsetup_says(machine: &Machine, words: &str) {
    let table = format!("0 4096 crypt aes-xts-plain64 :64:logon:key 0 179:2 32768{words}");
    machine.script(
        "dmsetup",
        &format!("[ \"$*\" = 'table home' ] && echo '{table}'"),
    );
}

#[test]
fn enabling_below_an_encrypted_volume_tells_of_its_one_thread() {
    let machine = Machine::new();
    machine.write("sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-0-home");
    machine.write("sys/block/dm-0/dm/name", "home");
    machine.write("sys/block/mmcblk0/mmcblk0p2/partition", "2");
    let link = machine.path("sys/class/block/mmcblk0p2");
    symlink("../../block/mmcblk0/mmcblk0p2", link).unwrap();

    dmsetup_says(&machine, "");
    let told = machine.run(&["enable", "mmcblk0"]).stdout;
    let refresh = "`cryptsetup refresh --perf-no_write_workqueue home`";
    assert!(told.contains(refresh), "{told}");
    let told = machine.run(&["enable", "mmcblk0", "--json"]).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    crate::schema::check("sched enable", &told);
    assert_eq!(told["write_threads"], serde_json::json!(["home"]));

    dmsetup_says(&machine, " 2 allow_discards no_write_workqueue");
    let told = machine.run(&["enable", "mmcblk0"]).stdout;
    assert_eq!(told, "mmcblk0 uses frontrow already\n");
}

#[test]
fn a_disk_does_not_get_what_its_predecessor_held() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["enable", "mmcblk0"]).code, 0);
    // The card is taken out, another one is put in.
    machine.disk("mmcblk0", "[none] mq-deadline frontrow", "64", 1);
    machine.write("sys/block/mmcblk0/diskseq", "2");
    assert_eq!(
        machine.run(&["disable", "mmcblk0"]),
        done("mmcblk0 does not use frontrow: nothing to restore\n")
    );
    assert_eq!(machine.queue("mmcblk0", "nr_requests"), "64");
}

#[test]
fn a_failure_changes_nothing() {
    let machine = Machine::new();
    let boost = machine.path("sys/block/mmcblk0/queue/iosched/boost");
    fs::remove_file(boost).unwrap();
    machine.refuses(&["enable", "mmcblk0"], 1, &["iosched/boost"]);
    assert_eq!(machine.queue("mmcblk0", "scheduler"), "mq-deadline");
    assert_eq!(machine.queue("mmcblk0", "nr_requests"), "4");
    assert_eq!(machine.queue("mmcblk0", "wbt_lat_usec"), "2000");
}

#[test]
fn status_shows_the_counters_in_words() {
    let machine = Machine::new();
    assert_eq!(
        machine.run(&["status"]),
        done("mmcblk0: mq-deadline\nnvme0n1: none\n")
    );
    machine.write("sys/block/mmcblk0/queue/scheduler", "none [frontrow]");
    assert_eq!(
        machine.run(&["status", "mmcblk0"]),
        done(
            "mmcblk0: frontrow; since the scheduler was set 14 waits on background writes, \
             11 promoted, 3 already in the device; they cost 210 ms\n  \
             for metadata blocks: 1 wait, 0 promoted, 1 already in the device; it cost 600 µs\n  \
             for file pages: 13 waits, 11 promoted, 2 already in the device; they cost 209 ms\n"
        )
    );
    assert_eq!(
        machine.run(&["status", "mmcblk0", "--watch", "0"]),
        done("mmcblk0: frontrow; in the last 0 seconds nobody waited on a background write\n")
    );
}

#[test]
fn programs_read_json() {
    let machine = Machine::new();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let outcome = machine.run(arguments);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        serde_json::from_str(&outcome.stdout).unwrap()
    };
    let enabled = json(&["enable", "mmcblk0", "--json"]);
    crate::schema::check("sched enable", &enabled);
    assert_eq!(enabled["device"], "mmcblk0");
    let scheduler = &enabled["changes"][2];
    assert_eq!(scheduler["path"], "/sys/block/mmcblk0/queue/scheduler");
    assert_eq!(scheduler["before"], "mq-deadline");
    assert_eq!(scheduler["value"], "frontrow");

    let states = json(&["status", "--json"]);
    crate::schema::check("sched status", &states);
    assert_eq!(states[0]["scheduler"], "frontrow");
    assert_eq!(states[0]["boost"], "all");
    assert_eq!(states[0]["counters"]["data_waits"], 13);
    assert_eq!(states[0]["changes"].as_array().unwrap().len(), 3);
    assert_eq!(states[1]["counters"], serde_json::Value::Null);

    let disabled = json(&["disable", "mmcblk0", "--json"]);
    crate::schema::check("sched disable", &disabled);
    assert_eq!(disabled["changes"][2]["value"], "mq-deadline");
}

#[test]
fn refusals_have_a_code_and_a_sentence() {
    let machine = Machine::new();
    for (arguments, code, words) in [
        (
            &["enable", "sdz"][..],
            2,
            &["sdz is neither a block device"][..],
        ),
        (&["enable", "/tmp"], 3, &["/tmp is on a tmpfs file system"]),
        (
            &["enable", "dm-0"],
            3,
            &[
                "dm-0 has no I/O scheduler",
                "use what is below it, mmcblk0p2",
            ],
        ),
        (&["status", "dm-0"], 3, &["dm-0 has no I/O scheduler"]),
        (
            &["build", "--out", "out"],
            5,
            &[
                "headers of kernel 6.12.0-test are missing",
                "linux-headers-6.12.0-test",
            ],
        ),
        (
            &["build", "--kernel", "5.10.0-1", "--out", "out"],
            5,
            &["5.10.0-1"],
        ),
        (&["abi"], 3, &["6.12.0-test has no BTF"]),
    ] {
        machine.refuses(arguments, code, words);
    }
    let outcome = machine.run(&["enable", "mmcblk0", "--boost", "colour"]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome
            .stderr
            .contains("nothing to boost called \"colour\""),
        "{outcome:?}"
    );
}

#[test]
fn disable_without_a_disk_undoes_all_of_them_and_touches_no_other() {
    let machine = Machine::new();
    let nothing = "no disk of this machine was put under frontrow: nothing to restore\n";
    assert_eq!(machine.run(&["disable"]), done(nothing));
    for disk in ["mmcblk0", "nvme0n1"] {
        assert_eq!(machine.run(&["enable", disk]).code, 0);
    }
    let said = machine.run(&["disable"]);
    assert_eq!(said.code, 0, "{said:?}");
    for (disk, before) in [("mmcblk0", "mq-deadline"), ("nvme0n1", "none")] {
        assert_eq!(machine.queue(disk, "scheduler"), before);
        let line = format!("{disk} is as it was before");
        assert!(said.stdout.contains(&line), "{said:?}");
    }
    assert_eq!(machine.run(&["disable"]), done(nothing));
}

/// Runs `make` in the checkout.
fn make(arguments: &[&str]) -> Outcome {
    let mut command = Command::new("make");
    command
        .args(["--no-print-directory", "PREFIX=/usr/local"])
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    outcome(command)
}

#[test]
fn uninstall_puts_disks_back_before_it_takes_the_program_away() {
    let steps = make(&["-n", "uninstall"]);
    assert_eq!(steps.code, 0, "{steps:?}");
    let at = |what: &str| {
        steps
            .stdout
            .find(what)
            .unwrap_or_else(|| panic!("{what}: {steps:?}"))
    };
    let order = [
        "systemctl disable --now",
        "bin/frontrow sched disable",
        "modprobe -r frontrow_iosched",
        "rm -f /usr/local/bin/frontrow",
    ];
    assert!(
        order.windows(2).all(|pair| at(pair[0]) < at(pair[1])),
        "{steps:?}"
    );
    let staged = make(&["-n", "uninstall", "DESTDIR=/nowhere"]);
    assert!(!staged.stdout.contains("sched disable"), "{staged:?}");
}

#[test]
fn install_without_headers_stops_before_it_writes_anything() {
    let refused = make(&["need-headers", "KERNEL=0.0-none"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("linux-headers-0.0-none"),
        "{refused:?}"
    );
    let steps = make(&["-n", "install", "BINARY=frontrow", "KERNEL=0.0-none"]);
    let at = |what: &str| {
        steps
            .stdout
            .find(what)
            .unwrap_or_else(|| panic!("{what}: {steps:?}"))
    };
    assert!(
        at("/lib/modules/0.0-none/build") < at("install -D"),
        "{steps:?}"
    );
}

#[test]
fn what_is_installed_is_complete_and_uninstall_leaves_none_of_it() {
    let root = tempfile::tempdir().unwrap();
    let destination = format!("DESTDIR={}", root.path().display());
    let binary = concat!("BINARY=", env!("CARGO_BIN_EXE_frontrow"));
    let installed = make(&["install-files", binary, &destination]);
    assert_eq!(installed.code, 0, "{installed:?}");
    let share = root.path().join("usr/local/share");
    let of_bash = share.join("bash-completion/completions/frontrow");
    for (file, word) in [
        (of_bash.clone(), "complete -F _frontrow"),
        (
            share.join("zsh/site-functions/_frontrow"),
            "#compdef frontrow",
        ),
        (
            share.join("fish/vendor_completions.d/frontrow.fish"),
            "complete -c frontrow",
        ),
        (share.join("man/man1/frontrow-completions.1"), "completions"),
    ] {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(word), "{}", file.display());
    }
    let checked = Command::new("bash").arg("-n").arg(&of_bash).status();
    assert!(checked.unwrap().success());
    let lab = make(&["install-lab", binary, &destination]);
    assert_eq!(lab.code, 0, "{lab:?}");
    let page = share.join("man/man1/frontrow-lab-run.1");
    assert!(fs::read_to_string(page).unwrap().contains("experiment"));
    let removed = make(&["uninstall", &destination]);
    assert_eq!(removed.code, 0, "{removed:?}");
    let left = files_below(root.path());
    assert!(left.is_empty(), "{left:?}");
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(directory).unwrap().flat_map(|entry| {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => files_below(&entry.path()),
            false => vec![entry.path()],
        }
    });
    below.collect()
}

#[test]
fn a_missing_module_says_how_to_get_it() {
    let machine = Machine::new();
    machine.write("sys/block/mmcblk0/queue/scheduler", "[mq-deadline] none");
    machine.refuses(
        &["enable", "mmcblk0"],
        5,
        &[
            "not installed for kernel 6.12.0-test",
            "linux-headers-6.12.0-test",
            "make install",
        ],
    );
    machine.refuses(&["enable", "mmcblk0", "--module", "no.ko"], 2, &["no.ko"]);
    assert!(!machine.path("run/frontrow/sched-mmcblk0-1.jsonl").exists());
}

#[test]
fn a_kernel_that_refuses_the_module_is_explained() {
    let machine = Machine::new();
    for (said, lockdown, code, words) in [
        (
            "modprobe: ERROR: could not insert: Key was rejected by service",
            "[none] integrity",
            4,
            "module.sig_enforce=1",
        ),
        (
            "modprobe: ERROR: could not insert: Operation not permitted",
            "none [integrity] confidentiality",
            4,
            "mokutil --import /var/lib/dkms/mok.pub",
        ),
        (
            "modprobe: ERROR: could not insert: Operation not permitted",
            "[none] integrity",
            4,
            "sudo",
        ),
        (
            "modprobe: ERROR: could not insert: Exec format error",
            "[none] integrity",
            5,
            "built for another kernel",
        ),
        (
            "modprobe: ERROR: could not insert: Cannot allocate memory",
            "[none] integrity",
            1,
            "Cannot allocate memory",
        ),
    ] {
        machine.modprobe_says(said);
        machine.write("sys/kernel/security/lockdown", lockdown);
        machine.refuses(&["enable", "mmcblk0"], code, &[words]);
    }
}

#[test]
fn a_boot_after_one_that_broke_off_goes_without_until_somebody_asks_for_it() {
    let machine = Machine::new();
    machine.write("proc/cmdline", "quiet");
    let at_boot = ["enable", "--at-boot", "mmcblk0"];
    assert_eq!(machine.run(&at_boot).code, 0);
    // It never comes to disabling: the next boot finds the disk as the kernel gives it.
    let boot_again = |id: &str| {
        machine.write("proc/sys/kernel/random/boot_id", id);
        let schedulers = "[mq-deadline] none frontrow";
        machine.write("sys/block/mmcblk0/queue/scheduler", schedulers);
    };
    boot_again("boot-2");
    machine.refuses(&at_boot, 7, &["broke off", "journalctl -b -1"]);
    let status = machine.run(&["status", "mmcblk0"]);
    assert!(status.stdout.contains("broke off"), "{status:?}");
    assert_eq!(machine.run(&["enable", "mmcblk0"]).code, 0);
    boot_again("boot-3");
    assert_eq!(machine.run(&at_boot).code, 0);
    assert_eq!(machine.run(&["settled"]), done(""));
    boot_again("boot-4");
    assert_eq!(machine.run(&at_boot).code, 0);
    machine.write("proc/cmdline", "quiet frontrow.disable=1");
    machine.refuses(&at_boot, 7, &["frontrow.disable", "boot without it"]);
}

#[test]
fn a_scheduler_that_somebody_else_set_is_left_alone() {
    let machine = Machine::new();
    machine.write("sys/block/mmcblk0/queue/scheduler", "none [frontrow]");
    machine.refuses(
        &["disable", "mmcblk0"],
        7,
        &["what was there before is not known"],
    );
}

#[test]
fn a_kernel_that_is_not_known_stops_the_build() {
    let machine = Machine::new();
    machine.write(&format!("lib/modules/{RELEASE}/build/Makefile"), "");
    machine.write("sys/kernel/btf/vmlinux", "not BTF");
    machine.refuses(
        &["build", "--out", "out"],
        3,
        &["sys/kernel/btf/vmlinux", "holds no BTF"],
    );
}

#[test]
fn an_ordinary_user_is_told_to_become_root() {
    let machine = Machine::new();
    let program = machine.path("frontrow");
    // Not fs::copy: a test beside this one that forks just now would have the copy open for
    // writing for a moment, and a program in that state is not run (ETXTBSY).
    let mut copy = Command::new("cp");
    copy.args([Path::new(env!("CARGO_BIN_EXE_frontrow")), &program]);
    assert_eq!(outcome(copy).code, 0);
    let readable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(machine.root.path(), readable).unwrap();
    fs::create_dir(machine.path("run")).unwrap();
    fs::set_permissions(machine.path("run"), fs::Permissions::from_mode(0o555)).unwrap();

    let mut command = machine.command(&program, &["enable", "mmcblk0"]);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY);
    }
    let refused = outcome(command);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_eq!(
        refused.stderr,
        "frontrow: changing mmcblk0 needs root: run the command with sudo\n"
    );
    assert_eq!(
        machine.queue("mmcblk0", "scheduler"),
        "[mq-deadline] none frontrow"
    );
}
