//! What is done for who is in front: which knob is to hold what.

use crate::cgroup::below;
use crate::{Cgroup, Error, means};
use device::Device;
use knobs::{Journal, Standing};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Of the memory, what is behind may use for its files, in 1/256. A cgroup's dirty pages are
/// limited to a share of what it may use (`vm.dirty_ratio`); with a quarter, all that is
/// behind stays below the system's own limit, and nobody in front is throttled for it
/// (`domain_dirty_freerun` in mm/page-writeback.c). A limit may be off by a factor of two
/// and that still holds.
const BEHIND_256: u64 = 64;

/// Of the memory, what reclaim leaves to what is in front as long as there is other.
const FRONT_256: u64 = 128;

/// What each of the scheduler's lists is given at most. Together they hold 40
/// (`MAX_CGROUPS` in kernel/iosched/ground.c), also while only one of them has been changed.
const FRONT_LISTED: usize = 8;
const VISIBLE_LISTED: usize = 8;
const BEHIND_LISTED: usize = 24;

/// A list is read back through one page, with a newline after each.
const LIST_BYTES: usize = 4000;

/// Who is where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounds {
    /// The app that somebody works with.
    pub front: Vec<Cgroup>,
    /// Apps that are seen beside it: in the other half of a split screen, in a corner.
    pub visible: Vec<Visible>,
    /// Apps that nobody looks at; never services, as the foreground may depend on them.
    pub behind: Vec<Cgroup>,
}

/// An app that is seen, and not worked with ("002", §7.2.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visible {
    /// Whose windows.
    pub cgroup: Cgroup,
    /// Of the screen, what is seen of them, 1 to 100. Beside the active app, which counts as
    /// the whole screen, it is the app's weight.
    pub percent: u8,
}

impl Grounds {
    /// All that is on the screen.
    pub fn seen(&self) -> impl Iterator<Item = &Cgroup> {
        let visible = self.visible.iter().map(|it| &it.cgroup);
        self.front.iter().chain(visible)
    }

    /// Without those that `controller` does not reach: what is done for one app does not depend
    /// on what another does with its cgroup.
    ///
    /// # Errors
    /// [`Error::NoController`] or [`Error::Gone`] if nobody is left in front.
    pub(crate) fn reached_by(
        &self,
        root: &Path,
        controller: &'static str,
    ) -> Result<Grounds, Error> {
        let mut grounds = self.clone();
        let is_reached = |it: &Cgroup| it.require(root, controller).is_ok();
        grounds.front.retain(is_reached);
        grounds.visible.retain(|it| is_reached(&it.cgroup));
        grounds.behind.retain(is_reached);
        match self.front.first() {
            Some(first) if grounds.front.is_empty() => {
                first.require(root, controller).map(|()| grounds)
            }
            _ => Ok(grounds),
        }
    }

    /// Those of which a part of what is to be done cannot be.
    pub(crate) fn left_out(&self, root: &Path) -> Vec<Cgroup> {
        let is_reached = |it: &Cgroup| {
            let mut controllers = ["io", "memory"].into_iter();
            controllers.all(|controller| it.require(root, controller).is_ok())
        };
        let all = self.seen().chain(&self.behind);
        all.filter(|it| !is_reached(it)).cloned().collect()
    }

    /// The weights of all that is on the screen, in percent of it.
    fn whole_percent(&self) -> u64 {
        let visible = self.visible.iter().map(|it| u64::from(it.percent));
        ACTIVE_PERCENT + visible.sum::<u64>()
    }
}

/// The weight of the app that somebody works with, however large its windows are.
const ACTIVE_PERCENT: u64 = 100;

/// Of the device, what an app that is seen has while the active one waits at least: a little
/// more than all that nobody sees (`background_share`).
const LEAST_SHARE_PERCENT: u64 = 5;

/// The paper's parts, to be had apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// PA: the foreground does not wait for pages on account of what is behind.
    pub allocator: bool,
    /// PR: reclaim begins behind.
    pub reclaimer: bool,
    /// ID: the scheduler serves the foreground first.
    pub dispatcher: bool,
}

