//! What disks did, counted as requests end.

use crate::event::{Dev, Op};
use crate::tables;
use std::collections::BTreeMap;

/// Work of a disk in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Number of completed reads and writes.
    pub requests: u64,
    /// Sum of their times from queue to completion, in nanoseconds.
    pub request_ns: u64,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub written_bytes: u64,
    /// Nanoseconds in which the driver had one of them. It is less if a request began in an earlier gap
    /// and ended later than others.
    pub busy_ns: u64,
}

/// Work of all disks since it was asked for last.
#[derive(Debug, Default)]
pub struct Uses {
    disks: BTreeMap<Dev, Use>,
    /// Until when a disk's busy time is counted.
    busy_until_ns: BTreeMap<Dev, u64>,
}

impl Uses {
    /// Adds a request that is done.
    pub fn add(&mut self, dev: Dev, row: &tables::Request) {
        let Some(completed_ns) = row.completed_ns else {
            return;
        };
        let disk = self.disks.entry(dev).or_default();
        match row.op {
            Op::Read => disk.read_bytes += row.bytes,
            Op::Write => disk.written_bytes += row.bytes,
            _ => {}
        }
        if matches!(row.op, Op::Read | Op::Write) {
            disk.requests += 1;
            let queued_ns = row.queued_ns.unwrap_or(row.issued_ns);
            disk.request_ns += completed_ns.saturating_sub(queued_ns);
        }
        let until_ns = self.busy_until_ns.entry(dev).or_default();
        disk.busy_ns += completed_ns.saturating_sub(row.issued_ns.max(*until_ns));
        *until_ns = completed_ns.max(*until_ns);
    }

    /// The work since this was called last.
    pub fn take(&mut self) -> BTreeMap<Dev, Use> {
        std::mem::take(&mut self.disks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_once_make_a_disk_busy_once() {
        let mut uses = Uses::default();
        let request = |op, issued_ns, completed_ns| tables::Request {
            op,
            bytes: 4096,
            queued_ns: Some(issued_ns - 5),
            issued_ns,
            completed_ns: Some(completed_ns),
            ..tables::Request::default()
        };
        for row in [
            request(Op::Read, 10, 20),
            request(Op::Write, 15, 40),
            request(Op::Flush, 50, 60),
        ] {
            uses.add(Dev(1), &row);
        }
        let used = Use {
            requests: 2,
            request_ns: 15 + 30,
            read_bytes: 4096,
            written_bytes: 4096,
            busy_ns: 40,
        };
        assert_eq!(uses.take(), [(Dev(1), used)].into());
        assert!(uses.take().is_empty());
    }
}
