//! What a compromised frontrowd could do is what its unit leaves it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

const UNIT: &str = include_str!("../../../packaging/frontrowd.service");

/// Ten times the exposure that `systemd-analyze security` tells. It knows nothing of an empty root, and
/// counts 0.3 for file systems that the daemon does not see.
const MOST: &str = "--threshold=10";

/// Its output, and whether it is content with the unit.
fn analyze(unit: &str) -> (bool, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frontrowd.service");
    fs::write(&path, unit.replace("@BINDIR@", "/usr/bin")).unwrap();
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", MOST])
        .arg(&path)
        .output()
        .expect("this test needs systemd-analyze (Debian: apt-get install systemd)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("Overall exposure level"),
        "this test needs systemd 250 or later, which analyzes units offline: {said}"
    );
    (output.status.success(), text)
}

#[test]
fn a_compromised_daemon_is_exposed_to_little() {
    let (is_good, text) = analyze(UNIT);
    assert!(is_good, "{text}");
    // And the measure measures: as root, with /proc/sys to write, it is not content.
    let as_root = UNIT.replace("User=frontrow\n", "");
    assert_ne!(as_root, UNIT);
    assert!(!analyze(&as_root).0);
}

#[test]
fn what_one_user_can_have_it_do_is_bounded_for_all_others() {
    let lines: Vec<&str> = UNIT.lines().collect();
    for bound in ["CPUQuota=50%", "MemoryMax=64M"] {
        assert!(
            lines.contains(&bound),
            "docs/use/security.md tells of {bound}"
        );
    }
}

/// What the daemon can reach, apart from what is below /proc, /sys and /dev: as
/// docs/use/security.md has it.
const IN_SIGHT: [&str; 8] = [
    "BINDIR/frontrow",
    "BINDIR/frontrowd",
    "/run/dbus/system_bus_socket",
    "/run/frontrowd",
    "/run/systemd/seats/seat0",
    "/run/udev/data",
    "/tmp",
    "/var/tmp",
];

/// Sockets that the sandbox leaves.
const SOCKETS: [&str; 1] = ["/run/dbus/system_bus_socket"];

/// A systemd of its own runs the unit, with this program for the daemon, and with sockets and
/// files in /run that a machine has. It ends with the unit.
const MACHINE: &str = r#"set -e
mount --make-rprivate /
umount -R /sys/fs/cgroup || true
mount -t cgroup2 none /sys/fs/cgroup
mount -t proc proc /proc
mount --bind SCRATCH/run /run
mkdir -p /run/systemd/system
cp SCRATCH/frontrowd.service /run/systemd/system/
exec env container=other SYSTEMD --system --unit=frontrowd.service --log-target=console"#;

const SYSTEMD: &str = "/lib/systemd/systemd";

/// The part of the test that runs in the daemon's place: prints what it can reach.
#[test]
#[ignore = "runs inside the sandbox"]
fn prints_what_the_sandbox_leaves() {
    println!("\nuid {}", rustix::process::geteuid().as_raw());
    let mut left = vec![PathBuf::from("/")];
    while let Some(directory) = left.pop() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for path in entries.map(|it| it.path()) {
            let Ok(kind) = path.symlink_metadata().map(|it| it.file_type()) else {
                continue;
            };
            println!("path {}", path.display());
            if kind.is_socket() && UnixStream::connect(&path).is_ok() {
                println!("socket {}", path.display());
            }
            let is_kernels = ["/proc", "/dev", "/sys"];
            let enters = !is_kernels.iter().any(|it| path == Path::new(it));
            if kind.is_dir() && enters {
                left.push(path);
            }
        }
    }
    let hidden = [
        "/etc/passwd",
        "/root",
        "/run/docker.sock",
        "/usr/bin/env",
        "/sys/kernel/mm",
    ];
    for path in hidden
        .iter()
        .chain(&["/sys/devices/virtual", "/sys/class/bdi"])
    {
        println!("shows {path} {}", Path::new(path).exists());
    }
    let writes = |path: &str| fs::write(path, "x").is_ok();
    println!("writes run {}", writes("/run/frontrowd/x"));
    println!("writes root {}", writes("/x"));
    println!("writes sysctl {}", writes("/proc/sys/kernel/core_pattern"));
    println!(
        "makes cgroups {}",
        fs::create_dir("/sys/fs/cgroup/made").is_ok()
    );
    println!("reads {}", fs::read_to_string("/proc/vmstat").is_ok());
    println!("end");
}

