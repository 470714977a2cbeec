//! Tracepoints of the scheduler: dispatched requests, their times and their ages.

use crate::failure::require;
use crate::test_bed::{read, write};
use crate::{Failure, Outcome};
use std::collections::BTreeMap;
use std::ops::Range;

/// Where the guest has tracefs.
pub(crate) const TRACEFS: &str = "/sys/kernel/tracing";
const BUFFER_KIB: &str = "16384";

/// Classes in the order of the class table, the most urgent first, named as in the tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    FgRead,
    FgWrite,
    SyncRead,
    SyncWrite,
    Boosted,
    Visible1,
    Visible2,
    Visible3,
    FgAsync,
    BgSync,
    Long,
    Bulk,
    Async,
    Discard,
}

const CLASSES: [(&str, Class); 14] = [
    ("fg_read", Class::FgRead),
    ("fg_write", Class::FgWrite),
    ("sync_read", Class::SyncRead),
    ("sync_write", Class::SyncWrite),
    ("boosted", Class::Boosted),
    ("visible_1", Class::Visible1),
    ("visible_2", Class::Visible2),
    ("visible_3", Class::Visible3),
    ("fg_async", Class::FgAsync),
    ("bg_sync", Class::BgSync),
    ("long", Class::Long),
    ("bulk", Class::Bulk),
    ("async", Class::Async),
    ("discard", Class::Discard),
];

/// A request that was dispatched to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dispatch {
    pub(crate) class: Class,
    /// Time of the dispatch, in microseconds since boot.
    pub(crate) at_us: u64,
    /// Time since the insertion, in microseconds.
    pub(crate) age_us: u64,
    pub(crate) bytes: u64,
    pub(crate) sector: u64,
    /// Its line in the trace, and that of its insertion. A request that grew at its front has
    /// another sector than when it was inserted, and no such line.
    pub(crate) line: usize,
    pub(crate) inserted_line: Option<usize>,
}

/// Traced events in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    /// Events of the tracepoint `frontrow_dispatch`, in the order of the trace.
    pub(crate) dispatches: Vec<Dispatch>,
    /// Sectors of `block_rq_insert` and `block_rq_issue` (blktrace's I and D), of requests with
    /// data.
    pub(crate) inserted_sectors: Vec<u64>,
    pub(crate) issued_sectors: Vec<u64>,
    /// Ranges of sectors of the reads in `block_rq_issue`.
    pub(crate) reads: Vec<Range<u64>>,
    /// Lines of `frontrow_wait` events with a promotion.
    pub(crate) promotion_lines: Vec<usize>,
}

/// Tracing, which is switched off on drop.
pub(crate) struct Tracing;

const EVENTS: [&str; 4] = [
    "frontrow/frontrow_dispatch",
    "frontrow/frontrow_wait",
    "block/block_rq_insert",
    "block/block_rq_issue",
];

impl Tracing {
    pub(crate) fn start() -> Outcome<Tracing> {
        write(&format!("{TRACEFS}/buffer_size_kb"), BUFFER_KIB)?;
        write(&format!("{TRACEFS}/trace"), "")?;
        let tracing = Tracing;
        tracing.switch("1")?;
        Ok(tracing)
    }

    fn switch(&self, value: &str) -> Outcome<()> {
        EVENTS
            .iter()
            .try_for_each(|event| write(&format!("{TRACEFS}/events/{event}/enable"), value))
    }

    /// Ends the tracing and returns all events.
    pub(crate) fn finish(self) -> Outcome<Events> {
        self.switch("0")?;
        let stats = read(&format!("{TRACEFS}/per_cpu/cpu0/stats"))?;
        let lost = |name: &str| {
            stats
                .lines()
                .any(|line| line.trim() == format!("{name}: 0"))
        };
        require(lost("overrun"), || {
            format!("more events came than the trace holds: {stats}")
        })?;
        parse(&read(&format!("{TRACEFS}/trace"))?)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // The module may have been unloaded, and its events with it.
        let _ = self.switch("0");
    }
}

/// Parses lines such as `TASK-PID [CPU] FLAGS SECONDS.MICROSECONDS: EVENT: TEXT`.
fn parse(text: &str) -> Outcome<Events> {
    let mut events = Events::default();
    let mut inserted = BTreeMap::new();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for (number, line) in lines.enumerate() {
        let damaged = || Failure::new(format!("the trace has a line '{line}'"));
        take(&mut events, &mut inserted, number, line).ok_or_else(damaged)?;
    }
    Ok(events)
}

