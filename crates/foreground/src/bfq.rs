//! Settings for the foreground on disks that do not use Frontrow's scheduler: BFQ and its weights, where
//! no module can be loaded.
//!
//! BFQ serves by cgroup, and its weights are the one knob that every distribution's kernel has
//! (`io.prio.class` and `io.latency` are off in Debian's, and io.cost wants a model of the device).
//!
//! A change of scheduler freezes and drains the disk, for all its users. So `arbiter` keeps BFQ for a
//! minute after the foreground has gone, and lets disks change once a minute at most.

use crate::policy::{Roles, Setting, Wanted};
use crate::{Cgroup, Error};
use std::path::{Path, PathBuf};
use sys::device::{Device, Schedulers};
use sys::knobs::Journal;

const BFQ: &str = "bfq";
const WEIGHT: &str = "io.bfq.weight";
/// Largest and smallest weight.
const FOREGROUND_WEIGHT: &str = "1000";
const BACKGROUND_WEIGHT: &str = "1";

/// Queue attributes that the kernel resets with a change of scheduler.
const RESET_ALONG: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

/// Settings for `disks`, which have other schedulers than Frontrow's. Weights follow in a later round,
/// once BFQ is active and their files exist.
pub(crate) fn settings(
    root: &Path,
    journal: &Journal,
    disks: &[Device],
    wanted: &Wanted,
) -> Result<Vec<Setting>, Error> {
    let mut settings = Vec::new();
    let mut any_has_bfq = false;
    for disk in disks {
        let path = disk.queue_attribute("scheduler");
        let is_ours = journal.changes().iter().any(|it| it.path == path);
        let Some(schedulers) = disk.schedulers()? else {
            continue;
        };
        any_has_bfq |= schedulers.active == BFQ;
        let may_switch = wanted.may_switch && !wanted.refused.contains(&path);
        if is_ours || may_switch && may_have_bfq(disk, &schedulers)? {
            settings.push(Setting {
                path,
                value: BFQ.to_owned(),
                reason: "it serves by cgroup, and Frontrow's scheduler is not enabled here",
            });
        }
    }
    if any_has_bfq {
        settings.extend(weights(root, wanted.roles)?);
    }
    Ok(settings)
}

/// Whether BFQ suits the disk: it has one queue for all CPUs, which slows down disks with several
/// hardware queues.
fn may_have_bfq(disk: &Device, schedulers: &Schedulers) -> Result<bool, Error> {
    let is_wanted = schedulers.active != BFQ && !disk.is_virtual();
    Ok(is_wanted && disk.hardware_queues()? == 1)
}

fn weights(root: &Path, roles: &Roles) -> Result<Vec<Setting>, Error> {
    let roles = roles.reached_by(root, "io")?;
    let weight = |cgroups: &[Cgroup], value: &str, reason| -> Vec<Setting> {
        let there = cgroups.iter().filter(|it| it.file(root, WEIGHT).exists());
        let setting = |cgroup: &Cgroup| Setting {
            path: cgroup.knob(WEIGHT),
            value: value.to_owned(),
            reason,
        };
        there.map(setting).collect()
    };
    let mut settings = weight(&roles.foreground, FOREGROUND_WEIGHT, "has most of the disk");
    settings.extend(weight(
        &roles.background,
        BACKGROUND_WEIGHT,
        "has what is left of the disk",
    ));
    Ok(settings)
}

pub(crate) fn is_scheduler(path: &Path) -> bool {
    path.ends_with("queue/scheduler")
}

/// Knobs to record before the knob at `path` is set, since the kernel resets them with it.
pub(crate) fn reset_along(path: &Path) -> Vec<PathBuf> {
    match is_scheduler(path) {
        true => RESET_ALONG.map(|name| path.with_file_name(name)).to_vec(),
        false => Vec::new(),
    }
}
