//! All waits of an interval with their accounts, by waiter and reason.

use super::ask::{WAITS, all};
use crate::event::Dev;
use crate::link::Account;
use crate::store::Error;
use crate::wait::Class;
use rusqlite::{Connection, OptionalExtension, params};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Groups of an interval that keep their files, the longest in total first; those after them are
/// told without, so that a process that waits on many files is one group.
const WITH_FILES: usize = 256;

/// A task that a disk worked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Number of its process.
    pub process: u32,
    /// Number of its thread.
    pub thread: u32,
    /// Name of its process.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
}

/// Part of waits in which a disk worked for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Device number of the disk.
    pub dev: Dev,
    /// The task; None if it is not known.
    pub owner: Option<Owner>,
    /// Whether it is the thread that waits.
    pub own: bool,
    /// Whether the disk discarded blocks.
    pub discards: bool,
    /// Duration in nanoseconds.
    pub ns: u64,
}

/// Waits of one thread's process with the same reason, and what disks worked for meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Accounted {
    /// The process that waited; its `thread` is 0, as several may have.
    pub waiter: Owner,
    /// Kind of the call; None outside of calls.
    pub call: Option<String>,
    /// Whether the call or its file is synchronous (O_SYNC, O_DSYNC).
    pub sync: bool,
    /// Class of the waits.
    pub class: Class,
    /// Class of the wait of the task at the other end.
    pub cause: Option<Class>,
    /// Path of the file.
    pub file: Option<String>,
    /// Device number of the file's file system.
    pub device: Option<Dev>,
    /// The task at the other end.
    pub other: Option<Owner>,
    /// Number of waits.
    pub waits: u64,
    /// Sum of the waits, in nanoseconds.
    pub total_ns: u64,
    /// Longest wait, in nanoseconds.
    pub longest_ns: u64,
    /// What disks worked for meanwhile; for the rest of the time a disk had nothing to do.
    pub parts: Vec<Part>,
}

/// Waiter's process, call, sync, class, cause, file, device, the other task.
type Key = (
    Owner,
    Option<String>,
    bool,
    Class,
    Option<Class>,
    Option<String>,
    Option<Dev>,
    Option<Owner>,
);

/// Disk, task that it worked for, whether that is the waiter, and whether it discarded.
type Served = (Dev, Option<u64>, bool, bool);

#[derive(Debug, Default)]
struct Sum {
    waits: u64,
    total_ns: u64,
    longest_ns: u64,
    parts: BTreeMap<Served, u64>,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.waits += other.waits;
        self.total_ns += other.total_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        for (key, ns) in other.parts {
            *self.parts.entry(key).or_default() += ns;
        }
    }
}

/// The foreground's waits with their accounts.
pub fn all_accounted(
    database: &Connection,
    accounts: Vec<Account>,
) -> Result<Vec<Accounted>, Error> {
    let mut shares: HashMap<u64, Account> = accounts.into_iter().map(|it| (it.wait, it)).collect();
    let mut groups: BTreeMap<Key, Sum> = BTreeMap::new();
    for (wait, task, key, ns) in waits(database)? {
        let parts = shares.remove(&wait).map_or(Vec::new(), |it| it.shares);
        let parts = parts.into_iter().map(|it| {
            (
                (it.dev, it.owner, it.owner == Some(task), it.discards),
                it.ns,
            )
        });
        let sum = Sum {
            waits: 1,
            total_ns: ns,
            longest_ns: ns,
            parts: parts.collect(),
        };
        groups.entry(key).or_default().add(sum);
    }
    let mut owners = HashMap::new();
    let groups = few_files(groups).into_iter();
    groups
        .map(|(key, sum)| accounted(database, &mut owners, key, sum))
        .collect()
}

/// The groups, of which only the longest keep their files.
fn few_files(groups: BTreeMap<Key, Sum>) -> BTreeMap<Key, Sum> {
    let mut longest: Vec<_> = groups.into_iter().collect();
    longest.sort_by_key(|(_, sum)| Reverse(sum.total_ns));
    let mut kept: BTreeMap<Key, Sum> = BTreeMap::new();
    for (place, (mut key, sum)) in longest.into_iter().enumerate() {
        if place >= WITH_FILES {
            key.5 = None;
        }
        kept.entry(key).or_default().add(sum);
    }
    kept
}

fn accounted(
    database: &Connection,
    owners: &mut HashMap<u64, Option<Owner>>,
    key: Key,
    sum: Sum,
) -> Result<Accounted, Error> {
    let mut parts = Vec::with_capacity(sum.parts.len());
    for ((dev, task, own, discards), ns) in sum.parts {
        let owner = match task {
            Some(task) => owner(database, owners, task)?,
            None => None,
        };
        parts.push(Part {
            dev,
            owner,
            own,
            discards,
            ns,
        });
    }
    let (waiter, call, sync, class, cause, file, device, other) = key;
    Ok(Accounted {
        waiter,
        call,
        sync,
        class,
        cause,
        file,
        device,
        other,
        waits: sum.waits,
        total_ns: sum.total_ns,
        longest_ns: sum.longest_ns,
        parts,
    })
}

fn owner(
    database: &Connection,
    known: &mut HashMap<u64, Option<Owner>>,
    task: u64,
) -> Result<Option<Owner>, Error> {
    if let Some(owner) = known.get(&task) {
        return Ok(owner.clone());
    }
    let mut query = database.prepare_cached(
        "SELECT process, thread, process_name, kernel FROM tasks WHERE task_id = ?",
    )?;
    let found = query.query_row(params![task], |row| {
        Ok(Owner {
            process: row.get(0)?,
            thread: row.get(1)?,
            name: row.get(2)?,
            kernel: row.get(3)?,
        })
    });
    let owner = found.optional()?;
    known.insert(task, owner.clone());
    Ok(owner)
}

fn waits(database: &Connection) -> Result<Vec<(u64, u64, Key, u64)>, Error> {
    let query = format!(
        "SELECT waits.wait_id, woken_ns - waits.begin_ns,
             waiter.process, waiter.process_name,
             syscalls.kind, coalesce(syscalls.sync, FALSE), waits.class, waits.cause,
             nullif(files.path, ''), files.device_id,
             other.process, other.thread, other.process_name, other.kernel, waits.task_id
         {WAITS} WHERE waiter.foreground"
    );
    all(database, &query, |row| {
        let waiter = Owner {
            process: row.get(2)?,
            thread: 0,
            name: row.get(3)?,
            kernel: false,
        };
        let other: Option<u32> = row.get(10)?;
        let other = other.map(|process| {
            Ok::<_, rusqlite::Error>(Owner {
                process,
                thread: row.get(11)?,
                name: row.get(12)?,
                kernel: row.get(13)?,
            })
        });
        let device: Option<u32> = row.get(9)?;
        let key = (
            waiter,
            row.get(4)?,
            row.get(5)?,
            row.get(6)?,
            row.get(7)?,
            row.get(8)?,
            device.map(Dev),
            other.transpose()?,
        );
        Ok((row.get(0)?, row.get(14)?, key, row.get(1)?))
    })
}
