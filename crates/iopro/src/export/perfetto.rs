//! Perfetto's trace.
//!
//! Each thread has a track with its calls and waits, below its process. Each disk has tracks for
//! the queued requests, the requests in the device, and the commits of the journals. Arrows lead
//! from a call to the requests that carried its data. They also lead to a call from requests that
//! had fetched its data before it began.
//!
//! Slices on one track have to be nested or apart. Requests overlap, so each is put on the first
//! free one of several tracks of the same name.

use super::perfetto_schema::{
    DebugAnnotation, ProcessDescriptor, SLICE_BEGIN, SLICE_END, ThreadDescriptor, TracePacket,
    TrackDescriptor, TrackEvent,
};
use super::{Error, cannot_write};
use crate::store::Store;
use rusqlite::{CachedStatement, Connection, Row, params};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

const SEQUENCE: u32 = 1;
/// Most arrows at one slice: more of them hide the graph.
const MOST_ARROWS: u64 = 64;

/// Kinds of slices, as in the temporary table `slices`.
const CALL: i64 = 0;
const WAIT: i64 = 1;
const QUEUED: i64 = 2;
const DEVICE: i64 = 3;
const COMMIT: i64 = 4;
const RING: i64 = 5;

/// Slices that may overlap. The SQL query gives a group, a number, a begin and an end, in the order
/// of the begins. Then come the kind and the name of the tracks.
const OVERLAPPING: [(&str, i64, &str); 4] = [
    (
        "SELECT device_id, request_id, queued_ns, max(issued_ns, queued_ns + 1) FROM requests
         WHERE queued_ns IS NOT NULL ORDER BY 3",
        QUEUED,
        "block: queued",
    ),
    (
        "SELECT device_id, request_id, issued_ns, max(completed_ns, issued_ns + 1) FROM requests
         WHERE completed_ns IS NOT NULL ORDER BY 3",
        DEVICE,
        "driver and flash",
    ),
    (
        "SELECT device_id, commit_id, begin_ns, max(end_ns, begin_ns + 1) FROM commits
         WHERE begin_ns IS NOT NULL AND end_ns IS NOT NULL ORDER BY 3",
        COMMIT,
        "file system: journal commits",
    ),
    (
        "SELECT 0, syscall_id, begin_ns, max(end_ns, begin_ns + 1) FROM syscalls
         WHERE kind LIKE 'io_uring:%' ORDER BY 3",
        RING,
        "io_uring",
    ),
];

/// Writes the trace to the file `output`.
pub fn write(store: &Store, output: &Path) -> Result<(), Error> {
    let database = store.database();
    let mut out = super::create(output)?;
    let mut emit = |packet: TracePacket| -> Result<(), Error> {
        out.write_all(&packet.encode())
            .map_err(cannot_write(output))
    };
    database.execute_batch(
        "CREATE TEMP TABLE slices (track INTEGER, kind INTEGER, id INTEGER, start INTEGER, over INTEGER)",
    )?;
    let mut tracks = Tracks::default();
    threads(database, &mut tracks, &mut emit)?;
    for (query, kind, name) in OVERLAPPING {
        spread(database, (query, kind, name), &mut tracks, &mut emit)?;
    }
    database.execute_batch(&arrows())?;
    slices(database, &mut emit)?;
    database.execute_batch("DROP TABLE temp.slices; DROP TABLE temp.arrows")?;
    out.flush().map_err(cannot_write(output))
}

/// Assigns the uuids of tracks.
#[derive(Default)]
struct Tracks {
    last: u64,
    processes: HashMap<u64, u64>,
}

impl Tracks {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

type Emit<'a> = dyn FnMut(TracePacket) -> Result<(), Error> + 'a;

fn describe(emit: &mut Emit, track: TrackDescriptor) -> Result<(), Error> {
    emit(TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_descriptor: Some(track),
        ..TracePacket::default()
    })
}

