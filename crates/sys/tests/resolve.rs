//! Resolution of all forms of a user's argument to the right disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use sys::device::{Device, Error, Schedulers};
use tempfile::TempDir;

/// A machine with a disk of two partitions, an encrypted volume on the second one, and a RAM disk.
fn machine() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    disk(at, "pci0/block/sda", "8:0", "none [mq-deadline] kyber", 1);
    disk(at, "virtual/block/dm-0", "254:0", "none", 0);
    disk(at, "virtual/block/zram0", "253:0", "none", 0);
    fs::create_dir_all(at.join("sys/devices/virtual/block/dm-0/slaves/sda2")).unwrap();
    write(at, "sys/devices/pci0/block/sda/device/model", "EMMC 5.1");
    for (partition, number) in [("sda1", "8:1"), ("sda2", "8:2")] {
        let directory = format!("pci0/block/sda/{partition}");
        write(at, &format!("sys/devices/{directory}/partition"), "1");
        link(at, &directory, partition, number);
    }
    for node in ["sda", "sda1", "sda2", "dm-0", "zram0", "null"] {
        write(at, &format!("dev/{node}"), "");
    }
    fs::create_dir_all(at.join("dev/mapper")).unwrap();
    symlink("../dm-0", at.join("dev/mapper/home")).unwrap();
    for directory in ["home/me", "tmp", "pool", "with space"] {
        fs::create_dir_all(at.join(directory)).unwrap();
    }
    write(
        at,
        "proc/self/mountinfo",
        "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
         22 21 254:0 / /home rw shared:1 - ext4 /dev/mapper/home rw\n\
         23 21 0:30 / /tmp rw - tmpfs tmpfs rw\n\
         24 21 0:40 /sub /pool rw - btrfs /dev/sda2 rw\n\
         25 21 0:41 / /with\\040space rw - btrfs /dev/sda2 rw\n",
    );
    root
}

fn disk(root: &Path, directory: &str, number: &str, schedulers: &str, hardware_queues: usize) {
    for (attribute, value) in [
        ("size", "2048"),
        ("diskseq", "7"),
        ("queue/scheduler", schedulers),
        ("queue/nr_requests", "64"),
        ("queue/rotational", "0"),
        ("queue/wbt_lat_usec", "2000"),
    ] {
        write(root, &format!("sys/devices/{directory}/{attribute}"), value);
    }
    for queue in 0..hardware_queues {
        fs::create_dir_all(root.join(format!("sys/devices/{directory}/mq/{queue}"))).unwrap();
    }
    let (_, name) = directory.rsplit_once('/').unwrap();
    link(root, directory, name, number);
    link_in(root, "sys/block", name, directory);
}

fn link(root: &Path, directory: &str, name: &str, number: &str) {
    link_in(root, "sys/class/block", name, directory);
    link_in(root, "sys/dev/block", number, directory);
}

fn link_in(root: &Path, links: &str, name: &str, directory: &str) {
    fs::create_dir_all(root.join(links)).unwrap();
    let up = "../".repeat(links.split('/').count() - 1);
    symlink(
        format!("{up}devices/{directory}"),
        root.join(links).join(name),
    )
    .unwrap();
}

fn write(root: &Path, path: &str, text: &str) {
    fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
    fs::write(root.join(path), format!("{text}\n")).unwrap();
}

fn resolved(root: &TempDir, what: &str) -> String {
    Device::resolve(root.path(), what)
        .unwrap_or_else(|error| panic!("{what}: {error}"))
        .name()
        .to_owned()
}

#[test]
fn a_disk_has_many_names() {
    let root = machine();
    for (what, disk) in [
        ("sda", "sda"),
        ("/dev/sda", "sda"),
        ("sda1", "sda"),
        ("/dev/sda2", "sda"),
        ("/dev/mapper/home", "dm-0"),
        ("/", "sda"),
        ("/home/me", "dm-0"),
        ("/pool", "sda"),
        ("/with space", "sda"),
    ] {
        assert_eq!(resolved(&root, what), disk, "{what}");
    }
}

