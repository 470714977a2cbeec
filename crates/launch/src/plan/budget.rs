//! Padding costs energy and whoever else waits for the device, so there is a most of it.

use super::pad::{Chunk, Price, requests};
use crate::latency::Latency;
use crate::profile::PAGE_BYTES;
use std::ops::Range;

/// The requests that read each list of chunks, in the least time that can be had with at
/// most `most_bytes` of padding in all and one price for a page of it.
pub fn within(most_bytes: u64, lists: &[Vec<Chunk>], latency: &Latency) -> Vec<Vec<Range<usize>>> {
    let at = |padding_page_ns| {
        let price = Price {
            latency,
            padding_page_ns,
        };
        let all: Vec<_> = lists.iter().map(|list| requests(list, &price)).collect();
        let of_list = |(list, all): (&Vec<Chunk>, &Vec<Range<usize>>)| -> u64 {
            all.iter().map(|it| padding_bytes(list, it)).sum()
        };
        let padding: u64 = lists.iter().zip(&all).map(of_list).sum();
        (padding <= most_bytes, all)
    };
    let (affordable, free) = at(0);
    if affordable {
        return free;
    }
    // No gap is padded at a price for a page that is above what any request costs.
    let mut too_little = 0;
    let mut enough = latency.ns.iter().sum::<u64>() + latency.page_ns + 1;
    let (_, mut found) = at(enough);
    // Finer than a nanosecond for a page there is nothing to gain.
    while enough - too_little > 1 + enough / 64 {
        let middle = too_little + (enough - too_little) / 2;
        match at(middle) {
            (true, all) => (enough, found) = (middle, all),
            (false, _) => too_little = middle,
        }
    }
    found
}

/// What `request` reads besides its chunks.
pub fn padding_bytes(chunks: &[Chunk], request: &Range<usize>) -> u64 {
    let chunks = &chunks[request.clone()];
    let gaps = chunks.windows(2);
    gaps.map(|pair| pair[1].begin_bytes - pair[0].end_bytes)
        .sum()
}

/// So much of `bytes`, in whole pages.
pub fn part(bytes: u64, most: f64) -> u64 {
    let pages = (bytes / PAGE_BYTES) as f64 * most;
    pages as u64 * PAGE_BYTES
}
