//! Table of the causes of waits.

use serde::Serialize;

/// Cause of lost time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Throttled for dirty pages of other tasks.
    DirtyThrottling,
    /// Throttled for dirty pages of its own.
    OwnWrites,
    /// fsync waits for writeback of other files, or for the journal with their blocks.
    FsyncBehindWriteback,
    /// A change to a page or a block waits for its writeback or commit.
    ChangeBehindWriteback,
    /// sync, syncfs or umount, which write a whole file system.
    SyncAll,
    /// fsync without other writers.
    OwnCommits,
    /// No free request, or writeback throttling.
    QueueFull,
    /// Discards that others asked for.
    Discards,
    /// Requests are slow although few are queued.
    SlowDevice,
    /// Requests wait for those of other tasks.
    DeviceBusy,
    /// Reads of a file that lies in many small pieces.
    Fragments,
    /// A limit on the I/O of a group of processes.
    Limit,
    /// A lock of a file that another process holds.
    FileLock,
    /// A device has requests and finishes none.
    NoAnswer,
    /// A frozen file system.
    Frozen,
    /// A network server, or the process of a FUSE file system.
    Remote,
    /// Reads of pages that were evicted shortly before.
    Evicted,
    /// The task reclaims memory itself.
    Reclaim,
    /// Reads from swap.
    Swap,
    /// No CPU was free.
    Cpu,
    /// Events that are no I/O, which the kernel counts as I/O.
    Idle,
    /// Pressure (PSI) without an observed wait.
    Unexplained,
}

/// Whose matter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The storage stack.
    Storage,
    /// Lack of memory; the I/O is a consequence.
    Memory,
    /// Not related to storage.
    Elsewhere,
}

/// Row of the table.
#[derive(Debug)]
pub struct Row {
    /// Cause that this row describes.
    pub cause: Cause,
    /// Name of the cause.
    pub name: &'static str,
    /// Meaning, as a phrase that follows "waited".
    pub meaning: &'static str,
    /// Whose matter it is.
    pub kind: Kind,
}

const fn row(cause: Cause, name: &'static str, meaning: &'static str, kind: Kind) -> Row {
    Row {
        cause,
        name,
        meaning,
        kind,
    }
}

/// Rows of all causes, in the order of [`Cause`].
pub const ALL: [Row; 22] = [
    row(
        Cause::DirtyThrottling,
        "dirty throttling",
        "as others had made too many pages dirty",
        Kind::Storage,
    ),
    row(
        Cause::OwnWrites,
        "own writes",
        "as it writes faster than the disk does",
        Kind::Storage,
    ),
    row(
        Cause::FsyncBehindWriteback,
        "fsync behind writeback",
        "for its fsync behind others' writes or the journal commit with them",
        Kind::Storage,
    ),
    row(
        Cause::ChangeBehindWriteback,
        "change behind writeback",
        "to change what was being written back or committed",
        Kind::Storage,
    ),
    row(
        Cause::SyncAll,
        "sync of everything",
        "for all that is to be written to a file system (sync, umount)",
        Kind::Storage,
    ),
    row(
        Cause::OwnCommits,
        "own commits",
        "for its own fsync, with nobody else writing much",
        Kind::Storage,
    ),
    row(
        Cause::QueueFull,
        "queue full",
        "for a free request of the queue or as it throttles writes",
        Kind::Storage,
    ),
    row(
        Cause::Discards,
        "discards",
        "for discards to end",
        Kind::Storage,
    ),
    row(
        Cause::SlowDevice,
        "slow device",
        "for a device that takes long for each request with little queued",
        Kind::Storage,
    ),
    row(
        Cause::DeviceBusy,
        "device busy",
        "for its own requests",
        Kind::Storage,
    ),
    row(
        Cause::Fragments,
        "fragments",
        "to read a file that lies in many small pieces",
        Kind::Storage,
    ),
    row(
        Cause::Limit,
        "I/O limit",
        "while a limit held back a group of processes",
        Kind::Storage,
    ),
    row(
        Cause::FileLock,
        "file lock",
        "for the lock of a file",
        Kind::Storage,
    ),
    row(
        Cause::NoAnswer,
        "no answer",
        "for a device that has requests and finishes none",
        Kind::Storage,
    ),
    row(
        Cause::Frozen,
        "frozen file system",
        "for a frozen file system",
        Kind::Storage,
    ),
    row(
        Cause::Remote,
        "network or FUSE",
        "for a file system that a server or a process answers for",
        Kind::Elsewhere,
    ),
    row(
        Cause::Evicted,
        "evicted working set",
        "to read again what had just been evicted from memory",
        Kind::Memory,
    ),
    row(Cause::Reclaim, "reclaim", "to reclaim memory", Kind::Memory),
    row(
        Cause::Swap,
        "swap",
        "to read memory back from swap",
        Kind::Memory,
    ),
    row(Cause::Cpu, "CPU", "for a CPU", Kind::Elsewhere),
    row(
        Cause::Idle,
        "idle",
        "for events, such as a client's words, which the kernel counts as I/O",
        Kind::Elsewhere,
    ),
    row(
        Cause::Unexplained,
        "unexplained",
        "at a place that this level does not see or know",
        Kind::Storage,
    ),
];

impl Cause {
    /// Row of the cause.
    pub fn row(self) -> &'static Row {
        let found = ALL.iter().find(|row| row.cause == self);
        // A test checks that the table is complete.
        found.unwrap_or(&ALL[ALL.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_row_and_its_line_in_the_page() {
        let page = include_str!("../../../docs/use/doctor.md");
        for (place, row) in ALL.iter().enumerate() {
            assert_eq!(row.cause as usize, place, "{}", row.name);
            assert!(page.contains(&format!("| {} |", row.name)), "{}", row.name);
        }
    }
}
