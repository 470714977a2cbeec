//! Load while memory is short: for everybody, and in one memory cgroup.

use crate::failure::require;
use crate::load::Load;
use crate::stand::{read, write};
use crate::volume::Volume;
use crate::{Failure, Outcome, Stand, fio};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// What is left for everything; the load's files alone take a third of it, and
/// the device keeps what it is given in memory too.
const LEFT_KIB: u64 = 72 << 10;
const RESERVE_KIB: &str = "8192";
const DURATION: Duration = Duration::from_secs(8);

/// A file of tmpfs that takes all memory but this.
const FILLER: &str = "/tmp/filler";

const CGROUP: &str = "/sys/fs/cgroup/torture";
const CGROUP_BYTES: &str = "25165824";

pub(crate) fn run(stand: &Stand) -> Outcome<()> {
    let volume = Volume::make(stand)?;
    hardly_any_left(stand, &volume)?;
    in_small_cgroup(stand, &volume)?;
    volume.unmount()
}

fn hardly_any_left(stand: &Stand, volume: &Volume) -> Outcome<()> {
    let reserve = read("/proc/sys/vm/min_free_kbytes")?;
    write("/proc/sys/vm/min_free_kbytes", RESERVE_KIB)?;
    let load = Load::start(volume.path(), stand.seed);
    thread::sleep(DURATION / 4);
    fill()?;
    let before = load.operations();
    thread::sleep(DURATION * stand.rounds);
    let during = load.operations() - before;
    let emptied = fs::remove_file(FILLER).map_err(Failure::io("delete", Path::new(FILLER)));
    load.end()?;
    emptied?;
    write("/proc/sys/vm/min_free_kbytes", reserve.trim())?;
    require(during > 0, || {
        "with hardly any memory left the load did not get on at all".to_owned()
    })
}

fn fill() -> Outcome<()> {
    let path = Path::new(FILLER);
    let mut filler = File::create(path).map_err(Failure::io("make", path))?;
    let mebibyte = vec![1; 1 << 20];
    while available_kib()? > LEFT_KIB {
        filler
            .write_all(&mebibyte)
            .map_err(Failure::io("fill", path))?;
    }
    Ok(())
}

fn available_kib() -> Outcome<u64> {
    meminfo_kib("MemAvailable")
}

/// A line of /proc/meminfo.
pub(crate) fn meminfo_kib(name: &str) -> Outcome<u64> {
    let text = read("/proc/meminfo")?;
    let line = text
        .lines()
        .find(|line| line.split(':').next() == Some(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    value.ok_or_else(|| Failure::new(format!("/proc/meminfo has no {name}")))
}

fn in_small_cgroup(stand: &Stand, volume: &Volume) -> Outcome<()> {
    write("/sys/fs/cgroup/cgroup.subtree_control", "+memory +io")?;
    fs::create_dir(CGROUP).map_err(Failure::io("make", Path::new(CGROUP)))?;
    write(&format!("{CGROUP}/memory.max"), CGROUP_BYTES)?;
    let entrance = Path::new(CGROUP).join("cgroup.procs");
    let entrance = File::options()
        .write(true)
        .open(&entrance)
        .map_err(Failure::io("open", &entrance))?;
    let mut command = fio::fio(stand, 32);
    command.arg(format!("--directory={}", volume.path().display()));
    let options = "rw=randwrite bs=16k ioengine=psync fsync=32";
    fio::job(&mut command, "confined", options);
    // SAFETY: only a write, which is async-signal-safe, is made after the fork.
    unsafe { command.pre_exec(move || (&entrance).write_all(b"0")) };
    fio::verified(command)?;
    fs::remove_dir(CGROUP).map_err(Failure::io("remove", Path::new(CGROUP)))
}