impl Parts {
    /// What a user wants.
    pub const ALL: Parts = Parts {
        allocator: true,
        reclaimer: true,
        dispatcher: true,
    };
}

/// Whether there is time for reclaim: the kernel does not return from setting a limit before
/// it has brought the cgroup below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// No limit is below what the cgroup has.
    AtOnce,
    /// Limits are what they are to be.
    Settled,
}

/// One knob and what it is to hold.
pub(crate) struct Setting {
    pub path: PathBuf,
    pub value: String,
    pub reason: &'static str,
}

/// What a hold is to be.
pub(crate) struct Wanted<'a> {
    pub grounds: &'a Grounds,
    /// Who goes without a limit.
    pub spared: &'a BTreeSet<Cgroup>,
    pub parts: Parts,
    pub pace: Pace,
    /// Knobs that the kernel has refused to set: it has no such scheduler.
    pub refused: &'a BTreeSet<PathBuf>,
}

/// All that is to differ from what was before, in the order in which it is worth most.
pub(crate) fn settings(
    root: &Path,
    journal: &Journal,
    wanted: &Wanted,
) -> Result<Vec<Setting>, Error> {
    let Wanted { grounds, parts, .. } = wanted;
    let mut settings = Vec::new();
    if grounds.front.is_empty() {
        return Ok(settings);
    }
    if parts.dispatcher {
        settings.extend(dispatch(root, journal, wanted)?);
    }
    if parts.reclaimer {
        settings.extend(protect(root, journal, grounds)?);
    }
    if parts.allocator {
        settings.extend(give_way(root, journal, &grounds.behind)?);
        settings.extend(limit(root, journal, wanted)?);
    }
    Ok(settings)
}

/// By the scheduler's lists on every disk that uses it, and by what the kernel has on others.
fn dispatch(root: &Path, journal: &Journal, wanted: &Wanted) -> Result<Vec<Setting>, Error> {
    let grounds = &wanted.grounds.reached_by(root, "io")?;
    let mut ours = Vec::new();
    let mut others = Vec::new();
    for disk in Device::all(root)? {
        match disk.schedulers()?.map(|it| it.active) {
            Some(active) if active == sched::SCHEDULER => ours.push(disk),
            Some(_) => others.push(disk),
            None => {}
        }
    }
    let mut settings = lists(root, &ours, grounds);
    settings.extend(means::settings(root, journal, &others, wanted)?);
    Ok(settings)
}

/// The scheduler's lists.
fn lists(root: &Path, disks: &[Device], grounds: &Grounds) -> Vec<Setting> {
    let path = |cgroup: &Cgroup| cgroup.path().to_owned();
    let foreground = lines(grounds.front.iter().map(path), FRONT_LISTED);
    let visible = lines(shares(grounds), VISIBLE_LISTED);
    let background = lines(grounds.behind.iter().map(path), BEHIND_LISTED);
    let mut settings = Vec::new();
    for disk in disks {
        let list = |name: &str, value: &String, reason| Setting {
            path: disk.queue_attribute(&format!("iosched/{name}")),
            value: value.clone(),
            reason,
        };
        settings.push(list("foreground", &foreground, "served first"));
        let reason = "served next, and by a share while the foreground waits";
        let seen = list("visible", &visible, reason);
        // A module of before knows of none, and serves them like services.
        if !grounds.visible.is_empty() && below(root, &seen.path.to_string_lossy()).exists() {
            settings.push(seen);
        }
        let reason = "has a share while the foreground waits";
        settings.push(list("background", &background, reason));
    }
    settings
}

/// `SHARE PATH` for each that is seen, the one that covers most of the screen first.
fn shares(grounds: &Grounds) -> impl Iterator<Item = String> {
    let whole = grounds.whole_percent();
    let mut visible: Vec<_> = grounds.visible.iter().collect();
    visible.sort_by_key(|it| Reverse(it.percent));
    visible.into_iter().map(move |it| {
        let percent = (u64::from(it.percent) * 100 / whole).max(LEAST_SHARE_PERCENT);
        format!("{percent} {}", it.cgroup.path())
    })
}

