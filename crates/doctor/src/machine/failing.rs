//! Disks that report errors or that they are worn out: by the kernel's log, by the attributes of eMMC and
//! UFS, and by SMART.

use super::Machine;
use record::number;
use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Failures of requests that mean the device or the way to it, as the kernel names them (`blk_errors` in
/// block/blk-core.c). The others are requests that the device does not know, or a file system's matter.
const FAILURES: [&str; 5] = [
    "I/O",
    "timeout",
    "critical medium",
    "protection",
    "recoverable transport",
];
/// Longest record of the kernel's log (`PRINTK_MESSAGE_MAX`, and room for its fields).
const RECORD_BYTES: usize = 16 << 10;
/// Estimates of eMMC and UFS: from 1, 0 to 10 % used, in tenths; 11 is more than all.
const LIFE_USED: u64 = 10;
/// State of the spare blocks (`PRE_EOL_INFO`, `bPreEOLInfo`): from 2 on 80 % of them are used.
const SPARE_SHORT: u64 = 2;
/// Directories of smartctl.
const PROGRAMS: [&str; 3] = [
    "/usr/sbin/smartctl",
    "/usr/local/sbin/smartctl",
    "/usr/bin/smartctl",
];
/// Longest time that smartctl may take; a disk that fails may not answer it.
const SMART: Duration = Duration::from_secs(5);
/// SMART attributes that count sectors which could not be read, or were not, at last.
const SECTORS: [(u64, &str); 2] = [
    (197, "sectors that it could not read so far"),
    (198, "sectors that it cannot read"),
];

/// Failed requests of a disk.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failed {
    count: u64,
    last: String,
    /// Time since boot.
    last_us: u64,
}

/// Sentences on disks that are worn out, by their own attributes and SMART.
pub(crate) fn worn(root: &Path, machine: &Machine) -> Vec<String> {
    let physical = machine.disks.iter().filter(|it| it.on.is_empty());
    let mut said = Vec::new();
    for disk in physical {
        let own = flash(root, &disk.name).or_else(|| smart(root, &disk.name));
        said.extend(own.map(|it| {
            let title = machine.titled(&disk.name);
            format!("{title} {it}: back up what is on it, and replace it")
        }));
    }
    said
}

/// Sentences on disks whose requests failed since boot, by the kernel's log. Those that can be taken out
/// count while they are mounted: an empty floppy drive fails each request.
pub(crate) fn failed(root: &Path, machine: &Machine) -> Vec<String> {
    let now = clock_gettime(ClockId::Monotonic);
    let now_us = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000;
    let log = kernel_log(&root.join("dev/kmsg"));
    let counts = |name: &str| {
        let is_below = |it: &&str| machine.stack(it).contains(&name);
        let mut mounted = machine.mounts.iter().filter_map(|it| it.disk.as_deref());
        let disk = machine.disk(name);
        disk.is_some_and(|it| !it.removable || mounted.any(|it| is_below(&it)))
    };
    let failed = by_disk(&log).into_iter().filter(|(name, _)| counts(name));
    let sentence = |(name, it): (String, Failed)| {
        let ago = number::with_unit(now_us.saturating_sub(it.last_us) as f64 * 1e3, "ns");
        let (title, count, last) = (machine.titled(&name), it.count, it.last);
        let plural = if count == 1 { "request" } else { "requests" };
        format!(
            "{title} reports errors: {count} {plural} failed, the last {ago} ago ({last} error): back up what is on it, and look at dmesg and at its cable"
        )
    };
    failed.map(sentence).collect()
}

