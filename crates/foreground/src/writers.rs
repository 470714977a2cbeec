//! Dirty limits for apps that write far ahead of their disk, while there is no foreground: an app
//! that saves little is not throttled for their dirty pages.
//!
//! The kernel throttles writers by the dirty pages of the whole system. A cgroup with a memory
//! limit is also judged by its own dirty pages (`mdtc` in `balance_dirty_pages`,
//! mm/page-writeback.c), with the same ratio of its memory for page cache. So a writer gets a
//! `memory.high` that covers its processes and as much page cache as is needed for one second of
//! its disk's rate in dirty pages.
//!
//! An app that delays no other task is left alone: checks start when tasks stall for I/O, and
//! limits when half of the freerun limit is dirty.

use crate::applied::{UNBEARABLE_PERCENT, restore};
use crate::cgroup::{MOUNT_POINT, below, field};
use crate::daemon::timespec;
use crate::kept::Kept;
use crate::shown::{LEAST_BYTES, Shown};
use crate::{Cgroup, Error};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::device::Statistics;
use sys::knobs::{Change, Restored, Standing};

const JOURNAL: &str = "ahead";

/// PSI trigger: tasks stalled for I/O for a tenth of the time. Without privileges the window must
/// be a multiple of two seconds (`psi_trigger_create` in kernel/sched/psi.c, from 6.5 on).
const PRESSURE: &str = "/proc/pressure/io";
const TRIGGER: &[u8] = b"some 200000 2000000\0";
/// Interval of checks on kernels without PSI triggers.
const UNTOLD_APART: Duration = Duration::from_secs(4);

/// Interval of checks while there are writers.
const LOOKS_APART: Duration = Duration::from_millis(250);
/// Time without writing ahead until a writer's limit is undone.
const CALM: Duration = Duration::from_millis(500);

/// Time without a limit for a writer that stalled for memory under one.
const SPARED: Duration = Duration::from_secs(60);

/// Largest part of the system's dirty limit for one writer, in 1/256. Two writers leave the rest to
/// others.
const MOST_256: u64 = 64;
/// Most limited writers; each costs some reads for each check.
const MOST_WRITERS: usize = 16;
/// Most cgroups that are read for each check, and of each user; users can make any number.
const MOST_READ: usize = 1024;
const MOST_READ_OF_A_USER: usize = 256;
/// Cgroup with one for each user who is logged in.
const USERS: &str = "/user.slice";

/// Dirty pages of the system, and their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dirty {
    bytes: u64,
    /// Above this all writers are throttled to their disk's rate.
    limit_bytes: u64,
    /// Below this no writer is throttled (freerun).
    free_bytes: u64,
    /// Memory of which the limit is a ratio.
    memory_bytes: u64,
}

impl Dirty {
    fn read(root: &Path) -> Option<Self> {
        let text = fs::read_to_string(below(root, "/proc/vmstat")).ok()?;
        let bytes = |name| Some(field(&text, name)? * sys::device::PAGE_BYTES as u64);
        let limit_bytes = bytes("nr_dirty_threshold").filter(|it| *it > 0)?;
        let background_bytes = bytes("nr_dirty_background_threshold")?;
        Some(Self {
            bytes: bytes("nr_dirty")? + bytes("nr_writeback")?,
            limit_bytes,
            free_bytes: limit_bytes.midpoint(background_bytes),
            memory_bytes: bytes("nr_free_pages")?
                + bytes("nr_inactive_file")?
                + bytes("nr_active_file")?,
        })
    }

    fn is_much(self) -> bool {
        self.bytes > self.free_bytes / 2
    }

    /// Page cache whose dirty limit is `bytes`.
    fn files_for(self, bytes: u64) -> u64 {
        let files =
            u128::from(bytes) * u128::from(self.memory_bytes) / u128::from(self.limit_bytes);
        files as u64
    }
}

/// A cgroup that writes far ahead.
#[derive(Debug)]
struct Writer {
    /// Time of the last check at which it had many dirty pages.
    ahead_at: Instant,
    /// Present dirty limit in bytes. It falls by half of what the disk writes meanwhile: faster,
    /// and the app would stall until its dirty pages are written.
    allowed_bytes: u64,
}

