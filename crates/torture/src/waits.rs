//! One wait of each class with a single cause. iopro must name the class, and the task and the
//! thing at the other end.

use crate::backlog::{
    AWAITED_BYTES, BACKLOG_BYTES, SLOW, awaited_behind_backlog, closed_beside_backlog,
    commit_behind_backlog, create, inode_behind_backlog, queue, queue_metadata, set_mode, settled,
    sync, truncate, write,
};
use crate::failure::require;
use crate::memory::{Pages, Swap, charged_to};
use crate::recording::{Recorded, Recording, failed};
use crate::test_bed::is_debug_kernel;
use crate::volume::{Layout, Volume};
use crate::{Failure, Outcome, TestBed, test_bed};
use iopro::wait::Class;
use rusqlite::params;
use rustix::fs::Advice;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use sys::device::PAGE_BYTES;

/// Smallest share of the task's waiting in the expected class. A sync also waits for its own flush,
/// which is a tenth to a seventh of its wait.
const LEAST_SHARE: f64 = 0.8;
/// Smallest wait that counts as one made on purpose.
const LEAST_NS: u64 = 1_000_000;

/// Limits of dirty pages, above which a task is throttled.
const DIRTY_BYTES: &str = "4194304";
const BACKGROUND_BYTES: &str = "2097152";

const CGROUP: &str = "/sys/fs/cgroup/torture";
const RECLAIMED_BYTES: usize = 2 << 20;

/// A way to make a task wait; the waiting thread has the case's name.
struct Case {
    name: &'static str,
    class: Class,
    /// What the programs must have seen themselves, where the stack alone would give the class too.
    reason: Option<&'static str>,
    /// Class of the wait at the other end.
    cause: Option<Class>,
    /// Name of the thread at the other end.
    other: Option<&'static str>,
    scheduler: &'static str,
    wait: fn(&TestBed, &Path) -> Outcome<()>,
}

impl Case {
    const fn new(
        name: &'static str,
        class: Class,
        wait: fn(&TestBed, &Path) -> Outcome<()>,
    ) -> Case {
        Case {
            name,
            class,
            reason: None,
            cause: None,
            other: None,
            scheduler: "mq-deadline",
            wait,
        }
    }
}

/// With this option blocks are written before their extents, so a commit waits for them.
const LAYOUT: Layout = Layout {
    options: "dioread_lock",
    ..Layout::DEFAULT
};

/// Without a journal a task that removes a file waits for its discards.
const DISCARDING: Layout = Layout {
    options: "discard",
    without_journal: true,
    ..Layout::DEFAULT
};

/// A scheduler that sends requests in their order, with only two tags.
const IN_ORDER: &str = "none";

const JOURNAL: &str = "jbd2/simflash0-";

const CASES: [Case; 15] = [
    Case {
        other: Some("owner"),
        ..Case::new("D_data", Class::Data, modify_page)
    },
    Case {
        other: Some("owner"),
        ..Case::new("D_sync", Class::Sync, sync_file)
    },
    Case {
        other: Some("owner"),
        ..Case::new("truncation", Class::Sync, truncate_file)
    },
    Case::new("D_meta", Class::Meta, modify_metadata),
    Case::new("in the journal", Class::Meta, modify_journalled),
    Case {
        cause: Some(Class::Sync),
        other: Some(JOURNAL),
        ..Case::new("I_jcommit", Class::JournalCommit, commit)
    },
    Case {
        cause: Some(Class::Meta),
        other: Some(JOURNAL),
        scheduler: IN_ORDER,
        ..Case::new("I_jhandle", Class::JournalHandle, no_handle)
    },
    Case {
        cause: Some(Class::Data),
        other: Some("holder"),
        ..Case::new("lock", Class::Lock, locked)
    },
    Case {
        reason: Some("tag"),
        scheduler: IN_ORDER,
        ..Case::new("tag", Class::Tag, no_tag)
    },
    Case {
        reason: Some("tag"),
        scheduler: IN_ORDER,
        ..Case::new("taken tag", Class::Tag, taken_tag)
    },
    Case {
        other: Some("owner"),
        ..Case::new("wbt", Class::QueueThrottle, throttled)
    },
    Case::new("dirty", Class::DirtyThrottle, too_dirty),
    Case {
        scheduler: IN_ORDER,
        ..Case::new("reclaim", Class::Reclaim, reclaim)
    },
    Case::new("service", Class::Service, read_cold),
    Case::new("D_discard", Class::Discard, remove),
];

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    bed.replace_device(SLOW)?;
    let recording = Recording::start()?;
    let (last, others) = CASES.split_last().unwrap_or((&CASES[0], &[]));
    on(bed, LAYOUT, others)?;
    on(bed, DISCARDING, std::slice::from_ref(last))?;
    let recorded = recording.finish()?;
    recorded.is_whole()?;
    // On a debug kernel a task waits for the CPU and for locks as long as for the case's cause.
    // There the trial only checks that the kernel finds no errors.
    let judged = if is_debug_kernel() { &[][..] } else { &CASES };
    let wrong: Vec<String> = judged
        .iter()
        .filter_map(|case| case.judge(&recorded).err())
        .map(|failure| failure.to_string())
        .collect();
    require(wrong.is_empty(), || wrong.join("; "))?;
    bed.replace_device("")
}

