//! Background loads: their files, and the code of those that read and write one file.
//!
//! `video`, `download` and `update` are the weak, medium and high load of the launch paper ("003",
//! §V), which gives no numbers. `reinstall` and `backup` are FastTrack's ("002", 6.1), which have no
//! pace; the paper names these two of its six apps.
//!
//! All loads use the page cache. `-memcg` after a name puts the load into a memory cgroup of its
//! own.

use crate::background::{Background, Pattern, Script, Shared, nap, succeeded, sync};
use crate::memcg::MemoryCgroup;
use crate::meter::go_on;
use crate::sizes::Sizes;
use crate::stage::RunContext;
use crate::timed::create;
use crate::writeback::Counters;
use crate::{Error, RunRequest};
use crate::{code, content};
use record::load::Process;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::device::{PAGE_BYTES, Pages};
use sys::random::Random;

/// Size of one write, small enough to make the written total a fine clock.
const CHUNK_BYTES: usize = 128 << 10;

/// Size of one write while a file is prepared.
const PREPARE_BYTES: usize = 1 << 20;

/// One step of a paced load, and its interval.
#[derive(Clone, Copy)]
struct Pace {
    /// Time between two steps.
    pause: Duration,
    /// Bytes that a step reads.
    read_bytes: u64,
    /// Bytes that a step writes.
    write_bytes: u64,
    /// Number of steps between two syncs; None without syncs.
    sync_steps: Option<u64>,
}

const KIB: u64 = 1 << 10;

/// Bytes that an installer writes between two syncs: one of an app's larger files.
const INSTALLED_FILE_BYTES: u64 = 4 << 20;

pub(crate) const WRITER: Pattern = Pattern {
    bytes: |sizes| sizes.writer_bytes,
    is_steady: false,
    has_an_end: true,
    make: |path, _, _, _| new_file(path),
    perform: |script, shared| script.in_rounds(shared, |script| write_through(script, shared)),
};

pub(crate) const REWRITE: Pattern = Pattern {
    bytes: |sizes| sizes.rewrite_bytes,
    make: filled_file,
    perform: |script, shared| {
        script.in_rounds(shared, |script| {
            // SAFETY: our own descriptor.
            succeeded(unsafe { libc::ftruncate(script.file.as_raw_fd(), 0) } as isize)?;
            write_through(script, shared)
        })
    },
    ..WRITER
};

pub(crate) const RANDOM: Pattern = Pattern {
    bytes: |sizes| sizes.random_bytes,
    make: filled_file,
    perform: |script, shared| script.in_rounds(shared, |script| write_randomly(script, shared)),
    ..WRITER
};

pub(crate) const REINSTALL: Pattern = Pattern {
    bytes: |sizes| sizes.paced_bytes,
    is_steady: true,
    has_an_end: true,
    make: |path, _, _, _| new_file(path),
    perform: reinstall,
};

pub(crate) const BACKUP: Pattern = Pattern {
    bytes: |sizes| sizes.backup_bytes,
    is_steady: true,
    has_an_end: true,
    make: filled_file,
    perform: back_up,
};

pub(crate) const VIDEO: Pattern = Pattern {
    bytes: |sizes| sizes.paced_bytes,
    is_steady: true,
    has_an_end: false,
    make: filled_file,
    perform: |script, shared| {
        let pace = Pace {
            pause: Duration::from_millis(62),
            read_bytes: 64 * KIB,
            write_bytes: 0,
            sync_steps: None,
        };
        keep_pace(script, pace, shared)
    },
};

pub(crate) const DOWNLOAD: Pattern = Pattern {
    perform: |script, shared| {
        let pace = Pace {
            pause: Duration::from_millis(25),
            read_bytes: 0,
            write_bytes: 128 * KIB,
            sync_steps: None,
        };
        keep_pace(script, pace, shared)
    },
    ..VIDEO
};

pub(crate) const UPDATE: Pattern = Pattern {
    perform: |script, shared| {
        let pace = Pace {
            pause: Duration::from_millis(10),
            read_bytes: 64 * KIB,
            write_bytes: 128 * KIB,
            sync_steps: Some(16),
        };
        keep_pace(script, pace, shared)
    },
    ..VIDEO
};

pub(crate) const FLAT_OUT: Pattern = Pattern {
    perform: |script, shared| {
        let pace = Pace {
            pause: Duration::ZERO,
            read_bytes: 128 * KIB,
            write_bytes: 128 * KIB,
            sync_steps: Some(1),
        };
        keep_pace(script, pace, shared)
    },
    ..VIDEO
};

fn write_through(script: &Script, shared: &Shared) -> Result<(), i32> {
    let mut offset = 0;
    while offset < script.file_bytes {
        let bytes = (script.file_bytes - offset).min(script.data.len() as u64);
        offset += script.write_at(&script.data[..bytes as usize], offset, shared)?;
    }
    Ok(())
}

/// Writes as many pages as the file has, at random places.
fn write_randomly(script: &mut Script, shared: &Shared) -> Result<(), i32> {
    let pages = script.file_bytes.div_ceil(PAGE_BYTES as u64);
    for _ in 0..pages {
        let offset = script.random.below(pages) * PAGE_BYTES as u64;
        let source = script.random.below((script.data.len() / PAGE_BYTES) as u64) as usize;
        let page = &script.data[source * PAGE_BYTES..][..PAGE_BYTES];
        script.write_at(page, offset, shared)?;
    }
    Ok(())
}

