//! Restoring of a file system from a snapshot.

use crate::snapshot::save::COMMENT;
use crate::snapshot::tool::Lent;
use crate::snapshot::{Confine, Error, Superblock, tool, used};
use flate2::read::GzDecoder;
use rustix::fs::fchown;
use rustix::process::{getegid, geteuid};
use serde::Serialize;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::PathError;
use sys::confine::{Capabilities, Confinement};
use sys::output::Workplace;
use sys::programs;
use sys::space::Space;
use sys::walk::{Place, open_again};

const PIECE_BYTES: u64 = 1 << 20;

/// Bytes at the begin with the superblock. They are written last, so that a partial restore is not
/// a file system.
const HEAD_BYTES: u64 = 4096;

/// File name in the temporary directory.
const IMAGE: &str = "image";

/// A snapshot may unpack to one part in this many of the free space, at most twice. Otherwise a few
/// kilobytes could fill any disk.
const OF_FREE: u64 = 3;

/// Result of a restore.
#[derive(Clone, Debug, Serialize)]
pub struct Restored {
    /// Superblock of the file system.
    pub filesystem: Superblock,
    /// Bytes written to a device; a file has holes instead of data.
    pub written_bytes: u64,
}

/// Restores the file system of `snapshot` on `target`.
///
/// A `target` that does not exist becomes a sparse file. On a block device each block in use is
/// written, blocks of files with zeros. For the device these are data, so that reading a file takes
/// the time of its layout. Free blocks are discarded. `shown` is called with the number of bytes
/// written and their total, and `confine` before the snapshot is read.
///
/// # Errors
/// [`Error`]. Only [`Error::Interrupted`] and write errors may come after data were overwritten;
/// the device then has no file system.
pub fn restore(
    snapshot: &Path,
    target: &Path,
    shown: &mut dyn FnMut(u64, u64),
    confine: Confine<'_>,
    stop: &AtomicBool,
) -> Result<Restored, Error> {
    let device = device_at(target).map_err(PathError::of("write to", target))?;
    if device.is_none() && target.symlink_metadata().is_ok() {
        return Err(Error::Exists(target.to_owned()));
    }
    let beside = match device {
        Some(_) => std::env::temp_dir().join(IMAGE),
        None => target.to_owned(),
    };
    let work = Workplace::beside(&beside).map_err(PathError::of("write beside", &beside))?;
    let packed = work.path("packed");
    let room_bytes = room(&work).map_err(PathError::of("measure", &beside))?;
    let file = File::open(snapshot).map_err(PathError::of("read", snapshot))?;
    confine(needs(&work, device.as_ref()).map_err(PathError::of("write beside", &beside))?)?;
    unpack(&file, snapshot, &packed, room_bytes, stop)?;
    let image = work.path(IMAGE);
    let lent =
        Lent::to_nobody([packed.as_path(), &image]).map_err(PathError::of("write", &image))?;
    let mut command = programs::administrators("e2image");
    command.arg("-r").args(lent.paths());
    lent.run_as_nobody(&mut command);
    // A piece of the snapshot may become many pieces of the image, so the limit is checked again.
    let is_too_much = || fs::metadata(&image).is_ok_and(|it| it.blocks() * 512 > room_bytes);
    tool::run_while("e2image", &mut command, &|| !is_too_much(), stop)
        .map_err(|it| damaged(snapshot, it))?;
    drop(lent);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&image)
        .map_err(PathError::of("read", &image))?;
    let filesystem = Superblock::of(&file)
        .map_err(PathError::of("read", &image))?
        .ok_or_else(|| no_snapshot(snapshot, "there is no file system in it"))?;
    if file
        .metadata()
        .map_err(PathError::of("read", &image))?
        .len()
        > filesystem.size_bytes
    {
        return Err(no_snapshot(
            snapshot,
            "the file system in it is larger than it says",
        ));
    }
    file.set_len(filesystem.size_bytes)
        .map_err(PathError::of("write", &image))?;
    let written_bytes = match device {
        Some(device) => {
            let to = Target {
                device: &device,
                path: target,
            };
            onto_device(&file, &image, &filesystem, snapshot, &to, shown, stop)?
        }
        None => {
            // It was nobody's while a program without rights made it.
            let (own, group) = (geteuid(), getegid());
            fchown(&file, Some(own), Some(group))
                .map_err(|errno| PathError::of("write", target)(errno.into()))?;
            file.sync_all().map_err(PathError::of("write", target))?;
            // The image contains the names of its user's files.
            file.set_permissions(Permissions::from_mode(0o600))
                .and_then(|()| work.publish(IMAGE))
                .map_err(PathError::of("write", target))?;
            0
        }
    };
    Ok(Restored {
        filesystem,
        written_bytes,
    })
}

