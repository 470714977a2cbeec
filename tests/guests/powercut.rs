//! `frontrow-lab powercut` as a user runs it: a phone is recorded in a guest, and its power is
//! cut on the host.

use crate::harness::{code, lab, output, stderr, succeeds};
use std::fs;
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_cut_at_every_operation_of_a_defragmentation_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (kept, damaged) = (
        directory.path().join("stream"),
        directory.path().join("damaged"),
    );
    let record = ["--points", "24", "--json", "--keep", text(&kept)];
    let outcome = succeeds(lab(&["powercut"]).args(record)).json();
    let number = |name: &str| outcome[name].as_u64().unwrap();
    assert!(
        number("defragmentation_operations") > 50,
        "somebody wrote meanwhile: {outcome}"
    );
    assert!(number("elided_pages") > 500, "{outcome}");
    assert_eq!(number("random_points"), 24);
    assert!(number("files_read") > number("defragmentation_operations") * 100);
    assert!(number("recovery_ns_max") <= 1_000_000_000, "{outcome}");

    let mut stream = fs::read(&kept).unwrap();
    let middle = stream.len() / 2;
    stream[middle] ^= 1;
    fs::write(&damaged, stream).unwrap();
    let refused = output(&mut lab(&["powercut", "--stream", text(&damaged)]));
    let said = stderr(&refused);
    assert_eq!(code(&refused), 2, "{said}");
    assert!(said.contains("is damaged"), "{said}");
    assert!(refused.stdout.is_empty());
}
