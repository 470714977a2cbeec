//! The account of waits: what the disks below their files did meanwhile. Its parts add up to the time
//! that was waited.

use crate::kernel_threads::{Work, work};
use crate::observe::{Observation, Owner, Party, Traffic, User, Wait};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the observed time by which iopro and the disk's statistics may differ.
const TOLERANCE: f64 = 0.5;

/// Names and numbers of processes that wait in one way.
type Peers<'a> = BTreeSet<(&'a str, u32)>;

/// Times for which the disk that had most to do with these waits served each party, while they lasted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Account {
    /// Kernel name of the disk; None if it is not known.
    pub disk: Option<String>,
    /// Time that was waited.
    pub waited_ns: u64,
    /// It served the waiter's own thread, or what the kernel does for it.
    pub own_ns: u64,
    /// It served other threads of the waiter's process.
    pub process_ns: u64,
    /// It served the file system, or it is not known whom.
    pub unknown_ns: u64,
    /// It served others; the longest first.
    pub others: Vec<(Party, u64)>,
    /// It had nothing to do.
    pub idle_ns: u64,
    /// Whether iopro measured it, and it was not estimated from bytes.
    pub measured: bool,
}

impl Account {
    /// Account of waits of one process.
    pub fn of(waits: &[&Wait], seen: &Observation) -> Account {
        let waited_ns: u64 = waits.iter().map(|it| it.lost_ns).sum();
        let linked_ns: u64 = waits
            .iter()
            .filter(|it| it.waits > 0)
            .map(|it| it.lost_ns)
            .sum();
        // Processes of one name that all wait in this way are each other's peers: none is the cause.
        let peers: Peers = waits
            .iter()
            .filter(|it| it.process != 0)
            .map(|it| (it.who.as_str(), it.process))
            .collect();
        let all: Vec<Account> = waits.iter().map(|it| of_one(it, &peers, seen)).collect();
        let mut by_disk: BTreeMap<&Option<String>, u64> = BTreeMap::new();
        for account in &all {
            *by_disk.entry(&account.disk).or_default() += account.waited_ns;
        }
        let most = by_disk.into_iter().max_by_key(|it| (it.0.is_some(), it.1));
        let mut sum = Account {
            disk: most.and_then(|it| it.0.clone()),
            waited_ns,
            measured: 2 * linked_ns >= waited_ns && all.iter().any(|it| it.measured),
            ..Account::default()
        };
        let is_peer = |it: &Party| peers.contains(&(it.name.as_str(), it.process));
        let mut others: BTreeMap<Party, u64> = BTreeMap::new();
        for account in &all {
            sum.own_ns += account.own_ns;
            sum.process_ns += account.process_ns;
            sum.unknown_ns += account.unknown_ns;
            sum.idle_ns += account.idle_ns;
            for (party, ns) in &account.others {
                match is_peer(party) {
                    true => sum.own_ns += ns,
                    false => *others.entry(party.clone()).or_default() += ns,
                }
            }
        }
        sum.others = longest_first(others);
        sum
    }

    /// Time for which it served others.
    pub fn others_ns(&self) -> u64 {
        self.others.iter().map(|it| it.1).sum()
    }

    /// Share of the time that was waited.
    pub fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.waited_ns.max(1) as f64
    }

    /// Time for which it served others than the waiter's thread.
    pub fn behind_ns(&self) -> u64 {
        self.others_ns() + self.process_ns
    }

    /// Bytes that it moved for others than the waiter's thread, if it moved for each in proportion to
    /// the time for which it served it.
    pub fn behind_bytes(&self, seen: &Observation) -> u64 {
        let Some(disk) = seen.traffic(self.disk.as_deref()) else {
            return 0;
        };
        let served_ns = self.waited_ns.saturating_sub(self.idle_ns).max(1);
        let moved = u128::from(disk.read_bytes + disk.written_bytes);
        (moved * u128::from(self.behind_ns()) / u128::from(served_ns)) as u64
    }

    /// The party that it served longest, all processes with one name together.
    pub fn most(&self) -> Option<(&Party, u64)> {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (party, ns) in &self.others {
            *by_name.entry(&party.name).or_default() += ns;
        }
        let (name, ns) = by_name.into_iter().max_by_key(|it| it.1)?;
        let mut named = self.others.iter().filter(|it| it.0.name == name);
        let party = named
            .clone()
            .find(|it| it.0.process != 0)
            .or(named.next())?;
        Some((&party.0, ns))
    }

    /// Whether the disk's own statistics allow what the account says: it cannot have served anybody for
    /// longer than it was busy.
    pub fn agrees(&self, seen: &Observation) -> bool {
        let Some(disk) = seen.traffic(self.disk.as_deref()) else {
            return false;
        };
        let at_once = seen.share(self.waited_ns).min(1.0);
        let served = self.waited_ns.saturating_sub(self.idle_ns);
        seen.share(disk.busy_ns) >= TOLERANCE * at_once * self.share(served)
    }
}