/// As many as there is room for; the others are served as if nothing had been said.
fn lines(all: impl Iterator<Item = String>, most: usize) -> String {
    let mut lines = String::new();
    let mut room = LIST_BYTES;
    let fits = |line: &String| {
        let left = room.checked_sub(line.len() + 1);
        room = left.unwrap_or(room);
        left.is_some()
    };
    for line in all.filter(fits).take(most) {
        if !lines.is_empty() {
            lines.push('\n');
        }
        lines.push_str(&line);
    }
    match lines.is_empty() {
        true => "none".to_owned(),
        false => lines,
    }
}

/// Protects a part in each by its weight. A cgroup has no more protection than those above it
/// (`effective_protection` in the kernel's memory controller), so these have what those
/// below them have together. More than that, set by somebody else, stays.
fn protect(root: &Path, journal: &Journal, grounds: &Grounds) -> Result<Vec<Setting>, Error> {
    let grounds = &grounds.reached_by(root, "memory")?;
    let all = memory_bytes(root)? / 256 * FRONT_256;
    let part = |percent: u64| all * percent / grounds.whole_percent();
    let active = share(part(ACTIVE_PERCENT), &grounds.front);
    let active = grounds.front.iter().map(|cgroup| (cgroup, active));
    let visible = grounds.visible.iter();
    let visible = visible.map(|it| (&it.cgroup, pages_of(part(u64::from(it.percent)))));
    let mut levels = BTreeMap::new();
    for (cgroup, bytes) in active.chain(visible) {
        for level in cgroup.chain() {
            *levels.entry(level.knob("memory.low")).or_insert(0) += bytes;
        }
    }
    let mut settings = Vec::new();
    for (path, bytes) in levels {
        if bytes_of(&before(journal, &path)?) < bytes {
            settings.push(Setting {
                path,
                value: bytes.to_string(),
                reason: "reclaim takes the memory of others first",
            });
        }
    }
    Ok(settings)
}

/// The weight of a cgroup that nobody has given one, and the kernel's file for it.
const WEIGHT: (&str, &str) = ("cpu.weight", "100");

/// What is behind gives up the CPU as soon as anybody else can use it (SCHED_IDLE), where
/// the cpu controller reaches it: on few CPUs the foreground waits for it longer than for
/// the device. The kernel forgets a weight when this is set, so one that is not the
/// default stays.
fn give_way(root: &Path, journal: &Journal, behind: &[Cgroup]) -> Result<Vec<Setting>, Error> {
    let (weight, default) = WEIGHT;
    let mut settings = Vec::new();
    for cgroup in behind {
        let path = cgroup.knob("cpu.idle");
        if !cgroup.file(root, "cpu.idle").exists() {
            continue;
        }
        let is_ours = journal.changes().iter().any(|change| change.path == path);
        if is_ours || knobs::read(&cgroup.file(root, weight))? == default {
            settings.push(Setting {
                path,
                value: "1".to_owned(),
                reason: "what is behind gives up the CPU for others",
            });
        }
    }
    Ok(settings)
}

/// Gives each what it uses and an equal part for its files besides: no app is to be swapped
/// out, or lose the code that it runs, for being behind. A lower limit, set by somebody
/// else, stays.
fn limit(root: &Path, journal: &Journal, wanted: &Wanted) -> Result<Vec<Setting>, Error> {
    let behind = &wanted.grounds.reached_by(root, "memory")?.behind;
    let part = share(memory_bytes(root)? / 256 * BEHIND_256, behind);
    let mut settings = Vec::new();
    for cgroup in behind.iter().filter(|it| !wanted.spared.contains(it)) {
        let path = cgroup.knob("memory.high");
        let held = match journal.standing(&path)? {
            Standing::Ours => Some(bytes_of(&journal.get(&path)?)),
            _ => None,
        };
        let bytes = high(part, cgroup.usage(root)?, held, wanted.pace);
        if bytes < bytes_of(&before(journal, &path)?) {
            settings.push(Setting {
                path,
                value: bytes.to_string(),
                reason: "what is behind has dirty pages and reclaim of its own",
            });
        }
    }
    Ok(settings)
}

/// What a cgroup has in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// All of it.
    pub all_bytes: u64,
    /// What reclaim cannot take without making the app wait for it later: all but the cache
    /// of files that are not mapped.
    pub needed_bytes: u64,
}