/// Emits the tracks of processes and threads, and fills in their slices.
fn threads(database: &Connection, tracks: &mut Tracks, emit: &mut Emit) -> Result<(), Error> {
    let mut statement = database.prepare(
        "SELECT task_id, thread, process, name, process_name FROM tasks
         WHERE task_id IN (SELECT task_id FROM syscalls WHERE kind NOT IN ('kernel', 'unrecorded'))
             OR task_id IN (SELECT task_id FROM waits) ORDER BY task_id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (task, thread, process): (u64, i32, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let parent = match tracks.processes.get(&process) {
            Some(track) => *track,
            None => {
                let track = tracks.next();
                tracks.processes.insert(process, track);
                let of_process = ProcessDescriptor {
                    pid: i32::try_from(process).ok(),
                    process_name: row.get(4)?,
                };
                describe(
                    emit,
                    TrackDescriptor {
                        uuid: Some(track),
                        process: Some(of_process),
                        ..TrackDescriptor::default()
                    },
                )?;
                track
            }
        };
        let track = tracks.next();
        let of_thread = ThreadDescriptor {
            pid: i32::try_from(process).ok(),
            tid: Some(thread),
            thread_name: row.get(3)?,
        };
        describe(
            emit,
            TrackDescriptor {
                uuid: Some(track),
                parent_uuid: Some(parent),
                thread: Some(of_thread),
                ..TrackDescriptor::default()
            },
        )?;
        add_task(database, track, task)?;
    }
    Ok(())
}

fn add_task(database: &Connection, track: u64, task: u64) -> Result<(), Error> {
    database
        .prepare_cached(
            "INSERT INTO temp.slices
             SELECT ?1, ?3, syscall_id, begin_ns, max(end_ns, begin_ns + 1) FROM syscalls
             WHERE task_id = ?2 AND kind NOT IN ('kernel', 'unrecorded')
                 AND kind NOT LIKE 'io_uring:%'
             UNION ALL
             SELECT ?1, ?4, wait_id, begin_ns, max(woken_ns, begin_ns + 1) FROM waits
             WHERE task_id = ?2",
        )?
        .execute(params![track, task, CALL, WAIT])?;
    Ok(())
}

/// Puts overlapping slices on as few tracks as hold them.
fn spread(
    database: &Connection,
    (query, kind, name): (&str, i64, &str),
    tracks: &mut Tracks,
    emit: &mut Emit,
) -> Result<(), Error> {
    let mut insert = database.prepare("INSERT INTO temp.slices VALUES (?, ?, ?, ?, ?)")?;
    let mut statement = database.prepare(query)?;
    let mut rows = statement.query([])?;
    // By device: its parent track, and its tracks with the end of the last slice on each.
    let mut devices: HashMap<u64, (u64, Vec<(u64, u64)>)> = HashMap::new();
    while let Some(row) = rows.next()? {
        let (device, id): (u64, u64) = (row.get(0)?, row.get(1)?);
        let (start, over): (u64, u64) = (row.get(2)?, row.get(3)?);
        if let std::collections::hash_map::Entry::Vacant(entry) = devices.entry(device) {
            let parent = tracks.next();
            let of = device_name(database, device)?;
            describe(emit, named(parent, format!("{name} {of}").trim(), None))?;
            entry.insert((parent, Vec::new()));
        }
        let Some((parent, lanes)) = devices.get_mut(&device) else {
            continue;
        };
        let track = match lanes.iter_mut().find(|(_, last)| *last <= start) {
            Some((track, last)) => {
                *last = over;
                *track
            }
            None => {
                let track = tracks.next();
                describe(emit, named(track, name, Some(*parent)))?;
                lanes.push((track, over));
                track
            }
        };
        insert.execute(params![track, kind, id, start, over])?;
    }
    Ok(())
}

fn named(uuid: u64, name: &str, parent_uuid: Option<u64>) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        name: Some(name.to_owned()),
        parent_uuid,
        ..TrackDescriptor::default()
    }
}

fn device_name(database: &Connection, device: u64) -> Result<String, Error> {
    let query = "SELECT coalesce(max(nullif(name, '')), '') FROM devices WHERE device_id = ?";
    Ok(database.query_row(query, [device], |row| row.get(0))?)
}

/// The SQL that makes the table of arrows between slices that are shown. An arrow leads from a call
/// to a request with its data, or from a request to a later call that used its data.
fn arrows() -> String {
    format!(
        "CREATE TEMP TABLE arrows AS
         WITH pairs AS (
             SELECT min(link_id) AS arrow, syscall_id, request_id,
                 syscalls.begin_ns <= issued_ns AS from_call
             FROM links JOIN syscalls USING (syscall_id) JOIN requests USING (request_id)
             WHERE syscalls.kind NOT IN ('kernel', 'unrecorded') AND completed_ns IS NOT NULL
             GROUP BY syscall_id, request_id),
         counted AS (
             SELECT *, row_number() OVER (PARTITION BY syscall_id ORDER BY arrow) AS of_call,
                 row_number() OVER (PARTITION BY request_id ORDER BY arrow) AS of_request
             FROM pairs)
         SELECT arrow, syscall_id, request_id, from_call FROM counted
         WHERE of_call <= {MOST_ARROWS} AND of_request <= {MOST_ARROWS};
         CREATE INDEX temp.arrows_by_call ON arrows (syscall_id);
         CREATE INDEX temp.arrows_by_request ON arrows (request_id)"
    )
}

