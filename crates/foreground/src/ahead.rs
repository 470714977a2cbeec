//! Dirty pages of its own for each app that writes far ahead of its disk, while nobody is in front:
//! who saves a little meanwhile is not throttled for it.
//!
//! The kernel throttles all who write by what everybody together has dirty. A cgroup with a memory
//! limit is judged by its own as well (`mdtc` in `balance_dirty_pages`, mm/page-writeback.c), by the
//! same ratio of the memory that it may have for files. So it gets a `memory.high` that leaves it what
//! its processes need and files enough to have a second of its disk's rate dirty.
//!
//! An app that nobody waits for yet is left alone: looking begins when tasks stand still for I/O, and
//! limits when half of what may be dirty before anybody is throttled is dirty.

use crate::cgroup::{MOUNT_POINT, below, field};
use crate::daemon::timespec;
use crate::hold::{UNBEARABLE_PERCENT, restore};
use crate::shown::{LEAST_BYTES, Shown};
use crate::{Cgroup, Error};
use device::Statistics;
use knobs::{Change, Home, Journal, Restored, Standing};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const JOURNAL: &str = "ahead";

/// Tasks that stood still for I/O a tenth of the time. Anybody may ask for windows of two seconds
/// (`psi_trigger_create` in kernel/sched/psi.c, from 6.5 on).
const PRESSURE: &str = "/proc/pressure/io";
const TRIGGER: &[u8] = b"some 200000 2000000\0";
/// Where the kernel tells nobody: how often it is asked how much is dirty.
const UNTOLD_APART: Duration = Duration::from_secs(4);

/// How often writers are looked at while there are any.
const LOOKS_APART: Duration = Duration::from_millis(250);
/// Who has not written ahead for so long is left alone again.
const CALM: Duration = Duration::from_millis(500);

/// Who stands still for memory on account of its limit goes without for so long.
const SPARED: Duration = Duration::from_secs(60);

/// No writer has more of what all may have dirty, so that two leave others theirs.
const MOST_256: u64 = 64;
/// More are not limited at once; each costs the kernel some reads at each look.
const MOST_WRITERS: usize = 16;
/// Cgroups that are read at each look. Users make as many of theirs as they like.
const MOST_READ: usize = 1024;

/// What is dirty on the machine, and may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dirty {
    bytes: u64,
    /// Above which everybody is throttled to what disks write.
    limit_bytes: u64,
    /// Below which nobody is throttled.
    free_bytes: u64,
    /// The memory that the limit is a part of.
    memory_bytes: u64,
}

impl Dirty {
    fn read(root: &Path) -> Option<Self> {
        let text = fs::read_to_string(below(root, "/proc/vmstat")).ok()?;
        let bytes = |name| Some(field(&text, name)? * device::PAGE_BYTES as u64);
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

    /// The memory for files of which `bytes` may be dirty.
    fn files_for(self, bytes: u64) -> u64 {
        let files =
            u128::from(bytes) * u128::from(self.memory_bytes) / u128::from(self.limit_bytes);
        files as u64
    }
}

/// A cgroup that has been seen to write ahead.
#[derive(Debug)]
struct Writer {
    /// When it was last seen to have much dirty.
    ahead_at: Instant,
    /// What it may have dirty by now. That comes down by half of what the disk writes meanwhile: with
    /// more, the app would stand still until what it has dirty already is written.
    allowed_bytes: u64,
}

/// A disk that one of them writes to.
#[derive(Debug)]
struct Disk {
    shown: Shown,
    told: Statistics,
}

/// The rule, in force until it is dropped, and its journal longer; [`release_writers`] undoes it.
#[derive(Debug)]
pub struct Ahead {
    root: PathBuf,
    journal: Journal,
    writers: BTreeMap<Cgroup, Writer>,
    /// Until when.
    spared: BTreeMap<Cgroup, Instant>,
    /// By number: `8:0`.
    disks: BTreeMap<String, Disk>,
    /// None where the kernel tells nobody.
    pressure: Option<File>,
    look_at: Option<Instant>,
    log: Vec<String>,
}

impl Ahead {
    /// Undoes what a predecessor left, and begins.
    ///
    /// # Errors
    /// [`Error`], of the journal.
    pub fn start(root: &Path, now: Instant) -> Result<Self, Error> {
        release_writers(root)?;
        Ok(Ahead {
            root: root.to_owned(),
            journal: Journal::open(root, Home::Daemon, JOURNAL)?,
            writers: BTreeMap::new(),
            spared: BTreeMap::new(),
            disks: BTreeMap::new(),
            pressure: pressure(root),
            look_at: Some(now),
            log: Vec::new(),
        })
    }

