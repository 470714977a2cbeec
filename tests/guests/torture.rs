//! The kernel modules under everything that changes, fails or goes away around
//! them, and what iopro tells of it, on the stock kernels of Debian 12
//! and on the newest there is. What took longer than
//! a trial should is found by the guest's own time limit.

use crate::harness::{code, keep, lab, output, stderr, succeeds};

/// What differs between kernels and architectures: each wait is detected in each of both ways, also
/// above a stack of disks, and iopro names it.
pub const DETECTED: [&str; 4] = ["dependencies", "tracepoints", "indirect", "waits"];

/// Exact answers that are the same wherever waits are detected. `make test` asks for them on one kernel.
pub const ONCE: [&str; 10] = [
    "unpromoted",
    "idle-class",
    "inheritance",
    "share",
    "order",
    "launch",
    "powercut",
    "links",
    "untyped",
    "in-turn",
];

/// Trials for races at the block layer's interface, which differs between kernels: two CPUs, and time
/// as the host's.
pub const RACES: [&str; 6] = [
    "change", "unload", "removal", "queues", "requeue", "stacked",
];

/// The same of what does not depend on the kernel. `make test` asks for it on one.
///
/// `faults` has something to do on a debug kernel only.
pub const RACES_ONCE: [&str; 7] = [
    "fio",
    "pressure",
    "defrag",
    "lists",
    "zram",
    "leak",
    "attributes",
];

/// Rounds of races in `make stress`.
pub const STRESS_ROUNDS: [&str; 2] = ["--rounds", "4"];

fn withstands(kernel: &str, options: &[&str], trials: &[&str]) {
    let torture = ["torture", "--kernel", kernel];
    let arguments = [&torture, keep(), options].concat();
    let said = succeeds(lab(&arguments).args(trials)).stderr;
    // A remark of a trial follows its name.
    let begins = |line: &&str| line.matches(": ").count() == 1;
    let done = said.lines().filter(begins).count();
    assert_eq!(done, trials.len(), "a line for each trial: {said}");
}

#[test]
fn each_wait_is_known_on_6_12() {
    withstands("6.12", &[], &DETECTED);
}

#[test]
fn each_wait_is_known_on_6_1() {
    withstands("6.1", &[], &DETECTED);
}

#[test]
fn each_wait_is_known_on_the_newest() {
    withstands("newest", &[], &DETECTED);
}

/// What Debian's other kernels have built in is modules there, as on most machines.
#[test]
fn each_wait_is_known_on_a_desktops_kernel() {
    withstands("desktop", &[], &DETECTED);
}

#[test]
fn each_class_has_its_turn_and_iopro_links_each_page() {
    withstands("6.12", &[], &ONCE);
}

#[test]
#[ignore = "the same on three more kernels: make stress-guests"]
fn each_class_has_its_turn_and_iopro_links_each_page_on_other_kernels() {
    for kernel in ["6.1", "newest", "desktop"] {
        // What is built in elsewhere is no matter to `powercut`.
        let trials = ONCE.into_iter();
        let trials = trials.filter(|it| kernel != "desktop" || *it != "powercut");
        withstands(kernel, &[], &trials.collect::<Vec<_>>());
    }
}

#[test]
fn data_are_right_and_the_kernel_silent_whatever_changes_on_6_12() {
    withstands("6.12", &[], &[&RACES[..], &RACES_ONCE].concat());
}

#[test]
fn data_are_right_and_the_kernel_silent_whatever_changes_on_6_1() {
    withstands("6.1", &[], &RACES);
}

#[test]
fn data_are_right_and_the_kernel_silent_whatever_changes_on_the_newest() {
    withstands("newest", &[], &RACES);
}

#[test]
#[ignore = "minutes for each kernel: make stress-guests"]
fn data_are_right_and_the_kernel_silent_whatever_changes_for_long() {
    for kernel in ["6.12", "6.1", "newest"] {
        withstands(kernel, &STRESS_ROUNDS, &[&RACES[..], &RACES_ONCE].concat());
    }
}

/// ext4 is a module there, which comes and goes.
#[test]
#[ignore = "80 CPU seconds: make stress-guests"]
fn a_file_system_that_comes_late_is_probed_as_well() {
    withstands("desktop", &[], &["late"]);
}

#[test]
#[ignore = "goes by the host's clock for minutes: make stress-guests"]
fn a_disk_of_qemus_goes_away_and_holds_what_was_written_whatever_the_scheduler() {
    for kernel in ["6.12", "newest"] {
        withstands(kernel, &[], &["disk"]);
    }
}

#[test]
fn an_unknown_trial_is_refused_with_the_names_there_are() {
    let refused = output(&mut lab(&["torture", "gravity"]));
    let said = stderr(&refused);
    assert_eq!(code(&refused), 2, "{said}");
    assert!(
        said.contains("dependencies, tracepoints, unpromoted, inheritance"),
        "{said}"
    );
}
