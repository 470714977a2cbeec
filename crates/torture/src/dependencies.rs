//! One wait of each kind, made on purpose, behind a backlog of background
//! writes: the scheduler has to count it under its name and promote what it is
//! for, unless that promotion is off.

use crate::failure::require;
use crate::load::{PAGE_BYTES, start_writeback};
use crate::volume::{Layout, Volume};
use crate::{Failure, Outcome, Stand};
use sched::{Counters, Dependency};
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A third of a second's work for the device, in requests enough that the
/// awaited one is far behind.
const BACKLOG_BYTES: usize = 16 << 20;

/// Pages of a file that somebody waits for.
const AWAITED_BYTES: usize = 64 * PAGE_BYTES;

/// A file system so small that it can be filled.
const SMALL_MIB: u32 = 64;

/// `_IO(0x12, 119)` of `linux/fs.h`.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// A way to make a task wait.
struct Case {
    name: &'static str,
    dependency: Dependency,
    layout: Layout,
    wait: fn(&Stand, &Path) -> Outcome<()>,
}

const CASES: [Case; 6] = [
    Case {
        name: "a page under writeback is modified",
        dependency: Dependency::Data,
        layout: Layout {
            mib: None,
            options: "",
        },
        wait: modify_page,
    },
    Case {
        name: "a file under writeback is synced",
        dependency: Dependency::Data,
        layout: Layout {
            mib: None,
            options: "",
        },
        wait: sync_file,
    },
    Case {
        name: "a file under writeback is truncated",
        dependency: Dependency::Data,
        layout: Layout {
            mib: None,
            options: "",
        },
        wait: truncate_file,
    },
    Case {
        name: "a metadata block under writeback is modified",
        dependency: Dependency::Meta,
        layout: Layout {
            mib: None,
            options: "",
        },
        wait: modify_metadata,
    },
    Case {
        name: "a commit waits for a new file's data",
        dependency: Dependency::Journal,
        layout: Layout {
            mib: None,
            // Blocks are written before their extents are, so the commit has
            // to wait for them.
            options: "dioread_lock",
        },
        wait: commit,
    },
    Case {
        name: "an allocation finds no space while discards are under way",
        dependency: Dependency::Discard,
        layout: Layout {
            mib: Some(SMALL_MIB),
            options: "discard",
        },
        wait: fill_up,
    },
];

pub(crate) fn run(stand: &Stand) -> Outcome<()> {
    for boost in ["all", "none"] {
        stand.set("iosched/boost", boost)?;
        for case in &CASES {
            let counted = case.perform(stand)?;
            case.judge(&counted, boost == "all")
                .map_err(|failure| Failure::new(format!("boost={boost}: {failure}")))?;
        }
    }
    stand.set("iosched/boost", "all")
}

impl Case {
    /// Gives what the scheduler counted for it.
    fn perform(&self, stand: &Stand) -> Outcome<Counters> {
        let volume = Volume::with(stand, self.layout)?;
        let before = stand.counters()?;
        (self.wait)(stand, volume.path())?;
        let counted = stand.counters()?.since(&before);
        volume.unmount()?;
        Ok(counted)
    }

    fn judge(&self, counted: &Counters, boosts: bool) -> Outcome<()> {
        let of = |dependency: Dependency, what: &str| {
            let name = format!("{}_{what}", dependency.name());
            counted.all().get(&name).copied().unwrap_or_default()
        };
        let (waits, boosted) = (of(self.dependency, "waits"), of(self.dependency, "boosted"));
        let all = || format!("counted were {:?}", counted.all());
        require(waits > 0, || {
            format!("{}: no such wait was counted; {}", self.name, all())
        })?;
        let promoted: u64 = Dependency::ALL
            .iter()
            .map(|it| of(*it, "boosted") + of(*it, "requests"))
            .sum();
        match boosts {
            // A file's sync goes on from page to page; the first wait has
            // promoted all of it, and the device has the next ones already.
            true => require(boosted > 0, || {
                format!("{}: it was not promoted; {}", self.name, all())
            }),
            false => require(promoted == 0, || {
                format!("{}: something was promoted; {}", self.name, all())
            }),
        }
    }
}

