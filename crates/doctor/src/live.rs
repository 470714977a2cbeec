//! Level 1: sums up the waits that iopro finds, interval by interval.

use crate::observe::Wait;
use iopro::capture::EVENTS_PER_MISSED;
use iopro::event::LostKind;
use iopro::report;
use iopro::wait::Class;
use std::collections::BTreeMap;

/// Process name for waits beyond the longest that a frame names.
pub const OTHERS: &str = "others";

/// Process, call, class, cause, file, other task.
type Key = (
    String,
    Option<String>,
    Class,
    Option<Class>,
    Option<String>,
    Option<String>,
);

/// Most distinct process names; later ones are merged.
pub(crate) const MOST_NAMES: usize = 4096;

/// Sums of the waits in a running recording.
#[derive(Debug, Default)]
pub struct Waits {
    found: BTreeMap<Key, Sum>,
    /// Whether files, calls and the other task are left out.
    is_coarse: bool,
    lost_events: u64,
    /// Runs of programs that a preemptible kernel left out.
    missed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    waits: u64,
    lost_ns: u64,
    longest_ns: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.waits += other.waits;
        self.lost_ns += other.lost_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

impl Waits {
    /// Sums by process and class only, in bounded memory.
    pub fn coarse() -> Waits {
        Waits {
            is_coarse: true,
            ..Waits::default()
        }
    }

    /// Adds the waits of an interval.
    pub fn add(&mut self, interval: &report::Waits) {
        let waiting = &interval.foreground;
        let mut named: BTreeMap<Class, Sum> = BTreeMap::new();
        for top in &waiting.top {
            let sum = Sum {
                waits: top.waits,
                lost_ns: top.total_ns,
                longest_ns: top.longest_ns,
            };
            let class = top.class;
            named.entry(class).or_default().add(sum);
            let key = match self.is_coarse {
                true => (top.process.clone(), None, class, None, None, None),
                false => (
                    top.process.clone(),
                    top.call.clone(),
                    class,
                    top.cause,
                    top.file.clone(),
                    top.other.clone(),
                ),
            };
            let is_new = self.found.len() >= MOST_NAMES && !self.found.contains_key(&key);
            let key = match self.is_coarse && is_new {
                true => (OTHERS.to_owned(), None, class, None, None, None),
                false => key,
            };
            self.found.entry(key).or_default().add(sum);
        }
        for class in &waiting.classes {
            let told = named.get(&class.class).copied().unwrap_or_default();
            let rest = Sum {
                waits: class.waits.saturating_sub(told.waits),
                lost_ns: class.total_ns.saturating_sub(told.lost_ns),
                longest_ns: 0,
            };
            if rest.lost_ns > 0 {
                let key = (OTHERS.to_owned(), None, class.class, None, None, None);
                self.found.entry(key).or_default().add(rest);
            }
        }
        for lost in &interval.lost {
            match lost.kind == LostKind::Missed.name() {
                true => self.missed += lost.count,
                false => self.lost_events += lost.count,
            }
        }
    }

    /// All waits, and the number of lost events, of so many. Those that any preemptible kernel leaves
    /// out are not counted.
    pub fn end(self, events: u64) -> (Vec<Wait>, u64) {
        let is_more = self.missed * EVENTS_PER_MISSED > events;
        let missed = if is_more { self.missed } else { 0 };
        let waits = self.found.into_iter().map(|(key, sum)| {
            let (who, call, class, cause, file, other) = key;
            Wait {
                who,
                call,
                class,
                cause,
                file,
                other,
                remote: false,
                waits: sum.waits,
                samples: 0,
                lost_ns: sum.lost_ns,
                longest_ns: sum.longest_ns,
            }
        });
        (waits.collect(), self.lost_events + missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iopro::report::{Count, Waiting};

    #[test]
    fn what_a_preemptible_kernel_leaves_out_is_no_loss() {
        let lost = |kind: LostKind, count| Count {
            kind: kind.name().to_owned(),
            count,
        };
        let told = |lost| {
            let mut waits = Waits::default();
            waits.add(&report::Waits {
                foreground: Waiting {
                    total_ns: 0,
                    classes: Vec::new(),
                    top: Vec::new(),
                    longest: None,
                },
                lost,
            });
            waits.end(10_000).1
        };
        assert_eq!(told(vec![lost(LostKind::Missed, 10)]), 0);
        assert_eq!(told(vec![lost(LostKind::Missed, 11)]), 11);
        let both = vec![lost(LostKind::Missed, 10), lost(LostKind::Block, 1)];
        assert_eq!(told(both), 1);
    }
}
