//! A profile's files, opened: what of them still is as recorded, and not in memory yet.

use crate::identity::Identity;
use crate::plan::{Ground, Piece, Place};
use crate::profile::{PAGE_BYTES, Pages, Profile, ProfiledFile};
use crate::residency;
use device::{Extent, Layout};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is sent for before there is a plan, at most: about what a device reads meanwhile.
const FIRST_PAGES: u64 = (128 << 10) / PAGE_BYTES;

/// Files that are looked at to tell whether an app was started lately.
const SAMPLE: usize = 8;

/// A file of the profile, as recorded.
#[derive(Debug)]
pub struct Opened {
    /// Its path in the profile.
    pub path: PathBuf,
    /// Open for reading.
    pub file: File,
    /// `st_dev`.
    pub device: u64,
    /// Its pages in the profile.
    pub pages: Vec<Pages>,
    /// What of them is not in memory.
    pub missing: Vec<Pages>,
}

/// The files of a profile.
#[derive(Debug)]
pub struct WorkingSet {
    /// Those that are as recorded.
    pub files: Vec<Opened>,
    /// Those that are not, or not any more, and why.
    pub dropped: Vec<(PathBuf, Dropped)>,
    /// Pages in the profile.
    pub profiled_pages: u64,
}

/// Why a file's pages are not loaded.
#[derive(Debug)]
pub enum Dropped {
    /// It was replaced, changed or is another file now.
    Changed,
    /// It could not be opened.
    Unavailable(io::Error),
}

impl WorkingSet {
    /// Opens files of a profile. Nothing of their data is read.
    pub fn open(files: &[ProfiledFile]) -> WorkingSet {
        WorkingSet::open_each(files, |_| ())
    }

    /// Opens files of a profile, and sends for the first pages that are missing as soon as they
    /// are found: the device has something to do while the other files are opened and all is
    /// planned.
    pub fn open_and_begin(files: &[ProfiledFile]) -> WorkingSet {
        let mut left = FIRST_PAGES;
        WorkingSet::open_each(files, |opened| left -= begin(opened, left))
    }

    /// Whether some of the profile's files, spread over the start, are as recorded and all in
    /// memory: so few that a start that needs no loading loses no time by asking.
    pub fn is_warm(profile: &Profile) -> bool {
        let step = profile.files.len().div_ceil(SAMPLE).max(1);
        let is_there = |file| open(file, &mut false).is_ok_and(|it| it.missing.is_empty());
        profile.files.iter().step_by(step).all(is_there)
    }

    fn open_each(files: &[ProfiledFile], mut opened: impl FnMut(&mut Opened)) -> WorkingSet {
        let mut set = WorkingSet {
            files: Vec::new(),
            dropped: Vec::new(),
            profiled_pages: files.iter().map(ProfiledFile::count).sum(),
        };
        // Until the first page is met that is not there.
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

    /// Both.
    pub fn with(mut self, other: WorkingSet) -> WorkingSet {
        self.files.extend(other.files);
        self.dropped.extend(other.dropped);
        self.profiled_pages += other.profiled_pages;
        self
    }

    /// Pages that are to be loaded.
    pub fn missing_pages(&self) -> u64 {
        self.files.iter().map(|it| count(&it.missing)).sum()
    }

    /// Pages of the files that are as recorded.
    pub fn valid_pages(&self) -> u64 {
        self.files.iter().map(|it| count(&it.pages)).sum()
    }

    /// Where the missing pages lie, by the file system's device. A file whose place
    /// nobody knows is left to demand paging.
    pub fn grounds(&self) -> BTreeMap<u64, Ground> {
        let mut grounds: BTreeMap<u64, Ground> = BTreeMap::new();
        for (number, opened) in self.files.iter().enumerate() {
            if opened.missing.is_empty() {
                continue;
            }
            let Ok(layout) = Layout::of(&opened.file, false) else {
                continue;
            };
            let extents = layout.written();
            let ground = grounds.entry(opened.device).or_default();
            ground
                .owned
                .extend(extents.iter().map(|it| whole(it, number)));
            for pages in &opened.missing {
                ground.pieces.extend(pieces(*pages, &extents, number));
            }
        }
        grounds
    }
}

/// Sends for the first pages that are missing, at most so many, and gives how many.
fn begin(opened: &mut Opened, most: u64) -> u64 {
    let mut begun = 0;
    let mut missing = Vec::new();
    for &pages in &opened.missing {
        let (now, later) = pages.split_at(most - begun);
        // What cannot be had this way is planned as if nothing had been tried.
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
    // A device or a pipe can have effects when it is opened.
    let metadata = fs::symlink_metadata(&profiled.path).map_err(Dropped::Unavailable)?;
    if !metadata.is_file() || metadata.ino() != profiled.identity.inode {
        return Err(Dropped::Changed);
    }
    let file = open_quietly(&profiled.path).map_err(Dropped::Unavailable)?;
    if Identity::of(&file).map_err(Dropped::Unavailable)? != profiled.identity {
        return Err(Dropped::Changed);
    }
    Ok(Opened {
        path: profiled.path.clone(),
        missing: missing(&file, &profiled.pages, cold),
        pages: profiled.pages.clone(),
        device: profiled.identity.device,
        file,
    })
}

/// Without a new access time where the user may choose, without waiting, and not through
/// a link.
pub(crate) fn open_quietly(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let open = |flags| OpenOptions::new().read(true).custom_flags(flags).open(path);
    match open(flags | libc::O_NOATIME) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => open(flags),
        outcome => outcome,
    }
}

/// The ranges that are not wholly in memory. A page that is there already is skipped by
/// the kernel, so ranges need not be cut.
///
/// Where the kernel does not tell, a read of the last page does. If it is not there the
/// read sends for it, alone, so after the first such page nobody is asked any more, and
/// all is taken for missing.
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

/// The pages' parts that lie somewhere; holes are made of nothing and need no loading.
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
