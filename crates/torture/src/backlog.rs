//! A backlog of background writes, and something behind it that somebody has to
//! wait for.

use crate::failure::require;
use crate::load::start_writeback;
use crate::{Failure, Outcome, Stand};
use device::PAGE_BYTES;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// In requests enough that the awaited one is far behind.
pub(crate) const BACKLOG_BYTES: usize = 16 << 20;

/// Much slower than any kernel, be it full of checks: the backlog is two seconds'
/// work for this device, and nothing is done before somebody waits for it.
pub(crate) const SLOW: &str = "program_ns=8960000 program_upper_ns=8960000";

/// Pages of a file that somebody waits for.
pub(crate) const AWAITED_BYTES: usize = 64 * PAGE_BYTES;

/// A file system so small that it can be filled.
pub(crate) const SMALL_MIB: u32 = 64;

/// A new file with so much in it, in the page cache.
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

/// Writes all of it again, into the page cache.
pub(crate) fn write(file: &File, path: &Path, bytes: usize) -> Outcome<()> {
    file.write_all_at(&vec![1; bytes], 0)
        .map_err(Failure::io("write", path))
}

/// `fsync`.
pub(crate) fn sync(file: &File, path: &Path) -> Outcome<()> {
    file.sync_all().map_err(Failure::io("sync", path))
}

/// Puts what is dirty under writeback as background.
pub(crate) fn queue(file: &File, path: &Path) -> Outcome<()> {
    start_writeback(file).map_err(Failure::io("start writeback of", path))
}

/// The same for metadata, which are the device's own pages.
pub(crate) fn queue_metadata(stand: &Stand) -> Outcome<()> {
    let node = stand.device_node();
    let device = File::open(&node).map_err(Failure::io("open", &node))?;
    queue(&device, &node)
}

/// Changes an inode.
pub(crate) fn set_mode(file: &File, path: &Path, mode: u32) -> Outcome<()> {
    file.set_permissions(Permissions::from_mode(mode))
        .map_err(Failure::io("set the mode of a file in", path))
}

/// A file whose blocks are all on the device, and the same for the backlog, so
/// that writing them again changes no metadata but times.
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

/// Both files under writeback, the awaited one behind the other.
pub(crate) fn awaited_behind_backlog(directory: &Path) -> Outcome<File> {
    let (backlog, awaited) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    write(&awaited, directory, AWAITED_BYTES)?;
    queue(&backlog, directory)?;
    queue(&awaited, directory)?;
    Ok(awaited)
}

/// The block of the awaited file's inode is committed, and under writeback behind
/// the backlog. All writes into the page cache come before the commit, or their
/// times would keep the block in the journal.
pub(crate) fn inode_behind_backlog(stand: &Stand, directory: &Path) -> Outcome<File> {
    let (backlog, awaited) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    set_mode(&awaited, directory, 0o600)?;
    sync(&awaited, directory)?;
    queue(&backlog, directory)?;
    queue_metadata(stand)?;
    Ok(awaited)
}

/// A new file's data is under writeback behind the backlog, and the transaction
/// that its size belongs to cannot be committed before. Gives another file.
pub(crate) fn commit_behind_backlog(directory: &Path) -> Outcome<File> {
    let (backlog, other) = settled(directory)?;
    let path = directory.join("new");
    let new = create(&path, AWAITED_BYTES)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    queue(&backlog, directory)?;
    queue(&new, &path)?;
    Ok(other)
}

/// Writes until there is no space, and then until there is none either when all
/// has been written back: what was set aside for metadata is given back then.
/// Gives the file's end.
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

/// Whether there was still space for it.
fn write_more(file: &File, at: u64) -> io::Result<bool> {
    match file.write_all_at(&[1; PAGE_BYTES], at) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Half of what lies behind `start`, on a device that is much larger.
fn discard_beyond(device: &File, start: u64) -> io::Result<()> {
    device::discard(device, start, 8 << 30)
}

/// Wants space that a full file system has not, while what is behind it on the
/// device is being discarded. `end` is where the only file ends.
pub(crate) fn allocate_during_discards(
    stand: &Stand,
    (file, path): (&File, &Path),
    end: u64,
) -> Outcome<()> {
    let node = stand.device_node();
    let device = OpenOptions::new()
        .write(true)
        .open(&node)
        .map_err(Failure::io("open", &node))?;
    let discarding = thread::Builder::new()
        .name("discarder".to_owned())
        .spawn(move || discard_beyond(&device, u64::from(SMALL_MIB) << 20))
        .map_err(Failure::io("discard", &node))?;
    // Again and again, as nobody sees from here when discards are queued.
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
