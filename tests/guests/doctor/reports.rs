//! Workloads made after public reports of machines that stutter. Each has one cause, known by
//! construction, and its page has to name that, who suffers, and who is to blame.

use crate::harness::{CHECKOUT, Left};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A verdict that a page has to have: cause, who waits and because of whom. Empty for any; a begin is
/// enough, and `-` stands for nobody.
type Verdict = (&'static str, &'static str, &'static str);

/// A case: its script in `reports`, and what its first verdict has to be. Where a page has several
/// victims, the next verdicts of the table have to be on it as well.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    verdicts: &'static [Verdict],
    /// Words that the first verdict has in what it saw or in what is to be done.
    words: &'static str,
}

const fn case(name: &'static str, verdicts: &'static [Verdict], words: &'static str) -> Case {
    Case {
        name,
        verdicts,
        words,
    }
}

pub const CASES: [Case; 33] = [
    case("iomax", &[("limit", "", "pods")], "io.max"),
    case("iomaxread", &[("limit", "webapp", "-")], "io.max"),
    case(
        "postgres",
        &[("fsync_behind_writeback", "postgres", "postgres")],
        "",
    ),
    case(
        "rocks",
        &[("fsync_behind_writeback", "validator", "validator")],
        "",
    ),
    case("backup", &[("", "viewer", "backup")], ""),
    case("freeze", &[("frozen", "", "")], "fsfreeze"),
    case("uringidle", &[("idle", "iggy", "-")], ""),
    case(
        "uringsync",
        &[("fsync_behind_writeback", "tigerdb", "importer")],
        "",
    ),
    case("fuselocal", &[("", "player", "copier")], ""),
    case("fuseslow", &[("remote", "player", "sshfs")], ""),
    case("umount", &[("sync_all", "udisksd", "")], "to be written"),
    case("swapmix", &[("device_busy", "game", "tabs")], ""),
    case("failing", &[("slow_device", "photos", "-")], "old"),
    case(
        "lazyinit",
        &[("fsync_behind_writeback", "recorder", "ext4lazyinit")],
        "",
    ),
    case("thinfull", &[("no_answer", "", "")], "pool is full"),
    case(
        "mdcheck",
        &[
            ("fsync_behind_writeback", "pidgin", "md_home's"),
            ("device_busy", "viewer", "md_home's"),
        ],
        "sync_speed_max",
    ),
    case("loop", &[("fsync_behind_writeback", "guestdb", "tar")], ""),
    case("tenants", &[("fsync_behind_writeback", "shop", "npm")], ""),
    case(
        "snapshot",
        &[("fsync_behind_writeback", "ledger", "the snapshot's copying")],
        "snapshot",
    ),
    case("zram", &[("swap", "tabs", "-")], "memory.max"),
    case("xfslock", &[("file_lock", "viewer", "capture")], ""),
    case("leak", &[("", "office", "leaky")], ""),
    case("dsync", &[("fsync_behind_writeback", "etcd", "restic")], ""),
    case("suspended", &[("no_answer", "", "")], "suspended"),
    case("dpkg", &[("fsync_behind_writeback", "firefox", "dpkg")], ""),
    case(
        "mapped",
        &[("fsync_behind_writeback", "eventstore", "scavenge")],
        "",
    ),
    case("faults", &[("device_busy", "influxd", "compact")], ""),
    case("steam", &[("device_busy", "browser", "steam")], ""),
    case(
        "journald",
        &[("fsync_behind_writeback", "journald", "conmon")],
        "",
    ),
    case("pamusb", &[("sync_all", "sudo", "rsync")], ""),
    case(
        "trim",
        &[("fsync_behind_writeback", "editor", "cleaner")],
        "",
    ),
    case("syncthing", &[("device_busy", "spotify", "syncthing")], ""),
    case(
        "vmsync",
        &[("fsync_behind_writeback", "logger", "qemu")],
        "",
    ),
];

/// What a page said.
#[derive(Debug)]
pub struct Told {
    pub case: &'static str,
    pub level: u64,
    pub is_right: bool,
    /// Whether a first verdict that is wrong is said to be sure.
    pub is_wrongly_sure: bool,
    pub verdicts: String,
}

fn scripts() -> PathBuf {
    PathBuf::from(CHECKOUT).join("tests/guests/doctor/reports")
}

/// A lines of shell that makes `/tmp/tool` of `tool.c`, which has what the guest's busybox lacks.
fn with_tool() -> String {
    let directory = tempfile::tempdir().unwrap();
    let tool = directory.path().join("tool");
    let flags = "-O1 -nostdlib -static -fno-builtin -fno-stack-protector -fno-tree-loop-distribute-patterns";
    let mut compiler = Command::new("gcc");
    compiler.args(flags.split(' ')).arg("-o").arg(&tool);
    assert!(
        compiler
            .arg(scripts().join("tool.c"))
            .status()
            .unwrap()
            .success()
    );
    let packed = Command::new("sh")
        .args(["-c", "gzip -9c \"$0\" | base64 -w0"])
        .arg(&tool)
        .output()
        .unwrap();
    let packed = String::from_utf8(packed.stdout).unwrap();
    format!("echo {packed} | base64 -d | gunzip > /tmp/tool; chmod +x /tmp/tool\n")
}

