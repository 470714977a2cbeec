//! Disks of QEMU under the kernel's own drivers. Data must be right while schedulers change, and
//! the cost of a small fsync beside a writer is measured under each scheduler.

use crate::failure::require;
use crate::load::Load;
use crate::test_bed::{FRONTROW, is_debug_kernel, read};
use crate::volume::{Kind, Layout, Volume};
use crate::{Failure, Figure, Outcome, TestBed};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A disk of QEMU.
#[derive(Debug)]
pub struct Disk {
    /// Name of its driver, with the difference from others of the same driver.
    pub name: &'static str,
    /// Size in MiB, by which the guest identifies the disk.
    pub mib: u64,
    /// QEMU device of its controller; None if QEMU provides one.
    pub controller: Option<&'static str>,
    /// QEMU device of the disk, without its drive.
    pub device: &'static str,
}

/// Rate limit of each disk, which is low enough to make the disk the bottleneck.
pub const BYTES_PER_S: u64 = 20_000_000;

/// All disks of the trial.
pub const DISKS: [Disk; 5] = [
    Disk {
        name: "virtio-blk",
        mib: 321,
        controller: None,
        device: "virtio-blk-pci,num-queues=1",
    },
    Disk {
        name: "virtio-blk, 4 queues",
        mib: 322,
        controller: None,
        device: "virtio-blk-pci,num-queues=4",
    },
    Disk {
        name: "virtio-scsi",
        mib: 323,
        controller: Some("virtio-scsi-pci,id=scsi"),
        device: "scsi-hd,bus=scsi.0",
    },
    Disk {
        name: "NVMe",
        mib: 324,
        controller: None,
        device: "nvme,serial=frontrow",
    },
    Disk {
        name: "AHCI",
        mib: 325,
        controller: Some("ahci,id=ahci"),
        device: "ide-hd,bus=ahci.0",
    },
];

/// Modules of the drivers, and of the file system that only this trial uses.
pub(crate) const MODULES: [&str; 6] =
    ["virtio_blk", "virtio_scsi", "sd_mod", "nvme", "ahci", "xfs"];

/// Number of switches of the scheduler under load.
const SWITCHES: u32 = 10;

/// Time for which fsyncs are measured under one scheduler, and their smallest number.
const MEASURED: Duration = Duration::from_secs(8);
const LEAST_FSYNCS: usize = 3;
/// Time after which the writer keeps the disk busy.
const WARM_UP: Duration = Duration::from_secs(2);

const MOST_OF_BEST: f64 = 1.05;

const STREAM_BYTES: u64 = 96 << 20;
const CHUNK_BYTES: usize = 256 << 10;
const SMALL_BYTES: usize = 4096;
const SECTOR_BYTES: u64 = 512;

/// Runs one disk with one file system. Debug kernels lack the drivers.
pub(crate) fn run_one(bed: &TestBed) -> Outcome<()> {
    if is_debug_kernel() {
        return Ok(());
    }
    let [first, ..] = &DISKS;
    let device = device_of(first)?;
    let device = device.ok_or_else(|| Failure::new(format!("{} is not there", first.name)))?;
    let bed = TestBed {
        device,
        ..bed.clone()
    };
    on_disk(&bed, first, &[Kind::Ext4])
}

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    if is_debug_kernel() {
        return Ok(());
    }
    let mut found = 0;
    for disk in &DISKS {
        let Some(device) = device_of(disk)? else {
            continue;
        };
        found += 1;
        let bed = TestBed {
            device,
            ..bed.clone()
        };
        let failed = |failure: Failure| Failure::new(format!("{}: {failure}", disk.name));
        on_disk(&bed, disk, &[Kind::Ext4, Kind::Xfs]).map_err(failed)?;
    }
    // A kernel may lack one of the drivers, but not more.
    require(found >= DISKS.len() - 1, || {
        format!("of {} disks {found} are there", DISKS.len())
    })
}

