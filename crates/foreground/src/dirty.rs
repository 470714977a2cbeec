//! Dirty limits for removable and slow disks, whichever app has the focus: a copy to a USB stick
//! must not throttle writers to other disks.
//!
//! The kernel throttles writers by the dirty pages of all disks, unless a disk has a limit of its
//! own (`BDI_CAP_STRICTLIMIT` and `__wb_calc_thresh` in mm/page-writeback.c). Such a disk's writers
//! are throttled by its limit, and its dirty pages are too few to throttle others. The limit is
//! what the disk writes in a second, measured while it streamed writes.
//!
//! A disk that is not removable has a limit only while it shows that it is slow: the limit is put
//! back once the disk is faster, or has shown nothing for a minute. Its users share it, so it changes
//! once a minute at most.
//!
//! The limit is set by `strict_limit`, `max_ratio_fine` and `min_ratio_fine` in
//! `/sys/class/bdi/MAJOR:MINOR` (from 6.2 on), in millionths of the system's limit. Older kernels
//! have only `max_ratio`, which applies once the system is near its limit and others are throttled
//! already, so nothing is set there.
//!
//! `max_bytes` is not used: the kernel stores it as a ratio and returns another number as memory
//! fills, so a change by another program could not be detected.

use crate::Error;
use crate::applied::restore;
use crate::cgroup::below;
use crate::kept::Kept;
use crate::shown::{Shown, Told};
use crate::watch::{Watch, WatchFlags};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::device::{Device, Statistics};
use sys::knobs::{Change, Journal, Restored, Standing};

const JOURNAL: &str = "dirty";

/// Largest part of the system's limit for one disk, in 1/256. Two stalled disks leave the rest to
/// others.
const MOST_256: u64 = 32;
/// Most disks with a limit: their guaranteed minimums reduce the limit of all other disks.
const MOST_DISKS: usize = 4;

/// A limit stays if it differs by less than this, in percent.
const NEAR_PERCENT: u64 = 30;

/// Intervals of checks while a disk writes, and while none does.
const BUSY_APART: Duration = Duration::from_secs(1);
const IDLE_APART: Duration = Duration::from_secs(16);

/// Least time between two changes of a disk's limit.
const CHANGES_APART: Duration = Duration::from_secs(60);
/// Time after which a disk that was slow needs to show it again.
const SLOW_LASTS: Duration = Duration::from_secs(60);

/// Directories in which a file appears with a new disk: udev's database, and /dev, which the
/// service does not see (PrivateDevices).
const TELLING_PLACES: [&str; 2] = ["/run/udev/data", "/dev"];
/// Shortest interval between searches for disks.
const FINDS_APART: Duration = Duration::from_secs(1);

/// A disk that may get a limit.
#[derive(Debug)]
struct Disk {
    device: Device,
    /// Directory of its limits, such as `/sys/class/bdi/8:16`, not below the root.
    bdi: PathBuf,
    removable: bool,
    shown: Shown,
    told: Option<Statistics>,
    /// When it last told its rate.
    told_at: Option<Instant>,
    limit: Option<Limit>,
    /// When its limit was set, changed or undone.
    changed_at: Option<Instant>,
}

/// A disk's limit.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// In millionths of the system's limit.
    part: u64,
    /// Whether the disk's rate was known when it was set.
    by_rate: bool,
}

/// The limits of all disks. They and their journal outlive the value; [`release_limits`] undoes
/// them.
#[derive(Debug)]
pub struct DirtyLimits {
    root: PathBuf,
    pub(crate) kept: Kept,
    /// By diskseq, which is unique since boot.
    disks: BTreeMap<u64, Disk>,
    look_at: Option<Instant>,
    /// When a disk's limit may end although nobody writes.
    end_at: Option<Instant>,
    /// Whether no disk wrote before the last check.
    is_idle: bool,
    /// Watches for new and removed disks.
    watch: Watch<PathBuf>,
    find_at: Option<Instant>,
}

