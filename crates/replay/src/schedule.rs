//! The times at which a trace's operations are issued.
//!
//! | pace | an operation is issued | what it answers |
//! |---|---|---|
//! | closed | when one of `depth` places is free | how fast can it go |
//! | open | at its time in the trace, whatever the device still does | does the device keep up |
//! | mixed | after its thread's previous operation, as below | how long does the app take |
//!
//! Mixed is the dissertation's adjustment of idle time (§6.2.3). Some intervals between system
//! calls follow the end of the previous call, others follow a clock.
//!
//! An interval of a thread up to `think_ns` is computing time: it is kept, from the end of the
//! previous operation. A longer one means that the thread waits for a clock or a person. Its
//! operation is issued at its time in the trace, or when the previous one has ended, if that is
//! later.
//!
//! The dissertation tells the two apart by comparing traces under different loads. With one trace,
//! length is the only criterion.

use crate::trace::Trace;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rules for the issue of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A constant number of operations is in flight; each end issues the next one.
    Closed {
        /// Number of operations in flight, at least 1.
        depth: u32,
    },
    /// Operations are issued at their times in the trace.
    Open,
    /// Each thread waits for its previous operation.
    Mixed {
        /// Longest interval that counts as computing time, in nanoseconds.
        think_ns: u64,
    },
}

/// The data of a trace that a schedule needs. Operations have an index in the order of their times.
pub trait Steps {
    /// Number of operations.
    fn count(&self) -> usize;
    /// Number of threads.
    fn lanes(&self) -> u32;
    /// Time of an operation's issue, in nanoseconds.
    fn time_ns(&self, index: usize) -> u64;
    /// Time of an operation's end, or of its issue where the end is not known.
    fn end_ns(&self, index: usize) -> u64;
    /// Number of the thread that issued an operation.
    fn lane(&self, index: usize) -> u32;
}

/// Order and times of the operations to issue.
///
/// Operations are indices in the trace; times are nanoseconds since the start.
#[derive(Debug)]
pub struct Schedule<'a, S = Trace> {
    trace: &'a S,
    pace: Pace,
    /// Next operation in the trace's order; not used by `Mixed`.
    cursor: usize,
    in_flight: u32,
    /// For `Mixed`: due time and index of the operations whose thread is ready for them.
    ready: BinaryHeap<Reverse<(u64, usize)>>,
    /// For `Mixed`: index of the same thread's next operation, or `NOBODY`.
    successor: Vec<u32>,
}

const NOBODY: u32 = u32::MAX;

impl<'a, S: Steps> Schedule<'a, S> {
    /// Begins at the trace's first operation.
    pub fn new(trace: &'a S, pace: Pace) -> Self {
        let mut schedule = Schedule {
            trace,
            pace,
            cursor: 0,
            in_flight: 0,
            ready: BinaryHeap::new(),
            successor: Vec::new(),
        };
        if matches!(pace, Pace::Mixed { .. }) {
            schedule.link_threads();
        }
        schedule
    }

    fn link_threads(&mut self) {
        let mut last = vec![NOBODY; self.trace.lanes() as usize];
        self.successor = vec![NOBODY; self.trace.count()];
        for index in 0..self.trace.count() {
            let last = &mut last[self.trace.lane(index) as usize];
            match *last {
                NOBODY => self.ready.push(Reverse((self.trace.time_ns(index), index))),
                before => self.successor[before as usize] = index as u32,
            }
            *last = index as u32;
        }
    }

    /// The next operation and the time at which it is due. `None` if all were issued, or if another
    /// operation has to end first.
    pub fn peek(&self) -> Option<(u64, usize)> {
        let next = (self.cursor < self.trace.count()).then_some(self.cursor);
        match self.pace {
            Pace::Closed { depth } if self.in_flight >= depth => None,
            Pace::Closed { .. } => next.map(|it| (0, it)),
            Pace::Open => next.map(|it| (self.trace.time_ns(it), it)),
            Pace::Mixed { .. } => self.ready.peek().map(|Reverse(next)| *next),
        }
    }

    /// Notes that the operation from [`Schedule::peek`] was issued.
    pub fn issue(&mut self) {
        self.in_flight += 1;
        match self.pace {
            Pace::Mixed { .. } => drop(self.ready.pop()),
            Pace::Closed { .. } | Pace::Open => self.cursor += 1,
        }
    }

    /// Notes that an issued operation has ended.
    pub fn complete(&mut self, index: usize, now_ns: u64) {
        self.in_flight -= 1;
        let Pace::Mixed { think_ns } = self.pace else {
            return;
        };
        let next = self.successor[index];
        if next == NOBODY {
            return;
        }
        let time_ns = self.trace.time_ns(next as usize);
        let interval_ns = time_ns.saturating_sub(self.trace.end_ns(index));
        let due_ns = match interval_ns <= think_ns {
            true => now_ns.saturating_add(interval_ns),
            false => time_ns.max(now_ns),
        };
        self.ready.push(Reverse((due_ns, next as usize)));
    }