fn device_of(disk: &Disk) -> Outcome<Option<String>> {
    let blocks = Path::new("/sys/block");
    for entry in fs::read_dir(blocks).map_err(Failure::io("list", blocks))? {
        let entry = entry.map_err(Failure::io("list", blocks))?;
        let size = read(&entry.path().join("size").to_string_lossy())?;
        if size.trim() == (disk.mib * (1 << 20) / SECTOR_BYTES).to_string() {
            return Ok(Some(entry.file_name().to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

fn on_disk(bed: &TestBed, disk: &Disk, kinds: &[Kind]) -> Outcome<()> {
    bed.await_device()?;
    let usual = Settings::of(bed)?;
    for &kind in kinds {
        let layout = Layout {
            kind,
            ..Layout::DEFAULT
        };
        let volume = Volume::with(bed, layout)?;
        data_are_right(bed, volume.path())?;
        volume.unmount()?;
        let mut means_ms = BTreeMap::<String, Vec<f64>>::new();
        for _ in 0..bed.rounds {
            for scheduler in bed.schedulers()? {
                let mean_ms = measure(bed, disk, layout, &scheduler)?;
                means_ms.entry(scheduler).or_default().push(mean_ms);
            }
        }
        judge(&means_ms).map_err(|failure| Failure::new(format!("{}: {failure}", kind.name())))?;
    }
    apply(bed, "none")?;
    apply(bed, &usual.scheduler)?;
    let now = Settings::of(bed)?;
    require(now == usual, || {
        format!("it was left with {now:?} instead of {usual:?}")
    })
}

/// Checks the promise that frontrow's fsyncs cost at most as much as the best other scheduler's.
fn judge(means_ms: &BTreeMap<String, Vec<f64>>) -> Outcome<()> {
    let median = |all: &[f64]| {
        let mut sorted = all.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let ours = means_ms.get(FRONTROW).map_or(f64::NAN, |all| median(all));
    let others = means_ms.iter().filter(|(name, _)| *name != FRONTROW);
    let best = others.map(|(_, all)| median(all)).fold(f64::NAN, f64::min);
    require(ours <= MOST_OF_BEST * best, || {
        format!(
            "a small fsync took {ours:.1} ms on average, and {best:.1} ms under the best other scheduler"
        )
    })
}

/// Settings that `frontrow sched disable` must restore.
#[derive(Debug, PartialEq, Eq)]
struct Settings {
    scheduler: String,
    nr_requests: String,
}

impl Settings {
    fn of(bed: &TestBed) -> Outcome<Settings> {
        let offered = bed.get("scheduler")?;
        let active = offered
            .split_whitespace()
            .find_map(|it| it.strip_prefix('[')?.strip_suffix(']'));
        Ok(Settings {
            scheduler: active.unwrap_or_default().to_owned(),
            nr_requests: bed.get("nr_requests")?,
        })
    }
}

fn apply(bed: &TestBed, scheduler: &str) -> Outcome<()> {
    module::sched::policy::apply(Path::new("/"), &bed.device, scheduler)
        .map(drop)
        .map_err(|error| Failure::new(error.to_string()))
}

fn data_are_right(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let load = Load::start(directory, bed.seed);
    let schedulers = bed.schedulers()?;
    for switch in 0..SWITCHES * bed.rounds {
        let other = &schedulers[switch as usize / 2 % schedulers.len()];
        apply(bed, if switch % 2 == 0 { FRONTROW } else { other })?;
        load.goes_on(2)?;
    }
    load.end()
}

/// Mean time of an fsync, in milliseconds.
fn measure(bed: &TestBed, disk: &Disk, layout: Layout, scheduler: &str) -> Outcome<f64> {
    let volume = Volume::with(bed, layout)?;
    apply(bed, scheduler)?;
    let stop = AtomicBool::new(false);
    let (fsyncs_ms, bytes_per_s) = thread::scope(|scope| {
        let writer = scope.spawn(|| stream(volume.path(), &stop));
        thread::sleep(WARM_UP);
        let measured = fsyncs(bed, volume.path());
        stop.store(true, Ordering::Relaxed);
        let ended = writer.join();
        ended
            .unwrap_or_else(|_| Err(Failure::new("the writer died")))
            .and(measured)
    })?;
    volume.unmount()?;
    let mean_ms = fsyncs_ms.iter().sum::<f64>() / fsyncs_ms.len() as f64;
    let worst_ms = fsyncs_ms.iter().copied().fold(0.0, f64::max);
    for (metric, unit, value) in [
        ("fsync_mean_ms", "ms", mean_ms),
        ("fsync_worst_ms", "ms", worst_ms),
        ("disk_used", "1", bytes_per_s / BYTES_PER_S as f64),
    ] {
        bed.tell(Figure {
            workload: disk.name.to_owned(),
            load: layout.kind.name().to_owned(),
            policy: scheduler.to_owned(),
            metric,
            unit,
            value,
        });
    }
    Ok(mean_ms)
}

/// Writes sequentially until `stop` is set.
fn stream(directory: &Path, stop: &AtomicBool) -> Outcome<()> {
    let path = directory.join("stream");
    let failed = |error| Failure::io("write", &path)(error);
    let file = File::create(&path).map_err(failed)?;
    let chunk = vec![0x5a; CHUNK_BYTES];
    let mut at = 0;
    while !stop.load(Ordering::Relaxed) {
        file.write_all_at(&chunk, at % STREAM_BYTES)
            .map_err(failed)?;
        at += CHUNK_BYTES as u64;
    }
    Ok(())
}

/// Times in milliseconds to create a file, write a little and sync it. The second value is the
/// disk's write rate meanwhile.
fn fsyncs(bed: &TestBed, directory: &Path) -> Outcome<(Vec<f64>, f64)> {
    let begun = Instant::now();
    let before = written_bytes(bed)?;
    let mut all_ms = Vec::new();
    while begun.elapsed() < MEASURED || all_ms.len() < LEAST_FSYNCS {
        let path = directory.join(format!("small-{}", all_ms.len()));
        let failed = |error| Failure::io("write", &path)(error);
        let begun = Instant::now();
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(failed)?;
        file.write_all(&[1; SMALL_BYTES]).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        all_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let bytes = written_bytes(bed)? - before;
    Ok((all_ms, bytes as f64 / begun.elapsed().as_secs_f64()))
}

fn written_bytes(bed: &TestBed) -> Outcome<u64> {
    Ok(bed.statistics()?.written_bytes)
}
