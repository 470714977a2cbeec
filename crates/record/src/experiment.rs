//! Experiments and devices in the form of their TOML files.

use crate::bars::Bar;
use crate::summary::IDLE;
use crate::{Load, Policy, Unknown, Workload};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// An experiment, from `experiments/NAME.toml`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of the file without its suffix.
    pub name: String,
    /// One line for `lab list`.
    pub title: String,
    /// Policies to compare, in the order of the table's columns.
    pub policies: Vec<Policy>,
    /// Policies of today, with the best of which figures are compared; without any these are the
    /// kernel's own schedulers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<String>,
    /// Device profile that is used when none is requested.
    #[serde(default = "emmc")]
    pub device: String,
    /// Parameters of `simflash.ko` that differ from the device's profile.
    #[serde(default)]
    pub simflash: BTreeMap<String, u64>,
    /// Memory of the guest, in MiB.
    pub memory_mib: u64,
    /// Virtual time after which a guest has failed, in seconds.
    pub limit_virtual_s: u64,
    /// `sysctl` settings that are made before anything runs, such as `vm.dirty_ratio`.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// Files of the guest, and what is written to them once the policy is set, such as
    /// `/sys/block/simflash0/queue/nr_requests`.
    #[serde(default)]
    pub writes: BTreeMap<String, String>,
    /// Whether the device begins in its profile's aged state. A new device has as much spare flash
    /// as capacity, unless the experiment says otherwise.
    #[serde(default = "yes")]
    pub aged: bool,
    /// Options of the ext4 mount, such as `discard`.
    #[serde(default)]
    pub mount_options: Vec<String>,
    /// Part of a trace that the workload `trace` plays.
    #[serde(default)]
    pub trace: Option<TracePart>,
    /// Runs of each guest in their order; each run gets a fresh file system. An entry in the file
    /// may name several workloads and loads, and stands for all pairs of them.
    #[serde(deserialize_with = "each_with_each")]
    pub runs: Vec<Run>,
    /// What the results must show. JSON of an experiment leaves it out, as results are judged by it
    /// and guests are not.
    #[serde(default, skip_serializing)]
    pub bars: Vec<Bar>,
}

include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

impl Experiment {
    /// Reads an experiment's file, and checks that its bars are on what it runs.
    ///
    /// # Errors
    /// A sentence that names what is wrong, with the nearest of the known names.
    pub fn read(text: &str) -> Result<Experiment, String> {
        let experiment: Experiment = toml::from_str(text).map_err(|error| error.to_string())?;
        experiment.check_sizes_and_settings()?;
        let mut policies = experiment.policies.iter();
        policies.try_for_each(Policy::check)?;
        let runs = |name: &&String| experiment.policies.iter().any(|it| it.name() == *name);
        if let Some(name) = experiment.baselines.iter().find(|it| !runs(it)) {
            return Err(format!("the baseline {name} is no policy that runs"));
        }
        let mut bars = experiment.bars.iter();
        bars.try_for_each(|bar| bar.check(&experiment))?;
        Ok(experiment)
    }

    /// Refuses what no guest can have, before any is started.
    fn check_sizes_and_settings(&self) -> Result<(), String> {
        let lists = [
            ("policies", self.policies.is_empty()),
            ("runs", self.runs.is_empty()),
        ];
        if let Some((name, _)) = lists.iter().find(|(_, is_empty)| *is_empty) {
            return Err(format!("{name} is empty: name at least one"));
        }
        if self.memory_mib < LEAST_MEMORY_MIB {
            return Err(format!(
                "memory_mib is {}: a guest needs {LEAST_MEMORY_MIB} or more",
                self.memory_mib
            ));
        }
        if self.limit_virtual_s == 0 {
            return Err("limit_virtual_s is 0: give seconds of the guest's time".to_owned());
        }
        if let Some(name) = self.sysctls.keys().find(|name| !is_sysctl(name)) {
            return Err(format!(
                "sysctls has {name:?}: write it as `sysctl -a` does, such as vm.dirty_ratio"
            ));
        }
        if let Some(path) = self.writes.keys().find(|path| !path.starts_with('/')) {
            return Err(format!("writes has {path:?}: give a path from / on"));
        }
        let is_option = |it: &&String| !it.is_empty() && !it.contains([',', ' ', '\n']);
        match self.mount_options.iter().find(|it| !is_option(it)) {
            Some(option) => Err(format!(
                "mount_options has {option:?}: give each option apart, such as \"discard\""
            )),
            None => Ok(()),
        }
    }

    /// The experiment with this name as it was when this program was built; None if there was none.
    pub fn embedded(name: &str) -> Option<Experiment> {
        let (_, text) = EXPERIMENTS.iter().find(|(known, _)| *known == name)?;
        Experiment::read(text).ok()
    }
}

