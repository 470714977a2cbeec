//! Data on the machine in a recording: clocks, disks, mounts, cgroups.

use super::Error;
use super::programs::Programs;
use crate::event::Dev;
use crate::recording::{Disk, Header, Mount, Partition, Target};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sys::device::all_mounts;

/// The header of a recording that begins now.
pub fn header(target: Target, cpus: usize, programs: &Programs) -> Header {
    let root = Path::new("/");
    let begin_ns = clock_ns(libc::CLOCK_MONOTONIC);
    Header {
        frontrow: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: line(&root.join("proc/sys/kernel/osrelease")),
        machine: std::env::consts::ARCH.to_owned(),
        page_bytes: page_bytes() as u64,
        cpus: cpus as u32,
        begin_ns,
        realtime_offset_ns: clock_ns(libc::CLOCK_REALTIME) as i64 - begin_ns as i64,
        target,
        disks: disks(root),
        mounts: mounts(root),
        missing: programs.missing.clone(),
        tells_taken: programs.tell_taken(),
    }
}

/// Size of a page of memory, in bytes.
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Time of a clock, in nanoseconds. Recordings use `CLOCK_MONOTONIC`.
pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is valid, and these clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn line(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

fn number(path: &Path) -> u64 {
    line(path).parse().unwrap_or(0)
}

fn dev(path: &Path) -> Option<Dev> {
    let text = line(path);
    parse_dev(&text)
}

fn parse_dev(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some(Dev::new(major.parse().ok()?, minor.parse().ok()?))
}

/// The entries of a directory by name; empty if it cannot be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<_> = read.filter_map(|it| Some(it.ok()?.path())).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // sysfs writes a slash in a device's name as an exclamation mark.
    name.replace('!', "/")
}

fn disks(root: &Path) -> Vec<Disk> {
    let disks = entries(&root.join("sys/block"));
    disks.iter().filter_map(|path| disk(path)).collect()
}

fn disk(path: &Path) -> Option<Disk> {
    let partitions = entries(path);
    Some(Disk {
        dev: dev(&path.join("dev"))?,
        name: name_of(path),
        sectors: number(&path.join("size")),
        scheduler: chosen(&line(&path.join("queue/scheduler"))),
        nr_requests: number(&path.join("queue/nr_requests")) as u32,
        partitions: partitions.iter().filter_map(|it| partition(it)).collect(),
    })
}

fn partition(path: &Path) -> Option<Partition> {
    if !path.join("partition").is_file() {
        return None;
    }
    Some(Partition {
        dev: dev(&path.join("dev"))?,
        name: name_of(path),
        start_sector: number(&path.join("start")),
        sectors: number(&path.join("size")),
    })
}

/// The chosen one of the kernel's list of schedulers, which is in brackets.
fn chosen(schedulers: &str) -> String {
    let begin = schedulers.split_once('[').map(|(_, rest)| rest);
    let name = begin.and_then(|rest| rest.split_once(']'));
    name.map_or(schedulers, |(name, _)| name).to_owned()
}

/// File systems without a disk whose files a server or another file system has.
const SERVED: [&str; 9] = [
    "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "virtiofs", "overlay",
];

/// File systems with users' files: those of disks, servers and processes.
fn mounts(root: &Path) -> Vec<Mount> {
    let without_disk = line(&root.join("proc/filesystems"));
    let nodev: Vec<_> = without_disk
        .lines()
        .filter_map(|it| it.strip_prefix("nodev\t"))
        .collect();
    let mounts = all_mounts(root).unwrap_or_default().into_iter();
    let with_files = mounts.filter(|(_, it)| {
        let kind = it.filesystem.as_str();
        let is_served = kind.starts_with("fuse") || SERVED.contains(&kind);
        is_served || !nodev.contains(&kind)
    });
    with_files
        .filter_map(|(point, it)| {
            Some(Mount {
                dev: parse_dev(&it.number)?,
                root: it.top,
                path: point.to_string_lossy().into_owned(),
                kind: it.filesystem,
            })
        })
        .collect()
}