fn longest_first(others: BTreeMap<Party, u64>) -> Vec<(Party, u64)> {
    let mut others: Vec<_> = others.into_iter().filter(|it| it.1 > 0).collect();
    others.sort_by_key(|it| Reverse(it.1));
    others
}

fn of_one(wait: &Wait, peers: &Peers, seen: &Observation) -> Account {
    let disks = below(wait, seen);
    match wait.waits > 0 && has_requests(&disks, seen) {
        true => measured(wait, &disks, seen),
        false => estimated(wait, &disks, peers, seen),
    }
}

/// Whether iopro saw requests of one of these disks: some drivers have none, and pass bios on.
fn has_requests(disks: &[&str], seen: &Observation) -> bool {
    let numbers: Vec<_> = disks
        .iter()
        .filter_map(|it| Some(&seen.machine.disk(it)?.number))
        .collect();
    let mut parts = seen.waits.iter().flat_map(|it| &it.parts);
    let is_seen = parts.any(|it| numbers.contains(&&it.disk));
    let are_used = disks
        .iter()
        .any(|it| seen.traffic(Some(it)).is_some_and(|it| it.requests > 0));
    is_seen || seen.is_measured() && !are_used
}

/// The disks that do the work for the file of a wait; all disks if that is not known.
fn below<'a>(wait: &'a Wait, seen: &'a Observation) -> Vec<&'a str> {
    if let Some(disk) = seen.disk_of(wait) {
        return seen.machine.bottom(disk);
    }
    if seen.mount_of(wait).is_some() {
        return Vec::new();
    }
    let disks = seen.machine.disks.iter().filter(|it| it.on.is_empty());
    disks.map(|it| it.name.as_str()).collect()
}

/// By what iopro measured, of the disk that was busy longest.
fn measured(wait: &Wait, disks: &[&str], seen: &Observation) -> Account {
    let number = |name: &str| seen.machine.disk(name).map(|it| it.number.clone());
    let numbers: BTreeMap<String, &str> = disks
        .iter()
        .filter_map(|it| Some((number(it)?, *it)))
        .collect();
    let mut busy: BTreeMap<&str, u64> = BTreeMap::new();
    for part in &wait.parts {
        if let Some(disk) = numbers.get(&part.disk) {
            *busy.entry(disk).or_default() += part.ns;
        }
    }
    let busiest = busy.into_iter().max_by_key(|it| it.1);
    let (disk, busy_ns) = busiest.unwrap_or((disks.first().copied().unwrap_or_default(), 0));
    let mut account = Account {
        disk: (!disk.is_empty()).then(|| disk.to_owned()),
        waited_ns: wait.lost_ns,
        idle_ns: wait.lost_ns.saturating_sub(busy_ns),
        measured: true,
        ..Account::default()
    };
    let stack = seen.disk_of(wait).map(|it| seen.machine.stack(it));
    let stack = stack.unwrap_or_default();
    let mut others: BTreeMap<Party, u64> = BTreeMap::new();
    let of_disk = |it: &&crate::observe::Part| numbers.get(&it.disk) == Some(&disk);
    for part in wait.parts.iter().filter(of_disk) {
        match &part.owner {
            Owner::Waiter => account.own_ns += part.ns,
            Owner::Unknown => account.unknown_ns += part.ns,
            Owner::Party(party) if party.kernel => match work(&party.name) {
                Work::Own(_) => *others.entry(party.clone()).or_default() += part.ns,
                Work::Carrier if carries(&party.name, &stack) => account.own_ns += part.ns,
                Work::Carrier | Work::FileSystem => account.unknown_ns += part.ns,
            },
            Owner::Party(party) if party.process != 0 && party.process == wait.process => {
                account.process_ns += part.ns;
            }
            Owner::Party(party) => *others.entry(party.clone()).or_default() += part.ns,
        }
    }
    let unknown_ns = account.unknown_ns;
    if let Some((party, share)) = beyond_the_volume(wait, disk, seen) {
        let ns = (unknown_ns as f64 * share) as u64;
        account.unknown_ns -= ns;
        *others.entry(party).or_default() += ns;
    }
    account.others = longest_first(others);
    account
}