/// Runs the cases on an ext4 of this layout.
fn on(bed: &TestBed, layout: Layout, cases: &[Case]) -> Outcome<()> {
    let volume = Volume::with(bed, layout)?;
    for case in cases {
        // Stock schedulers promote nothing, so all waits are long.
        bed.set("scheduler", case.scheduler)?;
        bed.set("wbt_lat_usec", "0")?;
        if case.scheduler != IN_ORDER {
            bed.set("nr_requests", &module::sched::NR_REQUESTS.to_string())?;
        }
        let waited = (case.wait)(bed, volume.path());
        waited.map_err(|failure| Failure::new(format!("{}: {failure}", case.name)))?;
        rustix::fs::sync();
    }
    volume.unmount()
}

/// Wait of a task as the tables have it.
struct Waited {
    class: Class,
    cause: Option<Class>,
    other: Option<String>,
    ns: u64,
    reason: String,
    functions: Option<String>,
}

impl fmt::Display for Waited {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ns {} ({}", self.ns, self.class, self.reason)?;
        if let Some(functions) = &self.functions {
            write!(out, " in {functions}")?;
        }
        out.write_str(")")?;
        if let Some(cause) = &self.cause {
            write!(out, " caused by {cause}")?;
        }
        match &self.other {
            Some(other) => write!(out, " because of {other}"),
            None => Ok(()),
        }
    }
}

impl Case {
    fn judge(&self, recorded: &Recorded) -> Outcome<()> {
        let all = waited(recorded, self.name).map_err(failed)?;
        let sum_of = |fits: &dyn Fn(&Waited) -> bool| -> u64 {
            all.iter().filter(|it| fits(it)).map(|it| it.ns).sum()
        };
        let total = sum_of(&|_| true);
        let right = sum_of(&|it| {
            it.class == self.class
                && self.reason.is_none_or(|reason| it.reason == reason)
                && (self.cause.is_none() || it.cause == self.cause)
                && (self.other.is_none() || it.other.as_deref() == self.other)
        });
        let share = right as f64 / total.max(1) as f64;
        require(right >= LEAST_NS && share >= LEAST_SHARE, || {
            let all: Vec<String> = all.iter().map(Waited::to_string).collect();
            format!("{}: {}", self.name, all.join(", "))
        })
    }
}

fn waited(recorded: &Recorded, thread: &str) -> rusqlite::Result<Vec<Waited>> {
    let database = recorded.store.database();
    let mut statement = database.prepare(
        "SELECT class, cause, others.name, reason, functions, sum(woken_ns - begin_ns)
         FROM waits JOIN tasks USING (task_id) LEFT JOIN stacks USING (stack_id)
         LEFT JOIN tasks AS others ON others.task_id = other_task_id
         WHERE tasks.name = ?1 GROUP BY 1, 2, 3, 4, 5 ORDER BY 6 DESC",
    )?;
    let rows = statement.query_map(params![thread], |row| {
        Ok(Waited {
            class: row.get(0)?,
            cause: row.get(1)?,
            other: row.get(2)?,
            ns: row.get(5)?,
            reason: row.get(3)?,
            functions: row.get(4)?,
        })
    })?;
    rows.collect()
}

