//! Bars: the demands on `frontrow` as data, and their evaluation on a result. The terminal table,
//! the report and the documents all use this.

use crate::policy::{DEFAULT, FRONTROW, NO_MODULE};
use crate::summary::{Cell, Figure, Summary, paired_ratio};
use crate::{matrix, metric, number, title};

/// One demand on some figures of one experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Name of the experiment whose results it judges.
    pub experiment: &'static str,
    /// Device profile whose results it judges; `None` for any.
    pub device: Option<&'static str>,
    /// Name of the judged figures in words.
    pub title: &'static str,
    /// The demand in words.
    pub demand: &'static str,
    figures: Figures,
    rule: Rule,
}

/// The figures that a bar judges.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figures {
    /// This statistic (`mean`, `max`) of these workloads' key operations under load.
    Operations(&'static [&'static str], &'static str),
    /// The chief figure of these workloads under load: the total, or for M3 the time outside dirty
    /// throttling.
    Chief(&'static [&'static str]),
    /// This metric of any workload and load.
    Metric(&'static str),
    /// This metric on an idle device.
    Idle(&'static str),
    /// This metric of this workload.
    One(&'static str, &'static str),
    /// All throughputs on an idle device.
    IdleThroughput,
    /// This metric under this load.
    Under(&'static str, &'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// The mean is at most this many times the unloaded one.
    OverUnloaded(f64),
    /// The ratio to the best stock scheduler, paired by seed, has an interval whose upper end is at
    /// most this.
    IntervalOverBestStock(f64),
    /// The mean ratio to the best stock scheduler is at most this.
    OverBestStock(f64),
    /// The mean is at most this many times this policy's.
    OverPolicy(&'static str, f64),
    /// The mean is at most the larger of these multiples of best stock and unloaded.
    LargerOf { best_stock: f64, unloaded: f64 },
    /// The worst case is reduced against mq-deadline as much as in the paper, or is at most this
    /// many times unloaded.
    Worst { unloaded: f64 },
    /// The mean is at most the unloaded one plus the value of this metric.
    UnloadedPlus(&'static str),
    /// This share of the stock default's loss is won back, or the mean is at most this many times
    /// unloaded.
    WonBack { share: f64, unloaded: f64 },
    /// The mean is at least this.
    AtLeast(f64),
    /// The mean is at most this.
    AtMost(f64),
    /// The mean ratio of one policy to another, paired by seed, is at most this.
    PolicyOver {
        policy: &'static str,
        other: &'static str,
        most: f64,
    },
    /// The mean of one policy is at least this many times another's.
    PolicyTimes {
        policy: &'static str,
        other: &'static str,
        least: f64,
    },
    /// The mean of one policy is below that of each of these.
    BelowAll {
        policy: &'static str,
        others: &'static [&'static str],
    },
    /// The mean of one policy is at most this.
    PolicyAtMost { policy: &'static str, most: f64 },
    /// The figure of one policy is at most this in every run.
    PolicyNeverAbove { policy: &'static str, most: f64 },
    /// The gain of one policy over another is at least as large as on an idle device.
    GainAsIdle {
        policy: &'static str,
        other: &'static str,
    },
    /// The mean of one policy is at most this many times another's on an idle device, which is what
    /// the foreground takes alone.
    OverAlone {
        policy: &'static str,
        alone: &'static str,
        most: f64,
    },
    /// The mean ratio of one policy to another, averaged over all figures of the bar, is at most
    /// this.
    AverageOver {
        policy: &'static str,
        other: &'static str,
        most: f64,
    },
    /// The ratio of one policy to the best of its users' policies of today, paired by seed, has an
    /// interval whose upper end is at most this.
    IntervalOverBest { policy: &'static str, most: f64 },
    /// The mean of one policy is at most this many times unloaded.
    PolicyOverUnloaded { policy: &'static str, most: f64 },
    /// The geometric mean of the ratios to unloaded over all figures of the bar is at most this.
    AverageOverUnloaded { policy: &'static str, most: f64 },
    /// The worst run of one policy is at most this many times the worst unloaded one, or this much
    /// longer.
    WorstOverUnloaded {
        policy: &'static str,
        times: f64,
        more_ms: f64,
    },
    /// The figure is within this part of one that was measured on a real device. Any policy will
    /// do, since the emulated device is judged.
    Near { figure: f64, part: f64 },
}

impl Rule {
    /// Whether the rule compares with the kernel's own schedulers.
    fn is_over_stock(self) -> bool {
        matches!(
            self,
            Rule::OverUnloaded(_)
                | Rule::IntervalOverBestStock(_)
                | Rule::OverBestStock(_)
                | Rule::OverPolicy(..)
                | Rule::LargerOf { .. }
                | Rule::Worst { .. }
                | Rule::UnloadedPlus(_)
                | Rule::WonBack { .. }
        )
    }

    /// The policy whose figures are judged.
    fn subject(self, summary: &Summary) -> Option<&str> {
        let mut policies = summary.policies.iter().map(String::as_str);
        match self {
            Rule::Near { .. } => policies.next(),
            Rule::PolicyOver { policy, .. }
            | Rule::PolicyTimes { policy, .. }
            | Rule::BelowAll { policy, .. }
            | Rule::PolicyAtMost { policy, .. }
            | Rule::PolicyNeverAbove { policy, .. }
            | Rule::OverAlone { policy, .. }
            | Rule::AverageOver { policy, .. }
            | Rule::IntervalOverBest { policy, .. }
            | Rule::PolicyOverUnloaded { policy, .. }
            | Rule::AverageOverUnloaded { policy, .. }
            | Rule::WorstOverUnloaded { policy, .. }
            | Rule::GainAsIdle { policy, .. } => policies.find(|name| *name == policy),
            _ => policies.find(|name| *name == FRONTROW),
        }
    }
}

/// Other ways to bring an app's pages into memory (docs/launch.md).
const PEERS: &[&str] = &["demand", "first-access", "lba-order", "whole-file"];

/// Policies that a user would try today for the foreground app (docs/fasttrack.md).
const MEANS: &[&str] = &[
    "bfq-weight",
    "bfq-idle",
    "mq-deadline-idle",
    "io-cost",
    "pr",
    "all-means",
];

/// Foreground apps of FastTrack.
const IN_FRONT: &[&str] = &["gallery", "camera", "game"];

/// All workloads that can be in the foreground (experiments/foreground.toml).
const ANY_IN_FRONT: &[&str] = &[
    "m1",
    "m2",
    "m3",
    "m4",
    "m5",
    "a",
    "b",
    "c",
    "sqlite-wal",
    "sqlite-rollback",
    "gallery",
    "camera",
    "game",
    "launch",
];

/// Workloads whose files are fragmented.
const AGED: &[&str] = &["aged-gallery", "aged-game"];

/// Defragmentation by remapping (docs/janusd.md).
const JANUSD: &str = "janusd-l";

const MICRO: &[&str] = &["m1", "m2", "m3", "m4"];
const APPS: &[&str] = &["a", "b", "c", "sqlite-wal", "sqlite-rollback"];

/// Time that M5's fsync may exceed an unloaded one: the commit's journal bytes at device bandwidth,
/// and two requests in flight.
pub const COMMIT_ALLOWANCE: &str = "commit_allowance_ms";

/// The paper's reductions of the worst case from NONE to ALL (table 2).
const PAPER_WORST: [(&str, &str, f64); 6] = [
    ("m1", "creat", 0.973),
    ("m1", "fsync", 0.871),
    ("m2", "creat", 0.984),
    ("m2", "fsync", 0.789),
    ("m3", "write", 0.902),
    ("m4", "truncate", 0.795),
];

/// All bars, in the order in which they are shown.
pub const BARS: [Bar; 62] = [
    Bar {
        experiment: "qasio",
        device: None,
        title: "total under load",
        demand: "≤ 1.5 × unloaded",
        figures: Figures::Chief(MICRO),
        rule: Rule::OverUnloaded(1.5),
    },
    Bar {
        experiment: "qasio",
        device: None,
        title: "total under load",
        demand: "not above best stock (interval ≤ ×1.02)",
        figures: Figures::Chief(MICRO),
        rule: Rule::IntervalOverBestStock(1.02),
    },
    Bar {
        experiment: "qasio",
        device: None,
        title: "key operation, mean",
        demand: "≤ 0.5 × best stock or 1.25 × unloaded",
        figures: Figures::Operations(MICRO, "mean"),
        rule: Rule::LargerOf {
            best_stock: 0.5,
            unloaded: 1.25,
        },
    },
    Bar {
        experiment: "qasio",
        device: None,
        title: "key operation, worst",
        demand: "cut as in the paper or ≤ 2 × unloaded",
        figures: Figures::Operations(MICRO, "max"),
        rule: Rule::Worst { unloaded: 2.0 },
    },
    Bar {
        experiment: "qasio",
        device: None,
        title: "fsync beside a rewrite",
        demand: "≤ unloaded + commit + 2 requests",
        figures: Figures::Operations(&["m5"], "mean"),
        rule: Rule::UnloadedPlus(COMMIT_ALLOWANCE),
    },
    Bar {
        experiment: "qasio",
        device: None,
        title: "background's completion",
        demand: "≤ 1.10 × mq-deadline",
        figures: Figures::Metric("background_completion_ms"),
        rule: Rule::OverPolicy("mq-deadline", 1.10),
    },
    Bar {
        experiment: "qasio",
        device: None,
        title: "background's share",
        demand: "≥ 10 % of its rate alone",
        figures: Figures::Metric("background_share"),
        rule: Rule::AtLeast(0.10),
    },
    Bar {
        experiment: "qasio",
        device: None,
        title: "oldest request",
        demand: "≤ 5 s",
        figures: Figures::Metric("oldest_request_ms"),
        rule: Rule::AtMost(5000.0),
    },
    never_idle("qasio", FRONTROW),
    Bar {
        experiment: "qasio",
        device: None,
        title: "apps under load",
        demand: "≥ 80 % won back or ≤ 1.05 × unloaded",
        figures: Figures::Chief(APPS),
        rule: Rule::WonBack {
            share: 0.8,
            unloaded: 1.05,
        },
    },
    Bar {
        experiment: "qasio",
        device: None,
        title: "apps under load",
        demand: "not above best stock (interval ≤ ×1.02)",
        figures: Figures::Chief(APPS),
        rule: Rule::IntervalOverBestStock(1.02),
    },
    Bar {
        experiment: "overhead",
        device: None,
        title: "instructions per I/O",
        demand: "≤ 1.05 × mq-deadline",
        figures: Figures::Metric("instructions_per_io"),
        rule: Rule::OverPolicy("mq-deadline", 1.05),
    },
    Bar {
        experiment: "throughput",
        device: None,
        title: "unloaded throughput",
        demand: "≥ 0.98 × best stock",
        figures: Figures::IdleThroughput,
        rule: Rule::OverBestStock(1.0 / 0.98),
    },
    Bar {
        experiment: "launch",
        device: None,
        title: "average I/O size, padded",
        demand: "≥ 5.6 × demand paging",
        figures: Figures::Idle("average_read_kib"),
        rule: Rule::PolicyTimes {
            policy: "padded",
            other: "demand",
            least: 5.6,
        },
    },
    loading(
        "working set's load time, merged",
        "≤ 0.807 × demand paging",
        "merged",
        0.807,
    ),
    loading(
        "working set's load time, padded",
        "≤ 0.701 × demand paging",
        "padded",
        0.701,
    ),
    Bar {
        experiment: "launch",
        device: None,
        title: "working set's load time, merged",
        demand: "below every other loader",
        figures: Figures::Metric("load_time_ms"),
        rule: Rule::BelowAll {
            policy: "merged",
            others: PEERS,
        },
    },
    Bar {
        experiment: "launch",
        device: None,
        title: "working set's load time, padded",
        demand: "below every other loader",
        figures: Figures::Metric("load_time_ms"),
        rule: Rule::BelowAll {
            policy: "padded",
            others: PEERS,
        },
    },
    Bar {
        experiment: "launch",
        device: None,
        title: "padding",
        demand: "≤ 10 % of the working set",
        figures: Figures::Metric("padding_share"),
        rule: Rule::PolicyAtMost {
            policy: "padded",
            most: 0.10,
        },
    },
    Bar {
        experiment: "launch",
        device: None,
        title: "gain under load, padded",
        demand: "at least as large as idle",
        figures: Figures::Chief(&["launch"]),
        rule: Rule::GainAsIdle {
            policy: "padded",
            other: "demand",
        },
    },
    Bar {
        experiment: "programs",
        device: Some("emmc"),
        title: "real programs' cold start, loaded",
        demand: "≤ 0.70 × by demand",
        figures: Figures::Idle("loaded_over_demand"),
        rule: Rule::PolicyAtMost {
            policy: "mq-deadline",
            most: 0.70,
        },
    },
    Bar {
        experiment: "programs",
        device: None,
        title: "real programs' cold start, loaded",
        demand: "≤ 1.01 × by demand, idle and under load",
        figures: Figures::Metric("loaded_over_demand"),
        rule: Rule::PolicyAtMost {
            policy: "mq-deadline",
            most: 1.01,
        },
    },
    Bar {
        experiment: "programs",
        device: None,
        title: "real programs' warm start, nothing to load",
        demand: "≤ 1.01 × by demand",
        figures: Figures::Metric("warm_loaded_over_demand"),
        rule: Rule::PolicyAtMost {
            policy: "mq-deadline",
            most: 1.01,
        },
    },
    reading("emmc", "≥ 1.57 × no defragmentation", 1.57),
    starting("emmc", "≤ 0.71 × no defragmentation", 0.71),
    reading("ufs", "≥ 1.76 × no defragmentation", 1.76),
    starting("ufs", "≤ 0.64 × no defragmentation", 0.64),
    Bar {
        experiment: "janusd",
        device: None,
        title: "apps' read throughput",
        demand: "not below weekly e4defrag",
        figures: Figures::Metric("read_mb_s"),
        rule: Rule::PolicyTimes {
            policy: JANUSD,
            other: "e4defrag-1w",
            least: 1.0,
        },
    },
    Bar {
        experiment: "janusd",
        device: None,
        title: "weekly e4defrag's bytes programmed for upkeep",
        demand: "≥ 400 × janusd's",
        figures: Figures::Metric("upkeep_programmed_mb"),
        rule: Rule::PolicyTimes {
            policy: "e4defrag-1w",
            other: JANUSD,
            least: 400.0,
        },
    },
    never_idle("fasttrack", "fastt"),
    Bar {
        experiment: "fasttrack",
        device: None,
        title: "response, device as it is (FastT−)",
        demand: "≤ 1.5 × alone",
        figures: Figures::Chief(IN_FRONT),
        rule: Rule::OverAlone {
            policy: "fastt-",
            alone: DEFAULT,
            most: 1.5,
        },
    },
    Bar {
        experiment: "fasttrack",
        device: None,
        title: "response, device as it is (FastT−)",
        demand: "on average −74 % against stock",
        figures: Figures::Chief(IN_FRONT),
        rule: Rule::AverageOver {
            policy: "fastt-",
            other: DEFAULT,
            most: 0.26,
        },
    },
    Bar {
        experiment: "fasttrack",
        device: None,
        title: "response, fg-aware device (FastT)",
        demand: "≤ 1.10 × alone",
        figures: Figures::Chief(IN_FRONT),
        rule: Rule::OverAlone {
            policy: "fastt",
            alone: DEFAULT,
            most: 1.10,
        },
    },
    Bar {
        experiment: "fasttrack",
        device: None,
        title: "response, device as it is (FastT−)",
        demand: "below all that a user would try today",
        figures: Figures::Chief(IN_FRONT),
        rule: Rule::BelowAll {
            policy: "fastt-",
            others: MEANS,
        },
    },
    Bar {
        experiment: "fasttrack",
        device: None,
        title: "response where no module can be loaded",
        demand: "not above the kernel's default (≤ ×1.02)",
        figures: Figures::Chief(IN_FRONT),
        rule: Rule::PolicyOver {
            policy: NO_MODULE,
            other: DEFAULT,
            most: 1.02,
        },
    },
    Bar {
        experiment: "fasttrack",
        device: None,
        title: "response where no module can be loaded",
        demand: "≤ 1.10 × all that a user would try today",
        figures: Figures::Chief(IN_FRONT),
        rule: Rule::PolicyOver {
            policy: NO_MODULE,
            other: "all-means",
            most: 1.10,
        },
    },
    Bar {
        experiment: "fasttrack-apps",
        device: None,
        title: "response beside six apps, fg-aware device",
        demand: "≤ 1.15 × alone",
        figures: Figures::Under("apps-6", "response_mean_ms"),
        rule: Rule::OverAlone {
            policy: "fastt",
            alone: DEFAULT,
            most: 1.15,
        },
    },
    Bar {
        experiment: "fasttrack-apps",
        device: None,
        title: "response beside two to six apps, device as it is",
        demand: "on average −74 % against stock",
        figures: Figures::Chief(IN_FRONT),
        rule: Rule::AverageOver {
            policy: "fastt-",
            other: DEFAULT,
            most: 0.26,
        },
    },
    Bar {
        experiment: "fasttrack-apps",
        device: None,
        title: "longest time without progress of any app behind",
        demand: "never above 2 s",
        figures: Figures::Metric("background_stall_ms"),
        rule: Rule::PolicyNeverAbove {
            policy: "fastt",
            most: 2000.0,
        },
    },
    Bar {
        experiment: "fasttrack-janusd",
        device: None,
        title: "response, files in pieces and apps behind, janusd and FastTrack",
        demand: "≤ 1.10 × alone, files in one piece",
        figures: Figures::Chief(AGED),
        rule: Rule::OverAlone {
            policy: "janusd-l+fastt",
            alone: "unaged",
            most: 1.10,
        },
    },
    behind(
        "time for its work beside a foreground",
        "≤ 1.15 × stock",
        ("third", "background_completion_ms"),
        Rule::PolicyOver {
            policy: "fastt-",
            other: DEFAULT,
            most: 1.15,
        },
    ),
    behind(
        "time for its work beside a foreground, fg-aware device",
        "≤ 1.15 × stock",
        ("third", "background_completion_ms"),
        Rule::PolicyOver {
            policy: "fastt",
            other: DEFAULT,
            most: 1.15,
        },
    ),
    behind(
        "longest time without progress",
        "never above 2 s",
        ("third", "background_stall_ms"),
        Rule::PolicyNeverAbove {
            policy: "fastt",
            most: 2000.0,
        },
    ),
    behind(
        "time for its work behind an idle foreground",
        "within 2 % of stock",
        ("undisturbed", "background_completion_ms"),
        Rule::PolicyOver {
            policy: "fastt",
            other: DEFAULT,
            most: 1.02,
        },
    ),
    in_front(
        "fastt-, whatever is in front and behind",
        "not above the best of today (interval ≤ ×1.05)",
        Figures::Chief(ANY_IN_FRONT),
        Rule::IntervalOverBest {
            policy: "fastt-",
            most: 1.05,
        },
    ),
    in_front(
        "fastt, whatever is in front and behind",
        "not above the best of today (interval ≤ ×1.05)",
        Figures::Chief(ANY_IN_FRONT),
        Rule::IntervalOverBest {
            policy: "fastt",
            most: 1.05,
        },
    ),
    in_front(
        "frontrow, nobody named",
        "not above best stock (interval ≤ ×1.05)",
        Figures::Chief(ANY_IN_FRONT),
        Rule::IntervalOverBest {
            policy: FRONTROW,
            most: 1.05,
        },
    ),
    in_front(
        "fastt, over all cells",
        "≤ 1.10 × alone",
        Figures::Chief(ANY_IN_FRONT),
        Rule::AverageOverUnloaded {
            policy: "fastt",
            most: 1.10,
        },
    ),
    in_front(
        "fastt, each cell",
        "≤ 1.25 × alone",
        Figures::Chief(ANY_IN_FRONT),
        Rule::PolicyOverUnloaded {
            policy: "fastt",
            most: 1.25,
        },
    ),
    in_front(
        "fastt, worst operation of a run",
        "≤ 3 × alone's worst, or 10 ms more",
        Figures::Operations(ANY_IN_FRONT, "max"),
        Rule::WorstOverUnloaded {
            policy: "fastt",
            times: 3.0,
            more_ms: 10.0,
        },
    ),
    in_front(
        "background's rate under fastt",
        "≥ 10 % of its rate under mq-deadline",
        Figures::Metric("background_mb_s"),
        Rule::PolicyTimes {
            policy: "fastt",
            other: "mq-deadline",
            least: 0.10,
        },
    ),
    in_front(
        "background's longest time without progress under fastt",
        "never above 2 s",
        Figures::Metric("background_stall_ms"),
        Rule::PolicyNeverAbove {
            policy: "fastt",
            most: 2000.0,
        },
    ),
    never_idle("foreground", "fastt"),
    never_idle("foreground", FRONTROW),
    near(
        "emmc",
        "sequential write",
        "54.5 MB/s ± 15 %",
        ("calibrate-seq-write", "512k_write_mb_s"),
        54.5,
    ),
    near(
        "emmc",
        "random write",
        "10.4 MB/s ± 15 %",
        ("calibrate-rand-write", "4k_write_mb_s"),
        10.4,
    ),
    near(
        "emmc",
        "random read",
        "9 MB/s ± 15 %",
        ("calibrate-rand-read", "4k_read_mb_s"),
        9.0,
    ),
    near(
        "emmc",
        "chips busy, 512 KB",
        "4 ± 15 %",
        ("calibrate-seq-read", "512k_busy_dies"),
        4.0,
    ),
    near(
        "ufs",
        "sequential read",
        "350 MB/s ± 15 %",
        ("calibrate-seq-read", "512k_read_mb_s"),
        350.0,
    ),
    near(
        "ufs",
        "sequential write",
        "150 MB/s ± 15 %",
        ("calibrate-seq-write", "512k_write_mb_s"),
        150.0,
    ),
    near(
        "ufs",
        "random read",
        "16 MB/s ± 15 %",
        ("calibrate-rand-read", "4k_read_mb_s"),
        16.0,
    ),
    near(
        "ufs",
        "chips busy, 512 KB",
        "8 ± 15 %",
        ("calibrate-seq-read", "512k_busy_dies"),
        8.0,
    ),
];

/// A bar for the launch paper's reductions, which it measured on an eMMC (figure 3).
const fn loading(
    title: &'static str,
    demand: &'static str,
    policy: &'static str,
    most: f64,
) -> Bar {
    Bar {
        experiment: "launch",
        device: Some("emmc"),
        title,
        demand,
        figures: Figures::Idle("load_time_ms"),
        rule: Rule::PolicyOver {
            policy,
            other: "demand",
            most,
        },
    }
}

/// A bar for the dissertation's averages of six apps (figure 43).
const fn reading(device: &'static str, demand: &'static str, least: f64) -> Bar {
    Bar {
        experiment: "janusd",
        device: Some(device),
        title: "apps' read throughput",
        demand,
        figures: Figures::Metric("read_mb_s"),
        rule: Rule::PolicyTimes {
            policy: JANUSD,
            other: "no-defrag",
            least,
        },
    }
}

/// A bar for the dissertation's best of six apps (figure 44), demanded of their average.
const fn starting(device: &'static str, demand: &'static str, most: f64) -> Bar {
    Bar {
        experiment: "janusd",
        device: Some(device),
        title: "apps' start, time of I/O",
        demand,
        figures: Figures::Metric("start_ms"),
        rule: Rule::PolicyOver {
            policy: JANUSD,
            other: "no-defrag",
            most,
        },
    }
}

/// A bar for the background's cost, where the paper has no figure.
const fn behind(
    title: &'static str,
    demand: &'static str,
    (workload, metric): (&'static str, &'static str),
    rule: Rule,
) -> Bar {
    Bar {
        experiment: "fasttrack-background",
        device: None,
        title,
        demand,
        figures: Figures::One(workload, metric),
        rule,
    }
}

/// A bar for all foreground workloads under all loads.
const fn in_front(title: &'static str, demand: &'static str, figures: Figures, rule: Rule) -> Bar {
    Bar {
        experiment: "foreground",
        device: None,
        title,
        demand,
        figures,
        rule,
    }
}

/// A bar for the longest time in any run in which the device was idle although a task waited and a
/// request was queued. It allows the widest window (docs/qasio.md) and the wake-up.
const fn never_idle(experiment: &'static str, policy: &'static str) -> Bar {
    Bar {
        experiment,
        device: None,
        title: "device idle while somebody waits",
        demand: "never longer than 10 ms",
        figures: Figures::Metric("longest_idle_while_waiting_ms"),
        rule: Rule::PolicyNeverAbove { policy, most: 10.0 },
    }
}

/// A bar for a real device's figure from the papers, or from the maker of the first UFS parts
/// (docs/simflash.md), within 15 %.
const fn near(
    device: &'static str,
    title: &'static str,
    demand: &'static str,
    (workload, metric): (&'static str, &'static str),
    figure: f64,
) -> Bar {
    Bar {
        experiment: "calibrate",
        device: Some(device),
        title,
        demand,
        figures: Figures::One(workload, metric),
        rule: Rule::Near { figure, part: 0.15 },
    }
}

/// Result of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The demand is met.
    Met,
    /// The demand is not met.
    Missed,
    /// A figure that the demand needs was not measured.
    NotMeasured,
}

/// Result of one bar on one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The figure in few words, such as `m1 creat`.
    pub label: String,
    /// The measured value as the bar counts it, such as `×1.04`.
    pub measured: String,
    /// Result of the comparison.
    pub outcome: Outcome,
}

/// A bar with its verdicts.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The bar that was evaluated.
    pub bar: &'static Bar,
    /// One verdict for each figure that the bar judges.
    pub verdicts: Vec<Verdict>,
}

impl Judged {
    /// Missed if any figure misses, met if all figures meet it.
    pub fn outcome(&self) -> Outcome {
        let any = |outcome| {
            self.verdicts
                .iter()
                .any(|verdict| verdict.outcome == outcome)
        };
        if any(Outcome::Missed) {
            return Outcome::Missed;
        }
        match any(Outcome::NotMeasured) || self.verdicts.is_empty() {
            true => Outcome::NotMeasured,
            false => Outcome::Met,
        }
    }
}

/// Evaluates the bars of a result's experiment. A bar on a policy that did not run is left out.
pub fn judge(summary: &Summary) -> Vec<Judged> {
    BARS.iter()
        .filter(|bar| bar.experiment == summary.experiment)
        .filter(|bar| bar.device.is_none_or(|device| device == summary.device))
        .filter(|bar| bar.rule.subject(summary).is_some())
        .map(|bar| Judged {
            bar,
            verdicts: verdicts(bar, summary),
        })
        .collect()
}

/// Numbers of bars in words, such as `9 of 12 bars met, 1 not measured`.
pub fn count(judged: &[Judged]) -> String {
    let of = |outcome| judged.iter().filter(|bar| bar.outcome() == outcome).count();
    let mut text = format!("{} of {} bars met", of(Outcome::Met), judged.len());
    match of(Outcome::NotMeasured) {
        0 => {}
        missing => text.push_str(&format!(", {missing} not measured")),
    }
    text
}

fn verdicts(bar: &Bar, summary: &Summary) -> Vec<Verdict> {
    let figures = select(bar.figures, summary);
    match bar.rule {
        Rule::AverageOver {
            policy,
            other,
            most,
        } => {
            let ratio = average_over(summary, &figures, policy, other);
            let found = ratio.map(|it| (it <= most, number::change(it - 1.0)));
            vec![verdict("average".to_owned(), found)]
        }
        Rule::AverageOverUnloaded { policy, most } => {
            let average = average_over_unloaded(summary, &figures, policy);
            let found = average.map(|it| (it <= most, number::times(it)));
            vec![verdict("geometric mean".to_owned(), found)]
        }
        _ => {
            let judge = |figure| {
                verdict(
                    label(bar, summary, figure),
                    apply(bar.rule, summary, figure),
                )
            };
            figures.into_iter().map(judge).collect()
        }
    }
}

/// Mean over the figures of one policy's mean ratio to another's; `None` if any is missing.
fn average_over(summary: &Summary, figures: &[&Figure], policy: &str, other: &str) -> Option<f64> {
    let ratio = |figure: &&Figure| {
        let (ours, theirs) = (summary.cell(figure, policy)?, summary.cell(figure, other)?);
        Some(over(figure, ours, theirs)?.mean)
    };
    let ratios = figures.iter().map(ratio).collect::<Option<Vec<_>>>()?;
    crate::statistics::Statistics::of(&ratios).map(|it| it.mean)
}

/// Geometric mean over the figures of the ratios to unloaded; `None` if a figure is missing.
fn average_over_unloaded(summary: &Summary, figures: &[&Figure], policy: &str) -> Option<f64> {
    let slowdown = |figure: &&Figure| Some(summary.slowdown(figure, policy)?.ln());
    let logarithms = figures.iter().map(slowdown).collect::<Option<Vec<_>>>()?;
    crate::statistics::Statistics::of(&logarithms).map(|it| it.mean.exp())
}

fn select(figures: Figures, summary: &Summary) -> Vec<&Figure> {
    summary
        .figures
        .iter()
        .filter(|figure| match figures {
            Figures::Operations(workloads, statistic) => {
                figure.is_loaded() && among(workloads, figure) && is_key(figure, statistic)
            }
            Figures::Chief(workloads) => {
                figure.is_loaded()
                    && among(workloads, figure)
                    && summary.chief(&figure.workload, &figure.load) == Some(figure)
            }
            Figures::Metric(metric) => figure.metric == metric,
            Figures::Idle(metric) => !figure.is_loaded() && figure.metric == metric,
            Figures::One(workload, metric) => {
                figure.workload == workload && figure.metric == metric
            }
            Figures::IdleThroughput => {
                !figure.is_loaded() && matches!(figure.unit.as_str(), "MB/s" | "MiB/s" | "IOPS")
            }
            Figures::Under(load, metric) => figure.load == load && figure.metric == metric,
        })
        .collect()
}

fn among(workloads: &[&str], figure: &Figure) -> bool {
    workloads.contains(&figure.workload.as_str())
}

fn is_key(figure: &Figure, statistic: &str) -> bool {
    let operations = metric::key_operations(&figure.workload).unwrap_or_default();
    operations
        .iter()
        .any(|operation| figure.metric == format!("{operation}_{statistic}_ms"))
}

fn verdict(label: String, found: Option<(bool, String)>) -> Verdict {
    let (met, measured) = match found {
        Some((true, text)) => (Outcome::Met, text),
        Some((false, text)) => (Outcome::Missed, text),
        None => (Outcome::NotMeasured, "not measured".to_owned()),
    };
    Verdict {
        label,
        measured,
        outcome: met,
    }
}

/// The figure in as few words as distinguish it from the others of its bar.
fn label(bar: &Bar, summary: &Summary, figure: &Figure) -> String {
    let loads = select(bar.figures, summary)
        .iter()
        .filter(|other| other.workload == figure.workload && other.metric == figure.metric)
        .count();
    let place = match loads {
        1 => figure.workload.clone(),
        _ => title::short(&figure.workload, &figure.load),
    };
    match (bar.figures, metric::operation(&figure.metric)) {
        (Figures::Operations(..), Some(operation)) => format!("{place} {operation}"),
        (Figures::IdleThroughput, _) => format!("{place} {}", metric::label(&figure.metric)),
        _ => place,
    }
}

/// Whether the rule holds, and the value that it compared. `None` if a figure that it needs was not
/// measured.
fn apply(rule: Rule, summary: &Summary, figure: &Figure) -> Option<(bool, String)> {
    let ours = summary.cell(figure, rule.subject(summary)?)?;
    if rule.is_over_stock() && !summary.has_stock() {
        return None;
    }
    match rule {
        Rule::OverUnloaded(most) => {
            let slowdown = summary.slowdown(figure, FRONTROW)?;
            Some((slowdown <= most, number::times(slowdown)))
        }
        Rule::IntervalOverBestStock(most) => {
            let ratio = over(figure, ours, summary.best_stock(figure)?.cell)?;
            Some(interval_within(ratio, most))
        }
        Rule::IntervalOverBest { policy, most } => {
            let (_, ratio) = matrix::best_of_others(summary, figure, policy)?;
            Some(interval_within(ratio, most))
        }
        Rule::PolicyOverUnloaded { policy, most } => {
            let slowdown = summary.slowdown(figure, policy)?;
            Some((slowdown <= most, number::times(slowdown)))
        }
        Rule::WorstOverUnloaded { times, more_ms, .. } => {
            let alone_ms = summary.unloaded(figure)?.cell.worst();
            let most_ms = (alone_ms * times).max(alone_ms + more_ms);
            let text = format!("{} of {}", figure.text(ours.worst()), figure.text(most_ms));
            Some((ours.worst() <= most_ms, text))
        }
        Rule::OverBestStock(most) => {
            let ratio = over(figure, ours, summary.best_stock(figure)?.cell)?.mean;
            Some((ratio <= most, number::times(ratio)))
        }
        Rule::OverPolicy(policy, most) => {
            let ratio = over(figure, ours, summary.cell(figure, policy)?)?.mean;
            Some((ratio <= most, number::times(ratio)))
        }
        Rule::LargerOf {
            best_stock,
            unloaded,
        } => {
            let of_stock = best_stock * summary.best_stock(figure)?.cell.mean();
            let of_unloaded = unloaded * summary.unloaded(figure)?.cell.mean();
            Some(against(figure, ours, of_stock.max(of_unloaded)))
        }
        Rule::Worst { unloaded } => worst(summary, figure, unloaded),
        Rule::UnloadedPlus(allowance) => {
            let allowance = summary.figure(&figure.workload, &figure.load, allowance)?;
            let allowance = summary.cell(allowance, FRONTROW)?.mean();
            let most = summary.unloaded(figure)?.cell.mean() + allowance;
            Some(against(figure, ours, most))
        }
        Rule::WonBack { share, unloaded } => won_back(summary, figure, share, unloaded),
        Rule::PolicyOver { other, most, .. } => {
            let ratio = over(figure, ours, summary.cell(figure, other)?)?.mean;
            Some((ratio <= most, number::change(ratio - 1.0)))
        }
        Rule::PolicyTimes { other, least, .. } => {
            let times = paired_ratio(ours, summary.cell(figure, other)?)?.mean;
            Some((times >= least, number::times(times)))
        }
        Rule::BelowAll { others, .. } => {
            let mut least = f64::INFINITY;
            for other in others {
                least = least.min(summary.cell(figure, other)?.mean());
            }
            let text = format!("{} of {}", figure.text(ours.mean()), figure.text(least));
            Some((ours.mean() < least, text))
        }
        Rule::PolicyAtMost { most, .. } => Some((ours.mean() <= most, figure.text(ours.mean()))),
        Rule::PolicyNeverAbove { most, .. } => {
            let worst = ours.worst();
            Some((worst <= most, figure.text(worst)))
        }
        Rule::OverAlone { alone, most, .. } => {
            let alone = summary.cell(&figure.idle(), alone)?.mean();
            let times = ours.mean() / alone;
            Some((times <= most, number::times(times)))
        }
        // These rules are on all figures together, see `verdicts`.
        Rule::AverageOver { .. } | Rule::AverageOverUnloaded { .. } => None,
        Rule::GainAsIdle { policy, other } => {
            let gain = |figure: &Figure| {
                let ours = summary.cell(figure, policy)?;
                Some(1.0 - over(figure, ours, summary.cell(figure, other)?)?.mean)
            };
            let (loaded, idle) = (gain(figure)?, gain(&figure.idle())?);
            let text = format!(
                "{} (idle {})",
                number::change(-loaded),
                number::change(-idle)
            );
            Some((loaded >= idle, text))
        }
        Rule::AtLeast(least) => Some((ours.mean() >= least, figure.text(ours.mean()))),
        Rule::AtMost(most) => Some((ours.mean() <= most, figure.text(ours.mean()))),
        Rule::Near {
            figure: wanted,
            part,
        } => {
            let off = ours.mean() / wanted - 1.0;
            let text = format!("{} ({})", figure.text(ours.mean()), number::change(off));
            Some((off.abs() <= part, text))
        }
    }
}

/// Whether the interval's upper end is at most `most`; and the mean with its interval in words.
fn interval_within(ratio: crate::statistics::Statistics, most: f64) -> (bool, String) {
    let upper = ratio.interval.map_or(ratio.mean, |interval| interval.high);
    let interval = ratio.interval.map_or(String::new(), |interval| {
        format!(
            " ({}–{})",
            number::factor(interval.low),
            number::factor(interval.high)
        )
    });
    (upper <= most, number::times(ratio.mean) + &interval)
}

/// Ratio of `ours` to `theirs` by seed, turned so that above 1 is worse.
fn over(figure: &Figure, ours: &Cell, theirs: &Cell) -> Option<crate::statistics::Statistics> {
    match figure.direction() {
        metric::Direction::Lower => paired_ratio(ours, theirs),
        metric::Direction::Higher => paired_ratio(theirs, ours),
        metric::Direction::Neither => None,
    }
}

fn against(figure: &Figure, ours: &Cell, most: f64) -> (bool, String) {
    let text = format!("{} of {}", figure.text(ours.mean()), figure.text(most));
    (ours.mean() <= most, text)
}

fn worst(summary: &Summary, figure: &Figure, unloaded: f64) -> Option<(bool, String)> {
    let slowdown = summary.slowdown(figure, FRONTROW)?;
    if slowdown <= unloaded {
        return Some((true, format!("{} unloaded", number::times(slowdown))));
    }
    let operation = metric::operation(&figure.metric)?;
    let (.., paper) = PAPER_WORST
        .iter()
        .find(|(workload, name, _)| *workload == figure.workload && *name == operation)?;
    let stock = summary.cell(figure, "mq-deadline")?.mean();
    let reduction = 1.0 - summary.cell(figure, FRONTROW)?.mean() / stock;
    let text = format!(
        "{} unloaded, {} (paper {})",
        number::times(slowdown),
        number::change(-reduction),
        number::change(-paper)
    );
    Some((reduction >= *paper, text))
}

fn won_back(
    summary: &Summary,
    figure: &Figure,
    share: f64,
    unloaded: f64,
) -> Option<(bool, String)> {
    let slowdown = summary.slowdown(figure, FRONTROW)?;
    let stock = summary.slowdown(figure, &summary.stock_default)?;
    if slowdown <= unloaded || stock <= 1.0 {
        let met = slowdown <= unloaded;
        return Some((met, format!("{} unloaded", number::times(slowdown))));
    }
    let back = (stock - slowdown) / (stock - 1.0);
    Some((back >= share, number::percent(back)))
}
