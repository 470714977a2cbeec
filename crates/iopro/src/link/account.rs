//! Accounts of waits: whom each disk worked for while a task waited, and for how long it had nothing
//! to do.

use super::recent::Recent;
use crate::event::Dev;
use std::collections::BTreeMap;

/// Most waits of an interval that get an account; what is not counted stays without one.
const MOST: usize = 1 << 16;

/// A wait of which the account is still to be made: requests that overlap it may not be done yet.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// `wait_id` in the tables.
    pub wait: u64,
    /// Begin of the wait.
    pub begin_ns: u64,
    /// End of the wait.
    pub woken_ns: u64,
}

/// Time that a disk had a request from one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Device number of the disk.
    pub dev: Dev,
    /// `task_id` of the task whose data the request had; None if it is not known.
    pub owner: Option<u64>,
    /// Whether the request was a discard.
    pub discards: bool,
    /// When the driver got it.
    pub issued_ns: u64,
    /// When it was done; for one in flight the time until which this is known.
    pub completed_ns: u64,
}

/// Part of a wait in which a disk worked for one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Device number of the disk.
    pub dev: Dev,
    /// `task_id` of the task that it worked for; None if it is not known.
    pub owner: Option<u64>,
    /// Whether it discarded blocks.
    pub discards: bool,
    /// Duration. The shares of a wait on one disk add up to the time that it had any request.
    pub ns: u64,
}

/// Account of a wait: its shares, by disk and owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// `wait_id` in the tables.
    pub wait: u64,
    /// What disks worked for meanwhile. The rest of the wait a disk had nothing to do.
    pub shares: Vec<Share>,
}

/// The waits of an interval that get an account.
#[derive(Debug, Default)]
pub struct Accounts {
    pending: Vec<Pending>,
}

impl Accounts {
    /// Adds a wait that is over.
    pub fn push(&mut self, wait: Pending) {
        if self.pending.len() < MOST {
            self.pending.push(wait);
        }
    }

    /// The accounts of all waits since this was called last.
    pub fn take(&mut self, recent: &Recent, in_flight: &[Span]) -> Vec<Account> {
        let pending = std::mem::take(&mut self.pending);
        let account = |wait: Pending| {
            let during = (wait.begin_ns, wait.woken_ns);
            let done = recent.overlapping(wait.begin_ns, wait.woken_ns);
            let open = in_flight.iter().copied();
            Account {
                wait: wait.wait,
                shares: shares(done.chain(open), during),
            }
        };
        pending.into_iter().map(account).collect()
    }
}

/// Divides the time from begin to end by what disks had requests of. Where requests of several tasks
/// overlap, each gets a part of that time in proportion to how long it had any there.
fn shares(spans: impl Iterator<Item = Span>, (begin_ns, end_ns): (u64, u64)) -> Vec<Share> {
    let mut by_disk: BTreeMap<Dev, Vec<Span>> = BTreeMap::new();
    for mut span in spans {
        span.issued_ns = span.issued_ns.max(begin_ns);
        span.completed_ns = span.completed_ns.min(end_ns);
        if span.issued_ns < span.completed_ns {
            by_disk.entry(span.dev).or_default().push(span);
        }
    }
    let mut found = Vec::new();
    for (dev, spans) in by_disk {
        let mut by_owner: BTreeMap<(Option<u64>, bool), Vec<Span>> = BTreeMap::new();
        for span in &spans {
            by_owner
                .entry((span.owner, span.discards))
                .or_default()
                .push(*span);
        }
        let busy_ns = covered_ns(spans);
        let by_owner: Vec<_> = by_owner
            .into_iter()
            .map(|(owner, spans)| (owner, covered_ns(spans)))
            .collect();
        let all: u64 = by_owner.iter().map(|it| it.1).sum();
        found.extend(by_owner.into_iter().map(|((owner, discards), ns)| Share {
            dev,
            owner,
            discards,
            ns: (u128::from(ns) * u128::from(busy_ns) / u128::from(all.max(1))) as u64,
        }));
    }
    found
}

/// Time that any of these spans covers.
fn covered_ns(mut spans: Vec<Span>) -> u64 {
    spans.sort_unstable_by_key(|it| it.issued_ns);
    let (mut covered, mut until_ns) = (0, 0);
    for span in spans {
        let from_ns = span.issued_ns.max(until_ns);
        covered += span.completed_ns.saturating_sub(from_ns);
        until_ns = until_ns.max(span.completed_ns);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(disk: u32, owner: u64, issued_ns: u64, completed_ns: u64) -> Span {
        Span {
            dev: Dev(disk),
            owner: Some(owner),
            discards: false,
            issued_ns,
            completed_ns,
        }
    }

    #[test]
    fn shares_of_a_disk_add_up_to_the_time_that_it_was_busy() {
        // Busy from 10 to 70 and from 80 to 90; the wait is from 20 to 100.
        let spans = [
            span(1, 7, 10, 50),
            span(1, 8, 30, 70),
            span(1, 7, 80, 90),
            span(2, 7, 0, 200),
        ];
        let shares = shares(spans.into_iter(), (20, 100));
        let of = |disk, owner| {
            let mut found = shares.iter();
            found.find(|it| it.dev == Dev(disk) && it.owner == Some(owner))
        };
        let (seven, eight) = (of(1, 7).unwrap().ns, of(1, 8).unwrap().ns);
        assert_eq!((seven, eight), (30, 30));
        assert_eq!(of(2, 7).unwrap().ns, 80, "all of the wait");
        assert_eq!(of(2, 8), None);
    }

    #[test]
    fn discards_of_a_task_are_told_apart_from_what_else_it_has() {
        let mut discard = span(1, 7, 0, 30);
        discard.discards = true;
        let shares = shares([discard, span(1, 7, 30, 40)].into_iter(), (0, 100));
        let told: Vec<_> = shares.iter().map(|it| (it.discards, it.ns)).collect();
        assert_eq!(told, [(false, 10), (true, 30)]);
    }

    #[test]
    fn a_task_with_many_requests_at_once_counts_once() {
        let many = (0..9).map(|_| span(1, 7, 0, 100));
        let shares = shares(many.chain([span(1, 8, 0, 100)]), (0, 100));
        assert_eq!(shares.iter().map(|it| it.ns).collect::<Vec<_>>(), [50, 50]);
    }
}
