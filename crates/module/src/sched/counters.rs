//! The scheduler's counters, and what they say in words.
//!
//! `queue/iosched/stats` has a `NAME VALUE` pair a line. A name that starts with a
//! dependency's (`meta_waits`) counts its waits; one that starts with `probe_` counts how often the
//! kernel function of that name was entered; one that starts with `now_` is a reading;
//! all others only grow. Unknown names are kept, so that a newer module's are shown too.

use serde::Serialize;
use std::collections::BTreeMap;

/// Reasons why a task waits for an asynchronous write (the paper's dependencies).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependency {
    /// A file system's metadata block is locked while it is written (D_meta).
    Meta,
    /// A page of a file is under writeback (D_data, D_sync).
    Data,
    /// The journal's own commit waits (I_jcommit).
    Journal,
    /// A discard has to end first (D_discard).
    Discard,
}

impl Dependency {
    /// In the order of the scheduler.
    pub const ALL: [Self; 4] = [Self::Meta, Self::Data, Self::Journal, Self::Discard];

    /// As the scheduler writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Data => "data",
            Self::Journal => "journal",
            Self::Discard => "discard",
        }
    }

    /// Description of what such a task waits for.
    fn awaited(self) -> &'static str {
        match self {
            Self::Meta => "metadata blocks",
            Self::Data => "file pages",
            Self::Journal => "journal commits",
            Self::Discard => "discards",
        }
    }
}

/// Waits of one dependency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// Tasks that began to wait for a background write.
    pub waits: u64,
    /// Waits whose write was queued and was promoted.
    pub boosted: u64,
    /// The write was in the device already, where nothing can be done.
    pub in_device: u64,
    /// The write was nowhere yet, and was promoted as it arrived.
    pub pending_matched: u64,
    /// Time slept in these waits, in nanoseconds.
    pub wait_ns: u64,
}

/// All counters at one time, or their growth between two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

/// A reading, not a count.
const READING: &str = "now_";
/// Entries of a probed function.
const PROBE: &str = "probe_";
/// Hits of a tracepoint, where there are no return probes.
const TRACEPOINT: &str = "tracepoint_";

impl Counters {
    /// From the text of `queue/iosched/stats`. Lines that are not `NAME VALUE` are passed over.
    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(parse_line).collect())
    }

    /// All counters by name.
    pub fn all(&self) -> &BTreeMap<String, u64> {
        &self.0
    }

    /// Difference to `earlier`. If the scheduler was restarted in between, its counters began at
    /// zero, so they count fully.
    pub fn since(&self, earlier: &Self) -> Self {
        let restarted = self.counts().any(|(name, value)| value < earlier.get(name));
        let grown = self.0.iter().map(|(name, &value)| {
            let is_count = !name.starts_with(READING) && !restarted;
            let base = if is_count { earlier.get(name) } else { 0 };
            (name.clone(), value - base)
        });
        Self(grown.collect())
    }

    /// The waits of one dependency.
    pub fn waits(&self, dependency: Dependency) -> Waits {
        let count = |what: &str| self.get(&format!("{}_{what}", dependency.name()));
        Waits {
            waits: count("waits"),
            boosted: count("boosted"),
            in_device: count("in_device"),
            pending_matched: count("pending_matched"),
            wait_ns: count("wait_ns"),
        }
    }

    /// Number of entries of each probed function, by name. A function that is surely called and has
    /// none was inlined by the compiler.
    pub fn probe_hits(&self) -> Vec<(&str, u64)> {
        self.with_prefix(PROBE)
    }

    /// Number of hits of each tracepoint by name, where waits are detected by these.
    pub fn tracepoint_hits(&self) -> Vec<(&str, u64)> {
        self.with_prefix(TRACEPOINT)
    }

    fn with_prefix(&self, prefix: &str) -> Vec<(&str, u64)> {
        let counters = self.0.iter();
        counters
            .filter_map(|(name, &count)| Some((name.strip_prefix(prefix)?, count)))
            .collect()
    }

    /// Line on how waits are detected, and how often, if the module counts it.
    pub fn detection_in_words(&self) -> Option<String> {
        let (how, hits) = match self.probe_hits() {
            none if none.is_empty() => (
                "without return probes only some waits are detected; tracepoints hit",
                self.tracepoint_hits(),
            ),
            hits => ("probes hit", hits),
        };
        let each = hits.iter().map(|(name, hits)| format!("{name} {hits}"));
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| format!("{how}: {}", each.join(", ")))
    }

    /// Waits of all dependencies together.
    pub fn all_waits(&self) -> Waits {
        let mut total = Waits::default();
        for dependency in Dependency::ALL {
            total += self.waits(dependency);
        }
        total
    }

    /// Text: a sentence on all waits, and a line for each dependency with waits. `period` is a
    /// phrase such as `in the last minute`.
    pub fn in_words(&self, period: &str) -> String {
        let total = self.all_waits();
        let mut lines = String::new();
        for dependency in Dependency::ALL {
            let waits = self.waits(dependency);
            if waits.waits > 0 {
                lines += &format!("\n  for {}: {}", dependency.awaited(), sentence(&waits, ""));
            }
        }
        if total.waits == 0 {
            return format!("{period} nobody waited on a background write");
        }
        format!(
            "{period} {}{lines}",
            sentence(&total, " on background writes")
        )
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0
            .iter()
            .filter(|(name, _)| !name.starts_with(READING))
            .map(|(name, value)| (name.as_str(), *value))
    }
}

