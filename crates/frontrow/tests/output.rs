//! What happens to output that nobody reads to its end, as with `| head -1`.

use std::io;
use std::process::{Command, Stdio};

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().to_str().unwrap();
    for line in [
        &["lab", "list"][..],
        &["lab", "list", "--json"],
        &["lab", "show", "qasio"],
        &["lab", "torture", "--list"],
        &["fg", "status", "--sysroot", root],
        &["fg", "status", "--json", "--sysroot", root],
    ] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
            .args(line)
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
