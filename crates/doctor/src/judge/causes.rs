//! Cause of each wait, by the account of what disks did meanwhile. The class of a wait only says by
//! which way the task came to wait.

use super::blame::BEHIND;
use super::{SATURATED, most};
use crate::account::Account;
use crate::cause::Cause;
use crate::groups::{Group, Limit};
use crate::observe::{Level, Observation, Traffic, User, Wait};
use iopro::wait::Class;
use std::collections::{BTreeMap, BTreeSet};

/// Write rate from which a process can delay others.
const WRITER_BYTES_PER_S: f64 = 1e6;
/// Share of written bytes from which a process is throttled for its own writes.
const OWN_SHARE: f64 = 0.8;
/// Share of read bytes that were evicted before, from which eviction is the cause.
const EVICTED_SHARE: f64 = 0.5;
/// Share of read bytes that came from swap, from which swap is the cause.
const SWAPPED_SHARE: f64 = 0.25;
/// Mean time of a request on a slow device, with fewer than two in the queue.
const SLOW_REQUEST_NS: u64 = 50_000_000;
const LITTLE_QUEUED: u64 = 2;
/// Time in which a device that works finishes at least one of its requests.
const SILENT_NS: u64 = 1_000_000_000;
/// Share of a limit that a group uses that is held to it.
const LIMIT_USED: f64 = 0.6;
/// Share of the time that a disk has nothing to do while one waits for something else than the disk.
const IDLE: f64 = 0.5;
/// The same, from which the disk has no part in it.
const ALL_IDLE: f64 = 0.8;
/// Pieces from which on a file is said to be in many.
const MANY_PIECES: u64 = 16;
/// Largest mean of small pieces: half of what the kernel reads ahead (`read_ahead_kb`).
const SMALL_PIECE_BYTES: u64 = 64 << 10;
/// Calls that wait until data are on the device; io_uring's `IORING_OP_FSYNC` and
/// `IORING_OP_SYNC_FILE_RANGE` are the last ones.
const SYNC_CALLS: [&str; 6] = [
    "fsync",
    "fdatasync",
    "msync",
    "sync_file_range",
    "io_uring:3",
    "io_uring:8",
];
/// Calls that wait for all that is to be written to a file system.
const SYNC_ALL_CALLS: [&str; 4] = ["sync", "syncfs", "umount", "oldumount"];
/// Calls that wait for what was submitted before, or for events.
const EVENT_CALLS: [&str; 3] = ["io_uring_enter", "io_getevents", "io_pgetevents"];
/// Begins of the names of calls through io_uring.
const RING: &str = "io_uring:";

/// Whether the call waits until data are on the device.
pub(super) fn is_sync(wait: &Wait) -> bool {
    let call = wait.call.as_deref().unwrap_or_default();
    wait.syncs && !wait.reads() || SYNC_CALLS.contains(&call)
}

fn is_sync_of_all(wait: &Wait) -> bool {
    let call = wait.call.as_deref().unwrap_or_default();
    SYNC_ALL_CALLS.contains(&call)
}

/// Waits for the file systems of one server.
#[derive(Default)]
struct Clients {
    /// Places of the waits among all.
    places: Vec<usize>,
    /// Who waited, and how long.
    waited: Vec<(String, u64)>,
}

/// The observation with each wait once: who waits in a call for what a worker does meanwhile, and who
/// waits for a file system whose server waits for a disk, wait for the same.
pub(super) fn told_once(mut seen: Observation) -> Observation {
    let is_ring = |it: &&Wait| it.call.as_deref().is_some_and(|it| it.starts_with(RING));
    let by_ring: BTreeSet<u32> = seen
        .waits
        .iter()
        .filter(is_ring)
        .map(|it| it.process)
        .collect();
    let is_shadow = |it: &Wait| {
        let call = it.call.as_deref().unwrap_or_default();
        EVENT_CALLS.contains(&call) && by_ring.contains(&it.process)
    };
    seen.waits.retain(|it| !is_shadow(it));
    let mut clients: BTreeMap<String, Clients> = BTreeMap::new();
    for (place, wait) in seen.waits.iter().enumerate() {
        let mount = seen.mount_of(wait);
        let server = mount.and_then(|it| it.server.as_ref());
        let Some(server) = server.filter(|it| it.name != wait.who) else {
            continue;
        };
        let of_server = clients.entry(server.name.clone()).or_default();
        of_server.places.push(place);
        of_server.waited.push((wait.who.clone(), wait.lost_ns));
    }
    let mut gone = BTreeSet::new();
    for (server, Clients { places, waited }) in clients {
        let waited_ns: u64 = waited.iter().map(|it| it.1).sum();
        let own = seen.waits.iter().filter(|it| it.who == server);
        let own_ns: u64 = own.map(|it| it.lost_ns).sum();
        if 2 * own_ns < waited_ns {
            continue;
        }
        let client = most(waited.iter().map(|(name, ns)| (Some(name.as_str()), *ns)));
        let client = client.unwrap_or_default().to_owned();
        for wait in seen.waits.iter_mut().filter(|it| it.who == server) {
            wait.who.clone_from(&client);
            wait.through = Some(server.clone());
        }
        gone.extend(places);
    }
    let mut place = 0;
    seen.waits.retain(|_| {
        place += 1;
        !gone.contains(&(place - 1))
    });
    seen
}

