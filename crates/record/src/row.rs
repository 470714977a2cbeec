//! Rows and files of results.

use crate::bars::Bar;
use crate::{Histogram, Scale, Series};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One figure with its workload, load, policy and seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the workload, such as `m1` for the paper's M1.
    pub workload: String,
    /// Name of the load, or `idle`.
    pub load: String,
    /// Name of the policy: a scheduler or an ablation.
    pub policy: String,
    /// Name of the metric, with its unit at the end if it has one: `fsync_mean_ms`.
    pub metric: String,
    /// Unit of the value: `ms`, `MB/s`, `1`, `instructions` …
    pub unit: String,
    /// Seed of the file layout and the load's timing.
    pub seed: u64,
    /// The value in `unit`.
    pub value: f64,
    /// Distribution that the value comes from, in nanoseconds whatever `unit` is; None without one.
    #[serde(flatten, deserialize_with = "crate::histogram::of_row")]
    pub histogram: Option<Histogram>,
    /// Values whose mean the figure is; None unless their order matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

/// All inputs besides seed and code that a result's bytes depend on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// Version or digest by name: `kernel`, `qemu`, `gcc`, `rustc`, `image_sha256`.
    #[serde(flatten)]
    pub items: BTreeMap<String, String>,
}

/// The file `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Name of the experiment.
    pub experiment: String,
    /// Release of the kernel, such as `6.12.117+deb12-cloud-amd64`.
    pub kernel: String,
    /// Name of the device profile.
    pub device: String,
    /// Size of the run.
    pub scale: Scale,
    /// Policy that this kernel gives this device by default: [`crate::policy::kernel_default`] of
    /// its number of hardware queues.
    #[serde(default = "single_queue_default")]
    pub stock_default: String,
    /// Policies of today, where the experiment names them; without any these are the kernel's own
    /// schedulers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<String>,
    /// What the experiment's results must show, if this program does not know the experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<Bar>,
    /// Inputs that the bytes depend on.
    pub inputs: Inputs,
    /// Rows by policy in the experiment's order, then by seed, then in the order of measurement.
    pub rows: Vec<Row>,
}

fn single_queue_default() -> String {
    crate::policy::kernel_default(1).to_owned()
}
