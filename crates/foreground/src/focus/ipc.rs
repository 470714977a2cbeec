//! Sockets of compositors that tell of windows in JSON, with the process of each.

use crate::focus::{Error, lost, peer};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use serde_json::Value;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time to wait for a reply of a compositor. One that takes longer hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of a reply or an event.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// A connection, and the bytes of it that were not understood yet.
#[derive(Debug)]
pub(super) struct Incoming {
    stream: UnixStream,
    pub received: Vec<u8>,
}

impl Incoming {
    pub fn new(stream: UnixStream) -> Self {
        Incoming {
            stream,
            received: Vec::new(),
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub fn peer(&self) -> Option<u32> {
        peer(&self.stream)
    }

    /// Takes the bytes that have arrived, without waiting. The socket's end is an error only when nothing came
    /// before it: what did is for the caller to read first, and the next call finds the end again.
    pub fn fill(&mut self) -> Result<(), Error> {
        let known_bytes = self.received.len();
        let mut buffer = [0; 64 << 10];
        loop {
            let end = match rustix::net::recv(&self.stream, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => lost("the compositor has closed its socket"),
                Ok((_, length)) => {
                    self.received.extend(&buffer[..length]);
                    if self.received.len() > MOST_BYTES {
                        return Err(lost("it says too much at once"));
                    }
                    continue;
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(errno) => lost(errno),
            };
            return match self.received.len() > known_bytes {
                true => Ok(()),
                false => Err(end),
            };
        }
    }

    /// The next whole line.
    pub fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.received.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.received.drain(..=end).collect();
        Some(line[..end].to_vec())
    }
}

/// Path of the socket that this variable names.
pub(super) fn named(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|it| !it.is_empty())
}

/// Connects to a compositor's socket; `None` if nobody listens there, as after a session that has ended.
pub(super) fn connect(path: &Path) -> Result<Option<UnixStream>, Error> {
    use std::io::ErrorKind::{ConnectionRefused, NotFound};
    match UnixStream::connect(path) {
        Ok(stream) => {
            let set = stream.set_read_timeout(Some(PATIENCE));
            set.and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
                .map_err(lost)?;
            Ok(Some(stream))
        }
        Err(error) if matches!(error.kind(), NotFound | ConnectionRefused) => Ok(None),
        Err(error) => Err(Error::NoCompositor(error.to_string())),
    }
}

/// A text of an object; "" if there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A whole number of pixels; compositors give some as fractions.
pub(super) fn pixels(value: &Value) -> i32 {
    value.as_f64().unwrap_or_default() as i32
}

pub(super) fn pid(value: &Value) -> Option<u32> {
    let pid = value["pid"].as_u64()?;
    u32::try_from(pid).ok().filter(|it| *it != 0)
}
