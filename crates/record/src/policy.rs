//! Policies: the scheduler of a guest, and what else is done there for some and to others.
//!
//! | name | what it sets |
//! |---|---|
//! | `none`, `mq-deadline`, `kyber`, `bfq` | that scheduler of the kernel's |
//! | `frontrow`, `frontrow:meta` | ours; with these promotions only, which is an ablation |
//! | `frontrow:no-probes` | ours on a kernel without return probes |
//! | `padded`, `padded+bfq` | a loader of apps, above a scheduler |
//! | `fastt`, `pa+id` | parts of FastTrack |
//! | `janusd-l`, `janusd-l+fastt` | an upkeep of files, before parts of FastTrack |
//! | `bfq-weight`, `all-means` | the kernel's own settings for a foreground |
//! | `ahead`, `ahead+kyber` | limits for who writes far ahead, above a scheduler |
//!
//! Add a policy to the table of its kind, here; what a guest does for it is in `crates/guest/src/active_policy.rs`
//! (cgroups), `crates/workload/src/loader.rs` or `upkeep.rs`.

use crate::metric::DEPENDENCIES;
use crate::name::Unknown;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Schedulers of the kernel itself; *best stock* is the best of them.
pub const STOCK: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Policy whose figures are judged.
pub const FRONTROW: &str = "frontrow";

/// Name of the kernel's default policy in FastTrack's experiments.
pub const DEFAULT: &str = "stock";

/// Reference policies for an app alone; the first that ran is used.
pub const REFERENCES: [&str; 2] = ["unaged", DEFAULT];

/// `frontrowd`'s rule without a foreground: an app that writes far ahead of the disk gets a dirty limit
/// of its own.
const AHEAD: &str = "ahead";

/// Loaders of an app's pages in the launch experiment, the kernel alone first.
const LOADERS: [(&str, Loader); 6] = [
    ("demand", Loader::Demand),
    ("first-access", Loader::FirstAccess),
    ("lba-order", Loader::LbaOrder),
    ("whole-file", Loader::WholeFile),
    ("merged", Loader::Merged),
    ("padded", Loader::Padded),
];

/// Upkeeps of the phone in the janusd experiment, none first.
const UPKEEPS: [(&str, Upkeep); 6] = [
    ("no-defrag", Upkeep::None),
    ("e4defrag-1w", Upkeep::E4defrag),
    ("copy-1w", Upkeep::Copy),
    ("janusd-l", Upkeep::Remap),
    ("janusd", Upkeep::RemapAndSpread),
    ("unaged", Upkeep::Unaged),
];

/// Names of FastTrack's parts, as policies have them.
const PARTS: [&str; 4] = ["pa", "pr", "id", "ds"];

/// FastTrack's policies with names of their own, and their parts. Others are parts joined by `+`.
const FASTTRACK: [(&str, &str); 4] = [
    (DEFAULT, ""),
    ("fastt-", "pa+pr+id"),
    ("fastt", "pa+pr+id+ds"),
    (NO_MODULE, "pa+pr+id"),
];

/// FastTrack where no module can be loaded: the kernel's own settings replace the dispatcher.
const NO_MODULE: &str = "no-module";

/// Policies of the kernel's own settings for a foreground: name, scheduler, and the settings besides.
const KERNEL_SETTINGS: [(&str, (&str, &str)); 5] = [
    ("bfq-weight", ("bfq", "io.bfq.weight")),
    ("bfq-idle", ("bfq", "ionice")),
    ("mq-deadline-idle", ("mq-deadline", "ionice")),
    ("io-cost", ("mq-deadline", "io.cost")),
    (
        "all-means",
        ("bfq", "io.bfq.weight io.cost ionice memory.low"),
    ),
];

/// Ours as it is on a kernel without return probes: its module is loaded with `probes=0`.
const NO_PROBES: &str = "no-probes";

/// Names in the paper of what an ablation promotes (figures 8 and 9).
const ABLATIONS: [(&str, &str); 5] = [
    ("frontrow:none", "NONE"),
    ("frontrow:data", "D_data + D_sync"),
    ("frontrow:meta", "D_meta"),
    ("frontrow:discard", "D_discard"),
    (FRONTROW, "ALL"),
];

/// A policy by its parts. Its name is read by [`FromStr`] and given back by [`Display`](std::fmt::Display).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Policy {
    name: String,
    /// I/O scheduler of the device. It is the kernel's default for a loader that names none, for
    /// FastTrack without its dispatcher, and for an upkeep.
    pub scheduler: Scheduler,
    /// Parts of FastTrack; None for policies without a foreground.
    pub fasttrack: Option<FastTrack>,
    /// Loader of an app's pages.
    pub loader: Option<Loader>,
    /// Upkeep of files.
    pub upkeep: Option<Upkeep>,
    /// Settings of the kernel's own for a foreground and a background.
    pub kernel_settings: Option<KernelSettings>,
    /// Whether who writes far ahead of the disk has a limit of its own.
    pub limits_writers: bool,
}