/// What is known of all waits together.
pub(super) struct Causes<'a> {
    seen: &'a Observation,
    /// Accounts of all syncs of a process on a disk: what one waits for in several ways has one cause.
    syncs: BTreeMap<(&'a str, Option<&'a str>), Account>,
}

impl<'a> Causes<'a> {
    pub fn of_all(seen: &'a Observation) -> Causes<'a> {
        let mut syncs: BTreeMap<_, Vec<&Wait>> = BTreeMap::new();
        for wait in seen.waits.iter().filter(|it| is_sync(it)) {
            let key = (wait.who.as_str(), seen.disk_of(wait));
            syncs.entry(key).or_default().push(wait);
        }
        let syncs = syncs.into_iter();
        Causes {
            seen,
            syncs: syncs
                .map(|(key, waits)| (key, Account::of(&waits, seen)))
                .collect(),
        }
    }

    /// Cause of a wait.
    pub fn of(&self, wait: &Wait) -> Cause {
        let seen = self.seen;
        if wait.remote || seen.mount_of(wait).is_some_and(|it| it.remote) {
            return Cause::Remote;
        }
        if wait.class == Class::Frozen || wait.cause == Some(Class::Frozen) {
            return Cause::Frozen;
        }
        if is_for_events(wait, seen) {
            return Cause::Idle;
        }
        let account = Account::of(&[wait], seen);
        if is_held_by_limit(wait, &account, seen) {
            return Cause::Limit;
        }
        if is_unanswered(wait, seen) {
            return Cause::NoAnswer;
        }
        if is_sync_of_all(wait) {
            return Cause::SyncAll;
        }
        // A lock wait takes the cause of its holder's wait.
        let class = match wait.class {
            Class::Lock => wait.cause.unwrap_or(Class::Lock),
            class => class,
        };
        match class {
            Class::DirtyThrottle | Class::Lock if is_by_holder(wait, seen) => Cause::FileLock,
            Class::DirtyThrottle if is_throttled_for_itself(wait, seen) => Cause::OwnWrites,
            Class::DirtyThrottle => Cause::DirtyThrottling,
            Class::Reclaim => Cause::Reclaim,
            Class::Discard => Cause::Discards,
            _ if is_sync(wait) => self.of_sync(wait),
            Class::Meta
            | Class::Data
            | Class::Sync
            | Class::JournalHandle
            | Class::JournalCommit => match is_own_doing(wait, &account, seen) {
                true => Cause::OwnWrites,
                false => Cause::ChangeBehindWriteback,
            },
            Class::Tag | Class::QueueThrottle
                if !wait.reads() && is_own_doing(wait, &account, seen) =>
            {
                Cause::OwnWrites
            }
            // Its own requests, of which each piece is one, are in the queue.
            Class::Tag if is_in_pieces(wait, seen) => Cause::Fragments,
            Class::Tag | Class::QueueThrottle => Cause::QueueFull,
            Class::Service => match served(wait, &account, seen) {
                Cause::DeviceBusy if is_in_pieces(wait, seen) => Cause::Fragments,
                cause => cause,
            },
            // No system call: a fault on an anonymous page, which is locked while it is read from swap.
            Class::Lock if wait.call.is_none() && is_swapped(wait, seen) => Cause::Swap,
            // At a place that nobody knows, while the disk worked for it.
            Class::Lock | Class::Other if is_served(&account) => Cause::DeviceBusy,
            Class::Lock | Class::Other | Class::Frozen => Cause::Unexplained,
        }
    }

    /// Whether the disk worked almost only for the waiter, who then has more to read than others.
    pub fn is_for_itself(&self, cause: Cause, wait: &Wait) -> bool {
        if !matches!(cause, Cause::DeviceBusy | Cause::QueueFull) {
            return false;
        }
        let account = Account::of(&[wait], self.seen);
        let own_ns = account.own_ns + account.process_ns;
        account.share(own_ns) >= IDLE && account.share(account.others_ns()) < BEHIND
    }

    fn of_sync(&self, wait: &Wait) -> Cause {
        let seen = self.seen;
        let account = self.syncs.get(&(wait.who.as_str(), seen.disk_of(wait)));
        let is_behind = match account.filter(|it| it.measured) {
            Some(account) if account.share(account.behind_ns()) >= BEHIND => true,
            // Through a carrier nobody's requests can be told apart.
            Some(account) => {
                account.share(account.unknown_ns) >= IDLE && writer(wait, seen).is_some()
            }
            None => writer(wait, seen).is_some() || account.is_some_and(|it| is_behind(it, seen)),
        };
        match is_behind {
            true => Cause::FsyncBehindWriteback,
            false => Cause::OwnCommits,
        }
    }
}

/// Whether others than the waiter had most of a disk, as bytes tell: threads of the kernel, other
/// processes of its name and other threads of its own.
fn is_behind(account: &Account, seen: &Observation) -> bool {
    let behind_ns = account.behind_ns();
    behind_ns > account.own_ns
        && account.share(behind_ns) >= BEHIND
        && is_much(account.behind_bytes(seen), seen)
}

/// Whether the disk worked for the waiter for most of the time.
fn is_served(account: &Account) -> bool {
    account.measured && account.share(account.own_ns + account.process_ns) >= IDLE
}

/// Another process that writes much to the disks below the waiter's file, and more than the waiter.
pub(super) fn writer<'a>(wait: &Wait, seen: &'a Observation) -> Option<&'a str> {
    let disks = match seen.disk_of(wait) {
        Some(disk) => seen.machine.stack(disk).into_iter().map(Some).collect(),
        None => vec![None],
    };
    let of_disk = |disk: Option<&str>| {
        let others = seen.writers_to(disk).filter(|it| it.name != wait.who);
        let others = others.map(|it| (seen.written_to(disk, it), it.name.as_str()));
        others.max_by_key(|it| it.0)
    };
    let (written, most) = disks.into_iter().filter_map(of_disk).max()?;
    let is_most = is_much(written, seen) && written > seen.written_by(&wait.who);
    is_most.then_some(most)
}

