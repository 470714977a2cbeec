//! What a start of an app brings into memory: pages by file.

mod format;
mod store;

pub use format::Error;
pub use store::{Store, StoreError};

use crate::identity::Identity;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The unit of a profile: a page of the page cache.
pub const PAGE_BYTES: u64 = 4096;

/// A start is cut into so many parts that need as many pages each. They are loaded one after
/// another, and the app can start when the first is on its way.
pub const PARTS: usize = 4;

/// Pages of a file, ascending, with at least one page between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// The first one's index in the file.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Pages {
    /// The index behind the last one.
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The first `count` pages, if there are so many, and the others.
    pub(crate) fn split_at(&self, count: u64) -> (Pages, Pages) {
        let count = count.min(self.count);
        let part = |first, count| Pages { first, count };
        (
            part(self.first, count),
            part(self.first + count, self.count - count),
        )
    }
}

/// A file and its pages that are part of the working set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledFile {
    /// Absolute, without links.
    pub path: PathBuf,
    /// Which file that was.
    pub identity: Identity,
    /// Ascending, never empty, within the file.
    pub pages: Vec<Pages>,
    /// Those of them that a later part of the start is the first to need, for each but the
    /// first part.
    pub late: [Vec<Pages>; PARTS - 1],
}

/// What the file system itself keeps on a device of the files that a start needs:
/// directories, inodes, extents. In memory it is in the device's own page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// `st_dev` of the files.
    pub device: u64,
    /// Ascending, never empty, counted from the device's begin.
    pub pages: Vec<Pages>,
}

/// When the working set is loaded, seen from the app's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Timing {
    /// All of it is there when the app starts.
    #[default]
    Before,
    /// The second half by another process while the app starts.
    Beside,
    /// Not at all: measured to gain nothing for this app.
    Never,
}

/// An app's working set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The command it was recorded with.
    pub command: String,
    /// When, in seconds since 1970.
    pub recorded_s: u64,
    /// How many starts the pages have in common.
    pub runs: u32,
    /// When to load.
    pub timing: Timing,
    /// The files, each once, in the order in which the start first needed them.
    pub files: Vec<ProfiledFile>,
    /// Each device once; empty where only the user's rights were at hand.
    pub metadata: Vec<Metadata>,
}

impl Profile {
    /// All pages.
    pub fn pages(&self) -> u64 {
        self.files.iter().map(ProfiledFile::count).sum()
    }

    /// What each part of the start is the first to need; many a file is in several, with other
    /// pages.
    pub fn parts(&self) -> [Vec<ProfiledFile>; PARTS] {
        std::array::from_fn(|part| self.files.iter().filter_map(|it| it.part(part)).collect())
    }

    /// All pages of metadata.
    pub fn metadata_pages(&self) -> u64 {
        let pages = self.metadata.iter().flat_map(|it| &it.pages);
        pages.map(|it| it.count).sum()
    }

    /// The profile with only the pages that `other`, another start of the app, has as
    /// well; a file that changed between them is in neither. Of metadata it has what either
    /// has: a start that did not read a block had it in memory.
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
            metadata: metadata.collect(),
            files,
        }
    }
}

impl ProfiledFile {
    /// Its pages in the working set.
    pub fn count(&self) -> u64 {
        self.pages.iter().map(|pages| pages.count).sum()
    }

    /// Each of them.
    pub(crate) fn each_page(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().flat_map(|it| it.first..it.end())
    }

    /// The same file with these pages, each in the part that it is in here, if it is.
    pub(crate) fn only(&self, pages: Vec<Pages>) -> ProfiledFile {
        ProfiledFile {
            path: self.path.clone(),
            identity: self.identity,
            late: self.late.each_ref().map(|it| intersection(it, &pages)),
            pages,
        }
    }

    /// What a part of the start is the first to need of it.
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

/// What is in the first of two ascending lists and not in the second.
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

/// What is in both of two ascending lists.
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

/// What is in one or both of two ascending lists.
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

/// Appends the pages from `first` up to `end`, joined with the last ones if they adjoin.
pub(crate) fn push(pages: &mut Vec<Pages>, first: u64, end: u64) {
    match pages.last_mut() {
        Some(last) if last.end() == first => last.count += end - first,
        _ => pages.push(Pages {
            first,
            count: end - first,
        }),
    }
}

/// Ascending pages, those that adjoin together.
pub(crate) fn ranges(ascending: impl Iterator<Item = u64>) -> Vec<Pages> {
    let mut pages = Vec::new();
    for page in ascending {
        push(&mut pages, page, page + 1);
    }
    pages
}