/// Records that the kernel's log still has; empty where this user may not read it.
fn kernel_log(path: &Path) -> String {
    let mut options = OpenOptions::new();
    let options = options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    let Ok(mut file) = options.open(path) else {
        return String::new();
    };
    let mut log = Vec::new();
    let mut record = vec![0; RECORD_BYTES];
    loop {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(bytes) => log.extend_from_slice(&record[..bytes]),
            // Overwritten before it was read.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&log).into_owned()
}

/// Failed requests in records such as `3,1,5140900,-;I/O error, dev sda, sector 8 op 0x0:(READ) …`.
fn by_disk(log: &str) -> BTreeMap<String, Failed> {
    let mut found: BTreeMap<String, Failed> = BTreeMap::new();
    for line in log.lines() {
        // A process may write to the log as well; its records are of another facility than the kernel's.
        let Some((fields, text)) = line.split_once(';') else {
            continue;
        };
        let mut fields = fields.split(',').map(str::parse::<u64>);
        let (Some(Ok(0..8)), Some(_), Some(Ok(at_us))) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let text = text.strip_prefix("blk_update_request: ").unwrap_or(text);
        let Some((kind, rest)) = text.split_once(" error, dev ") else {
            continue;
        };
        let Some((disk, _)) = rest.split_once(", sector ") else {
            continue;
        };
        if FAILURES.contains(&kind) {
            let of_disk = found.entry(disk.to_owned()).or_default();
            of_disk.count += 1;
            kind.clone_into(&mut of_disk.last);
            of_disk.last_us = at_us;
        }
    }
    found
}

/// Wear of an eMMC or UFS device, as words that follow its name.
fn flash(root: &Path, name: &str) -> Option<String> {
    let device = fs::canonicalize(root.join("sys/block").join(name).join("device")).ok()?;
    let numbers = |path: PathBuf| -> Vec<u64> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let words = text
            .split_whitespace()
            .filter_map(|it| it.strip_prefix("0x"));
        words
            .filter_map(|it| u64::from_str_radix(it, 16).ok())
            .collect()
    };
    // UFS's are those of the controller, of which a disk is a part.
    let mut above = device.ancestors();
    let of_ufs = above.find_map(|it| Some(it.join("health_descriptor")).filter(|it| it.is_dir()));
    let (used, spare) = match of_ufs {
        Some(health) => {
            let mut used = numbers(health.join("life_time_estimation_a"));
            used.extend(numbers(health.join("life_time_estimation_b")));
            (used, numbers(health.join("eol_info")))
        }
        None => (
            numbers(device.join("life_time")),
            numbers(device.join("pre_eol_info")),
        ),
    };
    if spare.iter().any(|it| *it >= SPARE_SHORT) {
        return Some("says that most of its spare blocks are used".to_owned());
    }
    match used.into_iter().max()? {
        LIFE_USED => Some("says that 90 % or more of its life is used".to_owned()),
        used if used > LIFE_USED => Some("says that all of its life is used".to_owned()),
        _ => None,
    }
}

/// Health by SMART, as words that follow the disk's name, where smartctl is installed.
fn smart(root: &Path, name: &str) -> Option<String> {
    let has_smart = ["sd", "nvme", "hd"].iter().any(|it| name.starts_with(it));
    // A tree made for a test says nothing of this machine's disks.
    if !has_smart || root != Path::new("/") || !rustix::process::geteuid().is_root() {
        return None;
    }
    let program = PROGRAMS.iter().find(|it| Path::new(it).exists())?;
    health(&smartctl(program, name)?)
}

