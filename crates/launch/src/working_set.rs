//! The opened files of a profile: those that are still as recorded, and their missing pages.

use crate::identity::Identity;
use crate::image::Images;
use crate::plan::{DevicePieces, Piece, Place};
use crate::profile::{PAGE_BYTES, Pages, Profile, ProfiledFile};
use crate::residency;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use sys::device::{Extent, Layout};

/// Most pages that are requested before there is a plan: about what a device reads meanwhile.
const FIRST_PAGES: u64 = (128 << 10) / PAGE_BYTES;

/// Number of files that are checked to tell whether an app was started lately.
const SAMPLE: usize = 8;

/// An opened file of the profile that is as recorded.
#[derive(Debug)]
pub struct Opened {
    /// Path in the profile.
    pub path: PathBuf,
    /// The file, open for reading.
    pub file: File,
    /// `st_dev`: device of the file system.
    pub device: u64,
    /// Its pages in the profile.
    pub pages: Vec<Pages>,
    /// Its pages in the profile that are not in memory.
    pub missing: Vec<Pages>,
}

/// The opened files of a profile.
#[derive(Debug)]
pub struct WorkingSet {
    /// Files that are as recorded.
    pub files: Vec<Opened>,
    /// Files whose pages are not loaded, and the reasons.
    pub dropped: Vec<(PathBuf, Dropped)>,
    /// Number of pages in the profile.
    pub profiled_pages: u64,
    /// Number of missing pages that were requested before there was a plan.
    pub begun_pages: u64,
}

/// Where the missing pages of a working set lie.
#[derive(Debug, Default)]
pub struct Places<'a> {
    /// Pieces by the device of their file system.
    pub devices: BTreeMap<u64, DevicePieces>,
    /// Files none of whose data has a known place: packed ones, such as squashfs's.
    pub packed: Vec<&'a Opened>,
}

/// Reasons why a file's pages are not loaded.
#[derive(Debug)]
pub enum Dropped {
    /// The file was replaced or changed.
    Changed,
    /// The file could not be opened.
    Unavailable(io::Error),
}

impl WorkingSet {
    /// Opens files of a profile without reading their data.
    pub fn open(files: &[ProfiledFile]) -> WorkingSet {
        WorkingSet::open_each(files, |_| ())
    }

    /// Opens files of a profile, and requests the first missing pages as soon as they are found.
    /// The device is thus busy while the other files are opened and the plan is made.
    pub fn open_and_begin(files: &[ProfiledFile]) -> WorkingSet {
        let mut left = FIRST_PAGES;
        let mut set = WorkingSet::open_each(files, |opened| left -= begin(opened, left));
        set.begun_pages = FIRST_PAGES - left;
        set
    }

    /// Whether a sample of the profile's files is as recorded and wholly in memory. The sample is
    /// spread over the start. It is small, so that a warm start loses no time.
    ///
    /// Images are not looked at: what was unpacked from them is in memory or not.
    pub fn is_warm(profile: &Profile, images: &Images) -> bool {
        let step = profile.files.len().div_ceil(SAMPLE).max(1);
        let is_there = |file| open(file, &mut false).is_ok_and(|it| it.missing.is_empty());
        let files = profile.files.iter().filter(|it| !images.has(it));
        files.step_by(step).all(is_there)
    }

    fn open_each(files: &[ProfiledFile], mut opened: impl FnMut(&mut Opened)) -> WorkingSet {
        let mut set = WorkingSet {
            files: Vec::new(),
            dropped: Vec::new(),
            profiled_pages: files.iter().map(ProfiledFile::count).sum(),
            begun_pages: 0,
        };
        // Set when the first missing page is found.
        let mut cold = false;
        for file in files {
            match open(file, &mut cold) {
                Ok(mut file) => {
                    opened(&mut file);
                    set.files.push(file);
                }
                Err(dropped) => set.dropped.push((file.path.clone(), dropped)),
            }
        }
        set
    }

    /// Merges `other` into this set.
    pub fn with(mut self, other: WorkingSet) -> WorkingSet {
        self.files.extend(other.files);
        self.dropped.extend(other.dropped);
        self.profiled_pages += other.profiled_pages;
        self.begun_pages += other.begun_pages;
        self
    }

    /// Number of pages to load.
    pub fn missing_pages(&self) -> u64 {
        self.files.iter().map(|it| count(&it.missing)).sum()
    }

    /// Number of pages of the files that are as recorded.
    pub fn valid_pages(&self) -> u64 {
        self.files.iter().map(|it| count(&it.pages)).sum()
    }

    /// The places of missing pages.
    pub fn places(&self) -> Places<'_> {
        let mut devices: BTreeMap<u64, DevicePieces> = BTreeMap::new();
        let mut packed = Vec::new();
        for (number, opened) in self.files.iter().enumerate() {
            if opened.missing.is_empty() {
                continue;
            }
            let layout = Layout::of(&opened.file, false);
            let extents = layout.map_or_else(|_| Vec::new(), |it| it.written());
            if extents.is_empty() {
                packed.push(opened);
                continue;
            }
            let on_device = devices.entry(opened.device).or_default();
            on_device
                .owned
                .extend(extents.iter().map(|it| whole(it, number)));
            for pages in &opened.missing {
                on_device.pieces.extend(pieces(*pages, &extents, number));
            }
        }
        Places { devices, packed }
    }
}

