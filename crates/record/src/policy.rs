//! Policies: the scheduler of a guest, and what else is done there for some and to others.
//!
//! | name | what it sets |
//! |---|---|
//! | `none`, `mq-deadline`, `kyber`, `bfq` | that scheduler of the kernel's |
//! | `frontrow`, `frontrow:meta` | ours; with these promotions only, which is an ablation |
//! | `frontrow:no-probes` | ours on a kernel without return probes |
//! | `padded`, `padded+bfq` | a loader of apps, above a scheduler |
//! | `fastt`, `pa+id` | parts of FastTrack |
//! | `janusd-l`, `janusd-l+fastt` | an upkeep of files, beside parts of FastTrack |
//! | `bfq-weight`, `all-means` | the kernel's own settings for a foreground |
//! | `equal`, `by-screen` | FastTrack with several apps on the screen |
//! | `ahead`, `ahead+kyber` | limits for who writes far ahead, above a scheduler |
//!
//! A name is made of words of one table, joined by `+`; each word sets one field. An experiment's file
//! may state the fields instead, and give the policy any name. What a guest does for a field is in
//! `crates/guest/src/active_policy.rs` (cgroups), `crates/workload/src/loader.rs` or `upkeep.rs`.

use crate::metric::DEPENDENCIES;
use crate::name::Unknown;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Schedulers of the kernel itself; *best stock* is the best of them, unless an experiment names
/// other baselines.
pub const STOCK: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Policy whose figures are judged.
pub const FRONTROW: &str = "frontrow";

/// Name of the kernel's default policy in FastTrack's experiments.
pub const DEFAULT: &str = "stock";

/// Reference policies for an app alone; the first that ran is used.
pub const REFERENCES: [&str; 2] = ["unaged", DEFAULT];

/// The scheduler that a kernel chooses for the lab's devices, which have one hardware queue.
const KERNEL_DEFAULT: &str = "mq-deadline";