/// Of what a volume passes on for unknown tasks, the share that is the kernel's own: the disk below moved
/// so much more than the volume itself.
fn beyond_the_volume(wait: &Wait, disk: &str, seen: &Observation) -> Option<(Party, f64)> {
    let volume = seen.disk_of(wait).filter(|it| *it != disk)?;
    let party = volumes_own(volume, seen)?;
    let moved = |name| {
        let traffic = seen.traffic(Some(name))?;
        Some(traffic.read_bytes + traffic.written_bytes)
    };
    let (above, below) = (moved(volume)?, moved(disk)?);
    Some((
        party,
        below.saturating_sub(above) as f64 / below.max(1) as f64,
    ))
}

/// Whether a worker passes on what comes from above it to a disk in this stack, as `loop0`'s does.
fn carries(name: &str, stack: &[&str]) -> bool {
    let jobs = name.split(['-', '+']).skip(1);
    jobs.into_iter().any(|it| stack.contains(&it))
}

/// By the disk's statistics and the bytes that processes read and wrote: the disk served each in
/// proportion to these.
fn estimated(wait: &Wait, disks: &[&str], peers: &Peers, seen: &Observation) -> Account {
    let traffic = disks.iter().filter_map(|it| seen.traffic(Some(it)));
    let Some(disk) = traffic.max_by_key(|it| it.busy_ns) else {
        return Account {
            waited_ns: wait.lost_ns,
            unknown_ns: wait.lost_ns,
            ..Account::default()
        };
    };
    let busy = (seen.share(disk.busy_ns).min(1.0) * wait.lost_ns as f64) as u64;
    let mut account = Account {
        disk: Some(disk.disk.clone()),
        waited_ns: wait.lost_ns,
        idle_ns: wait.lost_ns - busy,
        ..Account::default()
    };
    let mut used = Bytes::default();
    for user in seen.writers_to(Some(&disk.disk)) {
        used.add(user, wait, peers, disk, seen);
    }
    let moved = disk.read_bytes + disk.written_bytes;
    used.rest = moved.saturating_sub(used.all());
    let part = |bytes: u64| {
        let all = used.all().max(1);
        (busy as u128 * u128::from(bytes) / u128::from(all)) as u64
    };
    let mut others = BTreeMap::new();
    for (name, bytes) in &used.others {
        let party = Party {
            name: name.clone(),
            ..Party::default()
        };
        others.insert(party, part(*bytes));
    }
    match kernels_own(wait, seen) {
        Some((party, most)) => {
            let of_kernel = part(used.rest).min((most * wait.lost_ns as f64) as u64);
            account.unknown_ns = part(used.rest) - of_kernel;
            others.insert(party, of_kernel);
        }
        None => account.unknown_ns = part(used.rest),
    }
    account.own_ns = part(used.own);
    account.process_ns = part(used.process);
    account.others = longest_first(others);
    let told = account.own_ns + account.unknown_ns + account.behind_ns();
    account.unknown_ns += busy.saturating_sub(told);
    account
}

/// Bytes that were moved to and from a disk.
#[derive(Default)]
struct Bytes {
    own: u64,
    /// Of other threads of the waiter's process.
    process: u64,
    others: BTreeMap<String, u64>,
    /// Bytes of no known process.
    rest: u64,
}

impl Bytes {
    fn add(&mut self, user: &User, wait: &Wait, peers: &Peers, disk: &Traffic, seen: &Observation) {
        let read = user.read_bytes.min(disk.read_bytes);
        let bytes = read + seen.written_to(Some(&disk.disk), user);
        if user.name != wait.who {
            self.others.insert(user.name.clone(), bytes);
            return;
        }
        // Reads are kept by name, not by process.
        let is_peer = |it: &u32| *it == wait.process || peers.contains(&(&wait.who, *it));
        let known = user.written_by.iter().filter(|it| is_peer(it.0));
        let known: Vec<u64> = known.map(|it| *it.1).collect();
        let of_peers: u64 = known.iter().sum();
        let others = match known.is_empty() {
            true => 0,
            false => user.written_bytes.saturating_sub(of_peers).min(bytes),
        };
        let process = wait
            .own_share
            .map_or(0.0, |it| of_peers as f64 * (1.0 - it));
        self.process = (process as u64).min(bytes - others);
        self.own += bytes - others - self.process;
        if others > 0 {
            self.others.insert(user.name.clone(), others);
        }
    }

