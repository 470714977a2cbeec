//! Who caused waits, by their account, and whether a verdict holds against the disk's own figures.

use super::causes::{self, limit, writer};
use super::most;
use crate::account::Account;
use crate::cause::{Cause, Kind};
use crate::kernel_threads::{Work, work};
use crate::observe::{Observation, Party, Wait};
use record::number;

/// Share of a wait for which a disk served others, from which these are its cause.
pub(super) const BEHIND: f64 = 0.2;
/// Share of a wait that the parts which a verdict speaks of have to have, for it to be sure.
const HELD: f64 = 0.4;

/// Who is to blame.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Blame {
    /// Name of the process, thread of the kernel or group; None if nobody else is.
    pub name: Option<String>,
    /// What it is, as words that follow its name.
    pub relation: String,
    /// Whether it was linked rather than inferred.
    pub is_linked: bool,
    /// Whether it is a thread of the kernel.
    pub is_kernel: bool,
    /// Time for which the disk served it.
    pub served_ns: u64,
}

pub(super) fn blame(
    cause: Cause,
    who: &str,
    waits: &[&Wait],
    account: &Account,
    seen: &Observation,
) -> Blame {
    let linked = Blame {
        is_linked: true,
        ..Blame::default()
    };
    match cause {
        Cause::OwnWrites
        | Cause::OwnCommits
        | Cause::SlowDevice
        | Cause::Fragments
        | Cause::Idle
        | Cause::NoAnswer => linked,
        Cause::Remote => Blame {
            name: waits.iter().find_map(|it| {
                let server = seen.mount_of(it)?.server.as_ref()?;
                Some(server.name.clone())
            }),
            relation: ", which answers for it".to_owned(),
            ..linked
        },
        Cause::Limit => Blame {
            name: waits.iter().find_map(|it| {
                let (group, _) = limit(it, seen)?;
                let own = causes::own_limit(who, seen);
                let is_own = own.is_some_and(|it| it.0.path == group.path);
                (!is_own).then(|| group.name().to_owned())
            }),
            relation: ", a group with a limit".to_owned(),
            ..linked
        },
        Cause::Frozen | Cause::FileLock => Blame {
            name: other(who, waits, seen),
            relation: match cause {
                Cause::FileLock => ", which held the file's lock".to_owned(),
                _ => ", which thawed it".to_owned(),
            },
            ..linked
        },
        Cause::DirtyThrottling => {
            // The limit is system-wide, and the slowest disk's pages stay dirty longest.
            let dirtied = seen
                .disks
                .iter()
                .filter(|it| causes::is_dirtied_by_another(&it.disk, who, seen));
            let busiest = dirtied.max_by_key(|it| it.busy_ns).or(seen.busiest_disk());
            let disk = busiest.map(|it| it.disk.as_str());
            let others = seen.dirtiers_of(disk).filter(|it| it.name != who);
            let writer = others.max_by_key(|it| seen.written_to(disk, it));
            Blame {
                name: writer.map(|it| it.name.clone()),
                is_linked: other(who, waits, seen).is_some(),
                ..Blame::default()
            }
        }
        _ if cause.row().kind == Kind::Memory => Blame {
            name: super::memory::taker(seen)
                .filter(|it| *it != who)
                .map(str::to_owned),
            relation: ", which took memory".to_owned(),
            ..linked
        },
        Cause::Unexplained | Cause::Cpu | Cause::Discards => Blame {
            name: other(who, waits, seen),
            ..linked
        },
        _ => by_account(cause, who, waits, account, seen),
    }
}

/// By whom the disk served meanwhile; else by links and bytes.
fn by_account(
    cause: Cause,
    who: &str,
    waits: &[&Wait],
    account: &Account,
    seen: &Observation,
) -> Blame {
    let linked = other(who, waits, seen);
    let is_told = account.measured || linked.is_none();
    if is_told && account.share(account.behind_ns()) >= BEHIND {
        let most = account.most();
        let others_ns = most.map_or(0, |it| it.1);
        if account.process_ns > others_ns {
            return Blame {
                name: Some(who.to_owned()),
                relation: " itself, by its other threads".to_owned(),
                is_linked: account.measured,
                served_ns: account.process_ns,
                ..Blame::default()
            };
        }
        if let Some((party, ns)) = most {
            return Blame {
                name: Some(named(party, waits, seen)),
                relation: relation(party, who),
                is_linked: account.measured && party_is_told(party),
                is_kernel: party.kernel,
                served_ns: ns,
            };
        }
    }
    // Who had the device now and then is not to blame for what it did not delay.
    let is_open = !account.measured || account.share(account.unknown_ns) >= BEHIND;
    let linked = linked.filter(|_| is_open);
    let is_linked = linked.is_some();
    let is_sync = matches!(cause, Cause::SyncAll | Cause::FsyncBehindWriteback);
    let by_bytes = waits.first().and_then(|it| writer(it, seen));
    let by_bytes = by_bytes.filter(|_| is_sync).map(str::to_owned);
    Blame {
        name: linked.or(by_bytes),
        is_linked: is_linked || !is_sync,
        ..Blame::default()
    }
}

/// A worker of the kernel may have had another work by the time that it was asked.
fn party_is_told(party: &Party) -> bool {
    !party.name.starts_with("kworker/")
}

