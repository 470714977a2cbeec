//! What happens to output that nobody reads to its end, as with `| head -1`.

use std::io;
use std::process::{Command, Stdio};

const FRONTROW: &str = env!("CARGO_BIN_EXE_frontrow");
const LAB: &str = env!("CARGO_BIN_EXE_frontrow-lab");

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().to_str().unwrap();
    for line in [
        &[LAB, "list"][..],
        &[LAB, "list", "--json"],
        &[LAB, "show", "qasio"],
        &[LAB, "torture", "--list"],
        &[FRONTROW, "fg", "status", "--sysroot", root],
        &[FRONTROW, "fg", "status", "--json", "--sysroot", root],
    ] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = Command::new(line[0])
            .args(&line[1..])
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{line:?}: {said}"
        );
    }
}
