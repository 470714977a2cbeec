//! Disks that nobody tells which blocks are free.

use super::{Disk, Mounted};
use std::fs;
use std::path::Path;

/// File systems that send discards only if they are asked to.
const ASKED: [&str; 4] = ["ext4", "xfs", "btrfs", "f2fs"];
/// Directory that says that systemd's timers run here.
const SYSTEMD: &str = "etc/systemd/system";
/// What runs fstrim now and then.
const TRIMS: [&str; 4] = [
    "etc/systemd/system/timers.target.wants/fstrim.timer",
    "usr/lib/systemd/system/timers.target.wants/fstrim.timer",
    "etc/cron.weekly/fstrim",
    "etc/cron.daily/fstrim",
];

/// Names of disks that take discards and get none: no mount of theirs has the option `discard`, and
/// no timer runs fstrim. None on a system without systemd, where other things may run it.
pub fn untrimmed(root: &Path, disks: &[Disk], mounts: &[Mounted]) -> Vec<String> {
    let is_there = |path: &&str| root.join(path).symlink_metadata().is_ok();
    if !is_there(&SYSTEMD) || TRIMS.iter().any(is_there) {
        return Vec::new();
    }
    let table = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    let names = disks.iter().map(|it| &it.name);
    let untrimmed = names.filter(|name| {
        let of_disk = mounts.iter().filter(|it| it.disk.as_ref() == Some(*name));
        let mut asked = of_disk.filter(|it| ASKED.contains(&it.filesystem.as_str()));
        takes_discards(root, name) && asked.any(|it| !needs_none(&table, &it.point))
    });
    untrimmed.cloned().collect()
}

fn takes_discards(root: &Path, disk: &str) -> bool {
    let path = format!("sys/block/{disk}/queue/discard_max_bytes");
    let text = fs::read_to_string(root.join(path)).unwrap_or_default();
    text.trim().parse::<u64>().is_ok_and(|bytes| bytes > 0)
}

/// Whether the mount at `point` is read-only or sends discards. A line is
/// `36 35 8:1 / /home rw,noatime … - ext4 /dev/sda1 rw,discard`.
fn needs_none(table: &str, point: &str) -> bool {
    let line = table.lines().rev().find(|line| {
        let mut fields = line.split(' ');
        fields.nth(4) == Some(point)
    });
    let Some(line) = line else {
        return true;
    };
    let options = line.rsplit(' ').next().unwrap_or_default();
    let is_read_only = line
        .split(' ')
        .nth(5)
        .is_some_and(|it| it.starts_with("ro"));
    is_read_only
        || options
            .split(',')
            .any(|it| it == "discard" || it.starts_with("discard=") || it == "ro")
}

#[cfg(test)]
mod tests {
    use super::super::Machine;
    use super::super::tests::tree;
    use std::fs;
    use std::path::Path;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A system with systemd, whose disk takes discards or not.
    fn untrimmed(options: &str, discard_max_bytes: &str, timer: Option<&str>) -> Vec<String> {
        let root = tree();
        let mount = format!("1 0 8:0 / / rw - ext4 /dev/sda {options}\n");
        write(root.path(), "proc/self/mountinfo", &mount);
        let bytes = "sys/block/sda/queue/discard_max_bytes";
        write(root.path(), bytes, discard_max_bytes);
        write(root.path(), "etc/systemd/system/dbus.service", "");
        if let Some(timer) = timer {
            write(root.path(), timer, "");
        }
        fs::create_dir_all(root.path().join("sys/dev/block")).unwrap();
        let link = root.path().join("sys/dev/block/8:0");
        std::os::unix::fs::symlink("../../block/sda", link).unwrap();
        Machine::look(root.path()).unwrap().untrimmed
    }

    #[test]
    fn a_disk_that_takes_discards_and_gets_none_is_named() {
        assert_eq!(untrimmed("rw", "4096\n", None), ["sda"]);
        let timer = "etc/systemd/system/timers.target.wants/fstrim.timer";
        for (options, bytes, timer) in [
            ("rw,discard", "4096\n", None),
            ("rw,discard=async", "4096\n", None),
            ("ro", "4096\n", None),
            ("rw", "0\n", None),
            ("rw", "4096\n", Some(timer)),
            ("rw", "4096\n", Some("etc/cron.weekly/fstrim")),
        ] {
            let found = untrimmed(options, bytes, timer);
            assert!(found.is_empty(), "{options} {bytes} {timer:?}: {found:?}");
        }
    }
}