/// A word of a policy's name.
enum Word {
    Scheduler,
    Parts(&'static [Part]),
    /// FastTrack where no module can be loaded: the kernel's own settings replace the dispatcher.
    PartsWithoutModule(&'static [Part]),
    Upkeep(Upkeep),
    /// A scheduler, and settings of the kernel's own.
    Settings(&'static str, &'static [Setting]),
    Loader(Loader),
    /// FastTrack without the device's part, for several apps on the screen.
    Screen(Screen),
    LimitsWriters,
}

use Part::{Allocator, Device, Dispatcher, Reclaimer};
use Setting::{BfqWeight, IdleClass, IoCost, MemoryLow};

/// All words: add one here.
const WORDS: [(&str, Word); 41] = [
    ("none", Word::Scheduler),
    ("mq-deadline", Word::Scheduler),
    ("kyber", Word::Scheduler),
    ("bfq", Word::Scheduler),
    ("frontrow:none", Word::Scheduler),
    ("frontrow:data", Word::Scheduler),
    ("frontrow:meta", Word::Scheduler),
    ("frontrow:discard", Word::Scheduler),
    (FRONTROW, Word::Scheduler),
    (DEFAULT, Word::Parts(&[])),
    ("fastt-", Word::Parts(&[Allocator, Reclaimer, Dispatcher])),
    (
        "fastt",
        Word::Parts(&[Allocator, Reclaimer, Dispatcher, Device]),
    ),
    (
        "no-module",
        Word::PartsWithoutModule(&[Allocator, Reclaimer, Dispatcher]),
    ),
    ("pa", Word::Parts(&[Allocator])),
    ("pr", Word::Parts(&[Reclaimer])),
    ("id", Word::Parts(&[Dispatcher])),
    ("ds", Word::Parts(&[Device])),
    ("no-defrag", Word::Upkeep(Upkeep::NoDefrag)),
    ("e4defrag-1w", Word::Upkeep(Upkeep::E4defrag)),
    ("e4defrag-2w", Word::Upkeep(Upkeep::E4defragEveryTwo)),
    ("e4defrag-4w", Word::Upkeep(Upkeep::E4defragEveryFour)),
    ("copy-1w", Word::Upkeep(Upkeep::Copy)),
    ("janusd-l", Word::Upkeep(Upkeep::Remap)),
    ("janusd", Word::Upkeep(Upkeep::RemapAndSpread)),
    ("unaged", Word::Upkeep(Upkeep::Unaged)),
    ("bfq-weight", Word::Settings("bfq", &[BfqWeight])),
    ("bfq-idle", Word::Settings("bfq", &[IdleClass])),
    (
        "mq-deadline-idle",
        Word::Settings("mq-deadline", &[IdleClass]),
    ),
    ("io-cost", Word::Settings("mq-deadline", &[IoCost])),
    (
        "all-means",
        Word::Settings("bfq", &[BfqWeight, IoCost, IdleClass, MemoryLow]),
    ),
    ("demand", Word::Loader(Loader::Demand)),
    ("first-access", Word::Loader(Loader::FirstAccess)),
    ("reordered", Word::Loader(Loader::Reordered)),
    ("lba-order", Word::Loader(Loader::LbaOrder)),
    ("whole-file", Word::Loader(Loader::WholeFile)),
    ("merged", Word::Loader(Loader::Merged)),
    ("padded", Word::Loader(Loader::Padded)),
    ("padded-readahead", Word::Loader(Loader::PaddedReadahead)),
    ("equal", Word::Screen(Screen::Equal)),
    ("by-screen", Word::Screen(Screen::ByShare)),
    ("ahead", Word::LimitsWriters),
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

/// A policy by its parts. Its name is for display, and names its rows in results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    name: String,
    /// I/O scheduler of the device. It is the kernel's default for a loader that names none, for
    /// FastTrack without its dispatcher, and for an upkeep.
    pub scheduler: Scheduler,
    /// Parts of FastTrack; None for policies without a foreground.
    pub parts: Option<BTreeSet<Part>>,
    /// Loader of an app's pages.
    pub loader: Option<Loader>,
    /// Upkeep of files.
    pub upkeep: Option<Upkeep>,
    /// Settings of the kernel's own for a foreground and a background.
    pub settings: BTreeSet<Setting>,
    /// How several apps on the screen are told apart; None with one foreground.
    pub screen: Option<Screen>,
    /// Whether who writes far ahead of the disk has a limit of its own: `frontrowd`'s rule without a
    /// foreground.
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
    /// One that comes in modules of others.
    Foreign {
        /// Name that the module registers.
        name: String,
        /// Modules to load: each a `.ko`, or a directory of sources. A guest's own copy has none.
        modules: Vec<PathBuf>,
    },
}

/// Parts of FastTrack ("002", 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Part {
    /// PA: the page allocator.
    #[serde(rename = "pa")]
    Allocator,
    /// PR: the page reclaimer.
    #[serde(rename = "pr")]
    Reclaimer,
    /// ID: the I/O dispatcher. Below another scheduler than ours the kernel's own settings replace it.
    #[serde(rename = "id")]
    Dispatcher,
    /// DS: the device's own scheduler.
    #[serde(rename = "ds")]
    Device,
}

/// Settings that a user can make today with the kernel alone: a cgroup for the foreground, and one
/// for the background. Memory protection alone is FastTrack's `pr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Setting {
    /// Both cgroups have an `io.bfq.weight`.
    #[serde(rename = "io.bfq.weight")]
    BfqWeight,
    /// Both cgroups have an `io.weight`, and io.cost is enabled for the device.
    #[serde(rename = "io.cost")]
    IoCost,
    /// The background has `ionice -c idle`.
    #[serde(rename = "ionice")]
    IdleClass,
    /// The foreground's cgroup has a `memory.low`.
    #[serde(rename = "memory.low")]
    MemoryLow,
}

/// Loader of an app's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// None: the app waits for each read, and the kernel reads ahead.
    #[default]
    Demand,
    /// readahead(2) in the order of the start's reads, as Android's libprefetch.
    FirstAccess,
    /// The start's reads as they are, one at a time and without readahead, in the device's order.
    Reordered,
    /// readahead(2) in the device's order, as ureadahead.
    LbaOrder,
    /// readahead(2) of each whole file.
    WholeFile,
    /// `frontrow launch` without padding: one batch in the device's order.
    Merged,
    /// `frontrow launch` with padding.
    Padded,
    /// The same with a profile of what a start by demand leaves in memory, readahead included.
    PaddedReadahead,
}

