//! SQL queries of the report.

use super::{
    Calls, Class, Count, Direction, File, FileRead, Layer, Longest, Recording, Report, Size, TOP,
    Top, UnderWay, Unlinked, Waiting, timeline,
};
use crate::event::Dev;
use crate::store::Error;
use crate::wait;
use rusqlite::{Connection, Row, params};
use std::ops::Range;

/// Joins waits with the waiter, its call, its file and the task at the other end.
pub const WAITS: &str = "
    FROM waits
    JOIN tasks AS waiter ON waiter.task_id = waits.task_id
    LEFT JOIN syscalls ON syscalls.syscall_id = waits.syscall_id
    LEFT JOIN files ON files.file_id = waits.file_id
    LEFT JOIN tasks AS other ON other.task_id = waits.other_task_id";

pub fn report(database: &Connection) -> Result<Report, Error> {
    let recording = recording(database)?;
    let begin_ns = property(database, "begin_ns")?.parse().unwrap_or(0);
    Ok(Report {
        foreground: waiting(database, "waiter.foreground", begin_ns)?,
        everybody: waiting(database, "TRUE", begin_ns)?,
        layers: layers(database)?,
        calls: calls(database)?,
        io: directions(database)?,
        sizes: sizes(database)?,
        files: files(database)?,
        writes: counts(
            database,
            "SELECT links.kind, sum(pages) FROM links JOIN files USING (file_id)
             WHERE files.kind <> 'block device' AND links.kind IN
             ('write', 'overwritten', 'truncated', 'removed', 'pending', 'unlinked')
             GROUP BY 1 ORDER BY 2 DESC",
        )?,
        reads: reads(database)?,
        unlinked: all(
            database,
            "SELECT kind, missing, total FROM unlinked WHERE missing > 0",
            |row| {
                Ok(Unlinked {
                    kind: row.get(0)?,
                    count: row.get(1)?,
                    of: row.get(2)?,
                })
            },
        )?,
        timeline: timeline::timeline(database, begin_ns, recording.duration_ns)?,
        recording,
    })
}

/// The waits of the foreground, of a recording that began at `began_ns`.
pub fn foreground(database: &Connection, began_ns: u64) -> Result<Waiting, Error> {
    waiting(database, "waiter.foreground", began_ns)
}

/// Calls of the foreground that began before the interval and go on at its end.
pub fn under_way(database: &Connection, interval: Range<u64>) -> Result<Vec<UnderWay>, Error> {
    let query = format!(
        "SELECT process_name, syscalls.kind, nullif(path, ''), {} - begin_ns
         FROM syscalls JOIN tasks USING (task_id) LEFT JOIN files USING (file_id)
         WHERE foreground AND unfinished AND begin_ns < {}
         ORDER BY begin_ns, syscall_id LIMIT {TOP}",
        interval.end, interval.start
    );
    all(database, &query, |row| {
        Ok(UnderWay {
            process: row.get(0)?,
            call: row.get(1)?,
            file: row.get(2)?,
            so_far_ns: row.get(3)?,
        })
    })
}

pub fn lost(database: &Connection) -> Result<Vec<Count>, Error> {
    counts(database, "SELECT kind, sum(events) FROM lost GROUP BY kind")
}

