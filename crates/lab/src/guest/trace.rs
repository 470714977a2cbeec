//! A phone's block trace on the bare device, by `frontrow replay` as a user calls it: the threads
//! in front alone, or beside what the others did, each in a cgroup of its own where the policy
//! has some.

use super::held::Held;
use super::{Outcome, filesystem, restart_policy, row, write};
use crate::image::TRACE_PATH;
use record::summary::IDLE;
use record::{GuestSpec, Row, Run, TracePart};
use replay::{OnFile, Times};
use serde::Deserialize;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use workload::Measurement;

/// The load that is the rest of the trace.
const BEHIND: &str = "behind";

/// What `frontrow replay --front … --json` says.
#[derive(Deserialize)]
struct Said {
    front: OnFile,
    behind: Option<OnFile>,
}

pub fn one_run(spec: &GuestSpec, part: &TracePart, run: &Run) -> Outcome<Vec<Row>> {
    let alone = match (run.workload.as_str(), run.load.as_str()) {
        ("trace", IDLE) => true,
        ("trace", BEHIND) => false,
        _ => return Err(format!("beside a trace there is only the load {BEHIND}")),
    };
    let device = PathBuf::from(format!("/dev/{}", spec.device));
    write("/proc/sys/vm/drop_caches", "3")?;
    filesystem::renew(spec, &device)?;
    restart_policy(spec)?;
    let held = Held::of_policy(spec, 1)?;
    let said = replay(part, alone, &device, held.as_ref());
    if let Some(held) = held {
        held.release()?;
    }
    let said = said?;
    let mut figures = of_ground("front", &said.front);
    figures.extend(said.behind.iter().flat_map(|it| of_ground("behind", it)));
    let rows = figures.into_iter().map(|it| row(spec, run, it));
    Ok(rows.collect())
}

fn replay(part: &TracePart, alone: bool, device: &Path, held: Option<&Held>) -> Outcome<Said> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("frontrow").args(["replay", TRACE_PATH]);
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
    if let Some(held) = held {
        command.arg("--front-cgroup").arg(held.front());
    }
    if let (Some(behind), false) = (held.and_then(|it| it.behind().first()), alone) {
        command.arg("--behind-cgroup").arg(behind);
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("it cannot start frontrow replay: {error}"))?;
    match output.status.success() {
        true => serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("what frontrow replay says is damaged: {error}")),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn of_ground(ground: &str, result: &OnFile) -> Vec<Measurement> {
    let mut figures = vec![milliseconds(
        format!("{ground}_elapsed_ms"),
        result.elapsed_ns as f64,
    )];
    for (kind, times) in result.times.iter() {
        figures.extend(of_kind(&format!("{ground}_{kind}"), times));
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