/// Whether so many bytes, written in the observed time, can delay others.
fn is_much(written: u64, seen: &Observation) -> bool {
    written as f64 / (seen.watched_ns.max(1) as f64 / 1e9) >= WRITER_BYTES_PER_S
}

/// Whether it waits for its own work almost alone.
fn is_own_doing(wait: &Wait, account: &Account, seen: &Observation) -> bool {
    if account.measured {
        if !is_much(seen.written_by(&wait.who), seen) {
            return false;
        }
        // A program that is run again and again goes on with its own work.
        let same = account.others.iter().filter(|it| it.0.name == wait.who);
        let same_ns: u64 = same.map(|it| it.1).sum();
        let own_ns = account.own_ns + account.process_ns + same_ns;
        let others_ns = account.others_ns() - same_ns;
        return account.share(others_ns) < BEHIND && own_ns > account.unknown_ns;
    }
    let others = seen.users.iter().filter(|it| it.name != wait.who);
    if others
        .map(|it| Some(&it.name))
        .any(|it| it == wait.other.as_ref())
    {
        return false;
    }
    wrote_most(&wait.who, seen.disk_of(wait), seen)
}

/// Whether this process wrote almost all bytes, to this disk or to any.
pub(super) fn wrote_most(who: &str, disk: Option<&str>, seen: &Observation) -> bool {
    is_most(who, disk, seen.writers_to(disk), seen)
}