/// Emits all begins and ends in the order of time. At one moment ends come first. Of several begins
/// the longest slice's is first, of several ends the shortest's.
fn slices(database: &Connection, emit: &mut Emit) -> Result<(), Error> {
    let mut asker = Asker::new(database)?;
    let mut statement = database.prepare(
        "SELECT start AS time, 1 AS phase, -over AS inner_last, track, kind, id FROM temp.slices
         UNION ALL SELECT over, 0, -start, track, kind, id FROM temp.slices
         ORDER BY time, phase, inner_last, kind",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (time, begins): (u64, bool) = (row.get(0)?, row.get(1)?);
        let (track, kind, id): (u64, i64, u64) = (row.get(3)?, row.get(4)?, row.get(5)?);
        let event = match begins {
            true => asker.begin(kind, id)?,
            false => TrackEvent {
                r#type: Some(SLICE_END),
                ..TrackEvent::default()
            },
        };
        emit(TracePacket {
            timestamp: Some(time),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(TrackEvent {
                track_uuid: Some(track),
                ..event
            }),
            ..TracePacket::default()
        })?;
    }
    Ok(())
}

/// Queries for the content of a slice. The first column is the slice's name; the others are
/// annotations under the columns' names.
struct Asker<'a> {
    by_kind: HashMap<i64, CachedStatement<'a>>,
    of_call: CachedStatement<'a>,
    of_request: CachedStatement<'a>,
}

impl<'a> Asker<'a> {
    fn new(database: &'a Connection) -> Result<Asker<'a>, Error> {
        const CALLS: &str = "SELECT syscalls.kind, path AS file, offset_bytes, size_bytes, result,
                 missed_pages, readahead_pages, dirtied_pages, blocked_ns
             FROM syscalls LEFT JOIN files USING (file_id) WHERE syscall_id = ?";
        const REQUESTS: &str = "SELECT op || ' ' || content, sector, bytes, name AS submitter,
                 sync, commit_id AS \"commit\", request_id AS request
             FROM requests LEFT JOIN tasks USING (task_id) WHERE request_id = ?";
        let queries = [
            (CALL, CALLS),
            (RING, CALLS),
            (
                WAIT,
                "SELECT 'waits: ' || class, cause, reason, path AS file, page_index AS page,
                     request_id AS request, process_name AS other
                 FROM waits LEFT JOIN files USING (file_id)
                 LEFT JOIN tasks ON tasks.task_id = other_task_id WHERE wait_id = ?",
            ),
            (QUEUED, REQUESTS),
            (DEVICE, REQUESTS),
            (
                COMMIT,
                "SELECT 'commit ' || tid, requests, bytes, locking_ns - begin_ns AS before_locking_ns
                 FROM commits WHERE commit_id = ?",
            ),
        ];
        let mut by_kind = HashMap::new();
        for (kind, query) in queries {
            by_kind.insert(kind, database.prepare_cached(query)?);
        }
        let arrows = |column| {
            let question = format!(
                "SELECT arrow FROM temp.arrows WHERE {column} = ?1 AND from_call = ?2 ORDER BY 1"
            );
            database.prepare_cached(&question)
        };
        Ok(Asker {
            by_kind,
            of_call: arrows("syscall_id")?,
            of_request: arrows("request_id")?,
        })
    }

    fn begin(&mut self, kind: i64, id: u64) -> Result<TrackEvent, Error> {
        let mut event = TrackEvent {
            r#type: Some(SLICE_BEGIN),
            categories: vec![category(kind).to_owned()],
            ..TrackEvent::default()
        };
        if let Some(statement) = self.by_kind.get_mut(&kind) {
            let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
            let mut rows = statement.query([id])?;
            if let Some(row) = rows.next()? {
                event.name = row.get(0)?;
                event.debug_annotations = annotations(row, &names)?;
            }
        }
        match kind {
            CALL | RING => {
                event.flow_ids = ids(&mut self.of_call, id, true)?;
                event.terminating_flow_ids = ids(&mut self.of_call, id, false)?;
            }
            DEVICE => {
                event.flow_ids = ids(&mut self.of_request, id, false)?;
                event.terminating_flow_ids = ids(&mut self.of_request, id, true)?;
            }
            _ => {}
        }
        Ok(event)
    }
}

fn ids(arrows: &mut CachedStatement, slice: u64, from_call: bool) -> Result<Vec<u64>, Error> {
    let rows = arrows.query_map(params![slice, from_call], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn category(kind: i64) -> &'static str {
    match kind {
        CALL | RING => "call",
        WAIT => "wait",
        QUEUED => "block",
        DEVICE => "device",
        _ => "journal",
    }
}

fn annotations(row: &Row, names: &[String]) -> Result<Vec<DebugAnnotation>, Error> {
    use rusqlite::types::ValueRef;
    let mut annotations = Vec::new();
    for (place, name) in names.iter().enumerate().skip(1) {
        let (int_value, string_value) = match row.get_ref(place)? {
            ValueRef::Integer(number) => (Some(number), None),
            ValueRef::Text(text) => (None, Some(String::from_utf8_lossy(text).into_owned())),
            _ => continue,
        };
        annotations.push(DebugAnnotation {
            name: Some(name.clone()),
            int_value,
            string_value,
        });
    }
    Ok(annotations)
}
