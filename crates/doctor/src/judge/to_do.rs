//! What else to do about a cause, in a sentence. What that brings was not measured.

use super::blame::Blame;
use super::causes;
use crate::cause::{Cause, Kind};
use crate::kernel_threads::DISCARDS;
use crate::observe::Observation;

const NO_DISCARDS: &str = "mount without the option discard, and enable fstrim.timer";

pub(super) fn to_do(
    cause: Cause,
    who: &str,
    blame: &Blame,
    disk: Option<&str>,
    file: Option<&str>,
    seen: &Observation,
) -> Option<String> {
    let culprit = blame.name.as_deref();
    let mount = file.and_then(|it| seen.machine.mount_of(it));
    match cause {
        Cause::Limit => limit(who, culprit, seen),
        Cause::NoAnswer => Some(no_answer(disk, seen)),
        Cause::SlowDevice => disk.map(|it| {
            let bottom = seen.machine.bottom(it).first().map_or(it, |it| *it);
            format!("look for errors of {bottom} (dmesg, smartctl -a /dev/{bottom}), and save what is on it")
        }),
        Cause::Frozen => {
            let point = mount.map_or("the mount point", |it| it.point.as_str());
            Some(format!("wait for the backup or snapshot tool that froze it; fsfreeze -u {point} thaws it by hand"))
        }
        Cause::FileLock => {
            culprit.map(|it| format!("have {it} write less at a time, or {who} read a copy of the file"))
        }
        Cause::Discards => Some(NO_DISCARDS.to_owned()),
        Cause::Idle => Some("nothing: the kernel counts this wait as I/O, and no disk has to do with it".to_owned()),
        Cause::Remote => culprit.map(|it| format!("look at {it}, at its server and at the network")),
        Cause::SyncAll => Some("wait, or limit before how much may be dirty for a slow disk (frontrowd)".to_owned()),
        _ if cause.row().kind == Kind::Memory => of_memory(who, culprit, seen),
        _ => culprit.and_then(|it| of_culprit(it, who, cause)),
    }
}

fn limit(who: &str, culprit: Option<&str>, seen: &Observation) -> Option<String> {
    let own = causes::own_limit(who, seen);
    let named = culprit.and_then(|name| {
        let group = seen.groups.iter().find(|it| it.name() == name)?;
        Some((group, group.limits.first()?))
    });
    let (group, limit) = named.or(own)?;
    let (path, file, words) = (&group.path, limit.file, &limit.words);
    Some(match culprit {
        Some(_) => format!(
            "raise {file} of {path} ({words}), or keep its files on another file system: who shares this one waits for its changes"
        ),
        None => format!("raise {file} of {path} ({words}), the group that {who} is in"),
    })
}

fn no_answer(disk: Option<&str>, seen: &Observation) -> String {
    let stack = disk.map(|it| seen.machine.stack(it)).unwrap_or_default();
    let trouble = stack.iter().find_map(|it| {
        let disk = seen.machine.disk(it)?;
        Some((disk, disk.trouble.as_deref()?))
    });
    match trouble {
        Some((disk, trouble)) if trouble.contains("suspended") => {
            let name = disk.title.as_deref().unwrap_or(&disk.name);
            format!("dmsetup resume {name}")
        }
        Some((_, trouble)) if trouble.contains("pool") => {
            "extend the pool (lvextend), or remove volumes or snapshots of it".to_owned()
        }
        _ => {
            let disk = disk.unwrap_or("the disk");
            format!(
                "look for resets and errors of {disk} in the kernel's log (dmesg), and save what is on it"
            )
        }
    }
}

/// About a lack of memory.
pub(super) fn of_memory(who: &str, culprit: Option<&str>, seen: &Observation) -> Option<String> {
    let group = seen.group_of(who).filter(|it| it.is_short());
    match (culprit, group) {
        (Some(culprit), _) => Some(format!(
            "end {culprit}, or limit its memory (systemd: MemoryMax=)"
        )),
        (None, Some(group)) => Some(format!(
            "raise {} of {}, or have {who} use less memory",
            group.memory_file, group.path
        )),
        (None, None) => Some(format!("have {who} use less memory, or add some")),
    }
}

/// About work that the kernel does, and about reading.
fn of_culprit(culprit: &str, who: &str, cause: Cause) -> Option<String> {
    let raid = culprit.split_once("'s ").map(|it| it.0);
    if let Some(raid) = raid.filter(|it| !it.contains(' ')) {
        return Some(format!(
            "echo 10000 | sudo tee /sys/block/{raid}/md/sync_speed_max holds it to 10 MB/s; it then takes longer"
        ));
    }
    match culprit {
        DISCARDS => Some(NO_DISCARDS.to_owned()),
        "ext4lazyinit" => Some(
            "wait until it is done, once for each new file system; a larger init_itable= in the mount options makes it slower and gentler".to_owned(),
        ),
        _ if culprit.contains("snapshot's copying") => {
            Some("remove the snapshot when it is no longer needed (lvremove)".to_owned())
        }
        _ if culprit == who => None,
        _ => (cause == Cause::DeviceBusy || cause == Cause::QueueFull)
            .then(|| format!("run {culprit} at another time or slower, such as by systemd-run -p IOReadBandwidthMax=")),
    }
}
