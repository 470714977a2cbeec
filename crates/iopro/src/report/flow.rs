//! Requests in the queue and in the device over time, by owner.

use crate::store::Error;
use rusqlite::Connection;
use std::collections::HashMap;
use std::ops::Range;

/// Requests of one owner over time, with one value for each interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// Mean number of requests that waited for the device, from the time their first bio came to
    /// the block layer.
    pub queued: Vec<f64>,
    /// Mean number of requests that the device had.
    pub in_device: Vec<f64>,
    /// Bytes read or written, counted in the interval in which their request ended.
    pub completed_bytes: Vec<u64>,
}

impl Flow {
    fn new(intervals: usize) -> Self {
        Flow {
            queued: vec![0.0; intervals],
            in_device: vec![0.0; intervals],
            completed_bytes: vec![0; intervals],
        }
    }

    fn add(&mut self, grid: &Grid, request: &Times) {
        grid.add(&mut self.queued, request.queued_ns, request.issued_ns);
        let done_ns = request.completed_ns.unwrap_or(u64::MAX);
        grid.add(&mut self.in_device, request.issued_ns, done_ns);
        if let Some(interval) = grid.interval_of(done_ns) {
            self.completed_bytes[interval] += request.bytes;
        }
    }
}

/// Times of a request; `completed_ns` is None if it was not done when the recording ended.
struct Times {
    queued_ns: u64,
    issued_ns: u64,
    completed_ns: Option<u64>,
    bytes: u64,
}

/// Intervals of equal length.
struct Grid {
    begin_ns: u64,
    interval_ns: u64,
    intervals: usize,
}

impl Grid {
    fn interval_of(&self, time_ns: u64) -> Option<usize> {
        let interval = (time_ns.checked_sub(self.begin_ns)? / self.interval_ns) as usize;
        (interval < self.intervals).then_some(interval)
    }

    /// Adds to each interval the share of it that `from_ns` to `to_ns` covers.
    fn add(&self, values: &mut [f64], from_ns: u64, to_ns: u64) {
        let first = from_ns.saturating_sub(self.begin_ns) / self.interval_ns;
        for (number, value) in values.iter_mut().enumerate().skip(first as usize) {
            let start_ns = self.begin_ns + number as u64 * self.interval_ns;
            let (from_ns, to_ns) = (
                from_ns.max(start_ns),
                to_ns.min(start_ns + self.interval_ns),
            );
            if to_ns <= from_ns {
                return;
            }
            *value += (to_ns - from_ns) as f64 / self.interval_ns as f64;
        }
    }
}

/// The flow of each owner, and last the flow of requests without an owner. A request with a page of
/// a file belongs to the first owner for whose path `owner_of` gives a number below `owners`.
/// Journal, metadata and discards have no such file.
pub fn flows(
    database: &Connection,
    (window_ns, interval_ns): (Range<u64>, u64),
    owners: usize,
    owner_of: &dyn Fn(&str) -> Option<usize>,
) -> Result<Vec<Flow>, Error> {
    let length_ns = window_ns.end.saturating_sub(window_ns.start);
    let grid = Grid {
        begin_ns: window_ns.start,
        interval_ns: interval_ns.max(1),
        intervals: length_ns.div_ceil(interval_ns.max(1)) as usize,
    };
    let owner = owners_of_requests(database, owner_of)?;
    let mut flows = vec![Flow::new(grid.intervals); owners + 1];
    let mut statement = database.prepare(
        "SELECT request_id, coalesce(queued_ns, inserted_ns, issued_ns), issued_ns, completed_ns,
             CASE WHEN op IN ('read', 'write') THEN bytes ELSE 0 END FROM requests ORDER BY request_id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let request: u64 = row.get(0)?;
        let times = Times {
            queued_ns: row.get(1)?,
            issued_ns: row.get(2)?,
            completed_ns: row.get(3)?,
            bytes: row.get(4)?,
        };
        let owner = owner.get(&request).copied().unwrap_or(owners);
        flows[owner.min(owners)].add(&grid, &times);
    }
    Ok(flows)
}

fn owners_of_requests(
    database: &Connection,
    owner_of: &dyn Fn(&str) -> Option<usize>,
) -> Result<HashMap<u64, usize>, Error> {
    let mut statement = database.prepare("SELECT file_id, path FROM files")?;
    let files = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<HashMap<u64, String>, _>>()?;
    let mut statement =
        database.prepare("SELECT request_id, file_id FROM segments WHERE file_id IS NOT NULL")?;
    let mut rows = statement.query([])?;
    let mut owners = HashMap::new();
    while let Some(row) = rows.next()? {
        let (request, file): (u64, u64) = (row.get(0)?, row.get(1)?);
        if let Some(owner) = files.get(&file).and_then(|path| owner_of(path)) {
            let first = owners.entry(request).or_insert(owner);
            *first = owner.min(*first);
        }
    }
    Ok(owners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Op;
    use crate::store::Store;
    use crate::tables::{File, Request, Segment};

    fn store() -> Store {
        let mut store = Store::temporary().unwrap();
        for (file_id, path) in [(1, "/mnt/front/a"), (2, "/mnt/behind")] {
            let path = path.to_owned();
            let file = File {
                file_id,
                path,
                ..File::default()
            };
            store.add(&file).unwrap();
        }
        for (request_id, times, file_ids) in [
            (1, (0, 10, Some(30)), &[2, 1][..]),
            (2, (5, 20, Some(25)), &[2]),
            (3, (12, 12, Some(18)), &[]),
            (4, (28, 35, None), &[2]),
        ] {
            let (queued_ns, issued_ns, completed_ns) = times;
            let request = Request {
                request_id,
                queued_ns: Some(queued_ns),
                issued_ns,
                completed_ns,
                op: Op::Write,
                bytes: 4096,
                ..Request::default()
            };
            store.add(&request).unwrap();
            for file_id in file_ids {
                let segment = Segment {
                    request_id,
                    file_id: Some(*file_id),
                    ..Segment::default()
                };
                store.add(&segment).unwrap();
            }
        }
        store.finish().unwrap();
        store
    }

    #[test]
    fn a_request_is_in_the_queue_until_it_is_in_the_device() {
        let owner = |path: &str| match path {
            "/mnt/behind" => Some(1),
            _ => Some(0),
        };
        let flows = flows(store().database(), (5..40, 10), 2, &owner).unwrap();
        let [front, behind, nobody] = &flows[..] else {
            panic!("{flows:?}");
        };
        assert_eq!(front.queued, [0.5, 0.0, 0.0, 0.0]);
        assert_eq!(front.in_device, [0.5, 1.0, 0.5, 0.0]);
        assert_eq!(front.completed_bytes, [0, 0, 4096, 0]);
        assert_eq!(behind.queued, [1.0, 0.5, 0.7, 0.0]);
        assert_eq!(behind.in_device, [0.0, 0.5, 0.0, 1.0]);
        assert_eq!(nobody.in_device, [0.3, 0.3, 0.0, 0.0]);
    }
}
