//! Replay of system calls in a directory, in real time, by threads that block.
//!
//! Data that the trace reads before it writes them are written first. They do not compress and are
//! dropped from the page cache. Files that the trace makes do not exist when it begins.
//!
//! Each open file of the trace is one here. Threads may come in another order than in the trace;
//! the first use then opens the file.

use crate::calls::{Action, Before, Calls, Opening};
use crate::crew::{Crew, Done, PIECE_BYTES, Sum};
use crate::on_file::fill;
use crate::sandbox::Sandbox;
use crate::schedule::Pace;
use crate::{Error, Times};
use rustix::fs::{Advice, FallocateFlags, fallocate};
use rustix::io::Errno;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use sys::PathError;
use sys::device::{PAGE_BYTES, Pages};

/// The directory of a replay.
#[derive(Clone, Debug)]
pub struct Place {
    /// Path of the directory; a missing one is made.
    pub path: PathBuf,
    /// The directory need not be empty, and files with the trace's names are overwritten and
    /// removed.
    pub overwrite: bool,
}

/// Results of a replay in a directory.
#[derive(Clone, Debug, Serialize)]
pub struct OnDirectory {
    /// Number of calls in all repetitions.
    pub operations: u64,
    /// Time from the first call to the last end, in nanoseconds.
    pub elapsed_ns: u64,
    /// Times of calls, by the names in [`Action::KINDS`].
    pub times: BTreeMap<&'static str, Times>,
    /// Number of calls made more than 1 ms after they were due.
    pub late_operations: u64,
    /// Largest delay of a call, in nanoseconds.
    pub latest_ns: u64,
    /// Number of calls whose outcome differs from that in the trace. An earlier call is not in the
    /// trace, or came later here.
    pub unlike_operations: u64,
    /// The first such call and its error; None without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_unlike: Option<String>,
    /// Bytes written before the trace began, since the trace reads them.
    pub prepared_bytes: u64,
}

/// Plays `calls` `loops` times. `prepared` is called with the number of prepared bytes and their
/// total.
///
/// # Errors
/// [`Error::Io`], also where something is in the directory and may not be overwritten (its kind
/// is `AlreadyExists`); [`Error::TooSmall`]; [`Error::Interrupted`] when `stop` becomes true.
pub fn on_directory(
    calls: &Calls,
    pace: Pace,
    loops: u32,
    place: &Place,
    prepared: &mut dyn FnMut(u64, u64),
    stop: &AtomicBool,
) -> Result<OnDirectory, Error> {
    let sandbox = open(place)?;
    allow_many_files();
    let mut player = Player {
        calls,
        sandbox: &sandbox,
        place: &place.path,
        open: calls.handles().iter().map(|_| Mutex::default()).collect(),
        unlike: AtomicU64::new(0),
        first_unlike: Mutex::default(),
    };
    let mut sum = Sum::new(Action::KINDS.len());
    let (mut elapsed_ns, mut prepared_bytes) = (0, 0);
    for _ in 0..loops {
        prepared_bytes += player.prepare(prepared, stop)?;
        let crew = Crew {
            trace: calls,
            pace,
            stop,
        };
        let begun = Instant::now();
        sum = crew.play(sum, &|index, buffer: &mut Pages| {
            player.perform(index, buffer)
        })?;
        elapsed_ns += begun.elapsed().as_nanos() as u64;
        player.open.iter_mut().for_each(|it| *it = Mutex::default());
    }
    let kinds = Action::KINDS.iter().zip(&sum.watches);
    let times = kinds.map(|(kind, watch)| (*kind, watch.times()));
    Ok(OnDirectory {
        operations: sum.operations,
        elapsed_ns,
        times: times.filter(|(_, times)| times.count > 0).collect(),
        late_operations: sum.late_operations,
        latest_ns: sum.latest_ns,
        unlike_operations: player.unlike.into_inner(),
        first_unlike: player
            .first_unlike
            .into_inner()
            .unwrap_or_else(|it| it.into_inner()),
        prepared_bytes,
    })
}

