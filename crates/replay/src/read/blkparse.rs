//! Reader of the text that blkparse prints by default (blkparse(1), "DEFAULT FORMAT"):
//!
//! ```text
//! 8,0    3        1     0.000000000   697  D  WS 223490 + 8 [kjournald]
//! ```
//!
//! The operations are the D events: requests that were sent to the driver. Without any, they are
//! the Q events, and without those the C events. The summary at the end, and what blkparse prints
//! with -q, are passed over.

use super::stages::{Stage, Stages, of_event};
use super::{Lines, Requests, Threads, decimal, seconds};

/// Number of fields before those of the event's kind.
const FIELDS: usize = 7;

/// Whether the line begins as an event does: `MAJOR,MINOR CPU SEQUENCE SECONDS …`.
pub fn is_event(line: &str) -> bool {
    begin(&mut line.split_ascii_whitespace()).is_some()
}

/// The device and the time, after which `fields` goes on.
fn begin<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Option<(&'a str, u64)> {
    let device = fields.next()?;
    let comma = device.bytes().position(|it| it == b',')?;
    decimal(&device[..comma])?;
    decimal(&device[comma + 1..])?;
    decimal(fields.next()?)?;
    decimal(fields.next()?)?;
    Some((device, seconds(fields.next()?)?))
}

/// A line that blkparse prints among the events.
pub fn is_remark(line: &str) -> bool {
    line.starts_with("Input file ") && line.ends_with(" added")
}

pub struct Reader {
    threads: Threads,
    /// The summary at the end has begun.
    over: bool,
    stages: Stages,
}

impl Reader {
    pub fn of(device: Option<&str>) -> Self {
        Reader {
            threads: Threads::default(),
            over: false,
            stages: Stages::of(device),
        }
    }

    fn event(&mut self, line: &str) -> Result<(), String> {
        let mut fields = line.split_ascii_whitespace();
        let Some((device, time_ns)) = begin(&mut fields) else {
            // The summary begins with `CPU0 (8,0):` or `Total (8,0):`.
            self.over = line.ends_with("):");
            return match self.over || is_remark(line) {
                true => Ok(()),
                false => Err("it is neither an event nor the summary".to_owned()),
            };
        };
        let missing = || format!("it has fewer than {FIELDS} fields: the trace is cut there");
        let pid = fields.next().ok_or_else(missing)?;
        let action = fields.next().ok_or_else(missing)?;
        let stage = match action {
            "D" => Some(Stage::Issued),
            "Q" => Some(Stage::Queued),
            "C" => Some(Stage::Completed),
            "R" => None,
            _ => return Ok(()),
        };
        let rwbs = fields.next().ok_or_else(missing)?;
        if !line.ends_with(']') {
            return Err("it ends before the name of a process: the trace is cut there".to_owned());
        }
        let extent = extent(&mut fields)?;
        let lane = match stage {
            None | Some(Stage::Completed) => 0,
            _ => self.threads.number_of(pid, || process(line)),
        };
        let request = of_event(time_ns, rwbs, extent, lane)?;
        match stage {
            Some(stage) => self.stages.take(device, stage, request),
            None => self.stages.put_back(device, request),
        }
    }
}

impl Lines for Reader {
    fn take(&mut self, line: &str, _requests: &mut Requests) -> Result<(), String> {
        match self.over {
            true => Ok(()),
            false => self.event(line),
        }
    }

    fn held(&self) -> usize {
        self.stages.held()
    }

    fn finish(&mut self, requests: &mut Requests) -> Result<(), String> {
        self.stages.finish(requests)
    }

    fn names(&self) -> Vec<String> {
        self.threads.names()
    }
}

/// First sector and number of sectors, as in `223490 + 8`; None for a passthrough request, which has
/// its bytes there.
fn extent<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Result<Option<(u64, u64)>, String> {
    let (Some(first), Some("+")) = (fields.next(), fields.next()) else {
        return Ok(None);
    };
    let sectors = fields.next().and_then(decimal);
    match decimal(first).zip(sectors) {
        Some(extent) => Ok(Some(extent)),
        None => Err("its SECTOR + SECTORS are no numbers".to_owned()),
    }
}

/// The name in the brackets at the end.
fn process(line: &str) -> &str {
    let inner = line.strip_suffix(']').unwrap_or(line);
    let open = inner.bytes().rposition(|it| it == b'[');
    open.map_or("", |open| &inner[open + 1..])
}
