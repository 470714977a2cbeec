//! Level 1: sums up the waits that iopro finds, interval by interval.

use crate::kernel_threads::DISCARDS;
use crate::observe::{Owner, Part, Party, Wait};
use iopro::capture::EVENTS_PER_MISSED;
use iopro::event::LostKind;
use iopro::report::{self, Accounted};
use iopro::wait::Class;
use std::collections::BTreeMap;

/// Process name for waits beyond the longest that a frame names.
pub const OTHERS: &str = "others";

/// What waits have in common that are summed up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    who: String,
    process: u32,
    call: Option<String>,
    syncs: bool,
    class: Class,
    cause: Option<Class>,
    file: Option<String>,
    device: Option<String>,
    other: Option<String>,
    other_process: u32,
}

impl Key {
    /// With what is kept in bounded memory only.
    fn coarse(who: String, class: Class) -> Key {
        Key {
            who,
            process: 0,
            call: None,
            syncs: false,
            class,
            cause: None,
            file: None,
            device: None,
            other: None,
            other_process: 0,
        }
    }

    fn of(waits: &Accounted) -> Key {
        let device = waits.device.map(|it| it.to_string());
        let other = waits.other.as_ref();
        // Unnamed files are called by the numbers of their file systems.
        let file = waits.file.clone().filter(|it| !it.starts_with("/dev/0:"));
        Key {
            who: waits.waiter.name.clone(),
            process: waits.waiter.process,
            call: waits.call.clone(),
            syncs: waits.sync,
            class: waits.class,
            cause: waits.cause,
            file,
            device,
            other: other.map(named),
            other_process: other.map_or(0, |it| it.process),
        }
    }
}

/// Name of a task. Only `/proc` has what a worker of the kernel works for.
fn named(owner: &iopro::report::Owner) -> String {
    let path = format!("/proc/{}/comm", owner.thread);
    let is_worker = owner.kernel && owner.name.starts_with("kworker");
    let text = is_worker.then(|| std::fs::read_to_string(path).ok());
    let text = text.flatten().filter(|it| it.starts_with("kworker"));
    text.map_or_else(|| owner.name.clone(), |it| it.trim_end().to_owned())
}

/// For whom a disk worked while this process waited.
fn owner(part: &iopro::report::Part, names: &mut BTreeMap<u32, String>) -> Owner {
    if part.own {
        return Owner::Waiter;
    }
    if part.discards && part.owner.as_ref().is_none_or(|it| it.kernel) {
        return Owner::Party(Party {
            name: DISCARDS.to_owned(),
            kernel: true,
            ..Party::default()
        });
    }
    let Some(owner) = &part.owner else {
        return Owner::Unknown;
    };
    let name = names.entry(owner.thread).or_insert_with(|| named(owner));
    Owner::Party(Party {
        process: owner.process,
        name: name.clone(),
        kernel: owner.kernel,
    })
}

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

#[derive(Clone, Debug, Default)]
struct Sum {
    waits: u64,
    lost_ns: u64,
    longest_ns: u64,
    parts: BTreeMap<(String, Owner), u64>,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.waits += other.waits;
        self.lost_ns += other.lost_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        for (key, ns) in other.parts {
            *self.parts.entry(key).or_default() += ns;
        }
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
        let mut names = BTreeMap::new();
        for waits in &interval.accounts {
            let parts = waits.parts.iter().filter(|_| !self.is_coarse);
            let parts = parts.map(|it| ((it.dev.to_string(), owner(it, &mut names)), it.ns));
            let mut sum = Sum {
                waits: waits.waits,
                lost_ns: waits.total_ns,
                longest_ns: waits.longest_ns,
                ..Sum::default()
            };
            for (key, ns) in parts {
                *sum.parts.entry(key).or_default() += ns;
            }
            let key = self.kept(waits);
            self.found.entry(key).or_default().add(sum);
        }
        for lost in &interval.lost {
            match lost.kind == LostKind::Missed.name() {
                true => self.missed += lost.count,
                false => self.lost_events += lost.count,
            }
        }
    }

    /// The key by which waits are kept, in bounded memory.
    fn kept(&self, waits: &Accounted) -> Key {
        let name = &waits.waiter.name;
        let coarse = |name: &str| Key::coarse(name.to_owned(), waits.class);
        let key = match self.is_coarse {
            true => coarse(name),
            false => Key::of(waits),
        };
        let is_known = |key: &Key| self.found.len() < MOST_NAMES || self.found.contains_key(key);
        let without_file = Key {
            file: None,
            other: None,
            other_process: 0,
            ..key.clone()
        };
        let found = [key, without_file, coarse(name)].into_iter().find(is_known);
        found.unwrap_or_else(|| coarse(OTHERS))
    }

    /// All waits, and the number of lost events, of so many. Those that any preemptible kernel leaves
    /// out are not counted.
    pub fn end(self, events: u64) -> (Vec<Wait>, u64) {
        let is_more = self.missed * EVENTS_PER_MISSED > events;
        let missed = if is_more { self.missed } else { 0 };
        let waits = self.found.into_iter().map(|(key, sum)| {
            let parts = sum.parts.into_iter();
            Wait {
                who: key.who,
                process: key.process,
                call: key.call,
                syncs: key.syncs,
                class: key.class,
                cause: key.cause,
                file: key.file,
                device: key.device,
                other: key.other,
                other_process: key.other_process,
                waits: sum.waits,
                lost_ns: sum.lost_ns,
                longest_ns: sum.longest_ns,
                parts: parts
                    .map(|((disk, owner), ns)| Part { disk, owner, ns })
                    .collect(),
                ..Wait::default()
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
                at_ns: 0,
                duration_ns: 0,
                uses: BTreeMap::new(),
                under_way: Vec::new(),
                foreground: Waiting {
                    total_ns: 0,
                    classes: Vec::new(),
                    top: Vec::new(),
                    longest: None,
                },
                accounts: Vec::new(),
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
