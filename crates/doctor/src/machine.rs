//! Configuration of the machine: disks, mounts, and what prevents an observation.

mod failing;
mod servers;
mod stack;
mod untrimmed;

use crate::Error;
use crate::observe::Party;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use sys::device::{Device, Mount, all_mounts};

/// Directories of udev's rules.
const RULES: [&str; 3] = [
    "etc/udev/rules.d",
    "run/udev/rules.d",
    "usr/lib/udev/rules.d",
];
/// Attribute that rules for schedulers write to.
const SCHEDULER_RULE: &str = "queue/scheduler";
/// Files in the root directory of a container.
const CONTAINER_MARKS: [&str; 3] = [".dockerenv", "run/.containerenv", "run/systemd/container"];
/// The PID namespace of the machine itself (`PROC_PID_INIT_INO` in include/linux/proc_ns.h).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
/// File with the lockdown mode in brackets.
const LOCKDOWN: &str = "sys/kernel/security/lockdown";
/// Network file systems; FUSE ones are remote, too.
const NETWORK: [&str; 8] = [
    "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "virtiofs",
];
/// File systems of the kernel's own, without users' files.
const NO_STORAGE: [&str; 13] = [
    "proc",
    "sysfs",
    "cgroup2",
    "cgroup",
    "devpts",
    "mqueue",
    "securityfs",
    "debugfs",
    "tracefs",
    "pstore",
    "bpf",
    "configfs",
    "fuse.portal",
];
/// FUSE file systems without user files.
const NO_FILES: [&str; 3] = ["fuse.portal", "fuse.gvfsd-fuse", "fuse.lxcfs"];

/// Dirty limit of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DirtyLimit {
    /// Percent of the system's dirty limit.
    pub max_ratio: u64,
    /// Whether it always applies, not only near the system's limit.
    pub strict: bool,
}

/// A block device with a size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Kernel name, such as `sda`.
    pub name: String,
    /// Device number, such as `8:0`.
    pub number: String,
    /// Scheduler; None for a device without a request queue.
    pub scheduler: Option<String>,
    /// Size of its request queue (`nr_requests`).
    pub depth: u64,
    /// Whether it is removable.
    pub removable: bool,
    /// Type of a device-mapper device, such as `CRYPT` or `LVM`.
    pub mapper: Option<String>,
    /// Name of an encrypted volume whose writes all go through one thread (dm-crypt's default).
    pub write_thread: Option<String>,
    /// Names of the disks or partitions below it.
    pub below: Vec<String>,
    /// Dirty limit; None if the kernel (before 6.2) has no strict ones.
    pub limit: Option<DirtyLimit>,
    /// Names of the whole disks right below it: of a mapper's, a RAID's, and of a loop device's file.
    pub on: Vec<String>,
    /// Name that its maker, or whoever made the volume, gave it.
    pub title: Option<String>,
    /// Types of a device-mapper device's targets, such as `snapshot-origin`.
    pub targets: Vec<String>,
    /// Trouble that it tells of itself, as a phrase, such as that its thin pool is full.
    pub trouble: Option<String>,
    /// What a RAID does to all of its disks: `check`, `resync`, `recover` and so on.
    pub syncing: Option<String>,
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mounted {
    /// Path of the mount point.
    pub point: String,
    /// Type, such as `ext4`.
    pub filesystem: String,
    /// Name of its disk, if any.
    pub disk: Option<String>,
    /// Whether it is a network or FUSE file system.
    pub remote: bool,
    /// Device number, such as `8:1`; of a file system without a device `0:30`.
    pub number: String,
    /// Process that answers for a FUSE file system, if it is known.
    #[serde(skip)]
    pub server: Option<Party>,
}