impl Loader {
    /// Whether it reads gaps, by the device's read times.
    pub fn pads(self) -> bool {
        matches!(self, Loader::Padded | Loader::PaddedReadahead)
    }
}

/// How FastTrack tells several apps on the screen apart ("002", 7.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Screen {
    /// All of them are the foreground.
    Equal,
    /// One is the foreground. The others are visible, each with the share of the screen that it
    /// covers.
    #[serde(rename = "by-screen")]
    ByShare,
}

/// Weights in percent of the apps on the screen: the active one's, and the shares of the screen that
/// the others cover.
pub const SCREEN_PERCENT: [u8; 3] = [100, 60, 30];

/// Ways to defragment the phone's files, once a week unless the name says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Upkeep {
    /// Files are not defragmented.
    #[default]
    NoDefrag,
    /// e4defrag of e2fsprogs on all files.
    #[serde(rename = "e4defrag-1w")]
    E4defrag,
    /// The same every two weeks.
    #[serde(rename = "e4defrag-2w")]
    E4defragEveryTwo,
    /// The same every four weeks.
    #[serde(rename = "e4defrag-4w")]
    E4defragEveryFour,
    /// `frontrow defrag --mode copy`.
    #[serde(rename = "copy-1w")]
    Copy,
    /// `frontrow defrag` on a device that remaps (janusdL).
    #[serde(rename = "janusd-l")]
    Remap,
    /// `frontrow defrag` on a device that remaps, then `frontrow defrag --mode physical` (janusdP).
    #[serde(rename = "janusd")]
    RemapAndSpread,
    /// No defragmentation, as the aged apps' files are written without fragmentation.
    Unaged,
}

impl Upkeep {
    /// Weeks between two of them.
    pub fn weeks(self) -> u32 {
        match self {
            Upkeep::E4defragEveryTwo => 2,
            Upkeep::E4defragEveryFour => 4,
            _ => 1,
        }
    }

    /// Whether it is e2fsprogs' e4defrag.
    pub fn is_e4defrag(self) -> bool {
        use Upkeep::{E4defrag, E4defragEveryFour, E4defragEveryTwo};
        matches!(self, E4defrag | E4defragEveryTwo | E4defragEveryFour)
    }
}

/// The policy that a kernel gives a device by default (`elevator_get_default` in block/elevator.c).
pub fn kernel_default(hardware_queues: u64) -> &'static str {
    match hardware_queues {
        1 => KERNEL_DEFAULT,
        _ => "none",
    }
}

/// A policy's fields as an experiment's file states them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduler: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modules: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<BTreeSet<Part>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loader: Option<Loader>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upkeep: Option<Upkeep>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    settings: BTreeSet<Setting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen: Option<Screen>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    limits_writers: bool,
}

impl Fields {
    /// Sets what `word` stands for. `None` if the word is not known, or its field is set already.
    fn set(&mut self, word: &str) -> Option<()> {
        let known = WORDS.iter().find(|(known, _)| *known == word);
        match known.map_or(&Word::Scheduler, |(_, it)| it) {
            Word::Scheduler => once(&mut self.scheduler, word.to_owned()),
            Word::Parts(parts) => {
                self.parts.get_or_insert_default().extend(*parts);
                Some(())
            }
            Word::PartsWithoutModule(parts) => {
                self.parts.get_or_insert_default().extend(*parts);
                once(&mut self.scheduler, KERNEL_DEFAULT.to_owned())
            }
            Word::Settings(scheduler, settings) => {
                self.settings.extend(*settings);
                once(&mut self.scheduler, (*scheduler).to_owned())
            }
            Word::Upkeep(upkeep) => once(&mut self.upkeep, *upkeep),
            Word::Loader(loader) => once(&mut self.loader, *loader),
            Word::Screen(screen) => {
                let parts = [Allocator, Reclaimer, Dispatcher];
                self.parts.get_or_insert_default().extend(parts);
                once(&mut self.screen, *screen)
            }
            Word::LimitsWriters => {
                self.limits_writers = true;
                Some(())
            }
        }
    }

