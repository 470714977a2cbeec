//! `frontrow launch` as an app sees it: as if it had been started without. Loading
//! itself is tested in a guest (`frontrow-lab torture launch`).

use launch::Identity;
use launch::profile::{PAGE_BYTES, Pages, Profile, ProfiledFile, Timing};
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn launch(home: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frontrow"));
    command
        .arg("launch")
        .args(arguments)
        .env("XDG_DATA_HOME", home.path());
    command
}

/// What the tests put there is no other user's to change, whatever the umask: Debian 13's lets the
/// user's group write.
fn home() -> TempDir {
    rustix::process::umask(rustix::fs::Mode::from(0o022));
    tempfile::tempdir().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_app_without_a_profile_starts_and_its_exit_code_is_the_programs() {
    let output = launch(&home(), &["sh", "-c", "echo said; exit 7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(stdout(&output), "said\n");
    let said = stderr(&output);
    assert!(said.contains("frontrow launch record -- sh"), "{said}");
    assert_eq!(said.lines().count(), 1);
}

#[test]
fn a_signal_ends_the_app_as_without_frontrow() {
    let output = launch(&home(), &["sh", "-c", "kill -USR1 $$"])
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGUSR1));
}

#[test]
fn an_app_that_is_not_there_is_an_error() {
    let output = launch(&home(), &["/nonexistent/app"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("cannot start /nonexistent/app"));
}

/// What the app finds of what it was started with. The shell reads its own signals: while
/// it starts another program to read them, it blocks them.
const INHERITED: &str = "while read -r name value; do case $name in \
    SigBlk:|SigIgn:) echo $name $value;; esac; done < /proc/$$/status; \
    ulimit -a; env | sort; ls /proc/$$/fd; pwd";

#[test]
fn signals_limits_environment_and_descriptors_are_untouched() {
    let home = home();
    let path = home.path().join("frontrow/launch");
    fs::create_dir_all(&path).unwrap();
    for ignored in [false, true] {
        let run = |mut command: Command| {
            command
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .env("A", "b");
            command.env("XDG_DATA_HOME", home.path());
            if ignored {
                // SAFETY: makes one system call.
                unsafe {
                    command.pre_exec(|| {
                        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
                        Ok(())
                    });
                }
            }
            stdout(&command.output().unwrap())
        };
        // By its path, as the program is: by name it would be started in another way.
        let mut plain = Command::new("/bin/sh");
        plain.args(["-c", INHERITED]);
        let expected = run(plain);
        assert!(expected.contains("A=b"), "{expected}");
        assert_eq!(run(launch(&home, &["sh", "-c", INHERITED])), expected);
    }
}

/// Both ends of a new terminal, which no other test's programs get.
fn terminal() -> (File, File) {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    let mut name = [0; 64];
    // SAFETY: a descriptor that nobody else has, and room for a name that is shorter.
    let ours = unsafe {
        let ours = libc::posix_openpt(flags);
        assert!(ours >= 0 && libc::grantpt(ours) == 0 && libc::unlockpt(ours) == 0);
        assert_eq!(libc::ptsname_r(ours, name.as_mut_ptr(), name.len()), 0);
        File::from_raw_fd(ours)
    };
    // SAFETY: it ends with a zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    let theirs = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open(name.to_str().unwrap());
    (ours, theirs.unwrap())
}

#[test]
fn the_terminal_is_the_apps() {
    let home = home();
    let (mut ours, theirs) = terminal();
    // Its standard streams, its session and the foreground are those of its own process.
    let script =
        "test -t 0 && test -t 1 && set -- $(cat /proc/$$/stat) && echo $(($5 - $$)) $(($8 - $$))";
    let mut command = launch(&home, &["sh", "-c", script]);
    let stream = || Stdio::from(theirs.try_clone().unwrap());
    command
        .stdin(stream())
        .stdout(stream())
        .stderr(Stdio::null());
    let descriptor = theirs.as_raw_fd();
    // SAFETY: makes two system calls.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            libc::ioctl(descriptor, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    assert!(command.status().unwrap().success());
    let mut said = [0; 64];
    let count = ours.read(&mut said).unwrap();
    assert_eq!(String::from_utf8_lossy(&said[..count]).trim(), "0 0");
}

/// A profile with the first page of the file, which was `identity`.
fn profile(path: &Path, identity: Identity) -> Profile {
    let pages = vec![Pages { first: 0, count: 1 }];
    let path = path.to_owned();
    Profile {
        command: "sh".to_owned(),
        recorded_s: 1,
        runs: 2,
        timing: Timing::Before,
        measured: None,
        files: vec![ProfiledFile {
            path,
            identity,
            pages,
            late: Default::default(),
        }],
        metadata: Vec::new(),
    }
}

#[test]
fn a_stale_a_foreign_and_a_truncated_profile_are_refused_in_a_sentence() {
    let home = home();
    let directory = home.path().join("frontrow/launch");
    fs::create_dir_all(&directory).unwrap();
    let data = home.path().canonicalize().unwrap().join("data");
    fs::write(&data, vec![1; PAGE_BYTES as usize]).unwrap();
    let now = Identity::of(&File::open(&data).unwrap()).unwrap();
    let updated = Identity {
        mtime_s: now.mtime_s - 1,
        ..now
    };
    let elsewhere = Identity {
        device: now.device + 1,
        ..now
    };
    let whole = profile(&data, now).encode();
    for (bytes, expected) in [
        (
            profile(&data, updated).encode(),
            "1 of the 1 files that it needs first have changed",
        ),
        (
            profile(&data, elsewhere).encode(),
            "1 of the 1 files that it needs first have changed",
        ),
        (
            profile(Path::new("/nonexistent"), now).encode(),
            "1 of the 1 files that it needs first have changed",
        ),
        (
            whole[..whole.len() - 1].to_vec(),
            "its checksum does not fit",
        ),
    ] {
        fs::write(directory.join("sh.profile"), bytes).unwrap();
        let output = launch(&home, &["sh", "-c", "echo said; exit 3"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(stdout(&output), "said\n");
        let said = stderr(&output);
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn whatever_the_profile_is_the_app_starts() {
    let home = home();
    let directory = home.path().join("frontrow/launch");
    fs::create_dir_all(&directory).unwrap();
    let profile = directory.join("sh.profile");
    let huge = [&b"FRLAUNCH\x03\0"[..], &[0xff; 64]].concat();
    for (content, mode, expected) in [
        (&b""[..], 0o644, "it is not a profile"),
        (b"FRLAUNCH\x09\0................", 0o644, "format version 9"),
        (&huge, 0o644, "its checksum does not fit"),
        (b"anything", 0o666, "others may write to it"),
    ] {
        fs::write(&profile, content).unwrap();
        fs::set_permissions(&profile, fs::Permissions::from_mode(mode)).unwrap();
        let output = launch(&home, &["sh", "-c", "exit 3"]).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let said = stderr(&output);
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let plan = launch(&home, &["plan", "sh"]).output().unwrap();
    assert_eq!(plan.status.code(), Some(7), "{}", stderr(&plan));
}

#[test]
fn a_menu_entry_is_installed_and_removed_and_another_one_left_alone() {
    let home = home();
    let source = home.path().join("app.desktop");
    fs::write(&source, "[Desktop Entry]\nExec=/opt/app %U\n").unwrap();
    let run = |arguments: &[&str]| {
        let mut command = launch(&home, &["install"]);
        let output = command.args(arguments).env("HOME", home.path()).output();
        output.unwrap()
    };
    let installed = home.path().join("applications/app.desktop");
    let source = source.to_str().unwrap();
    assert!(run(&[source]).status.success());
    let text = fs::read_to_string(&installed).unwrap();
    assert!(text.contains("launch --name app -- /opt/app %U"), "{text}");
    assert!(run(&["app.desktop", "--remove"]).status.success());
    assert!(!installed.exists());
    assert_eq!(run(&["app.desktop", "--remove"]).status.code(), Some(7));

    fs::write(&installed, "[Desktop Entry]\nExec=mine\n").unwrap();
    for arguments in [&[source][..], &["app.desktop", "--remove"]] {
        assert_eq!(run(arguments).status.code(), Some(7));
    }
    assert!(
        fs::read_to_string(&installed)
            .unwrap()
            .contains("Exec=mine")
    );
}

#[test]
fn an_app_of_flatpak_or_snap_is_installed_by_its_name_and_a_game_says_how() {
    let home = home();
    let share = home.path().join("share");
    let entries = share.join("applications");
    fs::create_dir_all(&entries).unwrap();
    let flatpak = "/usr/bin/flatpak run --branch=stable --command=maps org.gnome.Maps @@u %U @@";
    let snap = "env BAMF_DESKTOP_FILE_HINT=/x.desktop /snap/bin/firefox %u";
    let joplin = "env BAMF_DESKTOP_FILE_HINT=/x.desktop /snap/bin/joplin-james-carroll.joplin";
    let game = "steam steam://rungameid/570";
    for (name, command) in [
        ("org.gnome.Maps", flatpak),
        ("firefox_firefox", snap),
        ("joplin-james-carroll_joplin", joplin),
        ("Dota 2", game),
    ] {
        let text = format!("[Desktop Entry]\nExec={command}\nDBusActivatable=true\n");
        fs::write(entries.join(format!("{name}.desktop")), text).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut command = launch(&home, &["install"]);
        command.args(arguments).env("HOME", home.path());
        command.env("XDG_DATA_DIRS", &share).output().unwrap()
    };
    for (app, file, expected) in [
        (
            "org.gnome.Maps",
            "org.gnome.Maps",
            format!("launch --name org.gnome.Maps -- {flatpak}"),
        ),
        (
            "firefox",
            "firefox_firefox",
            format!("launch --name snap.firefox -- {snap}"),
        ),
        (
            "joplin-james-carroll.joplin",
            "joplin-james-carroll_joplin",
            format!("launch --name snap.joplin-james-carroll.joplin -- {joplin}"),
        ),
    ] {
        let output = run(&[app]);
        assert!(output.status.success(), "{}", stderr(&output));
        let installed = home.path().join(format!("applications/{file}.desktop"));
        let text = fs::read_to_string(&installed).unwrap();
        assert!(text.contains(&expected), "{text}");
        assert!(run(&[app, "--remove"]).status.success());
        assert!(!installed.exists());
    }
    // Steam's own shortcuts lie where ours would.
    let own = home.path().join("applications/CrossCode.desktop");
    fs::write(own, format!("[Desktop Entry]\nExec={game}\n")).unwrap();
    for game in ["steam://rungameid/570", "Dota 2", "CrossCode"] {
        let output = run(&[game]);
        assert_eq!(output.status.code(), Some(7));
        let said = stderr(&output);
        assert!(
            said.contains("launch --name steam.570 -- %command%`"),
            "{said}"
        );
    }
    assert_eq!(run(&["org.example.None"]).status.code(), Some(2));
}

/// The attack: root runs a user's own build, which the user changes afterwards.
#[test]
fn root_installs_no_program_that_a_user_may_change() {
    // Only root can install for all.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = home();
    let source = home.path().join("app.desktop");
    fs::write(&source, "[Desktop Entry]\nExec=/opt/app %U\n").unwrap();
    let checkout = home.path().join("checkout");
    fs::create_dir(&checkout).unwrap();
    let program = checkout.join("frontrow");
    // By a process of its own: one that this one forks meanwhile would have it open for writing.
    let mut copy = std::process::Command::new("cp");
    copy.args([
        std::path::Path::new(env!("CARGO_BIN_EXE_frontrow")),
        &program,
    ]);
    assert!(copy.status().unwrap().success());
    std::os::unix::fs::chown(&checkout, Some(65534), None).unwrap();
    let installed = home.path().join("applications/app.desktop");
    let run = |source: &std::path::Path| {
        let mut command = std::process::Command::new(&program);
        command.args(["launch", "install"]).arg(source);
        command
            .env("HOME", home.path())
            .env("XDG_DATA_HOME", home.path());
        command.output().unwrap()
    };
    let output = run(&source);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("others than root may change"), "{said}");
    // Nothing was made before it was checked.
    assert!(!installed.parent().unwrap().exists());
}
