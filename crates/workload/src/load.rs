//! Background loads: their writes and their files.
//!
//! | load | what it does, until it is stopped |
//! |---|---|
//! | `writer` | writes a big file from start to end, then over it again |
//! | `rewrite` | truncates a big file to nothing and writes it again |
//! | `random` | writes random 4 KB pages of a big file |
//!
//! | `video` | reads 1 MB/s, as a player does |
//! | `download` | writes 5 MB/s |
//! | `update` | reads 6 and writes 12 MB/s and syncs what it wrote, as an installer does |
//!
//! These three are the weak, medium and high load of the launch paper ("003", §V), which gives no
//! numbers. The two of FastTrack ("002", 6.1) have no pace:
//!
//! | `reinstall` | writes an app's files and syncs each, one after another |
//! | `backup` | reads big files from start to end |
//!
//! Three loads sync, for the experiment `foreground`:
//!
//! | `database` | commits in a loop, with a rollback journal |
//! | `unpack` | unpacks an archive into small files, syncs, deletes them, and again |
//! | `flat-out` | reads, writes and syncs without a pause |
//!
//! `apps-2` to `apps-6` are that many apps at once, in this order: `reinstall`, `backup`, `update`,
//! `random`, `download` and `writer`. The paper names the first two of its six.
//!
//! All loads use the page cache. `-memcg` after a name puts the load into a memory cgroup of its
//! own.

use crate::background::{Background, DATABASE, Script};
use crate::content;
use crate::memcg::MemoryCgroup;
use crate::meter::go_on;
use crate::seed::Random;
use crate::sizes::Sizes;
use crate::stage::Ground;
use crate::timed::create;
use crate::writeback::Counters;
use crate::{Entry, Error, RunRequest};
use device::{PAGE_BYTES, Pages};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Size of one write, small enough to make the written total a fine clock.
const CHUNK_BYTES: usize = 128 << 10;

/// Size of one write while a file is prepared.
const PREPARE_BYTES: usize = 1 << 20;

/// All background loads, with `idle`.
pub const LOADS: &[Entry] = &[
    Entry::new("idle", "nothing in the background"),
    Entry::new("writer", "one big file is written from start to end"),
    Entry::new("rewrite", "a big file is truncated and written again"),
    Entry::new("random", "random 4 KB pages of a big file are written"),
    Entry::new("video", "a film is played: 1 MB/s are read"),
    Entry::new("download", "a file is downloaded: 5 MB/s are written"),
    Entry::new(
        "update",
        "an app is updated: 6 MB/s read, 12 MB/s written and synced",
    ),
    Entry::new("reinstall", "an app's files are written and synced"),
    Entry::new("backup", "big files are read from start to end"),
    Entry::new("database", "a database commits in a loop"),
    Entry::new(
        "unpack",
        "an archive becomes small files, and all is synced",
    ),
    Entry::new("flat-out", "128 KB are read, written and synced in a loop"),
    Entry::new("apps-2", "reinstall and backup at once"),
    Entry::new("apps-3", "these and update"),
    Entry::new("apps-4", "these and random"),
    Entry::new("apps-5", "these and download"),
    Entry::new("apps-6", "these and writer"),
    Entry::new("writer-memcg", "the writer in a memory cgroup of its own"),
    Entry::new(
        "rewrite-memcg",
        "the rewriter in a memory cgroup of its own",
    ),
    Entry::new(
        "random-memcg",
        "the random writer in a memory cgroup of its own",
    ),
];

/// Loads of `apps-N`, which uses the first N.
const APPS: [&str; 6] = [
    "reinstall",
    "backup",
    "update",
    "random",
    "download",
    "writer",
];

/// Number of processes of a load, each in a cgroup of its own where the run has some; 0 for `idle`
/// and unknown loads.
pub fn processes(load: &str) -> usize {
    Load::parse_all(load).map_or(0, |loads| loads.len())
}

/// Access patterns of background processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Writer,
    Rewrite,
    Random,
    Reinstall,
    Backup,
    /// Transactions with a rollback journal, like SQLite's.
    Database,
    /// Small files, followed by `syncfs`.
    Unpack,
    /// A limited amount of data at regular intervals.
    Paced(Pace),
    /// The thumbnails of scenario B, see [`Background::want`].
    Thumbnails,
}

/// One step of a paced load, and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Time between two steps.
    pub(crate) pause: Duration,
    /// Bytes that a step reads.
    pub(crate) read_bytes: u64,
    /// Bytes that a step writes.
    pub(crate) write_bytes: u64,
    /// Number of steps between two syncs; None without syncs.
    pub(crate) sync_steps: Option<u64>,
}

const KIB: u64 = 1 << 10;

