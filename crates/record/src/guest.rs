//! What the lab tells one guest to do, and what the guest says back.

use crate::{Row, Run, Scale};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One guest's work: `/spec.json` in its initramfs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GuestSpec {
    /// The experiment's name.
    pub experiment: String,
    /// The policy this guest runs under, such as `mq-deadline` or `frontrow:meta`.
    pub policy: String,
    /// Shifts the load's start and the file layout.
    pub seed: u64,
    /// How large the workloads are.
    pub scale: Scale,
    /// Parameters of `simflash.ko`.
    pub simflash: BTreeMap<String, u64>,
    /// Settings made before anything runs.
    pub sysctls: BTreeMap<String, String>,
    /// Options of the ext4 mount.
    pub mount_options: Vec<String>,
    /// What to do, in order.
    pub runs: Vec<Run>,
}

/// One line on the guest's second serial port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "message")]
pub enum Message {
    /// Run `index` of `count` begins.
    Progress {
        /// From 0.
        index: usize,
        /// All of this guest's runs.
        count: usize,
        /// What begins, for people: `m1 under writer`.
        text: String,
    },
    /// A figure.
    Row(Row),
    /// The guest gives up; what it measured so far is not a result.
    Failed {
        /// One sentence.
        reason: String,
    },
    /// All runs are done, and this many rows were sent.
    Done {
        /// Rows sent, so that a lost line is seen.
        rows: usize,
    },
}
