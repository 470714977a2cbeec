//! A mix of all kinds of I/O, and a task that mostly waits for it. iopro must lose nothing, link
//! writes and reads, and account for the task's time off the CPU.

use crate::backlog::{create, sync};
use crate::failure::require;
use crate::recording::{Recorded, Recording, failed};
use crate::test_bed::is_debug_kernel;
use crate::volume::{Layout, Volume};
use crate::{Failure, Outcome, TestBed, fio, test_bed};
use rusqlite::params;
use rustix::fs::Advice;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Instant;
use sys::device::PAGE_BYTES;

/// Jobs that run at once on files of [`FILE_MIB`].
const JOBS: [(&str, &str); 5] = [
    (
        "buffered",
        "rw=randrw bsrange=4k-64k ioengine=psync fsync=16 number_ios=150",
    ),
    ("pieces", "rw=randwrite bs=1k ioengine=psync number_ios=300"),
    // Blocks of a page: fio maps each where it is in the file.
    (
        "mapped",
        "rw=randrw bs=PAGE ioengine=mmap fsync=32 number_ios=150",
    ),
    (
        "ring",
        "rw=randrw bsrange=4k-16k ioengine=io_uring iodepth=8 number_ios=150",
    ),
    (
        "direct",
        "rw=randrw bsrange=4k-64k ioengine=libaio direct=1 iodepth=8 number_ios=150",
    ),
];
const FILE_MIB: u32 = 2;

/// Number of rounds of the waiting task.
const ROUNDS: usize = 12;
const WAITER: &str = "waiter";

/// Promised shares (docs/how/iopro-linking.md).
const LEAST_LINKED: f64 = 0.999;
const LEAST_CLASSIFIED: f64 = 0.98;
const MOST_OTHER: f64 = 0.02;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    record(bed, Recording::start)
}

/// The same by tracepoints alone, with types from a file.
pub(crate) fn run_untyped(bed: &TestBed) -> Outcome<()> {
    record(bed, Recording::start_without_types)
}

fn record(bed: &TestBed, start: fn() -> Outcome<Recording>) -> Outcome<()> {
    let volume = Volume::with(
        bed,
        Layout {
            options: "discard",
            ..Layout::DEFAULT
        },
    )?;
    let recording = start()?;
    let blocked_ns = mix(bed, volume.path());
    rustix::fs::sync();
    let recorded = recording.finish()?;
    judge(&recorded, blocked_ns?)?;
    volume.unmount()
}

/// Runs the mix; returns the waiter's time off the CPU, if the kernel keeps schedstats.
fn mix(bed: &TestBed, directory: &Path) -> Outcome<Option<u64>> {
    thread::scope(|scope| {
        let waiter = thread::Builder::new()
            .name(WAITER.to_owned())
            .spawn_scoped(scope, || waits(directory))
            .map_err(Failure::io("start", Path::new(WAITER)))?;
        let mut command = fio::plain(bed, FILE_MIB);
        command.arg(format!("--directory={}", directory.display()));
        let page_bytes = rustix::param::page_size().to_string();
        for (name, options) in JOBS {
            fio::job(&mut command, name, &options.replace("PAGE", &page_bytes));
        }
        let done = fio::succeeds(command);
        let waited = waiter
            .join()
            .unwrap_or_else(|_| Err(Failure::new("the waiter died")));
        done.and(waited)
    })
}

fn waits(directory: &Path) -> Outcome<Option<u64>> {
    let before_ns = ran_ns()?;
    let begun = Instant::now();
    for round in 0..ROUNDS {
        one_round(directory, round)?;
    }
    let after_ns = ran_ns()?;
    let elapsed_ns = begun.elapsed().as_nanos() as u64;
    let ran_ns = after_ns
        .zip(before_ns)
        .map(|(after, before)| after - before);
    Ok(ran_ns.map(|ran_ns| elapsed_ns.saturating_sub(ran_ns)))
}

/// Operations of an app on a small file.
fn one_round(directory: &Path, round: usize) -> Outcome<()> {
    let own = directory.join(format!("own-{round}"));
    let path = own.join("file");
    fs::create_dir(&own).map_err(Failure::io("make", &own))?;
    let file = create(&path, 8 * PAGE_BYTES)?;
    sync(&file, &path)?;
    let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
    let mut page = [0; PAGE_BYTES];
    file.read_exact_at(&mut page, 0)
        .map_err(Failure::io("read", &path))?;
    file.write_all_at(&page, 3 * PAGE_BYTES as u64)
        .map_err(Failure::io("write", &path))?;
    file.sync_data().map_err(Failure::io("sync", &path))?;
    file.set_len(PAGE_BYTES as u64)
        .map_err(Failure::io("truncate", &path))?;
    let renamed = own.join("renamed");
    fs::rename(&path, &renamed).map_err(Failure::io("rename", &path))?;
    sync(&file, &renamed)?;
    fs::remove_file(&renamed).map_err(Failure::io("remove", &renamed))
}

