//! Block traces in memory.

use crate::account::Account;
use crate::schedule::Steps;
use std::collections::HashMap;

/// Operations of a block trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A read of data.
    Read,
    /// A write of data.
    Write,
    /// A discard (trim).
    Discard,
    /// A flush of the device's cache; it has no offset and no size.
    Flush,
}

/// One request of the traced device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Time of its issue, in nanoseconds since the trace's first operation.
    pub time_ns: u64,
    /// Whether it reads, writes, discards or flushes.
    pub kind: Kind,
    /// Offset on the device of its first byte.
    pub offset_bytes: u64,
    /// Number of bytes; at least 1 unless it is a flush.
    pub size_bytes: u64,
    /// Number of the thread that issued it, from 0.
    pub lane: u32,
}

impl Operation {
    /// Its first page and the one after the last; `None` for a flush.
    pub fn pages(&self) -> Option<(u64, u64)> {
        const PAGE: u64 = crate::flash::PAGE_BYTES;
        let end = self.offset_bytes + self.size_bytes;
        (self.kind != Kind::Flush).then(|| (self.offset_bytes / PAGE, end.div_ceil(PAGE)))
    }
}

impl Steps for Trace {
    fn count(&self) -> usize {
        self.operations.len()
    }

    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn time_ns(&self, index: usize) -> u64 {
        self.operations[index].time_ns
    }

    /// A block trace has no end times, so this is the time of the issue.
    fn end_ns(&self, index: usize) -> u64 {
        self.operations[index].time_ns
    }

    fn lane(&self, index: usize) -> u32 {
        self.operations[index].lane
    }
}

/// A block trace: operations in the order of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    operations: Vec<Operation>,
    lanes: u32,
    /// Name of each thread; empty if the format has none.
    names: Vec<String>,
    account: Account,
}

impl Trace {
    /// Sorts the operations by time and shifts them, so that the first one happens at 0.
    pub fn new(mut operations: Vec<Operation>) -> Self {
        if !operations.is_sorted_by_key(|it| it.time_ns) {
            operations.sort_by_key(|it| it.time_ns);
        }
        let first_ns = operations.first().map_or(0, |it| it.time_ns);
        for operation in &mut operations {
            operation.time_ns -= first_ns;
        }
        let lanes = operations.iter().map(|it| it.lane + 1).max().unwrap_or(0);
        Trace {
            operations,
            lanes,
            names: Vec::new(),
            account: Account::default(),
        }
    }

    /// Sets the account of what was read to make the trace.
    #[must_use]
    pub fn with_account(self, account: Account) -> Self {
        Trace { account, ..self }
    }

    /// The account of what was read to make the trace.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Sets the names of the threads, in the order of their numbers.
    #[must_use]
    pub fn with_names(self, names: Vec<String>) -> Self {
        Trace { names, ..self }
    }

    /// Name of a thread; empty if the trace has none.
    pub fn name(&self, lane: u32) -> &str {
        self.names.get(lane as usize).map_or("", String::as_str)
    }

    /// Each name with the number of its operations, the most first. Threads with the same name are
    /// counted together.
    pub fn operations_by_name(&self) -> Vec<(&str, usize)> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for operation in &self.operations {
            *counts.entry(self.name(operation.lane)).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        counts
    }

    /// Splits the trace into the operations of threads whose name `is_front` holds for, and those
    /// of the others. Times stay the same.
    pub fn split(&self, is_front: impl Fn(&str) -> bool) -> (Trace, Trace) {
        let front: Vec<bool> = (0..self.lanes)
            .map(|lane| is_front(self.name(lane)))
            .collect();
        let part = |wanted: bool| Trace {
            operations: self
                .operations
                .iter()
                .filter(|it| front[it.lane as usize] == wanted)
                .copied()
                .collect(),
            ..self.clone()
        };
        (part(true), part(false))
    }

