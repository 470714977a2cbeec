//! Which gaps are worth reading: the paper's problem 1 (§IV), exactly.
//!
//! Of chunks `b_0 … b_{n-1}` in order, `f(j)` is the least time to read the first `j`.
//! The last request of that reading begins at some chunk `i`, so
//!
//! ```text
//! f(j) = min over i < j of  f(i) + read(end of b_{j-1} − begin of b_i)
//! ```
//!
//! which is the paper's equation 1 with each solution looked at once instead of once for
//! every way to put it together. Two things make it linear in `n`. A request of up to
//! 128 KB has at most 32 chunks, as chunks are pages. And beyond 128 KB, where time grows
//! by a fixed amount with each byte, the `i` that is best stays the best as the request
//! grows, so one running minimum stands for all of them. That is why nothing has to be
//! split at large gaps first, as the paper does for time and memory.

use crate::latency::{Fine, Latency, TABLE_BYTES};
use crate::profile::PAGE_BYTES;
use std::ops::Range;

/// Adjoining pages of the working set on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its first byte on the device.
    pub begin_bytes: u64,
    /// The byte behind its last one.
    pub end_bytes: u64,
}

/// What reading is to cost.
#[derive(Clone, Debug)]
pub struct Price<'a> {
    /// The device's time.
    pub latency: &'a Latency,
    /// Added for each page of padding; 0 for the least time whatever it reads.
    pub padding_page_ns: u64,
}

impl Price<'_> {
    /// Of one request, all but what is the same whatever is padded: it saves one of the
    /// gaps between all chunks.
    fn request(&self, bytes: u64) -> Fine {
        self.latency.fine(bytes) - Fine::from(self.latency.gap_ns) * Fine::from(PAGE_BYTES)
    }

    /// Of padding, all but the part that is the same whatever is padded: a request's
    /// padding is its length less its chunks, and all chunks together are given.
    fn padding(&self, bytes: u64) -> Fine {
        Fine::from(bytes) * Fine::from(self.padding_page_ns)
    }
}

/// The chunks of each request that reads them all for the least price; gaps between the
/// chunks of one request are padded. `chunks` ascend and have gaps between them. Of
/// equally good solutions it is one with little padding.
pub fn requests(chunks: &[Chunk], price: &Price) -> Vec<Range<usize>> {
    let Some(first) = chunks.first() else {
        return Vec::new();
    };
    let origin = first.begin_bytes;
    // Of the first j chunks, and the chunk that their last request begins with.
    let mut best: Vec<Fine> = vec![0];
    let mut begins: Vec<usize> = vec![0];
    let mut long = Long::default();
    for (j, last) in chunks.iter().enumerate() {
        // The request with this chunk alone.
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

/// The best request of more than 128 KB, all but the part that grows with its end.
#[derive(Default)]
struct Long {
    /// Chunks that were looked at.
    seen: usize,
    best: Option<(Fine, usize)>,
}

impl Long {
    /// Looks at the requests that begin with a chunk before `end`.
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

    /// The price up to here with such a request last, and the chunk that it begins with.
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
