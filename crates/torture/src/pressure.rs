//! Load under memory pressure: for the whole machine, and in one memory cgroup.

use crate::load::Load;
use crate::test_bed::{read, set_controllers, write};
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed, fio};
use rustix::mount::{MountFlags, UnmountFlags};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::thread;
use std::time::Duration;
use sys::memory;

/// Memory left for everything. The load's files alone take a quarter of it, and the device stores
/// its data in memory, too.
const LEFT_KIB: u64 = 96 << 10;
const RESERVE_KIB: &str = "8192";
const DURATION: Duration = Duration::from_secs(8);

/// A tmpfs without a limit, whose files cannot be reclaimed.
const HOARD: &str = "/tmp/hoard";

const CGROUP: &str = "/sys/fs/cgroup/torture";
const CGROUP_BYTES: &str = "25165824";

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    // The first cgroup with a memory controller makes the kernel change its own code. QEMU 7.2 may
    // miss such a change in code that another CPU runs at that time.
    make_small_cgroup()?;
    let volume = Volume::make(bed)?;
    hardly_any_left(bed, &volume)?;
    in_small_cgroup(bed, &volume)?;
    volume.unmount()
}

fn hardly_any_left(bed: &TestBed, volume: &Volume) -> Outcome<()> {
    let reserve = read("/proc/sys/vm/min_free_kbytes")?;
    write("/proc/sys/vm/min_free_kbytes", RESERVE_KIB)?;
    let hoard = Hoard::all_but(LEFT_KIB)?;
    let load = Load::start(volume.path(), bed.seed);
    thread::sleep(DURATION * bed.rounds);
    load.goes_on(1)?;
    drop(hoard);
    load.end()?;
    write("/proc/sys/vm/min_free_kbytes", reserve.trim())
}

/// Memory that is not available to others until drop.
struct Hoard;

impl Hoard {
    /// Takes memory until this much is left.
    fn all_but(left_kib: u64) -> Outcome<Hoard> {
        let place = Path::new(HOARD);
        fs::create_dir_all(place).map_err(Failure::io("make", place))?;
        rustix::mount::mount("none", place, "tmpfs", MountFlags::empty(), c"size=100%")
            .map_err(|errno| Failure::io("mount a tmpfs on", place)(errno.into()))?;
        let hoard = Hoard;
        let path = place.join("file");
        let mut file = File::create(&path).map_err(Failure::io("make", &path))?;
        let mebibyte = vec![1; 1 << 20];
        while available_kib()? > left_kib {
            file.write_all(&mebibyte)
                .map_err(Failure::io("fill", &path))?;
        }
        Ok(hoard)
    }
}

impl Drop for Hoard {
    fn drop(&mut self) {
        // If the mount stays, the next part of the trial fails for lack of memory.
        let _ = rustix::mount::unmount(HOARD, UnmountFlags::DETACH);
    }
}

fn available_kib() -> Outcome<u64> {
    meminfo_kib("MemAvailable")
}

/// Value of a line of /proc/meminfo, in KiB.
pub(crate) fn meminfo_kib(name: &str) -> Outcome<u64> {
    let bytes = memory::bytes(Path::new("/"), name);
    bytes
        .map(|it| it >> 10)
        .map_err(Failure::io("read", Path::new("/proc/meminfo")))
}

fn make_small_cgroup() -> Outcome<()> {
    set_controllers("+memory +io")?;
    fs::create_dir(CGROUP).map_err(Failure::io("make", Path::new(CGROUP)))?;
    write(&format!("{CGROUP}/memory.max"), CGROUP_BYTES)
}

fn in_small_cgroup(bed: &TestBed, volume: &Volume) -> Outcome<()> {
    let entrance = Path::new(CGROUP).join("cgroup.procs");
    let entrance = File::options()
        .write(true)
        .open(&entrance)
        .map_err(Failure::io("open", &entrance))?;
    let mut command = fio::fio(bed, 32);
    command.arg(format!("--directory={}", volume.path().display()));
    let options = "rw=randwrite bs=16k ioengine=psync fsync=32";
    fio::job(&mut command, "confined", options);
    // SAFETY: only a write, which is async-signal-safe, is made after the fork.
    unsafe { command.pre_exec(move || (&entrance).write_all(b"0")) };
    fio::succeeds(command)?;
    fs::remove_dir(CGROUP).map_err(Failure::io("remove", Path::new(CGROUP)))
}
