//! Metrics: the unit of each, whether more of it is better, and its words.

use crate::Workload;

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

/// Metric: bytes that the loads wrote over the time of the measured part.
pub const BACKGROUND_RATE: &str = "background_mb_s";

/// Metric: the background's rate over that under the stock default, at most 1.
pub const BACKGROUND_KEPT: &str = "background_kept";

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

/// A metric of results: its line in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name in results. A `*` stands for an operation, a file, an app or a size.
    pub name: &'static str,
    /// Unit of its values; `1` for counts and ratios.
    pub unit: &'static str,
    /// Whether lower or higher values are better.
    pub direction: Direction,
    /// Whether it is shown in per cent.
    pub is_share: bool,
}

/// All metrics: add one here. The first line that fits a name counts.
const METRICS: &[Metric] = &[
    // Workloads.
    lower("total_ms", "ms"),
    lower(THROTTLED, "ms"),
    lower(UNTHROTTLED, "ms"),
    higher("shots", "1"),
    lower("load_time_ms", "ms"),
    lower("half_load_time_ms", "ms"),
    neither("average_read_kib", "KiB"),
    neither("read_over_set", "1"),
    share("padding_share", Direction::Higher),
    share("gap_*_padded", Direction::Neither),
    lower("demand_ms", "ms"),
    lower("before_ms", "ms"),
    lower("beside_ms", "ms"),
    neither("loaded_over_demand", "1"),
    lower("warm_demand_ms", "ms"),
    lower("warm_loaded_ms", "ms"),
    neither("warm_loaded_over_demand", "1"),
    lower("instructions_per_io", "instructions"),
    share("view_*_share", Direction::Neither),
    higher("read_mb_s", "MB/s"),
    higher("write_mb_s", "MB/s"),
    higher("*_read_mb_s", "MB/s"),
    higher("*_write_mb_s", "MB/s"),
    neither("*_busy_dies", "dies"),
    share("files_dof_*_share", Direction::Neither),
    neither("dof_l", "1"),
    neither("*_dof_l", "1"),
    neither("dof_l_*_requests", "1"),
    lower("dof_l_*_ms", "ms"),
    neither("read_requests", "1"),
    lower("start_ms", "ms"),
    lower("*_start_ms", "ms"),
    neither("upkeeps", "1"),
    lower("upkeep_ms", "ms"),
    neither("upkeep_*_mb", "MB"),
    neither("all_*_mb", "MB"),
    lower("*_elapsed_ms", "ms"),
    neither("*_operations", "1"),
    // Loads.
    higher(BACKGROUND_RATE, "MB/s"),
    higher("background_alone_mb_s", "MB/s"),
    lower("background_stall_ms", "ms"),
    lower("background_completion_ms", "ms"),
    share("background_share", Direction::Higher),
    share("opening_share", Direction::Higher),
    // How well the foreground is isolated (`isolation.rs`).
    share(BACKGROUND_KEPT, Direction::Higher),
    share("isolation_*", Direction::Higher),
    share("latency_impact_*", Direction::Lower),
    // The CPUs' time that is not idle.
    share("iowait_share", Direction::Neither),
    share("user_share", Direction::Neither),
    share("system_share", Direction::Neither),
    // The scheduler's counters. Idle time has a limit and no comparison: without load there is
    // hardly any.
    neither("idle_while_waiting_ms", "ms"),
    neither("longest_idle_while_waiting_ms", "ms"),
    lower("oldest_request_ms", "ms"),
    lower("commit_allowance_ms", "ms"),
    neither("*_waits", "1"),
    neither("*_boosted", "1"),
    neither("*_pending_matched", "1"),
    neither("*_missed", "1"),
    neither("*_wait_ms", "ms"),
    neither("data_in_device", "1"),
    neither("meta_in_device", "1"),
    neither("discard_in_device", "1"),
    neither("journal_in_device", "1"),
    // What is in the queue and in the device over time.
    neither("*_queued", "requests"),
    neither("*_in_device", "requests"),
    higher("*_device_mb_s", "MB/s"),
    // Operations, of all workloads.
    lower("*_mean_ms", "ms"),
    lower("*_p99_ms", "ms"),
    lower("*_max_ms", "ms"),
];

const fn lower(name: &'static str, unit: &'static str) -> Metric {
    metric(name, unit, Direction::Lower)
}

const fn higher(name: &'static str, unit: &'static str) -> Metric {
    metric(name, unit, Direction::Higher)
}

