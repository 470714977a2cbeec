//! The 16 apps of the launch experiment (paper "003", §V), generated.
//!
//! The paper describes its apps by three things: a working set of 72 MB on average
//! (85.0 MB of padding are 7.4 % of all 16), read by demand paging in small reads; one
//! app, Messenger, of many small chunks with small gaps, where padding gains most (1,054
//! chunks); and one, Temple Run 2, of large ones that are read piecemeal, where merging
//! does. The other 14 are made to lie between these two.

use crate::seed::Random;

/// How many there are.
pub(crate) const APPS: usize = 16;

/// A range of a file's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The first page.
    pub(crate) first: u64,
    /// How many.
    pub(crate) count: u64,
}

/// One read of the app's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Which of the app's files.
    pub(crate) file: usize,
    /// Which pages.
    pub(crate) pages: Range,
}

/// An app: its files, and what its start reads of them.
#[derive(Clone, Debug)]
pub(crate) struct App {
    /// Each file's length.
    pub(crate) file_pages: Vec<u64>,
    /// The chunks of each file that the start needs, ascending.
    pub(crate) chunks: Vec<Vec<Range>>,
    /// The same pages as the app reads them.
    pub(crate) accesses: Vec<Access>,
}

/// What tells the apps apart; sizes in pages.
struct Character {
    chunk: u64,
    gap: u64,
}

impl Character {
    /// From Messenger, the first, to Temple Run 2, the last.
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

/// Chunks of a file, on average.
const CHUNKS: u64 = 12;

/// The largest single read, in pages: 32 KB.
const READ_PAGES: u64 = 8;

/// One gap in so many is a large one: a part of the app that its start does not use.
const LARGE_GAPS: u64 = 6;
const LARGE_GAP_PAGES: u64 = 300;

impl App {
    /// App number `number` with a working set of about `pages`.
    pub(crate) fn new(number: usize, pages: u64, seed: u64) -> App {
        let mut random = Random::new(seed, &format!("app-{number}"));
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

    /// The pages of the working set.
    pub(crate) fn pages(&self) -> u64 {
        self.chunks.iter().flatten().map(|it| it.count).sum()
    }

    /// Gives how many pages of it the start needs.
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
        // Code calls code elsewhere: the order is that of the program and not the file's.
        for last in (1..reads.len()).rev() {
            reads.swap(last, random.below(last as u64 + 1) as usize);
        }
        self.accesses.extend(reads);
        self.file_pages.push(end);
        let pages = chunks.iter().map(|it| it.count).sum();
        self.chunks.push(chunks);
        pages
    }
}

/// From 1 to twice the mean.
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
