//! Disks of QEMU that go away under load, as when a stick is pulled, and come back.

use crate::disks::Disk;
use crate::drivers::{apply, each};
use crate::load::{Load, UNDER_WAY_OPERATIONS};
use crate::test_bed::{FRONTROW, await_some, drop_caches, write};
use crate::volume::{Kind, Layout, Volume};
use crate::{DISKS, Failure, IO_ERRORS_BEGIN, IO_ERRORS_END, Outcome, TestBed};
use std::fs;
use std::path::{Path, PathBuf};

/// Number of times that each disk goes away.
const PULLS: u32 = 2;

/// Makes the kernel look for PCI devices that it does not know of.
const RESCAN: &str = "/sys/bus/pci/rescan";

/// File of a device on PCI or USB that takes it out of the system.
const REMOVE: &str = "remove";

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    each(DISKS.iter(), bed, |bed, disk| {
        comes_back(bed, disk).map(drop)
    })?;
    bed.reload()
}

/// Takes the disk away under load and back again, some times. Gives a test bed on what came back.
pub(crate) fn comes_back(bed: &TestBed, disk: &Disk) -> Outcome<TestBed> {
    write("/dev/kmsg", IO_ERRORS_BEGIN)?;
    for pull in 0..PULLS * bed.rounds {
        let bed = there(bed, disk)?;
        pull_under_load(&bed, bed.seed + u64::from(pull))?;
    }
    let back = there(bed, disk)?;
    write("/dev/kmsg", IO_ERRORS_END)?;
    Ok(back)
}

/// A test bed on the disk, whose name may be another than before.
fn there(bed: &TestBed, disk: &Disk) -> Outcome<TestBed> {
    let found = disk.bed(bed)?;
    found.ok_or_else(|| Failure::new(format!("{} has lost its driver", disk.name)))
}

fn pull_under_load(bed: &TestBed, seed: u64) -> Outcome<()> {
    apply(bed, FRONTROW)?;
    let parents = Parents::of(bed)?;
    let volume = Volume::with(bed, Layout::on_disk(Kind::Ext4))?;
    let load = Load::start(volume.path(), seed);
    load.goes_on(UNDER_WAY_OPERATIONS)?;
    remove(&parents.nearest)?;
    await_end_of(bed)?;
    load.ends_by_removal()?;
    drop(volume);
    drop_caches()?;
    // A port of USB takes a device that was removed there only after its controller was, too.
    if parents.on_pci.exists() {
        remove(&parents.on_pci)?;
    }
    write(RESCAN, "1")
}

/// Directories in /sys of what a disk is on.
struct Parents {
    /// What is next to the disk of all that can be removed: a USB device or one on PCI.
    nearest: PathBuf,
    /// The device on PCI.
    on_pci: PathBuf,
}

impl Parents {
    fn of(bed: &TestBed) -> Outcome<Parents> {
        let link = Path::new("/sys/block").join(&bed.device);
        let disk = fs::canonicalize(&link).map_err(Failure::io("follow", &link))?;
        let first = |fits: &dyn Fn(&Path) -> bool| {
            let found = disk.ancestors().find(|it| fits(it)).map(Path::to_owned);
            found.ok_or_else(|| Failure::new(format!("{} is on no bus", disk.display())))
        };
        Ok(Parents {
            nearest: first(&|it| it.join(REMOVE).exists())?,
            on_pci: first(&is_on_pci)?,
        })
    }
}

fn is_on_pci(directory: &Path) -> bool {
    let subsystem = fs::read_link(directory.join("subsystem"));
    subsystem.is_ok_and(|it| it.ends_with("bus/pci"))
}

fn remove(device: &Path) -> Outcome<()> {
    write(&device.join(REMOVE).to_string_lossy(), "1")
}

fn await_end_of(bed: &TestBed) -> Outcome<()> {
    let disk = Path::new("/sys/block").join(&bed.device);
    await_some(
        || Ok((!disk.exists()).then_some(())),
        || format!("{} is still there after its removal", bed.device),
    )
}