    fn all(&self) -> u64 {
        self.own + self.process + self.others.values().sum::<u64>() + self.rest
    }
}

/// A thread of the kernel that uses the disks below this file of its own accord, and the largest share of
/// the time for which it may have: it waits for them meanwhile.
fn kernels_own(wait: &Wait, seen: &Observation) -> Option<(Party, f64)> {
    // Workers do what a volume's thread asks for, so nothing bounds that.
    if let Some(party) = volumes_own(seen.disk_of(wait)?, seen) {
        return Some((party, 1.0));
    }
    let (name, ns) = seen.kernel_blocked.iter().max_by_key(|it| it.1)?;
    Some((kernels(name.clone()), seen.share(*ns).min(1.0)))
}

/// The kernel's own work on the disks below a volume: a RAID's check, a snapshot's copies.
fn volumes_own(volume: &str, seen: &Observation) -> Option<Party> {
    let stack = seen.machine.stack(volume);
    let disks = || stack.iter().filter_map(|it| seen.machine.disk(it));
    if let Some(raid) = disks().find(|it| it.syncing.is_some()) {
        return Some(kernels(format!("{}_resync", raid.name)));
    }
    let is_origin = |it: &String| it.starts_with("snapshot");
    let copies = disks().any(|it| it.targets.iter().any(is_origin));
    copies.then(|| kernels("kcopyd".to_owned()))
}

fn kernels(name: String) -> Party {
    Party {
        process: 0,
        name,
        kernel: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::{MB, SECOND, seen, user, wait};
    use crate::observe::Part;
    use iopro::wait::Class;

    pub(crate) fn part(owner: Owner, ns: u64) -> Part {
        Part {
            disk: "8:0".to_owned(),
            owner,
            ns,
        }
    }

    fn parts_add_up(account: &Account) {
        let parts = account.own_ns + account.process_ns + account.unknown_ns;
        let all = parts + account.others_ns() + account.idle_ns;
        assert_eq!(all, account.waited_ns, "{account:?}");
    }

    #[test]
    fn parts_add_up_to_the_wait_however_it_was_seen() {
        let mut linked = wait("app", "fsync", Class::Sync, SECOND);
        linked.process = 7;
        let party = |process, name: &str, kernel| {
            Owner::Party(Party {
                process,
                name: name.to_owned(),
                kernel,
            })
        };
        linked.parts = vec![
            part(Owner::Waiter, SECOND / 10),
            part(party(7, "app", false), SECOND / 10),
            part(party(9, "app", false), SECOND / 5),
            part(party(70, "ext4lazyinit", true), SECOND / 5),
            part(party(71, "jbd2/sda-8", true), SECOND / 10),
        ];
        let sampled = Wait {
            waits: 0,
            samples: 9,
            parts: Vec::new(),
            ..linked.clone()
        };
        let users = vec![user("app", 50 * MB, 0), user("dd", 100 * MB, 0)];
        let at = seen(vec![linked.clone(), sampled.clone()], users);
        let account = Account::of(&[&linked], &at);
        parts_add_up(&account);
        assert_eq!(
            (account.own_ns, account.process_ns),
            (SECOND / 10, SECOND / 10)
        );
        assert_eq!(account.idle_ns, 3 * SECOND / 10);
        let others: Vec<_> = account.others.iter().map(|it| it.0.name.as_str()).collect();
        assert_eq!(
            others,
            ["app", "ext4lazyinit"],
            "another process of the name"
        );
        for waits in [&[&sampled][..], &[&linked, &sampled]] {
            parts_add_up(&Account::of(waits, &at));
        }
        let account = Account::of(&[&sampled], &at);
        assert_eq!(
            account.idle_ns,
            SECOND / 2,
            "the disk is busy half of the time"
        );
        assert_eq!(account.most().unwrap().0.name, "dd");
    }

    #[test]
    fn a_disk_cannot_have_served_for_longer_than_it_was_busy() {
        let mut linked = wait("app", "read", Class::Service, 5 * SECOND);
        linked.parts = vec![part(Owner::Waiter, 5 * SECOND)];
        let mut at = seen(vec![linked.clone()], Vec::new());
        assert!(Account::of(&[&linked], &at).agrees(&at));
        at.disks[0].busy_ns = SECOND;
        assert!(!Account::of(&[&linked], &at).agrees(&at));
    }
}
