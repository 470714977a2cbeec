//! Recent waits of tasks, to find the reason why one of them made another wait.

use crate::wait::Class;
use std::collections::{HashMap, VecDeque};

/// Number of waits that are kept for each task.
const REMEMBERED: usize = 32;
/// Number of tasks whose waits are kept, those that waited last.
const TASKS: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Past {
    begin_ns: u64,
    end_ns: u64,
    class: Class,
}

/// The latest waits of the tasks that waited lately.
#[derive(Debug, Default)]
pub struct History {
    by_task: HashMap<u64, VecDeque<Past>>,
}

impl History {
    /// Adds a wait. The class of an indirect wait is that of its cause.
    pub fn push(&mut self, task: u64, begin_ns: u64, end_ns: u64, class: Class) {
        if self.by_task.len() >= TASKS && !self.by_task.contains_key(&task) {
            let latest = |past: &VecDeque<Past>| past.back().map_or(0, |past| past.end_ns);
            let mut ends: Vec<u64> = self.by_task.values().map(latest).collect();
            ends.sort_unstable();
            let middle = ends[ends.len() / 2];
            self.by_task.retain(|_, past| latest(past) > middle);
        }
        let past = self.by_task.entry(task).or_default();
        if past.len() == REMEMBERED {
            past.pop_front();
        }
        past.push_back(Past {
            begin_ns,
            end_ns,
            class,
        });
    }

    /// The class that the task waited for longest between two moments. None if it waited for less
    /// than a tenth of that time.
    pub fn mostly(&self, task: u64, begin_ns: u64, end_ns: u64) -> Option<Class> {
        let mut by_class: HashMap<Class, u64> = HashMap::new();
        for past in self.by_task.get(&task)? {
            let overlap = past
                .end_ns
                .min(end_ns)
                .saturating_sub(past.begin_ns.max(begin_ns));
            *by_class.entry(past.class).or_default() += overlap;
        }
        let (class, ns) = by_class
            .into_iter()
            .max_by_key(|(class, ns)| (*ns, *class))?;
        (ns > 0 && ns >= (end_ns - begin_ns) / 10).then_some(class)
    }
}
