//! `frontrow fg follow` on real compositors without a screen, with apps in units as desktops, sandboxes and
//! launchers name them. `make stress-desktops` runs this, as root or with sudo.

use crate::new_debian::{Debian, as_root};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Compositors of Debian's, each with its packages.
const COMPOSITORS: [(&str, &str); 7] = [
    ("sway", "sway"),
    ("labwc", "labwc"),
    ("kwin", "kwin-wayland"),
    ("openbox", "openbox"),
    ("icewm", "icewm"),
    ("xfwm4", "xfwm4"),
    ("gnome", "gnome-shell"),
];

const CHANGES: u64 = 100;

const OTHER_PACKAGES: &str = "systemd systemd-sysv libpam-systemd dbus-user-session procps python3 \
    foot xterm xwayland xvfb xdotool x11-utils wlrctl libgl1-mesa-dri fonts-dejavu-core";

/// A user whose systemd starts at boot, and a service that runs all sessions, and ends the system.
const SETUP: &str = "useradd -m -u 1000 desk
    mkdir -p /var/lib/systemd/linger
    touch /var/lib/systemd/linger/desk
    systemctl -q mask systemd-udevd systemd-modules-load console-getty
    systemctl -q set-default multi-user.target
    systemctl -q enable desk.service";

fn unit() -> String {
    let sessions = COMPOSITORS.map(|(name, _)| {
        format!(
            "python3 /run/shared/session.py {name} {CHANGES} /run/shared/frontrow \
             > /run/shared/{name}.json 2> /run/shared/{name}.log"
        )
    });
    format!(
        "[Unit]\nAfter=user@1000.service\nWants=user@1000.service\n\
         SuccessAction=poweroff-force\nFailureAction=poweroff-force\n\
         [Service]\nType=oneshot\nUser=desk\nEnvironment=XDG_RUNTIME_DIR=/run/user/1000 \
         DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus\n\
         ExecStart=/bin/sh -c '{}; true'\nTimeoutStartSec=infinity\n\
         [Install]\nWantedBy=multi-user.target\n",
        sessions.join("; ")
    )
}

/// Runs all sessions; what they said is in `shared` then.
fn run_sessions(debian: &Debian, shared: &Path) {
    let boot = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/guests/desktops/boot.sh"
    );
    let mut boots = as_root("unshare");
    boots.args([
        "--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "sh", boot,
    ]);
    boots.arg(debian.root()).arg(shared).stdin(Stdio::null());
    // The end of the system is the end of its first process, by a signal.
    boots.status().unwrap();
}

#[test]
#[ignore = "a gigabyte from the network: make stress-desktops"]
fn each_change_of_focus_on_real_compositors_is_told_rightly() {
    let debian = Debian::new("trixie");
    let packages: Vec<_> = COMPOSITORS.iter().map(|(_, package)| *package).collect();
    debian.run(&format!(
        "apt-get -qq update && apt-get -qq -y --no-install-recommends install {OTHER_PACKAGES} {}",
        packages.join(" ")
    ));
    let scratch = tempfile::tempdir_in("/var/tmp").unwrap();
    let service = scratch.path().join("desk.service");
    fs::write(&service, unit()).unwrap();
    debian.copy_in(&service, "etc/systemd/system/desk.service");
    debian.run(SETUP);
    let shared = scratch.path();
    fs::copy(env!("CARGO_BIN_EXE_frontrow"), shared.join("frontrow")).unwrap();
    let session = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/guests/desktops/session.py"
    );
    fs::copy(session, shared.join("session.py")).unwrap();
    // Another user's program writes there.
    for path in [shared.to_owned(), shared.join("frontrow")] {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(path, all).unwrap();
    }
    run_sessions(&debian, shared);
    let mut failed = Vec::new();
    for (name, _) in COMPOSITORS {
        let read = |kind: &str| fs::read_to_string(shared.join(format!("{name}.{kind}")));
        let said: Value = serde_json::from_str(&read("json").unwrap()).unwrap_or_default();
        println!("{said}");
        if said["right"] != CHANGES || said["wrong_count"] != 0 || said["code"] != 0 {
            failed.push(format!("{name}: {said} {}", read("log").unwrap()));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
