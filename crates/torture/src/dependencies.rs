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

/// In requests enough that the awaited one is far behind.
const BACKLOG_BYTES: usize = 16 << 20;

/// Much slower than any kernel, be it full of checks: the backlog is two seconds'
/// work for this device, and nothing is done before somebody waits for it.
const SLOW: &str = "program_ns=8960000";

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

const CASES: [Case; 8] = [
    Case {
        name: "a page under writeback is modified",
        dependency: Dependency::Data,
        layout: Layout::DEFAULT,
        wait: modify_page,
    },
    Case {
        name: "a file under writeback is synced",
        dependency: Dependency::Data,
        layout: Layout::DEFAULT,
        wait: sync_file,
    },
    Case {
        name: "a file under writeback is truncated",
        dependency: Dependency::Data,
        layout: Layout::DEFAULT,
        wait: truncate_file,
    },
    Case {
        name: "a metadata block under writeback is modified",
        dependency: Dependency::Meta,
        layout: Layout::DEFAULT,
        wait: modify_metadata,
    },
    Case {
        name: "a commit waits for a new file's data",
        dependency: Dependency::Journal,
        layout: Layout {
            // Blocks are written before their extents are, so the commit has
            // to wait for them.
            options: "dioread_lock",
            ..Layout::DEFAULT
        },
        wait: commit,
    },
    Case {
        name: "an allocation finds no space while discards are under way",
        dependency: Dependency::Discard,
        layout: Layout {
            mib: Some(SMALL_MIB),
            options: "discard",
            ..Layout::DEFAULT
        },
        wait: fill_up,
    },
    Case {
        name: "an inode under writeback is synced, without a journal",
        dependency: Dependency::Meta,
        layout: Layout {
            without_journal: true,
            ..Layout::DEFAULT
        },
        wait: sync_metadata,
    },
    Case {
        name: "a file is removed and its blocks discarded, without a journal",
        dependency: Dependency::Discard,
        layout: Layout {
            options: "discard",
            without_journal: true,
            ..Layout::DEFAULT
        },
        wait: remove,
    },
];

pub(crate) fn run(stand: &Stand) -> Outcome<()> {
    stand.replace_device(SLOW)?;
    each_case(stand)?;
    stand.replace_device("")
}

fn each_case(stand: &Stand) -> Outcome<()> {
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

/// The inode's block is under writeback when the inode has to be written.
fn sync_metadata(stand: &Stand, directory: &Path) -> Outcome<()> {
    let (backlog, awaited) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    set_mode(&awaited, directory, 0o600)?;
    queue(&backlog, directory)?;
    let node = stand.device_node();
    let device = File::open(&node).map_err(Failure::io("open", &node))?;
    queue(&device, &node)?;
    set_mode(&awaited, directory, 0o640)?;
    sync(&awaited, directory)
}

/// Whoever frees blocks waits until the device has forgotten them.
fn remove(_: &Stand, directory: &Path) -> Outcome<()> {
    let (backlog, awaited) = settled(directory)?;
    drop(awaited);
    write(&backlog, directory, BACKLOG_BYTES)?;
    queue(&backlog, directory)?;
    let path = directory.join("awaited");
    std::fs::remove_file(&path).map_err(Failure::io("remove", &path))
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
    let end = fill(&file, &path)?;
    let node = stand.device_node();
    let device = OpenOptions::new()
        .write(true)
        .open(&node)
        .map_err(Failure::io("open", &node))?;
    let discarding = thread::spawn(move || discard_beyond(&device, u64::from(SMALL_MIB) << 20));
    // Again and again, as nobody sees from here when discards are queued.
    let mut had_space = Ok(false);
    while matches!(had_space, Ok(false)) && !discarding.is_finished() {
        thread::sleep(Duration::from_millis(1));
        had_space = write_more(&file, end);
    }
    let discarded = discarding
        .join()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    discarded.map_err(Failure::io("discard", &node))?;
    let had_space = had_space.map_err(Failure::io("fill", &path))?;
    require(!had_space, || "a full file system had space".to_owned())
}

/// Writes until there is no space, and then until there is none either when all
/// has been written back: what was set aside for metadata is given back then.
/// Gives the file's end.
fn fill(file: &File, path: &Path) -> Outcome<u64> {
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
    let range: [u64; 2] = [start, 8 << 30];
    // SAFETY: the request reads two 64-bit numbers, start and length in bytes.
    match unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
