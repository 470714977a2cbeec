//! `frontrow fg` and its daemon, as programs, on a tree that stands for a system.

use crate::running::{Daemon, GAME, MAIL, NOBODY, PROGRAM, command_of, fg, path, status, until};
use crate::system::System;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

#[test]
fn the_daemon_does_what_it_is_told_and_says_so() {
    let system = System::new();
    let mut daemon = Daemon::start(&system);
    let set = fg(&system, &["set", "7"]);
    assert_eq!(set.code, 0, "{}", set.stderr);
    assert!(set.stdout.contains(&format!("Foreground: {}", path(GAME))));
    assert_eq!(system.list("foreground"), path(GAME));
    let words = fg(&system, &["status"]).stdout;
    for part in ["set by frontrow fg set", "(served first)", "CONFIG_PSI"] {
        assert!(words.contains(part), "{part} is not in {words}");
    }
    let told = status(&system);
    assert_eq!(told["front"][0], path(GAME));
    assert_eq!(told["changes"].as_array().unwrap().len(), 7);
    // There is one at a time.
    let second = fg(&system, &["daemon"]);
    assert_eq!(second.code, 7, "{}", second.stderr);
    assert!(second.stderr.contains("frontrowd runs already"));
    let release = fg(&system, &["release"]);
    assert!(
        release.stdout.contains("memory.high: max"),
        "{}",
        release.stdout
    );
    assert_eq!(system.list("foreground"), "none");
    fg(&system, &["set", &path(MAIL)]);
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.wait(), Some(0));
    assert_eq!(system.list("foreground"), "none");
    assert_eq!(system.app(MAIL, "memory.low"), "0");
    assert_eq!(status(&system)["daemon"], false);
}

#[test]
fn status_shows_visible_apps_with_their_part_of_the_screen() {
    let system = System::new();
    let _daemon = Daemon::start(&system);
    let mail = format!("{}=30", path(MAIL));
    let set = fg(&system, &["set", "7", "--visible", &mail]);
    assert_eq!(set.code, 0, "{}", set.stderr);
    assert_eq!(system.list("visible"), format!("23 {}", path(MAIL)));
    let words = fg(&system, &["status"]).stdout;
    let line = format!("Visible:    {} (30 %)", path(MAIL));
    assert!(words.contains(&line), "{words}");
    assert_eq!(status(&system)["visible"][0]["percent"], 30);
    for wrong in [path(MAIL), format!("{}=0", path(MAIL)), "7=101".to_owned()] {
        let set = fg(&system, &["set", "7", "--visible", &wrong]);
        assert_eq!(set.code, 2, "{}", set.stderr);
        assert!(set.stderr.contains("=30"), "{}", set.stderr);
    }
    // It ends, and the other stays.
    system.remove(MAIL);
    until(|| system.list("visible") == "none");
    assert_eq!(system.list("foreground"), path(GAME));
}

#[test]
fn settings_of_a_killed_daemon_are_shown_and_undone_by_the_next_or_by_release() {
    let system = System::new();
    for next in ["daemon", "release"] {
        let mut daemon = Daemon::start(&system);
        fg(&system, &["set", "7"]);
        daemon.signal(rustix::process::Signal::KILL);
        assert_eq!(daemon.wait(), None);
        assert_eq!(system.list("foreground"), path(GAME));
        assert_eq!(status(&system)["changes"].as_array().unwrap().len(), 7);
        match next {
            "daemon" => drop(Daemon::start(&system)),
            _ => assert_eq!(fg(&system, &["release"]).code, 0),
        }
        assert_eq!(system.list("foreground"), "none");
        assert_eq!(system.app(GAME, "memory.low"), "0");
    }
}

#[test]
fn an_app_that_ends_is_let_go() {
    let system = System::new();
    let _daemon = Daemon::start(&system);
    fg(&system, &["set", "7"]);
    system.remove(GAME);
    until(|| status(&system)["front"].as_array().unwrap().is_empty());
    assert_eq!(system.list("foreground"), "none");
    assert_eq!(system.app(MAIL, "memory.high"), "max");
}

