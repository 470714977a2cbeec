//! An observation, the input of [`judge`](crate::judge()).

use crate::groups::Group;
use crate::machine::{Machine, Mounted};
use crate::pieces::Pieces;
use iopro::wait::Class;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the observed time without links from which a diagnosis says so.
const SAMPLED: f64 = 0.05;

/// Levels of observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Root with BTF: iopro links each wait to its cause, while there are any that one could feel.
    Linked,
    /// Root without BTF: samples of the kernel stacks of blocked tasks.
    Sampled,
    /// Without root: samples of blocked tasks, and the function for tasks of this user.
    Unprivileged,
}

impl Level {
    /// Number from 1, the best, to 3.
    pub fn number(self) -> u32 {
        match self {
            Level::Linked => 1,
            Level::Sampled => 2,
            Level::Unprivileged => 3,
        }
    }

    /// Method of this level, as a phrase.
    pub fn sees(self) -> &'static str {
        match self {
            Level::Linked => {
                "root with BTF: waits in the storage stack, linked to their causes while some task is held up"
            }
            Level::Sampled => "root without tracing: samples of the stacks of blocked tasks",
            Level::Unprivileged => "no root: samples of which tasks are blocked",
        }
    }

    /// Limits of this level, and what would remove them.
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

    /// What a better level takes, and what it shows; None for the best.
    pub fn gains(self) -> Option<&'static str> {
        match self {
            Level::Linked => None,
            Level::Sampled => Some(
                "A kernel built with CONFIG_DEBUG_INFO_BTF and not locked down, as Debian's, Fedora's, Ubuntu's and Arch's are, gives level 1",
            ),
            Level::Unprivileged => Some("The same command with sudo sees more"),
        }
    }
}

/// A process, or a thread of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Party {
    /// Number of the process; 0 if it is not known.
    pub process: u32,
    /// Its name; of a thread of the kernel with what it works for, as `kworker/0:1-kcopyd`.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
}

/// For whom a disk worked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// For the thread that waits.
    Waiter,
    /// For this process, which may be the waiter's, or thread of the kernel.
    Party(Party),
    /// It is not known.
    Unknown,
}

/// Part of waits in which a disk worked for somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Device number of the disk, such as `8:0`.
    pub disk: String,
    /// The task, or what else, that the disk served.
    pub owner: Owner,
    /// Duration in nanoseconds.
    pub ns: u64,
}

/// Waits of user tasks with the same attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wait {
    /// Name of the process.
    pub who: String,
    /// Number of the process; 0 if it is not known.
    pub process: u32,
    /// Whether the call waits until data are on the device: a sync, or a synchronous write.
    pub syncs: bool,
    /// Device number of the file's file system.
    pub device: Option<String>,
    /// Process at the other end; 0 if it is not known.
    pub other_process: u32,
    /// What disks worked for meanwhile, as iopro measured it. The rest of the time each had nothing to
    /// do.
    pub parts: Vec<Part>,
    /// System call, as strace names it.
    pub call: Option<String>,
    /// Class of the wait, as iopro names it.
    pub class: Class,
    /// Class of the wait of the task at the other end.
    pub cause: Option<Class>,
    /// File, if known.
    pub file: Option<String>,
    /// Name of the task at the other end.
    pub other: Option<String>,
    /// Process of a FUSE file system through which it waited.
    pub through: Option<String>,
    /// Whether a network or FUSE file system had to answer.
    pub remote: bool,
    /// Of what its process wrote, the share of its threads that wait for data to be on the device. None
    /// if it has one thread only, or that is not known.
    pub own_share: Option<f64>,
    /// Number of waits that iopro told of.
    pub waits: u64,
    /// Number of samples that met one; there are either waits or samples.
    pub samples: u64,
    /// Total time in nanoseconds.
    pub lost_ns: u64,
    /// Longest wait in nanoseconds; 0 if sampled.
    pub longest_ns: u64,
}

impl Wait {
    /// Whether it is in a call that reads, or in a fault on a page of a file.
    pub fn reads(&self) -> bool {
        // Samples have the kernel's names, such as sendfile64.
        let copies = ["sendfile", "splice", "copy_file_range"];
        let reads =
            |it: &str| it.contains("read") || copies.iter().any(|copy| it.starts_with(copy));
        self.call.as_deref().is_some_and(reads)
    }
}

/// Time in which some task lacked a resource (PSI, some).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pressure {
    /// I/O pressure in nanoseconds.
    pub io_ns: u64,
    /// Memory pressure in nanoseconds.
    pub memory_ns: u64,
    /// CPU pressure in nanoseconds.
    pub cpu_ns: u64,
}

impl Pressure {
    /// What was counted since `before`.
    pub(crate) fn since(self, before: Pressure) -> Pressure {
        Pressure {
            io_ns: self.io_ns.saturating_sub(before.io_ns),
            memory_ns: self.memory_ns.saturating_sub(before.memory_ns),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
        }
    }
}

/// Pressure in a part of the observed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Begin of the part, in nanoseconds since the start.
    pub from_ns: u64,
    /// End of the part, in nanoseconds since the start.
    pub until_ns: u64,
    /// Pressure in this part.
    pub pressure: Pressure,
}