/// Runs `work` in a thread with this name.
fn by<T: Send>(name: &str, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn_scoped(scope, work)
            .map_err(Failure::io("start", Path::new(name)))?;
        thread
            .join()
            .unwrap_or_else(|_| Err(Failure::new(format!("{name} died"))))
    })
}

/// Sleeps until another task waits, on this slow device.
fn pause() {
    thread::sleep(Duration::from_millis(10));
}

fn modify_page(_: &TestBed, directory: &Path) -> Outcome<()> {
    let awaited = by("owner", || awaited_behind_backlog(directory))?;
    by("D_data", || write(&awaited, directory, 1))
}

fn sync_file(_: &TestBed, directory: &Path) -> Outcome<()> {
    let awaited = by("owner", || awaited_behind_backlog(directory))?;
    by("D_sync", || {
        awaited.sync_data().map_err(Failure::io("sync", directory))
    })
}

fn truncate_file(_: &TestBed, directory: &Path) -> Outcome<()> {
    let awaited = by("owner", || awaited_behind_backlog(directory))?;
    by("truncation", || truncate(&awaited, directory))
}

fn modify_metadata(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let awaited = by("owner", || inode_behind_backlog(bed, directory))?;
    by("D_meta", || set_mode(&awaited, directory, 0o640))
}

/// Modifies an inode whose block is being written into the journal.
fn modify_journalled(_: &TestBed, directory: &Path) -> Outcome<()> {
    let (backlog, awaited) = settled(directory)?;
    write(&backlog, directory, BACKLOG_BYTES)?;
    queue(&backlog, directory)?;
    thread::scope(|scope| {
        let committer = scope.spawn(|| {
            set_mode(&awaited, directory, 0o600)?;
            sync(&awaited, directory)
        });
        pause();
        let waited = by("in the journal", || set_mode(&awaited, directory, 0o640));
        joined(committer.join())?;
        waited
    })
}

fn commit(_: &TestBed, directory: &Path) -> Outcome<()> {
    let other = by("owner", || commit_behind_backlog(directory))?;
    by("I_jcommit", || {
        set_mode(&other, directory, 0o600)?;
        sync(&other, directory)
    })
}

/// A task with a handle waits for metadata, a commit waits for that handle, and a task that wants a
/// handle waits for the commit.
fn no_handle(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let (backlog, awaited) = settled(directory)?;
    let committed = elsewhere(directory, "one")?;
    let wanted = elsewhere(directory, "two")?;
    // Otherwise their inodes would be written with the awaited one's.
    rustix::fs::sync();
    write(&backlog, directory, BACKLOG_BYTES)?;
    set_mode(&awaited, directory, 0o600)?;
    sync(&awaited, directory)?;
    thread::scope(|scope| {
        let owner = scope.spawn(|| by("owner", || queue(&backlog, directory)));
        pause();
        // A buffer is locked before its request waits for one of the two tags.
        let flusher = scope.spawn(|| queue_metadata(bed));
        pause();
        let holder = scope.spawn(|| by("holder", || set_mode(&awaited, directory, 0o640)));
        pause();
        let committer = scope.spawn(|| {
            set_mode(&committed, directory, 0o600)?;
            sync(&committed, directory)
        });
        pause();
        let waited = by("I_jhandle", || set_mode(&wanted, directory, 0o600));
        for thread in [owner, flusher, holder, committer] {
            joined(thread.join())?;
        }
        waited
    })
}

/// Makes a file in a directory of its own, so that its inode is in a block of its own.
fn elsewhere(directory: &Path, name: &str) -> Outcome<File> {
    let own = directory.join(name);
    fs::create_dir(&own).map_err(Failure::io("make", &own))?;
    create(&own.join("file"), PAGE_BYTES)
}

fn joined<T>(result: thread::Result<Outcome<T>>) -> Outcome<T> {
    result.unwrap_or_else(|_| Err(Failure::new("a thread died")))
}