/// Mount point of the cgroup v2 hierarchy; None if it is not mounted.
pub fn cgroup_root() -> Option<PathBuf> {
    sys::device::cgroup_root(Path::new("/")).ok().flatten()
}

/// Ids and paths of all cgroups below `root`; `/` for the root itself.
pub fn cgroups(root: &Path) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        // The cgroup may have been removed meanwhile.
        let Ok(metadata) = fs::symlink_metadata(&dir) else {
            continue;
        };
        if !metadata.is_dir() {
            continue;
        }
        let below = dir.strip_prefix(root).unwrap_or(Path::new(""));
        found.push((metadata.ino(), format!("/{}", below.display())));
        let entries = fs::read_dir(&dir).into_iter().flatten();
        open.extend(entries.filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_type().ok()?.is_dir().then(|| entry.path())
        }));
    }
    found
}

/// Finds a cgroup by its path in the file system, or below the root of the hierarchy.
pub fn find_cgroup(path: &Path) -> Result<Target, Error> {
    let no_target = || Error::NoTarget(format!("cgroup {}", path.display()));
    let root = cgroup_root().ok_or_else(no_target)?;
    let below = path.strip_prefix("/").unwrap_or(path);
    let candidates = [path.to_owned(), root.join(below)];
    let found = candidates
        .iter()
        .filter_map(|it| fs::canonicalize(it).ok())
        .find(|it| it.starts_with(&root) && it.is_dir());
    let dir = found.ok_or_else(no_target)?;
    let metadata = fs::metadata(&dir).map_err(|_: io::Error| no_target())?;
    let below = dir.strip_prefix(&root).unwrap_or(Path::new(""));
    Ok(Target::Cgroup {
        path: format!("/{}", below.display()),
        id: metadata.ino(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_disks_and_servers_are_named_and_others_left_out() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let table = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw\n\
            37 35 0:22 / /tmp rw - tmpfs tmpfs rw\nnonsense\n\
            38 35 0:30 / /cloud rw - fuse.sshfs host: rw\n";
        fs::write(root.path().join("proc/self/mountinfo"), table).unwrap();
        fs::write(
            root.path().join("proc/filesystems"),
            "nodev\ttmpfs\nnodev\tfuse\n\text3\n",
        )
        .unwrap();
        let expected = Mount {
            dev: Dev::new(98, 0),
            root: "/mnt1".to_owned(),
            path: "/mnt 2".to_owned(),
            kind: "ext3".to_owned(),
        };
        let served = Mount {
            dev: Dev::new(0, 30),
            root: "/".to_owned(),
            path: "/cloud".to_owned(),
            kind: "fuse.sshfs".to_owned(),
        };
        assert_eq!(mounts(root.path()), [expected, served]);
    }

    #[test]
    fn the_chosen_scheduler_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn disks_and_their_partitions_come_from_sysfs() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sys/block/mmcblk0/dev", "179:0\n");
        write("sys/block/mmcblk0/size", "62333952\n");
        write("sys/block/mmcblk0/queue/scheduler", "none [bfq]\n");
        write("sys/block/mmcblk0/queue/nr_requests", "64\n");
        write("sys/block/mmcblk0/mmcblk0p2/partition", "2\n");
        write("sys/block/mmcblk0/mmcblk0p2/dev", "179:2\n");
        write("sys/block/mmcblk0/mmcblk0p2/start", "532480\n");
        write("sys/block/mmcblk0/mmcblk0p2/size", "61801472\n");
        let found = disks(root.path());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].scheduler, "bfq");
        assert_eq!(found[0].nr_requests, 64);
        assert_eq!(found[0].partitions.len(), 1);
        assert_eq!(found[0].partitions[0].dev, Dev::new(179, 2));
        assert_eq!(found[0].partitions[0].start_sector, 532_480);
    }

    #[test]
    fn cgroups_are_found_with_paths_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("system.slice/a.service")).unwrap();
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        let mut paths: Vec<_> = cgroups(root.path()).into_iter().map(|it| it.1).collect();
        paths.sort();
        assert_eq!(paths, ["/", "/system.slice", "/system.slice/a.service"]);
    }
}