/// Counters of memory management.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Bytes of file pages that were read again soon after eviction.
    pub refaulted_bytes: u64,
    /// Bytes read from disks for the page cache or from swap.
    pub paged_in_bytes: u64,
    /// Bytes read from swap.
    pub swapped_in_bytes: u64,
    /// Bytes that were dirty or being written back at the begin.
    pub dirty_before_bytes: u64,
    /// The same, at the end.
    pub dirty_bytes: u64,
}

/// Work of all processes with one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct User {
    /// Name of the processes.
    pub name: String,
    /// Bytes read from disks.
    pub read_bytes: u64,
    /// Bytes made dirty, or written by direct I/O.
    pub written_bytes: u64,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// Last component of the cgroup's path, if it belongs to one app or service.
    pub app: Option<String>,
    /// Disks on which they had files open for writing, as far as known.
    pub writes_to: BTreeSet<String>,
    /// Whether all files that they had open for writing bypass the page cache (`O_DIRECT`): what they write
    /// makes no page dirty.
    pub is_direct: bool,
    /// Path of the cgroup of one of them.
    pub cgroup: Option<String>,
    /// Bytes written by each process that lived to the end.
    pub written_by: BTreeMap<u32, u64>,
    /// Bytes of anonymous memory, in RAM and swapped, that one of them has got since the begin.
    pub grown_bytes: u64,
}

/// Work of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Kernel name of the disk.
    pub disk: String,
    /// Number of completed reads and writes.
    pub requests: u64,
    /// Sum of their times from queue to completion.
    pub request_ns: u64,
    /// Bytes read by all processes.
    pub read_bytes: u64,
    /// Bytes written by all processes.
    pub written_bytes: u64,
    /// Time with at least one request.
    pub busy_ns: u64,
    /// Longest time in which it had requests and finished none.
    pub unanswered_ns: u64,
}

/// An app or service, by the name of its cgroup, that was held up by I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldUp {
    /// Name of its unit, such as `firefox.service`.
    pub app: String,
    /// Time in which some task of it was held up (PSI), in nanoseconds.
    pub io_ns: u64,
}

/// Input of a diagnosis.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Level of observation.
    pub level: Level,
    /// Observed time in nanoseconds.
    pub watched_ns: u64,
    /// Part of it in which iopro told of waits.
    pub linked_ns: u64,
    /// Each task's waits, by call and class.
    pub waits: Vec<Wait>,
    /// Pressure in the observed time.
    pub pressure: Pressure,
    /// The same by parts of the observed time, without gaps.
    pub over_time: Vec<Span>,
    /// Counters of memory management.
    pub memory: Memory,
    /// Share of all CPU time that other processes used.
    pub cpu_busy: f64,
    /// Work by process name.
    pub users: Vec<User>,
    /// Pieces of the files that were read, by path.
    pub pieces: BTreeMap<String, Pieces>,
    /// Work by disk.
    pub disks: Vec<Traffic>,
    /// The apps that were held up longest, if apps have cgroups of their own.
    pub held_up: Vec<HeldUp>,
    /// Groups of processes with limits of their own.
    pub groups: Vec<Group>,
    /// For how long samples met threads of the kernel blocked that use disks of their own accord, by
    /// name, in nanoseconds.
    pub kernel_blocked: BTreeMap<String, u64>,
    /// Number of lost events.
    pub lost_events: u64,
    /// Configuration of the machine.
    pub machine: Machine,
}

impl Observation {
    /// Processes that may have written to a disk; not those known to write only to others.
    pub fn writers_to(&self, disk: Option<&str>) -> impl Iterator<Item = &User> {
        let disk = disk.map(str::to_owned);
        self.users.iter().filter(move |it| match &disk {
            Some(disk) => it.writes_to.is_empty() || it.writes_to.contains(disk),
            None => true,
        })
    }

    /// Work of the disk with this name.
    pub fn traffic(&self, disk: Option<&str>) -> Option<&Traffic> {
        let mut disks = self.disks.iter();
        disks.find(|it| Some(it.disk.as_str()) == disk)
    }

    /// Processes that may have made pages of a disk dirty.
    pub fn dirtiers_of(&self, disk: Option<&str>) -> impl Iterator<Item = &User> {
        self.writers_to(disk).filter(|it| !it.is_direct)
    }

    /// Upper bound of the bytes that `user` wrote to this disk, or to any. For users with unknown
    /// disks it is at most the disk's bytes without those of other users.
    pub fn written_to(&self, disk: Option<&str>, user: &User) -> u64 {
        let traffic = self.traffic(disk).filter(|_| user.writes_to.is_empty());
        let Some(traffic) = traffic else {
            return user.written_bytes;
        };
        let known = self.writers_to(disk).filter(|it| !it.writes_to.is_empty());
        let known: u64 = known.map(|it| it.written_bytes).sum();
        let rest = traffic.written_bytes.saturating_sub(known);
        user.written_bytes.min(rest)
    }

