//! Target values of the kernel's knobs for a given foreground, visible apps and background.

use crate::cgroup::below;
use crate::{Cgroup, Error, bfq};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use sys::device::Device;
use sys::knobs::{Journal, Standing};
use sys::memory;

/// Part of the memory that all background apps may use for page cache, in 1/256. The kernel limits
/// a cgroup's dirty pages to a share of its memory (`vm.dirty_ratio`). With a quarter of the memory,
/// the background's dirty pages stay below the system-wide freerun limit, so the foreground is not
/// throttled for them (`domain_dirty_freerun` in mm/page-writeback.c), even if a limit is wrong by a
/// factor of two.
const BACKGROUND_256: u64 = 64;

/// Part of the memory that reclaim leaves to foreground and visible apps (`memory.low`), in 1/256.
const FOREGROUND_256: u64 = 128;

/// Most entries of each of the scheduler's lists. All lists together hold 40 (`MAX_CGROUPS` in
/// kernel/iosched/role.c), also while one list is new and the others are old.
const FOREGROUND_LISTED: usize = 8;
const VISIBLE_LISTED: usize = 8;
const BACKGROUND_LISTED: usize = 24;

/// Most bytes of a list: sysfs shows it in one page, a line for each cgroup.
const LIST_BYTES: usize = 4000;

/// Cgroups by role. Cgroups in none of them (services, the kernel's threads) are "other".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    /// Cgroups of the app that the user works with.
    #[serde(rename = "front")]
    pub foreground: Vec<Cgroup>,
    /// Apps that are visible beside it, in a split screen or picture-in-picture.
    pub visible: Vec<Visible>,
    /// Apps without a visible window; never services, since the foreground may depend on them.
    #[serde(rename = "behind")]
    pub background: Vec<Cgroup>,
}

/// A visible but inactive app ("002", §7.2.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visible {
    /// Cgroup of the app.
    pub cgroup: Cgroup,
    /// Visible part of its windows in percent of the screen, 1 to 100. It is the app's weight; the
    /// active app has 100.
    pub percent: u8,
}

impl Roles {
    /// Cgroups of the foreground and of visible apps.
    pub fn on_screen(&self) -> impl Iterator<Item = &Cgroup> {
        let visible = self.visible.iter().map(|it| &it.cgroup);
        self.foreground.iter().chain(visible)
    }

    /// The cgroups for which `controller` is enabled. An app cannot disable the settings of another
    /// app through its own cgroup.
    ///
    /// # Errors
    /// [`Error::NoController`] or [`Error::Gone`] if no foreground cgroup is left.
    pub(crate) fn reached_by(&self, root: &Path, controller: &'static str) -> Result<Roles, Error> {
        let mut roles = self.clone();
        let is_reached = |it: &Cgroup| it.require(root, controller).is_ok();
        roles.foreground.retain(is_reached);
        roles.visible.retain(|it| is_reached(&it.cgroup));
        roles.background.retain(is_reached);
        match self.foreground.first() {
            Some(first) if roles.foreground.is_empty() => {
                first.require(root, controller).map(|()| roles)
            }
            _ => Ok(roles),
        }
    }

    /// Cgroups without the io or the memory controller, for which only a part is applied.
    pub(crate) fn left_out(&self, root: &Path) -> Vec<Cgroup> {
        let is_reached = |it: &Cgroup| {
            let mut controllers = ["io", "memory"].into_iter();
            controllers.all(|controller| it.require(root, controller).is_ok())
        };
        let all = self.on_screen().chain(&self.background);
        all.filter(|it| !is_reached(it)).cloned().collect()
    }

    /// Sum of the weights of the active app and the visible apps, in percent.
    fn whole_percent(&self) -> u64 {
        let visible = self.visible.iter().map(|it| u64::from(it.percent));
        ACTIVE_PERCENT + visible.sum::<u64>()
    }
}

/// Weight of the active app, whatever the size of its windows.
const ACTIVE_PERCENT: u64 = 100;

/// Smallest share of the device for a visible app while the active one waits, in percent: more than
/// the default `background_share`.
const LEAST_SHARE_PERCENT: u64 = 5;

