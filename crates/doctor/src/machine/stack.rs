//! How disks are built on one another, and what each tells of itself.

use super::{Disk, Mounted};
use std::fs;
use std::path::Path;
use sys::programs;

/// Target of a device-mapper volume in a pool.
const THIN: &str = "thin";
/// Word in the status of a pool that is full, or has failed (drivers/md/dm-thin.c, `pool_status`).
const POOL_TROUBLE: [(&str, &str); 3] = [
    ("out_of_data_space", "its thin pool is full"),
    ("Fail", "its thin pool has failed"),
    (" ro ", "its thin pool is read-only"),
];

/// Fills in what is below each disk, and what it tells of itself.
pub(super) fn complete(root: &Path, disks: &mut [Disk], mounts: &[Mounted]) {
    let mapped = disks.iter().any(|it| it.name.starts_with("dm-"));
    // A tree made for a test has no mapper of its own.
    let is_real = root == Path::new("/");
    let asks = |what: &[&str]| match mapped && is_real {
        true => said(what),
        false => String::new(),
    };
    // Without noflush a pool commits first, for which one that is full waits for ever.
    let (tables, states) = (asks(&["table"]), asks(&["status", "--noflush"]));
    for disk in disks.iter_mut() {
        let at = root.join("sys/block").join(&disk.name);
        let text = |name: &str| text(&at.join(name));
        disk.on = below(root, &at, mounts);
        disk.title = text("dm/name").or_else(|| text("device/model"));
        disk.syncing = text("md/sync_action").filter(|it| it != "idle" && it != "frozen");
        if text("dm/suspended").as_deref() == Some("1") {
            disk.trouble = Some("it is suspended (dmsetup suspend)".to_owned());
        }
        if let Some(name) = text("dm/name") {
            disk.targets = targets(&tables, &name);
        }
    }
    let troubles: Vec<_> = disks.iter().map(|it| trouble(it, disks, &states)).collect();
    for (disk, trouble) in disks.iter_mut().zip(troubles) {
        disk.trouble = disk.trouble.take().or(trouble);
    }
}

/// Trouble of the pool that a thin volume is in.
fn trouble(disk: &Disk, disks: &[Disk], states: &str) -> Option<String> {
    if !disk.targets.iter().any(|it| it == THIN) {
        return None;
    }
    let pools = disks.iter().filter(|it| disk.on.contains(&it.name));
    let mut names = pools.filter_map(|it| it.title.as_deref());
    names.find_map(|name| {
        let state = of_name(states, name).next()?;
        let known = POOL_TROUBLE.iter().find(|it| state.contains(it.0));
        known.map(|it| it.1.to_owned())
    })
}

/// What dmsetup says; nothing if it is not there.
fn said(what: &[&str]) -> String {
    let output = programs::output_of("dmsetup", what);
    output.map_or(String::new(), |it| {
        String::from_utf8_lossy(&it.stdout).into_owned()
    })
}

/// Lines of dmsetup's for one volume, without its name.
fn of_name<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |it| {
        let (found, rest) = it.split_once(": ")?;
        (found == name).then_some(rest)
    })
}

/// Types of targets in lines such as `root: 0 524288 snapshot-origin 254:0`.
fn targets(tables: &str, name: &str) -> Vec<String> {
    let lines = of_name(tables, name);
    let types = lines.filter_map(|it| it.split_whitespace().nth(2));
    types.map(str::to_owned).collect()
}

/// Names of the whole disks right below a device.
fn below(root: &Path, at: &Path, mounts: &[Mounted]) -> Vec<String> {
    let entries = fs::read_dir(at.join("slaves")).into_iter().flatten();
    let names = entries.flatten().map(|it| it.file_name());
    let mut found: Vec<String> = names.map(|it| whole(root, &it.to_string_lossy())).collect();
    if let Some(file) = text(&at.join("loop/backing_file")) {
        let holding = mounts
            .iter()
            .filter(|it| Path::new(&file).starts_with(&it.point));
        let mount = holding.max_by_key(|it| it.point.len());
        found.extend(mount.and_then(|it| it.disk.clone()));
    }
    found.sort();
    found.dedup();
    found
}

/// Name of the disk that a partition is on, or of the disk itself.
fn whole(root: &Path, name: &str) -> String {
    let link = root.join("sys/class/block").join(name);
    let real = fs::canonicalize(&link).ok();
    let disk = real.filter(|it| it.join("partition").exists());
    let disk = disk.and_then(|it| Some(it.parent()?.file_name()?.to_string_lossy().into_owned()));
    disk.unwrap_or_else(|| name.to_owned())
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_in_a_full_pool_says_so() {
        let disk = |name: &str, title: &str, on: &[&str], target: &str| Disk {
            name: name.to_owned(),
            title: Some(title.to_owned()),
            on: on.iter().map(|it| (*it).to_owned()).collect(),
            targets: vec![target.to_owned()],
            ..Disk::default()
        };
        let disks = [
            disk("dm-2", "tpool", &["sda"], "thin-pool"),
            disk("dm-3", "images", &["dm-2"], "thin"),
        ];
        let state =
            "tpool: 0 163840 thin-pool 1 22/1024 1280/1280 - out_of_data_space discard_passdown\n";
        assert_eq!(trouble(&disks[0], &disks, state), None);
        let found = trouble(&disks[1], &disks, state);
        assert_eq!(found.as_deref(), Some("its thin pool is full"));
        let well = state.replace("out_of_data_space", "rw");
        assert_eq!(trouble(&disks[1], &disks, &well), None);
        let tables = "root: 0 524288 snapshot-origin 254:0\nbase: 0 9 linear 8:1 0\n";
        assert_eq!(targets(tables, "root"), ["snapshot-origin"]);
    }

    #[test]
    fn a_loop_device_is_on_the_disk_of_its_file() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().join("sys/block/loop0");
        fs::create_dir_all(at.join("loop")).unwrap();
        fs::write(at.join("loop/backing_file"), "/home/vm.img\n").unwrap();
        let mount = |point: &str, disk: &str| Mounted {
            point: point.to_owned(),
            disk: Some(disk.to_owned()),
            ..Mounted::default()
        };
        let mounts = [mount("/", "sda"), mount("/home", "sdb")];
        assert_eq!(below(root.path(), &at, &mounts), ["sdb"]);
    }
}
