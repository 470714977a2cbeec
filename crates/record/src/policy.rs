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

/// The scheduler below a policy; a loader that names none has the kernel's default.
pub fn scheduler(policy: &str) -> &str {
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
        ] {
            assert_eq!((loader(policy), scheduler(policy)), expected);
        }
    }
}
