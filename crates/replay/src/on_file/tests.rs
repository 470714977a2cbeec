use super::*;
use sys::PathError;

fn target(path: &Path) -> Target {
    Target {
        path: path.to_owned(),
        overwrite: false,
        buffered: true,
        prepare: false,
        claimed: false,
    }
}

fn trace(operations: &[(u64, Kind, u64, u64)]) -> Trace {
    let operation = |(time_ns, kind, first, pages): &(u64, Kind, u64, u64)| Operation {
        time_ns: *time_ns,
        kind: *kind,
        offset_bytes: first * 4096,
        size_bytes: pages * 4096,
        lane: 0,
    };
    Trace::new(operations.iter().map(operation).collect())
}

fn play(trace: &Trace, target: &Target) -> Result<OnFile, Error> {
    on_file(
        Part::all(trace),
        Pace::Closed { depth: 2 },
        2,
        target,
        || Ok(()),
        &AtomicBool::new(false),
    )
}

#[test]
fn a_file_is_made_as_large_as_what_the_trace_touches() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let far = 1 << 30;
    let trace = trace(&[
        (0, Kind::Write, far, 2),
        (1, Kind::Write, 7, 1),
        (2, Kind::Read, far + 1, 1),
        (3, Kind::Flush, 0, 0),
    ]);
    let done = play(&trace, &target(&path)).unwrap();
    assert_eq!(done.operations, 8);
    assert_eq!(done.times.write.unwrap().pages, 6);
    let content = std::fs::read(&path).unwrap();
    assert_eq!(content.len(), 3 * 4096);
    assert!(
        content
            .chunks(4096)
            .all(|page| page.iter().any(|it| *it != 0))
    );
}

#[test]
fn what_is_there_is_overwritten_only_when_asked_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, b"precious").unwrap();
    let writes = trace(&[(0, Kind::Write, 0, 1)]);
    let Err(Error::Io(PathError { source, .. })) = play(&writes, &target(&path)) else {
        panic!("it has to be refused");
    };
    assert_eq!(source.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let mut overwrite = target(&path);
    overwrite.overwrite = true;
    play(&writes, &overwrite).unwrap();
    assert_eq!(std::fs::read(&path).unwrap().len(), 4096);
}

#[test]
fn a_trace_that_only_reads_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![7; 8192]).unwrap();
    play(&trace(&[(0, Kind::Read, 5, 2)]), &target(&path)).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), vec![7; 8192]);
    let outcome = play(&trace(&[(0, Kind::Read, 5, 3)]), &target(&path));
    assert!(matches!(outcome, Err(Error::TooSmall { .. })));
}

#[test]
fn no_operation_of_an_open_loop_comes_before_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let trace = trace(&[(0, Kind::Write, 0, 1), (20_000_000, Kind::Read, 0, 1)]);
    let done = on_file(
        Part::all(&trace),
        Pace::Open,
        1,
        &target(&path),
        || Ok(()),
        &AtomicBool::new(false),
    )
    .unwrap();
    assert!(done.elapsed_ns >= 20_000_000, "{}", done.elapsed_ns);
}

#[test]
fn a_set_flag_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let trace = trace(&[(0, Kind::Write, 0, 1), (u64::MAX / 2, Kind::Read, 0, 1)]);
    let outcome = on_file(
        Part::all(&trace),
        Pace::Open,
        1,
        &target(&path),
        || Ok(()),
        &AtomicBool::new(true),
    );
    assert!(matches!(outcome, Err(Error::Interrupted)));
}

#[test]
fn a_part_is_played_where_it_is_in_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let whole = trace(&[(0, Kind::Write, 0, 1), (1, Kind::Read, 900, 1)]);
    let (foreground, background) = whole.split(|_| true);
    assert_eq!(
        (foreground.operations().len(), background.operations().len()),
        (2, 0)
    );
    let last = Trace::new(vec![whole.operations()[1]]);
    let part = Part {
        whole: &whole,
        trace: &last,
    };
    let prepared = Target {
        prepare: true,
        ..target(&path)
    };
    let mut begun = false;
    let begin = || {
        begun = true;
        // All pages are written by then.
        assert!(
            std::fs::read(&path).unwrap()[4096..]
                .iter()
                .any(|it| *it != 0)
        );
        Ok(())
    };
    let pace = Pace::Closed { depth: 1 };
    let done = on_file(part, pace, 1, &prepared, begin, &AtomicBool::new(false)).unwrap();
    assert!(begun);
    assert_eq!(done.operations, 1);
    assert_eq!(path.metadata().unwrap().len(), 2 * 4096);
}

#[test]
fn data_do_not_repeat() {
    let mut pages = vec![0; 2 * 4096];
    fill(&mut pages, 0);
    let mut words: Vec<_> = pages.chunks(8).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 1024);
}
