//! Meaning of a metric's name: the operation, the statistic, the unit, and whether more of it is
//! better.

/// Whether lower or higher values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Lower is better: latencies, times, costs.
    Lower,
    /// Higher is better: throughput, shares, scores.
    Higher,
    /// Counts without a better direction, such as a scheduler's counters.
    Neither,
}

/// Metric: part of a workload's total in `balance_dirty_pages`, in ms. It is shown apart because no
/// scheduler can change it.
pub const THROTTLED: &str = "throttled_ms";

/// Metric: the total less [`THROTTLED`], which is computed from the rows of both.
pub const UNTHROTTLED: &str = "unthrottled_ms";

/// Wait dependencies that the scheduler counts; its metrics begin with these.
pub const DEPENDENCIES: [&str; 4] = ["data", "meta", "discard", "journal"];

/// Counters of each dependency; the metrics end with these.
pub const DEPENDENCY_COUNTS: [&str; 6] = [
    "waits",
    "boosted",
    "in_device",
    "pending_matched",
    "missed",
    "wait_ms",
];

const UNIT_SUFFIXES: [&str; 12] = [
    "_kib", "_mb_s", "_kb_s", "_ms", "_us", "_ns", "_bytes", "_sectors", "_pages", "_mb", "_iops",
    "_s",
];

/// Prefixes of the metrics of [`isolation`](crate::isolation).
const ISOLATION: &str = "isolation_";
const LATENCY_IMPACT: &str = "latency_impact_";

/// Whether the metric is a share, which is shown in per cent.
pub fn is_share(metric: &str) -> bool {
    metric.ends_with("_share")
        || metric.starts_with(ISOLATION)
        || metric.starts_with(LATENCY_IMPACT)
        || metric == crate::isolation::BACKGROUND_KEPT
}

/// Better direction of a metric: `creat_p99_ms` → [`Direction::Lower`].
pub fn direction(metric: &str, unit: &str) -> Direction {
    // Idle time has a limit and no comparison: without load there is hardly any.
    if dependency(metric).is_some() || metric.ends_with("idle_while_waiting_ms") {
        return Direction::Neither;
    }
    if metric.starts_with(LATENCY_IMPACT) {
        return Direction::Lower;
    }
    if is_share(metric) || metric == "shots" || metric.ends_with("_score") {
        return Direction::Higher;
    }
    if metric.ends_with("lost_bytes") || metric.ends_with("wrong_bytes") {
        return Direction::Lower;
    }
    match unit {
        "ns" | "us" | "µs" | "ms" | "s" | "instructions" => Direction::Lower,
        "MB/s" | "MiB/s" | "KB/s" | "IOPS" | "iops" | "points" => Direction::Higher,
        other if other.ends_with("/s") => Direction::Higher,
        other if other.starts_with("instructions") => Direction::Lower,
        _ => Direction::Neither,
    }
}

/// Dependency and counter of a metric: `meta_pending_matched` → `("meta", "pending_matched")`.
pub fn dependency(metric: &str) -> Option<(&str, &str)> {
    let (dependency, count) = metric.split_once('_')?;
    let known = DEPENDENCIES.contains(&dependency) && DEPENDENCY_COUNTS.contains(&count);
    known.then_some((dependency, count))
}

/// Words for a metric: `creat_p99_ms` → `creat p99`.
pub fn label(metric: &str) -> String {
    match metric {
        THROTTLED => return "throttled".to_owned(),
        UNTHROTTLED => return "unthrottled".to_owned(),
        _ => {}
    }
    let stem = UNIT_SUFFIXES
        .iter()
        .find_map(|suffix| metric.strip_suffix(suffix))
        .filter(|stem| !stem.is_empty())
        .unwrap_or(metric);
    let words = stem.replace("background", "bg").replace('_', " ");
    match metric.ends_with("_mb_s") {
        true => words + " rate",
        false => words,
    }
}

/// Operation of a metric: `creat_p99_ms` → `Some("creat")`; `total_ms` has none.
pub fn operation(metric: &str) -> Option<&str> {
    ["_mean_ms", "_p99_ms", "_max_ms"]
        .iter()
        .find_map(|suffix| metric.strip_suffix(suffix))
}

