//! What was observed while watching: the input of [`judge`](crate::judge()).

use crate::machine::Machine;
use iopro::wait::Class;
use serde::Serialize;
use std::collections::BTreeSet;

/// How much of the machine is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Root with BTF: each wait, linked to its cause by iopro.
    Linked,
    /// Root without: samples of the kernel stacks of tasks that are blocked.
    Sampled,
    /// No root: that tasks are blocked, and of one's own also in which function.
    Unprivileged,
}

impl Level {
    /// From 1, the best.
    pub fn number(self) -> u32 {
        match self {
            Level::Linked => 1,
            Level::Sampled => 2,
            Level::Unprivileged => 3,
        }
    }

    /// How it sees.
    pub fn sees(self) -> &'static str {
        match self {
            Level::Linked => "root with BTF: every wait in the storage stack, linked to its cause",
            Level::Sampled => "root without tracing: samples of the stacks of blocked tasks",
            Level::Unprivileged => "no root: samples of which tasks are blocked",
        }
    }

    /// What it cannot see, and what would let it.
    pub fn lacks(self) -> &'static [&'static str] {
        match self {
            Level::Linked => &[
                "to which device a process wrote that held no file open when it was looked at; it may be any",
            ],
            Level::Sampled => &["waits between two samples, files, and for whom the device worked"],
            Level::Unprivileged => &[
                "in which function others' tasks are blocked, and who reads and writes: run it with sudo",
            ],
        }
    }
}

/// Waits that have everything in common, of tasks that are not the kernel's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// The process.
    pub who: String,
    /// In which call, as strace names it.
    pub call: Option<String>,
    /// What kind of wait it was, as iopro names it.
    pub class: Class,
    /// What the task at the other end waited for itself.
    pub cause: Option<Class>,
    /// On which file.
    pub file: Option<String>,
    /// The task at the other end.
    pub other: Option<String>,
    /// Whether a network or FUSE file system had to answer.
    pub remote: bool,
    /// How many; of samples how many samples.
    pub waits: u64,
    /// How long together.
    pub lost_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

/// For how long some task was held up by want of each, while watching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pressure {
    /// Of I/O.
    pub io_ns: u64,
    /// Of memory.
    pub memory_ns: u64,
    /// Of a CPU.
    pub cpu_ns: u64,
}

/// What memory management did while watching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// File pages that were read again soon after they had been evicted.
    pub refaulted_bytes: u64,
    /// Read from disks for the page cache or from swap.
    pub paged_in_bytes: u64,
    /// Read from swap.
    pub swapped_in_bytes: u64,
}

/// What processes of one name did while watching.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct User {
    /// Their name.
    pub name: String,
    /// Read from disks.
    pub read_bytes: u64,
    /// Made dirty, or written past the cache.
    pub written_bytes: u64,
    /// On a CPU.
    pub cpu_ns: u64,
    /// The last name of the cgroup, where that is an app's or a service's own.
    pub app: Option<String>,
    /// The disks on which they were seen to have files open for writing; empty if none was seen.
    pub writes_to: BTreeSet<String>,
}

/// What a disk did while watching.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// The disk.
    pub disk: String,
    /// Reads and writes that it completed.
    pub requests: u64,
    /// Their times from queue to completion, together.
    pub request_ns: u64,
    /// Read.
    pub read_bytes: u64,
    /// Bytes written meanwhile.
    pub written_bytes: u64,
    /// For how long it had something to do.
    pub busy_ns: u64,
}

/// All that a diagnosis is made of.
#[derive(Clone, Debug)]
pub struct Observation {
    /// How it was seen.
    pub level: Level,
    /// For how long.
    pub watched_ns: u64,
    /// Each task's waits, by call and class.
    pub waits: Vec<Wait>,
    /// How much time was lost for want of what.
    pub pressure: Pressure,
    /// Memory.
    pub memory: Memory,
    /// The share of all CPUs' time that others than the doctor used.
    pub cpu_busy: f64,
    /// Who used what.
    pub users: Vec<User>,
    /// What the disks did.
    pub disks: Vec<Traffic>,
    /// Events that were lost.
    pub lost_events: u64,
    /// What needs no watching.
    pub machine: Machine,
}

impl Observation {
    /// Those who may have written to a disk: who was seen to write to others alone has not.
    pub fn writers_to(&self, disk: Option<&str>) -> impl Iterator<Item = &User> {
        let disk = disk.map(str::to_owned);
        self.users.iter().filter(move |it| match &disk {
            Some(disk) => it.writes_to.is_empty() || it.writes_to.contains(disk),
            None => true,
        })
    }

    /// How much of what processes of this name wrote may have gone to this disk, or to any. Of
    /// those whose disks are not known it is no more than was written to it beyond what others did.
    pub fn written_to(&self, disk: Option<&str>, user: &User) -> u64 {
        let traffic = self
            .disks
            .iter()
            .find(|it| Some(it.disk.as_str()) == disk)
            .filter(|_| user.writes_to.is_empty());
        let Some(traffic) = traffic else {
            return user.written_bytes;
        };
        let known = self.writers_to(disk).filter(|it| !it.writes_to.is_empty());
        let known: u64 = known.map(|it| it.written_bytes).sum();
        let rest = traffic.written_bytes.saturating_sub(known);
        user.written_bytes.min(rest)
    }

    /// The disk that a wait has to do with: that of its file, or the only one it writes to.
    pub fn disk_of(&self, wait: &Wait) -> Option<&str> {
        if let Some(file) = &wait.file {
            return self.machine.mount_of(file)?.disk.as_deref();
        }
        let user = self.users.iter().find(|it| it.name == wait.who)?;
        match user.writes_to.len() {
            1 => user.writes_to.first().map(String::as_str),
            _ => None,
        }
    }

    /// How much processes of this name wrote.
    pub fn written_by(&self, who: &str) -> u64 {
        let own = self.users.iter().find(|it| it.name == who);
        own.map_or(0, |it| it.written_bytes)
    }

    /// The disk that was written most.
    pub fn written_disk(&self) -> Option<&Traffic> {
        let written = self.disks.iter().filter(|it| it.written_bytes > 0);
        written.max_by_key(|it| it.written_bytes)
    }

    /// The disk that was busy longest.
    pub fn busiest_disk(&self) -> Option<&Traffic> {
        let busy = self.disks.iter().filter(|it| it.busy_ns > 0);
        busy.max_by_key(|it| it.busy_ns)
    }

    /// The share of the time watched.
    pub fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.watched_ns.max(1) as f64
    }
}
