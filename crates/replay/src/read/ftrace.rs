//! Reader of the block layer's tracepoints as text: what ftrace, trace-cmd report, atrace and perf
//! script print. They differ in what is before the time, which is only used for the thread.
//!
//! ```text
//!  fio-697   [003] d..1  123.456789: block_rq_issue: 8,0 WS 4096 () 223490 + 8 none,0,0 [fio]
//!  fio   697 [003]       123.456789: block:block_rq_issue: 8,0 WS 4096 () 223490 + 8 [fio]
//! ```

use super::stages::{Stage, Stages, of_event};
use super::{Lines, Requests, Threads, decimal, seconds};

/// Tracepoints that tell a request, with its stage; None for one that the driver puts back.
const TRACEPOINTS: [(&str, Option<Stage>); 5] = [
    ("block_rq_issue: ", Some(Stage::Issued)),
    ("block_bio_queue: ", Some(Stage::Queued)),
    ("block_rq_complete: ", Some(Stage::Completed)),
    ("block_bio_complete: ", Some(Stage::Completed)),
    ("block_rq_requeue: ", None),
];

/// First lines of what ftrace and atrace print.
const HEADERS: [&str; 3] = ["# tracer:", "TRACE:", "capturing trace..."];

/// Whether the line is an event of the block layer, or the first one of such a trace.
pub fn is_line(line: &str) -> bool {
    HEADERS.iter().any(|it| line.starts_with(it)) || event(line).is_some()
}

/// A tracepoint's line: what is before the time, the time, the stage and the arguments.
struct Event<'a> {
    head: &'a str,
    time_ns: u64,
    stage: Option<Stage>,
    arguments: &'a str,
}

fn event(line: &str) -> Option<Event<'_>> {
    let at = line.find("block_")?;
    let (stage, arguments) = TRACEPOINTS
        .iter()
        .find_map(|(name, stage)| Some((*stage, line[at..].strip_prefix(name)?)))?;
    let before = line[..at].trim_end();
    let before = before.strip_suffix("block:").unwrap_or(before).trim_end();
    let (head, time) = before.strip_suffix(':')?.rsplit_once(char::is_whitespace)?;
    Some(Event {
        head,
        time_ns: seconds(time)?,
        stage,
        arguments,
    })
}

/// Number of events that the tracer says it lost: `CPU:2 [LOST 17 EVENTS]`.
fn lost(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("LOST ")?;
    decimal(rest.split_once(" EVENTS")?.0)
}

pub struct Reader {
    threads: Threads,
    stages: Stages,
}

impl Reader {
    pub fn of(device: Option<&str>) -> Self {
        Reader {
            threads: Threads::default(),
            stages: Stages::of(device),
        }
    }
}

impl Lines for Reader {
    fn take(&mut self, line: &str, requests: &mut Requests) -> Result<(), String> {
        if let Some(count) = lost(line) {
            // Which events they were is not known.
            let what = "lost by the tracer before they were written";
            requests.account.leave_out(what, count, count);
            return Ok(());
        }
        let Some(event) = event(line) else {
            let is_cut = line.contains(": block_rq_issue:");
            return match is_cut {
                true => Err("it has no time".to_owned()),
                // Another tracepoint, or a header.
                false => Ok(()),
            };
        };
        let cut = || "it ends before the name of a process: the trace is cut there".to_owned();
        let arguments = event.arguments.trim_end();
        let (arguments, process) = match event.stage {
            // Perfetto's text of this event lacks the bracket at the end.
            None => (arguments.rsplit_once(" [").map_or(arguments, |it| it.0), ""),
            Some(_) => arguments
                .strip_suffix(']')
                .and_then(|it| it.rsplit_once(" ["))
                .ok_or_else(cut)?,
        };
        let mut fields = arguments.split_ascii_whitespace();
        let device = fields.next().ok_or_else(cut)?;
        let rwbs = fields.next().ok_or_else(cut)?;
        let extent = extent(arguments)?;
        let lane = match event.stage {
            None | Some(Stage::Completed) => 0,
            _ => self.threads.number(thread(event.head), process),
        };
        let request = of_event(event.time_ns, rwbs, extent, lane)?;
        match event.stage {
            Some(stage) => self.stages.take(device, stage, request),
            None => self.stages.put_back(device, request),
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

/// First sector and number of sectors: the numbers around the last `+`. The bytes of a passthrough
/// request are in brackets before it, and it has no sectors.
fn extent(arguments: &str) -> Result<Option<(u64, u64)>, String> {
    let Some((before, after)) = arguments.rsplit_once(" + ") else {
        return Err("it has no SECTOR + SECTORS".to_owned());
    };
    let first = before.rsplit(' ').next().and_then(decimal);
    let sectors = after.split_ascii_whitespace().next().and_then(decimal);
    let Some((first, sectors)) = first.zip(sectors) else {
        return Err("its SECTOR + SECTORS are no numbers".to_owned());
    };
    // A flush has no sector: all bits of it are set, or it is 0.
    let is_nowhere = first >= u64::MAX / 512;
    Ok((!is_nowhere).then_some((first, sectors)))
}

/// The thread, before the CPU in brackets: `NAME-TID`, `NAME TID` or `NAME PID/TID`.
fn thread(head: &str) -> &str {
    let head = head.rsplit_once(" [").map_or(head, |(thread, _)| thread);
    // atrace and trace-cmd have the process in brackets after it.
    let head = head.split_once(" (").map_or(head, |(thread, _)| thread);
    head.trim()
}