/// What the unit's sandbox leaves to whoever has taken the daemon over.
fn inventory(unit: &str) -> String {
    // The unit has a /tmp of its own, which would hide the program.
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |path: &str| scratch.path().join(path);
    for directory in ["run/dbus", "run/systemd/seats", "run/udev/data", "bin"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    let sockets = ["run/docker.sock", "run/dbus/system_bus_socket"];
    let _listening = sockets.map(|it| UnixListener::bind(at(it)).unwrap());
    fs::write(at("run/systemd/seats/seat0"), "ACTIVE_UID=1000\n").unwrap();
    let program = at("bin/frontrow");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::os::unix::fs::symlink("frontrow", at("bin/frontrowd")).unwrap();
    let bin = at("bin").display().to_string();
    let unit = unit
        .replace("@BINDIR@", &bin)
        .replace("User=frontrow", "User=65534")
        .replace(
            "[Service]",
            "SuccessAction=exit-force\nFailureAction=exit-force\nDefaultDependencies=no\n[Service]\nType=oneshot",
        )
        .replace("bin/frontrowd\n# After", "bin/frontrowd prints_what_the_sandbox --ignored --nocapture --test-threads=1\n# After")
        .replace("Restart=on-failure\n", "")
        .replace("ExecStopPost=", "#");
    let out = at("out");
    let out = format!(
        "[Service]\nStandardOutput=file:{}\nStandardError=file:{0}",
        out.display()
    );
    fs::write(at("frontrowd.service"), unit.replace("[Service]", &out)).unwrap();
    let script = MACHINE
        .replace("SCRATCH", &scratch.path().display().to_string())
        .replace("SYSTEMD ", &format!("{SYSTEMD} "));
    let namespaces = [
        "--mount", "--pid", "--fork", "--cgroup", "--uts", "--ipc", "--net",
    ];
    let ended = Command::new("timeout")
        .args(["-s", "KILL", "60", "unshare", "--kill-child"])
        .args(namespaces)
        .args(["sh", "-c", &script])
        .output()
        .unwrap();
    let said = fs::read_to_string(at("out")).unwrap_or_default();
    let log = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("\nend\n"), "{said}\n{log}");
    // The directories above the program have nothing else in them.
    let is_above = |line: &&str| {
        let path = line.strip_prefix("path ");
        path.is_some_and(|it| it != bin && Path::new(&bin).starts_with(it))
    };
    let lines = said.lines().filter(|line| !is_above(line));
    let said: String = lines.map(|line| format!("{line}\n")).collect();
    said.replace(&bin, "BINDIR")
}

/// Directories above what is in sight are there, too.
fn leads_to(path: &str, known: &str) -> bool {
    Path::new(known).starts_with(path) || Path::new(path).starts_with(known)
}

#[test]
fn a_daemon_that_was_taken_over_reaches_what_the_page_says_and_nothing_else() {
    // A systemd of one's own takes root.
    if !rustix::process::geteuid().is_root() || !Path::new(SYSTEMD).exists() {
        return;
    }
    let said = inventory(UNIT);
    let told = |what: &str| -> BTreeSet<&str> {
        said.lines()
            .filter_map(|it| it.strip_prefix(what))
            .collect()
    };
    let kernels = ["/proc", "/sys", "/dev", "/run/systemd/incoming"];
    for path in told("path ") {
        let path = path
            .strip_prefix("BINDIR")
            .map_or(path.to_owned(), |it| format!("BINDIR{it}"));
        let mut known = IN_SIGHT.iter().chain(&kernels);
        assert!(known.any(|it| leads_to(&path, it)), "{path}\n{said}");
    }
    assert_eq!(told("socket "), BTreeSet::from(SOCKETS));
    let page = include_str!("../../../docs/use/security.md");
    for path in IN_SIGHT.iter().filter(|it| it.starts_with('/')) {
        assert!(page.contains(path), "docs/use/security.md names {path}");
    }
    for (what, expected) in [
        ("shows ", "/etc/passwd false"),
        ("shows ", "/root false"),
        ("shows ", "/run/docker.sock false"),
        ("shows ", "/usr/bin/env false"),
        ("shows ", "/sys/kernel/mm false"),
        ("shows ", "/sys/devices/virtual true"),
        ("shows ", "/sys/class/bdi true"),
        ("writes ", "run true"),
        ("writes ", "root false"),
        ("writes ", "sysctl false"),
        ("makes ", "cgroups true"),
        ("reads ", "true"),
        ("uid ", "65534"),
    ] {
        assert!(told(what).contains(expected), "{what}{expected}\n{said}");
    }
    // And the measure measures: without the empty root it is all in sight.
    let before = UNIT.replace("TemporaryFileSystem=/:ro,noexec\n", "");
    assert_ne!(before, UNIT);
    assert!(inventory(&before).contains("shows /etc/passwd true"));
}

/// Users have io.prio.class only while the daemon is there, which needs the controller.
#[test]
fn users_get_the_io_controller_with_the_daemon_only() {
    let generator = include_str!("../../../packaging/user-delegate.generator");
    let root = tempfile::tempdir().unwrap();
    let generator = generator.replace(
        "/etc/systemd",
        &root.path().join("etc").display().to_string(),
    );
    let out = root.path().join("out");
    let generate = || {
        let mut sh = Command::new("sh");
        sh.args(["-c", &generator, "generator"]).arg(&out);
        assert!(sh.status().unwrap().success());
        fs::read_to_string(out.join("user@.service.d/50-frontrow.conf")).ok()
    };
    assert_eq!(generate(), None);
    let wants = root.path().join("etc/system/multi-user.target.wants");
    fs::create_dir_all(&wants).unwrap();
    fs::write(wants.join("frontrowd.service"), "").unwrap();
    assert_eq!(
        generate().unwrap(),
        "[Service]\nDelegate=pids memory cpu io\n"
    );
}
