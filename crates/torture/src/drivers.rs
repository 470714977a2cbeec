//! Disks of QEMU under the kernel's own drivers. Data must be right while schedulers change, and
//! the cost of a small fsync beside a writer is measured under each scheduler.

use crate::beside::{Place, Variant, is_bottleneck, rate_of};
use crate::disks::Disk;
use crate::failure::require;
use crate::load::Load;
use crate::stacked::Above;
use crate::test_bed::{FRONTROW, is_debug_kernel};
use crate::volume::{Kind, Layout, Volume};
use crate::{DISKS, Failure, Outcome, SOLDERED, TestBed, unplug};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Number of switches of the scheduler under load.
const SWITCHES: u32 = 10;

/// Rounds of measurements: each has all schedulers, in an order by chance.
const ROUNDS: u32 = 3;

const MOST_OF_BEST: f64 = 1.05;

/// Disks for the file systems that few machines have: two fast kinds and two with one request at a
/// time.
const FEW_DISKS: [&str; 4] = ["virtio-blk", "NVMe", "USB storage", "SD card"];

/// Disks of which the writer's loss is looked into.
const RATE_DISKS: [&str; 2] = ["virtio-blk", "USB storage"];

/// What is measured above which disks.
const ABOVE: [(&str, &[Above]); 2] = [
    (
        "virtio-blk",
        &[
            Above::Crypt,
            Above::CryptWithoutThread,
            Above::Linear,
            Above::Raid1,
            Above::Loop,
        ],
    ),
    ("NVMe", &[Above::Crypt, Above::CryptWithoutThread]),
];

/// Runs one disk with one file system. Debug kernels lack the drivers.
pub(crate) fn run_one(bed: &TestBed) -> Outcome<()> {
    if is_debug_kernel() {
        return Ok(());
    }
    let [first, ..] = &DISKS;
    let bed = first.bed(bed)?;
    let bed = bed.ok_or_else(|| Failure::new(format!("{} has no driver", first.name)))?;
    let bed = unplug::comes_back(&bed, first)?;
    on_disk(&bed, first, &[Kind::Ext4])
}

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    each(DISKS.iter(), bed, |bed, disk| {
        on_disk(bed, disk, &[Kind::Ext4, Kind::Xfs])
    })
}

pub(crate) fn run_soldered(bed: &TestBed) -> Outcome<()> {
    each_there_is(SOLDERED.iter(), bed, |bed, disk| {
        let bed = unplug::comes_back(bed, disk)?;
        on_disk(&bed, disk, &[Kind::Ext4])
    })?;
    bed.reload()
}

pub(crate) fn run_file_systems(bed: &TestBed) -> Outcome<()> {
    let disks = DISKS.iter().filter(|it| FEW_DISKS.contains(&it.name));
    each(disks, bed, |bed, disk| {
        on_disk(bed, disk, &[Kind::F2fs, Kind::Btrfs])
    })
}

pub(crate) fn run_above(bed: &TestBed) -> Outcome<()> {
    for (name, all) in ABOVE {
        each([Disk::named(name)?].into_iter(), bed, |bed, disk| {
            restores(bed, || on_all_above(bed, disk, all))
        })?;
    }
    Ok(())
}

/// Runs `work` on those of `disks` that the kernel has drivers of, of which there must be some but on
/// a debug kernel.
pub(crate) fn each(
    disks: impl Iterator<Item = &'static Disk>,
    bed: &TestBed,
    work: impl Fn(&TestBed, &Disk) -> Outcome<()>,
) -> Outcome<()> {
    let found = each_there_is(disks, bed, work)?;
    require(found > 0 || is_debug_kernel(), || {
        "the kernel has drivers of no disk".to_owned()
    })
}

/// The same where there may be none. Gives their number.
fn each_there_is(
    disks: impl Iterator<Item = &'static Disk>,
    bed: &TestBed,
    work: impl Fn(&TestBed, &Disk) -> Outcome<()>,
) -> Outcome<u32> {
    let mut found = 0;
    if is_debug_kernel() {
        return Ok(found);
    }
    for disk in disks {
        let Some(bed) = disk.bed(bed)? else {
            continue;
        };
        found += 1;
        let failed = |failure| Failure::new(format!("{}: {failure}", disk.name));
        work(&bed, disk).map_err(failed)?;
    }
    Ok(found)
}

