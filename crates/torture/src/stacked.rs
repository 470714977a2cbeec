//! The scheduler below dm-crypt, a linear volume as LVM makes them, a RAID1 and a loop device. Data
//! must be right while schedulers change, and everything must be torn down again.

use crate::load::Load;
use crate::test_bed::{FRONTROW, is_debug_kernel, read, write};
use crate::volume::{Layout, Volume};
use crate::{Failure, Outcome, TestBed};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
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

/// The same for [`Above`] on two disks of QEMU.
pub(crate) const MODULES_ABOVE: [&str; 9] = [
    "virtio_pci",
    "virtio_blk",
    "nvme",
    "dm_mod",
    "dm_crypt",
    "crypto_null",
    "ecb",
    "raid1",
    "loop",
];

const DMSETUP: &str = "/bin/dmsetup";
const NAME: &str = "stacked";
/// A key for AES-256 in XTS mode with an arbitrary value.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
                   202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";
const SWITCHES: usize = 10;
/// Parameters of a second device, of its usual size.
const SECOND: &str = "second=capacity_mib:1024";

/// Size of the file below a loop device.
const LOOP_BYTES: u64 = 512 << 20;

/// ioctls of `include/uapi/linux/loop.h`.
const LOOP_SET_FD: libc::Ioctl = 0x4c00;
const LOOP_CLR_FD: libc::Ioctl = 0x4c01;

/// What may be between a disk and a file system.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Above {
    /// dm-crypt with its usual write thread, and a cipher that costs nothing: a processor that encrypts
    /// for real does so far faster than these disks write.
    Crypt,
    /// The same where each task sends what it writes.
    CryptWithoutThread,
    Linear,
    /// A RAID1 with a missing disk.
    Raid1,
    /// A loop device on a file of an ext4.
    Loop,
}

impl Above {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Above::Crypt => "dm-crypt",
            Above::CryptWithoutThread => "dm-crypt without its write thread",
            Above::Linear => "dm-linear",
            Above::Raid1 => "RAID1",
            Above::Loop => "loop",
        }
    }

    /// Makes it on the disk of `bed`, does `work` on what was made, and takes it away again.
    pub(crate) fn on<T>(
        self,
        bed: &TestBed,
        work: impl FnOnce(&TestBed) -> Outcome<T>,
    ) -> Outcome<T> {
        let below = format!("/dev/{}", bed.device);
        let done = match self {
            Above::Crypt => on_mapper(bed, &format!("crypt cipher_null-ecb - 0 {below} 0"), work),
            Above::CryptWithoutThread => {
                let options = "1 no_write_workqueue";
                let target = format!("crypt cipher_null-ecb - 0 {below} 0 {options}");
                on_mapper(bed, &target, work)
            }
            Above::Linear => on_mapper(bed, &format!("linear {below} 0"), work),
            Above::Raid1 => on_raid1(&[bed], work),
            Above::Loop => on_loop(bed, work),
        };
        done.map_err(|failure| Failure::new(format!("under {}: {failure}", self.name())))
    }
}

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    // It has no device mapper.
    if !is_debug_kernel() {
        let encrypted = format!("crypt aes-xts-plain64 {KEY} 0 /dev/{} 0", bed.device);
        Above::Linear.on(bed, |upper| data_are_right(&[bed], upper))?;
        on_mapper(bed, &encrypted, |upper| data_are_right(&[bed], upper))
            .map_err(|failure| Failure::new(format!("under dm-crypt: {failure}")))?;
    }
    bed.replace_device(SECOND)?;
    let disks = [bed, &second(bed)?];
    on_raid1(&disks, |upper| data_are_right(&disks, upper))
        .map_err(|failure| Failure::new(format!("under a RAID1: {failure}")))?;
    bed.replace_device("")
}

/// The second device of a guest whose flash module makes two.
pub(crate) fn second(bed: &TestBed) -> Outcome<TestBed> {
    let second = with_device(bed, "simflash1");
    second.await_device()?;
    Ok(second)
}

fn sectors(bed: &TestBed) -> Outcome<u64> {
    let size = read(&format!("/sys/block/{}/size", bed.device))?;
    let size = size.trim();
    size.parse()
        .map_err(|_| Failure::new(format!("its size is '{size}'")))
}

