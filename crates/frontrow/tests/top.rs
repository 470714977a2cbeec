//! `frontrow top` at a terminal: keys, sizes, and the way out.

use crate::terminal::Session;
use std::path::{Path, PathBuf};
use std::process::Command;

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const REVERSE: &str = "\x1b[7m";
fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../iopro/tests/recordings/6.12.iopro")
}

fn top(variables: &[(&str, &str)]) -> Session {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frontrow"));
    command
        .args(["top", "--from"])
        .arg(recording())
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied());
    Session::start((24, 80), &mut command)
}

/// The terminal is as it was, and the program has left its screen.
fn assert_restored(session: &Session) {
    session.wait_for(LEAVE, 0);
    assert!(session.modes_are_restored());
    let shown = session.shown();
    assert_eq!(
        shown.matches(ENTER).count(),
        shown.matches("\x1b[?1049l").count()
    );
}

/// Lines of the last screen that was drawn whole, without what is for the terminal.
fn last_screen(shown: &str) -> Vec<String> {
    let whole = shown
        .rsplit("\x1b[H")
        .find(|it| it.contains("\x1b[J"))
        .unwrap();
    let drawn = whole.split("\x1b[J").next().unwrap();
    let lines = drawn.split("\r\n").map(|it| {
        let it = it.replace("\x1b[K", "").replace(REVERSE, "");
        it.replace("\x1b[0m", "")
    });
    lines.collect()
}

#[test]
fn keys_sizes_and_the_way_out() {
    let mut session = top(&[]);
    session.wait_for(ENTER, 0);
    let first = session.wait_for("who waits", 0);
    assert!(session.shown().contains(REVERSE));
    assert_eq!(last_screen(&session.shown()).len(), 24);
    session.press("?");
    session.wait_for("sort by the last minute", first);
    session.press("?");
    session.press("s");
    let sorted = session.wait_for("sort: now", first);
    session.press("p");
    session.wait_for("frozen", sorted);

    let before = session.shown().len();
    session.resize((10, 40));
    session.wait_for("\x1b[J", before);
    let screen = last_screen(&session.shown());
    assert_eq!(screen.len(), 10, "{screen:?}");
    assert!(
        screen.iter().all(|it| it.chars().count() <= 40),
        "{screen:?}"
    );

    session.press("q");
    assert!(session.wait_for_end().success());
    assert_restored(&session);
    let shown = session.shown();
    let (_, left) = shown.rsplit_once(LEAVE).unwrap();
    assert!(left.contains("who waits"), "the last frame stays: {left:?}");
}

#[test]
fn ctrl_c_and_signals_put_the_terminal_back() {
    let mut session = top(&[("NO_COLOR", "1")]);
    session.wait_for("who waits", 0);
    assert!(!session.shown().contains(REVERSE));
    session.press("\x03");
    session.wait_for_end();
    assert_restored(&session);

    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::HUP] {
        let mut session = top(&[]);
        session.wait_for("who waits", 0);
        let pid = rustix::process::Pid::from_child(&session.child);
        rustix::process::kill_process(pid, signal).unwrap();
        session.wait_for_end();
        assert_restored(&session);
    }
}

#[test]
fn what_is_no_terminal_gets_plain_text_and_every_frame() {
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["top", "--from"])
        .arg(recording())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("who waits") && !text.contains('\x1b'),
        "{text}"
    );
}