/// Memory in which a guest boots with the lab's kernels and an empty device, in MiB.
const LEAST_MEMORY_MIB: u64 = 128;

/// Whether it is the name of a setting below /proc/sys, with dots or slashes.
fn is_sysctl(name: &str) -> bool {
    let mut parts = name.split(['.', '/']);
    let is_part = |part: &str| {
        let is_in_name = |it: char| it.is_ascii_alphanumeric() || "_-:@".contains(it);
        !part.is_empty() && part.chars().all(is_in_name)
    };
    name.contains(['.', '/']) && parts.all(is_part)
}

/// A part of a block trace; the trace itself is the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracePart {
    /// Name of the trace's file at its source.
    pub file: String,
    /// Source of the trace, in words.
    pub source: String,
    /// Names of the foreground threads, as `frontrow-lab replay --front` takes them.
    pub front: Vec<String>,
    /// Begin of the part, in seconds since the trace's first operation.
    pub from_s: u64,
    /// Length of the part in the trace's own time, in seconds.
    pub length_s: u64,
    /// Factor by which times of the trace are divided.
    pub speed: u64,
}

fn yes() -> bool {
    true
}

fn emmc() -> String {
    "emmc".to_owned()
}

/// One workload under one load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What the foreground does.
    pub workload: &'static Workload,
    /// What the background does.
    #[serde(default = "Load::idle")]
    pub load: Load,
}

impl Run {
    /// The run of the workload and the load with these names.
    ///
    /// # Errors
    /// [`Unknown`]: one of the names.
    pub fn named(workload: &str, load: &str) -> Result<Run, Unknown> {
        Ok(Run {
            workload: workload.parse()?,
            load: load.parse()?,
        })
    }
}

/// An entry of `[[runs]]` in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    workload: Names,
    #[serde(default = "idle")]
    load: Names,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Names {
    One(String),
    Several(Vec<String>),
}

fn idle() -> Names {
    Names::One(IDLE.to_owned())
}

impl Names {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        }
    }
}

fn each_with_each<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Run>, D::Error> {
    let entries = Vec::<Entry>::deserialize(deserializer)?;
    let mut runs = Vec::new();
    for entry in &entries {
        for workload in entry.workload.all() {
            for load in entry.load.all() {
                runs.push(Run::named(workload, load).map_err(D::Error::custom)?);
            }
        }
    }
    Ok(runs)
}

/// An emulated device, from `experiments/devices/NAME.toml`, with the module's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Name of the file without its suffix.
    pub name: String,
    /// Description of the device in one line.
    pub title: String,
    /// Parameters of `simflash.ko`, with names as `modinfo` shows them.
    pub simflash: BTreeMap<String, u64>,
    /// History of the device; None for a new one.
    #[serde(default)]
    pub aged: Option<Aged>,
    /// Parameters of the device for the kernel's `io.cost.model`.
    #[serde(default)]
    pub io_cost: BTreeMap<String, u64>,
}

/// History of a device: its table `[aged]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aged {
    /// Share of the capacity that holds data, in per cent.
    pub filled_percent: u32,
    /// Data written after the device first had that share, in per cent of the capacity.
    pub overwritten_percent: u32,
}

/// Suffix of a device's name for the device without a history.
pub const FRESH: &str = ":fresh";

impl Device {
    /// The device `NAME:fresh`.
    pub fn fresh(&self) -> Device {
        Device {
            name: format!("{}{FRESH}", self.name),
            ..self.without_past()
        }
    }

