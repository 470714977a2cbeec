//! All trials on a kernel that checks itself, those for races on one that looks for them, and ten thousand power cuts. `make stress` runs
//! this, `make test` does not: the kernel has to be built, once, and is slow.

use crate::harness::lab;

/// Some ten minutes of random writes to the attributes and random ioctls.
const FUZZ_ROUNDS: &str = "10";

fn withstands(kernel: &str, rounds: &str, trials: &[&str]) {
    // It may say what it does as it goes: that takes long enough.
    let mut torture = lab(&["torture", "--kernel", kernel, "--rounds", rounds]);
    let status = torture.args(trials).status().unwrap();
    assert!(status.success(), "the trial named last failed: {status}");
}

#[test]
#[ignore = "a debug kernel, or more than an hour: make stress-races"]
fn every_disk_of_qemus_holds_what_was_written_whatever_the_scheduler() {
    for kernel in ["6.12", "newest"] {
        withstands(kernel, "1", &["unplug", "drivers"]);
    }
}

/// Kernels for virtual machines have no drivers of sticks, cards and soldered disks, and no f2fs.
#[test]
#[ignore = "a debug kernel, or more than an hour: make stress-races"]
fn sticks_cards_and_what_is_above_a_disk_hold_it_too() {
    let trials = [
        "queued",
        "queued-soldered",
        "unplug",
        "drivers",
        "soldered",
        "file-systems",
        "above",
    ];
    withstands("desktop", "1", &trials);
}

#[test]
#[ignore = "a debug kernel, or more than an hour: make stress-races"]
fn a_debug_kernel_finds_nothing_wrong_in_any_trial() {
    withstands("debug", "1", &[]);
}

#[test]
#[ignore = "a debug kernel, or more than an hour: make stress-races"]
fn a_debug_kernel_finds_nothing_wrong_whatever_is_written_to_the_attributes() {
    withstands("debug", FUZZ_ROUNDS, &["attributes"]);
}

#[test]
#[ignore = "a debug kernel, or more than an hour: make stress-races"]
fn no_access_of_the_modules_races_with_another() {
    // Not `order`: no request is Boosted there (docs/develop/tests.md).
    let trials = [
        "dependencies",
        "share",
        "change",
        "pressure",
        "removal",
        "attributes",
        "lists",
        "unload",
    ];
    withstands("kcsan", "1", &trials);
}

#[test]
#[ignore = "a debug kernel, or more than an hour: make stress-races"]
fn power_cuts_at_ten_thousand_points_lose_nothing() {
    let mut cuts = lab(&["powercut", "--days", "3", "--points", "10000"]);
    let status = cuts.status().unwrap();
    assert!(status.success(), "a cut lost something: {status}");
}