/// Configuration of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// All disks with a size.
    pub disks: Vec<Disk>,
    /// All mounts on a disk or of remote file systems.
    pub mounts: Vec<Mounted>,
    /// Paths of udev rules that set schedulers.
    pub scheduler_rules: Vec<String>,
    /// Names of disks that take discards and get none.
    pub untrimmed: Vec<String>,
    /// Limits of observation on this machine, one sentence each.
    pub hidden: Vec<String>,
    /// Disks that report errors or are worn out, one sentence each.
    pub failing: Vec<String>,
}

/// Checks that the machine can be observed.
///
/// # Errors
/// All but [`Error::Device`].
pub fn check(root: &Path) -> Result<(), Error> {
    for path in ["proc/stat", "proc/self/mountinfo"] {
        if fs::read(root.join(path)).is_err() {
            return Err(Error::NoProc(format!("/{path}")));
        }
    }
    if is_container(root) {
        return Err(Error::Container);
    }
    let mounts = all_mounts(root)?;
    let has = |kind: &str| mounts.iter().any(|(_, mount)| mount.filesystem == kind);
    if has("cgroup") && !has("cgroup2") {
        return Err(Error::OldCgroups);
    }
    match fs::read(root.join("proc/pressure/io")) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::NoPressure),
    }
}

/// Whether only the processes of a container are seen. A system that was installed from an image of a
/// container has its marks and the first PID namespace.
fn is_container(root: &Path) -> bool {
    let is_marked = CONTAINER_MARKS.iter().any(|it| root.join(it).exists());
    let namespace = fs::read_link(root.join("proc/self/ns/pid"));
    let is_first = namespace.is_ok_and(|it| it == Path::new(FIRST_NAMESPACE));
    is_marked && !is_first
}

/// Checks that settings can be changed.
///
/// # Errors
/// [`Error::ReadOnly`], [`Error::NoProc`].
pub fn check_writable(root: &Path) -> Result<(), Error> {
    let path = "proc/self/mountinfo";
    let text = fs::read_to_string(root.join(path));
    let text = text.map_err(|_| Error::NoProc(format!("/{path}")))?;
    // `36 35 0:22 / /sys ro,nosuid … - sysfs sysfs rw`
    let sysfs = text.lines().rev().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields.get(4) == Some(&"/sys")).then(|| fields.get(5).copied().unwrap_or_default())
    });
    match sysfs.is_some_and(|it| it.split(',').any(|option| option == "ro")) {
        true => Err(Error::ReadOnly),
        false => Ok(()),
    }
}

/// Limits of observation from the kind of machine.
fn hidden(root: &Path, mounts: &[(PathBuf, Mount)]) -> Vec<String> {
    let mut hidden = Vec::new();
    let is_overlay = |(point, mount): &&(PathBuf, Mount)| {
        point == Path::new("/") && mount.filesystem == "overlay"
    };
    if mounts.iter().any(|it| is_overlay(&it)) {
        hidden.push(
            "which disk the files of / are on: it is an overlay, as a live or immutable system's"
                .to_owned(),
        );
    }
    let lockdown = fs::read_to_string(root.join(LOCKDOWN)).unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        hidden.push(
            "what tracing tells, at level 1 or by tracefs: this kernel is locked down (confidentiality); without lockdown=confidentiality on its command line it is not"
                .to_owned(),
        );
    }
    hidden
}