/// Time in which this thread ran or was runnable, from the kernel's schedstats; None on a debug
/// kernel, which lacks them.
fn ran_ns() -> Outcome<Option<u64>> {
    if is_debug_kernel() {
        return Ok(None);
    }
    // The yield adds the time since the last switch to the statistics.
    rustix::thread::sched_yield();
    let text = test_bed::read("/proc/thread-self/schedstat")?;
    let numbers: Option<Vec<u64>> = text
        .split_whitespace()
        .take(2)
        .map(|it| it.parse().ok())
        .collect();
    let numbers = numbers.filter(|it| it.len() == 2);
    let numbers = numbers.ok_or_else(|| Failure::new(format!("schedstat says '{text}'")))?;
    Ok(Some(numbers.iter().sum()))
}

fn judge(recorded: &Recorded, blocked_ns: Option<u64>) -> Outcome<()> {
    recorded.is_whole()?;
    let one = |query: &str| -> Outcome<u64> {
        let database = recorded.store.database();
        let answer = database.query_row(query, params![], |row| row.get(0));
        answer.map_err(failed)
    };
    let of_kind = |kind: &str| {
        one(&format!(
            "SELECT coalesce(sum(pages), 0) FROM links WHERE kind = '{kind}'"
        ))
    };
    let missing = |kind: &str| {
        one(&format!(
            "SELECT missing FROM unlinked WHERE kind = '{kind}'"
        ))
    };
    let (linked, unlinked) = (of_kind("write")?, of_kind("unlinked")?);
    let orphans = missing("written pages without dirtier")?;
    let share = linked as f64 / (linked + unlinked + orphans) as f64;
    let which = unlinked_ones(recorded)?;
    require(linked > 500 && share >= LEAST_LINKED, || {
        format!(
            "of written page versions {linked} are linked, {unlinked} ({which}) and {orphans} are not"
        )
    })?;
    // What the kernel left out may have been what another event refers to.
    let missed = recorded.missed_events();
    for kind in [
        "requests without bio",
        "requests with untold bytes",
        "bios without task",
        "completions without request",
    ] {
        let missing = missing(kind)?;
        require(missing <= missed, || {
            format!("there are {missing} {kind}, and {missed} events were left out")
        })?;
    }
    let reads = one("SELECT count(*) FROM requests WHERE op = 'read'")?;
    let lonely = one("SELECT count(*) FROM requests WHERE op = 'read'
         AND request_id NOT IN (SELECT request_id FROM links WHERE request_id NOT NULL)")?;
    require(reads > 100 && lonely == 0, || {
        format!("of {reads} reads {lonely} are linked to no call")
    })?;
    let nameless = one("SELECT count(*) FROM waits WHERE reason = 'other' AND stack_id IS NULL")?;
    require(nameless == 0, || {
        format!("of {nameless} waits neither the reason nor the stack is known")
    })?;
    let Some(blocked_ns) = blocked_ns else {
        return Ok(());
    };
    let waited = |condition: &str| {
        one(&format!(
            "SELECT coalesce(sum(woken_ns - begin_ns), 0) FROM waits JOIN tasks USING (task_id)
             WHERE tasks.name = '{WAITER}' AND {condition}"
        ))
    };
    let (all, other) = (waited("true")?, waited("class = 'other'")?);
    let share = all as f64 / blocked_ns as f64;
    require((LEAST_CLASSIFIED..=1.0).contains(&share), || {
        format!("of {blocked_ns} ns off the CPU {all} are known")
    })?;
    require(other as f64 <= MOST_OTHER * blocked_ns as f64, || {
        format!("of {blocked_ns} ns off the CPU {other} are of no class")
    })
}

/// The first page versions that were taken for writeback and are in no request, as text.
fn unlinked_ones(recorded: &Recorded) -> Outcome<String> {
    let database = recorded.store.database();
    let query = "SELECT coalesce(path, 'metadata'), page_index, links.pages, syscalls.kind,
             links.begin_ns, links.end_ns
         FROM links JOIN syscalls USING (syscall_id)
         LEFT JOIN files ON links.file_id = files.file_id
         WHERE links.kind = 'unlinked' ORDER BY links.begin_ns LIMIT 20";
    let mut statement = database.prepare(query).map_err(failed)?;
    let words = |row: &rusqlite::Row| {
        let (path, call): (String, String) = (row.get(0)?, row.get(3)?);
        let (index, pages): (u64, u64) = (row.get(1)?, row.get(2)?);
        let (begin_ns, end_ns): (u64, u64) = (row.get(4)?, row.get(5)?);
        Ok(format!(
            "{pages} from {index} on of {path} by {call}, {begin_ns} to {end_ns} ns"
        ))
    };
    let rows = statement.query_map([], words).map_err(failed)?;
    let all = rows.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    Ok(all.join("; "))
}
