//! Requeued requests on scsi_debug: the host is busy, or the transport fails and the command is
//! retried. (blktests: block/014, 015, 044.)

use crate::load::Load;
use crate::test_bed::{FRONTROW, is_debug_kernel, write};
use crate::volume::Volume;
use crate::{Failure, IO_ERRORS_BEGIN, IO_ERRORS_END, Outcome, TestBed};
use std::fs;
use std::path::Path;

/// Modules that the guest loads for the trial.
pub(crate) const MODULES: [&str; 2] = ["sd_mod", "scsi_debug dev_size_mb=192 delay=0 ndelay=50000"];

const DRIVER: &str = "/sys/bus/pseudo/drivers/scsi_debug";
const MODEL: &str = "scsi_debug";

/// A trouble, the interval of commands that meet it, and its bit in `opts`
/// (`drivers/scsi/scsi_debug.c`).
const TROUBLES: [(&str, &str, &str); 3] = [
    ("the host is busy", "3", "0x8000"),
    ("the transport fails", "7", "0x10"),
    ("an error is recovered", "5", "0x8"),
];

const OPERATIONS: u64 = 60;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    // Debian's arm64 kernels for virtual machines have no scsi_debug.
    if is_debug_kernel() || !Path::new(DRIVER).is_dir() {
        return Ok(());
    }
    let bed = TestBed {
        device: find()?,
        ..bed.clone()
    };
    bed.await_device()?;
    bed.set("scheduler", FRONTROW)?;
    let volume = Volume::make(&bed)?;
    let load = Load::start(volume.path(), bed.seed);
    // A read-ahead is not retried (blk_mq_bio_to_request()), and the file system reads it again. What
    // a task asked for must be right nevertheless.
    write("/dev/kmsg", IO_ERRORS_BEGIN)?;
    for (name, every, what) in TROUBLES {
        let failed = |failure: Failure| Failure::new(format!("while {name}: {failure}"));
        write(&format!("{DRIVER}/opts"), what)?;
        write(&format!("{DRIVER}/every_nth"), every)?;
        for other in ["none", FRONTROW] {
            load.goes_on(OPERATIONS * u64::from(bed.rounds))
                .map_err(failed)?;
            bed.set("scheduler", other)?;
        }
    }
    write(&format!("{DRIVER}/every_nth"), "0")?;
    write("/dev/kmsg", IO_ERRORS_END)?;
    let in_the_end = load.end();
    volume.unmount()?;
    in_the_end
}

fn find() -> Outcome<String> {
    let blocks = Path::new("/sys/block");
    for entry in fs::read_dir(blocks).map_err(Failure::io("list", blocks))? {
        let entry = entry.map_err(Failure::io("list", blocks))?;
        let model = fs::read_to_string(entry.path().join("device/model"));
        if model.is_ok_and(|model| model.trim() == MODEL) {
            return Ok(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Err(Failure::new("scsi_debug made no disk"))
}
