//! Exit codes are the same whichever command meets the same mistake.

use std::fs;
use std::process::Command;

/// Each with the place of an input file that is `INPUT`, and outputs below `OUT`; those with `lab`
/// before them are of `frontrow-lab`.
const FILE_READERS: [&[&str]; 10] = [
    &["bench", "compare", "INPUT", "INPUT"],
    &[
        "iopro", "export", "INPUT", "--to", "vcd", "--output", "OUT/a",
    ],
    &["doctor", "--btf", "INPUT"],
    &["iopro", "report", "INPUT"],
    &["lab", "run", "INPUT"],
    &["launch", "calibrate", "INPUT/below"],
    &["lab", "replay", "INPUT"],
    &["sched", "abi", "--btf", "INPUT"],
    &["snapshot", "restore", "INPUT", "OUT/b.img"],
    &["snapshot", "save", "INPUT", "OUT/c.snapshot"],
];

const DIRECTORY_READERS: [&[&str]; 3] = [
    &["defrag", "INPUT", "--check"],
    &["lab", "show", "INPUT"],
    &["lab", "replay", "INPUT"],
];

fn run(arguments: &[&str], input: &str, out: &str) -> (Option<i32>, String) {
    let (program, arguments) = match arguments {
        ["lab", arguments @ ..] => (env!("CARGO_BIN_EXE_frontrow-lab"), arguments),
        arguments => (env!("CARGO_BIN_EXE_frontrow"), arguments),
    };
    let arguments = arguments
        .iter()
        .map(|it| it.replace("INPUT", input).replace("OUT", out));
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn a_file_that_is_not_there_or_a_directory_is_exit_2_and_named_in_every_command() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().to_str().unwrap();
    let missing = format!("{out}/missing");
    let absent = FILE_READERS.iter().chain(&DIRECTORY_READERS);
    let absent = absent.map(|it| (it, missing.as_str()));
    let of_another_kind = FILE_READERS.iter().map(|it| (it, out));
    let mut wrong = Vec::new();
    for (arguments, input) in absent.chain(of_another_kind) {
        let (code, said) = run(arguments, input, out);
        if code != Some(2) || !said.contains(input) {
            wrong.push(format!("{arguments:?} {input}: {code:?} {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let left: Vec<_> = fs::read_dir(out).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_command_that_is_the_labs_now_says_so() {
    for (old, new) in [
        ("lab", "`frontrow-lab`"),
        ("age", "`frontrow-lab age`"),
        ("replay", "`frontrow-lab replay`"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
            .args([old, "--help"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(new), "{said}");
    }
}

/// A foreground that the recording does not have would make a report of nobody, or of all.
#[test]
fn a_foreground_that_is_not_recorded_is_refused_with_those_that_are() {
    let recording = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../iopro/tests/recordings/6.12.iopro"
    );
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("tables.sqlite");
    for foreground in ["nobody-at-all", "4194304", "/no/such.slice"] {
        let report = ["report", recording, "--fg", foreground];
        let to = ["--to", "sqlite", "-o", output.to_str().unwrap()];
        let export = [&["export", recording, "--fg", foreground][..], &to].concat();
        for arguments in [&report[..], &export] {
            let ended = std::process::Command::new(env!("CARGO_BIN_EXE_frontrow"))
                .arg("iopro")
                .args(arguments)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(2), "{said}");
            assert!(said.contains("name another with --fg, such as"), "{said}");
            assert!(ended.stdout.is_empty() && !output.exists());
        }
    }
}
