//! What commands print with `--json` is what `docs/schema.json` says.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What commands have printed that need root, a guest, a disk or an app of their own.
const SAMPLES: &str = include_str!("schema/samples.json");

const TRACE: &str = "fio version 3 iolog\n0 d write 0 65536\n10 d read 0 4096\n";

/// A device that is aged in a moment.
const SMALL_DEVICE: &str = r#"
name = "small"
title = "a small device"
[simflash]
capacity_mib = 128
spare_percent = 7
block_pages = 64
read_ns = 90000
program_ns = 1120000
erase_ns = 3000000
link_mb_s = 200
write_command_ns = 50000
[aged]
filled_percent = 80
overwritten_percent = 50
"#;

/// Runs a command of `frontrow`, or with `lab` before it of `frontrow-lab`.
fn frontrow(home: &Path, words: &[&str]) -> Output {
    let (program, arguments) = match words {
        ["lab", arguments @ ..] => (env!("CARGO_BIN_EXE_frontrow-lab"), arguments),
        arguments => (env!("CARGO_BIN_EXE_frontrow"), arguments),
    };
    Command::new(program)
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap()
}

/// Fails unless the command succeeds and prints what the schema says.
fn printed(home: &Path, command: &str, arguments: &[&str]) {
    let words = command.split(' ').chain(arguments.iter().copied());
    let words: Vec<&str> = words.chain(["--json"]).collect();
    let output = frontrow(home, &words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    crate::schema::check_text(command, &output.stdout);
}

/// Commands that have `--json`, by their man pages.
fn commands_with_json() -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path();
    for of in [&[][..], &["lab"]] {
        let output = frontrow(pages, &[of, &["man", pages.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{output:?}");
    }
    let mut commands = Vec::new();
    for entry in fs::read_dir(pages).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if fs::read_to_string(&path).unwrap().contains("\\-\\-json") {
            let words = name.replacen("frontrow-", "", 1).replace('-', " ");
            // The only command whose own name has a hyphen.
            commands.push(words.replace("hot cold", "hot-cold"));
        }
    }
    commands.sort();
    commands
}

#[test]
fn each_command_with_json_is_described_and_no_other() {
    let mut described = crate::schema::commands();
    described.retain(|name| !name.contains("--"));
    assert_eq!(described, commands_with_json());
}

/// The checks themselves.
#[test]
fn what_is_not_as_described_is_found() {
    let fault =
        |value: &str| crate::schema::fault("sched build", &serde_json::from_str(value).unwrap());
    assert_eq!(fault(r#"{"kernel": "6.12", "module": "/a.ko"}"#), None);
    for (value, wanted) in [
        (r#"{"kernel": "6.12"}"#, "has no module"),
        (
            r#"{"kernel": 6, "module": "/a.ko"}"#,
            "sched build.kernel is no",
        ),
        (
            r#"{"kernel": "", "module": "", "more": 1}"#,
            "has more, which is not described",
        ),
    ] {
        let found = fault(value).unwrap_or_default();
        assert!(found.contains(wanted), "{value}: {found}");
    }
}

#[test]
fn what_was_printed_elsewhere_is_as_described() {
    let samples: Value = serde_json::from_str(SAMPLES).unwrap();
    for (command, value) in samples.as_object().unwrap() {
        crate::schema::check(command, value);
    }
}

#[test]
fn results_and_experiments_are_as_described() {
    // A benchmark needs a disk, and /tmp may be in memory, as on Debian 13.
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = home.path();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/samples");
    fs::copy(samples.join("fasttrack.json"), home.join("result.json")).unwrap();
    let bench = samples.join("bench-before.json");
    let bench = bench.to_str().unwrap();
    printed(home, "lab list", &[]);
    printed(home, "lab show", &["fasttrack"]);
    printed(home, "lab show", &[home.to_str().unwrap()]);
    printed(home, "bench compare", &[bench, bench]);
    let run = [
        home.to_str().unwrap(),
        "--workload",
        "m1",
        "--load",
        "idle",
        "--scale",
        "0.01",
        "--seeds",
        "1",
    ];
    printed(home, "bench", &run);
}

#[test]
fn recordings_and_replays_are_as_described() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../iopro/tests/recordings");
    for kernel in ["6.1", "6.12"] {
        let recording = recordings.join(format!("{kernel}.iopro"));
        printed(home, "iopro report", &[recording.to_str().unwrap()]);
        printed(home, "top", &["--from", recording.to_str().unwrap()]);
    }
    let trace = home.join("trace");
    fs::write(&trace, TRACE).unwrap();
    printed(home, "lab replay", &[trace.to_str().unwrap()]);
    let onto = home.join("sandbox");
    let recording = recordings.join("6.12.iopro");
    let recording = recording.to_str().unwrap();
    printed(
        home,
        "lab replay",
        &[recording, "--onto", onto.to_str().unwrap()],
    );
}

#[test]
fn collections_are_as_described() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let profile = home.join("small.toml");
    fs::write(&profile, SMALL_DEVICE).unwrap();
    let device = profile.to_str().unwrap();
    let collect = [
        "--device",
        device,
        "--seeds",
        "1",
        "--seconds",
        "2",
        "--front-rows",
        "16",
    ];
    printed(home, "lab collect", &collect);
    let picture = home.join("picture.svg");
    let picture = picture.to_str().unwrap();
    let ahead = ["--device", device, "--minutes", "3", "--picture", picture];
    printed(home, "lab ahead", &ahead);
    let drawn = fs::read_to_string(picture).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains("polyline"));
    let trace = home.join("trace");
    fs::write(&trace, TRACE).unwrap();
    let hot_cold = ["--device", device, "--memory", "32", "--minutes", "2"];
    printed(home, "lab hot-cold", &hot_cold);
    let ahead = [trace.to_str().unwrap(), "--device", device];
    printed(home, "lab ahead", &ahead);
    let new = frontrow(home, &["lab", "collect", "--device", "usb-stick"]);
    assert_eq!(new.status.code(), Some(2), "{new:?}");
    let said = String::from_utf8_lossy(&new.stderr);
    assert!(
        said.contains("choose a device whose profile has [aged]"),
        "{said}"
    );
}

#[test]
fn layouts_and_ages_are_as_described() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { home.path().join(name) };
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let make = ["-q", "-F", &text("image"), "8M"];
    assert!(
        Command::new("mkfs.ext4")
            .args(make)
            .status()
            .unwrap()
            .success()
    );
    printed(
        home.path(),
        "snapshot save",
        &[&text("image"), &text("snapshot")],
    );
    printed(
        home.path(),
        "snapshot restore",
        &[&text("snapshot"), &text("again")],
    );
    let aged = [
        &text("aged"),
        "--size",
        "16",
        "--days",
        "2",
        "--sessions",
        "1",
    ];
    printed(home.path(), "lab age", &aged);
}

#[test]
fn what_is_installed_for_an_app_is_as_described() {
    let home = tempfile::tempdir().unwrap();
    let entry = home.path().join("some.desktop");
    let text = "[Desktop Entry]\nType=Application\nName=some\nExec=/bin/true\n";
    fs::write(&entry, text).unwrap();
    let entry = entry.to_str().unwrap();
    printed(home.path(), "launch install", &[entry]);
    printed(home.path(), "launch install", &[entry, "--remove"]);
}
