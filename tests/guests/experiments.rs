//! Every experiment, cut down to what shows that it runs: its first workload under its last load, by
//! its last policy, at a hundredth of the papers' sizes.

use crate::harness::{output, program, stderr, succeeds};
use serde_json::Value;
use std::path::Path;

/// Experiments that need a file from elsewhere or Java; the tests of `fasttrack_figures` and `lab`
/// have them.
const ELSEWHERE: [&str; 2] = ["traces", "programs"];

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("idle")
}

/// Each runs by this `frontrow-lab` with these options.
#[track_caller]
pub fn each_runs(lab: &Path, options: &[&str]) {
    let faults = faults(lab, options);
    assert!(faults.is_empty(), "{options:?}: {}", faults.join("\n"));
}

/// What went wrong in which experiment.
fn faults(lab: &Path, options: &[&str]) -> Vec<String> {
    let experiments = succeeds(&mut program(lab, &["list", "--json"])).json();
    let mut faults = Vec::new();
    for experiment in experiments.as_array().unwrap() {
        let name = text(experiment, "name");
        if ELSEWHERE.contains(&name) {
            continue;
        }
        let runs = experiment["runs"].as_array().unwrap();
        let workload = text(&runs[0], "workload");
        let mut of_workload = runs.iter().filter(|it| text(it, "workload") == workload);
        let load = text(of_workload.next_back().unwrap(), "load");
        let policies = experiment["policies"].as_array().unwrap();
        let policy = policies.last().unwrap().as_str().unwrap();
        let cut_down = ["run", name, "--seeds", "1", "--scale", "0.01", "--json"];
        let mut run = program(lab, &cut_down);
        run.args(["--workload", workload, "--load", load, "--policy", policy]);
        let output = output(run.args(options));
        let result: Result<Value, _> = serde_json::from_slice(&output.stdout);
        match result {
            Ok(result) if output.status.success() => {
                let rows = result["rows"].as_array().unwrap();
                let of_workload = rows.iter().filter(|it| it["workload"] == workload);
                if of_workload.count() == 0 {
                    faults.push(format!("{name}: no figure of {workload}"));
                }
            }
            _ => faults.push(format!("{name}: {}", stderr(&output))),
        }
    }
    faults
}

fn runs_on(kernel: &str) {
    let lab = Path::new(env!("CARGO_BIN_EXE_frontrow-lab"));
    each_runs(lab, &["--kernel", kernel]);
}

#[test]
#[ignore = "eighteen guests for each kernel: make stress-guests"]
fn every_experiment_runs_on_6_1() {
    runs_on("6.1");
}

#[test]
#[ignore = "eighteen guests for each kernel: make stress-guests"]
fn every_experiment_runs_on_6_12() {
    runs_on("6.12");
}

#[test]
#[ignore = "eighteen guests for each kernel: make stress-guests"]
fn every_experiment_runs_on_the_newest() {
    runs_on("newest");
}