/// Measured rate of a disk.
#[derive(Debug)]
struct Disk {
    shown: Shown,
    told: Statistics,
}

/// The limits of all writers. They and their journal outlive the value; [`release_writers`] undoes
/// them.
#[derive(Debug)]
pub struct WriterLimits {
    root: PathBuf,
    pub(crate) kept: Kept,
    writers: BTreeMap<Cgroup, Writer>,
    /// Writers without a limit, and until when.
    spared: BTreeMap<Cgroup, Instant>,
    /// By device number, such as `8:0`.
    disks: BTreeMap<String, Disk>,
    /// None on kernels without PSI triggers.
    pressure: Option<File>,
    look_at: Option<Instant>,
}

impl WriterLimits {
    /// Undoes the limits of a killed predecessor.
    ///
    /// # Errors
    /// [`Error`], of the journal.
    pub fn start(root: &Path, now: Instant) -> Result<Self, Error> {
        release_writers(root)?;
        Ok(WriterLimits {
            root: root.to_owned(),
            kept: Kept::open(root, JOURNAL)?,
            writers: BTreeMap::new(),
            spared: BTreeMap::new(),
            disks: BTreeMap::new(),
            pressure: pressure(root),
            look_at: Some(now),
        })
    }

    /// Applies limits, without a daemon and a foreground, until `stop` is readable; then undoes
    /// them.
    ///
    /// # Errors
    /// [`Error::Knobs`], or [`Error::Watch`].
    pub fn run(mut self, stop: BorrowedFd<'_>) -> Result<(), Error> {
        loop {
            let mut fds = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
            let pressure = self.pressure.as_ref();
            fds.extend(pressure.map(|it| PollFd::new(it, PollFlags::PRI)));
            let left = |at: Instant| at.saturating_duration_since(Instant::now());
            let timeout = self.look_at.map(|at| timespec(left(at)));
            poll(&mut fds, timeout.as_ref()).map_err(|errno| Error::Watch {
                path: PathBuf::from("pressure"),
                source: errno.into(),
            })?;
            let [ends, is_pressed] = [0, 1].map(|at| {
                let fd: Option<&PollFd<'_>> = fds.get(at);
                fd.is_some_and(|it| !it.revents().is_empty())
            });
            if ends {
                return self.kept.release().map(drop);
            }
            if is_pressed {
                self.stalled(Instant::now());
            }
            self.tick(Instant::now())?;
        }
    }

    /// File to poll for `POLLPRI`; polling consumes the event.
    pub fn pressure(&self) -> Option<&File> {
        self.pressure.as_ref()
    }

    /// Schedules a check, after tasks have stalled for I/O.
    pub fn stalled(&mut self, now: Instant) {
        self.look_at = Some(self.look_at.map_or(now, |at| at.min(now)));
    }

    /// When [`Self::tick`] is due.
    pub fn due(&self) -> Option<Instant> {
        self.look_at
    }

    /// Undoes all limits, since a foreground sets others.
    ///
    /// # Errors
    /// [`Error::Knobs`], the first one; the other limits are undone all the same.
    pub fn undo_limits(&mut self) -> Result<(), Error> {
        let mut undone = Ok(());
        for cgroup in self.writers.keys().cloned().collect::<Vec<_>>() {
            undone = undone.and(self.undo_limit(&cgroup));
        }
        undone
    }

