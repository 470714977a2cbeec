//! Observation of a start that is recorded: by IOPro's kernel programs if they can be loaded (as
//! root), otherwise by ptrace.

use ::iopro::capture::{self, Background, What as Whose};
use ::iopro::event::{CallExit, CallKind, Dev, Event, FileId, Io, Op, ThreadInfo, What};
use ::iopro::recording::Reader;
use ::launch::profile::PAGE_BYTES;
use ::launch::record::{Error, Request, Started, Touched, supervise, trace};
use ::sys::device::{LOOP_MAJOR, backing, shown_at};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use sys::PathError;

/// Unit of a bio's place.
const SECTOR_BYTES: u64 = 512;

/// Source of the recorded accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watcher {
    Iopro,
    Ptrace,
}

impl Watcher {
    /// The better source that this user may use.
    pub fn best() -> Watcher {
        match rustix::process::geteuid().is_root() {
            true => Watcher::Iopro,
            false => Watcher::Ptrace,
        }
    }

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Watcher::Iopro => "iopro",
            Watcher::Ptrace => "ptrace",
        }
    }

    /// Starts the app and returns the pages it touched. If the kernel refuses programs, this and
    /// later starts are traced by ptrace.
    pub fn watch(&mut self, request: &Request, stop: &AtomicBool) -> Result<Started, Error> {
        if *self == Watcher::Iopro {
            match by_iopro(request, stop) {
                Err(capture::Error::Command { command, source }) => {
                    return Err(Error::Start { command, source });
                }
                Err(error @ (capture::Error::DiskFull { .. } | capture::Error::File(_))) => {
                    return Err(Error::Watcher(error.to_string()));
                }
                Err(error) => eprintln!("frontrow: the app is traced by ptrace instead: {error}"),
                Ok(started) => return Ok(started),
            }
        }
        *self = Watcher::Ptrace;
        trace(request, stop)
    }
}

fn by_iopro(request: &Request, stop: &AtomicBool) -> Result<Started, capture::Error> {
    let failed = PathError::of("access", &std::env::temp_dir());
    let recording = tempfile::NamedTempFile::new().map_err(&failed)?;
    let running = Background::start(capture::Request {
        output: recording.path().to_owned(),
        what: Whose::System(None),
        btf: None,
    })?;
    let app = run(request, stop);
    running.finish()?;
    let reader =
        Reader::open(recording.path()).map_err(|error| failed(std::io::Error::other(error)))?;
    let (app, ended) = app?;
    let mut start = Start::of(app);
    for event in reader.events() {
        start.see(&event.map_err(&failed)?);
    }
    Ok(Started {
        touched: start.touched(),
        failed: ended.failed,
        asked: ended.asked,
    })
}

/// End of the app.
struct Ended {
    /// Its status if it failed by itself.
    failed: Option<ExitStatus>,
    asked: bool,
}

/// Starts the app, asks it to end after the limit, and returns its process id and how it ended.
fn run(request: &Request, stop: &AtomicBool) -> Result<(u32, Ended), capture::Error> {
    let name = request.command.first().cloned().unwrap_or_default();
    let failed = |source| capture::Error::Command {
        command: name.to_string_lossy().into_owned(),
        source,
    };
    let mut start = Command::new(&name);
    let mut app = start
        .args(request.command.iter().skip(1))
        .spawn()
        .map_err(&failed)?;
    let id = app.id();
    let waited = supervise(id, request.limit, stop, |is_over| {
        let status = app.wait();
        (status, is_over.load(Ordering::Relaxed))
    });
    let (status, asked) = waited.map_err(&failed)?;
    let status = status.map_err(&failed)?;
    let failed = (!asked && !status.success()).then_some(status);
    Ok((id, Ended { failed, asked }))
}

/// Data gathered from the events of a start.
struct Start {
    /// The app's processes: the first one and its descendants.
    processes: HashSet<u32>,
    /// Thread ids of the app's processes.
    threads: HashSet<u32>,
    names: HashMap<FileId, PathBuf>,
    /// Accessed bytes of files, and of block devices that may be images, in order of access.
    files: Vec<(FileId, Range<u64>)>,
    /// Pages that were not in memory.
    added: Vec<(FileId, Range<u64>)>,
    /// Files that were read by calls that copy from one file to another.
    copied: HashSet<FileId>,
}

impl Start {
    fn of(process: u32) -> Start {
        Start {
            processes: HashSet::from([process]),
            threads: HashSet::from([process]),
            names: HashMap::new(),
            files: Vec::new(),
            added: Vec::new(),
            copied: HashSet::new(),
        }
    }