pub fn all<T>(
    database: &Connection,
    query: &str,
    read: impl FnMut(&Row) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Error> {
    let mut statement = database.prepare(query)?;
    let rows = statement.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn counts(database: &Connection, query: &str) -> Result<Vec<Count>, Error> {
    all(database, query, |row| {
        Ok(Count {
            kind: row.get(0)?,
            count: row.get(1)?,
        })
    })
}

fn property(database: &Connection, name: &str) -> Result<String, Error> {
    let query = "SELECT coalesce(max(value), '') FROM recording WHERE name = ?";
    Ok(database.query_row(query, [name], |row| row.get(0))?)
}

fn recording(database: &Connection) -> Result<Recording, Error> {
    let number =
        |name| -> Result<u64, Error> { Ok(property(database, name)?.parse().unwrap_or(0)) };
    Ok(Recording {
        kernel: property(database, "kernel")?,
        target: property(database, "target")?,
        duration_ns: number("end_ns")?.saturating_sub(number("begin_ns")?),
        ending: property(database, "ending")?,
        missing: all(
            database,
            "SELECT value FROM recording WHERE name = 'missing'",
            |row| row.get(0),
        )?,
        lost: lost(database)?,
    })
}

fn top(row: &Row) -> rusqlite::Result<Top> {
    Ok(Top {
        process: row.get(0)?,
        call: row.get(1)?,
        class: row.get(2)?,
        cause: row.get(3)?,
        file: row.get(4)?,
        other: row.get(5)?,
        waits: row.get(6)?,
        total_ns: row.get(7)?,
        longest_ns: row.get(8)?,
    })
}

const TOP_COLUMNS: &str = "
    waiter.process_name, syscalls.kind, waits.class, waits.cause,
    nullif(files.path, ''), other.process_name";

fn waiting(database: &Connection, whose: &str, begin_ns: u64) -> Result<Waiting, Error> {
    let total_ns = database.query_row(
        &format!("SELECT coalesce(sum(woken_ns - waits.begin_ns), 0) {WAITS} WHERE {whose}"),
        [],
        |row| row.get(0),
    )?;
    let classes = all(
        database,
        &format!(
            "SELECT class, count(*), sum(woken_ns - waits.begin_ns), max(woken_ns - waits.begin_ns)
             {WAITS} WHERE {whose} GROUP BY class ORDER BY 3 DESC"
        ),
        |row| {
            let class: wait::Class = row.get(0)?;
            Ok(Class {
                class,
                words: class.words(),
                waits: row.get(1)?,
                total_ns: row.get(2)?,
                longest_ns: row.get(3)?,
            })
        },
    )?;
    let most = all(
        database,
        &format!(
            "SELECT {TOP_COLUMNS}, count(*), sum(woken_ns - waits.begin_ns),
                 max(woken_ns - waits.begin_ns)
             {WAITS} WHERE {whose} GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 8 DESC, 1, 2 LIMIT {TOP}"
        ),
        top,
    )?;
    let longest = all(
        database,
        &format!(
            "SELECT {TOP_COLUMNS}, 1, woken_ns - waits.begin_ns, woken_ns - waits.begin_ns,
                 waits.begin_ns
             {WAITS} WHERE {whose} ORDER BY 8 DESC LIMIT 1"
        ),
        |row| {
            let at_ns: u64 = row.get(9)?;
            Ok(Longest {
                what: top(row)?,
                at_ns: at_ns.saturating_sub(begin_ns),
            })
        },
    )?;
    Ok(Waiting {
        total_ns,
        classes,
        top: most,
        longest: longest.into_iter().next(),
    })
}

/// Name of each layer, what counts as its time, and the SQL expression that is summed.
const LAYERS: [(&str, &str, &str); 7] = [
    (
        "CPU",
        "running in the call: the code of all layers",
        "max(end_ns - begin_ns - blocked_ns - runqueue_ns, 0)",
    ),
    (
        "file system",
        "blocked on the journal, metadata and locks",
        "file_system_ns",
    ),
    (
        "page cache",
        "blocked by dirty throttling, reclaim, and pages on their way to the block layer",
        "page_cache_ns",
    ),
    (
        "block",
        "blocked for a tag, by throttling, and while its request was queued",
        "block_ns",
    ),
    (
        "driver",
        "blocked from the completion of its request to the wake-up",
        "driver_ns",
    ),
    (
        "flash",
        "blocked while the device had its request, from issue to completion",
        "device_ns",
    ),
    ("run queue", "awake, and waiting for a CPU", "runqueue_ns"),
];

/// Time that the foreground's calls spent in each layer, from the top down.
fn layers(database: &Connection) -> Result<Vec<Layer>, Error> {
    LAYERS
        .into_iter()
        .map(|(layer, words, column)| {
            let query = format!(
                "SELECT coalesce(sum({column}), 0) FROM syscalls JOIN tasks USING (task_id)
                 WHERE foreground AND NOT unfinished AND syscalls.kind <> 'unrecorded'
                 AND syscalls.kind NOT LIKE 'io_uring:%'"
            );
            Ok(Layer {
                layer,
                words,
                total_ns: database.query_row(&query, [], |row| row.get(0))?,
            })
        })
        .collect()
}

fn calls(database: &Connection) -> Result<Vec<Calls>, Error> {
    all(
        database,
        &format!(
            "SELECT syscalls.kind, count(*), sum(end_ns - begin_ns), max(end_ns - begin_ns),
                 sum(blocked_ns)
             FROM syscalls JOIN tasks USING (task_id)
             WHERE foreground AND syscalls.kind <> 'unrecorded' GROUP BY 1 ORDER BY 3 DESC LIMIT {TOP}"
        ),
        |row| {
            Ok(Calls {
                kind: row.get(0)?,
                calls: row.get(1)?,
                total_ns: row.get(2)?,
                longest_ns: row.get(3)?,
                blocked_ns: row.get(4)?,
            })
        },
    )
}

fn directions(database: &Connection) -> Result<Vec<Direction>, Error> {
    all(
        database,
        "SELECT op, content, count(*), sum(bytes),
             CAST(coalesce(avg(issued_ns - queued_ns), 0) AS INTEGER),
             CAST(coalesce(avg(completed_ns - issued_ns), 0) AS INTEGER)
         FROM requests GROUP BY 1, 2 ORDER BY 4 DESC, 3 DESC",
        |row| {
            Ok(Direction {
                op: row.get(0)?,
                content: row.get(1)?,
                requests: row.get(2)?,
                bytes: row.get(3)?,
                queued_ns: row.get(4)?,
                device_ns: row.get(5)?,
            })
        },
    )
}

fn sizes(database: &Connection) -> Result<Vec<Size>, Error> {
    let by_bytes: Vec<(u64, u64, u64)> = all(
        database,
        "SELECT bytes, sum(op = 'read'), sum(op = 'write') FROM requests
         WHERE bytes > 0 AND op IN ('read', 'write') GROUP BY 1 ORDER BY 1",
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut sizes: Vec<Size> = Vec::new();
    for (bytes, reads, writes) in by_bytes {
        let up_to_bytes = bytes.next_power_of_two();
        match sizes.last_mut() {
            Some(last) if last.up_to_bytes == up_to_bytes => {
                last.reads += reads;
                last.writes += writes;
            }
            _ => sizes.push(Size {
                up_to_bytes,
                reads,
                writes,
            }),
        }
    }
    Ok(sizes)
}

fn files(database: &Connection) -> Result<Vec<File>, Error> {
    let found: Vec<(u64, File)> = all(
        database,
        &format!(
            "WITH waited AS (
                 SELECT file_id, sum(woken_ns - begin_ns) AS ns FROM waits
                 WHERE file_id IS NOT NULL GROUP BY file_id),
             carried AS (
                 SELECT file_id, count(DISTINCT request_id) AS requests,
                     sum(iif(op = 'read', segments.bytes, 0)) AS read_bytes,
                     sum(iif(op = 'write', segments.bytes, 0)) AS written_bytes
                 FROM segments JOIN requests USING (request_id)
                 WHERE file_id IS NOT NULL GROUP BY file_id)
             SELECT file_id, path, coalesce(ns, 0), coalesce(requests, 0),
                 coalesce(read_bytes, 0), coalesce(written_bytes, 0)
             FROM files LEFT JOIN waited USING (file_id) LEFT JOIN carried USING (file_id)
             WHERE ns > 0 OR requests > 0
             ORDER BY 3 DESC, read_bytes + written_bytes DESC LIMIT {TOP}"
        ),
        |row| {
            let path: String = row.get(1)?;
            let id: u64 = row.get(0)?;
            let file = File {
                path: match path.is_empty() {
                    true => format!("(file {id}, without a name)"),
                    false => path,
                },
                waited_ns: row.get(2)?,
                requests: row.get(3)?,
                read_bytes: row.get(4)?,
                written_bytes: row.get(5)?,
                dof: None,
            };
            Ok((id, file))
        },
    )?;
    let with_dof = found.into_iter().map(|(id, file)| {
        Ok(File {
            dof: dof(database, id)?,
            ..file
        })
    });
    with_dof.collect()
}

/// Time that system calls of `kind` spent in each layer, for each path of a file.
pub fn layers_of_files(
    database: &Connection,
    kind: &str,
) -> Result<Vec<(String, Vec<Layer>)>, Error> {
    let sums = LAYERS
        .map(|(.., column)| format!("sum({column})"))
        .join(", ");
    let query = format!(
        "SELECT path, {sums} FROM syscalls JOIN files USING (file_id)
         WHERE syscalls.kind = ?1 AND NOT unfinished GROUP BY path ORDER BY path"
    );
    let mut statement = database.prepare(&query)?;
    let rows = statement.query_map(params![kind], |row| {
        let layers = LAYERS.iter().enumerate().map(|(place, (layer, words, _))| {
            let total_ns = row.get(place + 1)?;
            Ok(Layer {
                layer,
                words,
                total_ns,
            })
        });
        Ok((row.get(0)?, layers.collect::<rusqlite::Result<_>>()?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub fn has_foreground(database: &Connection) -> Result<bool, Error> {
    let query = "SELECT count(*) FROM tasks WHERE foreground";
    Ok(database.query_row(query, [], |row| row.get::<_, u64>(0))? > 0)
}

pub fn processes(database: &Connection) -> Result<Vec<String>, Error> {
    let query = format!(
        "SELECT process_name FROM tasks LEFT JOIN waits USING (task_id)
         WHERE NOT kernel AND process_name <> ''
         GROUP BY process_name ORDER BY count(waits.task_id) DESC, process_name LIMIT {TOP}"
    );
    all(database, &query, |row| row.get(0))
}

pub fn reads_of_files(database: &Connection) -> Result<Vec<FileRead>, Error> {
    all(
        database,
        "SELECT files.device_id, inode, sum(segments.bytes)
         FROM segments JOIN requests USING (request_id) JOIN files USING (file_id)
         WHERE op = 'read' AND inode > 0 AND NOT removed
         GROUP BY files.device_id, inode ORDER BY files.device_id, inode",
        |row| {
            Ok(FileRead {
                device: Dev(row.get(0)?),
                inode: row.get(1)?,
                bytes: row.get(2)?,
            })
        },
    )
}

/// DoF_L of the pages of a file that requests had: pieces on the device over runs of pages.
fn dof(database: &Connection, file: u64) -> Result<Option<f64>, Error> {
    let (pieces, runs): (u64, u64) = database.query_row(
        "WITH latest AS (
             SELECT page_index, pages, sector, bytes, max(request_id) FROM segments
             WHERE file_id = ? AND page_index IS NOT NULL GROUP BY page_index),
         beside AS (
             SELECT page_index, sector,
                 lag(page_index + pages) OVER by_page AS last_page,
                 lag(sector + bytes / 512) OVER by_page AS last_sector
             FROM latest WINDOW by_page AS (ORDER BY page_index))
         SELECT coalesce(sum(last_page IS NULL OR last_page < page_index
                 OR last_page = page_index AND last_sector <> sector), 0),
             coalesce(sum(last_page IS NULL OR last_page < page_index), 0)
         FROM beside",
        params![file as i64],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(match runs {
        0 => None,
        runs => Some(pieces as f64 / runs as f64),
    })
}

fn reads(database: &Connection) -> Result<Vec<Count>, Error> {
    let (cached, missed, readahead): (u64, u64, u64) = database.query_row(
        "SELECT coalesce(sum(cached_pages), 0), coalesce(sum(missed_pages), 0),
             coalesce(sum(readahead_pages), 0) FROM syscalls",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let unlinked = database.query_row(
        "SELECT count(*) FROM bios JOIN requests USING (request_id)
         WHERE op = 'read' AND syscall_id IS NULL",
        [],
        |row| row.get(0),
    )?;
    let count = |kind: &str, count| Count {
        kind: kind.to_owned(),
        count,
    };
    let kinds = [
        count("cached", cached),
        count("fetched by the call", missed),
        count("fetched by an earlier call", readahead),
        count("bios of no known call", unlinked),
    ];
    Ok(kinds.into_iter().filter(|it| it.count > 0).collect())
}
