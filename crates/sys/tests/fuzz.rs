//! A journal may be in a directory of somebody else's. Whatever it says, restoring from it ends, and
//! touches no file but knobs. `make stress` does this more often (PROPTEST_CASES).

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use sys::knobs::{Form, Home, Journal};

const FILES: [&str; 6] = [
    "sys/block/sda/queue/scheduler",
    "sys/block/sda/queue/iosched/foreground",
    "sys/fs/cgroup/app/memory.high",
    "sys/fs/cgroup/app/cgroup.procs",
    "proc/sys/kernel/core_pattern",
    "etc/passwd",
];

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(FILES.to_vec()).prop_map(|it| format!("/{it}")),
        Just("/sys/fs/cgroup/app/../../../../etc/passwd".to_owned()),
        Just("/sys/fs/cgroup/../../../etc/memory.high".to_owned()),
        Just("etc/passwd".to_owned()),
        Just("".to_owned()),
        ".{0,30}",
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("as it was".to_owned()),
        Just("a [b] c".to_owned()),
        "(/[a-z ]{0,9}\n?){0,3}",
        ".{0,30}",
    ]
}

/// A line that is right, or nearly.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let change = (path(), value(), prop::option::of(value()));
    let right = change.prop_map(|(path, before, value)| {
        let change = serde_json::json!({
            "path": path, "before": before, "value": value, "reason": "fuzz"
        });
        change.to_string().into_bytes()
    });
    prop_oneof![
        8 => right,
        1 => prop::collection::vec(any::<u8>(), 0..60),
    ]
}

fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = FILES.iter().map(|it| PathBuf::from(format!("/{it}")));
    all.map(|it| {
        let content = fs::read(root.join(it.strip_prefix("/").unwrap())).unwrap();
        (it, content)
    })
    .collect()
}

proptest! {
    #[test]
    fn no_journal_reaches_more_than_knobs(
        lines in prop::collection::vec(line(), 0..8),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let root = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap());
        let root = root.path();
        for path in FILES.iter().chain(&["proc/sys/kernel/random/boot_id"]) {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "as it was\n").unwrap();
        }
        let before = files(root);
        let mut text = br#"{"boot_id":"as it was"}"#.to_vec();
        for line in lines {
            text.push(b'\n');
            text.extend(line);
        }
        text.push(b'\n');
        if is_cut {
            text.truncate(cut.index(text.len()));
        }
        let directory = root.join("run/frontrowd");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("foreground.jsonl"), text).unwrap();
        let changes = Journal::peek(root, Home::Daemon, "foreground");
        let _ = changes.map(|changes| sys::knobs::net(root, &changes).is_ok());
        if let Ok(journal) = Journal::open(root, Home::Daemon, "foreground") {
            // It says no, or does as it is told with knobs.
            let _ = journal.restore();
        }
        for (path, content) in files(root) {
            if Form::of(&path).is_none() {
                prop_assert_eq!(&content, &before[&path], "{}", path.display());
            }
        }
    }
}