fn with_device(bed: &TestBed, device: &str) -> TestBed {
    TestBed {
        device: device.to_owned(),
        ..bed.clone()
    }
}

fn on_mapper<T>(
    bed: &TestBed,
    target: &str,
    work: impl FnOnce(&TestBed) -> Outcome<T>,
) -> Outcome<T> {
    let table = format!("0 {} {target}", sectors(bed)?);
    dmsetup(&["create", NAME, "--table", &table])?;
    let done = work(&with_device(bed, "dm-0"));
    dmsetup(&["remove", "--retry", NAME])?;
    done
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

/// A RAID1 of the disks of `beds`, of which one may be missing. It is in use as it is: nothing is
/// copied from one disk to the other first.
pub(crate) fn on_raid1<T>(
    beds: &[&TestBed],
    work: impl FnOnce(&TestBed) -> Outcome<T>,
) -> Outcome<T> {
    let array = "md0";
    write("/sys/module/md_mod/parameters/new_array", array)?;
    let set = |name: &str, value: &str| write(&format!("/sys/block/{array}/md/{name}"), value);
    set("level", "raid1")?;
    set("raid_disks", "2")?;
    set("metadata_version", "none")?;
    for (slot, bed) in beds.iter().enumerate() {
        let number = read(&format!("/sys/block/{}/dev", bed.device))?;
        set("new_dev", number.trim())?;
        set(&format!("dev-{}/slot", bed.device), &slot.to_string())?;
    }
    let sizes: Outcome<Vec<u64>> = beds.iter().map(|bed| sectors(bed)).collect();
    let least = sizes?.into_iter().min().unwrap_or_default();
    set("component_size", &(least / 2).to_string())?;
    set("resync_start", "none")?;
    set("array_state", "active")?;
    let done = work(&with_device(beds[0], array));
    let cleared = set("array_state", "clear");
    done.and_then(|it| cleared.map(|()| it))
}

fn on_loop<T>(bed: &TestBed, work: impl FnOnce(&TestBed) -> Outcome<T>) -> Outcome<T> {
    let below = TestBed {
        mount_point: "/below".into(),
        ..bed.clone()
    };
    let place = &below.mount_point;
    fs::create_dir_all(place).map_err(Failure::io("make", place))?;
    let volume = Volume::with(&below, Layout::DEFAULT)?;
    let path = volume.path().join("image");
    let file = File::create_new(&path).map_err(Failure::io("make", &path))?;
    file.set_len(LOOP_BYTES)
        .map_err(Failure::io("make", &path))?;
    drop(file);
    let device = attach_loop(&path)?;
    let done = work(&with_device(bed, "loop0"));
    loop_control(&device, LOOP_CLR_FD, 0)?;
    drop(device);
    volume.unmount()?;
    done
}

fn attach_loop(path: &Path) -> Outcome<File> {
    let open = |path: &Path| {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        opened.map_err(Failure::io("open", path))
    };
    let device = open(Path::new("/dev/loop0"))?;
    loop_control(&device, LOOP_SET_FD, open(path)?.as_raw_fd())?;
    Ok(device)
}

fn loop_control(device: &File, request: libc::Ioctl, argument: i32) -> Outcome<()> {
    // SAFETY: both requests take a file descriptor or nothing, and no pointers.
    match unsafe { libc::ioctl(device.as_raw_fd(), request, argument) } {
        0 => Ok(()),
        _ => Err(Failure::io("set up", Path::new("/dev/loop0"))(
            std::io::Error::last_os_error(),
        )),
    }
}

/// Data of `upper` are right while the schedulers of the disks below it change.
fn data_are_right(disks: &[&TestBed], upper: &TestBed) -> Outcome<()> {
    let volume = Volume::make(upper)?;
    let load = Load::start(volume.path(), upper.seed);
    let schedulers = disks[0].schedulers()?;
    let set = |disk: &TestBed, name: &str| {
        disk.set("scheduler", name)?;
        load.goes_on(2)
    };
    for switch in 0..SWITCHES * upper.rounds as usize {
        disks.iter().try_for_each(|disk| set(disk, FRONTROW))?;
        load.goes_on(8)?;
        let other = &schedulers[switch % schedulers.len()];
        disks.iter().try_for_each(|disk| set(disk, other))?;
    }
    disks.iter().try_for_each(|disk| set(disk, FRONTROW))?;
    load.end()?;
    volume.unmount()
}
