//! What creating, writing and syncing a small file costs beside a writer, and what the writer gets.

use crate::drivers::apply;
use crate::test_bed::{FRONTROW, with_dirty_limits};
use crate::volume::{Layout, Volume};
use crate::{BYTES_PER_S, Failure, Figure, Outcome, TestBed};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use sys::device::{Pages, Statistics};
use sys::random::Random;

/// Time for which fsyncs are measured under one scheduler, and their smallest number.
const MEASURED: Duration = Duration::from_secs(4);
const LEAST_FSYNCS: usize = 3;
/// Time after which the writer keeps the disk busy.
const WARM_UP: Duration = Duration::from_secs(1);

/// Time for which the disk's own rate is measured.
const RATE_MEASURED: Duration = Duration::from_secs(2);
/// Part of the limit from which on the disk is waited for, and not its driver or QEMU.
const IS_LIMITED: f64 = 0.9;

const STREAM_BYTES: u64 = 96 << 20;
const CHUNK_BYTES: usize = 256 << 10;
const SMALL_BYTES: usize = 4096;
/// Counter of frontrow: time in which the disk had nothing to do although a task waited and a request
/// was queued.
const IDLE: &str = "idle_while_waiting_ns";
const NS_PER_S: f64 = 1e9;
const MS_PER_S: f64 = 1e3;

/// A difference from the usual measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    /// Name in figures.
    pub(crate) label: &'static str,
    /// Time between two fsyncs.
    pub(crate) pause: Duration,
    /// An attribute below `queue/` of frontrow, and its value.
    pub(crate) setting: Option<(&'static str, &'static str)>,
    /// Limit of dirty memory in MiB; None for the guest's own.
    pub(crate) dirty_mib: Option<&'static str>,
}

impl Variant {
    pub(crate) const USUAL: Variant = Variant {
        label: "ext4",
        pause: Duration::ZERO,
        setting: None,
        dirty_mib: None,
    };

    pub(crate) const fn paused(label: &'static str, pause: Duration) -> Variant {
        Variant {
            label,
            pause,
            ..Variant::USUAL
        }
    }

    pub(crate) const fn set(label: &'static str, setting: (&'static str, &'static str)) -> Variant {
        Variant {
            label,
            setting: Some(setting),
            ..Variant::USUAL
        }
    }

    pub(crate) const fn with_dirty_mib(label: &'static str, mib: &'static str) -> Variant {
        Variant {
            label,
            dirty_mib: Some(mib),
            ..Variant::USUAL
        }
    }
}

/// A disk, and the file system on it or on a device above it.
pub(crate) struct Place<'a> {
    /// Test bed of the disk.
    pub(crate) bed: &'a TestBed,
    /// Test bed of the device with the file system.
    pub(crate) upper: &'a TestBed,
    /// Name of the disk in figures.
    pub(crate) disk: &'a str,
    /// Name of what is on it.
    pub(crate) label: &'a str,
    pub(crate) layout: Layout,
    pub(crate) variant: Variant,
    /// The disk's rate, of which the writer's is told.
    pub(crate) bytes_per_s: f64,
}

/// What was measured under one scheduler.
struct Measured {
    fsyncs_ms: Vec<f64>,
    elapsed_s: f64,
    before: Counts,
    after: Counts,
}

/// Counts of the disk and of frontrow.
struct Counts {
    disk: Statistics,
    idle_ns: u64,
}

impl Counts {
    fn of(bed: &TestBed, scheduler: &str) -> Outcome<Counts> {
        let idle_ns = match scheduler {
            FRONTROW => bed.counters()?.all().get(IDLE).copied().unwrap_or(0),
            _ => 0,
        };
        Ok(Counts {
            disk: bed.statistics()?,
            idle_ns,
        })
    }
}

