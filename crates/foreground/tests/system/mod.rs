//! A tree that stands for a system.
// Each test file is a crate of its own and uses a part of it.
#![allow(dead_code)]

use foreground::{Cgroup, Roles};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

pub const APPS: &str = "user.slice/app.slice";

/// A desktop with three apps and a service, and a disk under the scheduler.
pub struct System(TempDir);

impl System {
    pub fn new() -> Self {
        let system = System(directory());
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
        let procs = format!("sys/fs/cgroup/{APPS}/app-game-1.scope/cgroup.procs");
        system.write(&procs, "7\n");
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
        system.write(&format!("{queue}/iosched/visible"), "none\n");
        system.write("sys/block/mmcblk0/dev", "179:0\n");
        system
    }

    /// A disk with one hardware queue, under a scheduler of the kernel's.
    pub fn add_disk_of_the_kernels(&self) {
        self.write("sys/block/sda/queue/scheduler", "none [mq-deadline] bfq\n");
        self.write("sys/block/sda/queue/nr_requests", "64\n");
        self.write("sys/block/sda/mq/0/nr_tags", "32\n");
        self.write("sys/block/sda/dev", "8:0\n");
    }

    /// The scheduler of that disk.
    pub fn scheduler(&self) -> String {
        let text = self.read("sys/block/sda/queue/scheduler");
        let active = text.split(['[', ']']).nth(1);
        active.unwrap_or(&text).to_owned()
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        let text = fs::read_to_string(self.root().join(path)).unwrap();
        text.trim().to_owned()
    }

    pub fn cgroup(&self, name: &str, controllers: &str) {
        let path = format!("sys/fs/cgroup/{APPS}/{name}");
        self.write(&format!("{path}/cgroup.procs"), "");
        self.write(&format!("{path}/cgroup.controllers"), controllers);
        self.write(&format!("{path}/memory.high"), "max\n");
        self.write(&format!("{path}/memory.low"), "0\n");
        self.write(&format!("{path}/memory.current"), "9000000\n");
        self.write(&format!("{path}/memory.stat"), "anon 8388608\nfile 4096\n");
    }

    pub fn remove(&self, name: &str) {
        let path = format!("sys/fs/cgroup/{APPS}/{name}");
        fs::remove_dir_all(self.root().join(path)).unwrap();
    }

    pub fn app(&self, name: &str, knob: &str) -> String {
        self.read(&format!("sys/fs/cgroup/{APPS}/{name}/{knob}"))
    }

    pub fn list(&self, name: &str) -> String {
        self.read(&format!("sys/block/mmcblk0/queue/iosched/{name}"))
    }

    /// Before all others.
    pub fn in_foreground(&self, name: &str) -> Roles {
        self.roles_with(&format!("/{APPS}/{name}"))
    }

    pub fn game_in_foreground(&self) -> Roles {
        self.roles_with("7")
    }

    fn roles_with(&self, what: &str) -> Roles {
        let foreground = vec![Cgroup::resolve(self.root(), what).unwrap()];
        let background = Cgroup::other_apps(self.root(), &foreground).unwrap();
        Roles {
            foreground,
            background,
            ..Roles::default()
        }
    }
}

/// In memory, as /run is, where that is to be had: the journal is synchronised often.
fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}
