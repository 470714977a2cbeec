//! How `frontrow fg` and the daemon talk: one request and one reply, a line of JSON each,
//! through `/run/frontrowd/fg.sock`. Anybody may ask; who may have what done is for the daemon
//! to say, by the peer's user.

use crate::error::Kind;
use crate::keeper::{Order, Status};
use crate::{Error, Grounds};
use knobs::{Change, Restored};
use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SOCKET: &str = "run/frontrowd/fg.sock";

/// No request is longer.
const REQUEST_BYTES: usize = 64 << 10;

/// Those who have connected and said nothing yet; of one user, and of all. The oldest has to
/// leave.
const WAITING_OF_ONE: usize = 8;
const WAITING: usize = 128;

/// Those who are let in at once, before anything else is looked at again.
const ACCEPTED: usize = 64;

/// The daemon answers within milliseconds, unless memory is very short.
const PATIENCE: Duration = Duration::from_secs(30);

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// To have this so.
    Set(Order),
    /// To know.
    Status,
    /// To have everything as it was.
    Release,
}

/// What the daemon says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is so.
    Set {
        /// Who is where now.
        grounds: Grounds,
        /// What that took.
        changes: Vec<Change>,
    },
    /// How it is.
    Status(Box<Status>),
    /// What everything was put back to.
    Released(Vec<(Change, Restored)>),
    /// It is not done.
    Failed {
        /// For the exit code.
        kind: Kind,
        /// What went wrong and what to do, as one sentence for a person.
        sentence: String,
    },
}

/// Asks the daemon; `None` if there is none.
///
/// # Errors
/// What the daemon says, or [`Error::Socket`] or [`Error::Garbled`].
pub fn ask(root: &Path, request: &Request) -> Result<Option<Reply>, Error> {
    let path = root.join(SOCKET);
    let failed = |source| Error::Socket {
        path: path.clone(),
        source,
    };
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.write_all(&line(request)).map_err(failed)?;
    let mut reply = String::new();
    BufReader::new(stream)
        .read_line(&mut reply)
        .map_err(failed)?;
    match serde_json::from_str(&reply).map_err(|_| Error::Garbled)? {
        Reply::Failed { kind, sentence } => Err(Error::Daemon { kind, sentence }),
        reply => Ok(Some(reply)),
    }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused
    )
}

fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The daemon's end. It waits for nobody.
#[derive(Debug)]
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
    waiting: Vec<Peer>,
}

/// Somebody who has connected.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: UnixStream,
    /// By the kernel's word.
    pub uid: u32,
    received: Vec<u8>,
}

impl Server {
    /// # Errors
    /// [`Error::Running`] or [`Error::Socket`].
    pub fn bind(root: &Path) -> Result<Self, Error> {
        let path = root.join(SOCKET);
        if UnixStream::connect(&path).is_ok() {
            return Err(Error::Running);
        }
        let listener = listen(&path).map_err(|source| Error::Socket {
            path: path.clone(),
            source,
        })?;
        Ok(Server {
            listener,
            path,
            waiting: Vec::new(),
        })
    }

    /// All that may become readable.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.waiting.iter().map(|peer| peer.stream.as_fd());
        [self.listener.as_fd()].into_iter().chain(peers)
    }

    /// Those who have said what they want. Whoever says nothing intelligible is left.
    pub fn requests(&mut self) -> Vec<(Peer, Request)> {
        for _ in 0..ACCEPTED {
            let Ok((stream, _)) = self.listener.accept() else {
                break;
            };
            let Some(peer) = Peer::new(stream) else {
                continue;
            };
            self.make_room(peer.uid);
            self.waiting.push(peer);
        }
        let mut requests = Vec::new();
        let mut waiting = Vec::new();
        for mut peer in self.waiting.drain(..) {
            match peer.hear() {
                Heard::Request(request) => requests.push((peer, request)),
                Heard::NotYet => waiting.push(peer),
                Heard::Nonsense => {}
            }
        }
        self.waiting = waiting;
        requests
    }
}