impl Pace {
    const VIDEO: Pace = Pace {
        pause: Duration::from_millis(62),
        read_bytes: 64 * KIB,
        write_bytes: 0,
        sync_steps: None,
    };
    const DOWNLOAD: Pace = Pace {
        pause: Duration::from_millis(25),
        read_bytes: 0,
        write_bytes: 128 * KIB,
        sync_steps: None,
    };
    const UPDATE: Pace = Pace {
        pause: Duration::from_millis(10),
        read_bytes: 64 * KIB,
        write_bytes: 128 * KIB,
        sync_steps: Some(16),
    };
    const FLAT_OUT: Pace = Pace {
        pause: Duration::ZERO,
        read_bytes: 128 * KIB,
        write_bytes: 128 * KIB,
        sync_steps: Some(1),
    };
}

/// A background process that a run asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) pattern: Pattern,
    pub(crate) own_memory_cgroup: bool,
}

impl Load {
    /// All processes of the load with this name; empty for `idle`.
    pub(crate) fn parse_all(name: &str) -> Result<Vec<Self>, Error> {
        let number = name.strip_prefix("apps-").and_then(|it| it.parse().ok());
        match (name, number) {
            ("idle", _) => Ok(Vec::new()),
            (_, Some(number @ 2..=6)) => {
                APPS.iter().take(number).map(|it| Load::parse(it)).collect()
            }
            _ => Ok(vec![Load::parse(name)?]),
        }
    }

    fn parse(name: &str) -> Result<Self, Error> {
        let (pattern, own_memory_cgroup) = match name.strip_suffix("-memcg") {
            Some(pattern) => (pattern, true),
            None => (name, false),
        };
        let pattern = match pattern {
            "writer" => Pattern::Writer,
            "rewrite" => Pattern::Rewrite,
            "random" => Pattern::Random,
            "reinstall" => Pattern::Reinstall,
            "backup" => Pattern::Backup,
            "database" => Pattern::Database,
            "unpack" => Pattern::Unpack,
            "flat-out" => Pattern::Paced(Pace::FLAT_OUT),
            "video" => Pattern::Paced(Pace::VIDEO),
            "download" => Pattern::Paced(Pace::DOWNLOAD),
            "update" => Pattern::Paced(Pace::UPDATE),
            _ => {
                return Err(Error::UnknownLoad {
                    name: name.to_owned(),
                    choices: Entry::names(LOADS),
                });
            }
        };
        Ok(Load {
            pattern,
            own_memory_cgroup,
        })
    }

    /// Whether it is steady from its first steps: writeback keeps up with it.
    pub(crate) fn is_steady(self) -> bool {
        matches!(
            self.pattern,
            Pattern::Paced(_)
                | Pattern::Reinstall
                | Pattern::Backup
                | Pattern::Database
                | Pattern::Unpack
        )
    }

    /// Whether it can make one pass over its file and end.
    pub(crate) fn has_an_end(self) -> bool {
        matches!(
            self.pattern,
            Pattern::Writer
                | Pattern::Rewrite
                | Pattern::Random
                | Pattern::Reinstall
                | Pattern::Backup
        )
    }

    /// Size of the load's file. The kernel would keep a sequential file below the dirty limit in
    /// memory, so that it reached the device slowly or never. The size is thus at least twice that
    /// limit.
    pub(crate) fn file_bytes(self, sizes: &Sizes) -> Result<u64, Error> {
        let bytes = match self.pattern {
            Pattern::Writer | Pattern::Thumbnails => sizes.writer_bytes,
            Pattern::Rewrite => sizes.rewrite_bytes,
            Pattern::Random => sizes.random_bytes,
            Pattern::Paced(_) | Pattern::Reinstall => return Ok(sizes.paced_bytes),
            Pattern::Backup => return Ok(sizes.backup_bytes),
            Pattern::Database => return Ok(sizes.database_bytes),
            Pattern::Unpack => return Ok(sizes.unpacked_bytes),
        };
        if self.own_memory_cgroup || !sizes.beyond_dirty_limit {
            return Ok(bytes);
        }
        let limit_bytes = Counters::read()?.limit_pages * PAGE_BYTES as u64;
        Ok(bytes.max(2 * limit_bytes))
    }

    /// Makes the load's file in the run's directory, for the run's background process `number`.
    pub(crate) fn prepare(
        self,
        request: &RunRequest,
        ground: &Ground,
        number: usize,
    ) -> Result<Prepared, Error> {
        let (sizes, stop) = (&ground.sizes, request.stop);
        let name = match number {
            0 => "background".to_owned(),
            _ => format!("background-{number}"),
        };
        let path = request.dir.join(&name);
        let file_bytes = self.file_bytes(sizes)?;
        let mut random = ground.random(&name);
        let app = request.background_cgroups.get(number);
        let app = app.map(|path| MemoryCgroup::existing(path)).transpose()?;
        let mut make = || self.make_file(&path, file_bytes, &mut random, stop);
        // Writeback is charged to the cgroup that first wrote the file.
        let file = match &app {
            Some(app) => app.inside(&mut make),
            None => make(),
        }?;
        let cgroup = match self.own_memory_cgroup {
            true => Some(MemoryCgroup::create(sizes.memcg_bytes)?),
            false => app,
        };
        Ok(Prepared {
            pattern: self.pattern,
            file,
            path,
            file_bytes,
            data: content::uniform(CHUNK_BYTES, &mut random),
            random,
            cgroup,
            idle_class: request.background_is_idle_class,
        })
    }