    /// Without a daemon, and nobody is in front: until `stop` is readable or at its end.
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
                return self.release().map(drop);
            }
            if is_pressed {
                self.hear(Instant::now());
            }
            self.tick(Instant::now())?;
        }
    }

    /// What is to be polled for `POLLPRI`; asking takes the event away.
    pub fn pressure(&self) -> Option<&File> {
        self.pressure.as_ref()
    }

    /// Tasks have stood still for I/O.
    pub fn hear(&mut self, now: Instant) {
        self.look_at = Some(self.look_at.map_or(now, |at| at.min(now)));
    }

    /// When [`Self::tick`] is due.
    pub fn due(&self) -> Option<Instant> {
        self.look_at
    }

    /// Somebody is in front, or is to be: their limits are another matter.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn step_back(&mut self) -> Result<(), Error> {
        for cgroup in self.writers.keys().cloned().collect::<Vec<_>>() {
            self.let_go(&cgroup)?;
        }
        Ok(())
    }

    /// Looks if that is due, while nobody is in front.
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
                Err(Error::Gone(_)) => self.let_go(&cgroup)?,
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

    /// All that can be written to: what a disk does is to be known when it is asked.
    fn look_at_new_disks(&mut self) {
        let Ok(disks) = device::Device::all(&self.root) else {
            return;
        };
        let numbers: Vec<_> = disks
            .iter()
            .filter_map(|it| it.number_text().ok())
            .collect();
        self.disks.retain(|number, _| numbers.contains(number));
        for number in numbers {
            if let Some(told) = statistics(&self.root, &number) {
                let shown = Shown::default();
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

    /// Sets what it is to have, or lets it go.
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
            return self.let_go(cgroup);
        }
        if cgroup.memory_stall_percent(&self.root) > UNBEARABLE_PERCENT {
            self.spared.insert(cgroup.clone(), now + SPARED);
            return self.let_go(cgroup);
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
        let standing = self.journal.standing(&path)?;
        if standing == Standing::Theirs {
            return Ok(());
        }
        let held = match standing {
            Standing::Ours => self.journal.get(&path)?.parse().ok(),
            _ => None,
        };
        let usage = cgroup.usage(&self.root)?;
        let wanted = usage.needed_bytes + dirty.files_for(allowed);
        let Some(bytes) = next(wanted, usage.all_bytes, stat.clean_bytes, held) else {
            return Ok(());
        };
        let before = self.journal.get(&path)?.parse().unwrap_or(u64::MAX);
        if standing == Standing::Before && (before <= bytes || stat.dirty_bytes <= worth) {
            return Ok(());
        }
        self.set(&path, bytes, held.is_none())
    }

    fn set(&mut self, path: &Path, bytes: u64, is_first: bool) -> Result<(), Error> {
        let reason = "it writes far ahead of its disk, so it has dirty pages of its own";
        let known = self.journal.changes().len();
        self.journal.set(path, &bytes.to_string(), reason)?;
        if is_first {
            let made = self.journal.changes()[known..].iter();
            self.log.extend(made.map(|it| format!("  {it:#}")));
        }
        Ok(self.journal.settle()?)
    }

    /// Of the disk that it has written most to.
    fn shown(&self, cgroup: &Cgroup) -> Shown {
        let text = fs::read_to_string(cgroup.file(&self.root, "io.stat")).unwrap_or_default();
        let disk = most_written(&text).and_then(|number| self.disks.get(number));
        disk.map_or_else(Shown::default, |it| it.shown)
    }

    fn let_go(&mut self, cgroup: &Cgroup) -> Result<(), Error> {
        self.writers.remove(cgroup);
        let path = cgroup.knob("memory.high");
        if !self.journal.changes().iter().any(|it| it.path == path) {
            return Ok(());
        }
        if self.journal.put_back(&path)? == Restored::Written {
            let path = path.display();
            self.log.push(format!(
                "  {path}: as it was (it writes ahead no more, or somebody is in front)"
            ));
        }
        Ok(self.journal.settle()?)
    }

    /// What was changed since this was last asked, a line each.
    pub fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// What is changed.
    pub fn changes(&self) -> &[Change] {
        self.journal.changes()
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn release(self) -> Result<Vec<(Change, Restored)>, Error> {
        Ok(self.journal.restore()?)
    }
}

/// Undoes the limits of writers, in this process or another one.
///
/// # Errors
/// [`Error::Knobs`].
pub fn release_writers(root: &Path) -> Result<Vec<(Change, Restored)>, Error> {
    restore(root, JOURNAL)
}

/// None where there is none, or not for this user.
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

/// What a cgroup has in its page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cached {
    /// Dirty or being written.
    dirty_bytes: u64,
    /// What reclaim takes at once.
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

/// The lowest cgroups with much dirty; what a cgroup has, those above it have as well. Whether there
/// is any, of the `left` that are read.
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
        if !writers_below(root, &child, left, found) {
            found.extend(Cgroup::named(child));
        }
    }
    any
}

/// The limit under which a writer has so much dirty as it goes on. The kernel slows writers down from
/// the middle between limit and background limit on, and has them stand still at the limit
/// (`wb_position_ratio`); with the usual ratios it balances them at four fifths.
fn throttled_at(bytes: u64) -> u64 {
    bytes + bytes / 4
}

/// The disk of a cgroup's `io.stat` with most bytes written.
fn most_written(text: &str) -> Option<&str> {
    let disks = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(' ')?;
        let mut words = rest.split(' ');
        let written = words.find_map(|word| word.strip_prefix("wbytes="))?;
        Some((written.parse::<u64>().ok()?, number))
    });
    disks.max().map(|(_, number)| number)
}

