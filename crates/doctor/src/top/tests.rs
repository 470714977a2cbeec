use super::*;
use crate::machine::Disk;
use crate::observe::{Owner, Part, Party};
use iopro::event::Dev;
use iopro::link::Use;
use iopro::report::Waiting;

const SECOND: u64 = 1_000_000_000;

fn fsync(who: &str, lost_ns: u64, longest_ns: u64) -> Wait {
    let served = |owner, ns| Part {
        disk: "8:0".to_owned(),
        owner,
        ns,
    };
    let writer = Owner::Party(Party {
        process: 7,
        name: "dd".to_owned(),
        kernel: false,
    });
    Wait {
        who: who.to_owned(),
        process: 5,
        call: Some("fsync".to_owned()),
        syncs: true,
        class: Class::Sync,
        other: Some("dd".to_owned()),
        other_process: 7,
        parts: vec![
            served(Owner::Waiter, lost_ns / 4),
            served(writer, lost_ns / 2),
        ],
        waits: 2,
        lost_ns,
        longest_ns,
        ..Wait::default()
    }
}

/// Frame of a second in which the only disk was busy with dd's writes.
fn frame(waits: Vec<Wait>, second: u64) -> Frame {
    let disk = Disk {
        name: "sda".to_owned(),
        number: "8:0".to_owned(),
        ..Disk::default()
    };
    let machine = Machine {
        disks: vec![disk],
        ..Machine::default()
    };
    let mut seen = recorded::observation(&machine, &interval(second), 0);
    seen.waits = waits;
    Frame::of(&seen, second * SECOND, Vec::new())
}

fn interval(second: u64) -> report::Waits {
    let used = Use {
        requests: 100,
        request_ns: SECOND,
        written_bytes: 40 << 20,
        busy_ns: SECOND,
        ..Use::default()
    };
    report::Waits {
        at_ns: second * SECOND,
        duration_ns: SECOND,
        foreground: Waiting {
            total_ns: 0,
            classes: Vec::new(),
            top: Vec::new(),
            longest: None,
        },
        accounts: Vec::new(),
        uses: [(Dev::new(8, 0), used)].into(),
        under_way: Vec::new(),
        lost: Vec::new(),
    }
}

#[test]
fn each_app_has_a_row_whose_parts_add_up() {
    let waits = vec![
        fsync("editor", SECOND / 5, SECOND / 10),
        fsync("mail", SECOND / 2, SECOND / 3),
    ];
    let frame = frame(waits, 1);
    let names: Vec<_> = frame.rows.iter().map(|it| &*it.verdict.who).collect();
    assert_eq!(names, ["mail", "editor"]);
    for row in &frame.rows {
        let served = &row.served;
        let others: u64 = served.others.iter().map(|it| it.ns).sum();
        let all = served.own_ns + served.process_ns + others + served.unknown_ns + served.idle_ns;
        assert_eq!(all, row.verdict.lost_ns, "{row:?}");
        let ways: u64 = row.ways.iter().map(|it| it.lost_ns).sum();
        assert_eq!(ways, row.verdict.lost_ns);
        assert_eq!(row.verdict.culprit.as_deref(), Some("dd"));
    }
}

#[test]
fn a_wait_that_began_earlier_was_lost_then_too() {
    let mut minute = Minute::default();
    minute.add(&frame(vec![fsync("editor", SECOND / 10, SECOND / 10)], 1));
    for second in 2..5 {
        minute.add(&frame(Vec::new(), second));
    }
    minute.add(&frame(vec![fsync("editor", 3 * SECOND, 3 * SECOND)], 5));
    let rows = minute.rows(Sort::default(), None);
    let lost: Vec<u64> = rows[0].lost_ns.iter().copied().collect();
    assert_eq!(lost.len(), 60);
    assert_eq!(lost[55..], [SECOND / 10, 0, SECOND, SECOND, SECOND]);
}

#[test]
fn rows_are_sorted_followed_and_leave_after_a_minute() {
    let mut minute = Minute::default();
    minute.add(&frame(
        vec![
            fsync("long", SECOND / 2, SECOND / 2),
            fsync("often", 2 * SECOND, SECOND / 50),
        ],
        1,
    ));
    minute.add(&frame(vec![fsync("again", SECOND / 4, SECOND / 25)], 2));
    let names = |sort, only| -> Vec<String> {
        let rows = minute.rows(sort, only);
        rows.iter().map(|it| it.row.verdict.who.clone()).collect()
    };
    assert_eq!(names(Sort::Minute, None), ["often", "long", "again"]);
    assert_eq!(names(Sort::Now, None)[0], "again");
    assert_eq!(names(Sort::Longest, None), ["long", "again", "often"]);
    assert_eq!(names(Sort::Name, None), ["again", "long", "often"]);
    assert_eq!(names(Sort::Minute, Some("long")), ["long"]);
    assert!(names(Sort::Minute, Some("nobody")).is_empty());
    for second in 3..62 {
        minute.add(&frame(Vec::new(), second));
    }
    assert_eq!(minute.rows(Sort::Minute, None).len(), 1, "of second 2");
    minute.add(&frame(Vec::new(), 62));
    assert!(minute.rows(Sort::Minute, None).is_empty());
}

#[test]
fn a_line_tells_who_waits_behind_whom_and_an_opened_row_why() {
    let frame = frame(vec![fsync("editor", SECOND / 2, SECOND / 3)], 1);
    let mut minute = Minute::default();
    minute.add(&frame);
    let rows = minute.rows(Sort::default(), None);
    let (text, first) = lines(&frame, &rows, 160);
    let line = &text[first];
    for word in ["editor", "fsync behind writeback", "dd", "500", "█"] {
        assert!(line.contains(word), "{word}: {line}");
    }
    let text = opened(&rows[0].row).join("\n");
    for word in [
        "D_sync",
        "125 ms  served the task",
        "250 ms  served dd",
        "had nothing",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}
