//! An experiment and a device as their TOML files hold them.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// `experiments/NAME.toml`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The file's name without its ending.
    pub name: String,
    /// One line for `lab list`.
    pub title: String,
    /// The policies to compare, in the order of the table's columns.
    pub policies: Vec<String>,
    /// The device profile it runs on when nobody asks for another.
    #[serde(default = "emmc")]
    pub device: String,
    /// Where the device is to differ from its profile: parameters of `simflash.ko`.
    #[serde(default)]
    pub simflash: BTreeMap<String, u64>,
    /// The guest's memory.
    pub memory_mib: u64,
    /// A guest that runs longer than this in virtual time has failed.
    pub limit_virtual_s: u64,
    /// `sysctl` settings made before anything runs, such as `vm.dirty_ratio`.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// Files of the guest and what is written to them once the policy is set,
    /// such as `/sys/block/simflash0/queue/nr_requests`.
    #[serde(default)]
    pub writes: BTreeMap<String, String>,
    /// Whether the device begins with its profile's past. Without, it is new and has as much flash
    /// again as it shows, where the experiment does not say otherwise.
    #[serde(default = "yes")]
    pub aged: bool,
    /// Options of the ext4 mount, such as `discard`.
    #[serde(default)]
    pub mount_options: Vec<String>,
    /// What is played of a trace, for the workload `trace`.
    #[serde(default)]
    pub trace: Option<TracePart>,
    /// What each guest does, in order; each run gets a fresh file system. In the file, an entry
    /// may name several workloads and loads: each of the ones with each of the others.
    #[serde(deserialize_with = "each_with_each")]
    pub runs: Vec<Run>,
}

/// A part of a block trace. The trace itself is the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracePart {
    /// What the file is called where it is to be had.
    pub file: String,
    /// Where that is, in words.
    pub source: String,
    /// Names of the threads in front, as `frontrow replay --front` takes them.
    pub front: Vec<String>,
    /// Seconds before it, since the trace's first operation.
    pub from_s: u64,
    /// How long it is, in the trace's own time.
    pub length_s: u64,
    /// How many times as fast it is played.
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
    /// The workload's name.
    pub workload: String,
    /// `idle` or a background's name.
    #[serde(default = "idle")]
    pub load: String,
}

fn idle() -> String {
    "idle".to_owned()
}

/// An entry of `[[runs]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    workload: Names,
    #[serde(default)]
    load: Names,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Names::One(idle())
    }
}

impl Names {
    fn all(&self) -> &[String] {
        match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        }
    }
}

fn each_with_each<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Run>, D::Error> {
    let entries = Vec::<Entry>::deserialize(deserializer)?;
    let runs = entries.iter().flat_map(|entry| {
        let workloads = entry.workload.all().iter();
        workloads.flat_map(|workload| {
            entry.load.all().iter().map(|load| Run {
                workload: workload.clone(),
                load: load.clone(),
            })
        })
    });
    Ok(runs.collect())
}

/// `experiments/devices/NAME.toml`: the emulated device, as the module's
/// parameters have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The file's name without its ending.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Parameters of `simflash.ko`, names as `modinfo` shows them.
    pub simflash: BTreeMap<String, u64>,
    /// What it has been through before; nothing: it is new.
    #[serde(default)]
    pub aged: Option<Aged>,
    /// What io.cost has to be told of it, as in the kernel's `io.cost.model`.
    #[serde(default)]
    pub io_cost: BTreeMap<String, u64>,
}

/// A device's past: its table `[aged]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aged {
    /// Share of the capacity that holds data.
    pub filled_percent: u32,
    /// Written since it was that full for the first time, in per cent of the capacity.
    pub overwritten_percent: u32,
}

/// Behind a device's name: the same without a past.
pub const FRESH: &str = ":fresh";

impl Device {
    /// The device `NAME:fresh`.
    pub fn fresh(&self) -> Device {
        Device {
            name: format!("{}{FRESH}", self.name),
            ..self.without_past()
        }
    }

    /// New, and with as much flash again as it shows: nothing is ever collected, unless more is
    /// written than that.
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

    fn runs(entries: &str) -> Result<Vec<(String, String)>, toml::de::Error> {
        let head = "name = 'x'\ntitle = 'x'\npolicies = []\nmemory_mib = 1\nlimit_virtual_s = 1\n";
        let experiment: Experiment = toml::from_str(&format!("{head}{entries}"))?;
        let names = experiment.runs.into_iter();
        Ok(names.map(|run| (run.workload, run.load)).collect())
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
}
