use super::*;
use crate::judge;
use crate::judge::tests::{MB, SECOND, seen, user, wait};
use crate::observe::{HeldUp, Observation, Pressure, Span};
use iopro::wait::Class;

const AGAIN: &str = "sudo frontrow doctor --seconds 10 --html why.html";

fn shown(seen: &Observation) -> String {
    page(&judge(seen), AGAIN)
}

/// fio syncs beside dd, with pressure in the second half.
fn beside_a_writer() -> Observation {
    let mut seen = seen(
        vec![
            wait("fio", "fsync", Class::JournalCommit, 6 * SECOND),
            wait("dd", "pwrite64", Class::DirtyThrottle, 2 * SECOND),
        ],
        vec![user("fio", MB, 0), user("dd", 200 * MB, SECOND)],
    );
    let span = |from: u64, io_ns| Span {
        from_ns: from * SECOND,
        until_ns: (from + 5) * SECOND,
        pressure: Pressure {
            io_ns,
            ..Default::default()
        },
    };
    seen.over_time = vec![span(0, 0), span(5, 2 * SECOND)];
    let held_up = |app: &str, io_ns| HeldUp {
        app: app.to_owned(),
        io_ns,
    };
    seen.held_up = vec![
        held_up("app-fio.scope", 6 * SECOND),
        held_up("cron.service", SECOND / 20),
    ];
    seen
}

#[test]
fn the_page_answers_first_and_has_a_way_back_for_what_helps() {
    let page = shown(&beside_a_writer());
    let answer = "fio waited <em class=\"stock\">6.00 s</em> for its fsync behind others' writes";
    let order = [
        answer,
        "because of dd",
        "how sure",
        "Who waited because of whom",
        "fio waited 6.00 s because of dd: fsync behind writeback",
        "dd waited 2.00 s because of itself: own writes",
        "Share of the lost time by cause",
        "fsync behind writeback: 75 % of the lost time, 6.00 s",
        "own writes: 25 % of the lost time, 2.00 s",
        "<code>sudo frontrow sched enable sda</code>",
        "from mq-deadline to frontrow",
        "<code>sudo frontrow sched disable sda</code>",
        "19.7 ms instead of 69.5 ms",
        "scheduler mq-deadline, 64 requests",
        "✓ level 1",
        "to which device a process wrote",
        AGAIN,
        "frontrow doctor --try",
    ];
    let mut rest = page.as_str();
    for words in order {
        let place = rest
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {rest}"));
        rest = &rest[place + words.len()..];
    }
}

#[test]
fn the_pressure_is_drawn_where_it_was() {
    let page = shown(&beside_a_writer());
    assert!(
        page.contains("0 ms to 5.00 s: I/O 0.0 %") && page.contains("5.00 s to 10.0 s: I/O 40 %"),
        "{page}"
    );
    let apps = "By I/O: app-fio.scope 6.00 s.";
    assert!(page.contains(apps), "and nobody who hardly was: {page}");
    let mut seen = beside_a_writer();
    assert!(crate::page::text(&judge(&seen)).contains(apps));
    seen.over_time.clear();
    assert!(!shown(&seen).contains("over the time"));
}

#[test]
fn names_of_the_system_are_text() {
    let mut seen = beside_a_writer();
    seen.waits[0].who = "<script>".to_owned();
    seen.waits[0].file = Some("/home/\"><img src=x>".to_owned());
    seen.users[0].name = "<script>".to_owned();
    seen.users[1].name = "</title>".to_owned();
    let page = shown(&seen);
    assert!(page.contains("&lt;script&gt;</") || page.contains("&lt;script&gt; waited"));
    assert!(page.contains("because of &lt;/title&gt;"), "{page}");
    assert!(
        !page.contains("<script") && !page.contains("<img"),
        "{page}"
    );
}

#[test]
fn where_nobody_waited_there_is_nothing_to_help() {
    let page = shown(&seen(Vec::new(), Vec::new()));
    assert!(page.contains("<h1>Nothing to see"), "{page}");
    assert!(page.contains("held up by I/O") && page.contains("--study 24h"));
    assert!(!page.contains("What helps") && !page.contains("lost-title"));
}

#[test]
fn without_a_measurement_no_command_is_said_to_help() {
    let mut seen = seen(
        vec![wait("app", "read", Class::Service, SECOND)],
        vec![user("app", 0, 0)],
    );
    seen.level = Level::Unprivileged;
    let page = shown(&seen);
    assert!(
        page.contains("No command: for none of these causes"),
        "{page}"
    );
    assert!(page.contains("sudo sees more") && page.contains("a guess"));
    assert!(page.contains("✓ level 3") && !page.contains("--try"));
}
