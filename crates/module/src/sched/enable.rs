//! Putting a device under the scheduler, and back.

use crate::sched::{Boost, Error, Module, taken};
use std::path::Path;
use sys::device::{Device, Schedulers};
use sys::knobs::{Change, Home, Journal, Restored, Standing};

/// The scheduler's name in `queue/scheduler`.
pub const SCHEDULER: &str = "frontrow";

/// The least number of tags. What waits for a tag is invisible to the scheduler, and the
/// kernel gives a device of depth 2 only four.
pub const NR_REQUESTS: u64 = 512;

const RESET_ALONG: &str = "switching the scheduler resets it";
const NO_THROTTLING: &str = "writeback throttling holds writes back where they cannot be promoted";

/// Puts `device` under the scheduler, loading its module if it is not there, and gives the
/// changes that make up the difference. If the device is under it already, only what is
/// missing is set. If anything fails, everything is as before.
///
/// # Errors
/// [`Error`]; a device without requests is [`Error::NoScheduler`].
pub fn enable(
    root: &Path,
    device: &Device,
    boost: &Boost,
    module: &Module,
) -> Result<Vec<Change>, Error> {
    change(root, device, |journal| {
        let schedulers = schedulers(device)?;
        if schedulers.active != SCHEDULER {
            offer(root, device, &schedulers, module)?;
            switch(journal, device)?;
        }
        give_tags(journal, device)?;
        stop_throttling(journal, device)?;
        set_boost(journal, device, boost)
    })
}

/// Puts everything that [`enable`] changed back to what it was, and gives the changes.
///
/// # Errors
/// [`Error::NotOurs`] for a device that something else put under the scheduler.
pub fn disable(root: &Path, device: &Device) -> Result<Vec<Change>, Error> {
    let changes = Journal::peek(root, Home::Tools, &journal_name(device)?)?;
    if let Some(before) = taken::before_given_back(root, device, &changes)? {
        return give_back(root, device, &before).map_err(|error| refused(device, error));
    }
    if changes.is_empty() {
        let active = device.schedulers()?.map(|schedulers| schedulers.active);
        if active.as_deref() == Some(SCHEDULER) {
            return Err(Error::NotOurs {
                device: device.name().to_owned(),
            });
        }
        return Ok(Vec::new());
    }
    let changed = sys::knobs::net(root, &changes)?;
    let restored = restore(root, device).map_err(|error| refused(device, error))?;
    let turned = changed.into_iter().map(|change| Change {
        before: change.value.unwrap_or_default(),
        value: Some(change.before),
        ..change
    });
    // What came with the scheduler has gone with it.
    let still_there = |change: &Change| root.join(strip_root(&change.path)).exists();
    let put_back = |change: &Change| is_put_back(&restored, &change.path);
    Ok(turned.filter(still_there).filter(put_back).collect())
}

/// Gives `device` the scheduler `before`. The number of tags is the one that the kernel gives with it.
fn give_back(root: &Path, device: &Device, before: &str) -> Result<Vec<Change>, Error> {
    let mut journal = Journal::open(root, Home::Tools, &journal_name(device)?)?;
    let path = device.queue_attribute("scheduler");
    journal.set(&path, before, "as before it was left to another program")?;
    let given: Vec<_> = journal.changes().last().cloned().into_iter().collect();
    journal.forget(&path);
    journal.forget(&device.queue_attribute("nr_requests"));
    journal.restore()?;
    Ok(given)
}

/// Whether [`disable`] would change something.
///
/// # Errors
/// [`Error::Device`], [`Error::File`] or [`Error::Knobs`].
pub fn is_enabled(root: &Path, device: &Device) -> Result<bool, Error> {
    let changes = Journal::peek(root, Home::Tools, &journal_name(device)?)?;
    let is_changed = !sys::knobs::net(root, &changes)?.is_empty();
    Ok(is_changed || taken::before_given_back(root, device, &changes)?.is_some())
}

/// Changes of [`enable`] that are in force.
///
/// # Errors
/// [`Error::Device`] or [`Error::Knobs`].
pub fn changes(root: &Path, device: &Device) -> Result<Vec<Change>, Error> {
    let changes = Journal::peek(root, Home::Tools, &journal_name(device)?)?;
    Ok(sys::knobs::net(root, &changes)?)
}

/// Whether the knob was restored, and not left to somebody else's value.
fn is_put_back(restored: &[(Change, Restored)], path: &Path) -> bool {
    let mut knobs = restored.iter();
    knobs.any(|(change, outcome)| change.path == path && *outcome != Restored::Overruled)
}

/// Puts back what the device's journal tells of. With another scheduler the kernel has chosen the number
/// of tags anew, and whoever set that scheduler has that number.
fn restore(root: &Path, device: &Device) -> Result<Vec<(Change, Restored)>, Error> {
    let mut journal = Journal::open(root, Home::Tools, &journal_name(device)?)?;
    if journal.standing(&device.queue_attribute("scheduler"))? == Standing::Theirs {
        journal.forget(&device.queue_attribute("nr_requests"));
    }
    Ok(journal.restore()?)
}