    /// A new device with as much spare flash as capacity. Garbage collection begins only when more
    /// than that is written.
    pub fn without_past(&self) -> Device {
        let mut device = self.clone();
        device.aged = None;
        device.simflash.insert("spare_percent".to_owned(), 100);
        device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_every_experiment_is_known() {
        assert!(EXPERIMENTS.len() > 10);
        for (name, text) in EXPERIMENTS {
            let experiment =
                Experiment::read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(experiment.name, *name);
            assert!(!experiment.runs.is_empty() && !experiment.policies.is_empty());
        }
    }

    #[test]
    fn sizes_and_settings_that_no_guest_can_have_are_refused() {
        let good = [
            "policies = ['none']",
            "memory_mib = 1024",
            "limit_virtual_s = 60",
            "mount_options = ['discard', 'commit=30']",
            "sysctls = { 'vm.dirty_ratio' = '5', 'net/ipv4/tcp_rmem' = '1' }",
            "writes = { '/sys/block/simflash0/queue/nr_requests' = '4' }",
            "runs = [{ workload = 'm1' }]",
        ];
        let read = |changed: Option<&str>| {
            let key = changed.map(|it| it.split(' ').next().unwrap());
            let others = good
                .iter()
                .copied()
                .filter(|it| it.split(' ').next() != key);
            let lines: Vec<&str> = others.chain(changed).collect();
            Experiment::read(&format!("name = 'x'\ntitle = 'x'\n{}", lines.join("\n")))
        };
        read(None).unwrap();
        for changed in [
            "policies = []",
            "runs = []",
            "memory_mib = 0",
            "memory_mib = 16",
            "limit_virtual_s = 0",
            "mount_options = ['discard,noatime']",
            "mount_options = ['']",
            "sysctls = { 'dirty ratio' = '5' }",
            "sysctls = { 'vm.dirty_ratio ' = '5' }",
            "sysctls = { 'vm..dirty_ratio' = '5' }",
            "writes = { 'sys/block' = '1' }",
        ] {
            let key = changed.split(' ').next().unwrap();
            let said = read(Some(changed)).unwrap_err();
            assert!(said.starts_with(key), "{changed}: {said}");
        }
    }

    #[test]
    fn a_bar_on_what_does_not_run_is_refused() {
        let head = "name = 'x'\ntitle = 'x'\npolicies = ['none', 'frontrow']\nmemory_mib = 512\n\
                    limit_virtual_s = 1\n[[runs]]\nworkload = 'm1'\n";
        let read = |bar: &str| {
            Experiment::read(&format!("{head}[[bars]]\ntitle = 'a'\ndemand = 'b'\n{bar}"))
        };
        let headline = "figures = { chief = 'all' }\n";
        read(&format!(
            "{headline}rule = [{{ at_most = 1.5, of = \"unloaded\" }}]"
        ))
        .unwrap();
        for (bar, said) in [
            (
                "figures = { metric = 'total' }\nrule = [{ at_most = 1 }]",
                "metric total",
            ),
            (
                "figures = { chief = ['m2'] }\nrule = [{ at_most = 1 }]",
                "workload m2",
            ),
            (
                "figures = { chief = ['galery'] }\nrule = [{ at_most = 1 }]",
                "did you mean 'gallery'?",
            ),
            (
                "figures = { under = { load = 'writer', metric = 'total_ms' } }\n\
                 rule = [{ at_most = 1 }]",
                "load writer",
            ),
            (
                "policy = 'fastt'\nfigures = { chief = 'all' }\nrule = [{ at_most = 1 }]",
                "policy fastt",
            ),
            (
                "figures = { chief = 'all' }\nrule = [{ below = 1, of = { lowest = ['bfq'] } }]",
                "policy bfq",
            ),
            (
                "figures = { chief = 'all' }\nrule = [{ at_moost = 1 }]",
                "at_moost",
            ),
            (
                "figures = { chief = 'all' }\nrule = [{ of = 'unloaded' }]",
                "at_most, below",
            ),
            (
                "figures = { chief = 'all' }\nrule = [{ at_most = 1, of = 'unladen' }]",
                "unladen",
            ),
        ] {
            let error = read(bar).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    fn runs(entries: &str) -> Result<Vec<(String, String)>, toml::de::Error> {
        let head = "name = 'x'\ntitle = 'x'\npolicies = []\nmemory_mib = 1\nlimit_virtual_s = 1\n";
        let experiment: Experiment = toml::from_str(&format!("{head}{entries}"))?;
        let names = experiment.runs.into_iter();
        Ok(names
            .map(|run| (run.workload.to_string(), run.load.to_string()))
            .collect())
    }

    #[test]
    fn each_workload_of_an_entry_runs_with_each_load() {
        let entries = "[[runs]]\nworkload = ['m1', 'm2']\nload = ['idle', 'writer']\n\
                       [[runs]]\nworkload = 'a'\n";
        let expected = [
            ("m1", "idle"),
            ("m1", "writer"),
            ("m2", "idle"),
            ("m2", "writer"),
            ("a", "idle"),
        ];
        let expected = expected.map(|(workload, load)| (workload.to_owned(), load.to_owned()));
        assert_eq!(runs(entries).unwrap(), expected);
    }

    #[test]
    fn a_misspelt_key_of_a_run_is_refused() {
        assert!(runs("[[runs]]\nworkload = 'm1'\nlaod = 'writer'\n").is_err());
    }

    #[test]
    fn a_misspelt_name_is_refused_with_the_nearest() {
        for (entry, nearest) in [
            ("workload = 'galery'", "'gallery'"),
            ("workload = ['m1', 'galery']", "'gallery'"),
            ("workload = 'm1'\nload = 'wirter'", "'writer'"),
        ] {
            let error = runs(&format!("[[runs]]\n{entry}\n")).unwrap_err();
            let expected = format!("did you mean {nearest}?");
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }
}
