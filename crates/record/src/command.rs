//! The command that makes a result again.

use crate::summary::Summary;
use crate::{ResultFile, Scale};

/// `frontrow lab run qasio --kernel 6.12 --device emmc …`, with everything
/// spelled out that has a default.
pub fn reproduce(result: &ResultFile) -> String {
    let summary = Summary::of(result);
    let mut words = vec![
        format!("frontrow lab run {}", result.experiment),
        format!("--kernel {}", series(&result.kernel)),
        format!("--device {}", result.device),
        format!("--policy {}", summary.policies.join(",")),
    ];
    if let [first, .., last] = summary.seeds.as_slice() {
        words.push(format!("--seeds {first}..{last}"));
    } else if let [only] = summary.seeds.as_slice() {
        words.push(format!("--seeds {only}..{only}"));
    }
    if result.scale != Scale::Demo {
        words.push(format!("--scale {}", result.scale));
    }
    words.join(" ")
}

/// `6.12.117+deb12-cloud-amd64` → `6.12`.
fn series(release: &str) -> &str {
    match release.match_indices('.').nth(1) {
        Some((end, _)) => &release[..end],
        None => release,
    }
}