/// The limit of a cgroup with `usage`. One that is `held` and near enough stays, or every
/// page that an app allocates would change it.
fn high(part: u64, usage: Usage, held: Option<u64>, pace: Pace) -> u64 {
    let Usage {
        all_bytes,
        needed_bytes,
    } = usage;
    let low_enough = |held| pace == Pace::AtOnce || held <= needed_bytes + 2 * part;
    if let Some(held) = held
        && held >= needed_bytes + part / 2
        && low_enough(held)
    {
        return held;
    }
    let bytes = match pace {
        Pace::AtOnce => all_bytes.max(needed_bytes + part),
        Pace::Settled => needed_bytes + part,
    };
    pages_of(bytes)
}

/// What the knob held before it was changed here.
fn before(journal: &Journal, path: &Path) -> Result<String, Error> {
    let mut changes = journal.changes().iter();
    match changes.find(|change| change.path == path) {
        Some(change) => Ok(change.before.clone()),
        None => Ok(journal.get(path)?),
    }
}

/// "max" is more than any number.
fn bytes_of(value: &str) -> u64 {
    value.parse().unwrap_or(u64::MAX)
}

fn share(bytes: u64, among: &[Cgroup]) -> u64 {
    pages_of(bytes / among.len().max(1) as u64)
}

/// Whole pages, as the kernel has them.
fn pages_of(bytes: u64) -> u64 {
    bytes - bytes % device::PAGE_BYTES as u64
}

fn memory_bytes(root: &Path) -> Result<u64, Error> {
    let path = below(root, "/proc/meminfo");
    let failed = |reason: String| Error::Memory {
        path: path.clone(),
        reason,
    };
    let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
    let kib = text.lines().find_map(|line| {
        let rest = line.strip_prefix("MemTotal:")?;
        rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.map(|kib| kib << 10)
        .ok_or_else(|| failed("it has no MemTotal".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn usage(all: u64, needed: u64) -> Usage {
        Usage {
            all_bytes: all * MIB,
            needed_bytes: needed * MIB,
        }
    }

    #[test]
    fn a_limit_leaves_an_app_what_it_uses_and_takes_no_time_at_once() {
        let high = |usage, held, pace| high(64 * MIB, usage, held, pace) / MIB;
        assert_eq!(high(usage(500, 300), None, Pace::Settled), 364);
        assert_eq!(high(usage(500, 300), None, Pace::AtOnce), 500);
        assert_eq!(high(usage(310, 300), None, Pace::AtOnce), 364);
        // Near enough stays.
        assert_eq!(high(usage(400, 320), Some(364 * MIB), Pace::Settled), 364);
        assert_eq!(high(usage(400, 250), Some(364 * MIB), Pace::Settled), 364);
        // It has grown, or given back.
        assert_eq!(high(usage(400, 340), Some(364 * MIB), Pace::AtOnce), 404);
        assert_eq!(high(usage(400, 200), Some(364 * MIB), Pace::Settled), 264);
        assert_eq!(high(usage(400, 200), Some(364 * MIB), Pace::AtOnce), 364);
    }

    #[test]
    fn a_list_holds_what_the_kernel_takes() {
        let many = (0..99).map(|it| format!("/app-{it}"));
        assert_eq!(lines(many, 24).lines().count(), 24);
        let long = (0..99).map(|it| format!("/{it}{}", "x".repeat(200)));
        let list = lines(long, 24);
        assert!(list.len() < 4096 && list.lines().count() > 15);
        assert_eq!(lines(std::iter::empty(), 24), "none");
    }

    #[test]
    fn who_covers_more_of_the_screen_has_more_of_the_device() {
        let visible = [("/corner", 4), ("/half", 50)].map(|(path, percent)| Visible {
            cgroup: Cgroup::named(path.to_owned()).unwrap(),
            percent,
        });
        let grounds = Grounds {
            visible: visible.to_vec(),
            ..Grounds::default()
        };
        assert_eq!(lines(shares(&grounds), 8), "32 /half\n5 /corner");
        assert_eq!(lines(shares(&Grounds::default()), 8), "none");
    }
}