/// An I/O scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// One of the kernel's own.
    Stock(&'static str),
    /// Ours, with all promotions.
    Frontrow,
    /// Ours with some promotions switched off; holds the whole name, such as `frontrow:meta`.
    Ablation(String),
}

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
    /// Whether Frontrow's scheduler, the dispatcher, can be loaded. Without it the kernel's own
    /// settings replace the dispatcher.
    pub module: bool,
}

/// What a user can do today with the kernel alone: a cgroup for the foreground, one for the
/// background, and these settings. Memory protection alone is FastTrack's `pr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSettings {
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

/// Loader of an app's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Loader {
    /// None: the app waits for each read, and the kernel reads ahead.
    #[default]
    Demand,
    /// readahead(2) in the order of the start's reads, as Android's libprefetch.
    FirstAccess,
    /// readahead(2) in the device's order, as ureadahead.
    LbaOrder,
    /// readahead(2) of each whole file.
    WholeFile,
    /// `frontrow launch` without padding: one batch in the device's order.
    Merged,
    /// `frontrow launch` with padding.
    Padded,
}

/// Ways to defragment the phone's files, once a week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Upkeep {
    /// Files are not defragmented.
    #[default]
    None,
    /// e4defrag of e2fsprogs on all files.
    E4defrag,
    /// `frontrow defrag --mode copy`.
    Copy,
    /// `frontrow defrag` on a device that remaps (janusdL).
    Remap,
    /// `frontrow defrag` on a device that remaps, then `frontrow defrag --mode physical` (janusdP).
    RemapAndSpread,
    /// No defragmentation, as the aged apps' files are written without fragmentation.
    Unaged,
}

/// The policy that a kernel gives a device by default (`elevator_get_default` in block/elevator.c).
pub fn kernel_default(hardware_queues: u64) -> &'static str {
    match hardware_queues {
        1 => "mq-deadline",
        _ => "none",
    }
}

impl FromStr for Policy {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        let policy = Policy::of_means(name)
            .or_else(|| Policy::of_loader(name))
            .or_else(|| Policy::of_limits(name))
            .or_else(|| Policy::of_fasttrack(name))
            .or_else(|| Scheduler::named(name).map(Policy::of_scheduler))
            .ok_or_else(|| unknown(name))?;
        Ok(Policy {
            name: name.to_owned(),
            ..policy
        })
    }
}

impl Policy {
    fn of_scheduler(scheduler: Scheduler) -> Policy {
        Policy {
            name: scheduler.to_string(),
            scheduler,
            fasttrack: None,
            loader: None,
            upkeep: None,
            kernel_settings: None,
            limits_writers: false,
        }
    }

    fn of_means(name: &str) -> Option<Policy> {
        let settings = KernelSettings::named(name)?;
        Some(Policy {
            kernel_settings: Some(settings),
            ..Policy::of_scheduler(Scheduler::Stock(settings.scheduler))
        })
    }

    fn of_loader(name: &str) -> Option<Policy> {
        let (loader, scheduler) = split(name);
        let loader = named(&LOADERS, loader)?;
        let scheduler = scheduler.map_or(Some(Scheduler::DEFAULT), Scheduler::named)?;
        Some(Policy {
            loader: Some(loader),
            ..Policy::of_scheduler(scheduler)
        })
    }

    fn of_limits(name: &str) -> Option<Policy> {
        let (ahead, scheduler) = split(name);
        let scheduler = scheduler.map_or(Some(Scheduler::Frontrow), Scheduler::named)?;
        (ahead == AHEAD).then(|| Policy {
            limits_writers: true,
            ..Policy::of_scheduler(scheduler)
        })
    }

    /// An upkeep, parts of FastTrack, or both.
    fn of_fasttrack(name: &str) -> Option<Policy> {
        let (first, rest) = split(name);
        let upkeep = named(&UPKEEPS, first);
        let fasttrack = match (upkeep, rest) {
            (None, _) => Some(FastTrack::named(name)?),
            (Some(_), Some(parts)) => Some(FastTrack::named(parts)?),
            (Some(_), None) => None,
        };
        let ours = fasttrack.is_some_and(|parts| parts.dispatcher && parts.module);
        let scheduler = match ours {
            true => Scheduler::Frontrow,
            false => Scheduler::DEFAULT,
        };
        Some(Policy {
            fasttrack,
            upkeep,
            ..Policy::of_scheduler(scheduler)
        })
    }

