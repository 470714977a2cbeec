//! Commands that read what may be anybody's have given up the rest by then, and their outputs are the same.

use crate::running::{NOBODY, PROGRAM, until};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

const FORMATS: [&str; 5] = ["sqlite", "parquet", "csv", "vcd", "perfetto"];

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../iopro/tests/recordings/6.12.iopro")
}

/// A user with a directory, a copy of the program and a recording in it.
struct User {
    home: TempDir,
    number: Option<u32>,
}

impl User {
    /// This one, and nobody if this is root.
    fn all() -> Vec<User> {
        let mut users = vec![User::new(None)];
        if rustix::process::geteuid().is_root() {
            users.push(User::new(Some(NOBODY)));
        }
        users
    }

    fn new(number: Option<u32>) -> User {
        let home = tempfile::tempdir().unwrap();
        // A process of its own: none that another test starts meanwhile can hold the file open for writing.
        let mut copy = Command::new("cp");
        copy.arg(PROGRAM).arg(home.path().join("frontrow"));
        assert!(copy.status().unwrap().success());
        fs::copy(recording(), home.path().join("frontrow.iopro")).unwrap();
        fs::create_dir(home.path().join("tmp")).unwrap();
        for name in ["", "frontrow.iopro", "tmp"] {
            chown(home.path().join(name), number, number).unwrap();
        }
        User { home, number }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("frontrow"));
        command
            .args((arguments[0] != "top").then_some("iopro"))
            .args(arguments)
            .current_dir(self.home.path())
            .env("TMPDIR", self.path("tmp"))
            .stdin(Stdio::null());
        if let Some(number) = self.number {
            command.uid(number).gid(number);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }

    /// A pipe by the name `pipe`, open for writing.
    fn pipe(&self) -> File {
        let path = self.path("pipe");
        if !path.exists() {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
            chown(&path, self.number, self.number).unwrap();
        }
        // With both ends it waits for nobody.
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.home.path()).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

/// Field of the status of a process's first thread.
fn field(child: &Child, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let value = status
        .lines()
        .find_map(|it| it.strip_prefix(name)?.strip_prefix(":\t"));
    value.map(str::to_owned)
}

/// Whether this kernel filters system calls.
fn has_seccomp() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let has = status.contains("Seccomp:");
    if !has {
        eprintln!("not tried: this kernel has no seccomp");
    }
    has
}

#[test]
fn nothing_is_read_before_the_rest_is_given_up() {
    if !has_seccomp() {
        return;
    }
    let commands: [&[&str]; 4] = [
        &["report", "pipe", "--json"],
        &["report", "pipe", "--html", "page.html"],
        &["export", "pipe", "--to", "sqlite", "-o", "tables"],
        &["top", "--from", "pipe", "--json"],
    ];
    let content = fs::read(recording()).unwrap();
    for user in User::all() {
        let mut pipe = user.pipe();
        for arguments in commands {
            let mut command = user.command(arguments);
            let child = command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // It waits for the first byte, and so stays as it is.
            until(|| field(&child, "Seccomp").as_deref() == Some("2"));
            let is = |name| field(&child, name).unwrap();
            assert_eq!(is("NoNewPrivs"), "1", "{arguments:?}");
            for name in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
                assert_eq!(is(name), "0000000000000000", "{arguments:?}: {name}");
            }
            pipe.write_all(&content).unwrap();
            // It ends with its last writer.
            drop(pipe);
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            pipe = user.pipe();
        }
    }
}

#[test]
fn outputs_are_where_they_were_wanted_and_nothing_is_left_beside() {
    for user in User::all() {
        let before = user.names();
        let elsewhere = tempfile::tempdir().unwrap();
        chown(elsewhere.path(), user.number, user.number).unwrap();
        let elsewhere = elsewhere.path().join("page.html");
        user.run(&["report", "--html", "page.html"]);
        user.run(&["report", "--html", "page.html"]);
        user.run(&["report", "--html", elsewhere.to_str().unwrap()]);
        user.run(&["report", "--json"]);
        let page = fs::read(user.path("page.html")).unwrap();
        assert_eq!(fs::read(&elsewhere).unwrap(), page);
        assert_eq!(elsewhere.metadata().unwrap().mode() & 0o777, 0o600);
        for format in FORMATS {
            user.run(&["export", "--to", format, "-o", format]);
            let made = user.path(format).metadata().unwrap();
            let mode = if made.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(made.mode() & 0o777, mode, "{format}");
        }
        // Beside the recording, by its name.
        user.run(&["export", "--to", "csv"]);
        assert!(user.path("frontrow.csv/segments.csv").is_file());
        let mut after = user.names();
        after.retain(|it| !before.contains(it) && !FORMATS.contains(&it.as_str()));
        assert_eq!(after, ["frontrow.csv", "page.html"]);
        assert_eq!(fs::read_dir(user.path("tmp")).unwrap().count(), 0);
    }
}

#[test]
fn root_writes_into_a_users_directory_and_over_their_file() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not tried: this takes root");
        return;
    }
    let user = User::new(Some(NOBODY));
    let as_root = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command
            .arg("iopro")
            .args(arguments)
            .current_dir(user.home.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    fs::write(user.path("page.html"), "of before").unwrap();
    chown(user.path("page.html"), user.number, user.number).unwrap();
    // As /tmp is: a name of somebody else's is not anybody's to replace.
    for mode in [0o700, 0o1777] {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(user.home.path(), permissions).unwrap();
        as_root(&["report", "--html", "page.html"]);
        as_root(&["export", "--to", "csv", "-o", &format!("csv{mode}")]);
        chown(user.path("page.html"), user.number, user.number).unwrap();
    }
    assert!(
        fs::read_to_string(user.path("page.html"))
            .unwrap()
            .contains("<html")
    );
}
