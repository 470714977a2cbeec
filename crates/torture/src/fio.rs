//! fio jobs, which read back and verify everything that they write.

use crate::failure::require;
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed};
use std::path::Path;
use std::process::Command;

const FIO: &str = "/bin/fio";

/// Jobs in a directory, all at once.
const FILE_JOBS: [(&str, &str); 4] = [
    (
        "buffered-sequential",
        "rw=write bs=64k ioengine=psync fsync=16",
    ),
    (
        "buffered-random",
        "rw=randwrite bsrange=4k-64k ioengine=psync fdatasync=64",
    ),
    (
        "direct-sequential",
        "rw=write bs=128k ioengine=libaio direct=1 iodepth=16",
    ),
    (
        "direct-random",
        "rw=randwrite bsrange=4k-64k ioengine=libaio direct=1 iodepth=32",
    ),
];

/// Job on the bare device: each block is discarded and then written.
const DEVICE_JOB: (&str, &str) = ("trimmed", "rw=randtrimwrite bs=64k ioengine=psync direct=1");

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let volume = Volume::make(bed)?;
    let mut command = fio(bed, 24);
    command.arg(format!("--directory={}", volume.path().display()));
    for (name, options) in FILE_JOBS {
        job(&mut command, name, options);
    }
    succeeds(command)?;
    volume.unmount()?;
    let mut command = fio(bed, 32);
    command.arg(format!("--filename={}", bed.device_node().display()));
    job(&mut command, DEVICE_JOB.0, DEVICE_JOB.1);
    succeeds(command)
}

/// A fio command with the options of all jobs that verify.
pub(crate) fn fio(bed: &TestBed, mib: u32) -> Command {
    let mut command = plain(bed, mib);
    command.args([
        "--verify=crc32c",
        "--verify_fatal=1",
        "--do_verify=1",
        "--allow_mounted_write=1",
    ]);
    command
}

/// A fio command without verification.
pub(crate) fn plain(bed: &TestBed, mib: u32) -> Command {
    let mut command = Command::new(FIO);
    command
        .args(["--thread", "--group_reporting"])
        .arg(format!("--randseed={}", bed.seed))
        .arg(format!("--size={}M", mib * bed.rounds))
        .current_dir("/tmp")
        .env("LD_LIBRARY_PATH", sys::arch::NATIVE.libraries);
    command
}

/// Adds a job to the command.
pub(crate) fn job(command: &mut Command, name: &str, options: &str) {
    command.arg(format!("--name={name}"));
    let options = options.split(' ');
    command.args(options.map(|option| format!("--{option}")));
}

/// Runs the command; errors that fio found are the failure.
pub(crate) fn succeeds(mut command: Command) -> Outcome<()> {
    let done = command
        .output()
        .map_err(Failure::io("run", Path::new(FIO)))?;
    require(done.status.success(), || {
        let said = String::from_utf8_lossy(&done.stderr);
        let said: Vec<_> = said.lines().filter(|line| !line.is_empty()).collect();
        format!("fio failed ({}): {}", done.status, said.join("; "))
    })
}