impl DirtyLimits {
    /// Undoes the limits of a killed predecessor.
    ///
    /// # Errors
    /// [`Error`], of the journal or of what the kernel says of disks.
    pub fn start(root: &Path, now: Instant) -> Result<Self, Error> {
        release_limits(root)?;
        let mut limits = DirtyLimits {
            root: root.to_owned(),
            kept: Kept::open(root, JOURNAL)?,
            disks: BTreeMap::new(),
            look_at: None,
            end_at: None,
            is_idle: false,
            watch: Watch::new()?,
            find_at: Some(now),
        };
        for place in TELLING_PLACES {
            let flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_TO;
            let path = below(root, place);
            limits.watch.add(&path, flags, PathBuf::from(place))?;
        }
        limits.tick(now)?;
        Ok(limits)
    }

    /// Descriptor that is readable when disks may have been added or removed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// Reads pending events of disks.
    ///
    /// # Errors
    /// [`Error`], of the journal or of what the kernel says of disks.
    pub fn hear(&mut self, now: Instant) -> Result<(), Error> {
        let events = self.watch.events()?;
        if events.lost || !events.list.is_empty() {
            self.find_at.get_or_insert(now + FINDS_APART);
        }
        Ok(())
    }

    /// When [`Self::tick`] is due; None without a disk that may get a limit, and while none writes
    /// if the caller hears of stalls and reports them to [`Self::stalled`].
    pub fn due(&self, hears_of_stalls: bool) -> Option<Instant> {
        let sleeps = self.disks.is_empty() || hears_of_stalls && self.is_idle;
        let look_at = self.look_at.filter(|_| !sleeps);
        [look_at, self.find_at, self.end_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Schedules a check, after tasks have stalled for I/O: a copy that stalls nobody needs no
    /// other limit.
    pub fn stalled(&mut self, now: Instant) {
        if self.is_idle {
            self.is_idle = false;
            self.look_at = Some(now);
        }
    }

    /// Schedules a search after disks were added or removed.
    fn find(&mut self, now: Instant) -> Result<(), Error> {
        let root_disks = disks_of_root(&self.root);
        let mut found = BTreeMap::new();
        for device in Device::all(&self.root)? {
            // What cannot be read is being taken out.
            let Ok(Some((sequence, disk))) = candidate(&self.root, &device, &root_disks) else {
                continue;
            };
            let disk = self.disks.remove(&sequence).unwrap_or(disk);
            found.insert(sequence, disk);
        }
        let gone = std::mem::replace(&mut self.disks, found);
        self.forget(gone.into_values())?;
        self.look_at = Some(now);
        self.is_idle = false;
        Ok(())
    }

    /// Forgets the changes of removed disks; another disk may get their numbers.
    fn forget(&mut self, gone: impl Iterator<Item = Disk>) -> Result<(), Error> {
        let known = self.kept.changes().len();
        for disk in gone {
            put_back(&mut self.kept, &disk.bdi)?;
        }
        match self.kept.changes().len() == known {
            true => Ok(()),
            false => Ok(self.kept.journal.settle()?),
        }
    }

    /// Checks the disks if that is due, and changes limits that differ.
    ///
    /// # Errors
    /// [`Error`], of the journal or of what the kernel says of disks.
    pub fn tick(&mut self, now: Instant) -> Result<(), Error> {
        if self.find_at.take_if(|at| *at <= now).is_some() {
            self.find(now)?;
        }
        let ends = self.end_at.take_if(|at| *at <= now).is_some();
        if self.look_at.take_if(|at| *at <= now || ends).is_none() {
            return Ok(());
        }
        let mut any_writes = false;
        for disk in self.disks.values_mut() {
            any_writes |= disk.look(&self.root, now);
        }
        self.is_idle = !any_writes;
        self.look_at = Some(match any_writes {
            true => now + BUSY_APART,
            false => now + IDLE_APART,
        });
        self.apply(now)?;
        self.end_at = self.disks.values().filter_map(Disk::ends_at).min();
        Ok(())
    }

    fn apply(&mut self, now: Instant) -> Result<(), Error> {
        let Some(limit_bytes) = limit_of_all(&self.root) else {
            return Ok(());
        };
        let mut limited = self.disks.values().filter(|it| it.limit.is_some()).count();
        for disk in self.disks.values_mut() {
            let next = disk.next(limit_bytes, now);
            let is_new = next.is_some() && disk.limit.is_none();
            if is_new && limited == MOST_DISKS || !disk.may_change(next, now) {
                continue;
            }
            limited += usize::from(is_new);
            limited -= usize::from(next.is_none());
            disk.limit = next;
            disk.changed_at = Some(now);
            match next {
                Some(limit) => set_limit(&mut self.kept, &disk.bdi, limit.part)?,
                None => put_back(&mut self.kept, &disk.bdi)?,
            }
        }
        match self.kept.lines.is_empty() {
            true => Ok(()),
            false => Ok(self.kept.journal.settle()?),
        }
    }

    /// Undoes all limits.
    ///
    /// # Errors
    /// [`Error`], of the journal or of what the kernel says of disks.
    pub fn release(self) -> Result<Vec<(Change, Restored)>, Error> {
        self.kept.release()
    }
}

/// Undoes the dirty limits of disks, whichever process set them.
///
/// # Errors
/// [`Error::Knobs`].
pub fn release_limits(root: &Path) -> Result<Vec<(Change, Restored)>, Error> {
    restore(root, JOURNAL)
}

impl Disk {
    /// Whether it has written since the last check.
    fn look(&mut self, root: &Path, now: Instant) -> bool {
        let path = format!("/sys/block/{}/stat", self.device.name());
        let text = fs::read_to_string(below(root, &path)).unwrap_or_default();
        let Some(counters) = Statistics::parse(&text) else {
            return false;
        };
        let Some(before) = self.told.replace(counters) else {
            return false;
        };
        let told = self.shown.take(&before, &counters);
        if told == Told::Rate {
            self.told_at = Some(now);
        }
        told != Told::Nothing
    }

    /// The limit that it should have now.
    fn next(&self, limit_bytes: u64, now: Instant) -> Option<Limit> {
        let is_recent = |at: Instant| now.saturating_duration_since(at) < SLOW_LASTS;
        let is_slow = self.shown.is_slow() && self.told_at.is_some_and(is_recent);
        (self.removable || is_slow).then(|| Limit {
            part: part(self.shown.worth(limit_bytes / 256 * MOST_256), limit_bytes),
            by_rate: self.shown.is_known(),
        })
    }

    /// Whether its limit differs from `next` and is old enough. A first limit by a guess is replaced
    /// as soon as the rate is known.
    fn may_change(&self, next: Option<Limit>, now: Instant) -> bool {
        let is_old = |at: Instant| now.saturating_duration_since(at) >= CHANGES_APART;
        let is_old = self.changed_at.is_none_or(is_old);
        match (self.limit, next) {
            (None, None) => false,
            (Some(held), Some(next)) => {
                let is_near = held.part.abs_diff(next.part) * 100 <= held.part * NEAR_PERCENT;
                !is_near && (is_old || next.by_rate && !held.by_rate)
            }
            _ => is_old,
        }
    }

    /// When its limit ends, if the disk shows nothing more; None for a limit that stays.
    fn ends_at(&self) -> Option<Instant> {
        let limited = self.limit.filter(|_| !self.removable);
        let shows = self.told_at.map(|at| at + SLOW_LASTS);
        let changed = self.changed_at.map(|at| at + CHANGES_APART);
        limited.and(shows.max(changed))
    }
}

/// The disk with its number, if it may get a limit. Excluded are the system's own disk, whose apps
/// would only be throttled earlier, and disks in files or memory, which users can make.
fn candidate(
    root: &Path,
    device: &Device,
    root_disks: &[String],
) -> Result<Option<(u64, Disk)>, sys::device::Error> {
    let disks = real_disks(root, device)?;
    let is_roots = disks
        .iter()
        .any(|it| root_disks.iter().any(|name| name == it.name()));
    if is_roots || disks.is_empty() || device.size_bytes()? == 0 {
        return Ok(None);
    }
    let mut removable = false;
    for disk in &disks {
        removable |= disk.is_removable()?;
    }
    let bdi = Path::new("/sys/class/bdi").join(device.number_text()?);
    let strict = bdi.join("strict_limit");
    if !below(root, &strict.to_string_lossy()).exists() {
        return Ok(None);
    }
    let disk = Disk {
        removable,
        shown: Shown::of(device),
        device: device.clone(),
        bdi,
        told: None,
        told_at: None,
        limit: None,
        changed_at: None,
    };
    Ok(Some((device.sequence()?, disk)))
}

/// Physical disks below `device`: itself, or the disks of a stacked device.
fn real_disks(root: &Path, device: &Device) -> Result<Vec<Device>, sys::device::Error> {
    let below = device.below()?;
    let below = below.iter().filter_map(|it| Device::resolve(root, it).ok());
    let disks: Vec<_> = match device.mapper()? {
        Some(_) => below.collect(),
        None => vec![device.clone()],
    };
    Ok(disks.into_iter().filter(|it| !it.is_virtual()).collect())
}

/// Physical disks of the root file system; empty if it has none. The service has an empty root, into
/// which the program is bound from the system's disk.
fn disks_of_root(root: &Path) -> Vec<String> {
    let program = std::env::current_exe().unwrap_or_default();
    disks_with(root, &[Path::new("/"), &program])
}

/// Names of the physical disks that have these files.
fn disks_with(root: &Path, files: &[&Path]) -> Vec<String> {
    let found = files.iter().filter_map(|file| {
        let device = Device::resolve(root, &file.to_string_lossy()).ok()?;
        real_disks(root, &device).ok()
    });
    found.flatten().map(|it| it.name().to_owned()).collect()
}

/// Number of dirty bytes above which the kernel throttles all writers, with the memory available
/// now.
fn limit_of_all(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(below(root, "/proc/vmstat")).ok()?;
    let mut lines = text.lines();
    let pages = lines.find_map(|line| line.strip_prefix("nr_dirty_threshold "))?;
    let pages: u64 = pages.trim().parse().ok()?;
    Some(pages * sys::device::PAGE_BYTES as u64).filter(|it| *it > 0)
}

/// A knob and its target value.
type Setting = (PathBuf, u64);

/// `bytes` in millionths of the system's limit.
fn part(bytes: u64, limit_bytes: u64) -> u64 {
    const WHOLE: u128 = 1_000_000;
    (u128::from(bytes) * WHOLE / u128::from(limit_bytes)).max(1) as u64
}

/// Settings of the limit. The minimum is set as well: the kernel shares the limit by recent writes,
/// so a disk would have no pages at the start of a copy, and stall beside a fast disk.
fn settings(bdi: &Path, part: u64) -> Vec<Setting> {
    vec![
        (bdi.join("strict_limit"), 1),
        (bdi.join("max_ratio_fine"), part),
        (bdi.join("min_ratio_fine"), part),
    ]
}

/// Sets the limit of a disk, and notes the changes for the log.
fn set_limit(kept: &mut Kept, bdi: &Path, part: u64) -> Result<(), Error> {
    match take(&mut kept.journal, &settings(bdi, part)) {
        Ok(changes) => {
            let lines = changes.iter().map(|it| format!("  {it:#}"));
            kept.lines.extend(lines);
            Ok(())
        }
        // It was taken out meanwhile; another look will miss it.
        Err(sys::knobs::Error::Read { .. } | sys::knobs::Error::Write { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Puts back what was changed for a disk.
fn put_back(kept: &mut Kept, bdi: &Path) -> Result<(), Error> {
    let changes = kept.journal.changes().iter();
    let paths = changes.map(|it| it.path.clone());
    let of_disk: Vec<_> = paths.filter(|it| it.starts_with(bdi)).collect();
    for path in of_disk.iter().rev() {
        if kept.journal.put_back(path)? == Restored::Written {
            let path = path.display();
            kept.lines.push(format!("  {path}: as before"));
        }
    }
    Ok(())
}

/// Changes the knobs that differ, unless another program has set them. The minimum must never
/// exceed the maximum, so it goes first when both fall.
fn take(journal: &mut Journal, settings: &[Setting]) -> Result<Vec<Change>, sys::knobs::Error> {
    let mut ordered = settings.to_vec();
    if let Some((least, value)) = settings.last() {
        let held: u64 = journal.get(least)?.parse().unwrap_or(0);
        if *value < held {
            ordered.reverse();
        }
    }
    let known = journal.changes().len();
    for (path, value) in &ordered {
        if journal.standing(path)? != Standing::Theirs {
            journal.set(
                path,
                &value.to_string(),
                "its dirty pages do not throttle writers to other disks",
            )?;
        }
    }
    Ok(journal.changes()[known..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};

    /// A machine of one system disk and one stick, with 128 MiB that all may have dirty.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        at(
            &root,
            "proc/vmstat",
            "nr_dirty 5\nnr_dirty_threshold 32768\n",
        );
        at(&root, "proc/sys/kernel/random/boot_id", "a\n");
        at(
            &root,
            "proc/self/mountinfo",
            "1 0 8:0 / / rw - ext4 /dev/sda rw\n",
        );
        for (name, number, removable) in [("sda", "8:0", "0"), ("sdb", "8:16", "1")] {
            plug(&root, name, number, removable);
        }
        root
    }

    fn at(root: &tempfile::TempDir, path: &str, text: &str) {
        let path = root.path().join(path);
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, text).unwrap();
    }

    fn plug(root: &tempfile::TempDir, name: &str, number: &str, removable: &str) {
        let of_disk = |attribute: &str| format!("sys/block/{name}/{attribute}");
        at(root, &of_disk("size"), "2048\n");
        at(root, &of_disk("dev"), number);
        at(root, &of_disk("diskseq"), &number.replace(':', ""));
        at(root, &of_disk("removable"), removable);
        at(root, &of_disk("queue/scheduler"), "[none]\n");
        let of_bdi = |attribute: &str| format!("sys/class/bdi/{number}/{attribute}");
        at(root, &of_bdi("strict_limit"), "0\n");
        at(root, &of_bdi("max_ratio_fine"), "1000000\n");
        at(root, &of_bdi("min_ratio_fine"), "0\n");
        let link = root.path().join("sys/dev/block").join(number);
        create_dir_all(link.parent().unwrap()).unwrap();
        let _ = std::os::unix::fs::symlink(root.path().join("sys/block").join(name), link);
    }

    fn held(root: &tempfile::TempDir, number: &str) -> [String; 3] {
        ["strict_limit", "max_ratio_fine", "min_ratio_fine"].map(|attribute| {
            let path = root.path().join("sys/class/bdi").join(number);
            fs::read_to_string(path.join(attribute))
                .unwrap()
                .trim()
                .to_owned()
        })
    }

    /// What the disk has done in all: written in so much time, without a read.
    fn has_written(root: &tempfile::TempDir, name: &str, mib: u64, busy_ms: u64) {
        let sectors = mib * 2048;
        let requests = mib * 2;
        let text = format!("0 0 0 0 {requests} 0 {sectors} 9 0 {busy_ms} 9 0 0 0 0 0 0\n");
        at(root, &format!("sys/block/{name}/stat"), &text);
    }

    /// A disk that stays in the machine, beside the system's.
    fn add_data_disk(root: &tempfile::TempDir) {
        plug(root, "sdc", "8:32", "0");
        has_written(root, "sdc", 0, 0);
    }

    /// Looks each second, with what `done` tells of that second.
    fn looks(limits: &mut DirtyLimits, now: &mut Instant, seconds: u64, done: impl Fn(u64)) {
        for second in 1..=seconds {
            done(second);
            *now += BUSY_APART;
            limits.stalled(*now);
            limits.tick(*now).unwrap();
        }
    }

    #[test]
    fn whoever_writes_little_and_waits_gets_nobodys_disk_a_limit() {
        let root = tree();
        add_data_disk(&root);
        let mut now = Instant::now();
        let mut limits = DirtyLimits::start(root.path(), now).unwrap();
        // 4 KiB by O_DSYNC, 400 times a second.
        looks(&mut limits, &mut now, 60, |second| {
            let [writes, sectors, busy_ms] = [400, 3200, 1000].map(|it| it * second);
            let text = format!("0 0 0 0 {writes} 0 {sectors} 9 0 {busy_ms} 9 0 0 0 0 0 0\n");
            at(&root, "sys/block/sdc/stat", &text);
        });
        assert_eq!(held(&root, "8:32"), UNTOUCHED);
    }

    #[test]
    fn a_slow_disk_has_a_limit_while_it_shows_that_it_is_slow() {
        for is_fast_again in [false, true] {
            let root = tree();
            add_data_disk(&root);
            let mut now = Instant::now();
            let mut limits = DirtyLimits::start(root.path(), now).unwrap();
            looks(&mut limits, &mut now, 9, |second| {
                has_written(&root, "sdc", 10 * second, 1000 * second);
            });
            assert_eq!(held(&root, "8:32"), ["1", "78125", "78125"]);
            if is_fast_again {
                // Not at once: all that use the disk share the limit.
                looks(&mut limits, &mut now, 20, |second| {
                    has_written(&root, "sdc", 90 + 200 * second, 9000 + 1000 * second);
                });
                assert_eq!(held(&root, "8:32"), ["1", "78125", "78125"]);
            }
            // Nobody stalls or writes any more.
            looks(&mut limits, &mut now, 2, |_| ());
            now = limits.due(true).expect("the limit ends by itself");
            limits.tick(now).unwrap();
            assert_eq!(held(&root, "8:32"), UNTOUCHED, "fast {is_fast_again}");
            assert_eq!(limits.due(true), None);
        }
    }

    #[test]
    fn a_limit_changes_once_a_minute_at_most() {
        let root = tree();
        add_data_disk(&root);
        let mut now = Instant::now();
        let mut limits = DirtyLimits::start(root.path(), now).unwrap();
        let [mut changes, mut before] = [0, 0];
        let (mut mib, mut busy_ms) = (0, 0);
        for second in 0..600 {
            // A user whose stream is slow for a while, and fast for a while.
            mib += if second % 12 < 8 { 5 } else { 300 };
            busy_ms += 1000;
            has_written(&root, "sdc", mib, busy_ms);
            looks(&mut limits, &mut now, 1, |_| ());
            let part = held(&root, "8:32")[1].parse().unwrap();
            changes += u32::from(part != std::mem::replace(&mut before, part));
        }
        assert!((2..=11).contains(&changes), "{changes}");
    }

    const UNTOUCHED: [&str; 3] = ["0", "1000000", "0"];

    #[test]
    fn the_systems_disk_is_known_in_an_empty_root_by_the_program_in_it() {
        let root = tree();
        at(&root, "usr/bin/frontrowd", "");
        at(
            &root,
            "proc/self/mountinfo",
            "1 0 0:9 / / rw - tmpfs tmpfs rw\n2 1 8:0 /usr/bin/frontrowd /usr/bin/frontrowd ro - ext4 /dev/sda rw\n",
        );
        let files = [Path::new("/"), Path::new("/usr/bin/frontrowd")];
        assert_eq!(disks_with(root.path(), &files), ["sda"]);
    }

    #[test]
    fn a_stick_has_a_second_of_its_rate_and_the_systems_disk_nothing() {
        let root = tree();
        let begun = Instant::now();
        has_written(&root, "sdb", 0, 0);
        let mut limits = DirtyLimits::start(root.path(), begun).unwrap();
        // 16 MiB of 128, before anything is known.
        assert_eq!(held(&root, "8:16"), ["1", "125000", "125000"]);
        assert_eq!(held(&root, "8:0"), UNTOUCHED);

        // It has not been written, so nobody looks until a task stalls.
        assert_eq!(limits.due(true), None);
        has_written(&root, "sdb", 10, 1000);
        limits.stalled(begun);
        limits.tick(limits.due(true).unwrap()).unwrap();
        assert_eq!(held(&root, "8:16"), ["1", "78125", "78125"]);
        // The next check is soon while a task writes.
        let soon = limits.due(true).unwrap();
        limits.tick(soon).unwrap();
        assert_eq!(limits.due(false), Some(soon + IDLE_APART));
        assert_eq!(limits.due(true), None);
        limits.stalled(soon + BUSY_APART);
        assert_eq!(limits.due(true), Some(soon + BUSY_APART));

        limits.release().unwrap();
        assert_eq!(held(&root, "8:16"), UNTOUCHED);
    }

    #[test]
    fn nothing_wakes_the_daemon_where_no_such_disk_is_and_a_new_one_is_found() {
        let root = tree();
        create_dir_all(root.path().join("run/udev/data")).unwrap();
        let stick = root.path().join("sys/block/sdb");
        remove_dir_all(&stick).unwrap();
        let begun = Instant::now();
        let mut limits = DirtyLimits::start(root.path(), begun).unwrap();
        assert_eq!(limits.due(false), None);

        plug(&root, "sdb", "8:16", "1");
        at(&root, "run/udev/data/b8:16", "");
        limits.hear(begun).unwrap();
        limits.tick(limits.due(false).unwrap()).unwrap();
        assert_eq!(held(&root, "8:16")[0], "1");

        // Taken out, nothing is left of it; another with its number is another disk.
        remove_dir_all(&stick).unwrap();
        fs::remove_file(root.path().join("run/udev/data/b8:16")).unwrap();
        limits.hear(begun).unwrap();
        limits.tick(limits.due(false).unwrap()).unwrap();
        assert!(
            limits.kept.changes().is_empty(),
            "{:?}",
            limits.kept.changes()
        );
    }

    #[test]
    fn whatever_was_set_is_undone_after_a_kill_at_any_step() {
        for looks in 0..4 {
            let root = tree();
            has_written(&root, "sdb", 0, 0);
            let begun = Instant::now();
            let mut limits = DirtyLimits::start(root.path(), begun).unwrap();
            for look in 1..=looks {
                has_written(&root, "sdb", 10 * look * look, 1000 * look);
                limits.tick(limits.due(false).unwrap()).unwrap();
            }
            drop(limits);
            release_limits(root.path()).unwrap();
            assert_eq!(held(&root, "8:16"), UNTOUCHED, "after {looks} looks");
        }
    }

    #[test]
    fn what_somebody_else_has_set_stays() {
        let root = tree();
        has_written(&root, "sdb", 0, 0);
        let mut limits = DirtyLimits::start(root.path(), Instant::now()).unwrap();
        at(&root, "sys/class/bdi/8:16/max_ratio_fine", "200000");
        has_written(&root, "sdb", 10, 1000);
        limits.tick(limits.due(false).unwrap()).unwrap();
        limits.release().unwrap();
        assert_eq!(held(&root, "8:16"), ["0", "200000", "0"]);
    }
}