    /// Whether all operations were issued and have ended.
    pub fn is_over(&self) -> bool {
        let left = match self.pace {
            Pace::Mixed { .. } => !self.ready.is_empty(),
            Pace::Closed { .. } | Pace::Open => self.cursor < self.trace.count(),
        };
        !left && self.in_flight == 0
    }

    /// Number of operations that were issued and have not ended.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Kind, Operation};
    use proptest::prelude::*;

    /// Index, time of issue and time of end of each operation.
    type Played = Vec<(usize, u64, u64)>;

    /// Plays a trace on a device that serves one operation at a time, each in `service_ns`.
    fn play(trace: &Trace, pace: Pace, service_ns: u64) -> Played {
        let mut schedule = Schedule::new(trace, pace);
        let mut under_way = std::collections::VecDeque::new();
        let (mut now_ns, mut free_ns) = (0, 0);
        let mut played = Vec::new();
        while !schedule.is_over() {
            let end_ns = under_way.front().map(|(_, _, end_ns)| *end_ns);
            match schedule.peek() {
                Some((due_ns, index))
                    if end_ns.is_none_or(|end_ns| due_ns.max(now_ns) < end_ns) =>
                {
                    now_ns = due_ns.max(now_ns);
                    schedule.issue();
                    free_ns = now_ns.max(free_ns) + service_ns;
                    under_way.push_back((index, now_ns, free_ns));
                }
                _ => {
                    let (index, issued_ns, end_ns) = under_way.pop_front().unwrap();
                    now_ns = end_ns;
                    schedule.complete(index, now_ns);
                    played.push((index, issued_ns, end_ns));
                }
            }
        }
        played
    }

    fn traces() -> impl Strategy<Value = Trace> {
        prop::collection::vec((0u64..10_000, 0u32..4), 1..60).prop_map(|operations| {
            let operation = |(time_ns, lane)| Operation {
                time_ns,
                kind: Kind::Read,
                offset_bytes: 0,
                size_bytes: 4096,
                lane,
            };
            Trace::new(operations.into_iter().map(operation).collect())
        })
    }

    fn each_once(trace: &Trace, played: &Played) -> bool {
        let mut indices: Vec<_> = played.iter().map(|(index, ..)| *index).collect();
        indices.sort_unstable();
        indices == (0..trace.operations().len()).collect::<Vec<_>>()
    }

    proptest! {
        #[test]
        fn open_issues_at_the_traces_times(trace in traces(), service_ns in 1u64..2_000) {
            let played = play(&trace, Pace::Open, service_ns);
            prop_assert!(each_once(&trace, &played));
            for (index, issued_ns, _) in played {
                prop_assert_eq!(issued_ns, trace.operations()[index].time_ns);
            }
        }

        #[test]
        fn closed_keeps_all_places_busy(
            trace in traces(), service_ns in 1u64..2_000, depth in 1u32..8
        ) {
            let played = play(&trace, Pace::Closed { depth }, service_ns);
            prop_assert!(each_once(&trace, &played));
            // A device that serves one operation at a time has no gap between them.
            let end_ns = played.iter().map(|(_, _, end_ns)| *end_ns).max().unwrap();
            prop_assert_eq!(end_ns, service_ns * played.len() as u64);
            for (place, (_, issued_ns, end_ns)) in played.iter().enumerate() {
                let before = played[..place].iter();
                let beside = before.filter(|(_, _, other_ns)| other_ns > issued_ns).count();
                prop_assert!(beside < depth as usize, "{} beside, until {}", beside, end_ns);
            }
        }

        #[test]
        fn mixed_keeps_what_a_thread_computes_and_never_overtakes_it(
            trace in traces(), service_ns in 1u64..2_000, think_ns in 0u64..3_000
        ) {
            let played = play(&trace, Pace::Mixed { think_ns }, service_ns);
            prop_assert!(each_once(&trace, &played));
            let mut last: Vec<Option<(usize, u64)>> = vec![None; 4];
            let mut in_order = played;
            in_order.sort_unstable();
            for (index, issued_ns, end_ns) in in_order {
                let operation = trace.operations()[index];
                let last = &mut last[operation.lane as usize];
                let due_ns = match *last {
                    None => operation.time_ns,
                    Some((before, before_end_ns)) => {
                        let interval_ns =
                            operation.time_ns - trace.operations()[before].time_ns;
                        match interval_ns <= think_ns {
                            true => before_end_ns + interval_ns,
                            false => operation.time_ns.max(before_end_ns),
                        }
                    }
                };
                prop_assert_eq!(issued_ns, due_ns);
                *last = Some((index, end_ns));
            }
        }
    }
}
