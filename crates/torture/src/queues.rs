//! Queues of null_blk with other shapes than the device's: one tag, a changing number of hardware
//! queues, and tags that two disks or all hardware queues share. (blktests: block/005, 020, 021, 035, 040, 047.)

use crate::failure::require;
use crate::fio;
use crate::load::Load;
use crate::test_bed::{FRONTROW, is_debug_kernel};
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed};
use rustix::mount::MountFlags;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use sys::random::Random;

/// Modules that the guest loads for the trial.
pub(crate) const MODULES: [&str; 1] = ["null_blk nr_devices=0"];

const CONFIG: &str = "/sys/kernel/config";
/// Names of the disks. The kernel names the first one so; newer kernels take the directory's name
/// for each.
const NAMES: [&str; 2] = ["nullb0", "nullb1"];
/// Settings of all disks, which store written data in memory.
const COMMON: [(&str, &str); 4] = [
    ("size", "192"),
    ("memory_backed", "1"),
    ("irqmode", "2"),
    ("completion_nsec", "50000"),
];
const MANY_QUEUES: [(&str, &str); 2] = [("submit_queues", "2"), ("hw_queue_depth", "64")];
const SWITCHES: u64 = 40;
const TAGS: [&str; 4] = ["4", "512", "17", "256"];

/// Of two disks with shared tags and the same work: smallest ratio of the slower one's requests to
/// the other's.
const FAIR: f64 = 0.5;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    if is_debug_kernel() {
        return Ok(());
    }
    mount_configfs()?;
    with_one_tag(bed)?;
    while_queues_come_and_go(bed)?;
    from_two_sides(bed)?;
    with_one_bitmap(bed)?;
    with_shared_tags(bed)
}

fn mount_configfs() -> Outcome<()> {
    if Path::new(CONFIG).join("nullb").exists() {
        return Ok(());
    }
    rustix::mount::mount("none", CONFIG, "configfs", MountFlags::empty(), c"")
        .map_err(|errno| Failure::io("mount", Path::new(CONFIG))(errno.into()))
}

/// A disk of null_blk, which is removed on drop.
struct Disk {
    place: PathBuf,
    bed: TestBed,
}

impl Disk {
    /// Makes a disk under `frontrow`; None if this kernel lacks one of the settings.
    fn make(bed: &TestBed, name: &str, shape: &[(&str, &str)]) -> Outcome<Option<Disk>> {
        let place = Path::new(CONFIG).join("nullb").join(name);
        fs::create_dir(&place).map_err(Failure::io("make", &place))?;
        let disk = Disk {
            place,
            bed: TestBed {
                device: name.to_owned(),
                ..bed.clone()
            },
        };
        for (setting, value) in COMMON.iter().chain(shape) {
            if !disk.place.join(setting).exists() {
                return Ok(None);
            }
            disk.set(setting, value)?;
        }
        disk.set("power", "1")?;
        disk.bed.await_device()?;
        disk.bed.set("scheduler", FRONTROW)?;
        Ok(Some(disk))
    }

    fn needed(bed: &TestBed, name: &str, shape: &[(&str, &str)]) -> Outcome<Disk> {
        Disk::make(bed, name, shape)?
            .ok_or_else(|| Failure::new("null_blk lacks a setting that all kernels have"))
    }

    fn set(&self, setting: &str, value: &str) -> Outcome<()> {
        let path = self.place.join(setting);
        fs::write(&path, value).map_err(Failure::io("write", &path))
    }

    /// Number of completed requests.
    fn done(&self) -> Outcome<u64> {
        let all = self.bed.statistics()?;
        Ok(all.reads + all.writes)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The disk may not have been switched on; after a failure it ends with the guest.
        let _ = self.set("power", "0");
        let _ = fs::remove_dir(&self.place);
    }
}

/// One request fills the scheduler's queue and the device.
fn with_one_tag(bed: &TestBed) -> Outcome<()> {
    let shape = [("submit_queues", "1"), ("hw_queue_depth", "1")];
    let disk = Disk::needed(bed, NAMES[0], &shape)?;
    under_load(bed, &disk, |load| {
        for nr_requests in TAGS {
            disk.bed.set("nr_requests", nr_requests)?;
            load.goes_on(20)?;
        }
        workers_have_no_more_than_root_lets_them(&disk.bed)
    })
}