/// Opens the directory, which must be empty unless it may be overwritten.
fn open(place: &Place) -> Result<Sandbox, Error> {
    let path = &place.path;
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(PathError::of("make", path)(error).into());
        }
        _ => {}
    }
    // The check uses the open directory, which is the one that is written to.
    let sandbox = Sandbox::open(path).map_err(PathError::of("open", path))?;
    if !place.overwrite && !sandbox.is_empty().map_err(PathError::of("list", path))? {
        return Err(PathError::of("write to", path)(io::ErrorKind::AlreadyExists.into()).into());
    }
    Ok(sandbox)
}

/// Raises the limit of open files, since a machine has more than one process may. If the limit
/// stays, a later open reports it.
fn allow_many_files() {
    // SAFETY: reads and writes one `struct rlimit`, of which all fields are integers.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

struct Player<'a> {
    calls: &'a Calls,
    sandbox: &'a Sandbox,
    place: &'a Path,
    /// Open file by handle; None before it is opened and after it is closed.
    open: Vec<Mutex<Option<Arc<File>>>>,
    unlike: AtomicU64,
    first_unlike: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|it| it.into_inner())
}

impl Player<'_> {
    /// Prepares the files that the trace reads, and removes those that it makes. Returns the number
    /// of prepared bytes.
    fn prepare(&self, prepared: &mut dyn FnMut(u64, u64), stop: &AtomicBool) -> Result<u64, Error> {
        let paths = || self.calls.paths().iter().zip(self.calls.before());
        let wanted = paths().map(|(_, before)| match before {
            Before::File { bytes } => *bytes,
            _ => 0,
        });
        let total_bytes: u64 = wanted.sum();
        // Deepest paths come first, so that directories are empty when they are removed.
        let made: BTreeSet<&[u8]> = paths()
            .filter(|(_, before)| **before == Before::Nothing)
            .map(|(path, _)| path.as_slice())
            .collect();
        for path in made.iter().rev() {
            self.remove(path).map_err(self.failed("remove", path))?;
        }
        let mut done_bytes = 0;
        let mut buffer = Pages::zeroed(PIECE_BYTES);
        for (path, before) in paths() {
            let above = self.make_above(path, &made);
            above.map_err(self.failed("make the directories of", path))?;
            match before {
                Before::Nothing => {}
                Before::Directory => match self.sandbox.make_directory(path) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(self.failed("make", path)(error));
                    }
                    _ => {}
                },
                Before::File { bytes } => {
                    let file = self.sandbox.file(path, libc::O_RDWR | libc::O_CREAT);
                    let file = file.map_err(self.failed("make", path))?;
                    let free_bytes = self.sandbox.free_bytes();
                    let free_bytes = free_bytes.map_err(self.failed("ask about", path))?;
                    let size = file.metadata().map_err(self.failed("look at", path))?.len();
                    if bytes.saturating_sub(size) > free_bytes {
                        return Err(Error::TooSmall {
                            target: self.place.display().to_string(),
                            needed_bytes: total_bytes,
                            size_bytes: free_bytes + done_bytes,
                        });
                    }
                    // Existing data are kept, such as those of a restored file system.
                    lengthen(&file, size, *bytes, &mut buffer, stop)
                        .map_err(self.failed("write to", path))?;
                    done_bytes += bytes.saturating_sub(size);
                }
            }
            prepared(done_bytes, total_bytes);
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
        }
        Ok(done_bytes)
    }

    /// Makes the directories above a path, except those that the trace makes.
    fn make_above(&self, path: &[u8], made: &BTreeSet<&[u8]>) -> io::Result<()> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let first = ends
            .map(|(at, _)| at)
            .find(|at| made.contains(&path[..*at]));
        let there = first.map_or(path, |at| &path[..at]);
        self.sandbox.make_directories_above(there)
    }

    /// Removes a file or an empty directory, if it exists.
    fn remove(&self, path: &[u8]) -> io::Result<()> {
        let outcome = match self.sandbox.remove(path, false) {
            Err(error) if error.raw_os_error() == Some(libc::EISDIR) => {
                self.sandbox.remove(path, true)
            }
            outcome => outcome,
        };
        match outcome {
            Err(error) if is_unlike(&error) => Ok(()),
            outcome => outcome,
        }
    }

    fn perform(&self, index: usize, buffer: &mut Pages) -> Result<Done, Error> {
        let action = self.calls.calls()[index].action;
        let bytes = match self.act(&action, buffer) {
            Ok(bytes) => bytes,
            Err(error) if is_unlike(&error) => {
                self.unlike.fetch_add(1, Ordering::Relaxed);
                let kind = Action::KINDS[action.kind()];
                let path = String::from_utf8_lossy(self.path_of(&action)).into_owned();
                lock(&self.first_unlike).get_or_insert_with(|| format!("{kind} {path}: {error}"));
                0
            }
            Err(error) => {
                return Err(self.failed("replay a call on", self.path_of(&action))(
                    error,
                ));
            }
        };
        Ok(Done {
            kind: action.kind(),
            pages: bytes.div_ceil(PAGE_BYTES as u64),
        })
    }

    /// Performs an action and returns the number of bytes that it moved.
    fn act(&self, action: &Action, buffer: &mut Pages) -> io::Result<u64> {
        let path = |number: u32| self.calls.paths()[number as usize].as_slice();
        match *action {
            Action::Open { handle } => {
                let opening = self.calls.handles()[handle as usize].opening;
                let mut open = lock(&self.open[handle as usize]);
                match &*open {
                    // Another thread opened the file earlier than in the trace; the truncation is
                    // still done.
                    Some(file) if opening.truncate => file.set_len(0)?,
                    Some(_) => {}
                    None => *open = Some(Arc::new(self.open(handle, true)?)),
                }
                Ok(0)
            }
            Action::Close { handle } => {
                drop(lock(&self.open[handle as usize]).take());
                Ok(0)
            }
            Action::Read {
                handle,
                offset,
                bytes,
            } => read(&*self.file(handle)?, offset, bytes, buffer),
            Action::Write {
                handle,
                offset,
                bytes,
            } => write(&*self.file(handle)?, offset, bytes, buffer),
            Action::Sync { handle, data_only } => {
                let file = self.file(handle)?;
                if data_only {
                    file.sync_data()?;
                } else {
                    file.sync_all()?;
                }
                Ok(0)
            }
            Action::SyncAll => self.sandbox.sync_all().map(|()| 0),
            Action::SyncRange {
                handle,
                offset,
                bytes,
                flags,
            } => sync_range(&*self.file(handle)?, (offset, bytes), flags.into()).map(|()| 0),
            Action::Allocate {
                handle,
                mode,
                offset,
                bytes,
            } => {
                let mode = FallocateFlags::from_bits_retain(mode.into());
                match fallocate(&*self.file(handle)?, mode, offset, bytes) {
                    // This file system cannot allocate in this way, and the trace's could.
                    Err(Errno::OPNOTSUPP) => Err(io::Error::from_raw_os_error(libc::EINVAL)),
                    outcome => Ok(outcome.map(|()| 0)?),
                }
            }
            Action::Truncate { handle, bytes } => {
                self.file(handle)?.set_len(bytes)?;
                Ok(0)
            }
            Action::Rename { from, to } => self.sandbox.rename(path(from), path(to)).map(|()| 0),
            Action::Unlink { path: it } => self.sandbox.remove(path(it), false).map(|()| 0),
            Action::RemoveDirectory { path: it } => self.sandbox.remove(path(it), true).map(|()| 0),
            Action::MakeDirectory { path: it } => self.sandbox.make_directory(path(it)).map(|()| 0),
        }
    }

    /// The file of a handle, which is opened if it is not.
    fn file(&self, handle: u32) -> io::Result<Arc<File>> {
        let mut open = lock(&self.open[handle as usize]);
        let file = match open.take() {
            Some(file) => file,
            None => Arc::new(self.open(handle, false)?),
        };
        *open = Some(file.clone());
        Ok(file)
    }

    /// Opens the file of a handle; `as_traced` with all flags that change the file.
    fn open(&self, handle: u32, as_traced: bool) -> io::Result<File> {
        let handle = self.calls.handles()[handle as usize];
        let path = &self.calls.paths()[handle.path as usize];
        let file = self.sandbox.file(path, flags(handle.opening, as_traced))?;
        let kind = file.metadata()?.file_type();
        match kind.is_file() || kind.is_dir() {
            true => Ok(file),
            // A device or a pipe lies at the path.
            false => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        }
    }

    fn path_of(&self, action: &Action) -> &[u8] {
        let number = match *action {
            Action::Open { handle }
            | Action::Close { handle }
            | Action::Read { handle, .. }
            | Action::Write { handle, .. }
            | Action::Sync { handle, .. }
            | Action::SyncRange { handle, .. }
            | Action::Allocate { handle, .. }
            | Action::Truncate { handle, .. } => self.calls.handles()[handle as usize].path,
            Action::Rename { from: path, .. }
            | Action::Unlink { path }
            | Action::MakeDirectory { path }
            | Action::RemoveDirectory { path } => path,
            // It is of the whole directory.
            Action::SyncAll => return b"",
        };
        &self.calls.paths()[number as usize]
    }

    fn failed(&self, verb: &'static str, path: &[u8]) -> impl Fn(io::Error) -> Error + use<> {
        let path = self.place.join(&*String::from_utf8_lossy(path));
        move |source| match source.kind() {
            io::ErrorKind::Interrupted => Error::Interrupted,
            _ => Error::Io(PathError {
                verb,
                path: path.clone(),
                source,
            }),
        }
    }
}

