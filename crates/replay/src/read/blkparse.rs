//! Reader of the text that blkparse prints by default (blkparse(1), "DEFAULT FORMAT"):
//!
//! ```text
//! 8,0    3        1     0.000000000   697  D  WS 223490 + 8 [kjournald]
//! ```
//!
//! The operations are the D events: requests that were sent to the driver. Their thread is the
//! process that is printed with them. The summary at the end is ignored.

use super::{Lines, Threads, of_sectors, seconds};
use crate::{Kind, Operation};

/// Number of fields before those of the event's kind.
const FIELDS: usize = 7;

/// Whether the line begins as an event does: `MAJOR,MINOR CPU SEQUENCE SECONDS …`.
pub fn is_event(line: &str) -> bool {
    let mut fields = line.split_ascii_whitespace();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let device = fields.next().and_then(|it| it.split_once(','));
    let is_device = device.is_some_and(|(major, minor)| is_number(major) && is_number(minor));
    is_device
        && fields.next().is_some_and(is_number)
        && fields.next().is_some_and(is_number)
        && fields.next().is_some_and(|it| seconds(it).is_some())
}

#[derive(Default)]
pub struct Reader {
    threads: Threads,
    /// The summary at the end has begun.
    over: bool,
    device: Option<String>,
}

impl Lines for Reader {
    fn take(&mut self, line: &str) -> Result<Option<Operation>, String> {
        if self.over {
            return Ok(None);
        }
        // The summary begins with `CPU0 (8,0):` or `Total (8,0):`.
        if line.ends_with("):") && !is_event(line) {
            self.over = true;
            return Ok(None);
        }
        if !is_event(line) {
            return Err("it is neither an event nor the summary".to_owned());
        }
        self.event(line)
    }
}

impl Reader {
    fn event(&mut self, line: &str) -> Result<Option<Operation>, String> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [device, _cpu, _sequence, time, pid, action, what, rest @ ..] = fields.as_slice()
        else {
            return Err(format!("it has {} of {FIELDS} fields", fields.len()));
        };
        if *action != "D" {
            return Ok(None);
        }
        let Some(kind) = kind(what) else {
            return Ok(None);
        };
        match &self.device {
            Some(first) if first != device => {
                return Err(format!(
                    "it is of device {device}, and the trace began with {first}: \
                     let blkparse print one device"
                ));
            }
            Some(_) => {}
            None => self.device = Some((*device).to_owned()),
        }
        let time_ns = seconds(time).ok_or("its time is no number of seconds")?;
        let lane = self.threads.number(pid);
        // The flush machinery has split requests by now (block/blk-flush.c). A request that asks
        // for a flush and has no sector is only a flush.
        match (kind, extent(rest)) {
            (Kind::Flush, _) => of_sectors(time_ns, kind, 0, 0, lane).map(Some),
            (_, Some((sector, sectors))) => {
                of_sectors(time_ns, kind, sector, sectors, lane).map(Some)
            }
            (_, None) if what.starts_with('F') => {
                of_sectors(time_ns, Kind::Flush, 0, 0, lane).map(Some)
            }
            (_, None) => Err("it has no SECTOR + SECTORS".to_owned()),
        }
    }
}

/// First sector and number of sectors, as in `223490 + 8`.
fn extent(fields: &[&str]) -> Option<(u64, u64)> {
    match fields {
        [sector, "+", sectors, ..] => Some((sector.parse().ok()?, sectors.parse().ok()?)),
        _ => None,
    }
}

/// Kind of operation in an RWBS field (`blk_fill_rwbs` in kernel/trace/blktrace.c). An F in the
/// first place is a flush; one after the direction is FUA. `None` for a request that moves no data.
fn kind(rwbs: &str) -> Option<Kind> {
    let rest = rwbs.strip_prefix('F').unwrap_or(rwbs);
    match rest.chars().next() {
        Some('R') => Some(Kind::Read),
        Some('W') => Some(Kind::Write),
        Some('D') => Some(Kind::Discard),
        _ if rwbs.starts_with('F') => Some(Kind::Flush),
        _ => None,
    }
}
