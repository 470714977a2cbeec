//! Live view: who waits now, for what, behind whom and on which disk, as the doctor judges it.

mod page;

use crate::account::Account;
use crate::judge::{self, Verdict};
use crate::machine::Machine;
use crate::observe::{Level, Observation, Pressure, Traffic, Wait};
use crate::recorded;
use iopro::report::{self, UnderWay};
use iopro::wait::Class;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use page::{lines, opened};

/// Time that the history of a row covers.
const MINUTE: Duration = Duration::from_secs(60);
/// Most intervals of a history.
const MOST_INTERVALS: u64 = 60;

/// Waits of one class in a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// Class of the waits, as iopro names it.
    pub class: Class,
    /// Sum of the waits in nanoseconds.
    pub lost_ns: u64,
}

/// Work of the disk while an app waited; the parts add up to the waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Served {
    /// Time in nanoseconds for which it served the waiter's own thread.
    pub own_ns: u64,
    /// It served other threads of the waiter's process.
    pub process_ns: u64,
    /// It served others, by name; the longest first.
    pub others: Vec<Other>,
    /// It served the file system, or it is not known whom.
    pub unknown_ns: u64,
    /// It had nothing to do.
    pub idle_ns: u64,
}

/// Somebody else whom a disk served meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Other {
    /// Name of the process or the kernel's thread.
    pub name: String,
    /// Time in nanoseconds.
    pub ns: u64,
}

/// An app that waited, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Verdict that names who waited, for what, and because of whom.
    pub verdict: Verdict,
    /// The waits by class, the longest first.
    pub ways: Vec<Way>,
    /// Work of the disk meanwhile.
    pub served: Served,
}

/// Waits, disks and pressure of one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame {
    /// End of the interval, in nanoseconds since the begin.
    pub at_ns: u64,
    /// Length of the interval in nanoseconds.
    pub watched_ns: u64,
    /// Level of observation.
    pub level: Level,
    /// Time in which some task lacked a resource; None for a recording, which does not have it.
    pub pressure: Option<Pressure>,
    /// Apps that waited, most lost time first. A wait counts in the interval in which it ends.
    pub rows: Vec<Row>,
    /// Calls that have not returned yet, the oldest first.
    pub under_way: Vec<UnderWay>,
    /// Disks that were used.
    pub disks: Vec<Traffic>,
    /// Number of lost events.
    pub lost_events: u64,
}

impl Frame {
    /// The frame of an observed interval that ended at this time.
    pub fn of(seen: &Observation, at_ns: u64, under_way: Vec<UnderWay>) -> Frame {
        let used = |it: &&Traffic| it.busy_ns > 0 || it.read_bytes + it.written_bytes > 0;
        Frame {
            at_ns,
            watched_ns: seen.watched_ns,
            level: seen.level,
            pressure: Some(seen.pressure),
            rows: judge::by_app(seen, row),
            under_way: under_way.into_iter().map(on_a_page).collect(),
            disks: seen.disks.iter().filter(used).cloned().collect(),
            lost_events: seen.lost_events,
        }
    }

    /// The same of a recording, which has no pressure.
    pub fn of_recording(machine: &Machine, interval: &report::Waits, events: u64) -> Frame {
        let seen = recorded::observation(machine, interval, events);
        Frame {
            pressure: None,
            ..Frame::of(&seen, interval.at_ns, interval.under_way.clone())
        }
    }
}

fn on_a_page(call: UnderWay) -> UnderWay {
    UnderWay {
        process: sys::plain::name(&call.process),
        call: sys::plain::name(&call.call),
        file: call.file.as_deref().map(sys::plain::name),
        ..call
    }
}

fn row(verdict: Verdict, waits: &[&Wait], account: &Account) -> Row {
    let mut ways: BTreeMap<Class, u64> = BTreeMap::new();
    for wait in waits {
        *ways.entry(wait.class).or_default() += wait.lost_ns;
    }
    let ways = ways.into_iter();
    let mut ways: Vec<Way> = ways
        .map(|(class, lost_ns)| Way { class, lost_ns })
        .collect();
    ways.sort_by_key(|it| Reverse(it.lost_ns));
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for (party, ns) in &account.others {
        *by_name.entry(&party.name).or_default() += ns;
    }
    let named = by_name.into_iter().map(|(name, ns)| Other {
        name: name.to_owned(),
        ns,
    });
    let mut others: Vec<Other> = named.collect();
    others.sort_by_key(|it| Reverse(it.ns));
    Row {
        verdict,
        ways,
        served: Served {
            own_ns: account.own_ns,
            process_ns: account.process_ns,
            others,
            unknown_ns: account.unknown_ns,
            idle_ns: account.idle_ns,
        },
    }
}