#[test]
fn somebody_elses_value_is_told_and_stays() {
    let system = System::new();
    let mut daemon = Daemon::start(&system);
    fg(&system, &["set", "7"]);
    let high = format!("sys/fs/cgroup{}/memory.high", path(MAIL));
    system.write(&high, "77000704\n");
    let words = fg(&system, &["status"]).stdout;
    let told = format!("Left alone, since another program has set them:\n  /{high}");
    assert!(words.contains(&told), "{words}");
    daemon.signal(rustix::process::Signal::INT);
    assert_eq!(daemon.wait(), Some(0));
    assert_eq!(system.read(&high), "77000704");
}

#[test]
fn an_ordinary_user_may_ask_and_has_a_say_in_no_app_of_roots() {
    // Only root can be somebody else. The rule itself has a test that anybody can run.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let system = System::new();
    fs::set_permissions(system.root(), Permissions::from_mode(0o755)).unwrap();
    // Where the program lies others may not be allowed to look.
    let program = system.root().join("frontrow");
    // A process of its own: none that another test starts meanwhile can hold the file open for writing.
    let mut copy = Command::new("cp");
    assert!(copy.arg(PROGRAM).arg(&program).status().unwrap().success());
    let ask = |arguments: &[&str]| {
        let mut command = command_of(&program, &system, arguments);
        command.uid(NOBODY).output().unwrap()
    };
    let nobody = |arguments: &[&str]| {
        let output = ask(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), stderr)
    };
    let nobody_says = |arguments: &[&str]| {
        let output = ask(arguments);
        let stdout = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), stdout)
    };
    let (code, stderr) = nobody(&["set", "7"]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("needs root"), "{stderr}");
    let _daemon = Daemon::start(&system);
    assert_eq!(nobody(&["status"]), (0, String::new()));
    let (code, stderr) = nobody(&["set", "7"]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("not the one at the screen"), "{stderr}");
    system.write("run/systemd/seats/seat0", &format!("ACTIVE_UID={NOBODY}\n"));
    // No faster than a user is served, or what is asked next would be one request too many.
    let is_told = |words: &str| {
        until(|| {
            thread::sleep(Duration::from_millis(60));
            nobody(&["set", "7"]).1.contains(words)
        });
    };
    is_told("belongs to another user");
    fs::remove_file(system.root().join("run/systemd/seats/seat0")).unwrap();
    is_told("not the one at the screen");
    fg(&system, &["set", "7"]);
    assert_eq!(nobody(&["release"]).0, 4);
    assert_eq!(system.list("foreground"), path(GAME));
    // A user learns that an app of another user is the foreground, but not which.
    let (_, out) = nobody_says(&["status", "--json"]);
    assert!(
        !out.contains("scope") && out.contains("\"others\":true"),
        "{out}"
    );
    // The foreground app is theirs, the visible one is root's.
    let procs = format!("sys/fs/cgroup{}/cgroup.procs", path(GAME));
    std::os::unix::fs::chown(system.root().join(procs), Some(NOBODY), None).unwrap();
    let beside = format!("{}=30", path(MAIL));
    // By ssh, or on another screen.
    let (code, stderr) = nobody(&["set", "7", "--visible", &beside]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("not the one at the screen"), "{stderr}");
    assert_eq!(nobody(&["release"]).0, 4);
    assert_eq!(system.list("foreground"), path(GAME));
    system.write("run/systemd/seats/seat0", &format!("ACTIVE_UID={NOBODY}\n"));
    let (code, stderr) = nobody(&["set", "7", "--visible", &beside]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(status(&system)["visible"], serde_json::json!([]));
}

#[test]
fn refusals_have_a_code_and_a_sentence() {
    let system = System::new();
    let refuses = |arguments: &[&str], code: i32, part: &str| {
        let ended = fg(&system, arguments);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    };
    {
        let _daemon = Daemon::start(&system);
        refuses(&["set", "9"], 2, "neither a process nor a cgroup");
        system.write(
            &format!("sys/fs/cgroup{}/cgroup.events", path(MAIL)),
            "populated 0\n",
        );
        refuses(&["set", &path(MAIL)], 2, "no process is in");
    }
    system.write("sys/fs/cgroup/cgroup.controllers", "cpu io\n");
    refuses(&["daemon"], 3, "cgroup_enable=memory");
    fs::remove_file(system.root().join("sys/fs/cgroup/cgroup.controllers")).unwrap();
    refuses(&["daemon"], 3, "no cgroup v2 hierarchy");
}
