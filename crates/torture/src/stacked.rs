//! The scheduler below dm-crypt, a linear volume as LVM makes them, and a RAID1. Data must be right
//! while schedulers change, and everything must be torn down again.

use crate::load::Load;
use crate::test_bed::{FRONTROW, is_debug_kernel, read, write};
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed};
use std::path::Path;
use std::process::Command;

/// Modules that the guest loads for the trial; a kernel may have some built in.
pub(crate) const MODULES: [&str; 7] = [
    "dm_mod",
    "dm_crypt",
    "raid1",
    "aes_generic",
    "ecb",
    "xts",
    "essiv",
];

const DMSETUP: &str = "/bin/dmsetup";
const NAME: &str = "stacked";
/// A key for AES-256 in XTS mode with an arbitrary value.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
                   202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";
const SWITCHES: usize = 10;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    if is_debug_kernel() {
        return Ok(());
    }
    let below = format!("/dev/{}", bed.device);
    on_mapper(bed, &format!("linear {below} 0"))?;
    on_mapper(bed, &format!("crypt aes-xts-plain64 {KEY} 0 {below} 0"))?;
    on_raid1(bed)
}

fn sectors(bed: &TestBed) -> Outcome<u64> {
    let size = read(&format!("/sys/block/{}/size", bed.device))?;
    let size = size.trim();
    size.parse()
        .map_err(|_| Failure::new(format!("its size is '{size}'")))
}

fn on_mapper(bed: &TestBed, target: &str) -> Outcome<()> {
    let table = format!("0 {} {target}", sectors(bed)?);
    dmsetup(&["create", NAME, "--table", &table])?;
    let tried = data_are_right(bed, "dm-0");
    dmsetup(&["remove", "--retry", NAME])?;
    let kind = target.split(' ').next().unwrap_or_default();
    tried.map_err(|failure| Failure::new(format!("under dm-{kind}: {failure}")))
}

/// Runs dmsetup, which creates the node itself without udev; the kernel creates `dm-0`, too.
fn dmsetup(arguments: &[&str]) -> Outcome<()> {
    let mut command = Command::new(DMSETUP);
    command
        .args(arguments)
        .env("DM_DISABLE_UDEV", "1")
        .env("LD_LIBRARY_PATH", sys::arch::NATIVE.libraries);
    let done = command
        .output()
        .map_err(Failure::io("run", Path::new(DMSETUP)))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "dmsetup {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&done.stderr).trim()
        ))),
    }
}

/// Runs the load on the device as a RAID1 with a missing disk.
fn on_raid1(bed: &TestBed) -> Outcome<()> {
    let array = "md0";
    write("/sys/module/md_mod/parameters/new_array", array)?;
    let set = |name: &str, value: &str| write(&format!("/sys/block/{array}/md/{name}"), value);
    set("level", "raid1")?;
    set("raid_disks", "2")?;
    set("metadata_version", "none")?;
    let number = read(&format!("/sys/block/{}/dev", bed.device))?;
    set("new_dev", number.trim())?;
    set(&format!("dev-{}/slot", bed.device), "0")?;
    set("component_size", &(sectors(bed)? / 2).to_string())?;
    set("array_state", "active")?;
    let tried = data_are_right(bed, array);
    set("array_state", "clear")?;
    tried.map_err(|failure| Failure::new(format!("under RAID1: {failure}")))
}

fn data_are_right(bed: &TestBed, above: &str) -> Outcome<()> {
    let upper = TestBed {
        device: above.to_owned(),
        ..bed.clone()
    };
    let volume = Volume::make(&upper)?;
    let load = Load::start(volume.path(), bed.seed);
    let schedulers = bed.schedulers()?;
    for switch in 0..SWITCHES * bed.rounds as usize {
        bed.set("scheduler", FRONTROW)?;
        load.goes_on(10)?;
        bed.set("scheduler", &schedulers[switch % schedulers.len()])?;
        load.goes_on(2)?;
    }
    bed.set("scheduler", FRONTROW)?;
    load.end()?;
    volume.unmount()
}