    /// Checks the writers if that is due. Call it only without a foreground.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn tick(&mut self, now: Instant) -> Result<(), Error> {
        if self.look_at.take_if(|at| *at <= now).is_none() {
            return Ok(());
        }
        let Some(dirty) = Dirty::read(&self.root) else {
            return Ok(());
        };
        self.look_at_disks();
        if dirty.is_much() {
            self.find(now);
        }
        for cgroup in self.writers.keys().cloned().collect::<Vec<_>>() {
            match self.keep(&cgroup, dirty, now) {
                // Its last process has ended.
                Err(Error::Gone(_)) => self.undo_limit(&cgroup)?,
                kept => kept?,
            }
        }
        self.look_at = match self.writers.is_empty() && !dirty.is_much() {
            true if self.pressure.is_some() => None,
            true => Some(now + UNTOLD_APART),
            false => Some(now + LOOKS_APART),
        };
        Ok(())
    }

    fn look_at_disks(&mut self) {
        for (number, disk) in &mut self.disks {
            if let Some(now) = statistics(&self.root, number) {
                let before = std::mem::replace(&mut disk.told, now);
                disk.shown.take(&before, &now);
            }
        }
        if self.writers.is_empty() {
            self.look_at_new_disks();
        }
    }

    /// Starts to measure all disks, so that their rates are known when a writer appears.
    fn look_at_new_disks(&mut self) {
        let Ok(disks) = sys::device::Device::all(&self.root) else {
            return;
        };
        let numbered = disks
            .iter()
            .filter_map(|it| Some((it.number_text().ok()?, it)));
        let numbered: BTreeMap<_, _> = numbered.collect();
        self.disks.retain(|number, _| numbered.contains_key(number));
        for (number, disk) in numbered {
            if let Some(told) = statistics(&self.root, &number) {
                let shown = Shown::of(disk);
                self.disks.entry(number).or_insert(Disk { shown, told });
            }
        }
    }

    fn find(&mut self, now: Instant) {
        let mut found = Vec::new();
        writers_below(&self.root, "", &mut MOST_READ.clone(), &mut found);
        self.spared.retain(|_, until| *until > now);
        for cgroup in found {
            if self.spared.contains_key(&cgroup) {
                continue;
            }
            if let Some(writer) = self.writers.get_mut(&cgroup) {
                writer.ahead_at = now;
            } else if self.writers.len() < MOST_WRITERS {
                let writer = Writer {
                    ahead_at: now,
                    allowed_bytes: u64::MAX,
                };
                self.writers.insert(cgroup, writer);
            }
        }
    }

    /// Sets the writer's limit, or undoes it.
    fn keep(&mut self, cgroup: &Cgroup, dirty: Dirty, now: Instant) -> Result<(), Error> {
        let is_calm = |it: &mut Writer| now.duration_since(it.ahead_at) >= CALM;
        let stat =
            stat_of(&self.root, cgroup).ok_or_else(|| Error::Gone(cgroup.path().to_owned()))?;
        let shown = self.shown(cgroup);
        let worth = shown.worth(dirty.limit_bytes / 256 * MOST_256);
        let Some(writer) = self.writers.get_mut(cgroup) else {
            return Ok(());
        };
        if is_calm(writer) {
            return self.undo_limit(cgroup);
        }
        if cgroup.memory_stall_percent(&self.root) > UNBEARABLE_PERCENT {
            self.spared.insert(cgroup.clone(), now + SPARED);
            return self.undo_limit(cgroup);
        }
        if stat.dirty_bytes > worth / 2 {
            writer.ahead_at = now;
        }
        let reached = match writer.allowed_bytes {
            u64::MAX => throttled_at(stat.dirty_bytes),
            allowed => allowed.saturating_sub(shown.bytes_in(LOOKS_APART) / 2),
        };
        writer.allowed_bytes = reached.max(throttled_at(worth));
        let allowed = writer.allowed_bytes;
        let path = cgroup.knob("memory.high");
        let standing = self.kept.journal.standing(&path)?;
        if standing == Standing::Theirs {
            return Ok(());
        }
        let held = match standing {
            Standing::Ours => self.kept.journal.get(&path)?.parse().ok(),
            _ => None,
        };
        let usage = cgroup.usage(&self.root)?;
        let wanted = usage.needed_bytes + dirty.files_for(allowed);
        let Some(bytes) = next(wanted, usage.all_bytes, stat.clean_bytes, held) else {
            return Ok(());
        };
        let before = self.kept.journal.get(&path)?.parse().unwrap_or(u64::MAX);
        if standing == Standing::Before && (before <= bytes || stat.dirty_bytes <= worth) {
            return Ok(());
        }
        self.set(&path, bytes, held.is_none())
    }

    fn set(&mut self, path: &Path, bytes: u64, is_first: bool) -> Result<(), Error> {
        let reason = "it writes far ahead of its disk, so it has dirty pages of its own";
        let known = self.kept.journal.changes().len();
        self.kept.journal.set(path, &bytes.to_string(), reason)?;
        if is_first {
            let made = self.kept.journal.changes()[known..].iter();
            self.kept.lines.extend(made.map(|it| format!("  {it:#}")));
        }
        Ok(self.kept.journal.settle()?)
    }

    /// Measured rate of the disk to which it has written most.
    fn shown(&self, cgroup: &Cgroup) -> Shown {
        let text = fs::read_to_string(cgroup.file(&self.root, "io.stat")).unwrap_or_default();
        let disk = most_written(&text).and_then(|number| self.disks.get(number));
        disk.map_or_else(Shown::default, |it| it.shown)
    }

    fn undo_limit(&mut self, cgroup: &Cgroup) -> Result<(), Error> {
        self.writers.remove(cgroup);
        let path = cgroup.knob("memory.high");
        if !self.kept.journal.changes().iter().any(|it| it.path == path) {
            return Ok(());
        }
        if self.kept.journal.put_back(&path)? == Restored::Written {
            let path = path.display();
            self.kept.lines.push(format!(
                "  {path}: as before (the app no longer writes ahead, or there is a foreground)"
            ));
        }
        Ok(self.kept.journal.settle()?)
    }
}

