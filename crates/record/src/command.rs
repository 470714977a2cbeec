//! The command that makes a lab's result again.

use crate::ResultFile;
use crate::summary::Summary;

/// The experiment's name in the results of `frontrow bench`.
pub const ON_ONES_OWN: &str = "bench";

/// `frontrow lab run qasio --kernel 6.12 --device emmc …`, with everything
/// spelled out that a later version could have another default for.
/// A result from a device of the user's own cannot be had again: `None`.
pub fn reproduce(result: &ResultFile) -> Option<String> {
    if result.experiment == ON_ONES_OWN {
        return None;
    }
    let summary = Summary::of(result);
    let mut words = vec![
        format!("frontrow lab run {}", result.experiment),
        format!("--kernel {}", series(&result.kernel)),
    ];
    words.extend(other_arch(&result.kernel));
    words.extend([
        format!("--device {}", result.device),
        format!("--policy {}", summary.policies.join(",")),
    ]);
    words.push(format!(
        "--workload {}",
        distinct(&summary, |(workload, _)| workload)
    ));
    words.push(format!("--load {}", distinct(&summary, |(_, load)| load)));
    if let [first, .., last] = summary.seeds.as_slice() {
        words.push(format!("--seeds {first}..{last}"));
    } else if let [only] = summary.seeds.as_slice() {
        words.push(format!("--seeds {only}..{only}"));
    }
    words.push(format!("--scale {}", result.scale));
    if result.inputs.items.contains_key("trace_sha256") {
        words.push("--trace FILE".to_owned());
    }
    Some(words.join(" "))
}

/// Names in the order measured, each once.
fn distinct<'a>(summary: &'a Summary, name: fn((&'a str, &'a str)) -> &'a str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for situation in summary.situations() {
        if !names.contains(&name(situation)) {
            names.push(name(situation));
        }
    }
    names.join(",")
}

/// `6.12.117+deb12-cloud-arm64` → `--arch arm64`.
fn other_arch(release: &str) -> Option<String> {
    let mut others = arch::ALL.iter().filter(|it| **it != arch::X86_64);
    let arch = others.find(|it| release.split('-').any(|part| part == it.debian))?;
    Some(format!("--arch {}", arch.name))
}

/// `6.12.117+deb12-cloud-amd64` → `6.12`.
fn series(release: &str) -> &str {
    match release.match_indices('.').nth(1) {
        Some((end, _)) => &release[..end],
        None => release,
    }
}
