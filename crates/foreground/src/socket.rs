//! Protocol of `frontrow fg` and the daemon: one request and one reply, each a line of JSON,
//! through `/run/frontrowd/fg.sock` ([`sys::places`]). Any user may connect; the daemon decides by the peer's
//! credentials.

use crate::arbiter::{Order, Status};
use crate::error::Kind;
use crate::{Error, Roles};
use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::knobs::{Change, Home, Restored};

const SOCKET: &str = "fg.sock";

/// Largest request, in bytes.
const REQUEST_BYTES: usize = 64 << 10;

/// Most connections without a request, of one user and of all. The oldest is closed first.
const WAITING_OF_ONE: usize = 8;
const WAITING: usize = 128;

/// Most connections accepted in one turn of the main loop.
const ACCEPTED: usize = 64;

/// Timeout of a client; the daemon answers within milliseconds unless memory is very short.
const PATIENCE: Duration = Duration::from_secs(30);

/// Requests of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Set the foreground.
    Set(Order),
    /// Report the status.
    Status,
    /// Undo all changes.
    Release,
}

/// Replies of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The foreground was set.
    Set {
        /// Roles that are in force.
        #[serde(rename = "grounds")]
        roles: Roles,
        /// Changes that were made.
        changes: Vec<Change>,
    },
    /// Status of the daemon.
    Status(Box<Status>),
    /// Changes undone, and the result of each.
    Released(Vec<(Change, Restored)>),
    /// The request failed.
    Failed {
        /// Kind of the error, for the exit code.
        kind: Kind,
        /// The error and its remedy, in one sentence.
        sentence: String,
    },
}

fn socket(root: &Path) -> PathBuf {
    Home::Daemon.directory(root).join(SOCKET)
}

/// Sends a request to the daemon; None if no daemon runs.
///
/// # Errors
/// The daemon's error, [`Error::Socket`] or [`Error::Garbled`].
pub fn ask(root: &Path, request: &Request) -> Result<Option<Reply>, Error> {
    let path = socket(root);
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

/// A connection on which the daemon says nothing, and which ends with it; `None` if no daemon runs. The
/// daemon may close it before, if its user has many.
///
/// # Errors
/// [`Error::Socket`].
pub fn attend(root: &Path) -> Result<Option<UnixStream>, Error> {
    let path = socket(root);
    match UnixStream::connect(&path) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if is_nobody(&error) => Ok(None),
        Err(source) => Err(Error::Socket { path, source }),
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

/// The daemon's end of the socket. It never blocks.
#[derive(Debug)]
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
    waiting: Vec<Peer>,
}

/// Connection of a client.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: UnixStream,
    /// User id from SO_PEERCRED.
    pub uid: u32,
    received: Vec<u8>,
}

impl Server {
    /// # Errors
    /// [`Error::Running`] or [`Error::Socket`].
    pub fn bind(root: &Path) -> Result<Self, Error> {
        let path = socket(root);
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

    /// Descriptors to poll.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.waiting.iter().map(|peer| peer.stream.as_fd());
        [self.listener.as_fd()].into_iter().chain(peers)
    }

    /// Connections with a complete request. Those with an invalid one are closed.
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
    /// Makes room for one more connection of this user.
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
        // Later clients find no socket; a socket file that stays has the same effect.
        let _ = fs::remove_file(&self.path);
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // Other users may enter the directory, but not create files in it: the journal is there, too.
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
    /// None if the client has closed the connection.
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

    /// A reply fits into the socket's buffer; a client that does not read it is ignored.
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
            let path = socket(root.path());
            let mut clients = Vec::new();
            for (message, _) in &peers {
                let mut client = UnixStream::connect(&path).unwrap();
                client.set_nonblocking(true).unwrap();
                // More than a socket takes at once is cut short.
                let _ = client.write(message);
                clients.push(client);
                for (_, request) in server.requests() {
                    if let Request::Set(order) = request {
                        for cgroup in order.foreground.iter().chain(&order.background) {
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
