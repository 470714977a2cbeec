//! Choice of the gaps to read: the paper's problem 1 (§IV), solved exactly.
//!
//! Chunks `b_0 … b_{n-1}` are in order, and `f(j)` is the least time to read the first `j`. The
//! last request of that reading begins at some chunk `i`, so
//!
//! ```text
//! f(j) = min over i < j of  f(i) + read(end of b_{j-1} − begin of b_i)
//! ```
//!
//! This is the paper's equation 1, which computes each `f(j)` once instead of once for each
//! combination.
//!
//! Two facts make it linear in `n`. A request of up to 128 KB has at most 32 chunks, as chunks are
//! pages. Beyond 128 KB, time grows by a fixed amount with each byte, so the best `i` stays the
//! best as the request grows. One running minimum stands for all of them. The paper splits the list
//! at large gaps first to save time and memory, which is not needed here.

use crate::latency::{Fine, Latency, TABLE_BYTES};
use crate::profile::PAGE_BYTES;
use std::ops::Range;

/// Adjoining pages of the working set on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset on the device of its first byte.
    pub begin_bytes: u64,
    /// Offset on the device after its last byte.
    pub end_bytes: u64,
}

/// Price of reading.
#[derive(Clone, Debug)]
pub struct Price<'a> {
    /// Read times of the device.
    pub latency: &'a Latency,
    /// Price added for each page of padding, in nanoseconds; 0 for the least time.
    pub padding_page_ns: u64,
}

impl Price<'_> {
    /// Price of one request without the part that does not depend on padding: a request saves one
    /// of the gaps between all chunks.
    fn request(&self, bytes: u64) -> Fine {
        self.latency.fine(bytes) - Fine::from(self.latency.gap_ns) * Fine::from(PAGE_BYTES)
    }

    /// Price of padding without the part that does not depend on padding: a request's padding is
    /// its length less its chunks, and the chunks are given.
    fn padding(&self, bytes: u64) -> Fine {
        Fine::from(bytes) * Fine::from(self.padding_page_ns)
    }
}

/// The chunks of each request in the cheapest reading of all of them; gaps between the chunks of
/// one request are padded. `chunks` ascend and have gaps between them. Of equally cheap solutions
/// it is one with little padding.
pub fn requests(chunks: &[Chunk], price: &Price) -> Vec<Range<usize>> {
    let Some(first) = chunks.first() else {
        return Vec::new();
    };
    let origin = first.begin_bytes;
    // For the first j chunks: the best price, and the first chunk of their last request.
    let mut best: Vec<Fine> = vec![0];
    let mut begins: Vec<usize> = vec![0];
    let mut long = Long::default();
    for (j, last) in chunks.iter().enumerate() {
        // Starts with the request of this chunk alone.
        let mut least = Fine::MAX;
        let mut begin = j;
        for i in (0..=j).rev() {
            let length = last.end_bytes - chunks[i].begin_bytes;
            if length > TABLE_BYTES {
                long.extend_to(i + 1, chunks, origin, price, &best);
                break;
            }
            let cost = best[i] + price.request(length) + price.padding(length);
            if cost < least {
                (least, begin) = (cost, i);
            }
        }
        if let Some((cost, i)) = long.request_to(last.end_bytes - origin, price)
            && cost < least
        {
            (least, begin) = (cost, i);
        }
        best.push(least);
        begins.push(begin);
    }
    cut(&begins)
}

/// The best request longer than 128 KB, without the part of its price that grows with its end.
#[derive(Default)]
struct Long {
    /// Number of chunks that were considered as its begin.
    seen: usize,
    best: Option<(Fine, usize)>,
}

impl Long {
    /// Considers the requests that begin with a chunk before `end`.
    fn extend_to(
        &mut self,
        end: usize,
        chunks: &[Chunk],
        origin: u64,
        price: &Price,
        best: &[Fine],
    ) {
        while self.seen < end {
            let i = self.seen;
            let begin = chunks[i].begin_bytes - origin;
            let cost = best[i] - Fine::from(begin) * price.latency.slope() - price.padding(begin);
            if self.best.is_none_or(|(least, _)| cost <= least) {
                self.best = Some((cost, i));
            }
            self.seen += 1;
        }
    }

    /// Price up to `end` with such a request last, and the chunk that it begins with.
    fn request_to(&self, end: u64, price: &Price) -> Option<(Fine, usize)> {
        let (cost, i) = self.best?;
        let beyond = Fine::from(end) - Fine::from(TABLE_BYTES);
        let table = price.request(TABLE_BYTES);
        let cost = cost + table + beyond * price.latency.slope() + price.padding(end);
        Some((cost, i))
    }
}

fn cut(begins: &[usize]) -> Vec<Range<usize>> {
    let mut requests = Vec::new();
    let mut end = begins.len() - 1;
    while end > 0 {
        let begin = begins[end];
        requests.push(begin..end);
        end = begin;
    }
    requests.reverse();
    requests
}