/// All hardware queues have one set of tags, as those of a SCSI host.
fn with_one_bitmap(bed: &TestBed) -> Outcome<()> {
    let shape = [MANY_QUEUES.as_slice(), &[("shared_tag_bitmap", "1")]].concat();
    let Some(disk) = Disk::make(bed, NAMES[0], &shape)? else {
        return Ok(());
    };
    let others = disk.bed.schedulers()?;
    under_load(bed, &disk, |load| {
        for (index, nr_requests) in TAGS.iter().enumerate() {
            disk.bed.set("scheduler", FRONTROW)?;
            disk.bed.set("nr_requests", nr_requests)?;
            load.goes_on(20)?;
            disk.bed.set("scheduler", &others[index % others.len()])?;
        }
        disk.bed.set("scheduler", FRONTROW)
    })
}

/// The limit of asynchronous requests that newer kernels (7.x) have for every scheduler.
fn workers_have_no_more_than_root_lets_them(bed: &TestBed) -> Outcome<()> {
    if !bed.queue_attribute("async_depth").exists() {
        return Ok(());
    }
    for most in [3, 5] {
        bed.set("async_depth", &most.to_string())?;
        let tags = bed.counters()?.all().get("now_async_tags").copied();
        require(tags == Some(most), || {
            format!("async_depth is {most}, and workers have {tags:?} tags")
        })?;
    }
    Ok(())
}

fn under_load(
    bed: &TestBed,
    disk: &Disk,
    change: impl FnOnce(&Load) -> Outcome<()>,
) -> Outcome<()> {
    let volume = Volume::make(&disk.bed)?;
    let load = Load::start(volume.path(), bed.seed);
    change(&load)?;
    load.end()?;
    volume.unmount()
}

/// Changes the number of hardware queues and the scheduler at the same time.
fn while_queues_come_and_go(bed: &TestBed) -> Outcome<()> {
    let disk = Disk::needed(bed, NAMES[0], &MANY_QUEUES)?;
    let others = disk.bed.schedulers()?;
    under_load(bed, &disk, |load| {
        for switch in 0..SWITCHES * u64::from(bed.rounds) {
            let index = switch as usize;
            disk.set("submit_queues", ["1", "2"][index % 2])?;
            disk.bed.set("scheduler", FRONTROW)?;
            disk.bed.set("nr_requests", TAGS[index % TAGS.len()])?;
            load.goes_on(2)?;
            disk.bed.set("scheduler", &others[index % others.len()])?;
        }
        Ok(())
    })
}

/// Changes the scheduler in two threads at once; the kernel decides which one wins.
fn from_two_sides(bed: &TestBed) -> Outcome<()> {
    let disk = Disk::needed(bed, NAMES[0], &MANY_QUEUES)?;
    let volume = Volume::make(&disk.bed)?;
    let load = Load::start(volume.path(), bed.seed);
    let schedulers = disk.bed.schedulers()?;
    let stop = AtomicBool::new(false);
    let went_on = thread::scope(|scope| {
        for side in 0..2 {
            let (disk, schedulers, stop) = (&disk, &schedulers, &stop);
            scope.spawn(move || {
                let mut random = Random::new(side);
                while !stop.load(Ordering::Relaxed) {
                    let name = &schedulers[random.index(schedulers.len())];
                    // The write fails as busy while the other thread switches.
                    let _ = disk.bed.try_set("scheduler", name);
                }
            });
        }
        let went_on = load.goes_on(SWITCHES);
        stop.store(true, Ordering::Relaxed);
        went_on
    });
    went_on?;
    load.end()?;
    disk.bed.set("scheduler", FRONTROW)?;
    volume.unmount()
}

/// Two disks with shared tags must not keep tags from each other.
fn with_shared_tags(bed: &TestBed) -> Outcome<()> {
    let shape = [MANY_QUEUES.as_slice(), &[("shared_tags", "1")]].concat();
    let Some(first) = Disk::make(bed, NAMES[0], &shape)? else {
        return Ok(());
    };
    let second = Disk::needed(bed, NAMES[1], &shape)?;
    let before = [first.done()?, second.done()?];
    let mut command = fio::plain(bed, 64);
    for name in NAMES {
        let options = format!(
            "filename=/dev/{name} rw=randread bs=4k ioengine=libaio direct=1 iodepth=64 time_based=1 runtime=3"
        );
        fio::job(&mut command, name, &options);
    }
    fio::succeeds(command)?;
    let done = [first.done()? - before[0], second.done()? - before[1]];
    let share = done[0].min(done[1]) as f64 / done[0].max(done[1]) as f64;
    require(share >= FAIR, || {
        format!(
            "of two disks with the same tags one did {} requests, the other {}",
            done[0], done[1]
        )
    })
}
