//! All trials on a kernel that checks itself, and ten thousand power cuts. `make stress` runs
//! this, `make test` does not: the kernel has to be built, once, and is slow.

use std::process::{Command, Stdio};

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn a_debug_kernel_finds_nothing_wrong_in_any_trial() {
    // It may say what it does as it goes: that takes long enough.
    let status = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["lab", "torture", "--kernel", "debug"])
        .current_dir(CHECKOUT)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "the trial named last failed: {status}");
}

#[test]
fn power_cuts_at_ten_thousand_points_lose_nothing() {
    let status = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["lab", "powercut", "--days", "3", "--points", "10000"])
        .current_dir(CHECKOUT)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "a cut lost something: {status}");
}
