//! The guest's line to the host.

use super::Outcome;
use record::Message;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::sync::Mutex;

const PATH: &str = sys::arch::NATIVE.machine.port;

/// The second serial port; several threads may send.
pub struct Port {
    file: Mutex<File>,
}

impl Port {
    /// Opens it so that bytes pass as they are.
    pub fn open() -> Outcome<Port> {
        let failed = |error: io::Error| format!("it cannot use {PATH}: {error}");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(PATH)
            .map_err(failed)?;
        make_raw(&file).map_err(failed)?;
        Ok(Port {
            file: Mutex::new(file),
        })
    }

    /// Sends one message as one line.
    pub fn send(&self, message: &Message) -> Outcome<()> {
        let mut line = serde_json::to_vec(message)
            .map_err(|error| format!("it cannot write a message: {error}"))?;
        line.push(b'\n');
        self.with(|file| file.write_all(&line))
    }

    /// Returns when the host has it all.
    pub fn drain(&self) -> Outcome<()> {
        // SAFETY: the descriptor is open as long as the file.
        self.with(|file| match unsafe { libc::tcdrain(file.as_raw_fd()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    }

    fn with(&self, act: impl FnOnce(&mut File) -> io::Result<()>) -> Outcome<()> {
        let mut file = self
            .file
            .lock()
            .map_err(|_| "a thread of it died".to_owned())?;
        act(&mut file).map_err(|error| format!("it cannot use {PATH}: {error}"))
    }
}

fn make_raw(file: &File) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: termios is plain data that tcgetattr fills before it is used.
    let status = unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        match libc::tcgetattr(fd, &mut settings) {
            0 => {
                libc::cfmakeraw(&mut settings);
                libc::tcsetattr(fd, libc::TCSANOW, &settings)
            }
            failed => failed,
        }
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