/// Parts of FastTrack, which can be enabled separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// PA, page allocator: background apps get memory limits, so the foreground does not wait for
    /// pages that they dirty.
    pub allocator: bool,
    /// PR, page reclaimer: reclaim takes the background's pages first.
    pub reclaimer: bool,
    /// ID, I/O dispatcher: the scheduler serves the foreground first.
    pub dispatcher: bool,
}

impl Parts {
    /// All parts of FastTrack.
    pub const ALL: Parts = Parts {
        allocator: true,
        reclaimer: true,
        dispatcher: true,
    };
}

/// Whether a change may wait for reclaim: a write to `memory.high` returns only after the kernel has
/// tried to bring the cgroup below the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Sets no limit below the cgroup's usage.
    AtOnce,
    /// Sets the final limits.
    Settled,
}

/// A knob and its target value.
pub(crate) struct Setting {
    pub path: PathBuf,
    pub value: String,
    pub reason: &'static str,
}

/// Input of [`settings`].
pub(crate) struct Wanted<'a> {
    pub roles: &'a Roles,
    /// Background cgroups that get no memory limit.
    pub spared: &'a BTreeSet<Cgroup>,
    pub parts: Parts,
    pub pace: Pace,
    /// Scheduler attributes that the kernel refused to write, since it lacks BFQ.
    pub refused: &'a BTreeSet<PathBuf>,
    /// Whether a disk may change to BFQ now.
    pub may_switch: bool,
}

/// Target values of all knobs to change, most effective first.
pub(crate) fn settings(
    root: &Path,
    journal: &Journal,
    wanted: &Wanted,
) -> Result<Vec<Setting>, Error> {
    let Wanted { roles, parts, .. } = wanted;
    let mut settings = Vec::new();
    if roles.foreground.is_empty() {
        return Ok(settings);
    }
    if parts.dispatcher {
        settings.extend(dispatch(root, journal, wanted)?);
    }
    if parts.reclaimer {
        settings.extend(protect(root, journal, roles)?);
    }
    if parts.allocator {
        settings.extend(give_way(root, journal, &roles.background)?);
        settings.extend(limit(root, journal, wanted)?);
    }
    Ok(settings)
}

/// Settings of the I/O dispatcher: the lists of Frontrow's scheduler on disks that use it, BFQ and
/// its weights on others.
fn dispatch(root: &Path, journal: &Journal, wanted: &Wanted) -> Result<Vec<Setting>, Error> {
    let roles = &wanted.roles.reached_by(root, "io")?;
    let mut ours = Vec::new();
    let mut others = Vec::new();
    for disk in Device::all(root)? {
        match disk.schedulers()?.map(|it| it.active) {
            Some(active) if active == module::sched::SCHEDULER => ours.push(disk),
            Some(_) => others.push(disk),
            None => {}
        }
    }
    let mut settings = lists(root, &ours, roles);
    settings.extend(bfq::settings(root, journal, &others, wanted)?);
    Ok(settings)
}

/// The lists `foreground`, `visible` and `background` of Frontrow's scheduler.
fn lists(root: &Path, disks: &[Device], roles: &Roles) -> Vec<Setting> {
    let path = |cgroup: &Cgroup| cgroup.path().to_owned();
    let foreground = lines(roles.foreground.iter().map(path), FOREGROUND_LISTED);
    let visible = lines(shares(roles), VISIBLE_LISTED);
    let background = lines(roles.background.iter().map(path), BACKGROUND_LISTED);
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
        // An older module lacks the attribute and serves visible apps as "other".
        if !roles.visible.is_empty() && below(root, &seen.path.to_string_lossy()).exists() {
            settings.push(seen);
        }
        let reason = "has a share while the foreground waits";
        settings.push(list("background", &background, reason));
    }
    settings
}

/// A line `SHARE PATH` for each visible app, the largest first.
fn shares(roles: &Roles) -> impl Iterator<Item = String> {
    let whole = roles.whole_percent();
    let mut visible: Vec<_> = roles.visible.iter().collect();
    visible.sort_by_key(|it| Reverse(it.percent));
    visible.into_iter().map(move |it| {
        let percent = (u64::from(it.percent) * 100 / whole).max(LEAST_SHARE_PERCENT);
        format!("{percent} {}", it.cgroup.path())
    })
}

