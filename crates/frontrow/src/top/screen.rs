//! The terminal's alternate screen and raw keys. The terminal is restored on every exit but
//! SIGKILL.

use crate::exit::{Exit, Failure};
use crate::print::print_text;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::io::{self, IsTerminal, Write};
use std::panic;
use std::sync::{Mutex, Once};
use std::thread;
use std::time::Duration;

/// Escape sequence: alternate screen, hidden cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Escape sequence: cursor to the top left.
const HOME: &str = "\x1b[H";
/// Escape sequences: clear the rest of the line, and all lines below.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Ctrl-Z, which a terminal in this mode does not turn into a signal.
const SUSPEND: u8 = 0x1a;

/// Terminal settings to restore; None if unchanged.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);
/// Restores the terminal on a panic, which does not run destructors.
static ON_PANIC: Once = Once::new();

struct Before {
    /// None if standard input is not a terminal.
    keys: Option<Termios>,
}

/// The terminal while it is in use.
pub struct Screen;

impl Screen {
    /// Switches the terminal to drawing.
    pub fn enter() -> Result<Screen, Failure> {
        ON_PANIC.call_once(|| {
            let others = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                leave();
                others(info);
            }));
        });
        take().map_err(failed)?;
        Ok(Screen)
    }

    /// Numbers of rows and columns.
    pub fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                (usize::from(size.ws_row), usize::from(size.ws_col))
            }
            _ => (24, 80),
        }
    }

    /// Replaces the lines on the screen.
    pub fn draw(&self, lines: &[String]) -> Result<(), Failure> {
        let lines: Vec<String> = lines.iter().map(|it| format!("{it}{CLEAR_LINE}")).collect();
        print_text(&format!("{HOME}{}{CLEAR_BELOW}", lines.join("\n")))
    }

    /// Pressed keys, arrows as k and j; waits for the first one until `timeout`.
    pub fn keys(&self, timeout: Duration) -> Result<Vec<u8>, Failure> {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            thread::sleep(timeout);
            return Ok(Vec::new());
        }
        let timeout =
            Timespec::try_from(timeout).map_err(|error| failed(io::Error::other(error)))?;
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let mut buffer = [0; 64];
        let read = rustix::io::read(&stdin, &mut buffer).map_err(|error| failed(error.into()))?;
        let keys = buffer[..read].to_vec();
        if keys.contains(&SUSPEND) {
            suspend().map_err(failed)?;
        }
        Ok(match keys.as_slice() {
            [0x1b, b'[' | b'O', b'A'] => vec![b'k'],
            [0x1b, b'[' | b'O', b'B'] => vec![b'j'],
            // Sequences of other keys are ignored; the escape key has none.
            [0x1b, _, ..] => Vec::new(),
            _ => keys,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn take() -> io::Result<()> {
    let stdin = io::stdin();
    let keys = match stdin.is_terminal() {
        true => {
            let before = tcgetattr(&stdin)?;
            let mut modes = before.clone();
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            modes.special_codes[SpecialCodeIndex::VMIN] = 0;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(&stdin, OptionalActions::Now, &modes)?;
            Some(before)
        }
        false => None,
    };
    let mut before = BEFORE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    *before = Some(Before { keys });
    write(ENTER)
}

/// Restores the terminal, once.
fn leave() {
    let mut before = BEFORE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let Some(before) = before.take() else {
        return;
    };
    // An error cannot be shown if the terminal has gone.
    let _ = write(LEAVE);
    if let Some(modes) = before.keys {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
}

/// Suspends this process, as Ctrl-Z does in other programs.
fn suspend() -> io::Result<()> {
    leave();
    kill_process(getpid(), Signal::TSTP)?;
    take()
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn failed(error: io::Error) -> Failure {
    Failure::new(
        Exit::Internal,
        format_args!("cannot use the terminal: {error}"),
    )
}