/// Capabilities that root takes to have programs run as nobody, with files of theirs.
const LENDS: Capabilities = Capabilities::SETUID
    .union(Capabilities::SETGID)
    .union(Capabilities::CHOWN)
    .union(Capabilities::DAC_OVERRIDE)
    .union(Capabilities::FOWNER)
    .union(Capabilities::KILL);

/// Rights that a restore takes from here on.
fn needs(work: &Workplace, device: Option<&File>) -> io::Result<Confinement> {
    let needs = Confinement::of_starter()?.keeping(LENDS);
    match device {
        Some(device) => needs.working_in(work)?.writing_to(device),
        None => needs.publishing(work),
    }
}

/// The block device at `target`, held so that nobody can exchange it for another one.
fn device_at(target: &Path) -> io::Result<Option<File>> {
    let held = match Place::of(target) {
        Ok(place) => place.held()?,
        // A directory, which is refused later.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => None,
        Err(error) => return Err(error),
    };
    let is_device = |it: &File| it.metadata().map(|it| it.file_type().is_block_device());
    match held {
        Some(held) if is_device(&held)? => Ok(Some(held)),
        _ => Ok(None),
    }
}

/// A device that is held, and the path by which it was named.
struct Target<'a> {
    device: &'a File,
    path: &'a Path,
}

fn no_snapshot(path: &Path, reason: impl Into<String>) -> Error {
    Error::Damaged {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

/// Turns a failure of a program into [`Error::Damaged`]; other errors stay.
fn damaged(snapshot: &Path, error: Error) -> Error {
    match error {
        Error::Exhausted => too_much(snapshot),
        Error::Tool { tool, said } => no_snapshot(snapshot, format!("{tool} says {said}")),
        other => other,
    }
}

fn room(work: &Workplace) -> io::Result<u64> {
    Ok(Space::at(&work.path(""))?.free_bytes / OF_FREE)
}

/// Unpacks the metadata to the end, where gzip's length and checksum are.
fn unpack(
    file: &File,
    snapshot: &Path,
    packed: &Path,
    room_bytes: u64,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut gzip = GzDecoder::new(file);
    let comment = gzip.header().and_then(|it| it.comment());
    if comment != Some(COMMENT.as_bytes()) {
        return Err(no_snapshot(
            snapshot,
            "`frontrow snapshot save` did not write it",
        ));
    }
    let mut packed = File::create_new(packed).map_err(PathError::of("write", packed))?;
    let mut piece = vec![0; PIECE_BYTES as usize];
    let mut all_bytes = 0;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let bytes = match gzip.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(bytes) => bytes,
            Err(error) => return Err(no_snapshot(snapshot, error.to_string())),
        };
        all_bytes += bytes as u64;
        if all_bytes > room_bytes {
            return Err(too_much(snapshot));
        }
        packed
            .write_all(&piece[..bytes])
            .map_err(PathError::of("unpack", snapshot))?;
    }
}

fn too_much(snapshot: &Path) -> Error {
    Error::TooMuch {
        snapshot: snapshot.to_owned(),
    }
}