/// The first `most` lines that fit in [`LIST_BYTES`]; the scheduler treats the rest as "other".
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

/// Protects memory of foreground and visible apps in proportion to their weights. A cgroup's
/// protection is limited by that of its ancestors (`effective_protection` in mm/memcontrol.c), so each
/// ancestor gets the sum of its descendants. A larger value that another program has set stays.
fn protect(root: &Path, journal: &Journal, roles: &Roles) -> Result<Vec<Setting>, Error> {
    let roles = &roles.reached_by(root, "memory")?;
    let all = memory_bytes(root)? / 256 * FOREGROUND_256;
    let part = |percent: u64| all * percent / roles.whole_percent();
    let active = share(part(ACTIVE_PERCENT), &roles.foreground);
    let active = roles.foreground.iter().map(|cgroup| (cgroup, active));
    let visible = roles.visible.iter();
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

/// Attribute of a cgroup's CPU weight, and its default.
const WEIGHT: (&str, &str) = ("cpu.weight", "100");

/// Sets SCHED_IDLE for background cgroups that have the cpu controller: with few CPUs, the foreground
/// waits longer for a CPU than for the device. `cpu.idle` resets the cgroup's weight, so a cgroup with
/// another weight than the default is left alone.
fn give_way(root: &Path, journal: &Journal, background: &[Cgroup]) -> Result<Vec<Setting>, Error> {
    let (weight, default) = WEIGHT;
    let mut settings = Vec::new();
    for cgroup in background {
        let path = cgroup.knob("cpu.idle");
        if !cgroup.file(root, "cpu.idle").exists() {
            continue;
        }
        let is_ours = journal.changes().iter().any(|change| change.path == path);
        if is_ours || sys::knobs::read(&cgroup.file(root, weight))? == default {
            settings.push(Setting {
                path,
                value: "1".to_owned(),
                reason: "background apps give up the CPU for others",
            });
        }
    }
    Ok(settings)
}

/// Limits each background cgroup to the memory that it needs and an equal part of the page cache.
/// No app is swapped out or loses its program's pages for being in the background. A lower limit that
/// another program has set stays.
fn limit(root: &Path, journal: &Journal, wanted: &Wanted) -> Result<Vec<Setting>, Error> {
    let background = &wanted.roles.reached_by(root, "memory")?.background;
    let part = share(memory_bytes(root)? / 256 * BACKGROUND_256, background);
    let mut settings = Vec::new();
    for cgroup in background.iter().filter(|it| !wanted.spared.contains(it)) {
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
                reason: "background apps have dirty pages and reclaim of their own",
            });
        }
    }
    Ok(settings)
}

/// Memory of a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Content of `memory.current`.
    pub all_bytes: u64,
    /// Memory that the app would wait for after reclaim: all but the page cache of unmapped files.
    pub needed_bytes: u64,
}

/// Limit in bytes for a cgroup with `usage`. The present limit `held` stays if it is close enough;
/// otherwise each allocation of the app would change it.
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

/// Value of the knob before this journal's first change.
fn before(journal: &Journal, path: &Path) -> Result<String, Error> {
    let mut changes = journal.changes().iter();
    match changes.find(|change| change.path == path) {
        Some(change) => Ok(change.before.clone()),
        None => Ok(journal.get(path)?),
    }
}

/// Number of bytes; `max` is the largest.
fn bytes_of(value: &str) -> u64 {
    value.parse().unwrap_or(u64::MAX)
}

fn share(bytes: u64, among: &[Cgroup]) -> u64 {
    pages_of(bytes / among.len().max(1) as u64)
}

/// `bytes` rounded down to pages, as the kernel does.
fn pages_of(bytes: u64) -> u64 {
    bytes - bytes % sys::device::PAGE_BYTES as u64
}

fn memory_bytes(root: &Path) -> Result<u64, Error> {
    let path = below(root, "/proc/meminfo");
    memory::bytes(root, "MemTotal").map_err(|error| Error::Memory {
        path,
        reason: error.to_string(),
    })
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
        let roles = Roles {
            visible: visible.to_vec(),
            ..Roles::default()
        };
        assert_eq!(lines(shares(&roles), 8), "32 /half\n5 /corner");
        assert_eq!(lines(shares(&Roles::default()), 8), "none");
    }
}