/// Whether this process wrote almost all bytes of these ones to this disk, or to any.
fn is_most<'a>(
    who: &str,
    disk: Option<&str>,
    of: impl Iterator<Item = &'a User>,
    seen: &Observation,
) -> bool {
    let own = seen.written_by(who);
    let all: u64 = of.map(|it| seen.written_to(disk, it)).sum();
    is_much(own, seen) && own as f64 >= OWN_SHARE * all as f64
}

/// Whether the task is throttled for its own dirty pages. The linked request shows only for whom
/// the device works at that time.
fn is_throttled_for_itself(wait: &Wait, seen: &Observation) -> bool {
    let disk = seen.disk_of(wait);
    is_most(&wait.who, disk, seen.dirtiers_of(disk), seen) && keeps_up(wait, seen) != Some(true)
}

/// Whether another process makes many pages of this disk dirty.
pub(super) fn is_dirtied_by_another(disk: &str, who: &str, seen: &Observation) -> bool {
    let disk = Some(disk);
    let mut others = seen.dirtiers_of(disk).filter(|it| it.name != who);
    others.any(|it| is_much(seen.written_to(disk, it), seen))
}

/// Whether the waiter's disk is not saturated. Then it is throttled for dirty pages of another
/// disk, since the limit is system-wide.
fn keeps_up(wait: &Wait, seen: &Observation) -> Option<bool> {
    let disk = seen.disk_of(wait)?;
    let is_another =
        |it: &&Traffic| it.disk != disk && is_dirtied_by_another(&it.disk, &wait.who, seen);
    let others = seen.disks.iter().filter(is_another);
    let another = others.map(|it| it.busy_ns).max().unwrap_or(0);
    let own = seen.traffic(Some(disk))?;
    Some(seen.share(own.busy_ns) < SATURATED && seen.share(another) >= SATURATED)
}

/// Whether a process holds the lock of a file that this one wants, and is itself throttled or busy
/// with its own work.
fn is_by_holder(wait: &Wait, seen: &Observation) -> bool {
    let other = wait.other.as_ref().filter(|it| **it != wait.who);
    let is_user = other.is_some_and(|it| seen.users.iter().any(|user| user.name == *it));
    wait.class == Class::Lock && wait.file.is_some() && is_user
}

/// Whether the file that the task reads lies in many small pieces, and the disk's requests are about
/// as large as these: small reads here and there are as small on a file of one piece.
fn is_in_pieces(wait: &Wait, seen: &Observation) -> bool {
    let file = wait.file.as_ref().filter(|_| wait.reads());
    let pieces = file.and_then(|it| seen.pieces.get(it));
    let (Some(pieces), Some(traffic)) = (pieces, seen.traffic(seen.disk_of(wait))) else {
        return false;
    };
    let piece = pieces.mean_bytes();
    let request = (traffic.read_bytes + traffic.written_bytes) / traffic.requests.max(1);
    pieces.count >= MANY_PIECES && piece <= SMALL_PIECE_BYTES && 2 * request >= piece
}

/// Whether it is for events, such as a client's words, and not for I/O.
fn is_for_events(wait: &Wait, seen: &Observation) -> bool {
    let call = wait.call.as_deref().unwrap_or_default();
    if !EVENT_CALLS.contains(&call) {
        return false;
    }
    if seen.level == Level::Linked && wait.waits > 0 {
        return wait.class == Class::Other;
    }
    let user = seen.users.iter().find(|it| it.name == wait.who);
    let moved = user.map_or(0, |it| it.read_bytes + it.written_bytes);
    moved == 0 && seen.disks.iter().all(|it| seen.share(it.busy_ns) < BEHIND)
}

/// Cause of a wait for a request of its own.
fn served(wait: &Wait, account: &Account, seen: &Observation) -> Cause {
    if is_swapped(wait, seen) {
        return Cause::Swap;
    }
    if is_evicted(wait, seen) {
        return Cause::Evicted;
    }
    if slow_disk(wait, seen).is_some() {
        return Cause::SlowDevice;
    }
    // It finished nothing for nobody: another reason than the disk.
    match account.share(account.idle_ns) >= ALL_IDLE {
        true => Cause::Unexplained,
        false => Cause::DeviceBusy,
    }
}

