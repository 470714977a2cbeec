//! Guests of the other architecture: the same experiments and trials on arm64, booted on whatever
//! machine this is. `make stress` builds the guests' program before.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The lab with the programs of arm64 guests beside it, where it looks for them.
fn program() -> PathBuf {
    let own = Path::new(env!("CARGO_BIN_EXE_frontrow-lab"));
    if cfg!(target_arch = "aarch64") {
        return own.to_owned();
    }
    let guests = Path::new(CHECKOUT).join("target/aarch64-unknown-linux-gnu/release");
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::hard_link(own, dir.path().join("frontrow-lab")).unwrap();
    for name in ["frontrow", "frontrow-lab"] {
        let built = guests.join(name);
        assert!(built.is_file(), "build it first: make ARCH=arm64");
        fs::hard_link(built, dir.path().join(format!("{name}-arm64"))).unwrap();
    }
    dir.keep().join("frontrow-lab")
}

fn lab(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .args(["--arch", "arm64"])
        .current_dir(CHECKOUT)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn result(program: &Path, out: &Path) -> Vec<u8> {
    let out_text = out.to_str().unwrap();
    let arguments = ["run", "smoke", "--seeds", "7", "--out", out_text];
    lab(program, &arguments);
    fs::read(out.join("result.json")).unwrap()
}

/// How long an fsync takes while something else writes, in ms.
fn fsync_ms(result: &Value, policy: &str) -> f64 {
    let rows = result["rows"].as_array().unwrap().iter();
    let mut rows = rows.filter(|row| row["policy"] == policy && row["load"] == "writer");
    let row = rows.find(|row| row["metric"] == "fsync_mean_ms").unwrap();
    row["value"].as_f64().unwrap()
}

#[test]
#[ignore = "takes the standard library of another architecture: make stress"]
fn the_scheduler_serves_who_waits_on_arm64_and_the_same_seed_gives_the_same_bytes() {
    let (program, dir) = (program(), tempfile::tempdir().unwrap());
    let first = result(&program, &dir.path().join("first"));
    let stop: &AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    for _ in 0..4 {
        thread::spawn(|| while !stop.load(Ordering::Relaxed) {});
    }
    let beside_load = result(&program, &dir.path().join("second"));
    stop.store(true, Ordering::Relaxed);
    assert!(first == beside_load, "the results differ");

    let result: Value = serde_json::from_slice(&first).unwrap();
    let kernel = result["kernel"].as_str().unwrap();
    assert!(kernel.ends_with("-arm64"), "{kernel}");
    let (stock, own) = (
        fsync_ms(&result, "mq-deadline"),
        fsync_ms(&result, "frontrow"),
    );
    assert!(
        own < stock / 4.0,
        "{own} ms, and {stock} ms under mq-deadline"
    );
    fs::remove_dir_all(program.parent().unwrap()).unwrap();
}

#[test]
#[ignore = "takes the standard library of another architecture: make stress"]
fn each_wait_is_known_on_arm64_and_what_iopro_links_is_what_was_written() {
    let program = program();
    let said = lab(&program, &["torture", "dependencies", "links"]);
    assert_eq!(
        said.lines()
            .filter(|line| line.contains("-arm64: "))
            .count(),
        2,
        "{said}"
    );
    fs::remove_dir_all(program.parent().unwrap()).unwrap();
}
