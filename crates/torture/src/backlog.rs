//! A backlog of background writes, and work after it that a task has to wait for.

use crate::failure::require;
use crate::load::start_writeback;
use crate::pressure::meminfo_kib;
use crate::{Failure, Outcome, TestBed, test_bed};
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use sys::device::PAGE_BYTES;

/// Size of the backlog, whose requests are enough to put the awaited one far behind.
pub(crate) const BACKLOG_BYTES: usize = 16 << 20;

/// Parameters of a device that is much slower than any kernel, even one with all checks. The
/// backlog takes it two seconds, so nothing is done before a task waits for it.
pub(crate) const SLOW: &str = "program_ns=8960000 program_upper_ns=8960000";

/// Size of a file that a task waits for.
pub(crate) const AWAITED_BYTES: usize = 64 * PAGE_BYTES;

/// Time until workers have taken what is dirty: far below what the backlog takes the device.
const WORKERS_LIMIT_MS: usize = 500;

/// Size of a file system that can be filled.
pub(crate) const SMALL_MIB: u32 = 64;

/// Makes a new file with `bytes` bytes in the page cache.
pub(crate) fn create(path: &Path, bytes: usize) -> Outcome<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(Failure::io("make", path))?;
    write(&file, path, bytes)?;
    Ok(file)
}

/// Writes `bytes` bytes of the file again, into the page cache.
pub(crate) fn write(file: &File, path: &Path, bytes: usize) -> Outcome<()> {
    file.write_all_at(&vec![1; bytes], 0)
        .map_err(Failure::io("write", path))
}

/// Syncs a file (`fsync`).
pub(crate) fn sync(file: &File, path: &Path) -> Outcome<()> {
    file.sync_all().map_err(Failure::io("sync", path))
}

/// Truncates a file to nothing.
pub(crate) fn truncate(file: &File, path: &Path) -> Outcome<()> {
    file.set_len(0).map_err(Failure::io("truncate", path))
}

/// Starts background writeback of a file's dirty pages.
pub(crate) fn queue(file: &File, path: &Path) -> Outcome<()> {
    start_writeback(file).map_err(Failure::io("start writeback of", path))
}

/// Has the kernel's workers write back all that is dirty, and waits until they hold it. The kernel
/// starts them when its periodic writeback is switched on.
pub(crate) fn queue_by_workers() -> Outcome<()> {
    const PERIOD: &str = "/proc/sys/vm/dirty_writeback_centisecs";
    test_bed::write(PERIOD, "0")?;
    test_bed::write(PERIOD, "500")?;
    for _ in 0..WORKERS_LIMIT_MS {
        if meminfo_kib("Dirty")? < (AWAITED_BYTES >> 10) as u64 / 2 {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err(Failure::new(format!(
        "{} KiB were still dirty",
        meminfo_kib("Dirty")?
    )))
}

/// Starts background writeback of metadata, which are pages of the device.
pub(crate) fn queue_metadata(bed: &TestBed) -> Outcome<()> {
    let node = bed.device_node();
    let device = File::open(&node).map_err(Failure::io("open", &node))?;
    queue(&device, &node)
}

/// Changes the mode in a file's inode.
pub(crate) fn set_mode(file: &File, path: &Path, mode: u32) -> Outcome<()> {
    file.set_permissions(Permissions::from_mode(mode))
        .map_err(Failure::io("set the mode of a file in", path))
}

/// The backlog's file and the awaited file, with all their blocks on the device. Writing them again
/// changes no metadata but times.
pub(crate) fn settled(directory: &Path) -> Outcome<(File, File)> {
    let (backlog, awaited) = (directory.join("backlog"), directory.join("awaited"));
    let files = (
        create(&backlog, BACKLOG_BYTES)?,
        create(&awaited, AWAITED_BYTES)?,
    );
    sync(&files.0, &backlog)?;
    sync(&files.1, &awaited)?;
    Ok(files)
}

/// Puts both files under writeback, the awaited one after the backlog.
pub(crate) fn awaited_behind_backlog(directory: &Path) -> Outcome<File> {
    let (backlog, awaited) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    write(&awaited, directory, AWAITED_BYTES)?;
    queue(&backlog, directory)?;
    queue(&awaited, directory)?;
    Ok(awaited)
}

/// Puts the backlog under writeback. Returns the path of the awaited file, which is not open.
pub(crate) fn closed_beside_backlog(directory: &Path) -> Outcome<PathBuf> {
    let (backlog, _) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    queue(&backlog, directory)?;
    Ok(directory.join("awaited"))
}

/// Puts the block of the awaited file's inode under writeback after the backlog. The block is
/// committed. All writes into the page cache precede the commit, since their times would keep the
/// block in the journal.
pub(crate) fn inode_behind_backlog(bed: &TestBed, directory: &Path) -> Outcome<File> {
    let (backlog, awaited) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    set_mode(&awaited, directory, 0o600)?;
    sync(&awaited, directory)?;
    queue(&backlog, directory)?;
    queue_metadata(bed)?;
    Ok(awaited)
}

/// Puts a new file's data under writeback after the backlog, so that the transaction with its size
/// cannot be committed before. Returns another file.
pub(crate) fn commit_behind_backlog(directory: &Path) -> Outcome<File> {
    let (backlog, other) = settled(directory)?;
    let path = directory.join("new");
    let new = create(&path, AWAITED_BYTES)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    queue(&backlog, directory)?;
    queue(&new, &path)?;
    Ok(other)
}

/// Writes until there is no space, also after all has been written back, which frees the space
/// reserved for metadata. Returns the file's end.
pub(crate) fn fill(file: &File, path: &Path) -> Outcome<u64> {
    let mut end = 0;
    loop {
        let begin = end;
        while write_more(file, end).map_err(Failure::io("fill", path))? {
            end += PAGE_BYTES as u64;
        }
        sync(file, path)?;
        if end == begin {
            return Ok(end);
        }
    }
}

/// Writes a page; false if there is no space.
fn write_more(file: &File, at: u64) -> io::Result<bool> {
    match file.write_all_at(&[1; PAGE_BYTES], at) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Discards 8 GiB from `start` on, about half of the device's rest.
fn discard_beyond(device: &File, start: u64) -> io::Result<()> {
    sys::device::discard(device, start, 8 << 30)
}

/// Allocates space that a full file system lacks, while the device discards blocks after its end.
/// `end` is the end of the only file.
pub(crate) fn allocate_during_discards(
    bed: &TestBed,
    (file, path): (&File, &Path),
    end: u64,
) -> Outcome<()> {
    let node = bed.device_node();
    let device = OpenOptions::new()
        .write(true)
        .open(&node)
        .map_err(Failure::io("open", &node))?;
    let discarding = thread::Builder::new()
        .name("discarder".to_owned())
        .spawn(move || discard_beyond(&device, u64::from(SMALL_MIB) << 20))
        .map_err(Failure::io("discard", &node))?;
    // Tries repeatedly, since the time at which discards are queued is not visible here.
    let mut had_space = Ok(false);
    while matches!(had_space, Ok(false)) && !discarding.is_finished() {
        thread::sleep(Duration::from_millis(1));
        had_space = write_more(file, end);
    }
    let discarded = discarding
        .join()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    discarded.map_err(Failure::io("discard", &node))?;
    let had_space = had_space.map_err(Failure::io("fill", path))?;
    require(!had_space, || "a full file system had space".to_owned())
}
