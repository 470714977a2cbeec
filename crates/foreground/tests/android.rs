//! Android's cpusets as files: which apps are foreground and which are background.

use crate::system::System;
use foreground::{Cgroup, Detector, TopApp};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Apps 10001 and following with a process each, and the system's own.
fn phone() -> System {
    let system = System::new();
    for uid in [1000, 10001, 10002, 10003, 10004] {
        let pid = uid + 1;
        system.write(
            &format!("sys/fs/cgroup/uid_{uid}/pid_{pid}/cgroup.procs"),
            &format!("{pid}\n"),
        );
        system.write(&format!("sys/fs/cgroup/uid_{uid}/cgroup.procs"), "");
        system.write(
            &format!("proc/{pid}/cgroup"),
            &format!("5:cpuset:/x\n0::/uid_{uid}/pid_{pid}\n"),
        );
    }
    for group in ["top-app", "foreground", "background"] {
        for file in ["cgroup.procs", "tasks"] {
            system.write(&format!("dev/cpuset/{group}/{file}"), "");
        }
    }
    system
}

/// As the activity manager does it: the file is written, and stays the same one.
fn write(root: &Path, file: &str, text: &str) {
    let path = root.join("dev/cpuset").join(file);
    let mut options = OpenOptions::new();
    let file = options.write(true).truncate(true).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

fn paths(cgroups: &[Cgroup]) -> Vec<&str> {
    cgroups.iter().map(Cgroup::path).collect()
}

#[test]
fn whoever_is_moved_to_the_screen_or_away_is_told() {
    let system = phone();
    let root = system.root();
    write(root, "top-app/cgroup.procs", "10002\n");
    let mut top_app = TopApp::new(root).unwrap().unwrap();
    assert_eq!(paths(&top_app.foreground()), ["/uid_10001"]);
    assert!(!top_app.look().unwrap());
    // A split screen: two apps, the system's own process, and one that has ended.
    write(root, "top-app/cgroup.procs", "10002\n1001\n10003\n99999\n");
    assert!(top_app.look().unwrap());
    assert_eq!(paths(&top_app.foreground()), ["/uid_10001", "/uid_10002"]);
    // Away: what is written is where they go to.
    write(root, "top-app/cgroup.procs", "");
    assert!(top_app.look().unwrap());
    write(root, "background/tasks", "10003\n");
    assert!(top_app.look().unwrap());
    assert!(top_app.foreground().is_empty());
    assert!(!top_app.look().unwrap());
}

#[test]
fn only_apps_without_a_visible_part_are_background() {
    let system = phone();
    let root = system.root();
    write(root, "top-app/cgroup.procs", "10002\n");
    // What plays music, or what the top app has bound.
    write(root, "foreground/cgroup.procs", "10004\n");
    let foreground = TopApp::new(root).unwrap().unwrap().foreground();
    let background = Cgroup::other_apps(root, &foreground).unwrap();
    assert_eq!(paths(&background), ["/uid_10002", "/uid_10004"]);
}

#[test]
fn a_system_that_is_not_android_has_no_such_detector() {
    let system = System::new();
    assert!(TopApp::new(system.root()).unwrap().is_none());
}