/// Requests the first missing pages, at most `most`, and returns their number.
fn begin(opened: &mut Opened, most: u64) -> u64 {
    let mut begun = 0;
    let mut missing = Vec::new();
    for &pages in &opened.missing {
        let (now, later) = pages.split_at(most - begun);
        // Pages that readahead(2) refuses stay missing, and are planned.
        match now.count > 0 && residency::read_ahead(&opened.file, now).is_ok() {
            true => begun += now.count,
            false => {
                missing.push(pages);
                continue;
            }
        }
        missing.extend((later.count > 0).then_some(later));
    }
    opened.missing = missing;
    begun
}

fn count(pages: &[Pages]) -> u64 {
    pages.iter().map(|it| it.count).sum()
}

fn open(profiled: &ProfiledFile, cold: &mut bool) -> Result<Opened, Dropped> {
    // The open of a device or a pipe can have side effects.
    let metadata = fs::symlink_metadata(&profiled.path).map_err(Dropped::Unavailable)?;
    if !metadata.is_file() || metadata.ino() != profiled.identity.inode {
        return Err(Dropped::Changed);
    }
    let file = open_quietly(&profiled.path).map_err(Dropped::Unavailable)?;
    let identity = Identity::of(&file).map_err(Dropped::Unavailable)?;
    if !identity.is_as(&profiled.identity) {
        return Err(Dropped::Changed);
    }
    Ok(Opened {
        path: profiled.path.clone(),
        missing: missing(&file, &profiled.pages, cold),
        pages: profiled.pages.clone(),
        device: identity.device,
        file,
    })
}

/// Opens a file without a new access time (if the user may choose), without blocking, and not
/// through a symbolic link.
pub(crate) fn open_quietly(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let open = |flags| OpenOptions::new().read(true).custom_flags(flags).open(path);
    match open(flags | libc::O_NOATIME) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => open(flags),
        outcome => outcome,
    }
}

/// Ranges that are not wholly in memory. They need not be cut: the kernel skips pages that are
/// there.
///
/// If the kernel does not tell, a read of the last page does. A missing page is requested by that
/// read alone. So after the first missing page nothing is checked any more, and all is taken for
/// missing.
fn missing(file: &File, pages: &[Pages], cold: &mut bool) -> Vec<Pages> {
    let (Some(first), Some(last)) = (pages.first(), pages.last()) else {
        return Vec::new();
    };
    let span = Pages {
        first: first.first,
        count: last.end() - first.first,
    };
    let there = |pages: Pages| residency::resident(file, pages).ok().flatten();
    match there(span) {
        Some(0) => return pages.to_vec(),
        None => {
            *cold = *cold || !residency::is_there(file, last.end() - 1);
            return if *cold { pages.to_vec() } else { Vec::new() };
        }
        Some(count) if count >= span.count => return Vec::new(),
        Some(_) => {}
    }
    let absent = |it: &Pages| there(*it).is_none_or(|count| count < it.count);
    pages.iter().copied().filter(absent).collect()
}

fn whole(extent: &Extent, file: usize) -> Piece {
    Piece {
        device_bytes: extent.physical_bytes,
        length_bytes: extent.size_bytes,
        place: Place {
            file,
            file_bytes: extent.logical_bytes,
        },
    }
}

/// The parts of pages that have a place on the device; holes need no loading.
fn pieces(pages: Pages, extents: &[Extent], file: usize) -> impl Iterator<Item = Piece> {
    let begin = pages.first * PAGE_BYTES;
    let end = pages.end() * PAGE_BYTES;
    let passed = extents.partition_point(|it| it.logical_bytes + it.size_bytes <= begin);
    let reached = extents[passed..]
        .iter()
        .take_while(move |it| it.logical_bytes < end);
    reached.filter_map(move |extent| {
        let from = begin.max(extent.logical_bytes);
        let to = end.min(extent.logical_bytes + extent.size_bytes);
        (from < to).then(|| Piece {
            device_bytes: extent.physical_bytes + (from - extent.logical_bytes),
            length_bytes: to - from,
            place: Place {
                file,
                file_bytes: from,
            },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_without_a_place_on_a_device_is_told() {
        let mut file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        file.write_all(&[1; 9000]).unwrap();
        let profiled = ProfiledFile {
            path: file.path().to_owned(),
            identity: Identity::of(file.as_file()).unwrap(),
            pages: vec![Pages { first: 0, count: 2 }],
            late: Default::default(),
        };
        let mut set = WorkingSet::open(&[profiled]);
        assert!(set.places().packed.is_empty(), "it is in memory");
        set.files[0].missing = set.files[0].pages.clone();
        let places = set.places();
        assert!(places.packed.iter().map(|it| &it.path).eq([file.path()]));
        assert!(places.devices.is_empty());
    }
}