#[test]
fn what_is_on_no_disk_is_refused() {
    let root = machine();
    for (what, reason) in [
        ("sdz", "sdz is neither"),
        ("/dev/sdz", "/dev/sdz is neither"),
        ("/no/such/file", "/no/such/file is neither"),
        ("/tmp", "/tmp is on a tmpfs file system"),
    ] {
        let error = Device::resolve(root.path(), what).unwrap_err().to_string();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[test]
fn a_link_may_not_lead_out_of_the_root() {
    let root = machine();
    symlink("/etc", root.path().join("out")).unwrap();
    let error = Device::resolve(root.path(), "/out").unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error}");
}

#[test]
fn all_disks_are_listed() {
    let root = machine();
    let disks = Device::all(root.path()).unwrap();
    let names: Vec<_> = disks.iter().map(Device::name).collect();
    assert_eq!(names, ["dm-0", "sda", "zram0"]);
}

#[test]
fn a_disk_says_what_it_is() {
    let root = machine();
    let disk = Device::resolve(root.path(), "sda").unwrap();
    let identity = disk.identity().unwrap();
    assert_eq!(identity.name, "sda");
    assert_eq!(identity.model.as_deref(), Some("EMMC 5.1"));
    assert_eq!(identity.size_bytes, 1 << 20);
    assert!(!identity.rotational);
    assert_eq!(identity.hardware_queues, 1);
    assert!(disk.below().unwrap().is_empty());
    assert_eq!(disk.nr_requests().unwrap(), 64);
    assert_eq!(disk.sequence().unwrap(), 7);
    assert_eq!(
        disk.queue_attribute("scheduler"),
        Path::new("/sys/block/sda/queue/scheduler")
    );
}

#[test]
fn the_scheduler_in_brackets_is_active() {
    let root = machine();
    let disk = Device::resolve(root.path(), "sda").unwrap();
    let expected = Schedulers {
        active: "mq-deadline".into(),
        available: ["none", "mq-deadline", "kyber"].map(String::from).to_vec(),
    };
    assert_eq!(disk.schedulers().unwrap(), Some(expected));
}

#[test]
fn below_a_volume_on_an_encrypted_one_is_the_partition() {
    let root = machine();
    let blocks = root.path().join("sys/devices/virtual/block");
    let slaves = blocks.join("dm-0/slaves");
    fs::remove_dir_all(&slaves).unwrap();
    fs::create_dir_all(&slaves).unwrap();
    fs::create_dir_all(blocks.join("dm-1/slaves/sda3")).unwrap();
    symlink("../../dm-1", slaves.join("dm-1")).unwrap();
    let volume = Device::resolve(root.path(), "/home").unwrap();
    assert_eq!(volume.below().unwrap(), ["sda3"]);
}

#[test]
fn a_volume_has_no_scheduler_but_says_what_is_below() {
    let root = machine();
    let volume = Device::resolve(root.path(), "/home").unwrap();
    assert_eq!(volume.schedulers().unwrap(), None);
    assert_eq!(volume.below().unwrap(), ["sda2"]);
    assert_eq!(volume.hardware_queues().unwrap(), 0);

    // Newer kernels do not have the attribute.
    let scheduler = root
        .path()
        .join("sys/devices/virtual/block/dm-0/queue/scheduler");
    fs::remove_file(scheduler).unwrap();
    assert_eq!(volume.schedulers().unwrap(), None);
}

#[test]
fn a_kernel_without_writeback_throttling_has_no_latency_target() {
    let root = machine();
    let disk = Device::resolve(root.path(), "sda").unwrap();
    assert_eq!(disk.wbt_lat_usec().unwrap(), Some(2000));
    let target = root
        .path()
        .join("sys/devices/pci0/block/sda/queue/wbt_lat_usec");
    fs::write(&target, "soon\n").unwrap();
    let error = disk.wbt_lat_usec().unwrap_err();
    assert!(error.to_string().contains("\"soon\""), "{error}");
    fs::remove_file(&target).unwrap();
    assert_eq!(disk.wbt_lat_usec().unwrap(), None);
}