/// Key operations of a workload, the chief one first (paper table 2 for M1–M5). None for an unknown
/// workload, for which all operations count.
pub fn key_operations(workload: &str) -> Option<&'static [&'static str]> {
    let operations: &[&str] = match workload {
        "m1" | "m2" => &["creat", "fsync"],
        "m3" => &["write"],
        "m4" => &["truncate"],
        "m5" => &["fsync"],
        "a" => &["launch"],
        "b" => &["shot"],
        "c" => &["install"],
        "sqlite-wal" | "sqlite-rollback" => &["commit", "insert"],
        "gallery" | "camera" | "game" | "aged-gallery" | "aged-game" => &["response"],
        "trace" => &["front_read", "front_write", "behind_read", "behind_write"],
        "completion" | "share" | "undisturbed" => &[],
        "third" => &["response"],
        _ => return None,
    };
    Some(operations)
}

/// Name of the metric that represents a workload.
pub fn chief(workload: &str) -> &'static str {
    match workload {
        "m3" => UNTHROTTLED,
        "m5" => "fsync_mean_ms",
        "a" => "launch_mean_ms",
        "b" => "shots",
        "c" => "install_mean_ms",
        "launch" => "load_time_ms",
        "python" | "sqlite3" | "java" => "loaded_over_demand",
        "phone" => "read_mb_s",
        "trace" => "front_read_mean_ms",
        "gallery" | "camera" | "game" | "aged-gallery" | "aged-game" => "response_mean_ms",
        "completion" | "third" | "undisturbed" => "background_completion_ms",
        "share" => "background_share",
        _ => "total_ms",
    }
}

/// Order of a workload's metrics: totals, operations, the rest.
pub fn rank(metric: &str) -> u8 {
    match metric {
        "total_ms" | "shots" => 0,
        THROTTLED => 1,
        UNTHROTTLED => 2,
        other if operation(other).is_some() => 3,
        _ => 4,
    }
}

/// Whether a brief table shows this metric.
pub fn is_chief(workload: &str, metric: &str) -> bool {
    if dependency(metric).is_some() {
        return false;
    }
    if matches!(metric, "total_ms" | UNTHROTTLED) && !has_total(workload) {
        return false;
    }
    match (operation(metric), key_operations(workload)) {
        (Some(operation), Some(chief)) => chief.contains(&operation),
        _ => true,
    }
}

/// Whether a workload has a total. Scenario B shoots for a fixed time; requests on the bare device
/// have a rate or a cost.
fn has_total(workload: &str) -> bool {
    let bare = ["seq-", "rand-", "overhead-", "calibrate-"];
    !matches!(
        workload,
        "b" | "launch" | "python" | "sqlite3" | "java" | "phone" | "pieces"
    ) && !bare.iter().any(|kind| workload.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_labels() {
        for (metric, expected) in [
            ("total_ms", "total"),
            ("creat_p99_ms", "creat p99"),
            ("background_share", "bg share"),
            ("read_mb_s", "read rate"),
            ("background_alone_mb_s", "bg alone rate"),
            ("shots", "shots"),
        ] {
            assert_eq!(label(metric), expected);
        }
    }

    #[test]
    fn better_is_known_by_unit_and_name() {
        for (metric, unit, expected) in [
            ("total_ms", "ms", Direction::Lower),
            ("read_mb_s", "MB/s", Direction::Higher),
            ("background_share", "1", Direction::Higher),
            ("instructions_per_io", "instructions", Direction::Lower),
            ("isolation_01", "1", Direction::Higher),
            ("latency_impact_99", "1", Direction::Lower),
            ("background_kept", "1", Direction::Higher),
            ("cuts", "1", Direction::Neither),
            ("meta_wait_ms", "ms", Direction::Neither),
        ] {
            assert_eq!(direction(metric, unit), expected, "{metric} in {unit}");
        }
    }

    #[test]
    fn only_a_workloads_own_operations_are_chief() {
        assert!(is_chief("m1", "fsync_max_ms"));
        assert!(is_chief("m1", "total_ms"));
        assert!(!is_chief("m1", "close_mean_ms"));
        assert!(!is_chief("m1", "meta_waits"));
        assert!(is_chief("rand-read-1", "read_mb_s") && !is_chief("rand-read-1", "total_ms"));
        assert!(is_chief("fio", "anything_mean_ms"));
    }
}
