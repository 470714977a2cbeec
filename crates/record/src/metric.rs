//! What a metric's name says: the operation, the statistic, the unit, and
//! whether more of it is better.

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Latencies, times, costs.
    Lower,
    /// Throughput, shares, scores.
    Higher,
    /// Counts that are neither, such as a scheduler's counters.
    Neither,
}

/// Time that a workload's total spent in `balance_dirty_pages`, shown apart:
/// no scheduler can give it back.
pub const THROTTLED: &str = "throttled_ms";

/// The total less [`THROTTLED`]; made from rows that hold both.
pub const UNTHROTTLED: &str = "unthrottled_ms";

/// The wait dependencies that the scheduler counts, as its metrics begin.
pub const DEPENDENCIES: [&str; 4] = ["data", "meta", "discard", "journal"];

/// What it counts for each, as these metrics end.
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

/// How metrics of [`isolation`](crate::isolation) begin.
const ISOLATION: &str = "isolation_";
const LATENCY_IMPACT: &str = "latency_impact_";

/// Whether it is shown in per cent.
pub fn is_share(metric: &str) -> bool {
    metric.ends_with("_share")
        || metric.starts_with(ISOLATION)
        || metric.starts_with(LATENCY_IMPACT)
        || metric == crate::isolation::BACKGROUND_KEPT
}

/// `creat_p99_ms` → [`Direction::Lower`].
pub fn direction(metric: &str, unit: &str) -> Direction {
    // Idle time is bounded, not compared: without load there is next to none.
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

/// `meta_pending_matched` → `("meta", "pending_matched")`.
pub fn dependency(metric: &str) -> Option<(&str, &str)> {
    let (dependency, count) = metric.split_once('_')?;
    let known = DEPENDENCIES.contains(&dependency) && DEPENDENCY_COUNTS.contains(&count);
    known.then_some((dependency, count))
}

/// `creat_p99_ms` → `creat p99`.
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

/// `creat_p99_ms` → `Some("creat")`; `total_ms` is no operation's.
pub fn operation(metric: &str) -> Option<&str> {
    ["_mean_ms", "_p99_ms", "_max_ms"]
        .iter()
        .find_map(|suffix| metric.strip_suffix(suffix))
}

/// The operations a workload is about, the first its chief one (paper table 2
/// for M1–M5); of an unknown workload all are.
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

/// The one figure that a workload comes down to.
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

/// Where a metric stands among its workload's: totals, operations, the rest.
pub fn rank(metric: &str) -> u8 {
    match metric {
        "total_ms" | "shots" => 0,
        THROTTLED => 1,
        UNTHROTTLED => 2,
        other if operation(other).is_some() => 3,
        _ => 4,
    }
}

/// Whether a table that is to be read at a glance shows this metric.
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

/// Scenario B shoots for a fixed time; the time of requests on the bare device is
/// in their rate or their cost.
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
