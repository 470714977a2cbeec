//! Moving of one file into fewer pieces.

use crate::defrag::move_extent::{Donor, swap};
use crate::defrag::survey::open;
use crate::defrag::{Filesystem, Pace, Refusal, Remap, guard};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::device::Layout;

/// Bytes to move between two checks of the rate and the stop flag. They are then in flash.
const PIECE_BYTES: u64 = 4 << 20;

/// Result of moving a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// Number of bytes that were moved.
    pub bytes: u64,
    /// Number of pieces before the move.
    pub fragments_before: u64,
    /// Number of pieces after the move.
    pub fragments_after: u64,
    /// Whether the whole file was moved. If not, the stop flag was set, and the rest is at its old
    /// place.
    pub complete: bool,
}

/// Moves the file `path` into fewer pieces, until `stop` becomes true. The file may be in use. The
/// running system's state is read below `root`. With `remap` the device remaps the data instead of
/// programming them.
///
/// The move is durable after [`settle`], or after the journal's own commit. Until then a crash may
/// undo it.
///
/// # Errors
/// Why the file was not moved. After [`Refusal::Changed`], [`Refusal::Busy`] and
/// [`Refusal::System`] parts of it may have been moved.
pub fn repair(
    root: &Path,
    path: &Path,
    remap: Option<&Remap>,
    pace: &mut Pace,
    stop: &AtomicBool,
) -> Result<Moved, Refusal> {
    let refused = |error: io::Error| Refusal::of(&error);
    let looked_at = open(path).map_err(refused)?;
    guard::check(root, &looked_at)?;
    let file = open_to_move(path, &looked_at).map_err(refused)?;
    let (_, block_bytes) = Filesystem::of(&file).map_err(refused)?;

    let before = Layout::of(&file, true).map_err(refused)?;
    let directory = path.parent().filter(|it| *it != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    let donor = Donor::new(
        directory,
        &before.segments(),
        &file.metadata().map_err(refused)?,
    )
    .map_err(refused)?;
    let room = donor.layout().map_err(refused)?;
    if room.fragments() >= before.fragments() {
        return Err(Refusal::NoBetterPlace);
    }
    let mover = Mover {
        file: &file,
        donor: &donor,
        block_bytes,
        from: &before,
        to: &room,
        remap,
    };
    let (bytes, complete) = mover.all(pace, stop)?;
    let after = Layout::of(&file, false).map_err(refused)?;
    Ok(Moved {
        bytes,
        fragments_before: before.fragments(),
        fragments_after: after.fragments(),
        complete,
    })
}

/// Makes all moves so far durable: ext4's journal commits in order, so the `last` moved file stands
/// for all. One commit for many files is cheap: they mostly change the same blocks (bitmaps, group
/// descriptors, inode tables).
///
/// # Errors
/// The system's error.
pub fn settle(last: &Path) -> io::Result<()> {
    open(last)?.sync_all()
}

struct Mover<'a> {
    file: &'a File,
    donor: &'a Donor,
    block_bytes: u64,
    from: &'a Layout,
    to: &'a Layout,
    remap: Option<&'a Remap>,
}

impl Mover<'_> {
    /// Number of bytes moved, and whether the file was moved to its end.
    fn all(&self, pace: &mut Pace, stop: &AtomicBool) -> Result<(u64, bool), Refusal> {
        let mut moved = 0;
        for (start, size) in self.from.segments() {
            let mut offset = start;
            while offset < start + size {
                if stop.load(Ordering::Relaxed) {
                    return Ok((moved, false));
                }
                let bytes = PIECE_BYTES.min(start + size - offset);
                self.piece(offset, bytes)
                    .map_err(|error| Refusal::of(&error))?;
                offset += bytes;
                moved += bytes;
                pace.moved(bytes, stop);
            }
        }
        Ok((moved, true))
    }

    /// Moves a piece, with the device armed to remap it.
    fn piece(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let Some(remap) = self.remap else {
            return self.copy(offset, bytes);
        };
        remap.arm(self.from, self.to, offset, bytes)?;
        let outcome = self.copy(offset, bytes);
        // Disarms after a failure, too: writes of other programs must not be compared.
        outcome.and(remap.disarm())
    }

    /// Moves a piece by a copy, and drops it from the page cache if it was not in there.
    fn copy(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let was_cached = is_cached(self.file, offset, bytes);
        swap(self.file, self.donor, self.block_bytes, offset, bytes)?;
        let (descriptor, offset, bytes) = (self.file.as_raw_fd(), offset as i64, bytes as i64);
        // SAFETY: takes numbers and an open file.
        unsafe {
            let flags = libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
            if libc::sync_file_range(descriptor, offset, bytes, flags) != 0 {
                return Err(io::Error::last_os_error());
            }
            if !was_cached {
                // An advice has no effect where the kernel does not take it.
                libc::posix_fadvise(descriptor, offset, bytes, libc::POSIX_FADV_DONTNEED);
            }
        }
        Ok(())
    }
}

/// Whether any of the bytes is in the page cache: the first page that can be read without waiting
/// for the device tells.
fn is_cached(file: &File, offset: u64, bytes: u64) -> bool {
    const PAGE_BYTES: u64 = 4096;
    let mut byte = [0u8; 1];
    let part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    (offset..offset + bytes)
        .step_by(PAGE_BYTES as usize * 16)
        .any(|at| {
            // SAFETY: one part of one byte, which lives until the call returns.
            let read =
                unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, at as i64, libc::RWF_NOWAIT) };
            read == 1
        })
}

/// Opens the checked file for a move, for which the kernel requires both rights. The open does not
/// wait for a new lease.
fn open_to_move(path: &Path, looked_at: &File) -> io::Result<File> {
    let (named, checked) = (path.symlink_metadata()?, looked_at.metadata()?);
    if (named.dev(), named.ino()) != (checked.dev(), checked.ino()) {
        // The path now names another file.
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK);
    sys::walk::open_again(looked_at, &options)
}
