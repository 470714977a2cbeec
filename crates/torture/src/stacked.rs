//! The scheduler below dm-crypt, a linear volume as LVM makes them, and a RAID1. Data must be right
//! while schedulers change, and everything must be torn down again.

use crate::load::Load;
use crate::stand::{FRONTROW, is_debug_kernel, read, write};
use crate::volume::Volume;
use crate::{Failure, Outcome, Stand};
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

pub(crate) fn run(stand: &Stand) -> Outcome<()> {
    if is_debug_kernel() {
        return Ok(());
    }
    let below = format!("/dev/{}", stand.device);
    on_mapper(stand, &format!("linear {below} 0"))?;
    on_mapper(stand, &format!("crypt aes-xts-plain64 {KEY} 0 {below} 0"))?;
    on_raid1(stand)
}

fn sectors(stand: &Stand) -> Outcome<u64> {
    let size = read(&format!("/sys/block/{}/size", stand.device))?;
    let size = size.trim();
    size.parse()
        .map_err(|_| Failure::new(format!("its size is '{size}'")))
}

fn on_mapper(stand: &Stand, target: &str) -> Outcome<()> {
    let table = format!("0 {} {target}", sectors(stand)?);
    dmsetup(&["create", NAME, "--table", &table])?;
    let tried = data_are_right(stand, "dm-0");
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
        .env("LD_LIBRARY_PATH", arch::NATIVE.libraries);
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
fn on_raid1(stand: &Stand) -> Outcome<()> {
    let array = "md0";
    write("/sys/module/md_mod/parameters/new_array", array)?;
    let set = |name: &str, value: &str| write(&format!("/sys/block/{array}/md/{name}"), value);
    set("level", "raid1")?;
    set("raid_disks", "2")?;
    set("metadata_version", "none")?;
    let number = read(&format!("/sys/block/{}/dev", stand.device))?;
    set("new_dev", number.trim())?;
    set(&format!("dev-{}/slot", stand.device), "0")?;
    set("component_size", &(sectors(stand)? / 2).to_string())?;
    set("array_state", "active")?;
    let tried = data_are_right(stand, array);
    set("array_state", "clear")?;
    tried.map_err(|failure| Failure::new(format!("under RAID1: {failure}")))
}

fn data_are_right(stand: &Stand, above: &str) -> Outcome<()> {
    let upper = Stand {
        device: above.to_owned(),
        ..stand.clone()
    };
    let volume = Volume::make(&upper)?;
    let load = Load::start(volume.path(), stand.seed);
    let schedulers = stand.schedulers()?;
    for switch in 0..SWITCHES * stand.rounds as usize {
        stand.set("scheduler", FRONTROW)?;
        load.goes_on(10)?;
        stand.set("scheduler", &schedulers[switch % schedulers.len()])?;
        load.goes_on(2)?;
    }
    stand.set("scheduler", FRONTROW)?;
    load.end()?;
    volume.unmount()
}
