//! Reader of what biosnoop prints (bcc's tools and libbpf-tools). The columns are found by their
//! names:
//!
//! ```text
//! TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)
//! 0.000004    supervise      1950   xvda1   W 13092560   4096      0.74
//! ```
//!
//! The time is that of the completion, so the latency is subtracted.

use super::stages::{Request, Stage, Stages};
use super::{Lines, Requests, SECTOR_BYTES, Threads, decimal, of_bytes, seconds};
use crate::Kind;

/// Whether the line names biosnoop's columns.
pub fn is_header(line: &str) -> bool {
    let mut fields = line.split_ascii_whitespace();
    let time = fields.next().is_some_and(|it| it.starts_with("TIME("));
    time && fields.next() == Some("COMM") && line.contains("DISK")
}

/// Stands for the disk of lines that name none; they are no reason to ask which disk is meant.
const NO_DISK: &str = "no disk";

/// biosnoop's first words.
pub fn is_remark(line: &str) -> bool {
    line.starts_with("Tracing block ")
}

/// Columns after the name of the process, which may have blanks in it: their index from the end.
struct Columns {
    count: usize,
    pid: usize,
    disk: usize,
    kind: usize,
    sector: usize,
    bytes: usize,
    latency: Option<usize>,
}

impl Columns {
    fn of(header: &str) -> Result<Self, String> {
        let names: Vec<&str> = header.split_ascii_whitespace().collect();
        let find = |name: &str| names.iter().position(|it| *it == name);
        let need = |name: &str| {
            let at = find(name).map(|at| names.len() - 1 - at);
            at.ok_or_else(|| {
                format!("its columns have no {name}: trace with bcc's or libbpf's biosnoop")
            })
        };
        if names.first() != Some(&"TIME(s)") {
            return Err("its time is not in seconds (TIME(s))".to_owned());
        }
        Ok(Columns {
            count: names.len(),
            pid: need("PID")?,
            disk: need("DISK")?,
            kind: need("T")?,
            sector: need("SECTOR")?,
            bytes: need("BYTES")?,
            latency: need("LAT(ms)").ok(),
        })
    }
}

pub struct Reader {
    columns: Option<Columns>,
    threads: Threads,
    stages: Stages,
}

impl Reader {
    pub fn of(device: Option<&str>) -> Self {
        Reader {
            columns: None,
            threads: Threads::default(),
            stages: Stages::of(device),
        }
    }

    fn event(&mut self, line: &str) -> Result<(), String> {
        let Some(columns) = &self.columns else {
            return Err("its columns are not named before it".to_owned());
        };
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if fields.len() + 1 == columns.count {
            // The column of the disk is empty: a flush, or a command of a program to a drive.
            return match milliseconds(fields[fields.len() - 1]) {
                Some(_) => {
                    let request = Request::LeftOut("requests of no disk", false);
                    self.stages.take(NO_DISK, Stage::Completed, request)
                }
                None => Err("it has no latency: the trace is cut there".to_owned()),
            };
        }
        if fields.len() < columns.count {
            return Err(format!(
                "it has {} of {} fields",
                fields.len(),
                columns.count
            ));
        }
        let field = |from_end: usize| fields[fields.len() - 1 - from_end];
        let number = |from_end: usize| {
            let text = field(from_end);
            decimal(text).ok_or_else(|| format!("'{text}' is no number"))
        };
        let ended_ns = seconds(fields[0]).ok_or("its time is no number of seconds")?;
        let took_ns = match columns.latency {
            Some(at) => milliseconds(field(at)).ok_or("its latency is no number")?,
            None => 0,
        };
        let kind = match field(columns.kind).bytes().next() {
            Some(b'R') => Some(Kind::Read),
            Some(b'W') => Some(Kind::Write),
            Some(b'D') => Some(Kind::Discard),
            Some(b'F') => Some(Kind::Flush),
            _ => None,
        };
        let name = fields[1..fields.len() - 1 - columns.pid].join(" ");
        let lane = self.threads.number(field(columns.pid), &name);
        let (sector, bytes) = (number(columns.sector)?, number(columns.bytes)?);
        let time_ns = ended_ns.saturating_sub(took_ns);
        let request = match kind {
            Some(Kind::Flush) => Request::Played(of_bytes(time_ns, Kind::Flush, 0, 0, lane)?),
            Some(_) if bytes == 0 => Request::LeftOut("requests that move nothing", false),
            Some(kind) => {
                let offset = sector.checked_mul(SECTOR_BYTES);
                let offset = offset.ok_or("its sectors are beyond any device")?;
                Request::Played(of_bytes(time_ns, kind, offset, bytes, lane)?)
            }
            None => Request::LeftOut("requests of another kind", true),
        };
        self.stages
            .take(field(columns.disk), Stage::Issued, request)
    }
}

/// `0.74` ms → 740,000 ns.
fn milliseconds(text: &str) -> Option<u64> {
    seconds(text).map(|it| it / 1000)
}

impl Lines for Reader {
    fn take(&mut self, line: &str, _requests: &mut Requests) -> Result<(), String> {
        if is_remark(line) {
            return Ok(());
        }
        if is_header(line) {
            self.columns = Some(Columns::of(line)?);
            return Ok(());
        }
        self.event(line)
    }

    fn held(&self) -> usize {
        self.stages.held()
    }

    fn finish(&mut self, requests: &mut Requests) -> Result<(), String> {
        let before = requests.account.read_events;
        self.stages.finish(requests)?;
        if requests.account.read_events > before {
            let note = "biosnoop tells when a request ended: it is played at the time that its latency gives for its issue";
            requests.account.note(note);
        }
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        self.threads.names()
    }
}
