//! Profiles: the pages that a start of an app brings into memory, by file.

mod format;
mod store;

pub use format::Error;
pub use store::{Store, StoreError};

use crate::identity::Identity;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Unit of a profile: a page of the page cache, in bytes.
pub const PAGE_BYTES: u64 = 4096;

/// Number of parts of a start, which need about as many pages each. They are loaded one after
/// another, and the app can start when the first part is on its way.
pub const PARTS: usize = 4;

/// Consecutive pages of a file. Ranges in a list ascend, with at least one page between two of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Index in the file of the first page.
    pub first: u64,
    /// Number of pages.
    pub count: u64,
}

impl Pages {
    /// Index of the page after the last one.
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The first `count` pages, or all if there are fewer, and the rest.
    pub(crate) fn split_at(&self, count: u64) -> (Pages, Pages) {
        let count = count.min(self.count);
        let part = |first, count| Pages { first, count };
        (
            part(self.first, count),
            part(self.first + count, self.count - count),
        )
    }
}

/// A file and those of its pages that are in the working set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledFile {
    /// Absolute path without symbolic links.
    pub path: PathBuf,
    /// Identity of the file when it was recorded.
    pub identity: Identity,
    /// Pages in the working set: ascending, never empty, before the file's end.
    pub pages: Vec<Pages>,
    /// Pages of `pages` that a later part of the start is the first to need, for each part after
    /// the first.
    pub late: [Vec<Pages>; PARTS - 1],
}

/// Blocks of a file system's own that a start needs: directories, inodes, extents. In memory they
/// are in the page cache of the block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// `st_dev` of the files on the file system.
    pub device: u64,
    /// Pages of the block device: ascending, never empty, counted from its begin.
    pub pages: Vec<Pages>,
}

/// Time at which the working set is loaded, relative to the app's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Timing {
    /// The launcher loads all of it before the app starts.
    #[default]
    Before,
    /// Another process loads the second half while the app starts.
    Beside,
    /// The working set is not loaded: measurement found no gain for this app.
    Never,
}

/// Median times of cold starts on the machine that the profile was recorded on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Nothing was loaded, in microseconds.
    pub demand_us: u64,
    /// Loaded with [`Timing::Before`], in microseconds.
    pub before_us: u64,
    /// Loaded with [`Timing::Beside`], in microseconds.
    pub beside_us: u64,
}

/// The working set of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Command line that was recorded.
    pub command: String,
    /// Time of the recording, in seconds since 1970.
    pub recorded_s: u64,
    /// Number of starts whose pages were intersected.
    pub runs: u32,
    /// Time at which to load, relative to the app's start.
    pub timing: Timing,
    /// Cold starts that `timing` was chosen by; None if it was not measured.
    pub measured: Option<Measured>,
    /// Files without repetition, in the order in which the start first needed them.
    pub files: Vec<ProfiledFile>,
    /// Metadata of each device; empty if the recorder had only a user's rights.
    pub metadata: Vec<Metadata>,
}

impl Profile {
    /// Number of pages of all files.
    pub fn pages(&self) -> u64 {
        self.files.iter().map(ProfiledFile::count).sum()
    }

    /// The pages that each part of the start is the first to need. A file may be in several parts
    /// with different pages.
    pub fn parts(&self) -> [Vec<ProfiledFile>; PARTS] {
        std::array::from_fn(|part| self.files.iter().filter_map(|it| it.part(part)).collect())
    }

    /// Number of pages of metadata on all devices.
    pub fn metadata_pages(&self) -> u64 {
        let pages = self.metadata.iter().flat_map(|it| &it.pages);
        pages.map(|it| it.count).sum()
    }

