//! Latency distributions in result files.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of operations for each latency, ascending, with two significant digits. These are the
/// occupied buckets of an HDR histogram, each as `[highest equivalent value in ns, count]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram {
    /// Latency in nanoseconds and number of operations of each bucket.
    pub buckets_ns: Vec<(u64, u64)>,
}

impl Histogram {
    /// The sum of the distributions.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Histogram>) -> Histogram {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (latency_ns, count) in parts.into_iter().flat_map(|part| &part.buckets_ns) {
            *counts.entry(*latency_ns).or_default() += count;
        }
        Histogram {
            buckets_ns: counts.into_iter().collect(),
        }
    }

    /// Number of operations in all buckets.
    pub fn count(&self) -> u64 {
        self.buckets_ns.iter().map(|(_, count)| count).sum()
    }

    /// `(latency_ns, share of operations with at most that latency)`, both ascending; the last
    /// share is 1.
    pub fn cumulative(&self) -> Vec<(u64, f64)> {
        let all = self.count() as f64;
        let mut so_far = 0;
        self.buckets_ns
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(latency_ns, count)| {
                so_far += count;
                (*latency_ns, so_far as f64 / all)
            })
            .collect()
    }
}

impl From<&hdrhistogram::Histogram<u64>> for Histogram {
    fn from(recorded: &hdrhistogram::Histogram<u64>) -> Self {
        let buckets_ns = recorded
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
            .collect();
        Histogram { buckets_ns }
    }
}