/// Name of a party; a RAID's thread has the name of the RAID.
fn named(party: &Party, waits: &[&Wait], seen: &Observation) -> String {
    let raid = party.name.strip_suffix("_resync");
    if let Some(disk) = raid
        .filter(|_| party.kernel)
        .and_then(|it| seen.machine.disk(it))
    {
        let doing = disk.syncing.as_deref().unwrap_or("resync");
        return format!("{}'s {doing}", disk.name);
    }
    let job = party.name.split(['-', '+']).nth(1);
    match (party.kernel, job) {
        (true, Some("kcopyd")) => copying(waits, seen),
        (true, None) if party.name == "kcopyd" => copying(waits, seen),
        _ => party.name.clone(),
    }
}

/// For what the kernel's copier copies.
fn copying(waits: &[&Wait], seen: &Observation) -> String {
    let disks = waits.iter().filter_map(|it| seen.disk_of(it));
    let mut stacks = disks.flat_map(|it| seen.machine.stack(it));
    let is_origin = |name: &&str| {
        let disk = seen.machine.disk(name);
        disk.is_some_and(|it| it.targets.iter().any(|it| it.starts_with("snapshot")))
    };
    match stacks.find(is_origin) {
        Some(_) => "the snapshot's copying (kcopyd)".to_owned(),
        None => "kcopyd".to_owned(),
    }
}

fn relation(party: &Party, who: &str) -> String {
    match work(&party.name) {
        Work::Own(words) if party.kernel => format!(", which {words}"),
        _ if party.kernel => ", a thread of the kernel".to_owned(),
        _ if party.name == who && party.process != 0 => {
            format!(", another process of that name ({})", party.process)
        }
        _ if party.name == who => ", another process of that name".to_owned(),
        _ => String::new(),
    }
}

/// The other end of a commit is the journal thread, not the task that caused the commit.
fn other(who: &str, waits: &[&Wait], seen: &Observation) -> Option<String> {
    let is_user = |name: &str| name != who && seen.users.iter().any(|it| it.name == name);
    let linked = waits.iter().map(|it| {
        let is_told = |name: &&str| is_user(name) || matches!(it.class, iopro::wait::Class::Frozen);
        let other = it.other.as_deref().filter(is_told);
        (other, it.lost_ns)
    });
    most(linked).map(str::to_owned)
}

/// Whether the verdict holds against what the disks did and what they count themselves.
pub(super) fn is_held(cause: Cause, account: &Account, seen: &Observation) -> bool {
    if cause == Cause::Unexplained {
        return false;
    }
    if !seen.is_measured() {
        return true;
    }
    match cause {
        Cause::FsyncBehindWriteback
        | Cause::ChangeBehindWriteback
        | Cause::DeviceBusy
        | Cause::QueueFull => {
            let served = account.behind_ns() + account.own_ns;
            account.measured && account.agrees(seen) && account.share(served) >= HELD
        }
        Cause::OwnCommits => {
            let own = account.own_ns + account.unknown_ns;
            let is_own = account.share(own) >= HELD && account.share(account.behind_ns()) < BEHIND;
            account.measured && account.agrees(seen) && is_own
        }
        _ => true,
    }
}

/// What the disk did meanwhile, in words.
pub(super) fn evidence(
    cause: Cause,
    blame: &Blame,
    account: &Account,
    seen: &Observation,
) -> Vec<String> {
    let mut said = Vec::new();
    let is_of_disk = matches!(
        cause,
        Cause::FsyncBehindWriteback
            | Cause::ChangeBehindWriteback
            | Cause::OwnCommits
            | Cause::DeviceBusy
            | Cause::QueueFull
            | Cause::Limit
            | Cause::Unexplained
            | Cause::SyncAll
    );
    let disk = account
        .disk
        .as_deref()
        .filter(|_| is_of_disk && account.measured);
    if let Some(disk) = disk {
        let part = |ns: u64| number::percent(account.share(ns));
        let title = seen.machine.titled(disk);
        let mut parts = Vec::new();
        if let Some(name) = blame.name.as_deref().filter(|_| blame.served_ns > 0) {
            parts.push(format!("served {name} for {}", part(blame.served_ns)));
        }
        let others = account.behind_ns().saturating_sub(blame.served_ns);
        let all = [
            ("served others for", others),
            ("served its own requests for", account.own_ns),
            ("served the file system for", account.unknown_ns),
            ("had nothing to do for", account.idle_ns),
        ];
        let told = all.into_iter().filter(|it| account.share(it.1) >= 0.01);
        parts.extend(told.map(|(words, ns)| format!("{words} {}", part(ns))));
        said.push(format!(
            "meanwhile {title} {} of the time",
            parts.join(", ")
        ));
    }
    let culprit = blame.name.as_deref();
    let written = culprit.map_or(0, |it| seen.written_by(it));
    if let (Some(culprit), Some(disk)) = (culprit, seen.written_disk())
        && written > 0
    {
        said.push(format!(
            "{culprit} wrote {}; {} was written most, {}",
            number::bytes(written),
            disk.disk,
            number::bytes(disk.written_bytes)
        ));
    }
    said
}