/// The journal of a device's changes. What was changed on a disk must not be put back on
/// another one that has its name now.
pub(crate) fn journal_name(device: &Device) -> Result<String, Error> {
    Ok(format!("sched-{}-{}", device.name(), device.sequence()?))
}

/// The schedulers a device can have.
pub(crate) fn schedulers(device: &Device) -> Result<Schedulers, Error> {
    match device.schedulers()? {
        Some(schedulers) => Ok(schedulers),
        None => Err(Error::NoScheduler {
            device: device.name().to_owned(),
            below: device.below()?,
        }),
    }
}

fn strip_root(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Makes the changes of `work` to `device`, or none of them.
pub(crate) fn change(
    root: &Path,
    device: &Device,
    work: impl FnOnce(&mut Journal) -> Result<(), Error>,
) -> Result<Vec<Change>, Error> {
    schedulers(device)?;
    let mut journal = open(root, device).map_err(|error| refused(device, error))?;
    let known = journal.changes().len();
    match work(&mut journal) {
        Ok(()) if journal.changes().len() == known => Ok(Vec::new()),
        Ok(()) => Ok(sys::knobs::net(root, journal.changes())?),
        Err(error) => {
            // Changes from before have nothing to do with this failure.
            if known == 0 {
                journal.restore()?;
            }
            Err(refused(device, error))
        }
    }
}

/// The device's journal. If the device has left the scheduler since, it is the journal of
/// a crash or of changes that somebody has overruled: they are undone first.
fn open(root: &Path, device: &Device) -> Result<Journal, Error> {
    let journal = Journal::open(root, Home::Tools, &journal_name(device)?)?;
    if journal.changes().is_empty() || schedulers(device)?.active == SCHEDULER {
        return Ok(journal);
    }
    drop(journal);
    restore(root, device)?;
    Ok(Journal::open(root, Home::Tools, &journal_name(device)?)?)
}

/// The same error, or what an ordinary user has to do.
fn refused(device: &Device, error: Error) -> Error {
    match error {
        Error::Knobs(_) if error.is_permission() => Error::Permission {
            what: format!("changing {}", device.name()),
        },
        other => other,
    }
}

fn offer(
    root: &Path,
    device: &Device,
    schedulers: &Schedulers,
    module: &Module,
) -> Result<(), Error> {
    let offers = |schedulers: &Schedulers| schedulers.available.iter().any(|it| it == SCHEDULER);
    if offers(schedulers) {
        return Ok(());
    }
    module.load(root)?;
    if offers(&self::schedulers(device)?) {
        return Ok(());
    }
    Err(Error::NotOffered {
        device: device.name().to_owned(),
    })
}

/// The kernel resets the other two with the scheduler, and frontrow turns throttling off
/// itself where the kernel lets it, so they are set after it.
fn switch(journal: &mut Journal, device: &Device) -> Result<(), Error> {
    journal.remember(&device.queue_attribute("nr_requests"), RESET_ALONG)?;
    if device.wbt_lat_usec()?.is_some() {
        journal.remember(&device.queue_attribute("wbt_lat_usec"), NO_THROTTLING)?;
    }
    let reason = "serves first what somebody waits for";
    Ok(journal.set(&device.queue_attribute("scheduler"), SCHEDULER, reason)?)
}

fn give_tags(journal: &mut Journal, device: &Device) -> Result<(), Error> {
    if device.nr_requests()? >= NR_REQUESTS {
        return Ok(());
    }
    let path = device.queue_attribute("nr_requests");
    let first = journal.changes().iter().find(|it| it.path == path);
    let reason = why_tags(first.and_then(|it| it.before.parse().ok()));
    Ok(journal.set(&path, &NR_REQUESTS.to_string(), reason)?)
}

/// Reason for the new number of tags of a device that had `before`. An NVMe disk without scheduler
/// has as many as it takes; with one, the kernel starts at 256.
fn why_tags(before: Option<u64>) -> &'static str {
    match before {
        Some(before) if before > NR_REQUESTS => {
            "switching the scheduler makes it 256; so many are enough to choose from"
        }
        _ => "a request that waits for a tag cannot be scheduled",
    }
}

fn stop_throttling(journal: &mut Journal, device: &Device) -> Result<(), Error> {
    if device.wbt_lat_usec()?.is_none_or(|target| target == 0) {
        return Ok(());
    }
    Ok(journal.set(&device.queue_attribute("wbt_lat_usec"), "0", NO_THROTTLING)?)
}

fn set_boost(journal: &mut Journal, device: &Device, boost: &Boost) -> Result<(), Error> {
    let path = device.queue_attribute("iosched/boost");
    let current: Boost = journal.get(&path)?.parse()?;
    if current == *boost {
        return Ok(());
    }
    Ok(journal.set(&path, &boost.to_string(), "which waits promote a write")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_tags_than_before_are_not_told_as_more() {
        assert!(why_tags(Some(1023)).contains("enough"));
        for before in [None, Some(4), Some(NR_REQUESTS)] {
            assert!(why_tags(before).contains("waits for a tag"), "{before:?}");
        }
    }
}