/// smartctl's report on a disk, unless that sleeps or does not answer in time.
fn smartctl(program: &str, name: &str) -> Option<serde_json::Value> {
    let mut child = Command::new(program)
        .args(["-n", "standby", "-H", "-A", "-j"])
        .arg(format!("/dev/{name}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output: Option<File> = child
        .stdout
        .take()
        .map(|it| File::from(std::os::fd::OwnedFd::from(it)));
    let begun = Instant::now();
    // Its text fits into the pipe.
    while child.try_wait().ok()?.is_none() {
        if begun.elapsed() >= SMART {
            child.kill().ok()?;
            // Blocked in the kernel it ends later, or not at all: nobody waits for it.
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let mut text = String::new();
    output.as_mut()?.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn health(told: &serde_json::Value) -> Option<String> {
    if told["smart_status"]["passed"] == false {
        return Some("says by SMART that it fails".to_owned());
    }
    let nvme = &told["nvme_smart_health_information_log"];
    if nvme["critical_warning"].as_u64().is_some_and(|it| it > 0) {
        return Some("says by SMART that it fails (critical warning)".to_owned());
    }
    if let Some(errors) = nvme["media_errors"].as_u64().filter(|it| *it > 0) {
        return Some(format!("has lost data {errors} times, by SMART"));
    }
    let attributes = told["ata_smart_attributes"]["table"].as_array()?;
    SECTORS.iter().find_map(|(id, what)| {
        let attribute = attributes.iter().find(|it| it["id"] == *id)?;
        let count = attribute["raw"]["value"].as_u64().filter(|it| *it > 0)?;
        Some(format!("has {count} {what}, by SMART"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Mounted;
    use std::fs::{create_dir_all, write};

    const LOG: &str = "6,1,100,-;sda: sda1 sda2\n\
        3,2,2000000,-;blk_update_request: I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0\n\
        3,3,3000000,-;critical medium error, dev sda, sector 8 op 0x0:(READ) flags 0x0\n \
        SUBSYSTEM=block\n\
        3,4,3000001,-;critical target error, dev sda, sector 8 op 0x3:(DISCARD) flags 0x0\n\
        3,5,3000002,-;I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0\n\
        3,6,3000003,-;I/O error, dev gone, sector 0 op 0x0:(READ) flags 0x0\n\
        11,7,3000004,-;I/O error, dev sdb, sector 0 op 0x0:(READ) flags 0x0\n";

    fn disk(name: &str, removable: bool) -> crate::machine::Disk {
        crate::machine::Disk {
            name: name.to_owned(),
            removable,
            ..Default::default()
        }
    }

    #[test]
    fn failed_requests_of_disks_that_are_there_are_told() {
        let root = tempfile::tempdir().unwrap();
        create_dir_all(root.path().join("dev")).unwrap();
        write(root.path().join("dev/kmsg"), LOG).unwrap();
        let mut machine = Machine {
            disks: vec![disk("fd0", true), disk("sda", false), disk("sdb", false)],
            ..Default::default()
        };
        let told = failed(root.path(), &machine);
        assert_eq!(told.len(), 1, "{told:?}");
        let begin = "sda reports errors: 2 requests failed, the last ";
        assert!(told[0].starts_with(begin), "{told:?}");
        assert!(told[0].contains("(critical medium error)"), "{told:?}");
        machine.mounts.push(Mounted {
            disk: Some("fd0".to_owned()),
            ..Default::default()
        });
        assert_eq!(failed(root.path(), &machine).len(), 2);
    }

    #[test]
    fn flash_tells_how_much_of_its_life_is_used() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str, text: &str| {
            let path = root.path().join("sys").join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        };
        let told = |name: &str| flash(root.path(), name).unwrap_or_default();
        at("block/mmcblk0/device/life_time", "0x01 0x09\n");
        at("block/mmcblk0/device/pre_eol_info", "0x01\n");
        assert_eq!(told("mmcblk0"), "");
        at("block/mmcblk0/device/life_time", "0x01 0x0b\n");
        assert_eq!(told("mmcblk0"), "says that all of its life is used");
        at("block/mmcblk0/device/pre_eol_info", "0x02\n");
        assert!(told("mmcblk0").contains("spare blocks"));
        let health = "devices/ufshc/health_descriptor";
        at(&format!("{health}/life_time_estimation_a"), "0x02\n");
        at(&format!("{health}/life_time_estimation_b"), "0x0A\n");
        at(&format!("{health}/eol_info"), "0x01\n");
        let lun = "devices/ufshc/host0/target0/0:0:0:0";
        at(&format!("{lun}/model"), "");
        create_dir_all(root.path().join("sys/block/sda")).unwrap();
        let link = root.path().join("sys/block/sda/device");
        std::os::unix::fs::symlink(root.path().join("sys").join(lun), link).unwrap();
        assert!(told("sda").contains("90 %"));
    }

    #[test]
    fn smart_says_what_fails() {
        let told = |text: &str| health(&serde_json::from_str(text).unwrap());
        assert_eq!(told(r#"{"smart_status": {"passed": true}}"#), None);
        // A disk that sleeps.
        assert_eq!(told(r#"{"smartctl": {"exit_status": 2}}"#), None);
        let fails = told(r#"{"smart_status": {"passed": false}}"#);
        assert!(fails.unwrap().contains("fails"));
        let nvme = r#"{"smart_status": {"passed": true}, "nvme_smart_health_information_log": {"critical_warning": 0, "media_errors": 3}}"#;
        assert!(told(nvme).unwrap().contains("3 times"));
        let sectors = r#"{"ata_smart_attributes": {"table": [{"id": 5, "raw": {"value": 8}}, {"id": 197, "raw": {"value": 16}}]}}"#;
        assert!(told(sectors).unwrap().starts_with("has 16 sectors"));
        let sound = sectors.replace("16", "0");
        assert_eq!(told(&sound), None);
    }
}
