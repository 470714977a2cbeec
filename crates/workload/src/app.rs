//! The 16 generated apps of the launch experiment (paper "003", §V).
//!
//! The paper gives three properties of its apps:
//!
//! - The working set has 72 MB on average (85.0 MB of padding are 7.4 % of all 16), which demand
//!   paging reads in small reads.
//! - Messenger has many small chunks with small gaps (1,054 chunks), where padding gains most.
//! - Temple Run 2 has large chunks that are read piecemeal, where merging gains most.
//!
//! The other 14 apps are interpolated between these two.

use sys::random::Random;

/// Number of apps.
pub(crate) const APPS: usize = 16;

/// A range of a file's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Number of the first page.
    pub(crate) first: u64,
    /// Number of pages.
    pub(crate) count: u64,
}

/// One read of the app's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Index of the file in `App::file_pages`.
    pub(crate) file: usize,
    /// Pages of the file.
    pub(crate) pages: Range,
}

/// Files of an app, and the reads of its start.
#[derive(Clone, Debug)]
pub(crate) struct App {
    /// Length of each file, in pages.
    pub(crate) file_pages: Vec<u64>,
    /// Chunks of each file that the start needs, in ascending order.
    pub(crate) chunks: Vec<Vec<Range>>,
    /// The same pages in the order and the sizes of the app's reads.
    pub(crate) accesses: Vec<Access>,
}

/// Mean sizes by which the apps differ, in pages.
struct Character {
    chunk: u64,
    gap: u64,
}

impl Character {
    /// Sizes of an app between Messenger, the first, and Temple Run 2, the last.
    fn of(app: usize) -> Self {
        let between = |first: u64, last: u64| {
            let part = app as f64 / (APPS - 1) as f64;
            let (first, last) = (first as f64, last as f64);
            (first * (last / first).powf(part)) as u64
        };
        Character {
            chunk: between(14, 64),
            gap: between(3, 48),
        }
    }
}

/// Mean number of chunks of a file.
const CHUNKS: u64 = 12;

/// Largest single read, in pages: 32 KB.
const READ_PAGES: u64 = 8;

/// One gap in this many is a large one: a part of the app that its start does not use.
const LARGE_GAPS: u64 = 6;
const LARGE_GAP_PAGES: u64 = 300;

impl App {
    /// App number `number` with a working set of about `pages` pages.
    pub(crate) fn new(number: usize, pages: u64, seed: u64) -> App {
        let mut random = Random::for_purpose(seed, &format!("app-{number}"));
        let character = Character::of(number);
        let mut app = App {
            file_pages: Vec::new(),
            chunks: Vec::new(),
            accesses: Vec::new(),
        };
        let mut made = 0;
        while made < pages {
            made += app.add_file(&character, &mut random);
        }
        app
    }

    /// Number of pages of the working set.
    pub(crate) fn pages(&self) -> u64 {
        self.chunks.iter().flatten().map(|it| it.count).sum()
    }

    /// Adds a file and returns the number of its pages that the start needs.
    fn add_file(&mut self, character: &Character, random: &mut Random) -> u64 {
        let file = self.file_pages.len();
        let mut end = about(character.gap, random);
        let mut chunks = Vec::new();
        for _ in 0..about(CHUNKS, random) {
            let count = about(character.chunk, random);
            chunks.push(Range { first: end, count });
            end += count;
            end += match random.below(LARGE_GAPS) {
                0 => about(LARGE_GAP_PAGES, random),
                _ => about(character.gap, random),
            };
        }
        let mut reads: Vec<Access> = Vec::new();
        for chunk in &chunks {
            reads.extend(cut(*chunk, random).map(|pages| Access { file, pages }));
        }
        // Code calls code in other places, so reads come in the program's order and not in the
        // file's.
        random.shuffle(&mut reads);
        self.accesses.extend(reads);
        self.file_pages.push(end);
        let pages = chunks.iter().map(|it| it.count).sum();
        self.chunks.push(chunks);
        pages
    }
}

/// A random size from 1 to almost twice the mean.
fn about(mean: u64, random: &mut Random) -> u64 {
    random.between(1, 2 * mean - 1)
}

fn cut(chunk: Range, random: &mut Random) -> impl Iterator<Item = Range> {
    let mut first = chunk.first;
    let end = chunk.first + chunk.count;
    std::iter::from_fn(move || {
        let count = random.between(1, READ_PAGES).min(end - first);
        let pages = Range { first, count };
        first += count;
        (count > 0).then_some(pages)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_start_reads_each_page_of_its_chunks_once() {
        for number in [0, 7, APPS - 1] {
            let app = App::new(number, 500, 3);
            let all = |ranges: Vec<(usize, Range)>| -> Vec<(usize, u64)> {
                ranges
                    .into_iter()
                    .flat_map(|(file, it)| {
                        (it.first..it.first + it.count).map(move |page| (file, page))
                    })
                    .collect()
            };
            let read = all(app.accesses.iter().map(|it| (it.file, it.pages)).collect());
            let chunks = app.chunks.iter().enumerate();
            let wanted = all(chunks
                .flat_map(|(file, it)| it.iter().map(move |it| (file, *it)))
                .collect());
            assert_eq!(read.len() as u64, app.pages());
            let unique: BTreeSet<_> = read.into_iter().collect();
            assert_eq!(unique, wanted.into_iter().collect());
            assert!((500..2500).contains(&app.pages()), "{}", app.pages());
        }
    }

    #[test]
    fn the_first_app_is_in_small_pieces_and_the_last_in_large_ones() {
        let mean = |number| {
            let app = App::new(number, 20_000, 1);
            app.pages() / app.chunks.iter().map(Vec::len).sum::<usize>() as u64
        };
        assert!(mean(0) * 3 < mean(APPS - 1));
    }
}
