//! Names of workloads and loads in words.

use crate::{Load, ResultFile, Workload};

/// A workload in words, for readers without the paper; None for an unknown one.
pub fn workload(name: &str) -> Option<&'static str> {
    Workload::find(name)?.words
}

/// A load in words.
pub fn load(name: &str) -> String {
    match name.parse::<Load>() {
        Ok(load) => load.words(),
        Err(_) => format!("under the load {name}"),
    }
}

/// What a policy is called where a person compares it with others.
pub fn policy(name: &str) -> &str {
    match name {
        "fastt" => "frontrow, the app in front",
        other => other,
    }
}

/// A workload and its load, such as `m1: create a file …, while a big file is being written`.
pub fn situation(workload_name: &str, load_name: &str) -> String {
    match workload(workload_name) {
        Some(words) => format!("{workload_name}: {words}, {}", load(load_name)),
        None => format!("{workload_name} {}", load(load_name)),
    }
}

/// What a result is about, where no sentence says it.
pub fn experiment(result: &ResultFile) -> String {
    let words = match result.experiment.as_str() {
        "calibrate" => "Throughput by the size of requests",
        "fragments" => "A 512 KB file read cold, by its fragments",
        "storage" => "The storage by the size of requests",
        "throughput" => "Throughput with nothing else running, by scheduler",
        "overhead" => "What a request costs, by scheduler",
        "ablation" => "What each promotion does alone",
        "programs" => "How Python, SQLite and Java start",
        "packages" => "How Flatpaks, Snaps and overlayfs apps start",
        "iopro" => "What a recording costs the requests",
        crate::command::ON_ONES_OWN => "How long file operations take",
        other => return format!("{other} on {}", result.device),
    };
    format!("{words}, on {}", result.device)
}

/// A short form, such as `m1 under writer`; `m1` when idle.
pub fn short(workload: &str, load: &str) -> String {
    match load {
        "idle" => workload.to_owned(),
        load => format!("{workload} under {load}"),
    }
}