    /// Without a scheduler it is ours where ours does something, else the kernel's choice.
    fn scheduler(&self) -> Scheduler {
        let is_dispatched = |parts: &BTreeSet<Part>| parts.contains(&Dispatcher);
        let needs_ours = self.limits_writers || self.parts.as_ref().is_some_and(is_dispatched);
        let Some(name) = &self.scheduler else {
            return match needs_ours {
                true => Scheduler::Frontrow,
                false => Scheduler::Stock(KERNEL_DEFAULT),
            };
        };
        let known = Scheduler::known(name).filter(|_| self.modules.is_empty());
        known.unwrap_or_else(|| Scheduler::Foreign {
            name: name.clone(),
            modules: self.modules.clone(),
        })
    }

    fn policy(self) -> Policy {
        Policy {
            scheduler: self.scheduler(),
            name: self.name,
            parts: self.parts,
            loader: self.loader,
            upkeep: self.upkeep,
            settings: self.settings,
            screen: self.screen,
            limits_writers: self.limits_writers,
        }
    }
}

fn once<T>(field: &mut Option<T>, value: T) -> Option<()> {
    field.replace(value).is_none().then_some(())
}

impl FromStr for Policy {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        Policy::with_modules(name, &[])
    }
}

impl Policy {
    /// The policy with this name, whose scheduler may come in one of `modules`.
    ///
    /// # Errors
    /// [`Unknown`]: a word that is none and, without modules, no scheduler either.
    pub fn with_modules(name: &str, modules: &[PathBuf]) -> Result<Self, Unknown> {
        let mut fields = Fields {
            name: name.to_owned(),
            modules: modules.to_vec(),
            ..Fields::default()
        };
        let set = name.split('+').try_for_each(|word| fields.set(word));
        set.ok_or_else(|| unknown(name))?;
        let is_known = |it: &String| Scheduler::known(it).is_some();
        if fields.scheduler.as_ref().is_none_or(is_known) {
            fields.modules.clear();
        }
        let policy = fields.policy();
        match policy.is_whole() {
            true => Ok(policy),
            false => Err(unknown(name)),
        }
    }

    /// The policies of all the kernel's schedulers and of ours.
    pub fn schedulers() -> Vec<Policy> {
        let stock = STOCK.into_iter().map(Scheduler::Stock);
        let all = stock.chain([Scheduler::Frontrow]);
        all.map(Policy::of_scheduler).collect()
    }

    fn of_scheduler(scheduler: Scheduler) -> Policy {
        Policy {
            name: scheduler.to_string(),
            scheduler,
            parts: None,
            loader: None,
            upkeep: None,
            settings: BTreeSet::new(),
            screen: None,
            limits_writers: false,
        }
    }

    /// The policy `frontrow`.
    pub fn frontrow() -> Policy {
        Policy::of_scheduler(Scheduler::Frontrow)
    }

    /// The policy that the kernel gives a device with one hardware queue.
    pub fn kernel_default() -> Policy {
        Policy::of_scheduler(Scheduler::Stock(KERNEL_DEFAULT))
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
            Some(upkeep) if upkeep.is_e4defrag() => &["e4defrag"],
            _ => &[],
        }
    }

    /// Whether FastTrack has this part.
    pub fn has_part(&self, part: Part) -> bool {
        self.parts.as_ref().is_some_and(|it| it.contains(&part))
    }

    /// Another scheduler that a guest needs, which is selected once there is a foreground.
    pub fn chosen_later(&self) -> Option<&'static str> {
        (self.has_part(Dispatcher) && !self.scheduler.is_ours()).then_some("bfq")
    }

    /// Modules that come from outside.
    pub fn modules(&self) -> &[PathBuf] {
        match &self.scheduler {
            Scheduler::Foreign { modules, .. } => modules,
            _ => &[],
        }
    }

    /// Whether there is a module for its scheduler, and a name that the kernel takes.
    fn is_whole(&self) -> bool {
        match &self.scheduler {
            Scheduler::Foreign { name, modules } => {
                !modules.is_empty() && is_name_of_scheduler(name)
            }
            _ => true,
        }
    }

    /// The same with paths of modules from `change`.
    pub fn with_paths(mut self, change: impl Fn(&PathBuf) -> PathBuf) -> Policy {
        if let Scheduler::Foreign { modules, .. } = &mut self.scheduler {
            *modules = modules.iter().map(change).collect();
        }
        self
    }

    /// The same for a guest, which has the modules elsewhere.
    pub(crate) fn in_guest(mut self) -> Policy {
        if let Scheduler::Foreign { modules, .. } = &mut self.scheduler {
            modules.clear();
        }
        self
    }

    /// Refuses a scheduler that nobody has, and another policy's name.
    pub(crate) fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if name.is_empty() || name.contains(|it: char| it == ',' || it.is_whitespace()) {
            return Err(format!(
                "{name:?} is no name of a policy: omit blanks and commas"
            ));
        }
        if !self.is_whole() {
            return Err(unknown(&self.scheduler.to_string()).to_string());
        }
        match name.parse::<Policy>() {
            Ok(known) if known != *self => Err(format!(
                "the policy {name} has other fields in this file than {name} has elsewhere: give it another name"
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.name)
    }
}