/// Order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By the time lost in the last minute.
    #[default]
    Minute,
    /// By the time lost in the last interval.
    Now,
    /// By the longest wait.
    Longest,
    /// By the name of who waits.
    Name,
}

impl Sort {
    /// The order after this one.
    pub fn next(self) -> Sort {
        match self {
            Sort::Minute => Sort::Now,
            Sort::Now => Sort::Longest,
            Sort::Longest => Sort::Name,
            Sort::Name => Sort::Minute,
        }
    }

    /// Name of the order.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Minute => "last minute",
            Sort::Now => "now",
            Sort::Longest => "longest wait",
            Sort::Name => "name",
        }
    }
}

/// A row with its history.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The row when it was last seen.
    pub row: Row,
    /// Nanoseconds lost in each interval of the last minute, the oldest first.
    pub lost_ns: VecDeque<u64>,
}

impl Shown {
    /// Time lost in the last interval, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.lost_ns.back().copied().unwrap_or(0)
    }

    fn minute_ns(&self) -> u64 {
        self.lost_ns.iter().sum()
    }

    fn is_of(&self, only: &str) -> bool {
        let verdict = &self.row.verdict;
        verdict.who == only || verdict.disk.as_deref() == Some(only)
    }

    /// Adds what was lost in an interval of this length. A wait that began in an earlier interval was lost
    /// in that one as well.
    fn add(&mut self, lost_ns: u64, longest_ns: u64, interval_ns: u64) {
        let since = longest_ns.div_ceil(interval_ns.max(1)).max(1);
        let since = since.min(self.lost_ns.len() as u64);
        let first = self.lost_ns.len() - since as usize;
        for (place, lost) in self.lost_ns.iter_mut().skip(first).enumerate() {
            // The last one gets what does not divide.
            let is_last = place as u64 + 1 == since;
            *lost += lost_ns / since + if is_last { lost_ns % since } else { 0 };
        }
    }
}

/// Rows of the last minute, by who waited and for what.
#[derive(Clone, Debug, Default)]
pub struct Minute {
    shown: BTreeMap<(String, &'static str), Shown>,
}

impl Minute {
    /// Adds what an interval has. Rows that lost nothing for a minute are left out from then on.
    pub fn add(&mut self, frame: &Frame) {
        let intervals = MINUTE.as_nanos() as u64 / frame.watched_ns.max(1);
        let intervals = intervals.clamp(1, MOST_INTERVALS) as usize;
        for shown in self.shown.values_mut() {
            shown.lost_ns.push_back(0);
            while shown.lost_ns.len() > intervals {
                shown.lost_ns.pop_front();
            }
        }
        for row in &frame.rows {
            let key = (row.verdict.who.clone(), row.verdict.name);
            let shown = self.shown.entry(key).or_insert_with(|| Shown {
                row: row.clone(),
                lost_ns: vec![0; intervals].into(),
            });
            shown.row = row.clone();
            shown.add(
                row.verdict.lost_ns,
                row.verdict.longest_ns,
                frame.watched_ns,
            );
        }
        self.shown.retain(|_, it| it.minute_ns() > 0);
    }

    /// The rows in this order; with `only`, those of one app or disk.
    pub fn rows(&self, sort: Sort, only: Option<&str>) -> Vec<&Shown> {
        let shown = self.shown.values();
        let mut rows: Vec<_> = shown
            .filter(|it| only.is_none_or(|only| it.is_of(only)))
            .collect();
        // They are by name before, so ties are in that order.
        match sort {
            Sort::Minute => rows.sort_by_key(|it| Reverse(it.minute_ns())),
            Sort::Now => rows.sort_by_key(|it| Reverse((it.now_ns(), it.minute_ns()))),
            Sort::Longest => rows.sort_by_key(|it| Reverse(it.row.verdict.longest_ns)),
            Sort::Name => {}
        }
        rows
    }
}

#[cfg(test)]
mod tests;