impl Machine {
    /// Reads the configuration below `root`.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn look(root: &Path) -> Result<Machine, Error> {
        let mut disks = Vec::new();
        for device in Device::all(root)? {
            // Drives without a medium and loop devices without a file have no size; reads fail for
            // a disk that is being removed.
            if device.size_bytes().is_ok_and(|bytes| bytes > 0) {
                disks.extend(disk(root, &device));
            }
        }
        let mounts = all_mounts(root)?;
        let hidden = hidden(root, &mounts);
        // Remote mounts are skipped: a dead server would block the call.
        let disk_of = |point: &Path, remote: bool| {
            let found = (!remote).then(|| Device::resolve(root, &point.to_string_lossy()));
            Some(found?.ok()?.name().to_owned())
        };
        let mut mounts: Vec<Mounted> = mounts
            .into_iter()
            .filter(|(_, mount)| !NO_STORAGE.contains(&mount.filesystem.as_str()))
            .map(|(point, mount)| Mounted {
                remote: is_remote(&mount.filesystem),
                disk: disk_of(&point, is_remote(&mount.filesystem)),
                point: point.to_string_lossy().into_owned(),
                filesystem: mount.filesystem,
                number: mount.number,
                server: None,
            })
            .collect();
        servers::find(root, &mut mounts);
        stack::complete(root, &mut disks, &mounts);
        Ok(Machine {
            untrimmed: untrimmed::untrimmed(root, &disks, &mounts),
            mounts,
            scheduler_rules: scheduler_rules(root),
            hidden,
            disks,
            failing: Vec::new(),
        })
    }

    /// Asks disks how worn they are. That starts smartctl, if it is installed.
    pub fn look_for_wear(&mut self, root: &Path) {
        self.failing.extend(failing::worn(root, self));
    }

    /// Looks in the kernel's log for requests that failed since boot.
    pub fn look_for_errors(&mut self, root: &Path) {
        let failed = failing::failed(root, self);
        self.failing.splice(..0, failed);
    }

    /// Mount that has the file.
    pub fn mount_of(&self, file: &str) -> Option<&Mounted> {
        let holding = self.mounts.iter();
        let holding = holding.filter(|it| Path::new(file).starts_with(&it.point));
        holding.max_by_key(|it| it.point.len())
    }

    /// Mount of the file system with this device number.
    pub fn mount(&self, number: &str) -> Option<&Mounted> {
        self.mounts.iter().find(|it| it.number == number)
    }

    /// The disk and all that are below it, from the top down.
    pub fn stack<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        let mut found = vec![name];
        let mut place = 0;
        while let Some(name) = found.get(place) {
            let below = self.disk(name).map_or(&[][..], |it| &it.on);
            for it in below {
                if !found.contains(&it.as_str()) {
                    found.push(it);
                }
            }
            place += 1;
        }
        found
    }

    /// The disks at the bottom of this one's stack, which do the work.
    pub fn bottom<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        let mut stack = self.stack(name);
        stack.retain(|it| self.disk(it).is_none_or(|disk| disk.on.is_empty()));
        stack
    }

    /// The disk by its name and, if it has another one, by that.
    pub fn titled(&self, name: &str) -> String {
        match self.disk(name).and_then(|it| it.title.as_deref()) {
            Some(title) => format!("{name} ({title})"),
            None => name.to_owned(),
        }
    }

    /// Disk with this name.
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        self.disks.iter().find(|it| it.name == name)
    }
}

fn is_remote(filesystem: &str) -> bool {
    let is_fuse =
        filesystem == "fuse" || filesystem == "fuseblk" || filesystem.starts_with("fuse.");
    NETWORK.contains(&filesystem) || is_fuse && !NO_FILES.contains(&filesystem)
}

fn disk(root: &Path, device: &Device) -> Result<Disk, Error> {
    let number = device.number_text()?;
    let encryption = device.encryption()?;
    let slow = encryption.filter(|it| it.has_write_thread == Some(true));
    Ok(Disk {
        name: device.name().to_owned(),
        scheduler: device.schedulers()?.map(|it| it.active),
        // Since 6.11 a device that passes bios on has none.
        depth: device.nr_requests().unwrap_or(0),
        removable: device.is_removable()?,
        mapper: device.mapper()?,
        write_thread: slow.map(|it| it.name),
        below: device.below()?,
        limit: limit(&root.join("sys/class/bdi").join(&number)),
        number,
        ..Disk::default()
    })
}