/// Which part of the disk's rate is lost to what, where a task syncs again and again.
pub(crate) fn run_rate(bed: &TestBed) -> Outcome<()> {
    let all = [
        Variant::USUAL,
        Variant::paused("ext4, 20 ms between", Duration::from_millis(20)),
        Variant::paused("ext4, 200 ms between", Duration::from_millis(200)),
        Variant::paused("ext4, 2 s between", Duration::from_secs(2)),
        Variant::set("ext4, async_share 100", ("iosched/async_share", "100")),
        Variant {
            pause: Duration::from_secs(2),
            ..Variant::set(
                "ext4, 2 s between, slice_us 20000",
                ("iosched/slice_us", "20000"),
            )
        },
        Variant::with_dirty_mib("ext4, 128 MB dirty", "128"),
    ];
    let disks = DISKS.iter().filter(|it| RATE_DISKS.contains(&it.name));
    each(disks, bed, |bed, disk| {
        restores(bed, || {
            let rate = rate_of(bed, disk.name)?;
            for variant in all {
                let layout = Layout::on_disk(Kind::Ext4);
                let place = Place::on(bed, disk.name, variant.label, layout, rate);
                Place { variant, ..place }.compare(ROUNDS, &[FRONTROW, "none"])?;
            }
            Ok(())
        })
    })
}

fn on_disk(bed: &TestBed, disk: &Disk, kinds: &[Kind]) -> Outcome<()> {
    restores(bed, || {
        let rate = rate_of(bed, disk.name)?;
        for &kind in kinds {
            if !kind.is_known()? {
                let name = kind.name();
                bed.remark(format!(
                    "{name} on {} is passed over: the kernel has no {name}",
                    disk.name
                ));
                continue;
            }
            let layout = Layout::on_disk(kind);
            let failed = |failure| Failure::new(format!("{}: {failure}", kind.name()));
            data_are_right(bed, bed, layout).map_err(failed)?;
            let place = Place::on(bed, disk.name, kind.name(), layout, rate);
            let means_ms = place.compare(ROUNDS, &[])?;
            match judge(&means_ms).map_err(failed) {
                Err(failure) if kind.is_promised() && is_bottleneck(rate) => return Err(failure),
                Err(failure) => bed.remark(format!("{}: {failure}", disk.name)),
                Ok(()) => {}
            }
        }
        Ok(())
    })
}

fn on_all_above(bed: &TestBed, disk: &Disk, all: &[Above]) -> Outcome<()> {
    let rate = rate_of(bed, disk.name)?;
    for above in all {
        let label = format!("ext4 on {}", above.name());
        above.on(bed, |upper| {
            let layout = Layout::on_disk(Kind::Ext4);
            data_are_right(bed, upper, layout)?;
            let place = Place::on(bed, disk.name, &label, layout, rate);
            Place { upper, ..place }.compare(ROUNDS, &[]).map(drop)
        })?;
    }
    Ok(())
}

/// Checks that the disk has its usual settings after `work` again.
fn restores(bed: &TestBed, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let usual = Settings::of(bed)?;
    work()?;
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

/// Sets the scheduler with all that `frontrow sched enable` sets.
pub(crate) fn apply(bed: &TestBed, scheduler: &str) -> Outcome<()> {
    module::sched::policy::apply(Path::new("/"), &bed.device, scheduler)
        .map(drop)
        .map_err(|error| Failure::new(error.to_string()))
}

/// Runs the load on `upper`, which is on the disk of `bed`, while that changes its scheduler.
fn data_are_right(bed: &TestBed, upper: &TestBed, layout: Layout) -> Outcome<()> {
    let volume = Volume::with(upper, layout)?;
    let load = Load::start(volume.path(), bed.seed);
    let schedulers = bed.schedulers()?;
    for switch in 0..SWITCHES * bed.rounds {
        let other = &schedulers[switch as usize / 2 % schedulers.len()];
        apply(bed, if switch % 2 == 0 { FRONTROW } else { other })?;
        load.goes_on(2)?;
    }
    load.end()?;
    volume.unmount()
}
