//! `frontrow iopro top` in a terminal, which here is a recording that is played.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const REVERSE: &str = "\x1b[7m";
/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../iopro/tests/recordings/6.12.iopro")
}

/// The program in a terminal of its own.
struct Session {
    child: Child,
    terminal: OwnedFd,
    program_side: File,
    keys: File,
    shown: Arc<Mutex<String>>,
    modes_before: String,
}

impl Session {
    fn start(size: (u16, u16), variables: &[(&str, &str)]) -> Session {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let mut options = OpenOptions::new();
        let program_side = options
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        resize(&terminal, size);
        let side = || Stdio::from(program_side.try_clone().unwrap());
        let modes_before = format!("{:?}", tcgetattr(&program_side).unwrap());
        let child = Command::new(env!("CARGO_BIN_EXE_frontrow"))
            .args(["iopro", "top", "--from"])
            .arg(recording())
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let mut output = File::from(terminal.try_clone().unwrap());
        let kept = Arc::clone(&shown);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                kept.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        Session {
            child,
            keys: File::from(terminal.try_clone().unwrap()),
            terminal,
            program_side,
            shown,
            modes_before,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// All that came so far.
    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// Waits until `words` come after the first `from` bytes; how much came until then.
    fn wait_for(&self, words: &str, from: usize) -> usize {
        let began = Instant::now();
        loop {
            let shown = self.shown();
            if let Some(found) = shown[from..].find(words) {
                return from + found;
            }
            assert!(began.elapsed() < LIMIT, "no {words:?} in {shown:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < LIMIT, "it goes on: {:?}", self.shown());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The terminal is as it was, and the program has left its screen.
    fn assert_restored(&self) {
        self.wait_for(LEAVE, 0);
        let modes = format!("{:?}", tcgetattr(&self.program_side).unwrap());
        assert_eq!(modes, self.modes_before);
        let shown = self.shown();
        assert_eq!(
            shown.matches(ENTER).count(),
            shown.matches("\x1b[?1049l").count()
        );
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn resize(terminal: &OwnedFd, (rows, columns): (u16, u16)) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
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
    let mut session = Session::start((24, 80), &[]);
    session.wait_for(ENTER, 0);
    let first = session.wait_for("Why they waited", 0);
    assert!(session.shown().contains(REVERSE));
    assert_eq!(last_screen(&session.shown()).len(), 24);
    session.press("?");
    session.wait_for("sort waits by time, by number", first);
    session.press("?");
    session.press("s");
    let sorted = session.wait_for("sort: number", first);
    session.press("p");
    session.wait_for("paused", sorted);

    let before = session.shown().len();
    resize(&session.terminal, (10, 40));
    session.wait_for("\x1b[J", before);
    let screen = last_screen(&session.shown());
    assert_eq!(screen.len(), 10, "{screen:?}");
    assert!(
        screen.iter().all(|it| it.chars().count() <= 40),
        "{screen:?}"
    );

    session.press("q");
    assert!(session.wait_for_end().success());
    session.assert_restored();
    let shown = session.shown();
    let (_, left) = shown.rsplit_once(LEAVE).unwrap();
    assert!(
        left.contains("Why they waited"),
        "the last frame stays: {left:?}"
    );
}

#[test]
fn ctrl_c_and_signals_put_the_terminal_back() {
    let mut session = Session::start((24, 80), &[("NO_COLOR", "1")]);
    session.wait_for("Why they waited", 0);
    assert!(!session.shown().contains(REVERSE));
    session.press("\x03");
    session.wait_for_end();
    session.assert_restored();

    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::HUP] {
        let mut session = Session::start((24, 80), &[]);
        session.wait_for("Why they waited", 0);
        let pid = rustix::process::Pid::from_child(&session.child);
        rustix::process::kill_process(pid, signal).unwrap();
        session.wait_for_end();
        session.assert_restored();
    }
}

#[test]
fn what_is_no_terminal_gets_plain_text_and_every_frame() {
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["iopro", "top", "--from"])
        .arg(recording())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("Why they waited") && !text.contains('\x1b'),
        "{text}"
    );
}