    /// The profile with the pages that `other`, another start of the app, also has. A file that
    /// changed between the two is left out. Metadata are united, since a block in memory is not
    /// read by a later start.
    pub fn intersection(&self, other: &Profile) -> Profile {
        let files = self.files.iter().filter_map(|file| {
            let theirs = other.files.iter().find(|it| it.path == file.path)?;
            if theirs.identity != file.identity {
                return None;
            }
            let pages = intersection(&file.pages, &theirs.pages);
            (!pages.is_empty()).then(|| file.only(pages))
        });
        let files: Vec<ProfiledFile> = files.collect();
        let devices: BTreeSet<u64> = files.iter().map(|it| it.identity.device).collect();
        let metadata = devices.into_iter().filter_map(|device| {
            let of = |all: &[Metadata]| all.iter().find(|it| it.device == device).cloned();
            let ours = of(&self.metadata).map_or_else(Vec::new, |it| it.pages);
            let theirs = of(&other.metadata).map_or_else(Vec::new, |it| it.pages);
            let pages = union(&ours, &theirs);
            (!pages.is_empty()).then_some(Metadata { device, pages })
        });
        Profile {
            command: self.command.clone(),
            recorded_s: self.recorded_s,
            runs: self.runs + other.runs,
            timing: self.timing,
            measured: self.measured,
            metadata: metadata.collect(),
            files,
        }
    }
}

impl ProfiledFile {
    /// Number of its pages in the working set.
    pub fn count(&self) -> u64 {
        self.pages.iter().map(|pages| pages.count).sum()
    }

    /// Index of each of its pages in the working set.
    pub(crate) fn each_page(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().flat_map(|it| it.first..it.end())
    }

    /// The file with `pages` instead of its own; each page stays in its part.
    pub(crate) fn only(&self, pages: Vec<Pages>) -> ProfiledFile {
        ProfiledFile {
            path: self.path.clone(),
            identity: self.identity,
            late: self.late.each_ref().map(|it| intersection(it, &pages)),
            pages,
        }
    }

    /// The file with the pages that a part is the first to need; None without such pages.
    fn part(&self, part: usize) -> Option<ProfiledFile> {
        let pages = match part.checked_sub(1) {
            Some(later) => self.late[later].clone(),
            None => {
                let all = self.pages.clone();
                self.late.iter().fold(all, |left, it| difference(&left, it))
            }
        };
        (!pages.is_empty()).then(|| ProfiledFile {
            path: self.path.clone(),
            identity: self.identity,
            late: Default::default(),
            pages,
        })
    }
}

/// Pages in the first of two ascending lists that are not in the second.
pub(crate) fn difference(ours: &[Pages], theirs: &[Pages]) -> Vec<Pages> {
    let mut left: Vec<Pages> = Vec::new();
    for one in ours {
        let mut first = one.first;
        let passed = theirs.partition_point(|it| it.end() <= first);
        for other in theirs[passed..]
            .iter()
            .take_while(|it| it.first < one.end())
        {
            if first < other.first {
                push(&mut left, first, other.first);
            }
            first = other.end();
        }
        if first < one.end() {
            push(&mut left, first, one.end());
        }
    }
    left
}

/// Pages in both of two ascending lists.
pub(crate) fn intersection(ours: &[Pages], theirs: &[Pages]) -> Vec<Pages> {
    let mut common: Vec<Pages> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(one), Some(other)) = (ours.get(i), theirs.get(j)) {
        let first = one.first.max(other.first);
        let end = one.end().min(other.end());
        if first < end {
            push(&mut common, first, end);
        }
        match one.end() < other.end() {
            true => i += 1,
            false => j += 1,
        }
    }
    common
}

/// Pages in at least one of two ascending lists.
pub(crate) fn union(ours: &[Pages], theirs: &[Pages]) -> Vec<Pages> {
    let mut parts = [ours, theirs].concat();
    parts.sort_unstable_by_key(|it| it.first);
    let mut all: Vec<Pages> = Vec::new();
    for part in parts {
        let begin = all.last().map_or(0, Pages::end).max(part.first);
        if begin < part.end() {
            push(&mut all, begin, part.end());
        }
    }
    all
}

/// Appends the pages from `first` to before `end`; extends the last range if they adjoin.
pub(crate) fn push(pages: &mut Vec<Pages>, first: u64, end: u64) {
    match pages.last_mut() {
        Some(last) if last.end() == first => last.count += end - first,
        _ => pages.push(Pages {
            first,
            count: end - first,
        }),
    }
}

/// Ranges of ascending page numbers.
pub(crate) fn ranges(ascending: impl Iterator<Item = u64>) -> Vec<Pages> {
    let mut pages = Vec::new();
    for page in ascending {
        push(&mut pages, page, page + 1);
    }
    pages
}
