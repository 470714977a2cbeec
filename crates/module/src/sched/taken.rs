//! Disks that somebody else took away from the scheduler while it was on.
//!
//! A udev rule that sets another scheduler does so at each event of its disk. Rules are run in the order
//! of their names, and ours is the last, so that its word counts; that is no fight, and it is not
//! counted. Whoever else takes a disk may mean it: it is taken back once. The second time the disk is
//! left to them, until [`forgive`] is called for a user who wants it back.

use crate::sched::enable::{journal_name, schedulers};
use crate::sched::{Boost, Error, Module, SCHEDULER, Taker, disable, enable, state, takers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use sys::device::Device;
use sys::knobs::{Change, Home, Journal};

const STATE: &str = "taken";
/// For each disk that was taken, by the name of its journal, the scheduler that it had before ours.
const BEFORE: &str = "before";
/// How often a disk is taken back from whom its rules do not name.
const TAKEN_BACK: u32 = 1;

/// A disk that was taken, by one taker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Name of the disk.
    pub disk: String,
    /// Its sequence number, which no other disk has had since boot.
    pub sequence: u64,
    /// The scheduler that it was given.
    pub scheduler: String,
    /// Who gave it that.
    pub by: Taker,
    /// When it was last taken, in seconds since 1970.
    pub at_s: u64,
    /// Number of times since the boot.
    pub times: u32,
    /// Whether it was left to the taker the last time.
    pub left: bool,
}

/// What came of a look at a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nobody has put it under the scheduler.
    NotOurs,
    /// It is under the scheduler.
    InPlace,
    /// It was taken, and is under the scheduler again.
    TakenBack(Taken),
    /// It was taken, and is left so.
    Left(Taken),
}

/// Looks whether somebody took `device`, and takes it back, or gives it up. `after_rules` says that
/// udev has just run its rules for it.
///
/// # Errors
/// As of [`enable`](fn@enable).
pub fn keep(root: &Path, device: &Device, after_rules: bool) -> Result<Kept, Error> {
    let sequence = device.sequence()?;
    // A disk that cannot be taken back was taken all the same.
    let kept = state::change(root, STATE, |all: &mut Vec<Taken>| {
        let changes = Journal::peek(root, Home::Tools, &journal_name(device)?)?;
        if changes.is_empty() {
            return Ok(Ok(Kept::NotOurs));
        }
        let active = schedulers(device)?.active;
        if active == SCHEDULER {
            // A rule may have set the number of tags, or throttling, alone.
            let enabled = after_rules.then(|| again(root, device, &changes));
            return Ok(enabled.unwrap_or(Ok(())).map(|()| Kept::InPlace));
        }
        let by = takers::taker(root, device, &active, after_rules);
        let is_ours = |it: &&Taken| it.disk == device.name() && it.sequence == sequence;
        let of_disk = all.iter().filter(is_ours);
        let others = of_disk.filter(|it| !matches!(it.by, Taker::UdevRule { .. }));
        let taken_before: u32 = others.map(|it| it.times).sum();
        let is_last_word = after_rules && matches!(by, Taker::UdevRule { .. });
        let left = !is_last_word && taken_before >= TAKEN_BACK;
        let mut taken = note(all, device.name(), sequence, active, by, left);
        remember_before(root, device, &changes)?;
        if left {
            disable(root, device)?;
            return Ok(Ok(Kept::Left(taken)));
        }
        let enabled = again(root, device, &changes);
        if enabled.is_err() {
            taken.left = true;
            all.pop();
            all.push(taken.clone());
        }
        Ok(enabled.map(|()| Kept::TakenBack(taken)))
    });
    kept?
}

/// Puts the disk under the scheduler as it was before, by its `changes`.
fn again(root: &Path, device: &Device, changes: &[Change]) -> Result<(), Error> {
    enable(root, device, &boost_of(changes)?, &Module::Installed).map(drop)
}

/// The promotions that the disk was put under the scheduler with.
fn boost_of(changes: &[Change]) -> Result<Boost, Error> {
    let mut newest_first = changes.iter().rev();
    let of_boost = newest_first.find(|it| it.path.ends_with("iosched/boost"));
    of_boost
        .and_then(|it| it.value.as_deref())
        .map_or(Ok(Boost::all()), str::parse)
}

/// What was taken since the machine started.
///
/// # Errors
/// [`Error::File`].
pub fn all(root: &Path) -> Result<Vec<Taken>, Error> {
    state::read(root, STATE)
}

/// Whether `device` was left to who took it.
///
/// # Errors
/// [`Error::File`] or [`Error::Device`].
pub fn is_left(root: &Path, device: &Device) -> Result<bool, Error> {
    let sequence = device.sequence()?;
    let is_so = |it: &Taken| it.left && it.disk == device.name() && it.sequence == sequence;
    Ok(all(root)?.iter().any(is_so))
}

/// Forgets what was taken, as a user wants it back.
///
/// # Errors
/// [`Error::File`].
pub fn forgive(root: &Path) -> Result<(), Error> {
    state::forget(root, STATE)
}

/// Forgets what was taken, and what was there before ours, as all of it is off.
///
/// # Errors
/// [`Error::File`].
pub fn forget(root: &Path) -> Result<(), Error> {
    forgive(root)?;
    state::forget(root, BEFORE)
}

/// A disk's journal ends when it is taken, and its taker may put ours back: tuned does at its end.
fn remember_before(root: &Path, device: &Device, changes: &[Change]) -> Result<(), Error> {
    let path = device.queue_attribute("scheduler");
    let Some(first) = changes.iter().find(|it| it.path == path) else {
        return Ok(());
    };
    let name = journal_name(device)?;
    state::change(root, BEFORE, |before: &mut BTreeMap<String, String>| {
        before.entry(name).or_insert_with(|| first.before.clone());
        Ok(())
    })
}

/// The scheduler that `device` had before ours, if it was taken since, and has ours from its taker.
///
/// # Errors
/// [`Error::File`] or [`Error::Device`].
pub(crate) fn before_given_back(
    root: &Path,
    device: &Device,
    changes: &[Change],
) -> Result<Option<String>, Error> {
    let path = device.queue_attribute("scheduler");
    let active = device.schedulers()?.map(|it| it.active);
    if active.as_deref() != Some(SCHEDULER) || changes.iter().any(|it| it.path == path) {
        return Ok(None);
    }
    let mut before: BTreeMap<String, String> = state::read(root, BEFORE)?;
    Ok(before.remove(&journal_name(device)?))
}

fn note(
    all: &mut Vec<Taken>,
    disk: &str,
    sequence: u64,
    scheduler: String,
    by: Taker,
    left: bool,
) -> Taken {
    let at_s = SystemTime::now().duration_since(UNIX_EPOCH);
    let at_s = at_s.map_or(0, |it| it.as_secs());
    let known = all
        .iter()
        .position(|it| it.disk == disk && it.sequence == sequence && it.by == by);
    let times = 1 + known.map_or(0, |place| all.remove(place).times);
    let taken = Taken {
        disk: disk.to_owned(),
        sequence,
        scheduler,
        by,
        at_s,
        times,
        left,
    };
    all.push(taken.clone());
    taken
}