impl<'a> Place<'a> {
    /// A file system on the disk of `bed` itself, which takes this many bytes a second.
    pub(crate) fn on(
        bed: &'a TestBed,
        disk: &'a str,
        label: &'a str,
        layout: Layout,
        bytes_per_s: f64,
    ) -> Place<'a> {
        Place {
            bed,
            upper: bed,
            disk,
            label,
            layout,
            variant: Variant::USUAL,
            bytes_per_s,
        }
    }

    /// Measures under each of `schedulers`, or under all, in an order by chance, and as many
    /// times. Gives each one's mean times of an fsync in milliseconds.
    pub(crate) fn compare(
        &self,
        rounds: u32,
        schedulers: &[&str],
    ) -> Outcome<BTreeMap<String, Vec<f64>>> {
        let purpose = format!("{} {}", self.disk, self.label);
        let mut random = Random::for_purpose(self.bed.seed, &purpose);
        let mut means_ms = BTreeMap::<String, Vec<f64>>::new();
        for _ in 0..rounds * self.bed.rounds {
            let mut offered = self.bed.schedulers()?;
            offered.retain(|it| schedulers.is_empty() || schedulers.contains(&it.as_str()));
            while !offered.is_empty() {
                let scheduler = offered.swap_remove(random.index(offered.len()));
                let mean_ms = self.measure(&scheduler)?;
                means_ms.entry(scheduler).or_default().push(mean_ms);
            }
        }
        Ok(means_ms)
    }

    /// Mean time of an fsync, in milliseconds.
    fn measure(&self, scheduler: &str) -> Outcome<f64> {
        let volume = Volume::with(self.upper, self.layout)?;
        apply(self.bed, scheduler)?;
        if let (FRONTROW, Some((name, value))) = (scheduler, self.variant.setting) {
            self.bed.set(name, value)?;
        }
        let measured = match self.variant.dirty_mib {
            None => self.beside_writer(volume.path(), scheduler),
            Some(mib) => {
                let bytes = format!("{mib}000000");
                with_dirty_limits(&bytes, &bytes, || {
                    self.beside_writer(volume.path(), scheduler)
                })
            }
        }?;
        volume.unmount()?;
        Ok(self.tell(scheduler, &measured))
    }

    fn beside_writer(&self, directory: &Path, scheduler: &str) -> Outcome<Measured> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| stream(directory, &stop));
            thread::sleep(WARM_UP);
            let measured = self.fsyncs(directory, scheduler);
            stop.store(true, Ordering::Relaxed);
            let ended = writer.join();
            ended
                .unwrap_or_else(|_| Err(Failure::new("the writer died")))
                .and(measured)
        })
    }

    /// Creates a file, writes a little and syncs it, again and again.
    fn fsyncs(&self, directory: &Path, scheduler: &str) -> Outcome<Measured> {
        let begun = Instant::now();
        let before = Counts::of(self.bed, scheduler)?;
        let mut fsyncs_ms = Vec::new();
        while begun.elapsed() < MEASURED || fsyncs_ms.len() < LEAST_FSYNCS {
            let path = directory.join(format!("small-{}", fsyncs_ms.len()));
            let failed = |error| Failure::io("write", &path)(error);
            let begun = Instant::now();
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)
                .map_err(failed)?;
            file.write_all(&[1; SMALL_BYTES]).map_err(failed)?;
            file.sync_all().map_err(failed)?;
            fsyncs_ms.push(begun.elapsed().as_secs_f64() * MS_PER_S);
            thread::sleep(self.variant.pause);
        }
        let after = Counts::of(self.bed, scheduler)?;
        Ok(Measured {
            fsyncs_ms,
            elapsed_s: begun.elapsed().as_secs_f64(),
            before,
            after,
        })
    }

    /// Sends the figures, and gives the mean time in milliseconds.
    fn tell(&self, scheduler: &str, measured: &Measured) -> f64 {
        let Measured {
            fsyncs_ms,
            elapsed_s,
            before,
            after,
        } = measured;
        let mean_ms = fsyncs_ms.iter().sum::<f64>() / fsyncs_ms.len() as f64;
        let worst_ms = fsyncs_ms.iter().copied().fold(0.0, f64::max);
        let written = (after.disk.written_bytes - before.disk.written_bytes) as f64;
        let part_of_ms = |ms: u64| ms as f64 / MS_PER_S / elapsed_s;
        let idle_s = (after.idle_ns - before.idle_ns) as f64 / NS_PER_S;
        for (metric, unit, value) in [
            ("fsync_mean_ms", "ms", mean_ms),
            ("fsync_worst_ms", "ms", worst_ms),
            ("disk_used", "1", written / elapsed_s / self.bytes_per_s),
            ("idle_while_waiting", "1", idle_s / elapsed_s),
            (
                "flushing",
                "1",
                part_of_ms(after.disk.flush_ms - before.disk.flush_ms),
            ),
            (
                "without_requests",
                "1",
                1.0 - part_of_ms(after.disk.busy_ms - before.disk.busy_ms),
            ),
        ] {
            self.bed.tell(Figure {
                workload: self.disk.to_owned(),
                load: self.label.to_owned(),
                policy: scheduler.to_owned(),
                metric,
                unit,
                value,
            });
        }
        mean_ms
    }
}

/// Rate in bytes a second at which the disk takes large writes; what is on it is overwritten.
pub(crate) fn rate_of(bed: &TestBed, disk: &str) -> Outcome<f64> {
    apply(bed, "none")?;
    let path = bed.device_node();
    let failed = |error| Failure::io("write", &path)(error);
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path)
        .map_err(failed)?;
    let chunk = Pages::zeroed(CHUNK_BYTES);
    let begun = Instant::now();
    let mut at = 0;
    while begun.elapsed() < RATE_MEASURED {
        file.write_all_at(&chunk, at % STREAM_BYTES)
            .map_err(failed)?;
        at += CHUNK_BYTES as u64;
    }
    let rate = at as f64 / begun.elapsed().as_secs_f64();
    if !is_bottleneck(rate) {
        bed.remark(format!("{disk} writes {:.1} MB/s", rate / 1e6));
    }
    Ok(rate.min(BYTES_PER_S as f64))
}

/// Whether a disk that takes `rate` bytes a second is held back by its limit.
pub(crate) fn is_bottleneck(rate: f64) -> bool {
    rate >= IS_LIMITED * BYTES_PER_S as f64
}

/// Writes sequentially until `stop` is set.
pub(crate) fn stream(directory: &Path, stop: &AtomicBool) -> Outcome<()> {
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