/// Runs a case, and judges the pages at both levels.
pub fn run(name: &str, kernel: &str, seed: u64) -> Vec<Told> {
    let case = CASES.iter().find(|it| it.name == name).unwrap();
    let script = fs::read_to_string(scripts().join(format!("{name}.sh"))).unwrap();
    let options = script
        .lines()
        .find_map(|it| it.strip_prefix("#: "))
        .unwrap();
    let seed = seed.to_string();
    let guest = [
        "--memory",
        "640",
        "--device",
        "emmc:fresh",
        "--limit",
        "300",
    ];
    let of_run = ["--kernel", kernel, "--seed", &seed];
    let options: Vec<&str> = guest
        .into_iter()
        .chain(of_run)
        .chain(options.split_whitespace())
        .collect();
    let tool = match script.contains("#tool") {
        true => with_tool(),
        false => String::new(),
    };
    let left = Left::by(
        &options,
        &format!("{tool}{PRELUDE}TWO=1\n{script}\nexit 0\n"),
    );
    let told = [1, 2].map(|level| {
        let page = left.json(&format!("{name}.{level}"));
        judged(case, level, &page)
    });
    Vec::from(told)
}

fn judged(case: &Case, level: u64, page: &Value) -> Told {
    let verdicts = page["verdicts"].as_array().unwrap();
    let fits = |wanted: &Verdict, said: &Value| {
        let of = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        let is_nobody = |wanted: &str| wanted == "-" && of("culprit").is_empty();
        let begins = |key: &str, wanted: &str| of(key).starts_with(wanted);
        begins("cause", wanted.0)
            && begins("who", wanted.1)
            && (is_nobody(wanted.2) || begins("culprit", wanted.2))
    };
    let first = verdicts.first();
    let is_first = first.is_some_and(|it| case.verdicts.iter().any(|wanted| fits(wanted, it)));
    let is_there = |wanted: &Verdict| verdicts.iter().any(|it| fits(wanted, it));
    let has_words = first.is_some_and(|it| it.to_string().contains(case.words));
    let is_right = is_first && has_words && case.verdicts.iter().all(is_there);
    Told {
        case: case.name,
        level,
        is_right,
        is_wrongly_sure: !is_first && first.is_some_and(|it| it["confidence"] == "sure"),
        verdicts: in_words(verdicts),
    }
}

/// Cause, who waits, because of whom and how sure, of each verdict.
pub(super) fn in_words(verdicts: &[Value]) -> String {
    let words = verdicts.iter().map(|it| {
        let of = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
        let (cause, who, culprit) = (of("cause"), of("who"), of("culprit"));
        format!("{cause} ({who} <- {culprit}; {})", of("confidence"))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Functions of the guest's shell. `as NAME APPLET` and `app NAME OPTION` run busybox and fio under a
/// name of their own; `see` leaves the pages of both levels.
pub(super) const PRELUDE: &str = r#"
as() { ln -sf /bin/busybox /tmp/$1; ( n=$1; a=$2; shift 2; exec -a $a /tmp/$n "$@" ) 2> /dev/null; }
app() { ln -sf /bin/fio /tmp/$1; n=$1; shift; cd /mnt; /tmp/$n --name=$n --invalidate=0 --randseed=7 --time_based --runtime=1000 "$@" > /dev/null 2>&1; }
group() { echo "+io +memory" > /sys/fs/cgroup/cgroup.subtree_control; mkdir -p /sys/fs/cgroup/$1; }
inside() { g=$1; shift; ( sh -c 'echo $PPID' > /sys/fs/cgroup/$g/cgroup.procs; "$@" ); }
ext4() { /bin/mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 "$@"; }
cold() { sync; echo 3 > /proc/sys/vm/drop_caches; }
see() {
    sleep ${SETTLE:-1.5}
    frontrow doctor --seconds ${2:-6} --json > /out/$1.1
    # Not in a mount namespace of its own, which would keep mounted what others unmount.
    mount -t tmpfs none /sys/kernel/btf
    frontrow doctor --seconds ${2:-6} --json > /out/$1.2
    umount /sys/kernel/btf
}
end() {
    for it in /proc/[0-9]*; do
        number=${it#/proc/}
        [ -e $it/exe ] && [ $number -gt $$ ] && kill -9 $number 2> /dev/null
    done
    wait
    cold
}
cd /tmp
"#;
