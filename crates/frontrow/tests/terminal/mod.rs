//! A program at a terminal of its own: what it shows there, and keys pressed.
// Each test file is a crate of its own and uses a part of it.
#![allow(dead_code)]

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The program in a terminal of its own.
pub struct Session {
    pub child: Child,
    terminal: OwnedFd,
    program_side: File,
    keys: File,
    shown: Arc<Mutex<String>>,
    modes_before: String,
}

impl Session {
    /// Starts it at a terminal of so many rows and columns, whatever that of the tests is; what the
    /// command says of its input and output counts no more.
    pub fn start(size: (u16, u16), command: &mut Command) -> Session {
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
        let child = command
            .env("TERM", "xterm")
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

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// All that came so far.
    pub fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// Waits until `words` come after the first `from` bytes; how much came until then.
    pub fn wait_for(&self, words: &str, from: usize) -> usize {
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

    pub fn wait_for_end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < LIMIT, "it goes on: {:?}", self.shown());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The terminal's modes are those that it had before.
    pub fn modes_are_restored(&self) -> bool {
        format!("{:?}", tcgetattr(&self.program_side).unwrap()) == self.modes_before
    }

    pub fn resize(&self, size: (u16, u16)) {
        resize(&self.terminal, size);
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