    /// The policies of all the kernel's schedulers and of ours.
    pub fn schedulers() -> Vec<Policy> {
        let stock = STOCK.into_iter().map(Scheduler::Stock);
        let all = stock.chain([Scheduler::Frontrow]);
        all.map(Policy::of_scheduler).collect()
    }

    /// The policy `frontrow`.
    pub fn frontrow() -> Policy {
        Policy::of_scheduler(Scheduler::Frontrow)
    }

    /// The policy that the kernel gives a device with one hardware queue.
    pub fn kernel_default() -> Policy {
        Policy::of_scheduler(Scheduler::DEFAULT)
    }

    /// Name in experiments, on the command line and in results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is one of the kernel's own schedulers.
    pub fn is_stock(&self) -> bool {
        STOCK.contains(&self.name())
    }

    /// Whether it is `frontrow` with some promotions switched off.
    pub fn is_ablation(&self) -> bool {
        self.scheduler.to_string() == self.name && matches!(self.scheduler, Scheduler::Ablation(_))
    }

    /// Place of an ablation in the paper's order, and its name there; `frontrow` itself is ALL.
    pub fn ablation(&self) -> Option<(usize, &'static str)> {
        let place = ABLATIONS.iter().position(|(name, _)| *name == self.name)?;
        Some((place, ABLATIONS[place].1))
    }

    /// Programs that a guest needs besides the kernel's modules.
    pub fn programs(&self) -> &'static [&'static str] {
        match self.upkeep {
            Some(Upkeep::E4defrag) => &["e4defrag"],
            _ => &[],
        }
    }

    /// Another scheduler that a guest needs, which is selected once there is a foreground.
    pub fn chosen_later(&self) -> Option<&'static str> {
        let parts = self.fasttrack?;
        (!parts.module).then_some("bfq")
    }
}

crate::name::written_as_its_name!(Policy);

impl Scheduler {
    /// The kernel's choice for the lab's devices, which have one hardware queue.
    const DEFAULT: Scheduler = Scheduler::Stock("mq-deadline");

    fn named(name: &str) -> Option<Scheduler> {
        if let Some(stock) = STOCK.into_iter().find(|stock| *stock == name) {
            return Some(Scheduler::Stock(stock));
        }
        let promoted = match name.split_once(':') {
            None => return (name == FRONTROW).then_some(Scheduler::Frontrow),
            Some((FRONTROW, promoted)) => promoted,
            Some(_) => return None,
        };
        let known = |word| word == "none" || word == "all" || DEPENDENCIES.contains(&word);
        let all_known = promoted == NO_PROBES || promoted.split(',').all(known);
        all_known.then(|| Scheduler::Ablation(name.to_owned()))
    }

    /// Parameters of [`Scheduler::module`].
    pub fn module_parameters(&self) -> &'static str {
        match self {
            Scheduler::Ablation(name) if name.ends_with(NO_PROBES) => "probes=0",
            _ => "",
        }
    }

    /// Kernel module of the scheduler; `none` needs no module.
    pub fn module(&self) -> &'static str {
        match self {
            Scheduler::Stock(name) => name,
            Scheduler::Frontrow | Scheduler::Ablation(_) => FRONTROW,
        }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Scheduler::Stock(name) => name,
            Scheduler::Frontrow => FRONTROW,
            Scheduler::Ablation(name) => name,
        })
    }
}

impl FastTrack {
    fn named(name: &str) -> Option<FastTrack> {
        let parts: Vec<&str> = match named(&FASTTRACK, name) {
            Some("") => Vec::new(),
            Some(parts) => parts.split('+').collect(),
            None => name.split('+').collect(),
        };
        let has = |part| parts.contains(&part);
        let all_known = parts.iter().all(|part| PARTS.contains(part));
        all_known.then(|| FastTrack {
            allocator: has("pa"),
            reclaimer: has("pr"),
            dispatcher: has("id"),
            device: has("ds"),
            module: name != NO_MODULE,
        })
    }
}

impl KernelSettings {
    fn named(name: &str) -> Option<KernelSettings> {
        let (scheduler, set) = named(&KERNEL_SETTINGS, name)?;
        let has = |what| set.split(' ').any(|it| it == what);
        Some(KernelSettings {
            scheduler,
            bfq_weight: has("io.bfq.weight"),
            io_cost: has("io.cost"),
            idle_class: has("ionice"),
            memory_low: has("memory.low"),
        })
    }
}

fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, it)| *it)
}

/// A name's first part, and the rest after `+`.
fn split(name: &str) -> (&str, Option<&str>) {
    match name.split_once('+') {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    }
}

