//! The lab's message to a guest, and the guest's messages back.

use crate::{Policy, Row, Run, Scale, TracePart};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Work of one guest: `/spec.json` in its initramfs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GuestSpec {
    /// Name of the experiment.
    pub experiment: String,
    /// Policy of this guest, such as `mq-deadline` or `frontrow:meta`.
    pub policy: Policy,
    /// Seed of the load's start and the file layout.
    pub seed: u64,
    /// Size of the workloads.
    pub scale: Scale,
    /// Kernel modules to load, in this order.
    pub modules: Vec<Module>,
    /// Block device that the last module creates, such as `simflash0`.
    pub device: String,
    /// File with the image that the device has at the begin of each run; None for an empty device.
    pub flash_image: Option<String>,
    /// Line for the kernel's `io.cost.model`, or empty.
    pub io_cost_model: String,
    /// `sysctl` settings that are made before anything runs.
    pub sysctls: BTreeMap<String, String>,
    /// Files, and what is written to them once the policy is set.
    pub writes: BTreeMap<String, String>,
    /// Options of the ext4 mount.
    pub mount_options: Vec<String>,
    /// Virtual time after which the guest fails, in seconds.
    pub limit_virtual_s: u64,
    /// What the guest does.
    pub task: Task,
}

/// The block device that simflash makes.
const DEVICE: &str = "simflash0";

impl GuestSpec {
    /// A guest that mounts an empty device with discards, and neither changes settings nor has a
    /// time limit.
    pub fn new(experiment: &str, policy: Policy, modules: Vec<Module>, task: Task) -> Self {
        GuestSpec {
            experiment: experiment.to_owned(),
            policy: policy.in_guest(),
            seed: 1,
            scale: Scale::Demo,
            modules,
            device: DEVICE.to_owned(),
            flash_image: None,
            io_cost_model: String::new(),
            sysctls: BTreeMap::new(),
            writes: BTreeMap::new(),
            mount_options: vec!["discard".to_owned()],
            limit_virtual_s: 0,
            task,
        }
    }
}

/// Tasks of a guest, once its modules are loaded and its policy is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Workloads under loads, in order.
    Runs(Vec<Run>),
    /// Runs of a trace that is in the image, in order.
    Replays {
        /// Part of the trace.
        part: TracePart,
        /// Runs of the part: alone, and beside the rest of the trace.
        runs: Vec<Run>,
    },
    /// Trials of what the modules withstand, in order.
    Trials {
        /// Names of the trials.
        names: Vec<String>,
        /// Multiple of each trial's usual number of repetitions.
        rounds: u32,
    },
    /// A shell on the console.
    Shell,
    /// A command in the mount point of the device. Files that it leaves in /out go to the host.
    Command(Vec<String>),
    /// A phone that is used and defragmented daily. The device's command stream goes to the host.
    PowerCut {
        /// Number of days.
        days: u32,
    },
}

/// A kernel module in the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Path of the module in the guest.
    pub path: String,
    /// Parameters as on a command line of `insmod`, often empty.
    pub parameters: String,
}

/// One line on the guest's second serial port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "message")]
pub enum Message {
    /// A run begins.
    Progress {
        /// Index of the run, from 0.
        index: usize,
        /// Number of this guest's runs.
        count: usize,
        /// Name of the run for people, such as `m1 under writer`.
        text: String,
    },
    /// A figure of a run.
    Row(Row),
    /// The guest has failed; the rows before are not a result.
    Failed {
        /// A sentence that says why.
        reason: String,
    },
    /// All runs have ended.
    Done {
        /// Number of rows that were sent, so that a lost line is detected.
        rows: usize,
    },
}