fn create(path: &Path, bytes: usize) -> Outcome<File> {
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
fn write(file: &File, path: &Path, bytes: usize) -> Outcome<()> {
    file.write_all_at(&vec![1; bytes], 0)
        .map_err(Failure::io("write", path))
}

fn sync(file: &File, path: &Path) -> Outcome<()> {
    file.sync_all().map_err(Failure::io("sync", path))
}

fn queue(file: &File, path: &Path) -> Outcome<()> {
    start_writeback(file).map_err(Failure::io("start writeback of", path))
}

/// A file whose blocks are all on the device, and the same for the backlog, so
/// that writing them again changes no metadata but times.
fn settled(directory: &Path) -> Outcome<(File, File)> {
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
fn awaited_behind_backlog(directory: &Path) -> Outcome<File> {
    let (backlog, awaited) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    write(&awaited, directory, AWAITED_BYTES)?;
    queue(&backlog, directory)?;
    queue(&awaited, directory)?;
    Ok(awaited)
}

fn modify_page(_: &Stand, directory: &Path) -> Outcome<()> {
    let awaited = awaited_behind_backlog(directory)?;
    write(&awaited, directory, 1)
}

fn sync_file(_: &Stand, directory: &Path) -> Outcome<()> {
    let awaited = awaited_behind_backlog(directory)?;
    sync(&awaited, directory)
}

fn truncate_file(_: &Stand, directory: &Path) -> Outcome<()> {
    let awaited = awaited_behind_backlog(directory)?;
    awaited
        .set_len(0)
        .map_err(Failure::io("truncate", directory))
}

/// The inode's block is committed, then under writeback, then wanted again. All
/// writes into the page cache come before the commit, or their times would keep
/// the block in the journal.
fn modify_metadata(stand: &Stand, directory: &Path) -> Outcome<()> {
    let (backlog, awaited) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    set_mode(&awaited, directory, 0o600)?;
    sync(&awaited, directory)?;
    queue(&backlog, directory)?;
    let node = stand.device_node();
    let device = File::open(&node).map_err(Failure::io("open", &node))?;
    queue(&device, &node)?;
    set_mode(&awaited, directory, 0o640)
}

fn set_mode(file: &File, path: &Path, mode: u32) -> Outcome<()> {
    file.set_permissions(Permissions::from_mode(mode))
        .map_err(Failure::io("set the mode of a file in", path))
}

/// A new file's data is under writeback as background, and another file's sync
/// commits the transaction that it belongs to.
fn commit(_: &Stand, directory: &Path) -> Outcome<()> {
    let (backlog, other) = settled(directory)?;
    let path = directory.join("new");
    let new = create(&path, AWAITED_BYTES)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    queue(&backlog, directory)?;
    queue(&new, &path)?;
    write(&other, directory, PAGE_BYTES)?;
    sync(&other, directory)
}

/// The file system is full, and the part of the device behind it is being
/// discarded.
fn fill_up(stand: &Stand, directory: &Path) -> Outcome<()> {
    let path = directory.join("all");
    let file = create(&path, PAGE_BYTES)?;
    let mut end = 0;
    let page = [1; PAGE_BYTES];
    while write_until_full(&file, &page, end).map_err(Failure::io("fill", &path))? {
        end += PAGE_BYTES as u64;
    }
    sync(&file, &path)?;
    let node = stand.device_node();
    let device = OpenOptions::new()
        .write(true)
        .open(&node)
        .map_err(Failure::io("open", &node))?;
    let discarding = thread::spawn(move || discard_beyond(&device, u64::from(SMALL_MIB) << 20));
    thread::sleep(Duration::from_millis(30));
    let full = write_until_full(&file, &page, end);
    let discarded = discarding
        .join()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    discarded.map_err(Failure::io("discard", &node))?;
    full.map(drop).map_err(Failure::io("fill", &path))
}

/// Whether there was still space for it.
fn write_until_full(file: &File, page: &[u8], at: u64) -> io::Result<bool> {
    match file.write_all_at(page, at) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Half of what lies behind `start`, on a device that is much larger.
fn discard_beyond(device: &File, start: u64) -> io::Result<()> {
    let range: [u64; 2] = [start, 8 << 30];
    // SAFETY: the request reads two 64-bit numbers, start and length in bytes.
    match unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