fn unknown(name: &str) -> Unknown {
    let known = STOCK
        .into_iter()
        .chain(ABLATIONS.map(|(name, _)| name))
        .chain(FASTTRACK.map(|(name, _)| name))
        .chain(PARTS)
        .chain(UPKEEPS.map(|(name, _)| name))
        .chain(KERNEL_SETTINGS.map(|(name, _)| name))
        .chain(LOADERS.map(|(name, _)| name))
        .chain([AHEAD]);
    Unknown::new(name, "a policy", known).with(
        "; pa, pr, id and ds may be joined by '+', also behind janusd-l and the like, and a scheduler \
         may be behind a loader or ahead, such as padded+bfq",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str) -> Policy {
        let policy: Policy = name.parse().unwrap();
        assert_eq!(policy.to_string(), name);
        policy
    }

    #[test]
    fn a_loader_has_a_scheduler_below_it() {
        for (name, expected) in [
            ("padded", (Some(Loader::Padded), "mq-deadline")),
            ("demand+bfq", (Some(Loader::Demand), "bfq")),
            (
                "merged+frontrow:meta",
                (Some(Loader::Merged), "frontrow:meta"),
            ),
            ("frontrow", (None, "frontrow")),
            ("stock", (None, "mq-deadline")),
            ("pa+id", (None, "frontrow")),
            ("pa+pr", (None, "mq-deadline")),
            ("no-module", (None, "mq-deadline")),
            ("ahead", (None, "frontrow")),
            ("ahead+kyber", (None, "kyber")),
            ("janusd-l", (None, "mq-deadline")),
            ("janusd-l+fastt", (None, "frontrow")),
            ("unaged+pr", (None, "mq-deadline")),
            ("all-means", (None, "bfq")),
            ("io-cost", (None, "mq-deadline")),
        ] {
            let policy = policy(name);
            assert_eq!(policy.loader, expected.0, "{name}");
            assert_eq!(policy.scheduler.to_string(), expected.1, "{name}");
        }
    }

    #[test]
    fn an_upkeep_stands_alone_or_before_parts_of_fasttrack() {
        for (name, expected) in [
            ("janusd-l", Some(Upkeep::Remap)),
            ("janusd-l+fastt", Some(Upkeep::Remap)),
            ("e4defrag-1w+pa+id", Some(Upkeep::E4defrag)),
            ("pa+id", None),
            ("stock", None),
        ] {
            assert_eq!(policy(name).upkeep, expected, "{name}");
        }
        let parts = policy("janusd-l+fastt").fasttrack.unwrap();
        assert!(parts.allocator && parts.reclaimer && parts.dispatcher && parts.device);
        assert_eq!(policy("e4defrag-1w+pa").programs(), ["e4defrag"]);
    }

    #[test]
    fn all_means_are_all_and_others_one() {
        let settings = |name| policy(name).kernel_settings.unwrap();
        let all = settings("all-means");
        assert!(all.bfq_weight && all.io_cost && all.idle_class && all.memory_low);
        let idle = settings("bfq-idle");
        assert!(idle.idle_class && !idle.bfq_weight && !idle.io_cost && !idle.memory_low);
        assert_eq!(policy("fastt-").kernel_settings, None);
        assert!(!policy("fastt-").fasttrack.unwrap().device);
    }

    #[test]
    fn an_ablation_is_no_scheduler_of_its_own() {
        let ablation = policy("frontrow:meta");
        assert!(ablation.is_ablation() && !ablation.is_stock());
        assert_eq!(ablation.ablation(), Some((2, "D_meta")));
        assert_eq!(ablation.scheduler.module(), "frontrow");
        assert_eq!(ablation.scheduler.module_parameters(), "");
        let without_probes = policy("frontrow:no-probes");
        assert!(without_probes.is_ablation() && without_probes.ablation().is_none());
        assert_eq!(without_probes.scheduler.module_parameters(), "probes=0");
        assert!(!policy("padded+frontrow:meta").is_ablation());
        assert!(policy("none").is_stock() && !policy("frontrow").is_stock());
        assert_eq!(policy("no-module").chosen_later(), Some("bfq"));
    }

    #[test]
    fn an_unknown_policy_is_told_what_there_is() {
        for (name, nearest) in [
            ("fastest", Some("fastt")),
            ("mq-deadlines", Some("mq-deadline")),
            ("monthly", None),
            ("aheadx", Some("ahead")),
            ("ahead+", Some("ahead")),
            ("janusd-l+bfq", None),
            ("janusd-l+fastest", None),
            ("frontrow:colour", None),
            ("pa+", Some("pa")),
            ("", None),
        ] {
            let error = name.parse::<Policy>().unwrap_err().to_string();
            assert!(
                error.contains("fastt-, fastt") && error.contains("janusd-l"),
                "{error}"
            );
            let suggested = nearest.map(|it| format!("did you mean '{it}'?"));
            assert!(
                suggested.is_none_or(|it| error.contains(&it)),
                "{name}: {error}"
            );
        }
    }
}