/// Undoes the limits of writers, whichever process set them.
///
/// # Errors
/// [`Error::Knobs`].
pub fn release_writers(root: &Path) -> Result<Vec<(Change, Restored)>, Error> {
    restore(root, JOURNAL)
}

/// Registers the PSI trigger; None if the kernel or the user's rights do not allow it.
fn pressure(root: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .write(true)
        .open(below(root, PRESSURE))
        .ok()?;
    file.write_all(TRIGGER).ok()?;
    Some(file)
}

fn statistics(root: &Path, number: &str) -> Option<Statistics> {
    let path = below(root, "/sys/dev/block").join(number).join("stat");
    Statistics::parse(&fs::read_to_string(path).ok()?)
}

/// Page cache of a cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cached {
    /// Dirty bytes, and bytes under writeback.
    dirty_bytes: u64,
    /// Clean bytes, which reclaim can take at once.
    clean_bytes: u64,
}

fn stat_of(root: &Path, cgroup: &Cgroup) -> Option<Cached> {
    cached(&cgroup.file(root, "memory.stat"))
}

fn cached(path: &Path) -> Option<Cached> {
    let text = fs::read_to_string(path).ok()?;
    let bytes = |name| field(&text, name).unwrap_or(0);
    let dirty_bytes = bytes("file_dirty") + bytes("file_writeback");
    let files = bytes("inactive_file") + bytes("active_file");
    Some(Cached {
        dirty_bytes,
        clean_bytes: files.saturating_sub(dirty_bytes),
    })
}

/// Adds the innermost cgroups with many dirty pages to `found` (counters include descendants).
/// Returns whether there is any among the `left` cgroups that may still be read. Each user has a
/// number of their own: cgroups that one makes hide nobody else's.
fn writers_below(root: &Path, path: &str, left: &mut usize, found: &mut Vec<Cgroup>) -> bool {
    let directory = below(root, MOUNT_POINT).join(path.trim_start_matches('/'));
    let Ok(entries) = fs::read_dir(directory) else {
        return false;
    };
    let mut any = false;
    for entry in entries.flatten() {
        let Some(fewer) = left.checked_sub(1) else {
            break;
        };
        let has_much = |it: Cached| it.dirty_bytes > LEAST_BYTES;
        let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
        let (Some(name), true) = (entry.file_name().to_str().map(str::to_owned), is_directory)
        else {
            continue;
        };
        *left = fewer;
        if !cached(&entry.path().join("memory.stat")).is_some_and(has_much) {
            continue;
        }
        any = true;
        let child = format!("{path}/{name}");
        let mut of_user = MOST_READ_OF_A_USER;
        let left = match path {
            USERS => &mut of_user,
            _ => &mut *left,
        };
        if !writers_below(root, &child, left, found) {
            found.extend(Cgroup::named(child));
        }
    }
    any
}

