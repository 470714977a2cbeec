//! Gaps between the chunks of a working set, by size: how many of them a plan reads as padding (paper
//! "003", figure 2).

use crate::Measurement;
use launch::plan::Request;

/// Largest gap of each class, in KiB; the last class has all larger ones.
const UP_TO_KIB: [u64; 5] = [8, 16, 32, 64, 128];

/// Numbers of gaps by the class of their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    all: [u64; UP_TO_KIB.len() + 1],
    padded: [u64; UP_TO_KIB.len() + 1],
}

impl Gaps {
    /// Adds the gaps of a device's plan, whose requests are in its order.
    pub(crate) fn add(&mut self, plan: &[Request]) {
        let mut before = None;
        for request in plan {
            let begin = request.begin_bytes();
            if let Some(end) = before {
                self.count(begin - end, false);
            }
            for parts in request
                .parts
                .chunk_by(|one, next| one.is_padding() == next.is_padding())
            {
                if parts[0].is_padding() {
                    self.count(parts.iter().map(|it| it.length_bytes).sum(), true);
                }
            }
            before = Some(begin + request.length_bytes());
        }
    }

    /// Adds those of another plan.
    pub(crate) fn merge(&mut self, other: Gaps) {
        let sum = |into: &mut [u64], from: &[u64]| {
            into.iter_mut()
                .zip(from)
                .for_each(|(one, other)| *one += other);
        };
        sum(&mut self.all, &other.all);
        sum(&mut self.padded, &other.padded);
    }

    fn count(&mut self, bytes: u64, padded: bool) {
        let class = UP_TO_KIB.partition_point(|kib| kib << 10 < bytes);
        self.all[class] += 1;
        self.padded[class] += u64::from(padded);
    }

    /// Share of each class's gaps that is padded; classes without gaps are left out.
    pub(crate) fn figures(&self) -> impl Iterator<Item = Measurement> {
        let names = UP_TO_KIB.iter().map(|kib| format!("gap_{kib}k_padded"));
        let names = names.chain(["gap_larger_padded".to_owned()]);
        let counts = self.all.into_iter().zip(self.padded);
        let found = names.zip(counts).filter(|(_, (all, _))| *all > 0);
        found.map(|(name, (all, padded))| Measurement::new(name, "1", padded as f64 / all as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use launch::plan::{Part, Place, Purpose};

    #[test]
    fn gaps_in_requests_are_padded_and_those_between_are_not() {
        let part = |kib: u64, long_kib: u64, pads: bool| Part {
            device_bytes: kib << 10,
            length_bytes: long_kib << 10,
            purpose: match pads {
                true => Purpose::DevicePadding,
                false => Purpose::Pages(Place {
                    file: 0,
                    file_bytes: 0,
                }),
            },
        };
        let requests = [
            Request {
                // A gap of 8 KiB, which lies in a file and beside it.
                parts: vec![
                    part(0, 4, false),
                    part(4, 4, true),
                    part(8, 4, true),
                    part(12, 4, false),
                ],
            },
            Request {
                parts: vec![part(24, 4, false)],
            },
            Request {
                parts: vec![part(157, 3, false)],
            },
        ];
        let mut gaps = Gaps::default();
        gaps.add(&requests);
        let figures: Vec<_> = gaps.figures().map(|it| (it.metric, it.value)).collect();
        let expected = [("gap_8k_padded", 0.5), ("gap_larger_padded", 0.0)];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(figures, expected);
    }
}