/// The holder of the file's lock waits for a page of the file.
fn locked(_: &TestBed, directory: &Path) -> Outcome<()> {
    let awaited = by("owner", || awaited_behind_backlog(directory))?;
    thread::scope(|scope| {
        let holder = scope.spawn(|| by("holder", || write(&awaited, directory, 1)));
        pause();
        let waited = by("lock", || {
            awaited
                .write_all_at(&[1], AWAITED_BYTES as u64)
                .map_err(Failure::io("write", directory))
        });
        joined(holder.join())?;
        waited
    })
}

/// Submits more requests than the queue has, with no other task to wait for.
fn no_tag(_: &TestBed, directory: &Path) -> Outcome<()> {
    let (backlog, _) = by("owner", || settled(directory))?;
    by("owner", || write(&backlog, directory, BACKLOG_BYTES))?;
    by("tag", || queue(&backlog, directory))
}

/// The same beside a task that takes the tags of its own writes again before anybody else can.
fn taken_tag(_: &TestBed, directory: &Path) -> Outcome<()> {
    let (backlog, own) = by("owner", || settled(directory))?;
    by("owner", || write(&backlog, directory, BACKLOG_BYTES))?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let rival = scope.spawn(|| by("rival", || syncs_until(&over, &own, directory)));
        let waited = by("taken tag", || queue(&backlog, directory));
        over.store(true, Ordering::Relaxed);
        joined(rival.join())?;
        waited
    })
}

fn syncs_until(over: &AtomicBool, own: &File, directory: &Path) -> Outcome<()> {
    while !over.load(Ordering::Relaxed) {
        write(own, directory, PAGE_BYTES)?;
        own.sync_data().map_err(Failure::io("sync", directory))?;
    }
    Ok(())
}

fn throttled(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let (backlog, _) = by("owner", || settled(directory))?;
    by("owner", || write(&backlog, directory, BACKLOG_BYTES))?;
    bed.set("wbt_lat_usec", "75000")?;
    by("wbt", || queue(&backlog, directory))
}

fn too_dirty(_: &TestBed, directory: &Path) -> Outcome<()> {
    let (backlog, _) = by("owner", || settled(directory))?;
    test_bed::with_dirty_limits(BACKGROUND_BYTES, DIRTY_BYTES, || {
        by("dirty", || write(&backlog, directory, BACKLOG_BYTES))?;
        sync(&backlog, directory)
    })
}

/// A cgroup must reclaim pages that have to be written to a slow device first.
fn reclaim(_: &TestBed, directory: &Path) -> Outcome<()> {
    drop(by("owner", || settled(directory))?);
    let swap = Swap::on(&directory.join("backlog"))?;
    test_bed::set_controllers("+memory")?;
    fs::create_dir(CGROUP).map_err(Failure::io("make", Path::new(CGROUP)))?;
    let mut pages = Pages::new(RECLAIMED_BYTES)?;
    charged_to(CGROUP, || {
        pages.fill(1);
        Ok(())
    })?;
    by("reclaim", || {
        let place = Path::new(CGROUP).join("memory.reclaim");
        match fs::write(&place, (RECLAIMED_BYTES / 2).to_string()) {
            // The kernel could not reclaim as much.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            done => done.map_err(Failure::io("write", &place)),
        }
    })?;
    drop(pages);
    drop(swap);
    fs::remove_dir(CGROUP).map_err(Failure::io("remove", Path::new(CGROUP)))
}

fn read_cold(_: &TestBed, directory: &Path) -> Outcome<()> {
    let (_, awaited) = settled(directory)?;
    let _ = rustix::fs::fadvise(&awaited, 0, None, Advice::DontNeed);
    let mut bytes = vec![0; AWAITED_BYTES];
    by("service", || {
        awaited
            .read_exact_at(&mut bytes, 0)
            .map_err(Failure::io("read", directory))
    })
}

fn remove(_: &TestBed, directory: &Path) -> Outcome<()> {
    let path = closed_beside_backlog(directory)?;
    by("D_discard", || {
        fs::remove_file(&path).map_err(Failure::io("remove", &path))
    })
}
