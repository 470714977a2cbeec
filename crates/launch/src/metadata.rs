//! The file system's own blocks that a start needs: directories, inodes, extents.
//!
//! No file can be opened without them, and they are read one after another: a directory names the
//! inode to read next. ext4, like others, reads them through the page cache of its block device. A
//! process that may read the device can thus load many of them at once. That takes root.

use crate::latency::Latency;
use crate::load::{self, Error, Sent, Source};
use crate::plan::{DevicePieces, Joining, Piece, Place, Request, layout};
use crate::prepare::{device_name, open_device};
use crate::profile::{Metadata, PAGE_BYTES, Pages, Profile};
use crate::residency::resident;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Largest padding, as a part of the metadata. Related blocks are close to each other, and metadata
/// are a small part of what is loaded.
const PADDING: f64 = 1.0;

/// Largest number of pages, 64 MB, which no start needs. A profile with more is rejected.
const LIMIT_PAGES: u64 = 1 << 14;

/// Metadata pages of one device that are not in memory.
#[derive(Debug)]
pub struct Missing {
    /// Name of the device below /dev.
    name: String,
    /// The device, open for reading through its page cache.
    cached: File,
    /// The device, open with O_DIRECT for padding.
    direct: File,
    pages: Vec<Pages>,
}

/// Metadata of the profile that are not in memory. Devices that this user may not read are left
/// out.
pub fn missing(profile: &Profile) -> Vec<Missing> {
    profile.metadata.iter().filter_map(missing_of).collect()
}

/// Whether this user may read any device with metadata of the profile.
pub fn is_in_reach(profile: &Profile) -> bool {
    profile.metadata.iter().any(|it| open(it.device).is_ok())
}

fn missing_of(metadata: &Metadata) -> Option<Missing> {
    let (name, cached) = open(metadata.device).ok()?;
    let end = (&cached).seek(SeekFrom::End(0)).ok()? / PAGE_BYTES;
    let mut left = LIMIT_PAGES;
    let is_possible = |pages: &&Pages| {
        let rest = left.checked_sub(pages.count);
        left = rest.unwrap_or(0);
        rest.is_some() && pages.end() <= end
    };
    let is_missing = |pages: &&Pages| {
        resident(&cached, **pages).is_ok_and(|count| count.is_some_and(|it| it < pages.count))
    };
    let possible = metadata.pages.iter().take_while(is_possible);
    let pages: Vec<Pages> = possible.filter(is_missing).copied().collect();
    match pages.is_empty() {
        true => None,
        false => Some(Missing {
            name,
            cached,
            direct: open_device(metadata.device).ok()?,
            pages,
        }),
    }
}

/// Opens the device with this number; an error if its name now belongs to another one.
fn open(number: u64) -> io::Result<(String, File)> {
    let name = device_name(number)?;
    let file = File::open(Path::new("/dev").join(&name))?;
    let metadata = file.metadata()?;
    match metadata.file_type().is_block_device() && metadata.rdev() == number {
        true => Ok((name, file)),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

impl Missing {
    /// Requests that read the missing metadata. `latency` gives a device's table by its name.
    pub fn plan(&self, latency: impl Fn(&str) -> Option<Latency>) -> Vec<Request> {
        let piece = |pages: &Pages| Piece {
            device_bytes: pages.first * PAGE_BYTES,
            length_bytes: pages.count * PAGE_BYTES,
            place: Place {
                file: 0,
                file_bytes: pages.first * PAGE_BYTES,
            },
        };
        let on_device = DevicePieces {
            pieces: self.pages.iter().map(piece).collect(),
            owned: Vec::new(),
            readable: true,
        };
        let joining = latency(&self.name).map_or(Joining::Merge, |latency| Joining::Pad {
            latency: Box::new(latency),
            most: PADDING,
        });
        layout(on_device, &joining)
    }

    /// Sends the requests. The caller need not wait for them: a task that needs a block waits for
    /// it.
    ///
    /// # Errors
    /// [`Error`].
    pub fn send<'a>(&'a self, requests: &'a [Request]) -> Result<Sent<'a>, Error> {
        let source = Source {
            files: vec![&self.cached],
            device: Some(&self.direct),
        };
        load::send(requests, source)
    }
}

/// Knobs of all ext4 file systems with the number of inode blocks to read around a needed one. A
/// recording would count these as needed.
pub fn readahead_knobs() -> Vec<PathBuf> {
    let mounted = fs::read_dir("/sys/fs/ext4").into_iter().flatten().flatten();
    let knobs = mounted.map(|it| it.path().join("inode_readahead_blks"));
    knobs.filter(|it| it.exists()).collect()
}
