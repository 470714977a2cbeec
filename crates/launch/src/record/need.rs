//! Order in which a start needs files and pages, and the part that needs each page first.

use crate::profile::{PARTS, ProfiledFile, ranges};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Pages of a file that count as needed together: 128 KB, the size of the loader's reads.
const GRANULE_PAGES: u64 = 32;

/// Number of the first use of each file and granule, counted from the begin of the start.
#[derive(Default)]
pub(super) struct Need {
    uses: usize,
    files: HashMap<PathBuf, Uses>,
}

#[derive(Default)]
struct Uses {
    /// First use of the file, by a read or a mapping. The pages of a mapping may be known only at
    /// the end.
    first: usize,
    /// First use of each granule, where it is known.
    granules: BTreeMap<u64, usize>,
}

impl Need {
    /// Notes a use of the file at `path`, and returns its number.
    pub(super) fn file(&mut self, path: PathBuf) -> usize {
        self.uses += 1;
        let first = self.uses;
        let new = || Uses {
            first,
            ..Uses::default()
        };
        self.files.entry(path).or_insert_with(new);
        first
    }

    /// Notes that these pages of the file are used now.
    pub(super) fn pages(&mut self, path: PathBuf, pages: &Range<u64>) {
        let use_number = self.file(path.clone());
        let uses = self.files.entry(path).or_default();
        for granule in pages.start / GRANULE_PAGES..pages.end.div_ceil(GRANULE_PAGES) {
            uses.granules.entry(granule).or_insert(use_number);
        }
    }

    /// The files in the order of their first use.
    pub(super) fn order(&self) -> Vec<PathBuf> {
        let mut all: Vec<_> = self.files.iter().collect();
        all.sort_by_key(|(_, uses)| uses.first);
        all.into_iter().map(|(path, _)| path.clone()).collect()
    }

    /// Sets for each page the part of the start that is the first to need it.
    pub(super) fn divide(&self, files: &mut [ProfiledFile]) {
        let mut granules: BTreeMap<(usize, usize, u64), u64> = BTreeMap::new();
        for (number, file) in files.iter().enumerate() {
            for granule in file.each_page().map(|page| page / GRANULE_PAGES) {
                let place = (self.first_use(&file.path, granule), number, granule);
                *granules.entry(place).or_default() += 1;
            }
        }
        let all: u64 = granules.values().sum();
        let mut before = 0;
        let part = |((_, file, granule), pages): (&(usize, usize, u64), &u64)| {
            let part = before * PARTS as u64 / all;
            before += pages;
            ((*file, *granule), part as usize)
        };
        let parts: HashMap<(usize, u64), usize> = granules.iter().map(part).collect();
        for (number, file) in files.iter_mut().enumerate() {
            file.late = std::array::from_fn(|later| {
                let place = |page: &u64| (number, page / GRANULE_PAGES);
                let pages = file.each_page();
                ranges(pages.filter(|page| parts.get(&place(page)) == Some(&(later + 1))))
            });
        }
    }

    fn first_use(&self, path: &Path, granule: u64) -> usize {
        let uses = self.files.get(path);
        uses.map_or(usize::MAX, |uses| {
            *uses.granules.get(&granule).unwrap_or(&uses.first)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::profile::{PAGE_BYTES, Pages};

    fn file(path: &str, pages: &[(u64, u64)]) -> ProfiledFile {
        let pages = pages.iter().map(|&(first, count)| Pages { first, count });
        ProfiledFile {
            path: path.into(),
            identity: Identity {
                device: 1,
                inode: 1,
                generation: 0,
                size_bytes: 1000 * PAGE_BYTES,
                mtime_s: 0,
                mtime_ns: 0,
            },
            pages: pages.collect(),
            late: Default::default(),
        }
    }

    /// Page numbers of each part.
    fn parts(file: &ProfiledFile) -> Vec<Vec<u64>> {
        let later = file.late.iter();
        later
            .map(|it| it.iter().flat_map(|it| it.first..it.end()).collect())
            .collect()
    }

    #[test]
    fn each_granule_is_of_the_part_that_uses_it_first() {
        let mut need = Need::default();
        need.file("/program".into());
        need.pages("/program".into(), &(64..96));
        need.pages("/library".into(), &(0..32));
        need.pages("/program".into(), &(0..32));
        // Its granule is used first by a neighbouring page.
        need.pages("/program".into(), &(70..71));
        need.pages("/program".into(), &(192..224));
        let mut files = [
            file("/program", &[(0, 32), (64, 32), (192, 32)]),
            file("/library", &[(0, 32)]),
        ];
        need.divide(&mut files);
        let (third, last) = ((0..32).collect::<Vec<_>>(), (192..224).collect::<Vec<_>>());
        assert_eq!(parts(&files[0]), [vec![], third, last]);
        assert_eq!(parts(&files[1]), [(0..32).collect(), vec![], vec![]]);
        assert_eq!(need.order(), [Path::new("/program"), Path::new("/library")]);
    }

    #[test]
    fn of_what_was_only_mapped_the_file_counts() {
        let mut need = Need::default();
        need.file("/first".into());
        need.file("/second".into());
        let mut files = [file("/second", &[(0, 64)]), file("/first", &[(0, 64)])];
        need.divide(&mut files);
        let of = |pages: Range<u64>| pages.collect::<Vec<_>>();
        assert_eq!(parts(&files[0]), [of(0..0), of(0..32), of(32..64)]);
        assert_eq!(parts(&files[1]), [of(32..64), of(0..0), of(0..0)]);
    }
}
