//! The padding decision compared with all other possible ones.

use launch::Latency;
use launch::plan::pad::{Chunk, Price, requests};
use proptest::prelude::*;
use std::ops::Range;

const PAGE_BYTES: u64 = 4096;

fn latency(fixed_ns: u64, page_ns: u64) -> Latency {
    Latency {
        ns: std::array::from_fn(|pages| fixed_ns + (pages as u64 + 1) * page_ns),
        page_ns,
        gap_ns: 0,
        hidden_ns: 0,
    }
}

prop_compose! {
    /// Any table, also an unrealistic one in which larger reads are faster.
    fn any_latency()(
        ns in proptest::array::uniform32(1..2_000_000_u64),
        page_ns in 0..100_000_u64,
        gap_ns in 0..100_000_u64,
    ) -> Latency {
        Latency { ns, page_ns, gap_ns, hidden_ns: 0 }
    }
}

prop_compose! {
    fn chunks(most: usize)(
        origin in 0..1_u64 << 40,
        sizes in proptest::collection::vec((1..60_u64, 1..60_u64), 1..=most),
    ) -> Vec<Chunk> {
        let mut at = origin * PAGE_BYTES;
        sizes.iter().map(|(gap, length)| {
            let begin_bytes = at + gap * PAGE_BYTES;
            at = begin_bytes + length * PAGE_BYTES;
            Chunk { begin_bytes, end_bytes: at }
        }).collect()
    }
}

fn padding_bytes(chunks: &[Chunk], request: &Range<usize>) -> u64 {
    let chunks = &chunks[request.clone()];
    let whole = chunks[chunks.len() - 1].end_bytes - chunks[0].begin_bytes;
    whole
        - chunks
            .iter()
            .map(|it| it.end_bytes - it.begin_bytes)
            .sum::<u64>()
}

fn cost_ns(chunks: &[Chunk], price: &Price, requests: &[Range<usize>]) -> u64 {
    let of = |request: &Range<usize>| {
        let (first, last) = (chunks[request.start], chunks[request.end - 1]);
        let padding_pages = padding_bytes(chunks, request) / PAGE_BYTES;
        price.latency.read_ns(last.end_bytes - first.begin_bytes)
            + padding_pages * price.padding_page_ns
            + (request.len() as u64 - 1) * price.latency.gap_ns
    };
    requests.iter().map(of).sum()
}

/// Least cost of all 2^(n-1) padding vectors.
fn brute_force(chunks: &[Chunk], price: &Price) -> u64 {
    let gaps = chunks.len() - 1;
    let all = (0..1_u32 << gaps).map(|vector| {
        let mut requests = Vec::new();
        let mut begin = 0;
        for gap in 0..gaps {
            if vector >> gap & 1 == 0 {
                requests.push(begin..gap + 1);
                begin = gap + 1;
            }
        }
        requests.push(begin..chunks.len());
        cost_ns(chunks, price, &requests)
    });
    all.min().unwrap()
}

/// The paper's equation 1 as it is written, in O(n³).
fn papers_equation(chunks: &[Chunk], latency: &Latency) -> u64 {
    let n = chunks.len();
    let mut t = vec![vec![0; n]; n];
    for length in 1..=n {
        for i in 0..=n - length {
            let j = i + length - 1;
            let mut least = latency.read_ns(chunks[j].end_bytes - chunks[i].begin_bytes);
            for s in i..j {
                least = least.min(t[i][s] + t[s + 1][j]);
            }
            t[i][j] = least;
        }
    }
    t[0][n - 1]
}

fn whole(chunks: &[Chunk], requests: &[Range<usize>]) -> bool {
    let mut end = 0;
    for request in requests {
        if request.start != end || request.is_empty() {
            return false;
        }
        end = request.end;
    }
    end == chunks.len()
}

proptest! {
    #[test]
    fn no_padding_vector_is_better(
        chunks in chunks(11), latency in any_latency(), padding_page_ns in 0..50_000_u64,
    ) {
        let price = Price { latency: &latency, padding_page_ns };
        let found = requests(&chunks, &price);
        prop_assert!(whole(&chunks, &found), "{:?}", found);
        prop_assert_eq!(cost_ns(&chunks, &price, &found), brute_force(&chunks, &price));
    }

    #[test]
    fn it_is_the_papers_solution(chunks in chunks(60), latency in any_latency()) {
        // The paper has no price for a gap.
        let latency = Latency { gap_ns: 0, ..latency };
        let price = Price { latency: &latency, padding_page_ns: 0 };
        let found = requests(&chunks, &price);
        prop_assert_eq!(cost_ns(&chunks, &price, &found), papers_equation(&chunks, &latency));
    }

    #[test]
    fn dearer_padding_is_never_more(chunks in chunks(60), prices in (0..50_000_u64, 0..50_000_u64)) {
        let latency = latency(400_000, 20_000);
        let padding = |padding_page_ns| {
            let price = Price { latency: &latency, padding_page_ns };
            requests(&chunks, &price).iter().map(|it| padding_bytes(&chunks, it)).sum::<u64>()
        };
        prop_assert!(padding(prices.0.max(prices.1)) <= padding(prices.0.min(prices.1)));
    }
}

#[test]
fn a_gap_is_padded_just_when_it_is_cheaper_than_a_command() {
    // A command costs as much as 20 pages.
    let latency = latency(400_000, 20_000);
    let price = Price {
        latency: &latency,
        padding_page_ns: 0,
    };
    let with_gap = |pages: u64| {
        let first = Chunk {
            begin_bytes: 0,
            end_bytes: PAGE_BYTES,
        };
        let begin_bytes = first.end_bytes + pages * PAGE_BYTES;
        let second = Chunk {
            begin_bytes,
            end_bytes: begin_bytes + PAGE_BYTES,
        };
        requests(&[first, second], &price).len()
    };
    assert_eq!(with_gap(19), 1);
    // The costs are equal, so reading more gains nothing.
    assert_eq!(with_gap(20), 2);
    assert_eq!(with_gap(21), 2);
    assert!(requests(&[], &price).is_empty());
}
