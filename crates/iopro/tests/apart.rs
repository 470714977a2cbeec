//! Tables that are larger than their memory, in a process that may write in one directory only.

use iopro::store::{self, Store};
use iopro::tables::Segment;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use sys::confine::Confinement;

/// Variable of the process that is confined.
const CONFINED: &str = "FRONTROW_TABLES_APART";

/// Rows that take twice the memory that the tables' pages may have.
const ROWS: u64 = 600_000;

#[test]
fn large_tables_fit_into_a_directory_of_their_own() {
    if env::var_os(CONFINED).is_some() {
        let work = store::keep_temporary_files_apart().unwrap().unwrap();
        let confinement = Confinement::of_reader().working_in(&work).unwrap();
        confinement.begin().unwrap();
        let mut store = Store::temporary().unwrap();
        for _ in 0..ROWS {
            store.add(&Segment::default()).unwrap();
        }
        store.finish().unwrap();
        // SQLite has no name for it any more; its descriptor still tells where it is.
        let place = env::temp_dir();
        let mut open = (0..64).filter_map(|it| fs::read_link(format!("/proc/self/fd/{it}")).ok());
        let is_apart =
            |it: PathBuf| it.starts_with(&place) && it.to_string_lossy().ends_with("(deleted)");
        assert!(open.any(is_apart), "the tables are in a file by now");
        let sorted = "SELECT count(*) FROM (SELECT DISTINCT rowid FROM segments)";
        let rows: u64 = store
            .database()
            .query_row(sorted, [], |it| it.get(0))
            .unwrap();
        assert_eq!(rows, ROWS);
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "apart::large_tables_fit_into_a_directory_of_their_own",
        ])
        .env(CONFINED, "1")
        .env("TMPDIR", place.path())
        .env_remove("SQLITE_TMPDIR")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}