    /// The operations in a part of the trace's time, with times from the begin of that part.
    #[must_use]
    pub fn window(mut self, from_ns: u64, length_ns: u64) -> Self {
        let end_ns = from_ns.saturating_add(length_ns);
        let before = self.operations.len();
        self.operations
            .retain(|it| (from_ns..end_ns).contains(&it.time_ns));
        let outside = before - self.operations.len();
        self.account
            .unplay("outside of the chosen time", outside as u64);
        for operation in &mut self.operations {
            operation.time_ns -= from_ns;
        }
        self
    }

    /// The operations in the order of their times.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Number of threads.
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Appends another trace, whose first operation happens at the time of this one's last.
    pub fn append(&mut self, next: Trace) {
        if self.operations.is_empty() && self.lanes == 0 {
            // A long trace is not copied.
            let account = std::mem::take(&mut self.account);
            *self = next;
            self.account.merge(account);
            return;
        }
        let (begin_ns, lanes) = (self.duration_ns(), self.lanes);
        self.operations
            .extend(next.operations.into_iter().map(|it| Operation {
                time_ns: it.time_ns.saturating_add(begin_ns),
                lane: it.lane + lanes,
                ..it
            }));
        self.names.resize(lanes as usize, String::new());
        self.names.extend(next.names);
        self.lanes += next.lanes;
        self.account.merge(next.account);
    }

    /// Divides all times by `speed`.
    #[must_use]
    pub fn at_speed(mut self, speed: f64) -> Self {
        for operation in &mut self.operations {
            operation.time_ns = (operation.time_ns as f64 / speed) as u64;
        }
        self
    }

    /// Time from the trace's begin to the issue of its last operation, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.operations.last().map_or(0, |it| it.time_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 3] = ["app", "kworker", "app"];

    fn traces() -> impl Strategy<Value = Trace> {
        prop::collection::vec((0u64..10_000, 0u32..3), 1..60).prop_map(|operations| {
            let operation = |(time_ns, lane)| Operation {
                time_ns,
                kind: Kind::Read,
                offset_bytes: u64::from(lane) * 4096,
                size_bytes: 4096,
                lane,
            };
            let trace = Trace::new(operations.into_iter().map(operation).collect());
            trace.with_names(NAMES.map(str::to_owned).to_vec())
        })
    }

    proptest! {
        #[test]
        fn both_parts_are_the_whole_each_at_its_time(trace in traces()) {
            let (foreground, background) = trace.split(|name| name == "app");
            prop_assert!(foreground.operations().iter().all(|it| it.lane != 1));
            prop_assert!(background.operations().iter().all(|it| it.lane == 1));
            let mut both = [foreground.operations(), background.operations()].concat();
            both.sort_by_key(|it| (it.time_ns, it.lane));
            let mut whole = trace.operations().to_vec();
            whole.sort_by_key(|it| (it.time_ns, it.lane));
            prop_assert_eq!(both, whole);
        }

        #[test]
        fn a_window_begins_at_0_and_has_all_of_its_time(
            trace in traces(), from_ns in 0u64..10_000, length_ns in 0u64..10_000
        ) {
            let inside = |it: &&Operation| {
                it.time_ns >= from_ns && it.time_ns - from_ns < length_ns
            };
            let count = trace.operations().iter().filter(inside).count();
            let window = trace.window(from_ns, length_ns);
            prop_assert_eq!(window.operations().len(), count);
            prop_assert!(window.operations().iter().all(|it| it.time_ns < length_ns));
        }
    }

    #[test]
    fn threads_of_one_name_are_counted_together() {
        let operation = |lane| Operation {
            time_ns: 0,
            kind: Kind::Flush,
            offset_bytes: 0,
            size_bytes: 0,
            lane,
        };
        let trace = Trace::new([0, 2, 1, 2].map(operation).to_vec());
        assert_eq!(trace.operations_by_name(), [("", 4)]);
        let mut trace = trace.with_names(NAMES.map(str::to_owned).to_vec());
        assert_eq!(trace.operations_by_name(), [("app", 3), ("kworker", 1)]);
        trace.append(trace.clone());
        assert_eq!(trace.operations_by_name(), [("app", 6), ("kworker", 2)]);
    }
}
