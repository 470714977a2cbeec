//! The command that repeats a result of the lab.

use crate::ResultFile;
use crate::summary::Summary;

/// Name of the experiment in results of `frontrow bench`.
pub const ON_ONES_OWN: &str = "bench";

/// The command that repeats the result, such as `frontrow-lab run qasio --kernel 6.12 --device emmc
/// …`. Options whose default may change later are spelled out. `None` for a result of a user's own
/// device, which cannot be repeated.
pub fn reproduce(result: &ResultFile) -> Option<String> {
    if result.experiment == ON_ONES_OWN {
        return None;
    }
    let summary = Summary::of(result);
    let mut words = vec![
        format!("frontrow-lab run {}", result.experiment),
        format!("--kernel {}", series(&result.kernel)),
    ];
    words.extend(other_arch(&result.kernel));
    words.extend([
        format!("--device {}", result.device),
        format!("--policy {}", summary.policies.join(",")),
    ]);
    words.extend(runs(&summary));
    words.push(format!("--scale {}", result.scale));
    if result.inputs.items.contains_key("trace_sha256") {
        words.push("--trace FILE".to_owned());
    }
    Some(words.join(" "))
}

/// The command that measures the same again on a user's own device.
pub fn measure_again(result: &ResultFile) -> String {
    let mut words = vec!["frontrow bench DIR".to_owned()];
    words.extend(runs(&Summary::of(result)));
    words.push(format!("--scale {}", result.scale));
    words.join(" ")
}

/// Options for what ran, and for which seeds.
fn runs(summary: &Summary) -> Vec<String> {
    let mut words = vec![
        format!("--workload {}", distinct(summary, |(workload, _)| workload)),
        format!("--load {}", distinct(summary, |(_, load)| load)),
    ];
    if let [first, .., last] = summary.seeds.as_slice() {
        words.push(format!("--seeds {first}..{last}"));
    } else if let [only] = summary.seeds.as_slice() {
        words.push(format!("--seeds {only}..{only}"));
    }
    words
}

/// Distinct names of workloads or loads, in the order of measurement.
fn distinct<'a>(summary: &'a Summary, name: fn((&'a str, &'a str)) -> &'a str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for situation in summary.situations() {
        if !names.contains(&name(situation)) {
            names.push(name(situation));
        }
    }
    names.join(",")
}

/// The option for a kernel release of another architecture than x86-64:
/// `6.12.117+deb12-cloud-arm64` → `--arch arm64`.
fn other_arch(release: &str) -> Option<String> {
    let mut others = sys::arch::ALL.iter().filter(|it| **it != sys::arch::X86_64);
    let arch = others.find(|it| release.split('-').any(|part| part == it.debian))?;
    Some(format!("--arch {}", arch.name))
}

/// Series of a kernel release: `6.12.117+deb12-cloud-amd64` → `6.12`.
fn series(release: &str) -> &str {
    match release.match_indices('.').nth(1) {
        Some((end, _)) => &release[..end],
        None => release,
    }
}
