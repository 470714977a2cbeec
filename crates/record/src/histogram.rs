//! A latency distribution as it is written to a result file.

use serde::{Deserialize, Serialize};

/// Counts per latency, ascending, two significant digits: the occupied buckets
/// of an HDR histogram, each as `[highest equivalent value in ns, count]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram {
    /// `(latency_ns, count)`.
    pub buckets_ns: Vec<(u64, u64)>,
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