/// As its name, or as its fields where the name does not tell them.
impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.name.parse().is_ok_and(|known: Policy| known == *self) {
            return serializer.serialize_str(&self.name);
        }
        let fields = Fields {
            name: self.name.clone(),
            scheduler: Some(self.scheduler.to_string()),
            modules: self.modules().to_vec(),
            parts: self.parts.clone(),
            loader: self.loader,
            upkeep: self.upkeep,
            settings: self.settings.clone(),
            screen: self.screen,
            limits_writers: self.limits_writers,
        };
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

/// Reads a policy's name, or its fields.
struct Written;

impl<'de> Visitor<'de> for Written {
    type Value = Policy;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a policy's name, or a table such as { name = \"padded-bfq\", loader = \"padded\", scheduler = \"bfq\" }")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Policy, E> {
        name.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Policy, A::Error> {
        Ok(Fields::deserialize(MapAccessDeserializer::new(map))?.policy())
    }
}

impl Scheduler {
    /// One of the kernel's own, or ours.
    fn known(name: &str) -> Option<Scheduler> {
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

    /// Whether it is Frontrow's.
    pub fn is_ours(&self) -> bool {
        matches!(self, Scheduler::Frontrow | Scheduler::Ablation(_))
    }

    /// Parameters of our module.
    pub fn module_parameters(&self) -> &'static str {
        match self {
            Scheduler::Ablation(name) if name.ends_with(NO_PROBES) => "probes=0",
            _ => "",
        }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Scheduler::Stock(name) => name,
            Scheduler::Frontrow => FRONTROW,
            Scheduler::Ablation(name) | Scheduler::Foreign { name, .. } => name,
        })
    }
}

/// Whether a kernel's module may register a scheduler under this name (`ELV_NAME_MAX`).
fn is_name_of_scheduler(name: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    (1..16).contains(&name.len()) && name.bytes().all(is_plain)
}