    /// Makes the load's file, or its directory, with the content that it has at the start.
    fn make_file(
        self,
        path: &Path,
        bytes: u64,
        random: &mut Random,
        stop: &AtomicBool,
    ) -> Result<File, Error> {
        let file = match self.pattern {
            Pattern::Writer | Pattern::Reinstall | Pattern::Thumbnails => create(path),
            Pattern::Rewrite | Pattern::Random => {
                fill(path, bytes, random, stop)?;
                OpenOptions::new().write(true).open(path)
            }
            Pattern::Paced(_) | Pattern::Backup => {
                fill(path, bytes, random, stop)?;
                OpenOptions::new().read(true).write(true).open(path)
            }
            Pattern::Database | Pattern::Unpack => {
                std::fs::create_dir(path).map_err(|source| Error::io("make", path, source))?;
                if self.pattern == Pattern::Database {
                    fill(&path.join(DATABASE), bytes, random, stop)?;
                }
                File::open(path)
            }
        };
        file.map_err(|source| Error::io("creat", path, source))
    }
}

/// A load whose file is prepared.
pub(crate) struct Prepared {
    pattern: Pattern,
    file: File,
    path: PathBuf,
    file_bytes: u64,
    data: Pages,
    random: Random,
    cgroup: Option<MemoryCgroup>,
    idle_class: bool,
}

impl Prepared {
    /// Starts the load as a process that runs until it is stopped.
    pub(crate) fn start(self) -> Result<Background, Error> {
        self.start_rounds(u64::MAX)
    }

    /// Starts the load as a process that makes one pass over its file, syncs it and ends.
    pub(crate) fn start_once(self) -> Result<Background, Error> {
        self.start_rounds(1)
    }

    fn start_rounds(self, rounds: u64) -> Result<Background, Error> {
        let script = Script {
            pattern: self.pattern,
            file: self.file,
            file_bytes: self.file_bytes,
            rounds,
            data: self.data,
            random: self.random,
            idle_class: self.idle_class,
        };
        Background::start(script, self.path, self.cgroup)
    }
}

/// Writes a file of `bytes` bytes, with direct I/O where the file system allows it. The file then
/// is on the device and not in memory, like an old one.
fn fill(path: &Path, bytes: u64, random: &mut Random, stop: &AtomicBool) -> Result<(), Error> {
    let chunk = bytes.min(PREPARE_BYTES as u64) as usize;
    let data = content::uniform(chunk, random);
    let failed = |source| Error::io("write", path, source);
    let mut file = create_uncached(path).map_err(failed)?;
    let mut left = bytes.next_multiple_of(PAGE_BYTES as u64);
    while left > 0 {
        go_on(stop)?;
        let now = left.min(data.len() as u64);
        file.write_all(&data[..now as usize]).map_err(failed)?;
        left -= now;
    }
    Ok(())
}

fn create_uncached(path: &Path) -> io::Result<File> {
    let direct = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .custom_flags(libc::O_DIRECT)
        .open(path);
    match direct {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => create(path),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_load_is_known_and_nothing_else() {
        for entry in LOADS {
            let number = entry.name.strip_prefix("apps-");
            let number = number.map_or(1, |it| it.parse().unwrap());
            let expected = if entry.name == "idle" { 0 } else { number };
            assert_eq!(Load::parse_all(entry.name).unwrap().len(), expected);
            assert_eq!(processes(entry.name), expected);
        }
        for name in [
            "",
            "memcg",
            "idle-memcg",
            "reader",
            "apps-1",
            "apps-7",
            "apps-2-memcg",
        ] {
            let error = Load::parse_all(name).unwrap_err().to_string();
            assert!(error.contains("writer, rewrite, random"), "{error}");
        }
    }

    #[test]
    fn a_filled_file_has_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let stop = AtomicBool::new(false);
        let bytes = PREPARE_BYTES as u64 + 4096;
        fill(&path, bytes, &mut Random::new(1, "test"), &stop).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes);
    }

    #[test]
    fn a_writer_outgrows_the_dirty_limit_unless_its_cgroup_has_its_own() {
        let mut sizes = Sizes::tiny();
        sizes.beyond_dirty_limit = true;
        let limit = Counters::read().unwrap().limit_pages * PAGE_BYTES as u64;
        let writer = Load::parse("writer").unwrap();
        assert!(writer.file_bytes(&sizes).unwrap() > limit);
        let confined = Load::parse("writer-memcg").unwrap();
        assert_eq!(confined.file_bytes(&sizes).unwrap(), sizes.writer_bytes);
    }
}
