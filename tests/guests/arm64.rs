//! Guests of the other architecture: the same experiments and trials on arm64, booted on whatever
//! machine this is. `make stress` builds the guests' program before.

use crate::harness::{Busy, CHECKOUT, program, succeeds};
use crate::rows::Rows;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The lab with the programs of arm64 guests beside it, where it looks for them.
fn with_guests_programs() -> PathBuf {
    let own = Path::new(env!("CARGO_BIN_EXE_frontrow-lab"));
    if cfg!(target_arch = "aarch64") {
        return own.to_owned();
    }
    let guests = Path::new(CHECKOUT).join("target/aarch64-unknown-linux-gnu/release");
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::hard_link(own, dir.path().join("frontrow-lab")).unwrap();
    for name in ["frontrow", "frontrow-guest", "frontrow-lab"] {
        let built = guests.join(name);
        assert!(built.is_file(), "build it first: make ARCH=arm64");
        fs::hard_link(built, dir.path().join(format!("{name}-arm64"))).unwrap();
    }
    dir.keep().join("frontrow-lab")
}

fn stderr_of(lab: &Path, arguments: &[&str]) -> String {
    succeeds(program(lab, arguments).args(["--arch", "arm64"])).stderr
}

fn result(lab: &Path, out: &Path) -> Vec<u8> {
    let out_text = out.to_str().unwrap();
    let arguments = ["run", "smoke", "--seeds", "7", "--out", out_text];
    stderr_of(lab, &arguments);
    fs::read(out.join("result.json")).unwrap()
}

#[test]
#[ignore = "takes the standard library of another architecture: make stress"]
fn the_scheduler_serves_who_waits_on_arm64_and_the_same_seed_gives_the_same_bytes() {
    let (lab, dir) = (with_guests_programs(), tempfile::tempdir().unwrap());
    let first = result(&lab, &dir.path().join("first"));
    let busy = Busy::new();
    let beside_load = result(&lab, &dir.path().join("second"));
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
    fs::remove_dir_all(lab.parent().unwrap()).unwrap();
}

#[test]
#[ignore = "takes the standard library of another architecture: make stress"]
fn each_wait_is_known_on_arm64_and_what_iopro_links_is_what_was_written() {
    let lab = with_guests_programs();
    let said = stderr_of(&lab, &["torture", "dependencies", "links"]);
    assert_eq!(
        said.lines()
            .filter(|line| line.contains("-arm64: "))
            .count(),
        2,
        "{said}"
    );
    fs::remove_dir_all(lab.parent().unwrap()).unwrap();
}
