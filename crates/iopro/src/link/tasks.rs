//! Threads: the task that a thread id means now, and whether it is in the foreground.

use crate::event::ThreadInfo;
use crate::recording::Target;
use crate::store::{Error, Store};
use crate::tables;
use std::collections::{HashMap, HashSet, VecDeque};

/// Number of ended tasks that are kept.
const REMEMBERED: usize = 256;

/// Tasks whose waiting is of interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreground {
    /// All tasks but the kernel's threads.
    Everybody,
    /// The process with this id, and its children.
    Process(u32),
    /// Processes or threads with this name.
    Name(String),
    /// Cgroup with this path, and those below it.
    Cgroup(String),
}

impl Foreground {
    /// Parses a user's argument: a process id, a cgroup's path, or a name.
    pub fn named(name: &str) -> Foreground {
        match name.parse() {
            Ok(process) => Foreground::Process(process),
            Err(_) if name.starts_with('/') => Foreground::Cgroup(name.to_owned()),
            Err(_) => Foreground::Name(name.to_owned()),
        }
    }

    /// The foreground of the recording's own target.
    pub fn of(target: &Target) -> Foreground {
        match target {
            Target::System => Foreground::Everybody,
            Target::Process { pid } | Target::Command { pid, .. } => Foreground::Process(*pid),
            Target::Cgroup { path, .. } => Foreground::Cgroup(path.clone()),
        }
    }

    fn is_cgroup(&self, path: &str) -> bool {
        let Foreground::Cgroup(wanted) = self else {
            return false;
        };
        let below = path.strip_prefix(wanted.trim_end_matches('/'));
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }
}

/// A thread during its life.
#[derive(Clone, Debug)]
pub struct Task {
    /// `task_id` in the tables.
    pub id: u64,
    /// Id of its process.
    pub process: u32,
    /// Name of the thread (`comm`).
    pub name: String,
    /// It is a kernel thread.
    pub kernel: bool,
    start_ns: u64,
    row: tables::Task,
}

impl Task {
    /// Whether it is the thread of a journal (jbd2).
    pub fn is_journal(&self) -> bool {
        self.kernel && self.name.starts_with("jbd2/")
    }
}

/// All threads that exist.
#[derive(Debug)]
pub struct Tasks {
    by_thread: HashMap<u32, Task>,
    /// Thread and `task_id` of the latest that ended: a wait may name one as the waker.
    ended: VecDeque<(u32, u64)>,
    foreground: Foreground,
    /// Ids of the foreground's processes, to find their children.
    processes: HashSet<u32>,
    cgroups: HashMap<u64, String>,
    next: u64,
}

impl Tasks {
    /// Begins without threads.
    pub fn new(foreground: Foreground) -> Tasks {
        Tasks {
            by_thread: HashMap::new(),
            ended: VecDeque::new(),
            foreground,
            processes: HashSet::new(),
            cgroups: HashMap::new(),
            next: 0,
        }
    }

    /// The task that has this thread id now; adds one if it was not told of.
    pub fn of(&mut self, thread: u32, store: &mut Store) -> Result<&Task, Error> {
        if !self.by_thread.contains_key(&thread) {
            // The event that describes the thread was lost, or is still to come.
            let info = ThreadInfo {
                thread,
                process: thread,
                ..ThreadInfo::default()
            };
            self.told(&info, store)?;
        }
        Ok(&self.by_thread[&thread])
    }

    /// The task with this thread id; None if it was not told of.
    pub fn get(&self, thread: u32) -> Option<&Task> {
        self.by_thread.get(&thread)
    }

    /// Adds a thread, or updates its names and cgroup.
    pub fn told(&mut self, info: &ThreadInfo, store: &mut Store) -> Result<(), Error> {
        let known = self.by_thread.get(&info.thread).filter(|known| {
            known.start_ns == info.start_ns || known.start_ns == 0 || info.start_ns == 0
        });
        let id = match known {
            Some(known) => known.id,
            None => {
                self.next += 1;
                self.next
            }
        };
        let foreground = !info.kernel && self.is_foreground(info);
        if foreground {
            self.processes.insert(info.process);
        }
        let row = tables::Task {
            task_id: id,
            thread: info.thread.into(),
            process: info.process.into(),
            parent: info.parent.into(),
            name: info.name.clone(),
            process_name: info.process_name.clone(),
            cgroup_id: Some(info.cgroup).filter(|cgroup| *cgroup != 0),
            kernel: info.kernel,
            foreground,
        };
        store.add(&row)?;
        let task = Task {
            id,
            process: info.process,
            name: info.name.clone(),
            kernel: info.kernel,
            start_ns: info.start_ns,
            row,
        };
        self.by_thread.insert(info.thread, task);
        Ok(())
    }

    /// Adds a cgroup. Threads in it may have been told of before.
    pub fn cgroup(&mut self, id: u64, path: &str, store: &mut Store) -> Result<(), Error> {
        self.cgroups.insert(id, path.to_owned());
        store.add(&tables::Cgroup {
            cgroup_id: id,
            path: path.to_owned(),
        })?;
        if !self.foreground.is_cgroup(path) {
            return Ok(());
        }
        let members = self
            .by_thread
            .values_mut()
            .filter(|task| task.row.cgroup_id == Some(id));
        for task in members.filter(|task| !task.kernel) {
            task.row.foreground = true;
            self.processes.insert(task.process);
            store.add(&task.row)?;
        }
        Ok(())
    }

    /// Notes the end of a thread.
    pub fn ended(&mut self, thread: u32) {
        let Some(task) = self.by_thread.remove(&thread) else {
            return;
        };
        if task.process == thread {
            self.processes.remove(&thread);
        }
        self.ended.push_back((thread, task.id));
        if self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
    }

    /// `task_id` of the task that has this thread id, or had it if it ended lately.
    pub fn latest(&self, thread: u32) -> Option<u64> {
        let living = self.by_thread.get(&thread).map(|task| task.id);
        let ended = || self.ended.iter().rev().find(|(ended, _)| *ended == thread);
        living.or_else(|| ended().map(|(_, id)| *id))
    }

    fn is_foreground(&self, info: &ThreadInfo) -> bool {
        match &self.foreground {
            Foreground::Everybody => true,
            Foreground::Process(process) => {
                info.process == *process
                    || self.processes.contains(&info.process)
                    || self.processes.contains(&info.parent)
            }
            Foreground::Name(name) => info.process_name == *name || info.name == *name,
            Foreground::Cgroup(_) => {
                let path = self.cgroups.get(&info.cgroup);
                path.is_some_and(|path| self.foreground.is_cgroup(path))
            }
        }
    }
}
