//! `frontrow snapshot` as a user runs it, on images of file systems.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn frontrow(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .arg("snapshot")
        .args(arguments)
        .output()
        .unwrap()
}

fn tool(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(format!("/usr/sbin/{name}"))
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{name} of e2fsprogs is needed: {error}"));
    assert!(output.status.success(), "{name}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// 64 MB; a file of 3 MB in the gaps that others left.
struct Aged {
    directory: TempDir,
    image: PathBuf,
}

impl Aged {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("aged");
        let aged = Aged { directory, image };
        tool(
            "mke2fs",
            &[
                "-q",
                "-F",
                "-t",
                "ext4",
                "-b",
                "4096",
                aged.text("aged"),
                "16384",
            ],
        );
        for (name, bytes) in [("small", 300_000), ("large", 3_000_000)] {
            fs::write(aged.path(name), vec![b'x'; bytes]).unwrap();
        }
        let mut commands = String::new();
        for number in 0..20 {
            commands += &format!("write {} file{number}\n", aged.text("small"));
        }
        for number in (0..20).step_by(2) {
            commands += &format!("rm file{number}\n");
        }
        commands += &format!("mkdir photos\nwrite {} photos/one\n", aged.text("large"));
        fs::write(aged.path("commands"), commands).unwrap();
        tool(
            "debugfs",
            &["-w", "-f", aged.text("commands"), aged.text("aged")],
        );
        aged
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> &'static str {
        Box::leak(
            self.path(name)
                .to_str()
                .unwrap()
                .to_owned()
                .into_boxed_str(),
        )
    }

    fn snapshot(&self) -> PathBuf {
        let snapshot = self.path("snapshot");
        let output = frontrow(&[Path::new("save"), &self.image, &snapshot]);
        assert!(output.status.success(), "{output:?}");
        snapshot
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Where all files and directories lie.
fn layout(image: &str) -> String {
    let ask = |request| tool("debugfs", &["-R", request, image]);
    let files = ask("ls -l /") + &ask("ls -l /photos") + &ask("ex photos/one");
    files + &ask("stat file1") + &ask("stat photos") + &tool("dumpe2fs", &[image])
}

#[test]
fn what_is_restored_lies_as_what_was_saved_and_has_none_of_its_data() {
    let aged = Aged::new();
    let snapshot = aged.snapshot();
    assert!(snapshot.metadata().unwrap().len() < 100_000);
    let again = aged.path("again");
    let restore = [Path::new("restore"), &snapshot, &again, Path::new("--json")];
    let output = frontrow(&restore);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["filesystem"]["size_bytes"], 64 << 20);
    assert_eq!(layout(aged.text("aged")), layout(aged.text("again")));
    assert!(
        layout(aged.text("again")).contains("one"),
        "the file is there"
    );
    tool("e2fsck", &["-fn", aged.text("again")]);
    assert_eq!(again.metadata().unwrap().len(), 64 << 20);
    assert!(
        again.metadata().unwrap().blocks() * 512 < 2_000_000,
        "a sparse file"
    );
    let bytes = fs::read(&again).unwrap();
    assert!(!bytes.windows(64).any(|it| it == [b'x'; 64]), "no data");
}

/// Device nodes and set-user-id programs are as whoever made the snapshot wanted.
#[test]
fn who_restores_is_told_how_to_mount_it() {
    let aged = Aged::new();
    let output = frontrow(&[Path::new("restore"), &aged.snapshot(), &aged.path("again")]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("nosuid,nodev"), "{said}");
}

#[test]
fn a_snapshot_that_is_damaged_restores_nothing() {
    let aged = Aged::new();
    let whole = fs::read(aged.snapshot()).unwrap();
    let damaged = aged.path("damaged");
    let mut turned = whole.clone();
    *turned.last_mut().unwrap() ^= 1;
    let before = aged.names();
    for (bytes, said) in [
        (&b"hello"[..], "did not write it"),
        (&whole[..whole.len() / 2], "no whole snapshot"),
        (&whole[..whole.len() - 1], "no whole snapshot"),
        (&turned, "no whole snapshot"),
    ] {
        fs::write(&damaged, bytes).unwrap();
        let output = frontrow(&[Path::new("restore"), &damaged, &aged.path("again")]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(said), "{text}");
        fs::remove_file(&damaged).unwrap();
        assert_eq!(aged.names(), before);
    }
}

#[test]
fn a_damaged_file_system_is_refused_with_what_repairs_it() {
    let aged = Aged::new();
    let image = aged.text("aged");
    // The directory lost+found, whose entry in the root stays.
    tool("debugfs", &["-w", "-R", "clri <11>", image]);
    let saved = aged.path("saved");
    let output = frontrow(&[Path::new("save"), &aged.image, &saved]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{text}");
    assert!(text.contains(&format!("`e2fsck -f {image}`")), "{text}");
    assert!(!saved.exists());
}

#[test]
fn nothing_that_is_there_is_overwritten_and_reasons_are_said() {
    let aged = Aged::new();
    let snapshot = aged.snapshot();
    let kept = (fs::read(&snapshot).unwrap(), fs::read(&aged.image).unwrap());
    let no_filesystem = aged.path("small");
    let nowhere = aged.path("nowhere");
    let before = aged.names();
    for (arguments, code, said) in [
        (["save", "aged", "snapshot"], 7, "is there already"),
        (["save", "small", "other"], 3, "holds no ext2, ext3 or ext4"),
        (["save", "nowhere", "other"], 2, "cannot read"),
        (["restore", "snapshot", "aged"], 7, "--overwrite destroys"),
        (["restore", "nowhere", "other"], 2, "cannot read"),
    ] {
        let [verb, from, to] = arguments;
        let output = frontrow(&[Path::new(verb), &aged.path(from), &aged.path(to)]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(said), "{text}");
        assert!(output.stdout.is_empty());
    }
    // A file is not overwritten even so: only a device is.
    let insists = [
        Path::new("restore"),
        &snapshot,
        &aged.image,
        Path::new("--overwrite"),
    ];
    assert_eq!(frontrow(&insists).status.code(), Some(7));
    assert_eq!(
        kept,
        (fs::read(&snapshot).unwrap(), fs::read(&aged.image).unwrap())
    );
    assert!(no_filesystem.exists() && !nowhere.exists());
    assert_eq!(aged.names(), before);
}

/// In place of e2image: it saves what it may do, and tries to write elsewhere.
const TAKEN_OVER: &str = "#!/bin/sh
grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status > \"$3\"
(echo lost > \"$VICTIM\") 2> \"$3.said\" && echo wrote >> \"$3\"
exit 0
";

#[test]
fn what_reads_a_file_system_writes_the_snapshot_and_has_no_capabilities() {
    let aged = Aged::new();
    let [programs, victim] = ["programs", "victim"].map(|it| aged.path(it));
    fs::create_dir(&programs).unwrap();
    fs::write(&victim, "precious").unwrap();
    let program = programs.join("e2image");
    fs::write(&program, TAKEN_OVER).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    let path = std::env::var("PATH").unwrap();
    let saved = aged.path("taken-over");
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["snapshot", "save"])
        .args([&aged.image, &saved])
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("VICTIM", &victim)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let unpacked = Command::new("gzip")
        .arg("-dc")
        .stdin(fs::File::open(saved).unwrap())
        .output();
    let said = String::from_utf8(unpacked.unwrap().stdout).unwrap();
    assert!(said.contains("CapEff:\t0000000000000000\n"), "{said}");
    assert!(said.contains("NoNewPrivs:\t1\nSeccomp:\t2\n"), "{said}");
    match fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default() {
        lsm if lsm.contains("landlock") => assert!(!said.contains("wrote"), "{said}"),
        _ => eprintln!("not told of: whether this kernel has Landlock"),
    }
    if !said.contains("wrote") {
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }
}