/// Writes the parts of the file and syncs each, as an installer does with files.
fn reinstall(script: &mut Script, shared: &Shared) -> Result<(), i32> {
    let (mut offset, mut unsynced) = (0, 0);
    let mut left = script.file_bytes.saturating_mul(script.rounds);
    while left > 0 {
        let written = script.write_at(&script.data, offset, shared)?;
        offset = (offset + written) % script.file_bytes;
        unsynced += written;
        left -= written.min(left);
        if unsynced >= INSTALLED_FILE_BYTES {
            unsynced = 0;
            sync(&script.file)?;
        }
    }
    sync(&script.file)?;
    shared.finish();
    Ok(())
}

/// Reads the file; bytes that were read count as written, since a backup would write them
/// elsewhere.
fn back_up(script: &mut Script, shared: &Shared) -> Result<(), i32> {
    let (mut offset, bytes) = (0, script.data.len() as u64);
    let mut left = script.file_bytes.saturating_mul(script.rounds);
    while left > 0 {
        script.read_at(bytes, offset)?;
        shared.progress(bytes);
        offset = (offset + bytes) % script.file_bytes;
        left -= bytes.min(left);
    }
    shared.finish();
    Ok(())
}

/// Reads the first half of the file and writes the second, one step at a time.
fn keep_pace(script: &mut Script, pace: Pace, shared: &Shared) -> Result<(), i32> {
    let half = script.file_bytes / 2;
    let (mut read_bytes, mut written_bytes, mut steps) = (0, 0, 0);
    loop {
        nap(pace.pause);
        if pace.read_bytes > 0 {
            script.read_at(pace.read_bytes, read_bytes % half)?;
            read_bytes += pace.read_bytes;
        }
        if pace.write_bytes > 0 {
            let data = &script.data[..pace.write_bytes as usize];
            written_bytes += script.write_at(data, half + written_bytes % half, shared)?;
        }
        steps += 1;
        if pace.sync_steps.is_some_and(|every| steps % every == 0) {
            sync(&script.file)?;
        }
    }
}

/// A background process that a run asks for.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) pattern: &'static Pattern,
    pub(crate) own_memory_cgroup: bool,
}

impl Load {
    /// All processes of a load.
    pub(crate) fn all(load: &record::Load) -> Vec<Self> {
        let process = |it: &Process| Load {
            pattern: code::pattern(*it),
            own_memory_cgroup: it.own_memory_cgroup,
        };
        load.processes.iter().map(process).collect()
    }

    /// Size of the load's file. The kernel would keep a sequential file below the dirty limit in
    /// memory, so that it reached the device slowly or never. The size is thus at least twice that
    /// limit.
    pub(crate) fn file_bytes(self, sizes: &Sizes) -> Result<u64, Error> {
        let bytes = (self.pattern.bytes)(sizes);
        if self.pattern.is_steady || self.own_memory_cgroup || !sizes.beyond_dirty_limit {
            return Ok(bytes);
        }
        let limit_bytes = Counters::read()?.limit_pages * PAGE_BYTES as u64;
        Ok(bytes.max(2 * limit_bytes))
    }

    /// Makes the load's file in the run's directory, for the run's background process `number`.
    pub(crate) fn prepare(
        self,
        request: &RunRequest,
        context: &RunContext,
        number: usize,
    ) -> Result<Prepared, Error> {
        let (sizes, stop) = (&context.sizes, request.stop);
        let name = match number {
            0 => "background".to_owned(),
            _ => format!("background-{number}"),
        };
        let path = request.dir.join(&name);
        let file_bytes = self.file_bytes(sizes)?;
        let mut random = context.random(&name);
        let app = request.background_cgroups.get(number);
        let app = app.map(|path| MemoryCgroup::existing(path)).transpose()?;
        let mut make = || (self.pattern.make)(&path, file_bytes, &mut random, stop);
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
}

/// A load whose file is prepared.
pub(crate) struct Prepared {
    pattern: &'static Pattern,
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

/// Makes an empty file.
fn new_file(path: &Path) -> Result<File, Error> {
    create(path).map_err(|source| Error::io("creat", path, source))
}

/// Makes a file of `bytes` bytes.
fn filled_file(
    path: &Path,
    bytes: u64,
    random: &mut Random,
    stop: &AtomicBool,
) -> Result<File, Error> {
    fill(path, bytes, random, stop)?;
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.map_err(|source| Error::io("open", path, source))
}

/// Makes a directory for a load's files, and opens it.
pub(crate) fn make_directory(path: &Path) -> Result<File, Error> {
    std::fs::create_dir(path)
        .and_then(|()| File::open(path))
        .map_err(|source| Error::io("make", path, source))
}

/// Writes a file of `bytes` bytes, with direct I/O where the file system allows it. The file then
/// is on the device and not in memory, like an old one.
pub(crate) fn fill(
    path: &Path,
    bytes: u64,
    random: &mut Random,
    stop: &AtomicBool,
) -> Result<(), Error> {
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
    fn a_filled_file_has_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let stop = AtomicBool::new(false);
        let bytes = PREPARE_BYTES as u64 + 4096;
        fill(&path, bytes, &mut Random::for_purpose(1, "test"), &stop).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes);
    }

    #[test]
    fn a_writer_outgrows_the_dirty_limit_unless_its_cgroup_has_its_own() {
        let mut sizes = Sizes::tiny();
        sizes.beyond_dirty_limit = true;
        let limit = Counters::read().unwrap().limit_pages * PAGE_BYTES as u64;
        let load = |name: &str| Load::all(&name.parse().unwrap())[0];
        let writer = load("writer");
        assert!(writer.file_bytes(&sizes).unwrap() > limit);
        let confined = load("writer-memcg");
        assert_eq!(confined.file_bytes(&sizes).unwrap(), sizes.writer_bytes);
    }
}
