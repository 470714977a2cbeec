//! Level 1: iopro's frames, one after the other, become waits.

use crate::observe::Wait;
use iopro::report::Frame;
use iopro::wait::Class;
use std::collections::BTreeMap;

/// Whose waits are those beyond the longest that a frame names.
pub const OTHERS: &str = "others";

/// Who, call, class, cause, file, other.
type Key = (
    String,
    Option<String>,
    Class,
    Option<Class>,
    Option<String>,
    Option<String>,
);

/// So many names are told apart; a machine that is watched for days may see more.
pub(crate) const MOST_NAMES: usize = 4096;

/// Waits of a running recording, added up.
#[derive(Debug, Default)]
pub struct Waits {
    found: BTreeMap<Key, Sum>,
    /// Whether files, calls and the other task are left out.
    is_coarse: bool,
    lost_events: u64,
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
    /// Adds up by process and class alone, in memory that does not grow with time.
    pub fn coarse() -> Waits {
        Waits {
            is_coarse: true,
            ..Waits::default()
        }
    }

    /// Adds what was over in an interval.
    pub fn add(&mut self, frame: &Frame) {
        let waiting = &frame.foreground;
        let mut named: BTreeMap<&str, Sum> = BTreeMap::new();
        for top in &waiting.top {
            let sum = Sum {
                waits: top.waits,
                lost_ns: top.total_ns,
                longest_ns: top.longest_ns,
            };
            named.entry(&top.class).or_default().add(sum);
            let Some(class) = Class::named(&top.class) else {
                continue;
            };
            let cause = top.cause.as_deref().and_then(Class::named);
            let key = match self.is_coarse {
                true => (top.process.clone(), None, class, None, None, None),
                false => (
                    top.process.clone(),
                    top.call.clone(),
                    class,
                    cause,
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
            let told = named.get(class.class.as_str()).copied().unwrap_or_default();
            let rest = Sum {
                waits: class.waits.saturating_sub(told.waits),
                lost_ns: class.total_ns.saturating_sub(told.lost_ns),
                longest_ns: 0,
            };
            if let Some(class) = Class::named(&class.class).filter(|_| rest.lost_ns > 0) {
                let key = (OTHERS.to_owned(), None, class, None, None, None);
                self.found.entry(key).or_default().add(rest);
            }
        }
        self.lost_events += frame.lost.iter().map(|it| it.count).sum::<u64>();
    }

    /// All of them, and how many events were lost.
    pub fn end(self) -> (Vec<Wait>, u64) {
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
                lost_ns: sum.lost_ns,
                longest_ns: sum.longest_ns,
            }
        });
        (waits.collect(), self.lost_events)
    }
}
