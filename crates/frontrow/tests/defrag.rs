//! `frontrow defrag` where it can do nothing: one sentence, a code of its own, nothing changed.
//! Moving files is for guests (tests/guests/torture.rs).

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn defrag(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .arg("defrag")
        .args(arguments)
        .output()
        .unwrap()
}

fn refuses(arguments: &[&str], code: i32, part: &str) {
    let output = defrag(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(part), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    refuses(&["--check", "/nonexistent"], 2, "cannot open /nonexistent");
    refuses(&["--check", link.to_str().unwrap()], 2, "cannot open");
    refuses(&["/tmp", "--factor", "0.5"], 2, "give a number from 1");
    refuses(&["/tmp", "--check", "--all"], 2, "cannot be used with");
    refuses(&["/tmp", "--rate", "0"], 2, "0 is not in");
}

#[test]
fn what_is_no_recording_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    refuses(
        &[path, "--recording", "/etc/passwd"],
        2,
        "/etc/passwd is not a recording",
    );
    refuses(
        &[path, "--recording", "/nonexistent"],
        2,
        "cannot access /nonexistent",
    );
    refuses(
        &[path, "--recording", "x", "--all"],
        2,
        "cannot be used with",
    );
}

#[test]
fn a_file_system_that_does_not_tell_is_named() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("file");
    fs::write(&path, [1; 9000]).unwrap();
    refuses(
        &["--check", path.to_str().unwrap()],
        3,
        "on a tmpfs file system",
    );
    assert_eq!(fs::read(&path).unwrap(), [1; 9000]);
}

#[test]
fn a_device_that_does_nothing_physical_is_named() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().to_str().unwrap();
    refuses(
        &[path, "--mode", "physical"],
        3,
        "neither spreads files over its dies (simflash does) nor offers UFS Host Initiated Defrag",
    );
}

/// A tree as the kernel's, in which somebody plays a UFS device that finds itself in disorder.
struct Ufs {
    root: tempfile::TempDir,
    over: AtomicBool,
}

impl Ufs {
    fn new() -> Ufs {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("sys/devices/1d84000.ufs/host0/block/sda");
        fs::create_dir_all(disk.join("queue")).unwrap();
        for directory in ["sys/class/block", "dev", "proc/self"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        std::os::unix::fs::symlink(&disk, root.path().join("sys/class/block/sda")).unwrap();
        let ufs = Ufs {
            root,
            over: AtomicBool::new(false),
        };
        fs::create_dir(ufs.hid()).unwrap();
        for (attribute, text) in [
            ("state", "idle"),
            ("fragmented_size", "4294967295"),
            ("defrag_size", "4294967295"),
            ("progress_ratio", "0"),
            ("analysis_trigger", ""),
            ("defrag_trigger", ""),
        ] {
            ufs.set(attribute, text);
        }
        ufs
    }

    fn hid(&self) -> PathBuf {
        self.root.path().join("sys/devices/1d84000.ufs/hid")
    }

    fn set(&self, attribute: &str, text: &str) {
        let beside = self.root.path().join("beside");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, self.hid().join(attribute)).unwrap();
    }

    fn get(&self, attribute: &str) -> String {
        fs::read_to_string(self.hid().join(attribute)).unwrap()
    }

    fn when(&self, attribute: &str) -> bool {
        while !self.over.load(Ordering::Relaxed) {
            if self.get(attribute) == "enable" {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Does as it is told, and ends as `last` says.
    fn play(&self, last: &str) {
        if self.when("analysis_trigger") {
            self.set("fragmented_size", "25600");
            self.set("state", "defrag_required");
        }
        if self.when("defrag_trigger") {
            self.set("progress_ratio", "50");
            self.set("state", last);
        }
    }

    fn defrag(&self, last: &str, arguments: &[&str]) -> Output {
        let root = self.root.path().to_str().unwrap();
        let physical = ["sda", "--mode", "physical", "--sysroot", root];
        thread::scope(|scope| {
            scope.spawn(|| self.play(last));
            let output = defrag(&[physical.as_slice(), arguments].concat());
            self.over.store(true, Ordering::Relaxed);
            output
        })
    }
}

#[test]
fn a_ufs_device_is_told_to_defragment_itself_and_then_left_alone() {
    let ufs = Ufs::new();
    let output = ufs.defrag("defrag_completed", &["--json", "--limit", "50"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schema::check("defrag", &report);
    assert_eq!(report["device"], "sda");
    assert_eq!(report["fragmented_bytes"], 25_600 * 4096);
    assert_eq!(report["done"], true);
    assert_eq!(ufs.get("defrag_trigger"), "disable");
    assert_eq!(ufs.get("defrag_size"), "4294967295");
}

#[test]
fn a_check_of_a_ufs_device_says_how_fragmented_it_is() {
    let ufs = Ufs::new();
    let output = ufs.defrag("defrag_completed", &["--check"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("105 MB of it are fragmented"), "{text}");
    assert!(
        text.contains("frontrow defrag sda --mode physical"),
        "{text}"
    );
    assert_eq!(ufs.get("state"), "defrag_required");
}

#[test]
fn a_ufs_device_that_stops_or_keeps_its_own_rate_says_so() {
    let ufs = Ufs::new();
    let output = ufs.defrag("idle", &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("stopped before it was done"), "{said}");
    let output = Ufs::new().defrag("idle", &["--rate", "5"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn interrupted_a_ufs_device_is_switched_off() {
    let ufs = Ufs::new();
    let root = ufs.root.path().to_str().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["defrag", "sda", "--mode", "physical", "--sysroot", root])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It analyses for ever.
    while ufs.get("analysis_trigger") != "enable" {
        thread::sleep(Duration::from_millis(1));
    }
    ufs.set("state", "analysis_in_progress");
    // SAFETY: the process is a child that was not waited for yet.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(ufs.get("defrag_trigger"), "disable");
}

#[test]
fn an_empty_directory_is_not_fragmented() {
    let directory = tempfile::tempdir().unwrap();
    let output = defrag(&[directory.path().to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schema::check("defrag", &report);
    assert_eq!(report["all"]["files"], 0);
    assert_eq!(report["repair"]["moved_bytes"], 0);
    let output = defrag(&["--check", directory.path().to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Nothing is fragmented."), "{text}");
}

/// The kernel gives such data their place only when it writes them.
#[test]
fn a_file_just_written_is_looked_at_whole() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("file");
    fs::write(&path, vec![1; 3 << 20]).unwrap();
    let output = defrag(&["--check", "--json", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    // A file system without FIEMAP says so.
    if output.status.code() == Some(3) {
        return;
    }
    assert!(output.status.success(), "{said}");
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    let whole = checked["all"]["bytes"].as_u64();
    assert_eq!(whole, Some(3 << 20), "{checked}");
}

#[test]
fn a_check_changes_nothing() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path: &Path = &directory.path().join("file");
    fs::write(path, [1; 9000]).unwrap();
    let before = fs::metadata(path).unwrap().modified().unwrap();
    let output = defrag(&["--check", directory.path().to_str().unwrap()]);
    // A file system without FIEMAP says so.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    assert_eq!(fs::metadata(path).unwrap().modified().unwrap(), before);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