const fn neither(name: &'static str, unit: &'static str) -> Metric {
    metric(name, unit, Direction::Neither)
}

const fn share(name: &'static str, direction: Direction) -> Metric {
    Metric {
        is_share: true,
        ..metric(name, "1", direction)
    }
}

const fn metric(name: &'static str, unit: &'static str, direction: Direction) -> Metric {
    Metric {
        name,
        unit,
        direction,
        is_share: false,
    }
}

impl Metric {
    /// The metric with this name; None if no line has it.
    pub fn find(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|it| it.fits(name))
    }

    fn fits(&self, name: &str) -> bool {
        match self.name.split_once('*') {
            None => self.name == name,
            Some((begin, end)) => {
                let fixed = begin.len() + end.len();
                name.len() > fixed && name.starts_with(begin) && name.ends_with(end)
            }
        }
    }

    /// End of names in this unit.
    fn suffix(&self) -> &'static str {
        match self.unit {
            "ms" => "_ms",
            "MB/s" => "_mb_s",
            "KiB" => "_kib",
            "MB" => "_mb",
            _ => "",
        }
    }
}

/// Better direction of a metric: `creat_p99_ms` → [`Direction::Lower`]. An unknown metric has none.
pub fn direction(metric: &str) -> Direction {
    Metric::find(metric).map_or(Direction::Neither, |it| it.direction)
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
    let suffix = Metric::find(metric).map_or("", Metric::suffix);
    let stem = metric.strip_suffix(suffix).unwrap_or(metric);
    let words = stem.replace("background", "bg").replace('_', " ");
    match suffix {
        "_mb_s" => words + " rate",
        _ => words,
    }
}

/// Operation of a metric: `creat_p99_ms` → `Some("creat")`; `total_ms` has none.
pub fn operation(metric: &str) -> Option<&str> {
    ["_mean_ms", "_p99_ms", "_max_ms"]
        .iter()
        .find_map(|suffix| metric.strip_suffix(suffix))
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
pub fn is_headline(workload: &str, metric: &str) -> bool {
    if dependency(metric).is_some() || matches!(metric, "user_share" | "system_share") {
        return false;
    }
    let workload = Workload::find(workload);
    let has_total = workload.is_none_or(|it| it.has_total);
    if matches!(metric, "total_ms" | UNTHROTTLED) && !has_total {
        return false;
    }
    match (operation(metric), workload.and_then(|it| it.operations)) {
        (Some(operation), Some(key)) => key.contains(&operation),
        _ => true,
    }
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
    fn better_and_unit_are_known_by_name() {
        for (metric, unit, expected) in [
            ("total_ms", "ms", Direction::Lower),
            ("read_mb_s", "MB/s", Direction::Higher),
            ("background_share", "1", Direction::Higher),
            ("instructions_per_io", "instructions", Direction::Lower),
            ("isolation_01", "1", Direction::Higher),
            ("latency_impact_99", "1", Direction::Lower),
            ("background_kept", "1", Direction::Higher),
            ("meta_wait_ms", "ms", Direction::Neither),
            ("meta_in_device", "1", Direction::Neither),
            ("foreground_in_device", "requests", Direction::Neither),
            ("dof_l_8_dof_p_25_file_system_ms", "ms", Direction::Lower),
        ] {
            let found = Metric::find(metric).unwrap();
            assert_eq!((found.direction, found.unit), (expected, unit), "{metric}");
        }
        assert_eq!(direction("cuts"), Direction::Neither);
        assert_eq!(Metric::find("_mean_ms"), None);
    }

    #[test]
    fn each_workloads_headline_metric_is_a_metric() {
        for workload in crate::workload::WORKLOADS {
            assert!(Metric::find(workload.headline).is_some(), "{workload}");
        }
    }

    #[test]
    fn only_a_workloads_own_operations_are_headlines() {
        assert!(is_headline("m1", "fsync_max_ms"));
        assert!(is_headline("m1", "total_ms"));
        assert!(!is_headline("m1", "close_mean_ms"));
        assert!(!is_headline("m1", "meta_waits"));
        assert!(is_headline("m1", "iowait_share") && !is_headline("m1", "user_share"));
        assert!(is_headline("rand-read-1", "read_mb_s") && !is_headline("rand-read-1", "total_ms"));
        assert!(is_headline("fio", "anything_mean_ms"));
    }
}
