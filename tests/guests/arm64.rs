//! Guests of the other architecture: the same experiments and trials on arm64, booted on whatever
//! machine this is. `make test` builds the guests' programs before.

use crate::experiments::each_runs;
use crate::harness::{Busy, CHECKOUT, keep, program, succeeds};
use crate::rows::Rows;
use crate::torture::{DETECTED, ONCE, RACES, RACES_ONCE, STRESS_ROUNDS};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const ARM64: [&str; 2] = ["--arch", "arm64"];

/// `frontrow-lab` with the programs of arm64 guests beside it, where it looks for them.
struct Lab(TempDir);

impl Lab {
    fn new() -> Lab {
        let own = Path::new(env!("CARGO_BIN_EXE_frontrow-lab"));
        let guests = match cfg!(target_arch = "aarch64") {
            true => own.parent().unwrap().to_owned(),
            false => Path::new(CHECKOUT).join("target/aarch64-unknown-linux-gnu/debug"),
        };
        let lab = Lab(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        fs::hard_link(own, lab.path()).unwrap();
        let built = guests.join("frontrow-guest");
        assert!(built.is_file(), "build it first: make arm64-guests");
        fs::hard_link(built, lab.0.path().join("frontrow-guest-arm64")).unwrap();
        lab
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("frontrow-lab")
    }

    /// What it said, having succeeded.
    #[track_caller]
    fn says(&self, arguments: &[&str]) -> String {
        succeeds(program(&self.path(), arguments).args(ARM64)).stderr
    }

    fn result(&self, out: &Path) -> Vec<u8> {
        let out_text = out.to_str().unwrap();
        self.says(&["run", "smoke", "--seeds", "7", "--out", out_text]);
        fs::read(out.join("result.json")).unwrap()
    }

    #[track_caller]
    fn withstands(&self, kernel: &str, options: &[&str], trials: &[&str]) {
        let torture = ["torture", "--kernel", kernel];
        let said = self.says(&[&torture, keep(), options, trials].concat());
        let done = said.lines().filter(|it| it.contains("-arm64")).count();
        assert_eq!(done, trials.len(), "a line for each trial: {said}");
    }
}

#[test]
fn the_scheduler_serves_who_waits_on_arm64_and_the_same_seed_gives_the_same_bytes() {
    let (lab, dir) = (Lab::new(), tempfile::tempdir().unwrap());
    let first = lab.result(&dir.path().join("first"));
    let busy = Busy::new();
    let beside_load = lab.result(&dir.path().join("second"));
    drop(busy);
    assert!(first == beside_load, "the results differ");

    let result: Value = serde_json::from_slice(&first).unwrap();
    let kernel = result["kernel"].as_str().unwrap();
    assert!(kernel.ends_with("-arm64"), "{kernel}");
    let rows = Rows::of(&result);
    let [stock, own] = ["mq-deadline", "frontrow"].map(|policy| {
        let metric = ("metric", "fsync_mean_ms");
        rows.value(&[("policy", policy), ("load", "writer"), metric])
    });
    assert!(
        own < stock / 4.0,
        "{own} ms, and {stock} ms under mq-deadline"
    );
}

#[test]
#[ignore = "the same kernel with pages of 16 KB and the newest with 4 KB are in make test; make stress-guests"]
fn each_wait_is_known_on_arm64() {
    Lab::new().withstands("6.12", &[], &DETECTED);
}

#[test]
fn each_wait_is_known_on_the_newest_arm64() {
    Lab::new().withstands("newest", &[], &DETECTED);
}

#[test]
fn each_wait_is_known_with_pages_of_16_kb() {
    Lab::new().withstands("16k", &[], &DETECTED);
}

#[test]
#[ignore = "minutes for each kernel: make stress-guests"]
fn each_class_has_its_turn_and_iopro_links_each_page_on_arm64() {
    let lab = Lab::new();
    for kernel in ["6.12", "newest", "16k"] {
        lab.withstands(kernel, &[], &ONCE);
    }
}

#[test]
#[ignore = "minutes for each kernel: make stress-guests"]
fn data_are_right_and_the_kernel_silent_whatever_changes_on_arm64() {
    let lab = Lab::new();
    for kernel in ["6.12", "newest", "16k"] {
        lab.withstands(kernel, &STRESS_ROUNDS, &[&RACES[..], &RACES_ONCE].concat());
    }
}

#[test]
#[ignore = "eighteen guests for each kernel: make stress-guests"]
fn every_experiment_runs_on_arm64() {
    let lab = Lab::new();
    for kernel in ["6.12", "newest"] {
        each_runs(&lab.path(), &[&ARM64[..], &["--kernel", kernel]].concat());
    }
}
