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

    /// The files that the start needs first, which have half of the pages or a little more, and
    /// the others.
    pub fn halves(&self) -> (&[ProfiledFile], &[ProfiledFile]) {
        let half = self.pages().div_ceil(2);
        let mut pages = 0;
        let is_first = |file: &&ProfiledFile| {
            let is_first = pages < half;
            pages += file.count();
            is_first
        };
        let count = self.files.iter().take_while(is_first).count();
        self.files.split_at(count)
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
            (!pages.is_empty()).then(|| ProfiledFile {
                pages,
                ..file.clone()
            })
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
}

/// What is in both of two ascending lists.
fn intersection(ours: &[Pages], theirs: &[Pages]) -> Vec<Pages> {
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
