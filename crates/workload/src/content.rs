//! What gets written: page-uniform data. Each 4 KB page holds one 64-bit word
//! over and over, so that the emulated device keeps the page as that word and
//! a background file of gigabytes costs no memory.

use crate::seed::Random;
use std::ops::{Deref, DerefMut};

/// The page size the content is uniform over, and its alignment in memory.
pub(crate) const PAGE_BYTES: usize = 4096;

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// A buffer of whole, aligned pages: fit for direct I/O.
pub(crate) struct Pages(Vec<Page>);

impl Pages {
    /// `bytes`, rounded up to pages, all zero.
    pub(crate) fn zeroed(bytes: usize) -> Self {
        Pages(vec![Page([0; PAGE_BYTES]); bytes.div_ceil(PAGE_BYTES)])
    }

    /// `bytes`, rounded up to pages, each page with a word of its own.
    pub(crate) fn uniform(bytes: usize, random: &mut Random) -> Self {
        let mut pages = Pages::zeroed(bytes);
        for page in &mut pages.0 {
            let word = random.next().to_le_bytes();
            for place in page.0.chunks_exact_mut(word.len()) {
                place.copy_from_slice(&word);
            }
        }
        pages
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the vector's pages are contiguous, initialized bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * PAGE_BYTES) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes = self.0.len() * PAGE_BYTES;
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_repeats_one_word_of_its_own() {
        let data = Pages::uniform(3 * PAGE_BYTES + 1, &mut Random::new(1, "content"));
        assert_eq!(data.len(), 4 * PAGE_BYTES);
        let mut words = Vec::new();
        for page in data.chunks(PAGE_BYTES) {
            assert!(page.chunks(8).all(|word| word == &page[..8]));
            words.push(page[..8].to_vec());
        }
        words.sort();
        words.dedup();
        assert_eq!(words.len(), 4);
    }

    #[test]
    fn pages_are_aligned_for_direct_io() {
        assert_eq!(Pages::zeroed(1).as_ptr() as usize % PAGE_BYTES, 0);
    }
}
