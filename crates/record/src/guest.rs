//! What the lab tells one guest to do, and what the guest says back.

use crate::{Row, Run, Scale, TracePart};
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
    /// What to load, in this order.
    pub modules: Vec<Module>,
    /// The block device that the last of them makes, such as `simflash0`.
    pub device: String,
    /// The file with what it begins each run with; without one it is empty then.
    pub flash_image: Option<String>,
    /// What io.cost has to be told of it, as `io.cost.model` takes it.
    pub io_cost_model: String,
    /// Settings made before anything runs.
    pub sysctls: BTreeMap<String, String>,
    /// Files and what is written to them once the policy is set.
    pub writes: BTreeMap<String, String>,
    /// Options of the ext4 mount.
    pub mount_options: Vec<String>,
    /// The guest gives up after this.
    pub limit_virtual_s: u64,
    /// What to do.
    pub task: Task,
}

/// What a guest does once its modules are loaded and its policy is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// These runs, in order.
    Runs(Vec<Run>),
    /// These runs of a trace, which is in the image, in order.
    Replays {
        /// What is played.
        part: TracePart,
        /// Alone and beside the rest.
        runs: Vec<Run>,
    },
    /// These trials of what the modules withstand, in order.
    Trials {
        /// Their names.
        names: Vec<String>,
        /// How often each repeats what it repeats, as a multiple of its usual.
        rounds: u32,
    },
    /// A shell on the console.
    Shell,
    /// This command, where the device is mounted; what it leaves in /out goes to
    /// the host.
    Command(Vec<String>),
    /// A phone is used for so many days and defragmented after each, and what the device was
    /// told meanwhile goes to the host.
    PowerCut {
        /// Days.
        days: u32,
    },
}

/// A kernel module in the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// The file, from the guest's root.
    pub path: String,
    /// As on a command line of `insmod`, often empty.
    pub parameters: String,
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