/// Dirty limit under which a writer is balanced at `bytes`. The kernel slows writers down above the
/// middle between background limit and limit, and stops them at the limit (`wb_position_ratio`);
/// with the default ratios it balances them at four fifths.
fn throttled_at(bytes: u64) -> u64 {
    bytes + bytes / 4
}

/// Disk with most bytes written in a cgroup's `io.stat`.
fn most_written(text: &str) -> Option<&str> {
    let disks = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(' ')?;
        let mut words = rest.split(' ');
        let written = words.find_map(|word| word.strip_prefix("wbytes="))?;
        Some((written.parse::<u64>().ok()?, number))
    });
    disks.max().map(|(_, number)| number)
}

/// Next limit on the way to `wanted`, or None to keep the present one. A write to `memory.high`
/// blocks until the cgroup is below it, so each step takes at most half of the clean pages.
fn next(wanted: u64, all_bytes: u64, clean_bytes: u64, held: Option<u64>) -> Option<u64> {
    let reached = all_bytes - (clean_bytes / 2).min(all_bytes);
    let bytes = wanted.max(reached);
    let bytes = bytes - bytes % sys::device::PAGE_BYTES as u64;
    match held {
        // Needs come and go.
        Some(held) if held.abs_diff(bytes) <= wanted / 8 => None,
        _ => Some(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    const MIB: u64 = 1 << 20;
    const COPY: &str = "app.slice/copy.scope";

    /// A machine of one disk, whose copy is in a slice with another app.
    struct Machine {
        root: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Self {
            let machine = Machine {
                root: tempfile::tempdir().unwrap(),
            };
            machine.at("proc/sys/kernel/random/boot_id", "a\n");
            for (file, text) in [
                ("dev", "8:0"),
                ("size", "2048"),
                ("queue/scheduler", "[none]"),
            ] {
                machine.at(&format!("sys/block/sda/{file}"), text);
            }
            create_dir_all(machine.root.path().join("sys/dev/block")).unwrap();
            let link = machine.root.path().join("sys/dev/block/8:0");
            std::os::unix::fs::symlink("../../block/sda", link).unwrap();
            machine.has_written(0, 0);
            for cgroup in ["app.slice", COPY, "app.slice/mail.scope"] {
                machine.at(&format!("sys/fs/cgroup/{cgroup}/memory.high"), "max\n");
                machine.has(cgroup, 0, 0);
            }
            machine.at(
                &format!("sys/fs/cgroup/{COPY}/io.stat"),
                "8:0 rbytes=0 wbytes=9000000 rios=0 wios=9 dbytes=0 dios=0\n",
            );
            machine.all_have(0);
            machine
        }

        fn at(&self, path: &str, text: &str) {
            let path = self.root.path().join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        }

        fn makes(&self, cgroup: &str) {
            create_dir_all(self.root.path().join("sys/fs/cgroup").join(cgroup)).unwrap();
        }

        /// In the cache, of which so much is dirty.
        fn has(&self, cgroup: &str, files_mib: u64, dirty_mib: u64) {
            let [files, dirty] = [files_mib, dirty_mib].map(|it| it * MIB);
            let stat = format!(
                "anon {MIB}\nkernel 0\nshmem 0\nfile_mapped 0\nfile_dirty {dirty}\nfile_writeback 0\ninactive_file {files}\nactive_file 0\n"
            );
            self.at(&format!("sys/fs/cgroup/{cgroup}/memory.stat"), &stat);
            let current = (files + MIB).to_string();
            self.at(&format!("sys/fs/cgroup/{cgroup}/memory.current"), &current);
        }

        /// Of 1000 MiB, 200 may be dirty, and 150 before anybody is throttled.
        fn all_have(&self, dirty_mib: u64) {
            let pages = |mib: u64| mib * 256;
            let text = format!(
                "nr_free_pages {}\nnr_inactive_file {}\nnr_active_file 0\nnr_dirty {}\nnr_writeback 0\nnr_dirty_threshold {}\nnr_dirty_background_threshold {}\n",
                pages(500),
                pages(500),
                pages(dirty_mib),
                pages(200),
                pages(100)
            );
            self.at("proc/vmstat", &text);
        }

        fn has_written(&self, mib: u64, busy_ms: u64) {
            let [requests, sectors] = [mib * 2, mib * 2048];
            let text = format!("0 0 0 0 {requests} 0 {sectors} 9 0 {busy_ms} 9 0 0 0 0 0 0\n");
            self.at("sys/block/sda/stat", &text);
        }

        /// A copy has filled the cache.
        fn copies(&self) {
            self.all_have(190);
            self.has("app.slice", 400, 190);
            self.has(COPY, 400, 190);
        }

        fn high(&self, cgroup: &str) -> String {
            let path = format!("sys/fs/cgroup/{cgroup}/memory.high");
            let path = self.root.path().join(path);
            fs::read_to_string(path).unwrap().trim().to_owned()
        }

        fn high_mib(&self) -> u64 {
            self.high(COPY).parse::<u64>().unwrap() / MIB
        }
    }

    /// Looks so often.
    fn looks(writers: &mut WriterLimits, now: &mut Instant, times: usize) {
        for _ in 0..times {
            *now += LOOKS_APART;
            writers.stalled(*now);
            writers.tick(*now).unwrap();
        }
    }

    #[test]
    fn who_writes_far_ahead_has_a_second_of_the_disks_rate_until_it_does_no_more() {
        let machine = Machine::new();
        let mut now = Instant::now();
        let mut writers = WriterLimits::start(machine.root.path(), now).unwrap();
        writers.tick(now).unwrap();
        machine.has_written(10, 250);
        machine.copies();
        looks(&mut writers, &mut now, 1);
        // What it has dirty already comes down slowly.
        assert!(machine.high_mib() > 1000, "{}", machine.high_mib());
        let mut held = machine.high_mib();
        for look in 1..60 {
            machine.has_written(10 + 10 * look, 250 + 250 * look);
            machine.has(COPY, 399.min(held - 1), 40);
            looks(&mut writers, &mut now, 1);
            assert!(machine.high_mib() <= held);
            held = machine.high_mib();
        }
        // 40 MiB a second, a quarter more for where writers are balanced, of a fifth of files; and needs.
        assert!((245..=285).contains(&held), "{held}");
        assert_eq!(machine.high("app.slice"), "max");
        assert_eq!(machine.high("app.slice/mail.scope"), "max");

        machine.all_have(1);
        machine.has("app.slice", 200, 1);
        machine.has(COPY, 200, 1);
        looks(&mut writers, &mut now, 21);
        assert_eq!(machine.high(COPY), "max");
        assert!(writers.kept.changes().is_empty());
    }

    #[test]
    fn a_little_that_is_dirty_is_nobodys_concern() {
        let machine = Machine::new();
        let mut now = Instant::now();
        let mut writers = WriterLimits::start(machine.root.path(), now).unwrap();
        machine.copies();
        machine.all_have(60);
        looks(&mut writers, &mut now, 9);
        assert_eq!(machine.high(COPY), "max");
    }

    #[test]
    fn a_limit_of_somebody_elses_stays() {
        let machine = Machine::new();
        let high = format!("sys/fs/cgroup/{COPY}/memory.high");
        let mut now = Instant::now();
        let mut writers = WriterLimits::start(machine.root.path(), now).unwrap();
        machine.copies();
        machine.at(&high, "4194304\n");
        looks(&mut writers, &mut now, 9);
        assert_eq!(machine.high(COPY), "4194304");
        assert!(writers.kept.changes().is_empty());

        machine.at(&high, "max\n");
        looks(&mut writers, &mut now, 3);
        assert_ne!(machine.high(COPY), "max");
        machine.at(&high, "77000704\n");
        looks(&mut writers, &mut now, 9);
        writers.kept.release().unwrap();
        assert_eq!(machine.high(COPY), "77000704");
    }

    #[test]
    fn nothing_is_left_when_somebody_comes_to_the_front_or_after_a_kill_at_any_look() {
        for times in 0..9 {
            let machine = Machine::new();
            let mut now = Instant::now();
            let mut writers = WriterLimits::start(machine.root.path(), now).unwrap();
            machine.copies();
            looks(&mut writers, &mut now, times);
            assert_eq!(machine.high(COPY) == "max", times == 0);
            writers.undo_limits().unwrap();
            assert_eq!(machine.high(COPY), "max");
            looks(&mut writers, &mut now, times);
            drop(writers);
            release_writers(machine.root.path()).unwrap();
            assert_eq!(machine.high(COPY), "max");
        }
    }

    /// Others, such as systemd-oomd, kill for it.
    #[test]
    fn who_stands_still_for_memory_is_spared_for_a_while() {
        let machine = Machine::new();
        let pressure = format!("sys/fs/cgroup/{COPY}/memory.pressure");
        let mut now = Instant::now();
        let mut writers = WriterLimits::start(machine.root.path(), now).unwrap();
        machine.copies();
        looks(&mut writers, &mut now, 2);
        assert_ne!(machine.high(COPY), "max");
        machine.at(&pressure, "some avg10=30.00\nfull avg10=25.00 avg60=9.00\n");
        looks(&mut writers, &mut now, 1);
        assert_eq!(machine.high(COPY), "max");
        machine.at(&pressure, "some avg10=0.00\nfull avg10=0.00 avg60=9.00\n");
        looks(&mut writers, &mut now, 200);
        assert_eq!(machine.high(COPY), "max");
        looks(&mut writers, &mut now, 60);
        assert_ne!(machine.high(COPY), "max");
    }

    #[test]
    fn cgroups_without_number_hide_no_other_users_writer() {
        let machine = Machine::new();
        machine.has("user.slice", 400, 190);
        for user in [1000, 1001, 1002] {
            let slice = format!("user.slice/user-{user}.slice");
            machine.has(&slice, 200, 60);
            for number in 0..if user == 1001 { 1 } else { MOST_READ } {
                machine.makes(&format!("{slice}/app-{number}.scope"));
            }
            machine.has(&format!("{slice}/copy.scope"), 200, 60);
        }
        let mut found = Vec::new();
        let all = &mut MOST_READ.clone();
        writers_below(machine.root.path(), "", all, &mut found);
        let paths: Vec<_> = found.iter().map(Cgroup::path).collect();
        assert!(
            paths.contains(&"/user.slice/user-1001.slice/copy.scope"),
            "{paths:?}"
        );
        assert_eq!(paths.len(), 3, "each has theirs: {paths:?}");
    }

    /// As when /run is full.
    #[test]
    fn a_journal_that_cannot_be_written_keeps_no_limit_in_force() {
        let machine = Machine::new();
        let mut now = Instant::now();
        let mut writers = WriterLimits::start(machine.root.path(), now).unwrap();
        machine.copies();
        looks(&mut writers, &mut now, 2);
        assert_ne!(machine.high(COPY), "max");
        machine.at("run/frontrowd/ahead.new/in-the-way", "");
        writers.undo_limits().unwrap_err();
        assert_eq!(machine.high(COPY), "max");
    }

    #[test]
    fn an_app_that_ends_is_forgotten() {
        let machine = Machine::new();
        let mut now = Instant::now();
        let mut writers = WriterLimits::start(machine.root.path(), now).unwrap();
        machine.copies();
        looks(&mut writers, &mut now, 2);
        fs::remove_dir_all(machine.root.path().join("sys/fs/cgroup").join(COPY)).unwrap();
        machine.has("app.slice", 0, 0);
        machine.all_have(0);
        looks(&mut writers, &mut now, 1);
        assert!(writers.kept.changes().is_empty());
    }
}
