//! Limit of padding, since it costs energy and the device's time for others. Padding gains nothing
//! while the device's link is busy anyway.

use super::pad::{Chunk, Price, requests};
use crate::latency::Latency;
use crate::profile::PAGE_BYTES;
use std::ops::Range;

/// Ranges of chunk indices, one for each request, for each list of chunks.
type Requests = Vec<Vec<Range<usize>>>;

/// The requests that read the lists of chunks in the least time, with at most `most_bytes` of
/// padding in all.
///
/// A device that takes commands while data cross its link needs the longer of all commands and all
/// data. The paper's model has their sum, which holds for a device that hides nothing.
///
/// Data are planned first, by the paper's dynamic program. If the commands then take longer, more
/// padding helps. Each command saved has the same price in data, so the smallest gaps are padded
/// until both take the same time.
pub fn within(most_bytes: u64, lists: &[Vec<Chunk>], latency: &Latency) -> Requests {
    let data = latency.of_data();
    let time = |found: &Requests| Time::of(lists, found, latency, &data);
    let found = priced(most_bytes, lists, &data);
    let first = time(&found);
    if first.commands_ns <= first.data_ns {
        return found;
    }
    let fewer = fewer(most_bytes, lists, time);
    match time(&fewer).in_all_ns() < first.in_all_ns() {
        true => fewer,
        false => found,
    }
}

/// Time of all requests in the device's parts.
struct Time {
    commands_ns: u64,
    data_ns: u64,
}

impl Time {
    fn of(lists: &[Vec<Chunk>], found: &Requests, latency: &Latency, data: &Latency) -> Time {
        let mut time = Time {
            commands_ns: 0,
            data_ns: 0,
        };
        for (chunks, requests) in lists.iter().zip(found) {
            for request in requests {
                let bytes = chunks[request.end - 1].end_bytes - chunks[request.start].begin_bytes;
                let gaps = request.len() as u64 - 1;
                time.commands_ns += latency.command_ns();
                time.data_ns += data.read_ns(bytes) + gaps * latency.gap_ns;
            }
        }
        time
    }

    fn in_all_ns(&self) -> u64 {
        self.commands_ns.max(self.data_ns)
    }
}

/// Pads the smallest gaps, up to `most_bytes` in all. Their number is the one at which the longer
/// of commands and data is shortest.
fn fewer(most_bytes: u64, lists: &[Vec<Chunk>], time: impl Fn(&Requests) -> Time) -> Requests {
    let mut gaps: Vec<u64> = lists.iter().flat_map(|list| gaps_of(list)).collect();
    gaps.sort_unstable();
    let affordable = gaps.iter().scan(0, |sum, gap| {
        *sum += gap;
        Some(*sum)
    });
    let mut most = affordable.take_while(|sum| *sum <= most_bytes).count();
    let mut least = 0;
    while least < most {
        let middle = least + (most - least) / 2;
        let tried = time(&smallest(middle, &gaps, lists));
        match tried.commands_ns <= tried.data_ns {
            true => most = middle,
            false => least = middle + 1,
        }
    }
    // The best is the first number at which data take longer, or the last at which commands do.
    let before = smallest(least.saturating_sub(1), &gaps, lists);
    let found = smallest(least, &gaps, lists);
    match time(&before).in_all_ns() <= time(&found).in_all_ns() {
        true => before,
        false => found,
    }
}

/// Pads the first `count` of the sorted `gaps`. Of gaps as large as the last one, those first on
/// the device are padded.
fn smallest(count: usize, gaps: &[u64], lists: &[Vec<Chunk>]) -> Requests {
    let largest = gaps[..count].last().copied().unwrap_or_default();
    let mut of_largest = count - gaps.partition_point(|gap| *gap < largest);
    let mut pad = |gap: u64| {
        let padded = gap < largest || gap == largest && of_largest > 0;
        of_largest -= usize::from(padded && gap == largest);
        padded
    };
    let mut joined = Vec::with_capacity(lists.len());
    for list in lists {
        let mut requests = Vec::new();
        let mut begin = 0;
        for (index, gap) in gaps_of(list).enumerate() {
            if !pad(gap) {
                requests.push(begin..index + 1);
                begin = index + 1;
            }
        }
        requests.push(begin..list.len());
        joined.push(requests);
    }
    joined
}

/// The requests with the least sum of times at one price for a page of padding. It is the lowest
/// price at which padding stays within the limit.
fn priced(most_bytes: u64, lists: &[Vec<Chunk>], latency: &Latency) -> Requests {
    let at = |padding_page_ns| {
        let price = Price {
            latency,
            padding_page_ns,
        };
        let all: Requests = lists.iter().map(|list| requests(list, &price)).collect();
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
    // Above this price for a page no gap is padded, since it exceeds any request's time.
    let mut too_little = 0;
    let mut enough = latency.ns.iter().sum::<u64>() + latency.page_ns + 1;
    let (_, mut found) = at(enough);
    // A finer price than a nanosecond for a page gains nothing.
    while enough - too_little > 1 + enough / 64 {
        let middle = too_little + (enough - too_little) / 2;
        match at(middle) {
            (true, all) => (enough, found) = (middle, all),
            (false, _) => too_little = middle,
        }
    }
    found
}

/// Bytes that `request` reads besides its chunks.
pub fn padding_bytes(chunks: &[Chunk], request: &Range<usize>) -> u64 {
    gaps_of(&chunks[request.clone()]).sum()
}

fn gaps_of(chunks: &[Chunk]) -> impl Iterator<Item = u64> {
    let gaps = chunks.windows(2);
    gaps.map(|pair| pair[1].begin_bytes - pair[0].end_bytes)
}

/// The part `most` of `bytes`, in whole pages.
pub fn part(bytes: u64, most: f64) -> u64 {
    let pages = (bytes / PAGE_BYTES) as f64 * most;
    pages as u64 * PAGE_BYTES
}
