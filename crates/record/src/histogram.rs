//! Latency distributions in result files.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Number of operations for each latency, ascending, with two significant digits. These are the
/// occupied buckets of an HDR histogram, each as `[highest equivalent value in ns, count]`. A row of
/// results has them in `histogram`, and `histogram_unit` beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// Latency in nanoseconds and number of operations of each bucket.
    #[serde(rename = "histogram")]
    pub buckets_ns: Vec<(u64, u64)>,
    /// Unit of the latencies, which may differ from the value's. Older files have none.
    #[serde(rename = "histogram_unit")]
    unit: Unit,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Unit {
    #[default]
    #[serde(rename = "ns")]
    Nanoseconds,
}

/// Reads the distribution among the fields of a row, if there is one.
pub(crate) fn of_row<'de, D: Deserializer<'de>>(fields: D) -> Result<Option<Histogram>, D::Error> {
    #[derive(Deserialize)]
    struct Fields {
        #[serde(default)]
        histogram: Option<Vec<(u64, u64)>>,
        #[serde(default)]
        histogram_unit: Unit,
    }
    let Fields {
        histogram,
        histogram_unit: unit,
    } = Fields::deserialize(fields)?;
    Ok(histogram.map(|buckets_ns| Histogram { buckets_ns, unit }))
}

impl Histogram {
    /// A distribution of these buckets.
    pub fn new(buckets_ns: Vec<(u64, u64)>) -> Histogram {
        let unit = Unit::default();
        Histogram { buckets_ns, unit }
    }

    /// The sum of the distributions.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Histogram>) -> Histogram {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (latency_ns, count) in parts.into_iter().flat_map(|part| &part.buckets_ns) {
            *counts.entry(*latency_ns).or_default() += count;
        }
        Histogram::new(counts.into_iter().collect())
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
        Histogram::new(buckets_ns)
    }
}

#[cfg(test)]
mod tests {
    use crate::Row;

    #[test]
    fn a_row_tells_the_unit_of_its_distribution() {
        let text = |more: &str| {
            format!(
                r#"{{"workload":"m1","load":"idle","policy":"none","metric":"fsync_mean_ms","unit":"ms","seed":1,"value":2.5{more}}}"#
            )
        };
        let read = |more: &str| serde_json::from_str::<Row>(&text(more));
        let row = read(r#","histogram":[[2500000,4]]"#).unwrap();
        assert_eq!(row.histogram.as_ref().unwrap().count(), 4);
        let written = serde_json::to_value(&row).unwrap();
        assert_eq!(written["histogram_unit"], "ns");
        assert_eq!(serde_json::from_value::<Row>(written).unwrap(), row);
        let without = read("").unwrap();
        assert_eq!(serde_json::to_string(&without).unwrap(), text(""));
        assert!(read(r#","histogram":[2]"#).is_err());
        assert!(read(r#","histogram":[[2,4]],"histogram_unit":"ms""#).is_err());
    }
}