/// Whether an error comes from a name that exists or not, unlike in the trace. All other errors end
/// a replay.
fn is_unlike(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENOENT
                | libc::EEXIST
                | libc::EISDIR
                | libc::ENOTDIR
                | libc::ENOTEMPTY
                | libc::EBADF
                | libc::EINVAL
        )
    )
}

fn flags(opening: Opening, as_traced: bool) -> i32 {
    let flag = |set: bool, flag: i32| if set { flag } else { 0 };
    // A file that was opened for reading may be truncated by its path.
    let access = match opening.write {
        true => libc::O_RDWR,
        false => libc::O_RDONLY,
    };
    access
        | flag(opening.create, libc::O_CREAT)
        | flag(opening.exclusive && as_traced, libc::O_EXCL)
        | flag(opening.truncate && as_traced, libc::O_TRUNC)
        | flag(opening.append, libc::O_APPEND)
        | flag(opening.direct, libc::O_DIRECT)
        | flag(opening.sync, libc::O_DSYNC)
        | flag(opening.directory, libc::O_DIRECTORY)
}

fn sync_range(file: &File, (offset, bytes): (u64, u64), flags: u32) -> io::Result<()> {
    // SAFETY: takes numbers only; the descriptor is open.
    let outcome =
        unsafe { libc::sync_file_range(file.as_raw_fd(), offset as i64, bytes as i64, flags) };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads up to the end of the file, which may be less than in the trace.
fn read(file: &File, offset: u64, bytes: u64, buffer: &mut Pages) -> io::Result<u64> {
    let mut done = 0;
    while done < bytes {
        let piece = (bytes - done).min(PIECE_BYTES as u64) as usize;
        match file.read_at(&mut buffer[..piece], offset + done)? {
            0 => break,
            got => done += got as u64,
        }
    }
    Ok(done)
}

fn write(file: &File, offset: u64, bytes: u64, buffer: &mut Pages) -> io::Result<u64> {
    let mut done = 0;
    while done < bytes {
        let piece = (bytes - done).min(PIECE_BYTES as u64) as usize;
        // Data are filled in whole words.
        let filled = piece.next_multiple_of(8).min(PIECE_BYTES);
        fill(&mut buffer[..filled], offset + done);
        file.write_all_at(&buffer[..piece], offset + done)?;
        done += piece as u64;
    }
    Ok(bytes)
}

/// Writes the missing data, syncs them and drops them from the page cache.
fn lengthen(
    file: &File,
    from: u64,
    to: u64,
    buffer: &mut Pages,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut offset = from;
    while offset < to {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let piece = (to - offset).min(PIECE_BYTES as u64);
        write(file, offset, piece, buffer)?;
        offset += piece;
    }
    file.sync_all()?;
    // Advice that is not taken does no harm.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    Ok(())
}

#[cfg(test)]
mod tests;
