//! What a compromised frontrowd could do is what its unit leaves it.

use std::fs;
use std::process::Command;

const UNIT: &str = include_str!("../../../packaging/frontrowd.service");

/// Ten times the exposure that `systemd-analyze security` tells: below 1.0.
const MOST: &str = "--threshold=9";

/// Its output, and whether it is content with the unit.
fn analyze(unit: &str) -> (bool, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frontrowd.service");
    fs::write(&path, unit.replace("@BINDIR@", "/usr/bin")).unwrap();
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", MOST])
        .arg(&path)
        .output()
        .expect("this test needs systemd-analyze (Debian: apt-get install systemd)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("Overall exposure level"),
        "this test needs systemd 250 or later, which analyzes units offline: {said}"
    );
    (output.status.success(), text)
}

#[test]
fn a_compromised_daemon_is_exposed_to_little() {
    let (is_good, text) = analyze(UNIT);
    assert!(is_good, "{text}");
    // And the measure measures: as root, with /proc/sys to write, it is not content.
    let as_root = UNIT.replace("User=frontrow\n", "");
    assert_ne!(as_root, UNIT);
    assert!(!analyze(&as_root).0);
}

#[test]
fn what_one_user_can_have_it_do_is_bounded_for_all_others() {
    let lines: Vec<&str> = UNIT.lines().collect();
    for bound in ["CPUQuota=50%", "MemoryMax=64M"] {
        assert!(lines.contains(&bound), "docs/security.md tells of {bound}");
    }
}
