//! Saving of a file system's layout as a snapshot.

use crate::snapshot::tool::Lent;
use crate::snapshot::{Confine, Error, Superblock, loops, tool};
use flate2::{Compression, GzBuilder};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::PathError;
use sys::confine::{Confinement, to_read};
use sys::output::Workplace;
use sys::programs;

/// Comment in the gzip header of every snapshot, which identifies it.
pub(crate) const COMMENT: &str = "frontrow snapshot 1";

/// File name in the temporary directory.
const NAME: &str = "snapshot";

/// Result of a save.
#[derive(Clone, Debug, Serialize)]
pub struct Saved {
    /// Size of the snapshot, in bytes.
    pub bytes: u64,
    /// Superblock of the file system.
    pub filesystem: Superblock,
}

/// Saves the layout of the file system on `source`, a block device or an image, as `snapshot`. It
/// has the names, sizes, times and places of all files. Of their data it has only those that are
/// stored among the metadata: symbolic links, and files that fit in an inode. `confine` is called before a
/// program reads the file system.
///
/// # Errors
/// [`Error`]; the file `snapshot` then does not exist.
pub fn save(
    source: &Path,
    snapshot: &Path,
    confine: Confine<'_>,
    stop: &AtomicBool,
) -> Result<Saved, Error> {
    if snapshot.symlink_metadata().is_ok() {
        return Err(Error::Exists(snapshot.to_owned()));
    }
    let file = File::open(source).map_err(PathError::of("read", source))?;
    let filesystem = Superblock::of(&file)
        .map_err(PathError::of("read", source))?
        .ok_or_else(|| Error::NoFilesystem(source.to_owned()))?;
    if is_written(&file, source).map_err(PathError::of("read", source))? {
        return Err(Error::Mounted(source.to_owned()));
    }
    let work = Workplace::beside(snapshot).map_err(PathError::of("write beside", snapshot))?;
    let metadata = work.path("metadata");
    confine(needs(&work, &file).map_err(PathError::of("write beside", snapshot))?)?;
    // The file that was looked at, whatever has its name now.
    let lent = Lent::to_read(file).map_err(PathError::of("read", source))?;
    check(source, &lent, stop)?;
    let mut command = programs::administrators("e2image");
    command.arg("-Q").args(lent.paths()).arg(&metadata);
    tool::run("e2image", &mut command, stop)?;
    let bytes = compress(&metadata, &work.path(NAME), snapshot, stop)?;
    work.publish(NAME)
        .map_err(PathError::of("write", snapshot))?;
    Ok(Saved { bytes, filesystem })
}

/// Has e2fsck look, which changes nothing: e2image copies damaged metadata without a word.
fn check(source: &Path, lent: &Lent, stop: &AtomicBool) -> Result<(), Error> {
    let mut command = programs::administrators("e2fsck");
    command.arg("-fn").args(lent.paths());
    match tool::run("e2fsck", &mut command, stop) {
        Err(Error::Tool { .. }) => Err(Error::Unsound(source.to_owned())),
        checked => checked.map(drop),
    }
}

/// Rights that saving takes from here on. e2image has them as well: root's name, by which it opens a device again,
/// and no place to write but a directory of its own.
fn needs(work: &Workplace, source: &File) -> io::Result<Confinement> {
    let needs = Confinement::of_starter()?.keeping(to_read(source)?);
    needs.publishing(work)
}

/// Whether the file is a block device that is mounted and not read-only, or the image of one.
fn is_written(file: &File, path: &Path) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if !metadata.file_type().is_block_device() {
        return loops::is_mounted_for_writing(Path::new("/"), &path.canonicalize()?);
    }
    let (major, minor) = (
        libc::major(metadata.st_rdev()),
        libc::minor(metadata.st_rdev()),
    );
    sys::device::is_mounted_for_writing(Path::new("/"), major, minor).map_err(io::Error::other)
}

/// Compresses the metadata and returns the size in bytes.
fn compress(
    metadata: &Path,
    compressed: &Path,
    snapshot: &Path,
    stop: &AtomicBool,
) -> Result<u64, Error> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(compressed)
        .map_err(PathError::of("write", snapshot))?;
    let mut from = File::open(metadata).map_err(PathError::of("read", metadata))?;
    let mut gzip = GzBuilder::new()
        .comment(COMMENT)
        .write(&file, Compression::default());
    let mut piece = vec![0; 1 << 20];
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let bytes = from
            .read(&mut piece)
            .map_err(PathError::of("read", metadata))?;
        if bytes == 0 {
            break;
        }
        gzip.write_all(&piece[..bytes])
            .map_err(PathError::of("write", snapshot))?;
    }
    let written = gzip.finish().and_then(|it| it.sync_all());
    let metadata = written.and_then(|()| file.metadata());
    Ok(metadata.map_err(PathError::of("write", snapshot))?.len())
}