impl Server {
    /// For one more of this user's.
    fn make_room(&mut self, uid: u32) {
        let of_one = self.waiting.iter().filter(|peer| peer.uid == uid).count();
        let oldest = match of_one >= WAITING_OF_ONE {
            true => self.waiting.iter().position(|peer| peer.uid == uid),
            false => (self.waiting.len() >= WAITING).then_some(0),
        };
        if let Some(oldest) = oldest {
            self.waiting.remove(oldest);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whoever comes now finds nobody; a socket that is left says the same.
        let _ = fs::remove_file(&self.path);
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // Others come in, and put nothing there: the journal is in it, too.
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path.parent().unwrap_or(path))?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o666))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

enum Heard {
    Request(Request),
    NotYet,
    Nonsense,
}

impl Peer {
    /// `None` if it has left again.
    fn new(stream: UnixStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        let uid = socket_peercred(&stream).ok()?.uid.as_raw();
        Some(Peer {
            stream,
            uid,
            received: Vec::new(),
        })
    }

    fn hear(&mut self) -> Heard {
        let mut buffer = [0; 4 << 10];
        while self.received.len() < REQUEST_BYTES && !self.received.ends_with(b"\n") {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Heard::Nonsense,
                Ok(length) => self.received.extend(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::NotYet,
                Err(_) => return Heard::Nonsense,
            }
        }
        match serde_json::from_slice(&self.received) {
            Ok(request) => Heard::Request(request),
            Err(_) => Heard::Nonsense,
        }
    }

    /// A reply fits into the socket; one who does not wait for it is left.
    pub fn reply(mut self, reply: &Reply) {
        let _ = self.stream.write_all(&line(reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A request that is right, one that is nearly, and none at all.
    fn message() -> impl Strategy<Value = Vec<u8>> {
        let path = prop_oneof![Just("/a/b.scope".to_owned()), ".{0,40}"];
        let set = (prop::collection::vec(path, 0..4), any::<u32>()).prop_map(|(paths, percent)| {
            let visible = paths
                .iter()
                .map(|it| serde_json::json!({"cgroup": it, "percent": percent}));
            let visible: Vec<_> = visible.collect();
            let order = serde_json::json!({"front": paths, "visible": visible, "behind": paths});
            serde_json::json!({ "set": order }).to_string().into_bytes()
        });
        let deep = (1..REQUEST_BYTES).prop_map(|depth| vec![b'['; depth]);
        prop_oneof![
            4 => set,
            1 => Just(b"\"status\"".to_vec()),
            1 => Just(b"\"release\"".to_vec()),
            2 => prop::collection::vec(any::<u8>(), 0..300),
            1 => deep,
        ]
    }

    /// What several send, cut somewhere, ended by a newline or not.
    fn peers() -> impl Strategy<Value = Vec<(Vec<u8>, bool)>> {
        let cut = (
            message(),
            any::<prop::sample::Index>(),
            any::<bool>(),
            any::<bool>(),
        );
        let one = cut.prop_map(|(mut message, at, is_cut, is_ended)| {
            if is_cut && !message.is_empty() {
                message.truncate(at.index(message.len()));
            }
            if is_ended {
                message.push(b'\n');
            }
            (message, is_ended)
        });
        prop::collection::vec(one, 1..20)
    }

    proptest! {
        #[test]
        fn whatever_is_sent_the_next_one_is_heard(peers in peers()) {
            let root = tempfile::tempdir_in("/dev/shm")
                .unwrap_or_else(|_| tempfile::tempdir().unwrap());
            let mut server = Server::bind(root.path()).unwrap();
            let path = root.path().join(SOCKET);
            let mut clients = Vec::new();
            for (message, _) in &peers {
                let mut client = UnixStream::connect(&path).unwrap();
                client.set_nonblocking(true).unwrap();
                // More than a socket takes at once is cut short.
                let _ = client.write(message);
                clients.push(client);
                for (_, request) in server.requests() {
                    if let Request::Set(order) = request {
                        for cgroup in order.front.iter().chain(&order.behind) {
                            let path = cgroup.path();
                            prop_assert!(path.bytes().all(|it| it.is_ascii_graphic()), "{path}");
                            prop_assert!(!path.contains(['[', ']']) && !path.contains("/../"));
                        }
                    }
                }
                prop_assert!(server.waiting.len() <= WAITING_OF_ONE);
            }
            let mut last = UnixStream::connect(&path).unwrap();
            last.write_all(b"\"status\"\n").unwrap();
            let heard = server.requests();
            prop_assert!(heard.iter().any(|(_, request)| *request == Request::Status));
        }
    }
}