fn limit(directory: &Path) -> Option<DirtyLimit> {
    let number = |name| -> Option<u64> {
        let text = fs::read_to_string(directory.join(name)).ok()?;
        text.trim().parse().ok()
    };
    Some(DirtyLimit {
        max_ratio: number("max_ratio")?,
        strict: number("strict_limit")? != 0,
    })
}

/// Paths of udev rules that set schedulers.
fn scheduler_rules(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for directory in RULES {
        let Ok(entries) = fs::read_dir(root.join(directory)) else {
            continue;
        };
        for entry in entries.flatten() {
            let is_rule =
                |line: &str| !line.trim_start().starts_with('#') && line.contains(SCHEDULER_RULE);
            // Unreadable rules are skipped.
            let bytes = fs::read(entry.path()).unwrap_or_default();
            if String::from_utf8_lossy(&bytes).lines().any(is_rule) {
                found.push(format!("/{directory}/{}", entry.file_name().display()));
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    pub(super) fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str, text: &str| {
            let path = root.path().join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        };
        at("proc/stat", "cpu 1 2 3 4\n");
        at(
            "proc/pressure/io",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
        );
        at(
            "proc/self/mountinfo",
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:40 / /srv rw - nfs4 host:/srv rw\n\
             3 1 0:41 / /run/doc rw - fuse.portal portal rw\n4 1 0:42 / /cg rw - cgroup2 cgroup2 rw\n",
        );
        at("sys/block/sda/size", "2048\n");
        at("sys/block/sda/dev", "8:0\n");
        at("sys/block/sda/removable", "1\n");
        at("sys/block/sda/queue/scheduler", "none [bfq]\n");
        at("sys/block/sda/queue/nr_requests", "2\n");
        at("sys/class/bdi/8:0/max_ratio", "100\n");
        at("sys/class/bdi/8:0/strict_limit", "0\n");
        at(
            "etc/udev/rules.d/60-x.rules",
            "ATTR{queue/scheduler}=\"bfq\"\n",
        );
        at(
            "etc/udev/rules.d/61-x.rules",
            "# ATTR{queue/scheduler}=\"none\"\n",
        );
        root
    }

    #[test]
    fn what_the_machine_is_set_to() {
        let root = tree();
        check(root.path()).unwrap();
        let machine = Machine::look(root.path()).unwrap();
        let [disk] = &machine.disks[..] else {
            panic!("{machine:?}");
        };
        assert_eq!((disk.scheduler.as_deref(), disk.depth), (Some("bfq"), 2));
        assert!(disk.removable);
        assert_eq!(
            disk.limit,
            Some(DirtyLimit {
                max_ratio: 100,
                strict: false
            })
        );
        assert_eq!(machine.scheduler_rules, ["/etc/udev/rules.d/60-x.rules"]);
        assert!(machine.mount_of("/srv/a").unwrap().remote);
        assert!(machine.mounts.iter().all(|it| it.point != "/run/doc"));
    }

    #[test]
    fn where_nothing_can_be_told_a_sentence_says_why() {
        let root = tree();
        fs::remove_dir_all(root.path().join("proc/pressure")).unwrap();
        assert!(matches!(check(root.path()), Err(Error::NoPressure)));
        write(
            root.path().join("proc/self/mountinfo"),
            "1 0 0:1 / /c rw - cgroup c rw\n",
        )
        .unwrap();
        assert!(matches!(check(root.path()), Err(Error::OldCgroups)));
        write(root.path().join(".dockerenv"), "").unwrap();
        assert!(matches!(check(root.path()), Err(Error::Container)));
        // Installed from a container's image, or in a container with the host's processes.
        let namespace = root.path().join("proc/self/ns/pid");
        create_dir_all(namespace.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(FIRST_NAMESPACE, namespace).unwrap();
        assert!(matches!(check(root.path()), Err(Error::OldCgroups)));
        fs::remove_file(root.path().join("proc/stat")).unwrap();
        assert!(matches!(check(root.path()), Err(Error::NoProc(_))));
    }
}
