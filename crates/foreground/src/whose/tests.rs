use super::*;
use crate::cgroup::below;
use std::fs;

const SLICE: &str = "/user.slice/user-7.slice/user@7.service/app.slice";

/// A session of user 7 in files.
struct Session(tempfile::TempDir);

impl Session {
    fn new() -> Self {
        let session = Session(tempfile::tempdir().unwrap());
        session.write("/sys/fs/cgroup/cgroup.controllers", "io memory\n");
        session
    }

    fn write(&self, path: &str, text: &str) {
        let path = below(self.0.path(), path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn cgroup(&self, path: &str, pids: &[u32]) {
        let lines: String = pids.iter().map(|it| format!("{it}\n")).collect();
        self.write(&format!("/sys/fs/cgroup{path}/cgroup.procs"), &lines);
        for pid in pids {
            self.write(&format!("/proc/{pid}/cgroup"), &format!("0::{path}\n"));
        }
    }

    fn unit(&self, name: &str, pids: &[u32]) {
        self.cgroup(&format!("{SLICE}/{name}"), pids);
    }

    fn finds(&self, process: Option<Process>, names: &[&str]) -> Vec<String> {
        let found = Finder::new(self.0.path(), 7, Some(90)).find(&window(process, names));
        assert!(!found.why.is_empty());
        let units = found.units.iter();
        units
            .map(|it| it.path()[SLICE.len() + 1..].to_owned())
            .collect()
    }
}

fn window(process: Option<Process>, names: &[&str]) -> Window {
    Window {
        process,
        names: names.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn pid(pid: u32) -> Option<Process> {
    Some(Process::Pid(pid))
}

fn claimed(pid: u32) -> Option<Process> {
    Some(Process::ClaimedPid(pid))
}

const NOBODY: [String; 0] = [];

#[test]
fn a_process_counts_inside_of_the_users_own_apps_only() {
    let session = Session::new();
    session.unit("app-graphical.slice/app-sway-foot-11.scope", &[11]);
    session.unit("app-sway-mail-12.scope", &[12]);
    session.cgroup("/init.scope", &[1]);
    session.write("/proc/2/cgroup", "0::/\n");
    let user = "/user.slice/user-7.slice";
    session.cgroup(
        &format!("{user}/user@7.service/session.slice/dbus.service"),
        &[13],
    );
    session.cgroup(&format!("{user}/session-3.scope"), &[14]);
    let other = SLICE.replace('7', "8");
    session.cgroup(&format!("{other}/app-x-game-15.scope"), &[15]);
    assert_eq!(
        session.finds(pid(11), &[]),
        ["app-graphical.slice/app-sway-foot-11.scope"]
    );
    for outside in [1, 2, 13, 14, 15, 99] {
        assert_eq!(
            session.finds(pid(outside), &["no-app"]),
            NOBODY,
            "{outside}"
        );
        // The kernel's word goes before a name, unless it knows no such process.
        let by_name = session.finds(pid(outside), &["mail"]);
        assert_eq!(by_name.is_empty(), outside != 99, "{outside}");
        let named = session.finds(claimed(outside), &["mail"]);
        assert_eq!(named, ["app-sway-mail-12.scope"], "{outside}");
    }
}

#[test]
fn a_clients_own_word_gives_way_to_its_name() {
    let session = Session::new();
    session.unit("app-gnome-mail-12.scope", &[12]);
    session.unit("app-flatpak-org.game-40.scope", &[40]);
    // In its namespace the game is process 12.
    assert_eq!(
        session.finds(claimed(12), &["org.game"]),
        ["app-flatpak-org.game-40.scope"]
    );
    assert_eq!(
        session.finds(claimed(40), &["org.game"]),
        ["app-flatpak-org.game-40.scope"]
    );
    assert_eq!(
        session.finds(claimed(12), &["unheard.of"]),
        ["app-gnome-mail-12.scope"]
    );
    assert_eq!(
        session.finds(pid(12), &["org.game"]),
        ["app-gnome-mail-12.scope"]
    );
}

#[test]
fn an_app_is_found_by_any_of_its_names() {
    const UUID: &str = "7a3bcd12-0d1e-4b0c-8f9a-0123456789ab";
    let session = Session::new();
    let snap = format!("snap.firefox.firefox-{UUID}.scope");
    let chrome = "app-com.google.Chrome-9.scope";
    for unit in [
        &snap,
        chrome,
        "app-steam-app570-5.scope",
        "app-flatpak-org.videolan.VLC-77.scope",
        "app-niri-my\\x2deditor-8.scope",
        "app-com.mitchellh.ghostty.service",
        "app-ghostty-surface-transient-31.scope",
        "app-chat@autostart.service",
    ] {
        session.unit(unit, &[]);
    }
    session.unit("app-com.mitchellh.ghostty.service", &[30]);
    let entry = |name: &str, text: &str| {
        let path = format!("/usr/share/applications/{name}.desktop");
        session.write(&path, &format!("[Desktop Entry]\n{text}\n"));
    };
    entry("google-chrome", "Exec=/usr/bin/google-chrome-stable %U");
    entry("com.google.Chrome", "Exec=/usr/bin/google-chrome-stable %U");
    entry(
        "org.videolan.VLC",
        "StartupWMClass=vlc-window\nX-Flatpak=org.videolan.VLC",
    );
    entry("org.editor.Main", "Exec=env A=1 /opt/my-editor");
    entry(
        "firefox_firefox",
        "StartupWMClass=navigator\nX-SnapInstanceName=firefox",
    );
    for (names, unit) in [
        (&["firefox"][..], snap.as_str()),
        (&["Navigator"], &snap),
        (&["google-chrome"], chrome),
        (&["Google-chrome"], chrome),
        (&["nothing", "steam_app_570"], "app-steam-app570-5.scope"),
        (&["vlc-window"], "app-flatpak-org.videolan.VLC-77.scope"),
        (&["vlc"], "app-flatpak-org.videolan.VLC-77.scope"),
        (&["org.editor.Main"], "app-niri-my\\x2deditor-8.scope"),
        (&["chat"], "app-chat@autostart.service"),
    ] {
        assert_eq!(session.finds(None, names), [unit], "{names:?}");
    }
    // What runs in a terminal of ghostty's is in other units than its window's process.
    let all = [
        "app-com.mitchellh.ghostty.service",
        "app-ghostty-surface-transient-31.scope",
    ];
    assert_eq!(session.finds(pid(30), &[]), all);
    session.unit("app-gnome-chat-6.scope", &[]);
    assert_eq!(session.finds(None, &["chat"]), ["app-gnome-chat-6.scope"]);
    assert_eq!(session.finds(None, &["org.unknown.App"]), NOBODY);
    assert_eq!(session.finds(None, &[]), NOBODY);
}

#[test]
fn neither_the_desktop_nor_the_compositor_is_an_app() {
    let session = Session::new();
    session.unit("sway.service", &[90, 91]);
    session.unit("app-sway-foot-3.scope", &[3]);
    session.unit("app-org.kde.plasmashell@autostart.service", &[4]);
    session.unit("app-niri-xwayland\\x2dsatellite-5.scope", &[5]);
    // The compositor has started it itself, beside all others.
    assert_eq!(session.finds(pid(91), &["unheard"]), NOBODY);
    // It is another foot than the one that has a unit.
    assert_eq!(session.finds(pid(91), &["foot"]), NOBODY);
    assert_eq!(session.finds(None, &["sway"]), NOBODY);
    assert_eq!(session.finds(pid(4), &["org.kde.plasmashell"]), NOBODY);
    assert_eq!(session.finds(pid(3), &["plasmashell"]), NOBODY);
    assert_eq!(session.finds(pid(5), &["foot"]), ["app-sway-foot-3.scope"]);
}
