//! Result rows and the result file.

use crate::{Histogram, Scale, Series};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One figure: what was measured, under which load and policy, by which seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload's name, `m1` for the paper's M1.
    pub workload: String,
    /// `idle` or the background's name.
    pub load: String,
    /// The scheduler or ablation.
    pub policy: String,
    /// What was measured; ends in its unit where it has one: `fsync_mean_ms`.
    pub metric: String,
    /// `ms`, `MB/s`, `1`, `instructions` …
    pub unit: String,
    /// The seed that laid out files and timed the load.
    pub seed: u64,
    /// The figure.
    pub value: f64,
    /// The whole distribution, where the figure comes from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The values in their order, where the figure is their mean and the order tells something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

/// Everything besides seed and code that a result's bytes depend on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// Name → version or digest: `kernel`, `qemu`, `gcc`, `rustc`, `image_sha256`.
    #[serde(flatten)]
    pub items: BTreeMap<String, String>,
}

/// `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// The experiment's name.
    pub experiment: String,
    /// The kernel's release, such as `6.12.117+deb12-cloud-amd64`.
    pub kernel: String,
    /// The device profile's name.
    pub device: String,
    /// How large the run was.
    pub scale: Scale,
    /// The policy this kernel gives this device when nobody chooses:
    /// [`crate::policy::kernel_default`] of its number of hardware queues.
    #[serde(default = "single_queue_default")]
    pub stock_default: String,
    /// What the bytes depend on.
    pub inputs: Inputs,
    /// Rows ordered by policy as the experiment lists them, then seed, then as measured.
    pub rows: Vec<Row>,
}

fn single_queue_default() -> String {
    crate::policy::kernel_default(1).to_owned()
}