fn unknown(name: &str) -> Unknown {
    Unknown::new(name, "a policy", WORDS.iter().map(|(word, _)| *word)).with(
        "; words that set different things may be joined by '+', such as pa+id, padded+bfq or \
         janusd-l+fastt; --module names the module of another scheduler",
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
            ("by-screen", (None, "frontrow")),
            ("equal+bfq", (None, "bfq")),
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
    fn an_upkeep_stands_alone_or_beside_parts_of_fasttrack() {
        for (name, expected) in [
            ("janusd-l", Some(Upkeep::Remap)),
            ("janusd-l+fastt", Some(Upkeep::Remap)),
            ("e4defrag-1w+pa+id", Some(Upkeep::E4defrag)),
            ("pa+id", None),
            ("stock", None),
        ] {
            assert_eq!(policy(name).upkeep, expected, "{name}");
        }
        let parts = policy("janusd-l+fastt").parts.unwrap();
        assert!(
            parts
                .into_iter()
                .eq([Allocator, Reclaimer, Dispatcher, Device])
        );
        for (name, weeks) in [
            ("e4defrag-1w+pa", 1),
            ("e4defrag-2w", 2),
            ("e4defrag-4w", 4),
        ] {
            assert_eq!(policy(name).programs(), ["e4defrag"], "{name}");
            assert_eq!(
                policy(name).upkeep.map(Upkeep::weeks),
                Some(weeks),
                "{name}"
            );
        }
        assert_eq!(policy("janusd").programs(), [""; 0]);
        assert_eq!(policy("janusd").upkeep.map(Upkeep::weeks), Some(1));
    }

    #[test]
    fn all_means_are_all_and_others_one() {
        let settings = |name| policy(name).settings.into_iter();
        assert!(settings("all-means").eq([BfqWeight, IoCost, IdleClass, MemoryLow]));
        assert!(settings("bfq-idle").eq([IdleClass]));
        assert_eq!(settings("fastt-").count(), 0);
        assert!(!policy("fastt-").has_part(Device) && policy("fastt").has_part(Device));
    }

    #[test]
    fn an_ablation_is_no_scheduler_of_its_own() {
        let ablation = policy("frontrow:meta");
        assert!(ablation.is_ablation() && !ablation.is_stock());
        assert_eq!(ablation.ablation(), Some((2, "D_meta")));
        assert!(ablation.scheduler.is_ours());
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
            ("bfq+kyber", None),
            ("janusd-l+fastest", None),
            ("janusd-l+janusd", None),
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

    #[test]
    fn another_scheduler_comes_with_its_module_and_is_never_stock() {
        let modules = [PathBuf::from("adios.ko")];
        let adios = Policy::with_modules("padded+adios", &modules).unwrap();
        assert_eq!(adios.modules(), modules);
        assert_eq!(adios.loader, Some(Loader::Padded));
        assert!(!adios.is_stock() && !adios.scheduler.is_ours());
        // A name that is known stays what it is, whatever modules there are.
        let known = Policy::with_modules("kyber", &modules).unwrap();
        assert_eq!(known, policy("kyber"));
        for name in [
            "adios+other",
            "two words",
            "a-name-that-is-too-long",
            "adios+kyber",
        ] {
            assert!(Policy::with_modules(name, &modules).is_err(), "{name}");
        }
        let sent = serde_json::to_string(&adios.clone().in_guest()).unwrap();
        let there: Policy = serde_json::from_str(&sent).unwrap();
        assert_eq!(there, adios.in_guest());
        assert_eq!(
            serde_json::to_string(&policy("fastt")).unwrap(),
            "\"fastt\""
        );
    }

    #[derive(Debug, Deserialize)]
    struct File {
        policies: Vec<Policy>,
    }

    fn written(policy: &str) -> Result<Policy, String> {
        let file: Result<File, _> = toml::from_str(&format!("policies = [{policy}]"));
        let mut policies = file.map_err(|error| error.to_string())?.policies;
        let policy = policies.remove(0);
        policy.check().map(|()| policy)
    }

    #[test]
    fn a_file_may_state_the_fields() {
        let stated = written(
            "{ name = 'mine', scheduler = 'bfq', loader = 'padded', parts = ['pa'], settings = ['ionice'] }",
        );
        let stated = stated.unwrap();
        assert_eq!(stated.to_string(), "mine");
        assert_eq!(stated.scheduler, Scheduler::Stock("bfq"));
        assert_eq!(stated.loader, Some(Loader::Padded));
        assert!(stated.has_part(Allocator) && stated.settings.contains(&IdleClass));
        assert!(!stated.is_stock());
        let same = "{ name = 'padded+bfq', scheduler = 'bfq', loader = 'padded' }";
        assert_eq!(written(same).unwrap(), policy("padded+bfq"));
        let patched = written("{ name = 'bfq-mine', scheduler = 'bfq', modules = ['m'] }").unwrap();
        assert_eq!(patched.modules(), [PathBuf::from("m")]);
        for (policy, said) in [
            ("{ name = 'bfq', loader = 'padded' }", "another name"),
            ("{ name = 'x', scheduler = 'bqf' }", "did you mean 'bfq'?"),
            ("{ name = 'x', lodaer = 'padded' }", "lodaer"),
            ("{ name = 'x', loader = 'paded' }", "paded"),
            ("{ name = 'a b' }", "omit blanks"),
            ("{ loader = 'padded' }", "no name"),
            ("1", "a policy's name"),
        ] {
            let error = written(policy).unwrap_err();
            assert!(error.contains(said), "{policy}: {error}");
        }
    }
}