/// Adds the event of a line. `inserted` has the lines, by sector, of insertions without a dispatch
/// so far.
fn take(
    events: &mut Events,
    inserted: &mut BTreeMap<u64, usize>,
    number: usize,
    line: &str,
) -> Option<()> {
    let mut parts = line.splitn(3, ": ");
    let at_us = microseconds(parts.next()?.rsplit(' ').next()?)?;
    let (event, text) = (parts.next()?, parts.next()?);
    match event {
        "frontrow_dispatch" => {
            let mut dispatch = dispatch(at_us, number, text)?;
            dispatch.inserted_line = inserted.remove(&dispatch.sector);
            events.dispatches.push(dispatch);
        }
        "frontrow_wait" if !text.ends_with("promoted=0") => events.promotion_lines.push(number),
        "block_rq_insert" => {
            let sector = sectors_of_data(text)?.map(|it| it.start);
            events.inserted_sectors.extend(sector);
            inserted.extend(sector.map(|it| (it, number)));
        }
        "block_rq_issue" => {
            let sectors = sectors_of_data(text)?;
            events
                .issued_sectors
                .extend(sectors.as_ref().map(|it| it.start));
            events.reads.extend(sectors.filter(|_| text.contains(" R")));
        }
        _ => {}
    }
    Some(())
}

fn microseconds(text: &str) -> Option<u64> {
    let (seconds, microseconds) = text.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + microseconds.parse::<u64>().ok()?)
}

/// Parses `MAJOR,MINOR CLASS sector=S bytes=B age_ns=A`.
fn dispatch(at_us: u64, line: usize, text: &str) -> Option<Dispatch> {
    let name = text.split(' ').nth(1)?;
    let (_, class) = CLASSES.iter().find(|(it, _)| *it == name)?;
    let value = |key: &str| {
        let field = text.split(' ').find_map(|field| field.strip_prefix(key));
        field?.parse::<u64>().ok()
    };
    Some(Dispatch {
        class: *class,
        at_us,
        age_us: value("age_ns=")? / 1000,
        bytes: value("bytes=")?,
        sector: value("sector=")?,
        line,
        inserted_line: None,
    })
}

/// Parses `MAJOR,MINOR RWBS BYTES () SECTOR + SECTORS …`. The inner value is None for a request
/// without sectors, such as a flush.
fn sectors_of_data(text: &str) -> Option<Option<Range<u64>>> {
    let (before, after) = text.split_once(" + ")?;
    let count: u64 = after.split(' ').next()?.parse().ok()?;
    let first: Option<u64> = before.rsplit(' ').next()?.parse().ok();
    Some(first.filter(|_| count > 0).map(|it| it..it + count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_the_kernel_prints_them() {
        let text = "\
# tracer: nop
#
   kworker/u4:1-30      [000] .....     3.229516: block_rq_insert: 252,0 W 131072 () 81920 + 256 none,0,0 [kworker/u4:1]
   kworker/0:1H-45      [000] .....     3.250017: frontrow_dispatch: 252,0 async sector=81920 bytes=131072 age_ns=20500
   kworker/0:1H-45      [000] .....     3.250018: block_rq_issue: 252,0 W 131072 () 81920 + 256 none,0,0 [kworker/0:1H]
          init-1       [000] d..2.     3.300000: frontrow_wait: 252,0 data boosted promoted=2
          init-1       [000] d..2.     3.300002: frontrow_wait: 252,0 data in_device promoted=0
          init-1       [000] .....     3.300100: block_rq_insert: 252,0 FF 0 () 0 + 0 [init]
";
        let events = parse(text).unwrap();
        let only = events.dispatches[0];
        assert_eq!(only.class, Class::Async);
        assert_eq!((only.at_us, only.age_us), (3_250_017, 20));
        assert_eq!((only.line, only.inserted_line), (1, Some(0)));
        assert_eq!((only.sector, only.bytes), (81920, 131_072));
        assert_eq!(events.issued_sectors, [81920]);
        assert_eq!(events.inserted_sectors, [81920]);
        assert_eq!(events.promotion_lines, [3]);
        assert!(parse("what is this\n").is_err());
    }
}