/// The limit that comes next on the way to `wanted`, if another one is to be set: whoever sets it
/// waits until the cgroup is below it, so a step takes no more than half of what is there to take.
fn next(wanted: u64, all_bytes: u64, clean_bytes: u64, held: Option<u64>) -> Option<u64> {
    let reached = all_bytes - (clean_bytes / 2).min(all_bytes);
    let bytes = wanted.max(reached);
    let bytes = bytes - bytes % device::PAGE_BYTES as u64;
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
            let text = format!("0 0 0 0 9 0 {} 9 0 {busy_ms} 9\n", mib * 2048);
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
    fn looks(ahead: &mut Ahead, now: &mut Instant, times: usize) {
        for _ in 0..times {
            *now += LOOKS_APART;
            ahead.hear(*now);
            ahead.tick(*now).unwrap();
        }
    }

    #[test]
    fn who_writes_far_ahead_has_a_second_of_the_disks_rate_until_it_does_no_more() {
        let machine = Machine::new();
        let mut now = Instant::now();
        let mut ahead = Ahead::start(machine.root.path(), now).unwrap();
        ahead.tick(now).unwrap();
        machine.has_written(10, 250);
        machine.copies();
        looks(&mut ahead, &mut now, 1);
        // What it has dirty already comes down slowly.
        assert!(machine.high_mib() > 1000, "{}", machine.high_mib());
        let mut held = machine.high_mib();
        for look in 1..60 {
            machine.has_written(10 + 10 * look, 250 + 250 * look);
            machine.has(COPY, 399.min(held - 1), 40);
            looks(&mut ahead, &mut now, 1);
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
        looks(&mut ahead, &mut now, 21);
        assert_eq!(machine.high(COPY), "max");
        assert!(ahead.changes().is_empty());
    }

    #[test]
    fn a_little_that_is_dirty_is_nobodys_concern() {
        let machine = Machine::new();
        let mut now = Instant::now();
        let mut ahead = Ahead::start(machine.root.path(), now).unwrap();
        machine.copies();
        machine.all_have(60);
        looks(&mut ahead, &mut now, 9);
        assert_eq!(machine.high(COPY), "max");
    }

    #[test]
    fn a_limit_of_somebody_elses_stays() {
        let machine = Machine::new();
        let high = format!("sys/fs/cgroup/{COPY}/memory.high");
        let mut now = Instant::now();
        let mut ahead = Ahead::start(machine.root.path(), now).unwrap();
        machine.copies();
        machine.at(&high, "4194304\n");
        looks(&mut ahead, &mut now, 9);
        assert_eq!(machine.high(COPY), "4194304");
        assert!(ahead.changes().is_empty());

        machine.at(&high, "max\n");
        looks(&mut ahead, &mut now, 3);
        assert_ne!(machine.high(COPY), "max");
        machine.at(&high, "77000704\n");
        looks(&mut ahead, &mut now, 9);
        ahead.release().unwrap();
        assert_eq!(machine.high(COPY), "77000704");
    }

    #[test]
    fn nothing_is_left_when_somebody_comes_to_the_front_or_after_a_kill_at_any_look() {
        for times in 0..9 {
            let machine = Machine::new();
            let mut now = Instant::now();
            let mut ahead = Ahead::start(machine.root.path(), now).unwrap();
            machine.copies();
            looks(&mut ahead, &mut now, times);
            assert_eq!(machine.high(COPY) == "max", times == 0);
            ahead.step_back().unwrap();
            assert_eq!(machine.high(COPY), "max");
            looks(&mut ahead, &mut now, times);
            drop(ahead);
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
        let mut ahead = Ahead::start(machine.root.path(), now).unwrap();
        machine.copies();
        looks(&mut ahead, &mut now, 2);
        assert_ne!(machine.high(COPY), "max");
        machine.at(&pressure, "some avg10=30.00\nfull avg10=25.00 avg60=9.00\n");
        looks(&mut ahead, &mut now, 1);
        assert_eq!(machine.high(COPY), "max");
        machine.at(&pressure, "some avg10=0.00\nfull avg10=0.00 avg60=9.00\n");
        looks(&mut ahead, &mut now, 200);
        assert_eq!(machine.high(COPY), "max");
        looks(&mut ahead, &mut now, 60);
        assert_ne!(machine.high(COPY), "max");
    }

    #[test]
    fn an_app_that_ends_is_forgotten() {
        let machine = Machine::new();
        let mut now = Instant::now();
        let mut ahead = Ahead::start(machine.root.path(), now).unwrap();
        machine.copies();
        looks(&mut ahead, &mut now, 2);
        fs::remove_dir_all(machine.root.path().join("sys/fs/cgroup").join(COPY)).unwrap();
        machine.has("app.slice", 0, 0);
        machine.all_have(0);
        looks(&mut ahead, &mut now, 1);
        assert!(ahead.changes().is_empty());
    }
}
