//! The scheduler's counters of the last hour. The module counts since it was set, so a timer has them
//! written down now and then ([`count`]), and the difference to those of an hour ago is told.

use crate::sched::{Counters, Error, state, status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use sys::PathError;
use sys::device::Device;

const STATE: &str = "counted";
const HOUR_S: u64 = 3600;
const UPTIME: &str = "proc/uptime";

/// Counters of a disk at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Sample {
    /// Seconds since the machine started, sleep included.
    at_s: u64,
    counters: BTreeMap<String, u64>,
}

/// Samples by disk and its sequence number, the oldest first.
type Samples = BTreeMap<String, Vec<Sample>>;

/// Growth of a disk's counters in the last hour, or in as much of it as is known.
#[derive(Clone, Debug)]
pub struct Hour {
    /// Length of the time that was counted, in seconds; None if it is since the scheduler was set.
    pub seconds: Option<u64>,
    /// Growth of the counters in this time.
    pub counters: Counters,
}

/// Writes the counters of all `devices` down.
///
/// # Errors
/// [`Error`] of a disk or of the file.
pub fn count(root: &Path, devices: &[Device]) -> Result<(), Error> {
    let at_s = uptime_s(root)?;
    state::change(root, STATE, |samples: &mut Samples| {
        let mut known = Samples::new();
        for device in devices {
            let key = key(device)?;
            let mut of_disk = samples.remove(&key).unwrap_or_default();
            if let Some(counters) = status(root, device)?.counters {
                let counters = for_all_users(&counters);
                of_disk.push(Sample { at_s, counters });
            }
            forget_older(&mut of_disk, at_s);
            if !of_disk.is_empty() {
                known.insert(key, of_disk);
            }
        }
        *samples = known;
        Ok(())
    })
}

/// Growth of the counters of `device`, which holds `now` by them.
///
/// # Errors
/// [`Error::File`], or [`Error::Device`].
pub fn last_hour(root: &Path, device: &Device, now: &Counters) -> Result<Hour, Error> {
    let mut samples: Samples = state::read(root, STATE)?;
    let mut of_disk = samples.remove(&key(device)?).unwrap_or_default();
    let at_s = uptime_s(root)?;
    forget_older(&mut of_disk, at_s);
    let now = Counters::from(for_all_users(now));
    Ok(match of_disk.into_iter().next() {
        Some(first) => Hour {
            seconds: Some(at_s.saturating_sub(first.at_s)),
            counters: now.since(&Counters::from(first.counters)),
        },
        None => Hour {
            seconds: None,
            counters: now,
        },
    })
}

/// Forgets what was counted.
///
/// # Errors
/// [`Error::File`].
pub fn forget(root: &Path) -> Result<(), Error> {
    state::forget(root, STATE)
}

/// Without the requests of each class: when the foreground app does I/O is root's to know, and the
/// file can be read by all users.
fn for_all_users(counters: &Counters) -> BTreeMap<String, u64> {
    let mut counters = counters.all().clone();
    counters.retain(|name, _| !name.ends_with("_dispatched"));
    counters
}

/// Leaves the newest sample that is an hour old, and all that are younger.
fn forget_older(samples: &mut Vec<Sample>, now_s: u64) {
    let is_old = |sample: &Sample| sample.at_s.saturating_add(HOUR_S) <= now_s;
    let old = samples.iter().take_while(|it| is_old(it)).count();
    samples.drain(..old.saturating_sub(1));
}

fn key(device: &Device) -> Result<String, Error> {
    Ok(format!("{}-{}", device.name(), device.sequence()?))
}

fn uptime_s(root: &Path) -> Result<u64, Error> {
    let path = root.join(UPTIME);
    let text = fs::read_to_string(&path).map_err(PathError::of("access", &path))?;
    let whole = text.split(['.', ' ']).next().unwrap_or_default();
    whole.parse().map_err(|_| {
        let odd = std::io::Error::other(format!("{text:?} begins with no number of seconds"));
        PathError::of("access", &path)(odd).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_of_an_hour_ago_stays_and_no_older_one() {
        let sample = |at_s| Sample {
            at_s,
            counters: BTreeMap::new(),
        };
        for (at, now_s, left) in [
            (&[0, 600, 1200][..], 1300, &[0, 600, 1200][..]),
            (&[0, 600, 1200], 3600, &[0, 600, 1200]),
            (&[0, 600, 1200], 4250, &[600, 1200]),
            // It slept for a night.
            (&[0, 600, 1200], 40_000, &[1200]),
            (&[], 10, &[]),
        ] {
            let mut samples: Vec<_> = at.iter().map(|at_s| sample(*at_s)).collect();
            forget_older(&mut samples, now_s);
            let at: Vec<_> = samples.iter().map(|it| it.at_s).collect();
            assert_eq!(at, left, "{now_s}");
        }
    }
}