/// Whether it waits for a page of its memory that is read from swap, and not for a file.
fn is_swapped(wait: &Wait, seen: &Observation) -> bool {
    let call = wait.call.as_deref();
    let is_anonymous = wait.file.is_none() && call.is_none_or(|it| it.ends_with("fault"));
    if let Some(group) = seen.group_of(&wait.who) {
        return is_anonymous && group.swapped_in_bytes > 0;
    }
    let read = seen.memory.paged_in_bytes.max(1) as f64;
    is_anonymous && seen.memory.swapped_in_bytes as f64 / read >= SWAPPED_SHARE
}

/// Whether what is read had been evicted just before: of the group that it is in, if that has a limit
/// of its own, else of all others. Of a process that is over too soon the group is not known: it may be any.
fn is_evicted(wait: &Wait, seen: &Observation) -> bool {
    // Outside of calls it is a fault, or a sample does not tell.
    if wait.call.is_some() && !wait.reads() {
        return false;
    }
    let user = seen.users.iter().find(|it| it.name == wait.who);
    if let (Some(group), Some(user)) = (seen.group_of(&wait.who), user) {
        let read = user.read_bytes.max(1) as f64;
        return group.refaulted_bytes as f64 / read >= EVICTED_SHARE;
    }
    let of_groups: u64 = match user.and_then(|it| it.cgroup.as_ref()) {
        Some(_) => seen.groups.iter().map(|it| it.refaulted_bytes).sum(),
        None => 0,
    };
    let refaulted = seen.memory.refaulted_bytes.saturating_sub(of_groups);
    let read = seen.memory.paged_in_bytes.max(1) as f64;
    refaulted as f64 / read >= EVICTED_SHARE
}

/// Of the disks that a wait is for, one that takes long for each request with little queued.
pub(super) fn slow_disk<'a>(wait: &Wait, seen: &'a Observation) -> Option<&'a str> {
    lowest(wait, seen, |it| {
        let each_ns = it.request_ns / it.requests.max(1);
        let queued = it.request_ns < LITTLE_QUEUED * it.busy_ns;
        it.requests > 0 && each_ns >= SLOW_REQUEST_NS && queued
    })
}

/// Of the disks that a wait is for, the lowest that is so of itself.
fn lowest<'a>(
    wait: &Wait,
    seen: &'a Observation,
    is_so: impl Fn(&Traffic) -> bool,
) -> Option<&'a str> {
    let disks = stack(wait, seen).into_iter();
    let found = disks.filter(|it| is_of_itself(it, seen) && is_so(it));
    found.map(|it| it.disk.as_str()).next_back()
}

/// Whether the times of a disk's requests are its own doing, and not those of busy disks below it.
fn is_of_itself(traffic: &Traffic, seen: &Observation) -> bool {
    let below = seen.machine.bottom(&traffic.disk).into_iter();
    let mut below = below.filter(|it| *it != traffic.disk);
    below.all(|it| {
        let busy_ns = seen.traffic(Some(it)).map_or(0, |it| it.busy_ns);
        (busy_ns as f64) < IDLE * traffic.busy_ns as f64
    })
}

/// Of the disks that a wait is for, the lowest that had requests and finished none.
pub(super) fn silent_disk<'a>(wait: &Wait, seen: &'a Observation) -> Option<&'a str> {
    let aside = || stack(wait, seen).into_iter().find(|it| is_aside(it, seen));
    lowest(wait, seen, is_silent).or_else(|| aside().map(|it| it.disk.as_str()))
}

fn is_silent(traffic: &Traffic) -> bool {
    traffic.unanswered_ns >= SILENT_NS
}

/// Whether it puts requests aside, as a full pool does, which then do not count as begun.
fn is_aside(traffic: &Traffic, seen: &Observation) -> bool {
    let disk = seen.machine.disk(&traffic.disk);
    traffic.requests == 0 && disk.is_some_and(|it| it.trouble.is_some())
}

/// The disks that a wait is for, from the top down; the busiest one if it is not known.
fn stack<'a>(wait: &Wait, seen: &'a Observation) -> Vec<&'a Traffic> {
    let Some(disk) = seen.disk_of(wait) else {
        let is_elsewhere = seen.mount_of(wait).is_some();
        let busiest = seen.busiest_disk().filter(|_| !is_elsewhere);
        let silent = seen
            .disks
            .iter()
            .filter(|it| (is_silent(it) || is_aside(it, seen)) && !is_elsewhere);
        return busiest.into_iter().chain(silent).collect();
    };
    let mut names = seen.machine.stack(disk);
    if names.is_empty() {
        names.push(disk);
    }
    let traffic = names.into_iter().map(|it| seen.traffic(Some(it)));
    traffic.flatten().collect()
}

