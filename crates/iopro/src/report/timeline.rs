//! Load of each layer over time, for the graph of the report.

use crate::store::Error;
use rusqlite::Connection;
use serde::Serialize;

/// Number of equal parts that the recording's time is divided into.
const BINS: u64 = 240;

/// The lanes of the graph from top to bottom: the name, and the SQL query of its intervals.
pub const LANES: [(&str, &str); 9] = [
    (
        "foreground calls",
        "SELECT begin_ns, end_ns FROM syscalls JOIN tasks USING (task_id)
         WHERE foreground AND syscalls.kind NOT IN ('kernel', 'unrecorded')",
    ),
    (
        "waits for asynchronous writes",
        "SELECT begin_ns, woken_ns FROM waits JOIN tasks USING (task_id)
         WHERE foreground AND class IN ('D_meta', 'D_data', 'D_sync', 'D_discard')",
    ),
    (
        "waits for the journal",
        "SELECT begin_ns, woken_ns FROM waits JOIN tasks USING (task_id)
         WHERE foreground AND class IN ('I_jhandle', 'I_jcommit')",
    ),
    (
        "throttling and reclaim",
        "SELECT begin_ns, woken_ns FROM waits JOIN tasks USING (task_id)
         WHERE foreground AND class IN ('dirty throttling', 'wbt', 'tag', 'reclaim')",
    ),
    (
        "its own I/O",
        "SELECT begin_ns, woken_ns FROM waits JOIN tasks USING (task_id)
         WHERE foreground AND class = 'service'",
    ),
    (
        "journal commits",
        "SELECT begin_ns, end_ns FROM commits WHERE begin_ns IS NOT NULL AND end_ns IS NOT NULL",
    ),
    (
        "requests queued",
        "SELECT queued_ns, issued_ns FROM requests WHERE queued_ns IS NOT NULL",
    ),
    (
        "reads in the device",
        "SELECT issued_ns, completed_ns FROM requests WHERE op = 'read' AND completed_ns IS NOT NULL",
    ),
    (
        "writes in the device",
        "SELECT issued_ns, completed_ns FROM requests WHERE op <> 'read' AND completed_ns IS NOT NULL",
    ),
];

/// Load of all lanes over the recording, in equal parts of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// Length of one part of the time, in nanoseconds.
    pub bin_ns: u64,
    /// One for each entry of [`LANES`], in its order.
    pub lanes: Vec<Lane>,
}

/// Load of one layer over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lane {
    /// Name of the lane, from [`LANES`].
    pub name: &'static str,
    /// Mean number of intervals at a time, for each part of the time.
    pub mean: Vec<f64>,
}

/// Computes the load of all lanes, of a recording that began at `begin_ns`.
pub fn timeline(database: &Connection, begin_ns: u64, duration_ns: u64) -> Result<Timeline, Error> {
    // The time after the last call and request is left out: nothing happens there.
    let last_ns: u64 = database.query_row(
        "SELECT max(coalesce((SELECT max(end_ns) FROM syscalls JOIN tasks USING (task_id)
                 WHERE foreground AND NOT unfinished), 0),
             coalesce((SELECT max(completed_ns) FROM requests), 0))",
        [],
        |row| row.get(0),
    )?;
    let duration_ns = duration_ns.min(last_ns.saturating_sub(begin_ns));
    let bin_ns = duration_ns.div_ceil(BINS).max(1);
    let mut lanes = Vec::new();
    for (name, query) in LANES {
        let mut statement = database.prepare(query)?;
        let mut rows = statement.query([])?;
        let mut busy_ns = vec![0u64; BINS as usize];
        while let Some(row) = rows.next()? {
            let (from, to): (u64, u64) = (row.get(0)?, row.get(1)?);
            add(
                &mut busy_ns,
                bin_ns,
                from.saturating_sub(begin_ns),
                to.saturating_sub(begin_ns),
            );
        }
        lanes.push(Lane {
            name,
            mean: busy_ns
                .iter()
                .map(|ns| *ns as f64 / bin_ns as f64)
                .collect(),
        });
    }
    Ok(Timeline { bin_ns, lanes })
}

/// Adds an interval to the parts of time that it overlaps, in nanoseconds.
fn add(busy_ns: &mut [u64], bin_ns: u64, from: u64, to: u64) {
    let (first, last) = (from / bin_ns, to.saturating_sub(1) / bin_ns);
    for (bin, ns) in busy_ns.iter_mut().enumerate().skip(first as usize) {
        let bin = bin as u64;
        if bin > last {
            break;
        }
        let (start, end) = (bin * bin_ns, (bin + 1) * bin_ns);
        *ns += to.min(end).saturating_sub(from.max(start));
    }
}

#[cfg(test)]
mod tests {
    use super::add;

    #[test]
    fn an_interval_is_in_all_parts_that_it_covers() {
        let mut busy = [0; 4];
        add(&mut busy, 10, 5, 25);
        assert_eq!(busy, [5, 10, 5, 0]);
        add(&mut busy, 10, 30, 30);
        add(&mut busy, 10, 35, 90);
        assert_eq!(busy, [5, 10, 5, 5]);
    }
}
