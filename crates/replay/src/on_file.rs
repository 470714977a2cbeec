//! Replay on a block device or a file, in real time, by threads that block.

use crate::crew::{Crew, Done, PIECE_BYTES, Sum};
use crate::packing::Packing;
use crate::schedule::Pace;
use crate::trace::{Kind, Operation, Trace};
use crate::{Error, TimesByKind};
use rustix::fs::{FallocateFlags, fallocate};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use sys::PathError;
use sys::device::{PAGE_BYTES, Pages};
use sys::random::Random;

/// The device or file of a replay.
#[derive(Clone, Debug)]
pub struct Target {
    /// Path of a block device or a file; a missing file is created.
    pub path: PathBuf,
    /// Existing data may be overwritten.
    pub overwrite: bool,
    /// I/O goes through the page cache.
    pub buffered: bool,
    /// Writes all touched pages once, in order, before the trace begins. Flash reads pages that
    /// were never written in no time.
    pub prepare: bool,
    /// The caller's process already has the device opened exclusively.
    pub claimed: bool,
}

/// The played part of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The whole trace, which determines the addresses on the target.
    pub whole: &'a Trace,
    /// The part that is played.
    pub trace: &'a Trace,
}

impl<'a> Part<'a> {
    /// The whole trace is played.
    pub fn all(trace: &'a Trace) -> Self {
        Part {
            whole: trace,
            trace,
        }
    }
}

/// Results of a replay on a device or file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OnFile {
    /// Number of operations in all repetitions.
    pub operations: u64,
    /// Time from the first issue to the last end, in nanoseconds.
    pub elapsed_ns: u64,
    /// Times of operations by kind.
    pub times: TimesByKind,
    /// Number of operations issued more than 1 ms after they were due. The machine did not keep up,
    /// or all threads were waiting.
    pub late_operations: u64,
    /// Largest delay of an operation, in nanoseconds.
    pub latest_ns: u64,
}

/// Plays `part` `loops` times. `begin` is called before that, when the target is open.
///
/// # Errors
/// [`Error::Io`], also where the path exists and may not be overwritten (its kind is
/// `AlreadyExists`); [`Error::TooSmall`]; [`Error::Interrupted`] when `stop` becomes true; the
/// errors of `begin`.
pub fn on_file(
    part: Part,
    pace: Pace,
    loops: u32,
    target: &Target,
    begin: impl FnOnce() -> Result<(), Error>,
    stop: &AtomicBool,
) -> Result<OnFile, Error> {
    let Part { whole, trace } = part;
    let packing = Packing::of(whole);
    let file = open(target, whole, &packing)?;
    if target.prepare {
        prepare(&file, &packing, &target.path, stop)?;
    }
    begin()?;
    let mut sum = Sum::new(4);
    let begun = Instant::now();
    for _ in 0..loops {
        let crew = Crew { trace, pace, stop };
        let perform = |index: usize, buffer: &mut Pages| {
            let operation = &trace.operations()[index];
            play(&file, &packing, operation, buffer).map_err(|error| {
                let verb = match operation.kind {
                    Kind::Read => "read",
                    Kind::Write => "write to",
                    Kind::Discard => "discard in",
                    Kind::Flush => "flush",
                };
                PathError::of(verb, &target.path)(error)
            })?;
            Ok(Done {
                kind: operation.kind as usize,
                pages: operation.pages().map_or(0, |(first, end)| end - first),
            })
        };
        sum = crew.play(sum, &perform)?;
    }
    Ok(OnFile {
        operations: sum.operations,
        elapsed_ns: begun.elapsed().as_nanos() as u64,
        times: TimesByKind::of(&sum.watches),
        late_operations: sum.late_operations,
        latest_ns: sum.latest_ns,
    })
}

fn open(target: &Target, trace: &Trace, packing: &Packing) -> Result<File, Error> {
    let changes = target.prepare
        || trace
            .operations()
            .iter()
            .any(|it| matches!(it.kind, Kind::Write | Kind::Discard));
    let path = &target.path;
    let needed_bytes = packing.pages() * PAGE_BYTES as u64;
    let there = path.symlink_metadata().is_ok();
    if there && changes && !target.overwrite {
        return Err(PathError::of("write to", path)(io::ErrorKind::AlreadyExists.into()).into());
    }
    let mut options = OpenOptions::new();
    options.read(true).write(changes || !there);
    let is_device = path
        .metadata()
        .is_ok_and(|it| it.file_type().is_block_device());
    // On a block device O_EXCL fails if it is mounted, or part of a volume.
    let exclusive = if is_device && changes && !target.claimed {
        libc::O_EXCL
    } else {
        0
    };
    let direct = if target.buffered { 0 } else { libc::O_DIRECT };
    options.custom_flags(exclusive | direct | libc::O_CLOEXEC);
    if !there {
        options.create_new(true);
    }
    let file = options.open(path).map_err(PathError::of("open", path))?;
    let size_bytes = size(&file).map_err(PathError::of("measure", path))?;
    if is_device || (!changes && there) {
        return match size_bytes >= needed_bytes {
            true => Ok(file),
            false => Err(Error::TooSmall {
                target: path.display().to_string(),
                needed_bytes,
                size_bytes,
            }),
        };
    }
    if size_bytes < needed_bytes {
        allocate(&file, needed_bytes).map_err(PathError::of("make room in", path))?;
    }
    Ok(file)
}

/// Writes all pages of the packed device once.
fn prepare(file: &File, packing: &Packing, path: &Path, stop: &AtomicBool) -> Result<(), Error> {
    let end = packing.pages() * PAGE_BYTES as u64;
    let mut buffer = Pages::zeroed(PIECE_BYTES);
    let mut offset = 0;
    while offset < end {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let bytes = (end - offset).min(PIECE_BYTES as u64);
        let piece = &mut buffer[..bytes as usize];
        fill(piece, offset);
        file.write_all_at(piece, offset)
            .map_err(PathError::of("write to", path))?;
        offset += bytes;
    }
    Ok(file.sync_data().map_err(PathError::of("flush", path))?)
}

/// Size of a file or block device, in bytes.
fn size(mut file: &File) -> io::Result<u64> {
    io::Seek::seek(&mut file, io::SeekFrom::End(0))
}

fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}

fn discard(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(file, mode, offset, bytes)?)
}

fn play(
    file: &File,
    packing: &Packing,
    operation: &Operation,
    buffer: &mut Pages,
) -> io::Result<()> {
    let Some((first, end)) = operation.pages() else {
        return file.sync_data();
    };
    let mut offset = packing.page(first) * PAGE_BYTES as u64;
    let mut left = (end - first) as usize * PAGE_BYTES;
    if operation.kind == Kind::Discard {
        return discard(file, offset, left as u64);
    }
    while left > 0 {
        let piece = &mut buffer[..left.min(PIECE_BYTES)];
        match operation.kind {
            Kind::Read => file.read_exact_at(piece, offset)?,
            _ => {
                fill(piece, offset);
                file.write_all_at(piece, offset)?;
            }
        }
        offset += piece.len() as u64;
        left -= piece.len();
    }
    Ok(())
}

/// Fills `piece` with incompressible data: a device that compresses must not gain by them.
pub(crate) fn fill(piece: &mut [u8], offset: u64) {
    let mut random = Random::new(offset);
    for word in piece.chunks_exact_mut(8) {
        word.copy_from_slice(&random.next_u64().to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
