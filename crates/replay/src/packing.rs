//! Mapping of a trace's addresses to a smaller device, which leaves out untouched pages.
//!
//! The order of pages is kept, and pages that one operation touches stay adjacent. Sequential
//! access thus stays sequential.

use crate::trace::Trace;

/// The places of a trace's touched pages on the packed device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// First page of each range on the traced device and on the packed one, in the order of both.
    ranges: Vec<(u64, u64)>,
    pages: u64,
    /// Index of the first range to search, for each 2^`shift` pages of the traced device.
    before: Vec<u32>,
    shift: u32,
}

impl Packing {
    /// Packs all pages that `trace` touches.
    pub fn of(trace: &Trace) -> Self {
        let mut touched: Vec<(u64, u64)> = trace
            .operations()
            .iter()
            .filter_map(|it| it.pages())
            .collect();
        touched.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (first, end) in touched {
            match merged.last_mut() {
                Some((_, last_end)) if first <= *last_end => *last_end = end.max(*last_end),
                _ => merged.push((first, end)),
            }
        }
        let mut pages = 0;
        let mut ranges = Vec::with_capacity(merged.len());
        for (first, end) in merged {
            ranges.push((first, pages));
            pages += end - first;
        }
        let (before, shift) = index_of(&ranges);
        Packing {
            ranges,
            pages,
            before,
            shift,
        }
    }

    /// Number of pages of the packed device.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Page on the packed device of a page that the trace touches.
    pub fn page(&self, page: u64) -> u64 {
        let part = ((page >> self.shift) as usize).min(self.before.len() - 1);
        let from = self.before[part] as usize;
        let to = self.before.get(part + 1);
        let to = to.map_or(self.ranges.len(), |it| *it as usize);
        let after = from + self.ranges[from..to].partition_point(|(first, _)| *first <= page);
        let (first, packed) = self.ranges[after - 1];
        packed + (page - first)
    }
}

/// The search index and its shift. It has about as many parts as there are ranges, so that each
/// search looks at few.
fn index_of(ranges: &[(u64, u64)]) -> (Vec<u32>, u32) {
    let last = ranges.last().map_or(0, |(first, _)| *first);
    let shift = (0..64)
        .find(|shift| last >> shift <= 2 * ranges.len() as u64)
        .unwrap_or(63);
    let mut before = Vec::new();
    for (at, (first, _)) in ranges.iter().enumerate() {
        let part = (first >> shift) as usize;
        before.resize(before.len().max(part + 1), at as u32);
    }
    (before, shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Kind, Operation};
    use proptest::prelude::*;

    fn trace(extents: &[(u64, u64)]) -> Trace {
        let operation = |(offset_bytes, size_bytes): &(u64, u64)| Operation {
            time_ns: 0,
            kind: Kind::Write,
            offset_bytes: *offset_bytes,
            size_bytes: *size_bytes,
            lane: 0,
        };
        Trace::new(extents.iter().map(operation).collect())
    }

    proptest! {
        #[test]
        fn neighbours_stay_neighbours_and_nothing_else_is_kept(
            extents in prop::collection::vec((0u64..1 << 22, 1u64..40_000), 1..50)
        ) {
            let trace = trace(&extents);
            let packing = Packing::of(&trace);
            let mut touched: Vec<u64> = Vec::new();
            for operation in trace.operations() {
                let (first, end) = operation.pages().unwrap();
                for page in first..end {
                    prop_assert_eq!(packing.page(page), packing.page(first) + page - first);
                    touched.push(page);
                }
            }
            touched.sort_unstable();
            touched.dedup();
            prop_assert_eq!(packing.pages(), touched.len() as u64);
            // Pages are mapped in order and without repetition, and so onto 0..pages.
            for (packed, page) in touched.into_iter().enumerate() {
                prop_assert_eq!(packing.page(page), packed as u64);
            }
        }
    }
}
