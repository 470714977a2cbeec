//! Data to write: each 4 KB page repeats one 64-bit word. The emulated device stores such a page as
//! that word, so a background file of gigabytes takes no memory.

use sys::device::{PAGE_BYTES, Pages};
use sys::random::Random;

/// `bytes` of data, rounded up to pages, with a different word in each page.
pub(crate) fn uniform(bytes: usize, random: &mut Random) -> Pages {
    let mut pages = Pages::zeroed(bytes);
    for page in pages.chunks_exact_mut(PAGE_BYTES) {
        let word = random.next_u64().to_le_bytes();
        for place in page.chunks_exact_mut(word.len()) {
            place.copy_from_slice(&word);
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_repeats_one_word_of_its_own() {
        let data = uniform(3 * PAGE_BYTES + 1, &mut Random::for_purpose(1, "content"));
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
}