/// Counters by name, as [`Counters::all`] gives them.
impl From<BTreeMap<String, u64>> for Counters {
    fn from(counters: BTreeMap<String, u64>) -> Self {
        Self(counters)
    }
}

impl std::ops::AddAssign for Waits {
    fn add_assign(&mut self, other: Self) {
        self.waits += other.waits;
        self.boosted += other.boosted;
        self.in_device += other.in_device;
        self.pending_matched += other.pending_matched;
        self.wait_ns += other.wait_ns;
    }
}

fn parse_line(line: &str) -> Option<(String, u64)> {
    let (name, value) = line.trim().split_once(' ')?;
    Some((name.to_owned(), value.trim().parse().ok()?))
}

/// `14 waits on background writes, 11 promoted, 3 already in the device; they cost 210 ms`
fn sentence(waits: &Waits, on: &str) -> String {
    let promoted = waits.boosted + waits.pending_matched;
    let (noun, cost) = match waits.waits {
        1 => ("wait", "it cost"),
        _ => ("waits", "they cost"),
    };
    format!(
        "{} {noun}{on}, {promoted} promoted, {} already in the device; {cost} {}",
        waits.waits,
        waits.in_device,
        duration(waits.wait_ns)
    )
}

/// Three digits at most, in the unit that fits.
fn duration(time_ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    let Some((unit_ns, unit)) = UNITS.into_iter().find(|(unit_ns, _)| time_ns >= *unit_ns) else {
        return format!("{time_ns} ns");
    };
    let whole = time_ns / unit_ns;
    let tenth = time_ns % unit_ns * 10 / unit_ns;
    if whole < 10 && tenth > 0 {
        return format!("{whole}.{tenth} {unit}");
    }
    format!("{whole} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "meta_waits 2\nmeta_boosted 1\nmeta_in_device 1\nmeta_wait_ns 5000000\n\
        data_waits 10\ndata_boosted 7\ndata_in_device 3\ndata_wait_ns 90000000\n\
        brand_new_counter 4\nnow_async_limit 6\n";
    const LATER: &str = "meta_waits 3\nmeta_boosted 1\nmeta_in_device 2\nmeta_wait_ns 5600000\n\
        data_waits 23\ndata_boosted 16\ndata_in_device 5\ndata_pending_matched 2\n\
        data_wait_ns 299400000\nbrand_new_counter 9\nnow_async_limit 3\nnot a counter\n";

    #[test]
    fn growth_is_told_in_words() {
        let grown = Counters::parse(LATER).since(&Counters::parse(EARLIER));
        assert_eq!(
            grown.in_words("in the last minute"),
            "in the last minute 14 waits on background writes, 11 promoted, 3 already in the \
             device; they cost 210 ms\n  \
             for metadata blocks: 1 wait, 0 promoted, 1 already in the device; it cost 600 µs\n  \
             for file pages: 13 waits, 11 promoted, 2 already in the device; they cost 209 ms"
        );
        assert_eq!(grown.all()["brand_new_counter"], 5);
        assert_eq!(grown.all()["now_async_limit"], 3);
    }

    #[test]
    fn a_probe_that_was_never_hit_is_seen() {
        let later = "probe_vfs_fsync_range 12\nprobe_folio_wait_bit 9\nprobe___lock_buffer 0\n";
        let grown = Counters::parse(later).since(&Counters::parse("probe_vfs_fsync_range 2\n"));
        assert_eq!(
            grown.detection_in_words().as_deref(),
            Some("probes hit: __lock_buffer 0, folio_wait_bit 9, vfs_fsync_range 10")
        );
        assert_eq!(Counters::parse(EARLIER).detection_in_words(), None);
    }

    #[test]
    fn a_kernel_without_probes_is_said_to_show_less() {
        let counters = Counters::parse("tracepoint_folio_wait_writeback 7\n");
        assert_eq!(
            counters.detection_in_words().as_deref(),
            Some(
                "without return probes only some waits are detected; tracepoints hit: \
                 folio_wait_writeback 7"
            )
        );
        assert!(counters.probe_hits().is_empty());
    }

    #[test]
    fn quiet_is_told_too() {
        let same = Counters::parse(EARLIER);
        assert_eq!(
            same.since(&same).in_words("since it was enabled"),
            "since it was enabled nobody waited on a background write"
        );
    }

    #[test]
    fn a_restarted_scheduler_counts_from_zero() {
        let before = Counters::parse(LATER);
        let after = Counters::parse("meta_waits 1\nmeta_wait_ns 70\nbrand_new_counter 20\n");
        let grown = after.since(&before);
        assert_eq!(grown.waits(Dependency::Meta).waits, 1);
        assert_eq!(grown.all()["brand_new_counter"], 20);
    }

    #[test]
    fn durations_are_short() {
        for (time_ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_500, "1.5 µs"),
            (85_000, "85 µs"),
            (1_000_000, "1 ms"),
            (210_900_000, "210 ms"),
            (9_960_000_000, "9.9 s"),
            (75_000_000_000, "75 s"),
        ] {
            assert_eq!(duration(time_ns), text);
        }
    }
}