fn onto_device(
    image: &File,
    image_path: &Path,
    filesystem: &Superblock,
    snapshot: &Path,
    to: &Target,
    shown: &mut dyn FnMut(u64, u64),
    stop: &AtomicBool,
) -> Result<u64, Error> {
    let target = to.path;
    let lent = Lent::to_nobody([image_path]).map_err(PathError::of("read", image_path))?;
    let mut command = programs::administrators("dumpe2fs");
    command.args(lent.paths());
    lent.run_as_nobody(&mut command);
    let text = tool::run("dumpe2fs", &mut command, stop).map_err(|it| damaged(snapshot, it))?;
    let ranges = used::ranges(&text, filesystem.size_bytes / filesystem.block_bytes)
        .ok_or_else(|| no_snapshot(snapshot, "its free blocks make no sense"))?;
    // O_EXCL fails on a device that is mounted, or part of a volume.
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_EXCL);
    let mut device = open_again(to.device, &options).map_err(PathError::of("write to", target))?;
    let size_bytes = device
        .seek(SeekFrom::End(0))
        .map_err(PathError::of("measure", target))?;
    if size_bytes < filesystem.size_bytes {
        return Err(Error::TooSmall {
            target: target.to_owned(),
            needed_bytes: filesystem.size_bytes,
            size_bytes,
        });
    }
    let ranges: Vec<Range<u64>> = ranges
        .iter()
        .map(|it| it.start * filesystem.block_bytes..it.end * filesystem.block_bytes)
        .collect();
    Copy {
        image,
        device: &device,
        target,
        all_bytes: ranges.iter().map(|it| it.end - it.start).sum(),
        done_bytes: 0,
    }
    .run(&ranges, size_bytes, shown, stop)
}

struct Copy<'a> {
    image: &'a File,
    device: &'a File,
    target: &'a Path,
    all_bytes: u64,
    done_bytes: u64,
}

impl Copy<'_> {
    fn run(
        mut self,
        ranges: &[Range<u64>],
        size_bytes: u64,
        shown: &mut dyn FnMut(u64, u64),
        stop: &AtomicBool,
    ) -> Result<u64, Error> {
        let wrong = PathError::of("write to", self.target);
        self.device
            .write_all_at(&[0; HEAD_BYTES as usize], 0)
            .and_then(|()| self.device.sync_all())
            .map_err(&wrong)?;
        discard(self.device, size_bytes).map_err(PathError::of("discard", self.target))?;
        for range in ranges {
            let mut at = range.start.max(HEAD_BYTES);
            while at < range.end {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let end = range.end.min(at + PIECE_BYTES);
                self.piece(at..end).map_err(&wrong)?;
                shown(self.done_bytes, self.all_bytes);
                at = end;
            }
        }
        self.device.sync_all().map_err(&wrong)?;
        self.piece(0..HEAD_BYTES).map_err(&wrong)?;
        self.device.sync_all().map_err(&wrong)?;
        Ok(self.done_bytes)
    }

    /// Copies a range from the image, whose holes in place of data read as zeros.
    fn piece(&mut self, range: Range<u64>) -> io::Result<()> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.image.read_exact_at(&mut bytes, range.start)?;
        self.device.write_all_at(&bytes, range.start)?;
        self.done_bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Discards the whole device, if it can discard.
fn discard(device: &File, bytes: u64) -> io::Result<()> {
    match sys::device::discard(device, 0, bytes) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, GzBuilder};

    #[test]
    fn a_snapshot_that_unpacks_to_more_than_there_is_room_for_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let snapshot = directory.path().join("bomb");
        let file = File::create(&snapshot).unwrap();
        let gzip = GzBuilder::new().comment(COMMENT);
        let mut gzip = gzip.write(file, Compression::best());
        let zeros = vec![0; 1 << 20];
        (0..64).for_each(|_| gzip.write_all(&zeros).unwrap());
        gzip.finish().unwrap();
        assert!(snapshot.metadata().unwrap().len() < 100_000);
        let packed = directory.path().join("packed");
        let stop = AtomicBool::new(false);
        let file = File::open(&snapshot).unwrap();
        let refused = unpack(&file, &snapshot, &packed, 4 << 20, &stop).unwrap_err();
        assert!(matches!(refused, Error::TooMuch { .. }), "{refused}");
        assert!(packed.metadata().unwrap().len() <= 4 << 20);
    }
}
