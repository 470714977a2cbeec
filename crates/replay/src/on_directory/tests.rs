use super::*;
use crate::calls::{Builder, When};
use proptest::prelude::*;
use sys::PathError;

static NEVER: AtomicBool = AtomicBool::new(false);

fn at(time_ns: u64, lane: u32) -> When {
    When {
        time_ns,
        took_ns: 10,
        lane,
    }
}

fn play(calls: &Calls, pace: Pace, loops: u32, path: &Path) -> Result<OnDirectory, Error> {
    let place = Place {
        path: path.to_owned(),
        overwrite: false,
    };
    on_directory(calls, pace, loops, &place, &mut |_, _| {}, &NEVER)
}

const ONE: Pace = Pace::Closed { depth: 1 };

/// An app that reads an existing file, and writes another one by way of a third.
fn app() -> Calls {
    let mut builder = Builder::default();
    builder.make_directory(at(0, 0), b"/data/new").unwrap();
    let old = builder
        .open(at(1, 0), b"/data/app.db", Opening::READ)
        .unwrap()
        .unwrap();
    builder.read(at(2, 0), old, 8192, 4096).unwrap();
    let new = builder
        .open(at(3, 1), b"/data/new/tmp", Opening::CREATE)
        .unwrap()
        .unwrap();
    builder.write(at(4, 1), new, 0, 3_000_001).unwrap();
    builder.sync(at(5, 1), new, true);
    builder.truncate(at(6, 1), new, 1_000_000).unwrap();
    builder.close(at(7, 1), new);
    builder
        .rename(at(8, 1), b"/data/new/tmp", b"/data/app.db")
        .unwrap();
    let again = builder
        .open(at(9, 0), b"/data/app.db", Opening::READ)
        .unwrap()
        .unwrap();
    builder.read(at(10, 0), again, 0, 1_000_000).unwrap();
    builder.unlink(at(11, 0), b"/data/gone", false).unwrap();
    builder.unlink(at(12, 0), b"/data/new", true).unwrap();
    builder.finish()
}

#[test]
fn what_the_trace_needs_is_there_and_what_it_makes_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sandbox");
    let result = play(&app(), ONE, 3, &path).unwrap();
    assert_eq!(result.unlike_operations, 0, "{:?}", result.first_unlike);
    assert_eq!(result.operations, 39);
    // In the second loop the file is left over from the first one, and large enough.
    assert_eq!(result.prepared_bytes, 12_288);
    assert_eq!(result.times["write"].pages, 3 * 733);
    assert_eq!(result.times["read"].count, 6);
    let files: Vec<_> = fs::read_dir(path.join("data")).unwrap().collect();
    assert_eq!(files.len(), 1);
    assert_eq!(
        path.join("data/app.db").metadata().unwrap().len(),
        1_000_000
    );
}

#[test]
fn a_directory_with_something_in_it_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("mine"), "mine").unwrap();
    let error = play(&app(), ONE, 1, directory.path()).unwrap_err();
    let Error::Io(PathError { source, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(source.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn names_that_are_otherwise_are_counted_and_the_first_is_told() {
    let mut builder = Builder::default();
    // The trace does not contain the link(2) that made /b.
    builder.unlink(at(1, 0), b"/a", false).unwrap();
    builder.unlink(at(2, 0), b"/a", false).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let result = play(&builder.finish(), ONE, 1, directory.path()).unwrap();
    assert_eq!(result.unlike_operations, 1);
    assert!(result.first_unlike.unwrap().starts_with("unlink a: "));
}

#[test]
fn threads_that_come_in_another_order_lose_nothing() {
    // The handle is used by another thread than the one that opens it.
    let mut builder = Builder::default();
    for file in 0..20 {
        let path = format!("/f{file}");
        let opened = builder.open(at(file * 10, 0), path.as_bytes(), Opening::CREATE);
        let handle = opened.unwrap().unwrap();
        builder
            .write(at(file * 10 + 1, 1), handle, 0, 5000)
            .unwrap();
        builder.read(at(file * 10 + 2, 2), handle, 0, 5000).unwrap();
    }
    let calls = builder.finish();
    for pace in [
        Pace::Open,
        Pace::Mixed { think_ns: 1 },
        Pace::Closed { depth: 8 },
    ] {
        let directory = tempfile::tempdir().unwrap();
        let result = play(&calls, pace, 1, directory.path()).unwrap();
        assert_eq!(result.operations, 60);
        for file in 0..20 {
            let path = directory.path().join(format!("f{file}"));
            assert_eq!(path.metadata().unwrap().len(), 5000);
        }
    }
}

#[test]
fn more_than_there_is_room_for_is_said_before_it_is_written() {
    let mut builder = Builder::default();
    let handle = builder
        .open(at(1, 0), b"/huge", Opening::READ)
        .unwrap()
        .unwrap();
    builder
        .read(at(2, 0), handle, (1 << 44) - 4096, 4096)
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let outcome = play(&builder.finish(), ONE, 1, directory.path());
    assert!(
        matches!(outcome, Err(Error::TooSmall { .. })),
        "{outcome:?}"
    );
    assert_eq!(directory.path().join("huge").metadata().unwrap().len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_trace_ends_and_stays_inside(
        steps in prop::collection::vec((0u8..12, 0usize..6, 0usize..6, 0u64..9000), 0..40),
        depth in 1u32..4,
    ) {
        let names = ["/a", "/b", "/d/c", "/d", "/d/../../x", "/e/f/g"];
        let mut builder = Builder::default();
        let mut handles = Vec::new();
        for (time, (what, one, other, number)) in steps.into_iter().enumerate() {
            let when = at(time as u64, one as u32);
            let (path, to) = (names[one].as_bytes(), names[other].as_bytes());
            let handle = handles.get(other % handles.len().max(1)).copied();
            match (what, handle) {
                (0, _) => handles.extend(builder.open(when, path, Opening::READ).unwrap()),
                (1, _) => handles.extend(builder.open(when, path, Opening::CREATE).unwrap()),
                (2, _) => drop(builder.rename(when, path, to).unwrap()),
                (3, _) => drop(builder.unlink(when, path, number % 2 == 0).unwrap()),
                (4, _) => drop(builder.make_directory(when, path).unwrap()),
                (5, Some(it)) => builder.read(when, it, number, number).unwrap(),
                (6, Some(it)) => builder.write(when, it, number, number + 1).unwrap(),
                (7, Some(it)) => builder.truncate(when, it, number).unwrap(),
                (8, Some(it)) => builder.sync_range(when, it, (number, number), 7).unwrap(),
                (9, Some(it)) => {
                    let (range, mode) = ((number, number + 1), (number % 2) as u8);
                    builder.allocate(when, it, range, (mode, mode == 0)).unwrap();
                }
                (10, _) => builder.sync_all(when),
                (_, Some(it)) => builder.close(when, it),
                _ => {}
            }
        }
        let calls = builder.finish();
        let machine = tempfile::tempdir().unwrap();
        let path = machine.path().join("sandbox");
        let result = play(&calls, Pace::Closed { depth }, 1, &path).unwrap();
        prop_assert_eq!(result.operations, calls.calls().len() as u64);
        prop_assert_eq!(fs::read_dir(machine.path()).unwrap().count(), 1);
    }
}
