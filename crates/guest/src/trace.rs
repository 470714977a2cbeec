//! A phone's block trace on the bare device, played by `frontrow-lab replay`: the foreground threads
//! alone, or beside all other threads, each part in a cgroup of its own if the policy has cgroups.

use super::active_policy::ActivePolicy;
use super::{Outcome, TRACE_PATH, drop_caches, filesystem, restart_policy, row};
use record::{GuestSpec, Row, Run, TracePart};
use replay::{OnFile, Times};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use workload::Measurement;

/// The lab's program.
const LAB_PATH: &str = "/bin/frontrow-lab";

/// Output of `frontrow-lab replay --front … --json`.
#[derive(Deserialize)]
struct Report {
    #[serde(rename = "front")]
    foreground: OnFile,
    #[serde(rename = "behind")]
    background: Option<OnFile>,
}

pub fn one_run(spec: &GuestSpec, part: &TracePart, run: &Run) -> Outcome<Vec<Row>> {
    let alone = run.load.is_idle();
    if run.workload.name != "trace" || !alone && !run.load.is_rest_of_trace() {
        return Err("a trace runs alone or beside its own other threads (load behind)".to_owned());
    }
    let device = PathBuf::from(format!("/dev/{}", spec.device));
    drop_caches()?;
    filesystem::renew(spec, &device)?;
    restart_policy(spec)?;
    let active = ActivePolicy::of_policy(spec, 1)?;
    let report = replay(part, alone, &device, active.as_ref());
    if let Some(active) = active {
        active.release()?;
    }
    let report = report?;
    let mut figures = of_role("front", &report.foreground);
    figures.extend(
        report
            .background
            .iter()
            .flat_map(|it| of_role("behind", it)),
    );
    let rows = figures.into_iter().map(|it| row(spec, run, it));
    Ok(rows.collect())
}

fn replay(
    part: &TracePart,
    alone: bool,
    device: &Path,
    active: Option<&ActivePolicy>,
) -> Outcome<Report> {
    let mut command = Command::new(LAB_PATH);
    command.args(["replay", TRACE_PATH]);
    command.arg("--onto").arg(device);
    command.args(["--overwrite", "--prepare", "--pace", "mixed", "--json"]);
    for (option, value) in [
        ("--from", part.from_s),
        ("--length", part.length_s),
        ("--speed", part.speed),
    ] {
        command.arg(option).arg(value.to_string());
    }
    command.arg("--front").arg(part.front.join(","));
    if alone {
        command.arg("--alone");
    }
    if let Some(active) = active {
        command.arg("--front-cgroup").arg(active.foreground());
    }
    if let (Some(background), false) = (active.and_then(|it| it.background().first()), alone) {
        command.arg("--behind-cgroup").arg(background);
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("it cannot start frontrow-lab replay: {error}"))?;
    match output.status.success() {
        true => serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("the output of frontrow-lab replay is damaged: {error}")),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn of_role(role: &str, result: &OnFile) -> Vec<Measurement> {
    let mut figures = vec![milliseconds(
        format!("{role}_elapsed_ms"),
        result.elapsed_ns as f64,
    )];
    for (kind, times) in result.times.iter() {
        figures.extend(of_kind(&format!("{role}_{kind}"), times));
    }
    figures
}

fn of_kind(name: &str, times: &Times) -> [Measurement; 4] {
    [
        milliseconds(format!("{name}_mean_ms"), times.mean_ns),
        milliseconds(format!("{name}_p99_ms"), times.p99_ns as f64),
        milliseconds(format!("{name}_max_ms"), times.max_ns as f64),
        Measurement::new(format!("{name}_operations"), "1", times.count as f64),
    ]
}

fn milliseconds(metric: String, value_ns: f64) -> Measurement {
    Measurement::milliseconds(metric, value_ns / 1e6)
}