    fn see(&mut self, event: &Event) {
        let is_app = self.threads.contains(&event.thread);
        match &event.what {
            What::Thread(thread) => self.meet(thread),
            What::Name(name) if !name.cut => {
                self.names.insert(name.file, PathBuf::from(&name.path));
            }
            What::CallExit(exit) if is_app => self.read(exit),
            What::Added(run) if is_app => {
                let pages = run.index..run.index + u64::from(run.pages);
                self.added.push((run.file, pages));
            }
            What::Queue(queue) if is_app => self.read_device(&queue.io),
            _ => {}
        }
    }

    fn read(&mut self, exit: &CallExit) {
        let call = &exit.call;
        if let (Some(source), 1..) = (call.from, exit.result) {
            // The event has no offset: the added pages are the pages read.
            self.copied.insert(source);
            self.files.push((source, 0..0));
            return;
        }
        let bytes = match call.kind {
            CallKind::ReadFault => PAGE_BYTES,
            kind if reads(kind) => u64::try_from(exit.result).unwrap_or(0),
            _ => 0,
        };
        if let (Some(file), Some(begin), 1..) = (call.file, call.offset_bytes, bytes) {
            self.files.push((file, begin..begin + bytes));
        }
    }

    /// A file system on a loop device reads its image where the app reads a file.
    fn read_device(&mut self, io: &Io) {
        if io.op == Op::Read && io.dev.major() == LOOP_MAJOR {
            let begin = io.sector * SECTOR_BYTES;
            self.files
                .push((disk(io.dev), begin..begin + u64::from(io.bytes)));
        }
    }

    fn meet(&mut self, thread: &ThreadInfo) {
        let is_app =
            self.processes.contains(&thread.process) || self.processes.contains(&thread.parent);
        match is_app && !thread.kernel {
            true => {
                self.processes.insert(thread.process);
                self.threads.insert(thread.thread);
            }
            // The inode number belongs to another file now.
            false => {
                self.threads.remove(&thread.thread);
            }
        }
    }

    fn touched(self) -> Touched {
        let mut touched = Touched::default();
        let mut places: HashMap<FileId, Option<Place>> = HashMap::new();
        let (blocks, added): (Vec<_>, Vec<_>) = self
            .added
            .into_iter()
            .partition(|(file, _)| file.is_block_device());
        let copied = added
            .into_iter()
            .filter(|(file, _)| self.copied.contains(file))
            .map(|(file, pages)| (file, pages.start * PAGE_BYTES..pages.end * PAGE_BYTES));
        for (file, bytes) in self.files.into_iter().chain(copied) {
            let place = places.entry(file).or_insert_with(|| {
                let named = || found(file, self.names.get(&file)?).map(Place::whole);
                image(file).or_else(named)
            });
            if let Some(place) = place {
                touched.pages(place.path.clone(), place.pages(&bytes));
            }
        }
        // Of a file system in an image, these are read from the image.
        let blocks = blocks
            .into_iter()
            .filter(|(device, _)| image(*device).is_none());
        for (device, pages) in blocks {
            touched.metadata(number(device), pages);
        }
        touched
    }
}

/// The file that has a file's or a block device's data.
struct Place {
    path: PathBuf,
    /// Offset of the data in the file.
    offset_bytes: u64,
}

impl Place {
    fn whole(path: PathBuf) -> Place {
        Place {
            path,
            offset_bytes: 0,
        }
    }

    fn pages(&self, bytes: &Range<u64>) -> Range<u64> {
        let place = |at| self.offset_bytes + at;
        place(bytes.start) / PAGE_BYTES..place(bytes.end).div_ceil(PAGE_BYTES)
    }
}

/// The image whose pages a loop device reads; None for other files and devices, and for a loop
/// device that reads past the page cache.
fn image(file: FileId) -> Option<Place> {
    let device = file.is_block_device().then_some(file.dev)?;
    let image = backing(Path::new("/"), (device.major(), device.minor()))?;
    (!image.direct).then_some(Place {
        path: image.file,
        offset_bytes: image.offset_bytes,
    })
}

/// A disk as a file.
fn disk(dev: Dev) -> FileId {
    FileId {
        dev,
        inode: 0,
        generation: 0,
    }
}

fn reads(kind: CallKind) -> bool {
    matches!(
        kind,
        CallKind::Read | CallKind::Pread64 | CallKind::Readv | CallKind::Preadv | CallKind::Preadv2
    )
}

/// Path of the file that its file system calls `path`.
fn found(file: FileId, path: &Path) -> Option<PathBuf> {
    let shown = shown_at(Path::new("/"), (file.dev.major(), file.dev.minor()), path);
    let is_it = |path: &PathBuf| {
        fs::symlink_metadata(path)
            .is_ok_and(|it| it.is_file() && it.ino() == file.inode && it.dev() == number(file))
    };
    shown.ok()?.into_iter().find(is_it)
}

/// Device number, as in `st_dev`.
fn number(file: FileId) -> u64 {
    libc::makedev(file.dev.major(), file.dev.minor())
}
