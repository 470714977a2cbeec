//! Holding and releasing, on a tree that stands for a system.

use foreground::{Cgroup, Error, Grounds, Parts, changes, hold, release};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const APPS: &str = "user.slice/app.slice";

/// A desktop with three apps and a service, and a disk under the scheduler.
struct System(TempDir);

impl System {
    fn new() -> Self {
        let system = System(tempfile::tempdir().unwrap());
        system.write("proc/sys/kernel/random/boot_id", "b\n");
        system.write(
            "proc/meminfo",
            "MemTotal:        1048576 kB\nMemFree: 1 kB\n",
        );
        system.write(
            "proc/7/cgroup",
            "0::/user.slice/app.slice/app-game-1.scope\n",
        );
        system.write("proc/8/cgroup", "0::/\n");
        system.write("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
        for app in [
            "app-game-1.scope",
            "app-shop-2.scope",
            "app-mail-3.scope",
            "dbus.service",
        ] {
            system.cgroup(app, "io memory");
        }
        for slice in ["user.slice", APPS] {
            system.write(&format!("sys/fs/cgroup/{slice}/memory.low"), "0\n");
        }
        let queue = "sys/block/mmcblk0/queue";
        system.write(
            &format!("{queue}/scheduler"),
            "none [frontrow] mq-deadline\n",
        );
        system.write(&format!("{queue}/iosched/foreground"), "none\n");
        system.write(&format!("{queue}/iosched/background"), "none\n");
        system.write("sys/block/mmcblk0/dev", "179:0\n");
        system
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        let text = fs::read_to_string(self.root().join(path)).unwrap();
        text.trim().to_owned()
    }

    fn cgroup(&self, name: &str, controllers: &str) {
        let path = format!("sys/fs/cgroup/{APPS}/{name}");
        self.write(&format!("{path}/cgroup.procs"), "");
        self.write(&format!("{path}/cgroup.controllers"), controllers);
        self.write(&format!("{path}/memory.high"), "max\n");
        self.write(&format!("{path}/memory.low"), "0\n");
    }

    fn app(&self, name: &str, knob: &str) -> String {
        self.read(&format!("sys/fs/cgroup/{APPS}/{name}/{knob}"))
    }

    fn list(&self, name: &str) -> String {
        self.read(&format!("sys/block/mmcblk0/queue/iosched/{name}"))
    }

    fn game_in_front(&self) -> Grounds {
        let front = vec![Cgroup::resolve(self.root(), "7").unwrap()];
        let behind = Cgroup::other_apps(self.root(), &front).unwrap();
        Grounds { front, behind }
    }
}

#[test]
fn the_other_apps_are_behind_and_services_are_not() {
    let system = System::new();
    let grounds = system.game_in_front();
    let behind: Vec<_> = grounds.behind.iter().map(Cgroup::path).collect();
    assert_eq!(
        behind,
        [
            "/user.slice/app.slice/app-mail-3.scope",
            "/user.slice/app.slice/app-shop-2.scope"
        ]
    );
    let whole = hold(system.root(), &grounds, Parts::ALL).unwrap();
    assert_eq!(
        system.app("app-game-1.scope", "memory.low"),
        (512 << 20).to_string()
    );
    assert_eq!(
        system.app("app-mail-3.scope", "memory.high"),
        (128 << 20).to_string()
    );
    // Or it would have no effect.
    assert_eq!(
        system.read("sys/fs/cgroup/user.slice/memory.low"),
        (512 << 20).to_string()
    );
    assert_eq!(system.app("dbus.service", "memory.high"), "max");
    assert_eq!(
        system.list("foreground"),
        "/user.slice/app.slice/app-game-1.scope"
    );
    assert_eq!(system.list("background"), behind.join("\n"));
    assert_eq!(changes(system.root()).unwrap(), whole);
}

#[test]
fn all_is_as_it_was_after_release_and_release_may_be_repeated() {
    let system = System::new();
    hold(system.root(), &system.game_in_front(), Parts::ALL).unwrap();
    assert!(matches!(
        hold(system.root(), &system.game_in_front(), Parts::ALL),
        Err(Error::Held)
    ));
    assert_eq!(release(system.root()).unwrap().len(), 7);
    assert_eq!(system.app("app-game-1.scope", "memory.low"), "0");
    assert_eq!(system.app("app-mail-3.scope", "memory.high"), "max");
    assert_eq!(system.list("foreground"), "none");
    assert_eq!(system.list("background"), "none");
    assert!(release(system.root()).unwrap().is_empty());
}

#[test]
fn a_cgroup_that_vanished_is_no_obstacle_to_releasing_the_others() {
    let system = System::new();
    hold(system.root(), &system.game_in_front(), Parts::ALL).unwrap();
    let gone = format!("sys/fs/cgroup/{APPS}/app-shop-2.scope");
    fs::remove_dir_all(system.root().join(gone)).unwrap();
    release(system.root()).unwrap();
    assert_eq!(system.app("app-mail-3.scope", "memory.high"), "max");
    assert_eq!(system.list("foreground"), "none");
}

#[test]
fn a_failure_half_way_leaves_nothing_behind() {
    let system = System::new();
    system.cgroup("app-mail-3.scope", "io");
    let error = hold(system.root(), &system.game_in_front(), Parts::ALL).unwrap_err();
    assert!(error.to_string().contains("+memory"), "{error}");
    system.cgroup("app-mail-3.scope", "io memory");
    system.write("sys/block/mmcblk0/queue/scheduler", "[none] frontrow\n");
    let error = hold(system.root(), &system.game_in_front(), Parts::ALL).unwrap_err();
    assert!(matches!(error, Error::NoScheduler));
    assert_eq!(system.app("app-game-1.scope", "memory.low"), "0");
    assert_eq!(system.app("app-mail-3.scope", "memory.high"), "max");
    assert!(changes(system.root()).unwrap().is_empty());
}

#[test]
fn what_is_no_app_is_refused_with_its_reason() {
    let system = System::new();
    let resolve = |what: &str| Cgroup::resolve(system.root(), what).unwrap_err();
    assert!(matches!(resolve("9"), Error::Unknown(_)));
    assert!(matches!(resolve("/nowhere"), Error::Unknown(_)));
    assert!(matches!(
        resolve("/user.slice/../../etc"),
        Error::Unknown(_)
    ));
    assert!(matches!(resolve("8"), Error::Root(_)));
    assert!(matches!(resolve("/sys/fs/cgroup/"), Error::Root(_)));
    fs::remove_file(system.root().join("sys/fs/cgroup/cgroup.controllers")).unwrap();
    assert!(matches!(resolve("7"), Error::NoHierarchy));
}

#[test]
fn parts_are_to_be_had_apart() {
    let system = System::new();
    let none = Parts {
        allocator: false,
        reclaimer: false,
        dispatcher: false,
    };
    let only_reclaim = Parts {
        reclaimer: true,
        ..none
    };
    let made = hold(system.root(), &system.game_in_front(), only_reclaim).unwrap();
    assert_eq!(made.len(), 3);
    assert_eq!(system.list("foreground"), "none");
    release(system.root()).unwrap();
}
