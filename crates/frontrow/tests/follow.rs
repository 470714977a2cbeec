//! `frontrow fg follow` in sessions with pretended display servers, and its daemon.

use crate::compositor::{ACTIVATED, Say};
use crate::running::{Daemon, Ended, command, fg, status, until};
use crate::server::{ACTIVE, Play, SUPPORTED, Shown, listen, serve};
use crate::system::System;
use launch::Identity;
use launch::profile::{Pages, Profile, ProfiledFile, Store, Timing};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Variables of a real session that a test may run in.
const OF_SESSIONS: [&str; 7] = [
    "DISPLAY",
    "HYPRLAND_INSTANCE_SIGNATURE",
    "NIRI_SOCKET",
    "SWAYSOCK",
    "WAYLAND_DISPLAY",
    "XDG_CURRENT_DESKTOP",
    "XDG_RUNTIME_DIR",
];

fn follow(system: &System, arguments: &[&str]) -> Command {
    let mut follow = command(system, &[&["follow"], arguments].concat());
    for variable in OF_SESSIONS {
        follow.env_remove(variable);
    }
    follow.stderr(Stdio::piped());
    follow
}

fn started(mut follow: Command) -> Daemon {
    Daemon(follow.spawn().unwrap())
}

fn ended(follow: &mut Command) -> Ended {
    let output = follow.output().unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A unit of this user's with a process; its path.
fn unit(system: &System, name: &str, pid: u32) -> String {
    let user = rustix::process::getuid().as_raw();
    let slice = format!("user.slice/user-{user}.slice/user@{user}.service/app.slice");
    system.cgroup(&format!("../../{slice}/{name}"), "io memory");
    let procs = format!("sys/fs/cgroup/{slice}/{name}/cgroup.procs");
    system.write(&procs, &format!("{pid}\n"));
    let mut parent = format!("sys/fs/cgroup/{slice}/{name}");
    while let Some((up, _)) = parent
        .rsplit_once('/')
        .filter(|(it, _)| *it != "sys/fs/cgroup")
    {
        system.write(&format!("{up}/memory.low"), "0\n");
        parent = up.to_owned();
    }
    let path = format!("/{slice}/{name}");
    system.write(&format!("proc/{pid}/cgroup"), &format!("0::{path}\n"));
    path
}

fn half(window: u32, process: u32, x: i16) -> Shown {
    Shown {
        window,
        process,
        x,
        width: 500,
        height: 800,
        class: "game\0Game\0",
        ..Shown::default()
    }
}

/// A session in which windows get the focus in this order.
fn session(focused: &[(u32, u32)]) -> Play {
    Play {
        supported: vec![SUPPORTED, ACTIVE],
        focused: focused
            .iter()
            .map(|&(window, pid)| (window, Some(pid)))
            .collect(),
        windows: vec![half(20, 17, 0), half(21, 19, 500)],
        ..Play::default()
    }
}

fn stderr(follow: &mut Daemon) -> String {
    let mut text = String::new();
    follow
        .0
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text
}

#[test]
fn whichever_app_of_an_x_session_has_the_focus_is_foreground() {
    let system = System::new();
    let game = unit(&system, "app-game-17.scope", 17);
    let mail = unit(&system, "app-graphical.slice/app-uwsm-mail-19.scope", 19);
    let _daemon = Daemon::start(&system);
    let (listener, display) = listen();
    let session = serve(listener, session(&[(20, 17), (0, 0), (21, 19)]));
    let mut follow = started(follow(&system, &["--display", &display]));
    until(|| status(&system)["front"][0] == *mail);
    assert_eq!(system.list("foreground"), mail);
    // The other half of the screen.
    assert_eq!(system.list("visible"), format!("33 {game}"));
    follow.signal(rustix::process::Signal::TERM);
    assert_eq!(follow.wait(), Some(0));
    assert_eq!(system.list("foreground"), "none");
    session.join().unwrap();
}

#[test]
fn a_process_without_a_unit_ends_nothing_and_nobody_is_foreground_then() {
    for outside in ["/", "/init.scope", "/user.slice/session-1.scope"] {
        let system = System::new();
        let game = unit(&system, "app-game-17.scope", 17);
        system.write("proc/18/cgroup", &format!("0::{outside}\n"));
        system.write("sys/fs/cgroup/init.scope/cgroup.procs", "18\n");
        system.write(
            "sys/fs/cgroup/user.slice/session-1.scope/cgroup.procs",
            "18\n",
        );
        let _daemon = Daemon::start(&system);
        let (listener, display) = listen();
        serve(listener, session(&[(20, 17), (22, 18)]));
        let mut follow = started(follow(&system, &["--display", &display]));
        let mut log = BufReader::new(follow.0.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        assert!(line.starts_with("no app is foreground with "), "{line}");
        until(|| system.list("foreground") == "none");
        assert_eq!(system.read(&format!("sys/fs/cgroup{game}/memory.low")), "0");
        follow.signal(rustix::process::Signal::TERM);
        assert_eq!(follow.wait(), Some(0));
    }
}

/// A pretended Wayland compositor, at a socket that can be bound again.
struct Compositor {
    listener: UnixListener,
    says: Option<Sender<Say>>,
}

impl Compositor {
    fn new(system: &System) -> Self {
        let path = system.root().join("wayland");
        // The one before has left it.
        let _ = std::fs::remove_file(&path);
        Compositor {
            listener: UnixListener::bind(path).unwrap(),
            says: None,
        }
    }

    /// Serves the next client.
    fn serve(&mut self, first: Vec<Say>) {
        let (client, _) = self.listener.accept().unwrap();
        let (say, said) = channel();
        crate::compositor::play(client, first, said, true);
        self.says = Some(say);
    }

    fn says(&self, what: Say) {
        self.says.as_ref().unwrap().send(what).unwrap();
    }
}

fn follow_wayland(system: &System, arguments: &[&str]) -> Command {
    let mut follow = follow(system, arguments);
    follow.env("WAYLAND_DISPLAY", system.root().join("wayland"));
    follow.env("XDG_RUNTIME_DIR", system.root());
    follow
}

#[test]
fn whichever_app_of_a_wayland_session_has_the_focus_is_foreground() {
    let system = System::new();
    let foot = unit(&system, "app-sway-foot-1.scope", 1);
    let _daemon = Daemon::start(&system);
    let mut compositor = Compositor::new(&system);
    let mut follow = started(follow_wayland(&system, &[]));
    compositor.serve(vec![
        Say::Window("mail", &[]),
        Say::Window("foot", &[ACTIVATED]),
    ]);
    until(|| status(&system)["front"][0] == *foot);
    // It has no unit, so no app is foreground; which is said once.
    for _ in 0..2 {
        compositor.says(Say::Window("foot", &[]));
        compositor.says(Say::Window("mail", &[ACTIVATED]));
        until(|| system.list("foreground") == "none");
        compositor.says(Say::Window("mail", &[]));
        compositor.says(Say::Window("foot", &[ACTIVATED]));
        until(|| system.list("foreground") == foot);
    }
    follow.signal(rustix::process::Signal::TERM);
    assert_eq!(follow.wait(), Some(0));
    assert_eq!(system.list("foreground"), "none");
    let log = stderr(&mut follow);
    assert_eq!(log.matches("no unit is named mail").count(), 1, "{log}");
}

#[test]
fn a_daemon_that_comes_later_or_anew_is_told() {
    let system = System::new();
    let foot = unit(&system, "app-sway-foot-1.scope", 1);
    let mut compositor = Compositor::new(&system);
    let mut follow = started(follow_wayland(&system, &[]));
    compositor.serve(vec![Say::Window("foot", &[ACTIVATED])]);
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let mut daemon = Daemon::start(&system);
        until(|| status(&system)["front"][0] == *foot);
        daemon.signal(signal);
        daemon.wait();
    }
    // It has left all in force when it was killed, and its successor begins with nobody.
    let _daemon = Daemon::start(&system);
    until(|| status(&system)["front"][0] == *foot);
    follow.signal(rustix::process::Signal::TERM);
    assert_eq!(follow.wait(), Some(0));
    assert_eq!(system.list("foreground"), "none");
    let log = stderr(&mut follow);
    assert!(log.contains("systemctl enable --now frontrowd"), "{log}");
}

#[test]
fn a_compositor_that_ends_lets_the_app_go_and_is_followed_when_it_is_back() {
    let system = System::new();
    let foot = unit(&system, "app-sway-foot-1.scope", 1);
    let _daemon = Daemon::start(&system);
    let mut compositor = Compositor::new(&system);
    let mut follow = started(follow_wayland(&system, &[]));
    compositor.serve(vec![Say::Window("foot", &[ACTIVATED])]);
    until(|| system.list("foreground") == foot);
    drop(compositor);
    until(|| system.list("foreground") == "none");
    let mut compositor = Compositor::new(&system);
    compositor.serve(vec![Say::Window("foot", &[ACTIVATED])]);
    until(|| system.list("foreground") == foot);
    // Nor does a signal meanwhile wait for it.
    drop(compositor);
    until(|| system.list("foreground") == "none");
    follow.signal(rustix::process::Signal::TERM);
    assert_eq!(follow.wait(), Some(0));
}

/// A profile of an app that needs the first two pages of a file.
fn profile_of(app: &str, home: &Path) {
    let path = home.join("library");
    fs::write(&path, [1; 9000]).unwrap();
    let file = ProfiledFile {
        identity: Identity::of(&File::open(&path).unwrap()).unwrap(),
        pages: vec![Pages { first: 0, count: 2 }],
        late: Default::default(),
        path,
    };
    let profile = Profile {
        command: app.to_owned(),
        recorded_s: 0,
        runs: 1,
        timing: Timing::Before,
        measured: None,
        files: vec![file],
        metadata: Vec::new(),
    };
    let store = Store::at(home.join("frontrow/launch"));
    store.write(app, &profile).unwrap();
}

#[test]
fn an_app_with_a_profile_is_loaded_when_it_gets_the_focus_and_is_told_too() {
    let system = System::new();
    unit(&system, "app-sway-mail-2.scope", 2);
    let foot = unit(&system, "app-sway-foot-1.scope", 1);
    let home = tempfile::tempdir().unwrap();
    profile_of("foot", home.path());
    let _daemon = Daemon::start(&system);
    let mut compositor = Compositor::new(&system);
    let mut command = follow_wayland(&system, &["--resume"]);
    command.env("XDG_DATA_HOME", home.path());
    let mut follow = started(command);
    compositor.serve(vec![
        Say::Window("mail", &[]),
        Say::Window("foot", &[ACTIVATED]),
    ]);
    let mut log = BufReader::new(follow.0.stderr.take().unwrap()).lines();
    let line = log.find_map(|it| it.ok().filter(|it| it.starts_with("foot: ")));
    let line = line.unwrap();
    assert!(line.contains(" of 2 pages were missing"), "{line}");
    until(|| system.list("foreground") == foot);
    follow.signal(rustix::process::Signal::TERM);
    assert_eq!(follow.wait(), Some(0));
}

#[test]
fn a_second_one_says_so_and_ends() {
    let system = System::new();
    let foot = unit(&system, "app-sway-foot-1.scope", 1);
    let _daemon = Daemon::start(&system);
    let mut compositor = Compositor::new(&system);
    let mut first = started(follow_wayland(&system, &[]));
    compositor.serve(vec![Say::Window("foot", &[ACTIVATED])]);
    until(|| system.list("foreground") == foot);
    let second = ended(&mut follow_wayland(&system, &[]));
    assert_eq!(second.code, 7, "{}", second.stderr);
    assert_eq!(second.stderr.lines().count(), 1, "{}", second.stderr);
    assert!(second.stderr.contains("follows"), "{}", second.stderr);
    assert_eq!(system.list("foreground"), foot);
    first.signal(rustix::process::Signal::KILL);
    first.wait();
    // The lock ends with its process.
    let mut third = started(follow_wayland(&system, &[]));
    compositor.serve(vec![Say::Window("foot", &[ACTIVATED])]);
    third.signal(rustix::process::Signal::TERM);
    assert_eq!(third.wait(), Some(0));
}

#[test]
fn it_explains_what_it_sees_and_tells_nobody() {
    for json in [false, true] {
        let system = System::new();
        let foot = unit(&system, "app-sway-foot-1.scope", 1);
        let _daemon = Daemon::start(&system);
        let mut compositor = Compositor::new(&system);
        let arguments = if json {
            &["--explain", "--json"][..]
        } else {
            &["--explain"]
        };
        let mut follow = follow_wayland(&system, arguments);
        let mut follow = started({
            follow.stdout(Stdio::piped());
            follow
        });
        compositor.serve(vec![Say::Window("foot", &[ACTIVATED])]);
        let mut lines = BufReader::new(follow.0.stdout.take().unwrap()).lines();
        let mut next = || lines.next().unwrap().unwrap();
        if json {
            let value: Value = serde_json::from_str(&next()).unwrap();
            crate::schema::check("fg follow", &value);
            assert_eq!(value["foreground"]["units"][0], *foot);
            assert_eq!(value["foreground"]["window"]["names"][0], "foot");
        } else {
            assert_eq!(next(), "Window: foot, unknown process");
            assert_eq!(next(), format!("  foreground: {foot}"));
            assert!(next().contains("the unit is named foot"));
        }
        assert_eq!(system.list("foreground"), "none");
        follow.signal(rustix::process::Signal::TERM);
        assert_eq!(follow.wait(), Some(0));
    }
}

/// In a session whose compositor tells no program of windows, in whichever way it is asked.
fn follow_gnome(system: &System, arguments: &[&str]) -> Daemon {
    let compositor = Compositor::new(system);
    let mut follow = follow_wayland(system, arguments);
    follow.env("XDG_CURRENT_DESKTOP", "ubuntu:GNOME");
    follow.stdout(Stdio::piped());
    thread::spawn(move || {
        let mut says = Vec::new();
        for client in compositor.listener.incoming() {
            let (say, said) = channel();
            crate::compositor::play(client.unwrap(), Vec::new(), said, false);
            says.push(say);
        }
    });
    started(follow)
}

/// It is no failure, of which a desktop would show a unit.
#[test]
fn under_gnome_there_is_nothing_to_follow() {
    let system = System::new();
    let mut follow = follow_gnome(&system, &[]);
    assert_eq!(follow.wait(), Some(0));
    assert!(stderr(&mut follow).contains("GNOME tells frontrowd the focus"));
}

/// GNOME Shell tells no program of windows: the attribute that the daemon goes by is explained.
#[test]
fn under_gnome_it_explains_whom_the_daemon_takes_the_focus_for() {
    let system = System::new();
    let apps = ["app-gnome-foot-1.scope", "app-flatpak-org.test.Pak-2.scope"];
    let apps = apps.map(|name| unit(&system, name, 1));
    let mark = |app: &str, since: &str| {
        let directory = system.root().join("sys/fs/cgroup").join(&app[1..]);
        let flags = rustix::fs::XattrFlags::empty();
        let name = "user.xdg.inactive-since";
        rustix::fs::setxattr(directory, name, since.as_bytes(), flags).unwrap();
    };
    let mut follow = follow_gnome(&system, &["--explain", "--json"]);
    let mut lines = BufReader::new(follow.0.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let nobody = next();
    crate::schema::check("fg follow", &nobody);
    assert_eq!(nobody["foreground"]["units"], serde_json::json!([]));
    let [one, other] = &apps;
    mark(one, "-1");
    assert_eq!(next()["foreground"]["units"][0], **one);
    // One loses the focus before the next gets it, and the last one for good.
    mark(one, "1000");
    mark(other, "-1");
    assert_eq!(next()["foreground"]["units"][0], **other);
    mark(other, "2000");
    assert_eq!(next()["foreground"]["units"], serde_json::json!([]));
    follow.signal(rustix::process::Signal::TERM);
    assert_eq!(follow.wait(), Some(0));
}

#[test]
fn a_session_that_is_not_there_is_named() {
    let system = System::new();
    let nowhere = ended(&mut follow(&system, &["--display", "nowhere"]));
    assert_eq!(nowhere.code, 5, "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("DISPLAY"));
    let alone = fg(&system, &["follow", "--json"]);
    assert_eq!(alone.code, 2, "{}", alone.stderr);
}
