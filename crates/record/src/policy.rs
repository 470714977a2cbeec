//! Kinds of policies by their names.

/// Schedulers of the kernel itself; *best stock* is the best of them.
pub const STOCK: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Policy whose figures are judged.
pub const FRONTROW: &str = "frontrow";

/// Loaders of an app's pages in the launch experiment, the kernel alone first.
pub const LOADERS: [&str; 6] = [
    "demand",
    "first-access",
    "lba-order",
    "whole-file",
    "merged",
    "padded",
];

/// FastTrack's policies with names of their own; others are parts joined by `+`.
const FASTTRACK: [(&str, FastTrack); 4] = [
    ("stock", FastTrack::NONE),
    (
        "fastt-",
        FastTrack {
            device: false,
            ..FastTrack::ALL
        },
    ),
    ("fastt", FastTrack::ALL),
    (
        NO_MODULE,
        FastTrack {
            device: false,
            module: false,
            ..FastTrack::ALL
        },
    ),
];

/// FastTrack where no module can be loaded: the kernel's own means serve instead of the dispatcher.
pub const NO_MODULE: &str = "no-module";

/// `frontrowd`'s rule while nobody is in front: who writes far ahead of the disk has dirty pages of its
/// own. Under Frontrow's scheduler, or another one that follows: `ahead+kyber`.
const AHEAD: &str = "ahead";

/// Name of the kernel's default policy in FastTrack's experiments.
pub const DEFAULT: &str = "stock";

/// Reference policies for an app alone; the first that ran is used.
pub const REFERENCES: [&str; 2] = ["unaged", DEFAULT];

/// Parts of FastTrack that a policy has ("002", 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastTrack {
    /// PA: the page allocator.
    pub allocator: bool,
    /// PR: the page reclaimer.
    pub reclaimer: bool,
    /// ID: the I/O dispatcher.
    pub dispatcher: bool,
    /// DS: the device's own scheduler.
    pub device: bool,
    /// Whether Frontrow's scheduler can be loaded, which the dispatcher is.
    pub module: bool,
}

impl FastTrack {
    const NONE: FastTrack = FastTrack {
        allocator: false,
        reclaimer: false,
        dispatcher: false,
        device: false,
        module: true,
    };
    const ALL: FastTrack = FastTrack {
        allocator: true,
        reclaimer: true,
        dispatcher: true,
        device: true,
        module: true,
    };

    /// The parts that a policy names: `stock`, `fastt-`, `fastt`, or `pa`, `pr`, `id` and `ds`
    /// joined by `+`. An upkeep may precede them, as in `janusd-l+fastt`. None for other names.
    pub fn of(policy: &str) -> Option<Self> {
        let policy = match policy.split_once('+') {
            Some((first, rest)) if UPKEEPS.contains(&first) => rest,
            _ => policy,
        };
        if let Some((_, parts)) = FASTTRACK.iter().find(|(name, _)| *name == policy) {
            return Some(*parts);
        }
        let mut parts = FastTrack::NONE;
        for part in policy.split('+') {
            match part {
                "pa" => parts.allocator = true,
                "pr" => parts.reclaimer = true,
                "id" => parts.dispatcher = true,
                "ds" => parts.device = true,
                _ => return None,
            }
        }
        Some(parts)
    }
}

/// What a user can do today with the kernel alone: a cgroup for the foreground, one for the
/// background, and these settings. Memory protection alone is FastTrack's `pr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// I/O scheduler of the device.
    pub scheduler: &'static str,
    /// Whether both cgroups have an `io.bfq.weight`.
    pub bfq_weight: bool,
    /// Whether both cgroups have an `io.weight`, and io.cost is enabled for the device.
    pub io_cost: bool,
    /// Whether the background has `ionice -c idle`.
    pub idle_class: bool,
    /// Whether the foreground's cgroup has a `memory.low`.
    pub memory_low: bool,
}

const NO_MEANS: Means = Means {
    scheduler: "mq-deadline",
    bfq_weight: false,
    io_cost: false,
    idle_class: false,
    memory_low: false,
};

const MEANS: [(&str, Means); 5] = [
    (
        "bfq-weight",
        Means {
            scheduler: "bfq",
            bfq_weight: true,
            ..NO_MEANS
        },
    ),
    (
        "bfq-idle",
        Means {
            scheduler: "bfq",
            idle_class: true,
            ..NO_MEANS
        },
    ),
    (
        "mq-deadline-idle",
        Means {
            idle_class: true,
            ..NO_MEANS
        },
    ),
    (
        "io-cost",
        Means {
            io_cost: true,
            ..NO_MEANS
        },
    ),
    (
        "all-means",
        Means {
            scheduler: "bfq",
            bfq_weight: true,
            io_cost: true,
            idle_class: true,
            memory_low: true,
        },
    ),
];

impl Means {
    /// The settings of the policy with this name; None for other names.
    pub fn of(policy: &str) -> Option<Self> {
        let found = MEANS.iter().find(|(name, _)| *name == policy);
        found.map(|(_, means)| *means)
    }
}

/// Upkeeps of the phone in the janusd experiment, none first. Once a week the phone is defragmented
/// by e4defrag of e2fsprogs, or by `frontrow defrag`. That copies, remaps (janusdL), or remaps and
/// spreads over the dies (janusdL and janusdP). On `unaged` no file is fragmented.
pub const UPKEEPS: [&str; 6] = [
    "no-defrag",
    "e4defrag-1w",
    "copy-1w",
    "janusd-l",
    "janusd",
    "unaged",
];