/// Whether a device that it is for answered nothing, for most of its time.
fn is_unanswered(wait: &Wait, seen: &Observation) -> bool {
    if is_stopped(wait, seen) {
        return true;
    }
    let is_long = wait.longest_ns >= SILENT_NS / 2 || wait.samples > 0;
    let Some(silent) = silent_disk(wait, seen).filter(|_| is_long) else {
        return false;
    };
    let unanswered = seen.traffic(Some(silent)).map_or(0, |it| it.unanswered_ns);
    let each_ns = wait.lost_ns / wait.waits.max(1);
    unanswered >= each_ns.min(wait.lost_ns) / 2 && each_ns >= SILENT_NS / 4
}

/// Whether the volume of its file finished nothing in all of the observed time, though it is waited
/// for. If its file is not known, it waits for a volume that puts requests aside where no other disk
/// had anything to do.
fn is_stopped(wait: &Wait, seen: &Observation) -> bool {
    let is_for_disk = !matches!(
        wait.class,
        Class::Lock | Class::Other | Class::Reclaim | Class::DirtyThrottle | Class::Frozen
    );
    if !is_for_disk || wait.lost_ns < SILENT_NS {
        return false;
    }
    if let Some(disk) = seen.disk_of(wait) {
        return seen.traffic(Some(disk)).is_some_and(|it| it.requests == 0);
    }
    let mut disks = seen.disks.iter();
    let is_unknown = wait.file.is_none() && seen.mount_of(wait).is_none();
    is_unknown
        && disks.clone().any(|it| is_aside(it, seen))
        && disks.all(|it| seen.share(it.busy_ns) < BEHIND)
}

/// Whether a disk's own counters or words say that it does not answer.
pub(super) fn is_known_silent(disk: Option<&str>, seen: &Observation) -> bool {
    let stack = disk.map(|it| seen.machine.stack(it)).unwrap_or_default();
    stack.into_iter().any(|it| {
        seen.traffic(Some(it)).is_some_and(is_silent)
            || seen.machine.disk(it).is_some_and(|it| it.trouble.is_some())
    })
}

/// The limit of the group that the process is in, if the group is held to it.
pub(super) fn own_limit<'a>(who: &str, seen: &'a Observation) -> Option<(&'a Group, &'a Limit)> {
    let user = seen.users.iter().find(|it| it.name == who)?;
    let path = user.cgroup.as_deref()?;
    let mut held = held(seen);
    held.find(|(group, _)| group.has(path))
}

/// Groups that used all of a limit, or whose limit holds others back.
fn held(seen: &Observation) -> impl Iterator<Item = (&Group, &Limit)> {
    let limits = seen.groups.iter().flat_map(|group| {
        let of_group = group.limits.iter();
        of_group.map(move |it| (group, it))
    });
    limits.filter(|(_, it)| it.used >= LIMIT_USED || it.file == "io.latency")
}

/// The limit that holds back whoever waits for one of these disks: of its own group, or of another one
/// that holds what it waits for.
pub(super) fn limit<'a>(wait: &Wait, seen: &'a Observation) -> Option<(&'a Group, &'a Limit)> {
    let stack = seen.disk_of(wait).map(|it| seen.machine.stack(it));
    let is_on = |it: &&(&Group, &Limit)| match &stack {
        Some(stack) => stack.contains(&it.1.disk.as_str()),
        None => true,
    };
    let own = own_limit(&wait.who, seen).filter(|it| is_on(&it));
    own.or_else(|| held(seen).find(|it| is_on(&it)))
}

fn is_held_by_limit(wait: &Wait, account: &Account, seen: &Observation) -> bool {
    if wait.class == Class::Reclaim || seen.mount_of(wait).is_some_and(|it| it.disk.is_none()) {
        return false;
    }
    let Some((_, limit)) = limit(wait, seen) else {
        return false;
    };
    let disk = seen.traffic(Some(&limit.disk));
    let is_idle = account.share(account.idle_ns) >= IDLE
        || disk.is_some_and(|it| seen.share(it.busy_ns) < IDLE);
    is_idle && account.share(account.others_ns()) < IDLE
}
