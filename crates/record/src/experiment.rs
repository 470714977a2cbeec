//! Experiments and devices in the form of their TOML files.

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
    pub policies: Vec<String>,
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
}

/// A part of a block trace; the trace itself is the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracePart {
    /// Name of the trace's file at its source.
    pub file: String,
    /// Source of the trace, in words.
    pub source: String,
    /// Names of the foreground threads, as `frontrow replay --front` takes them.
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
    /// Name of the workload.
    pub workload: String,
    /// Name of the load, or `idle`.
    #[serde(default = "idle")]
    pub load: String,
}

fn idle() -> String {
    "idle".to_owned()
}

/// An entry of `[[runs]]` in the file.
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
