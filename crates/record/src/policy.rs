//! What kind of thing a policy's name stands for.

/// The schedulers that come with the kernel; *best stock* is the best of them.
pub const STOCK: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// The scheduler whose figures are judged.
pub const FRONTROW: &str = "frontrow";

/// Who brings an app's pages into memory in the launch experiment, the kernel alone first.
pub const LOADERS: [&str; 6] = [
    "demand",
    "first-access",
    "lba-order",
    "whole-file",
    "merged",
    "padded",
];

/// FastTrack's policies that are names of their own; parts joined by `+` are others.
const FASTTRACK: [(&str, FastTrack); 3] = [
    ("stock", FastTrack::NONE),
    (
        "fastt-",
        FastTrack {
            device: false,
            ..FastTrack::ALL
        },
    ),
    ("fastt", FastTrack::ALL),
];

/// Which parts of FastTrack a policy has ("002", 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastTrack {
    /// PA, the page allocator.
    pub allocator: bool,
    /// PR, the page reclaimer.
    pub reclaimer: bool,
    /// ID, the I/O dispatcher.
    pub dispatcher: bool,
    /// DS, the device's own scheduler.
    pub device: bool,
}

impl FastTrack {
    const NONE: FastTrack = FastTrack {
        allocator: false,
        reclaimer: false,
        dispatcher: false,
        device: false,
    };
    const ALL: FastTrack = FastTrack {
        allocator: true,
        reclaimer: true,
        dispatcher: true,
        device: true,
    };

    /// The parts that a policy names: `stock`, `fastt-`, `fastt`, or `pa`, `pr`, `id` and
    /// `ds` joined by `+`.
    pub fn of(policy: &str) -> Option<Self> {
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
/// Who defragments the phone in the janusd experiment, nobody first: once a week e2fsprogs'
/// e4defrag, or `frontrow defrag` by copying or by remapping (janusdL).
pub const UPKEEPS: [&str; 4] = ["no-defrag", "e4defrag-1w", "copy-1w", "janusd-l"];

/// The paper's names for what an ablation promotes (figures 8 and 9).
const ABLATIONS: [(&str, &str); 5] = [
    ("frontrow:none", "NONE"),
    ("frontrow:data", "D_data + D_sync"),
    ("frontrow:meta", "D_meta"),
    ("frontrow:discard", "D_discard"),
    (FRONTROW, "ALL"),
];

/// The policy a kernel gives a device that nobody configured
/// (`elevator_get_default` in block/elevator.c).
pub fn kernel_default(hardware_queues: u64) -> &'static str {
    match hardware_queues {
        1 => "mq-deadline",
        _ => "none",
    }
}

/// The loader that a policy names, such as `padded` or `padded+bfq`.
pub fn loader(policy: &str) -> Option<&str> {
    let name = policy.split('+').next().unwrap_or(policy);
    LOADERS.contains(&name).then_some(name)
}

/// The upkeep that a policy names.
pub fn upkeep(policy: &str) -> Option<&str> {
    UPKEEPS.contains(&policy).then_some(policy)
}

/// What a guest needs for a policy besides the kernel's modules.
pub fn programs(policy: &str) -> &'static [&'static str] {
    match policy {
        "e4defrag-1w" => &["e4defrag"],
        _ => &[],
    }
}

/// The scheduler below a policy; a loader that names none has the kernel's default, and so
/// has FastTrack without its dispatcher, and an upkeep.
pub fn scheduler(policy: &str) -> &str {
    if upkeep(policy).is_some() {
        return kernel_default(1);
    }
    if let Some(parts) = FastTrack::of(policy) {
        return match parts.dispatcher {
            true => FRONTROW,
            false => kernel_default(1),
        };
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

/// Whether it is `frontrow` with some of its promotions switched off.
pub fn is_ablation(policy: &str) -> bool {
    policy.starts_with("frontrow:")
}

/// The ablation's place in the paper's order and its name there; `frontrow`
/// itself is ALL.
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
            ("janusd-l", (None, "mq-deadline")),
        ] {
            assert_eq!((loader(policy), scheduler(policy)), expected);
        }
    }
}
