//! Threads: which task a thread number means now, and whose waiting is of
//! interest.

use super::Foreground;
use crate::event::ThreadInfo;
use crate::store::{Error, Store};
use crate::tables;
use std::collections::{HashMap, HashSet, VecDeque};

/// Tasks that ended and are remembered.
const REMEMBERED: usize = 256;

/// A thread as long as it lives.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its number in the tables.
    pub id: u64,
    /// Its process's number.
    pub process: u32,
    /// The thread's name.
    pub name: String,
    /// It is the kernel's own.
    pub kernel: bool,
    start_ns: u64,
    row: tables::Task,
}

impl Task {
    /// It is a journal's thread.
    pub fn is_journal(&self) -> bool {
        self.kernel && self.name.starts_with("jbd2/")
    }
}

/// All threads that are there.
#[derive(Debug)]
pub struct Tasks {
    by_thread: HashMap<u32, Task>,
    /// The latest that ended, by thread: whoever one woke may be told of later.
    ended: VecDeque<(u32, u64)>,
    foreground: Foreground,
    /// Processes of the foreground, for their children.
    processes: HashSet<u32>,
    cgroups: HashMap<u64, String>,
    next: u64,
}

impl Tasks {
    /// None yet.
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

    /// The task that is this thread now.
    pub fn of(&mut self, thread: u32, store: &mut Store) -> Result<&Task, Error> {
        if !self.by_thread.contains_key(&thread) {
            // Not told of: the event that did was lost, or is still to come.
            let info = ThreadInfo {
                thread,
                process: thread,
                parent: 0,
                start_ns: 0,
                cgroup: 0,
                name: String::new(),
                process_name: String::new(),
                kernel: false,
            };
            self.told(&info, store)?;
        }
        Ok(&self.by_thread[&thread])
    }

    /// What is known of this thread.
    pub fn get(&self, thread: u32) -> Option<&Task> {
        self.by_thread.get(&thread)
    }

    /// A thread is told of.
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

    /// A cgroup is told of; who is in it may be told of already.
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

    /// A thread ended.
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

    /// The number of the task that this thread is, or was if it ended just now.
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
