//! Holding some cgroups in front of others, and letting go.

use crate::cgroup::below;
use crate::{Cgroup, Error};
use device::Device;
use knobs::{Change, Journal, Restored};
use std::fs;
use std::path::Path;

const JOURNAL: &str = "foreground";

/// Of the memory, what is behind may use, in 1/256. A cgroup's dirty pages are limited to a
/// share of what it may use (`vm.dirty_ratio`); with a quarter, all that is behind stays
/// below the system's own limit, and nobody in front is throttled for it
/// (`domain_dirty_freerun` in mm/page-writeback.c).
const BEHIND_256: u64 = 64;

/// Of the memory, what reclaim leaves to what is in front as long as there is other.
const FRONT_256: u64 = 128;

/// Who is where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grounds {
    /// The app that somebody looks at.
    pub front: Vec<Cgroup>,
    /// Apps that nobody looks at; never services, as the foreground may depend on them.
    pub behind: Vec<Cgroup>,
}

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

/// Puts `grounds.front` in front of `grounds.behind`, and gives the changes. If anything
/// fails, everything is as before.
///
/// # Errors
/// [`Error`]; [`Error::Held`] until what was held before is released.
pub fn hold(root: &Path, grounds: &Grounds, parts: Parts) -> Result<Vec<Change>, Error> {
    let mut journal = Journal::open(root, JOURNAL)?;
    if !journal.changes().is_empty() {
        return Err(Error::Held);
    }
    match set(root, &mut journal, grounds, parts) {
        Ok(()) => Ok(journal.changes().to_vec()),
        Err(error) => {
            journal.restore()?;
            Err(error)
        }
    }
}

/// Undoes what [`hold`] changed, in this process or another one.
///
/// # Errors
/// [`Error::Knobs`].
pub fn release(root: &Path) -> Result<Vec<(Change, Restored)>, Error> {
    match Journal::exists(root, JOURNAL) {
        true => Ok(Journal::open(root, JOURNAL)?.restore()?),
        false => Ok(Vec::new()),
    }
}

/// The changes in force.
///
/// # Errors
/// [`Error::Knobs`].
pub fn changes(root: &Path) -> Result<Vec<Change>, Error> {
    Ok(Journal::peek(root, JOURNAL)?)
}

fn set(root: &Path, journal: &mut Journal, grounds: &Grounds, parts: Parts) -> Result<(), Error> {
    let memory_bytes = match parts.allocator || parts.reclaimer {
        true => memory_bytes(root)?,
        false => 0,
    };
    if parts.allocator {
        limit(
            root,
            journal,
            &grounds.behind,
            memory_bytes / 256 * BEHIND_256,
        )?;
    }
    if parts.reclaimer {
        protect(
            root,
            journal,
            &grounds.front,
            memory_bytes / 256 * FRONT_256,
        )?;
    }
    if parts.dispatcher {
        dispatch(root, journal, grounds)?;
    }
    Ok(())
}

/// Gives each an equal part of `bytes`, in whole pages.
fn limit(root: &Path, journal: &mut Journal, cgroups: &[Cgroup], bytes: u64) -> Result<(), Error> {
    let reason = "what is behind has dirty pages and reclaim of its own";
    let each = share(bytes, cgroups).to_string();
    for cgroup in cgroups {
        cgroup.require(root, "memory")?;
        journal.set(&cgroup.knob("memory.high"), &each, reason)?;
    }
    Ok(())
}

/// Protects an equal part of `bytes` in each. A cgroup has no more protection than those
/// above it (`effective_protection` in the kernel's memory controller), so these have as
/// much.
fn protect(
    root: &Path,
    journal: &mut Journal,
    cgroups: &[Cgroup],
    bytes: u64,
) -> Result<(), Error> {
    let reason = "reclaim takes the memory of others first";
    let each = share(bytes, cgroups);
    for cgroup in cgroups {
        cgroup.require(root, "memory")?;
        for level in cgroup.chain() {
            let knob = level.knob("memory.low");
            // "max" is more than any number.
            let has: u64 = journal.get(&knob)?.parse().unwrap_or(u64::MAX);
            if has < each {
                journal.set(&knob, &each.to_string(), reason)?;
            }
        }
    }
    Ok(())
}

fn share(bytes: u64, among: &[Cgroup]) -> u64 {
    let each = bytes / among.len().max(1) as u64;
    each - each % device::PAGE_BYTES as u64
}

/// On every disk that uses the scheduler.
fn dispatch(root: &Path, journal: &mut Journal, grounds: &Grounds) -> Result<(), Error> {
    for cgroup in grounds.front.iter().chain(&grounds.behind) {
        cgroup.require(root, "io")?;
    }
    let mut disks = 0;
    for disk in Device::all(root)? {
        let active = disk.schedulers()?.map(|it| it.active);
        if active.as_deref() != Some(sched::SCHEDULER) {
            continue;
        }
        disks += 1;
        for (list, cgroups, reason) in [
            ("foreground", &grounds.front, "served first"),
            (
                "background",
                &grounds.behind,
                "has a share while the foreground waits",
            ),
        ] {
            let path = disk.queue_attribute(&format!("iosched/{list}"));
            journal.set(&path, &lines(cgroups), reason)?;
        }
    }
    match disks {
        0 => Err(Error::NoScheduler),
        _ => Ok(()),
    }
}

fn lines(cgroups: &[Cgroup]) -> String {
    match cgroups {
        [] => "none".to_owned(),
        _ => {
            let paths: Vec<_> = cgroups.iter().map(Cgroup::path).collect();
            paths.join("\n")
        }
    }
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