/// Names in the paper of what an ablation promotes (figures 8 and 9).
const ABLATIONS: [(&str, &str); 5] = [
    ("frontrow:none", "NONE"),
    ("frontrow:data", "D_data + D_sync"),
    ("frontrow:meta", "D_meta"),
    ("frontrow:discard", "D_discard"),
    (FRONTROW, "ALL"),
];

/// The policy that a kernel gives a device by default (`elevator_get_default` in block/elevator.c).
pub fn kernel_default(hardware_queues: u64) -> &'static str {
    match hardware_queues {
        1 => "mq-deadline",
        _ => "none",
    }
}

/// The loader of a policy such as `padded` or `padded+bfq`; None if it names none.
pub fn loader(policy: &str) -> Option<&str> {
    let name = policy.split('+').next().unwrap_or(policy);
    LOADERS.contains(&name).then_some(name)
}

/// The upkeep of a policy, which may precede parts of FastTrack; None if it names none.
pub fn upkeep(policy: &str) -> Option<&str> {
    let name = match policy.split_once('+') {
        Some((first, _)) if FastTrack::of(policy).is_some() => first,
        _ => policy,
    };
    UPKEEPS.contains(&name).then_some(name)
}

/// The scheduler under which a policy limits who writes far ahead; None if it does not.
pub fn limits_writers(policy: &str) -> Option<&str> {
    match policy.strip_prefix(AHEAD)? {
        "" => Some(FRONTROW),
        rest => rest.strip_prefix('+'),
    }
}

/// Programs that a guest needs for a policy besides the kernel's modules.
pub fn programs(policy: &str) -> &'static [&'static str] {
    match upkeep(policy) {
        Some("e4defrag-1w") => &["e4defrag"],
        _ => &[],
    }
}

/// Another scheduler that a guest of this policy needs: it is chosen once somebody is in front.
pub fn chosen_later(policy: &str) -> Option<&'static str> {
    (policy == NO_MODULE).then_some("bfq")
}

/// The I/O scheduler of a policy. It is the kernel's default for a loader that names none, for
/// FastTrack without its dispatcher, and for an upkeep.
pub fn scheduler(policy: &str) -> &str {
    if let Some(parts) = FastTrack::of(policy) {
        return match parts.dispatcher && parts.module {
            true => FRONTROW,
            false => kernel_default(1),
        };
    }
    if let Some(means) = Means::of(policy) {
        return means.scheduler;
    }
    if upkeep(policy).is_some() {
        return kernel_default(1);
    }
    if let Some(scheduler) = limits_writers(policy) {
        return scheduler;
    }
    match (loader(policy), policy.split_once('+')) {
        (None, _) => policy,
        (Some(_), Some((_, scheduler))) => scheduler,
        (Some(_), None) => kernel_default(1),
    }
}

/// Whether it is one of the kernel's own schedulers.
pub fn is_stock(policy: &str) -> bool {
    STOCK.contains(&policy)
}

/// Whether it is `frontrow` with some promotions switched off.
pub fn is_ablation(policy: &str) -> bool {
    policy.starts_with("frontrow:")
}

/// Place of an ablation in the paper's order, and its name there; `frontrow` itself is ALL.
pub fn ablation(policy: &str) -> Option<(usize, &'static str)> {
    let place = ABLATIONS.iter().position(|(name, _)| *name == policy)?;
    Some((place, ABLATIONS[place].1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_has_a_scheduler_below_it() {
        for (policy, expected) in [
            ("padded", (Some("padded"), "mq-deadline")),
            ("demand+bfq", (Some("demand"), "bfq")),
            ("merged+frontrow:meta", (Some("merged"), "frontrow:meta")),
            ("frontrow", (None, "frontrow")),
            ("fastest", (None, "fastest")),
            ("stock", (None, "mq-deadline")),
            ("pa+id", (None, "frontrow")),
            ("pa+pr", (None, "mq-deadline")),
            ("no-module", (None, "mq-deadline")),
            ("ahead", (None, "frontrow")),
            ("ahead+kyber", (None, "kyber")),
            ("aheadx", (None, "aheadx")),
            ("janusd-l", (None, "mq-deadline")),
            ("janusd-l+fastt", (None, "frontrow")),
            ("unaged+pr", (None, "mq-deadline")),
            ("janusd-l+fastest", (None, "janusd-l+fastest")),
            ("all-means", (None, "bfq")),
            ("io-cost", (None, "mq-deadline")),
        ] {
            assert_eq!((loader(policy), scheduler(policy)), expected);
        }
    }

    #[test]
    fn an_upkeep_stands_alone_or_before_parts_of_fasttrack() {
        for (policy, expected) in [
            ("janusd-l", Some("janusd-l")),
            ("janusd-l+fastt", Some("janusd-l")),
            ("e4defrag-1w+pa+id", Some("e4defrag-1w")),
            ("janusd-l+bfq", None),
            ("pa+id", None),
            ("stock", None),
        ] {
            assert_eq!(upkeep(policy), expected, "{policy}");
        }
        assert_eq!(FastTrack::of("janusd-l+fastt"), Some(FastTrack::ALL));
        assert_eq!(programs("e4defrag-1w+pa"), ["e4defrag"]);
    }
}
