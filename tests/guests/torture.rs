//! The kernel modules under everything that changes, fails or goes away around
//! them, and what iopro tells of it, on the stock kernels of Debian 12
//! and on the newest there is. What took longer than
//! a trial should is found by the guest's own time limit.

use crate::harness::{code, lab, output, stderr, succeeds};

/// Trials with exact answers: one CPU, the same run every time.
pub const EXACT: [&str; 9] = [
    "dependencies",
    "tracepoints",
    "idle-class",
    "inheritance",
    "indirect",
    "share",
    "order",
    "launch",
    "powercut",
];

/// The same, about what iopro tells.
pub const TOLD: [&str; 3] = ["waits", "links", "untyped"];

/// Trials for races: two CPUs, and time as the host's.
///
/// `faults` has something to do on a debug kernel only.
pub const RACES: [&str; 14] = [
    "fio",
    "change",
    "late",
    "unload",
    "pressure",
    "removal",
    "defrag",
    "attributes",
    "lists",
    "queues",
    "requeue",
    "stacked",
    "zram",
    "leak",
];

fn withstands(kernel: &str, trials: &[&str]) {
    let said = succeeds(lab(&["torture", "--kernel", kernel]).args(trials)).stderr;
    // A remark of a trial follows its name.
    let begins = |line: &&str| line.matches(": ").count() == 1;
    let done = said.lines().filter(begins).count();
    assert_eq!(done, trials.len(), "a line for each trial: {said}");
}

#[test]
fn each_wait_is_known_and_each_class_has_its_turn_on_6_12() {
    withstands("6.12", &EXACT);
}

#[test]
fn each_wait_is_known_and_each_class_has_its_turn_on_6_1() {
    withstands("6.1", &EXACT);
}

#[test]
fn each_wait_is_known_and_each_class_has_its_turn_on_the_newest() {
    withstands("newest", &EXACT);
}

/// What Debian's other kernels have built in is modules there, as on most machines. That is no matter
/// to `powercut`.
#[test]
fn each_wait_is_known_and_each_class_has_its_turn_on_a_desktops_kernel() {
    let trials = EXACT.into_iter().filter(|it| *it != "powercut");
    withstands("desktop", &trials.collect::<Vec<_>>());
}

#[test]
fn iopro_names_each_wait_and_links_each_page_on_a_desktops_kernel() {
    withstands("desktop", &TOLD);
}

#[test]
fn iopro_names_each_wait_and_links_each_page_on_6_12() {
    withstands("6.12", &TOLD);
}

#[test]
fn iopro_names_each_wait_and_links_each_page_on_6_1() {
    withstands("6.1", &TOLD);
}

#[test]
fn iopro_names_each_wait_and_links_each_page_on_the_newest() {
    withstands("newest", &TOLD);
}

#[test]
fn data_are_right_and_the_kernel_silent_whatever_changes_on_6_12() {
    withstands("6.12", &RACES);
}

#[test]
fn data_are_right_and_the_kernel_silent_whatever_changes_on_6_1() {
    withstands("6.1", &RACES);
}

#[test]
fn data_are_right_and_the_kernel_silent_whatever_changes_on_the_newest() {
    withstands("newest", &RACES);
}

#[test]
fn a_disk_of_qemus_goes_away_and_holds_what_was_written_whatever_the_scheduler_on_6_12() {
    withstands("6.12", &["disk"]);
}

#[test]
fn a_disk_of_qemus_goes_away_and_holds_what_was_written_whatever_the_scheduler_on_the_newest() {
    withstands("newest", &["disk"]);
}

#[test]
fn an_unknown_trial_is_refused_with_the_names_there_are() {
    let refused = output(&mut lab(&["torture", "gravity"]));
    let said = stderr(&refused);
    assert_eq!(code(&refused), 2, "{said}");
    assert!(
        said.contains("dependencies, tracepoints, inheritance, order"),
        "{said}"
    );
}