    /// Disk of a wait: that of its file, or the only one that the process writes to.
    pub fn disk_of(&self, wait: &Wait) -> Option<&str> {
        if let Some(mount) = self.mount_of(wait) {
            return mount.disk.as_deref();
        }
        if wait.file.is_some() {
            return None;
        }
        let user = self.users.iter().find(|it| it.name == wait.who)?;
        match user.writes_to.len() {
            1 => user.writes_to.first().map(String::as_str),
            _ => None,
        }
    }

    /// Whether iopro measured what disks did while tasks waited.
    pub(crate) fn is_measured(&self) -> bool {
        self.waits.iter().any(|it| !it.parts.is_empty())
    }

    /// Mount that has the file of a wait.
    pub fn mount_of(&self, wait: &Wait) -> Option<&Mounted> {
        let by_number = wait.device.as_deref().and_then(|it| self.machine.mount(it));
        by_number.or_else(|| self.machine.mount_of(wait.file.as_deref()?))
    }

    /// The group of the processes with this name.
    pub fn group_of(&self, who: &str) -> Option<&Group> {
        let user = self.users.iter().find(|it| it.name == who)?;
        let path = user.cgroup.as_deref()?;
        let of = self.groups.iter().filter(|it| it.has(path));
        of.max_by_key(|it| it.path.len())
    }

    /// Bytes written by processes with this name.
    pub fn written_by(&self, who: &str) -> u64 {
        let own = self.users.iter().find(|it| it.name == who);
        own.map_or(0, |it| it.written_bytes)
    }

    /// Bytes read and written by processes with this name.
    pub fn moved_by(&self, who: &str) -> u64 {
        let own = self.users.iter().find(|it| it.name == who);
        own.map_or(0, |it| it.read_bytes + it.written_bytes)
    }

    /// Disk with most bytes written.
    pub fn written_disk(&self) -> Option<&Traffic> {
        let written = self.disks.iter().filter(|it| it.written_bytes > 0);
        written.max_by_key(|it| it.written_bytes)
    }

    /// Disk with the longest busy time.
    pub fn busiest_disk(&self) -> Option<&Traffic> {
        let busy = self.disks.iter().filter(|it| it.busy_ns > 0);
        busy.max_by_key(|it| it.busy_ns)
    }

    /// Limits of this observation, and what would remove them.
    pub fn lacks(&self) -> Vec<String> {
        let of_level = self.level.lacks().iter().map(|it| (*it).to_owned());
        let sampled_ns = self.watched_ns.saturating_sub(self.linked_ns);
        let is_sampled = self.level == Level::Linked && self.share(sampled_ns) >= SAMPLED;
        let sampled = is_sampled.then(|| {
            format!(
                "who caused what was waited for in {:.0} % of the time, when no task had been held up for some seconds: blocked tasks were sampled then",
                self.share(sampled_ns) * 100.0
            )
        });
        of_level.chain(sampled).collect()
    }

    /// The observation whose names each stay on their line of a page: whoever names a file, a process
    /// or a mount point would else write lines of the page's own form. The names that belong
    /// together stay the same.
    pub(crate) fn on_a_page(&self) -> Observation {
        let name = |text: &String| sys::plain::name(text);
        let any = |text: &Option<String>| text.as_ref().map(name);
        let mut seen = self.clone();
        for wait in &mut seen.waits {
            wait.who = name(&wait.who);
            wait.file = any(&wait.file);
            wait.other = any(&wait.other);
            for part in &mut wait.parts {
                if let Owner::Party(party) = &mut part.owner {
                    party.name = name(&party.name);
                }
            }
        }
        for group in &mut seen.groups {
            group.path = name(&group.path);
        }
        for user in &mut seen.users {
            user.name = name(&user.name);
            user.app = any(&user.app);
            user.cgroup = any(&user.cgroup);
        }
        for app in &mut seen.held_up {
            app.app = name(&app.app);
        }
        seen.pieces = self
            .pieces
            .iter()
            .map(|(path, it)| (name(path), *it))
            .collect();
        for mounted in &mut seen.machine.mounts {
            mounted.point = name(&mounted.point);
            mounted.filesystem = name(&mounted.filesystem);
            if let Some(server) = &mut mounted.server {
                server.name = name(&server.name);
            }
        }
        for disk in &mut seen.machine.disks {
            disk.write_thread = any(&disk.write_thread);
        }
        let rules = &mut seen.machine.scheduler_rules;
        rules.iter_mut().for_each(|it| *it = name(it));
        seen
    }

    /// Share of the observed time.
    pub fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.watched_ns.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_calls_are_known_by_the_systems_and_the_kernels_names() {
        let reads = |call: &str| {
            let call = Some(call.to_owned());
            Wait {
                call,
                ..Wait::default()
            }
            .reads()
        };
        for call in [
            "read",
            "preadv2",
            "readahead",
            "sendfile",
            "sendfile64",
            "splice",
        ] {
            assert!(reads(call), "{call}");
        }
        for call in ["write", "fsync", "truncate", "unlinkat"] {
            assert!(!reads(call), "{call}");
        }
    }
}
