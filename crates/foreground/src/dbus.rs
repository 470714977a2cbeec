//! A service with a name on a D-Bus, for programs with an event loop of their own and few calls.
//!
//! It is written out here because it is little. The crates for it bring an executor of their own,
//! or end the process when a write is cut short.

mod message;

pub use message::{Body, Kind, Message};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Name of the bus itself, as a sender and as a destination.
pub const BUS: &str = "org.freedesktop.DBus";

const INTROSPECTABLE: &str = "org.freedesktop.DBus.Introspectable";
const PEER: &str = "org.freedesktop.DBus.Peer";

/// Flag and result of `RequestName`: do not wait for the name, and the name was given.
const DO_NOT_QUEUE: u32 = 4;
const PRIMARY_OWNER: u32 = 1;

/// Largest message that is read, in bytes; longer ones are skipped. No call that is understood is
/// longer.
const MOST_BYTES: u64 = 64 << 10;

/// Time to wait for a reply of the bus. A bus that takes longer hangs, and is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// The interface that a program offers.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Name on the bus, which is also the name of its only interface.
    pub name: &'static str,
    /// Methods of the interface in the XML of introspection.
    pub methods: &'static str,
}

/// A connection to a bus that has a name, or has requested it.
#[derive(Debug)]
pub struct Service {
    offer: Offer,
    stream: UnixStream,
    serial: u32,
    /// Serial of the request for the name; 0 without one.
    name_question: u32,
    /// Serials of calls to others than the bus, which answer once.
    called: BTreeSet<u32>,
    received: Vec<u8>,
    /// Number of bytes still to skip of a message that is too long.
    passing: u64,
}

impl Service {
    /// Connects to the bus at `socket` and requests the name; `None` if there is no bus.
    ///
    /// # Errors
    /// The system's error. A refusal by the bus comes with [`Self::messages`].
    pub fn connect(socket: &Path, offer: Offer) -> io::Result<Option<Self>> {
        let Some((mut service, _)) = Self::connect_unnamed(socket, offer)? else {
            return Ok(None);
        };
        let name = Body::Name(offer.name.to_owned(), DO_NOT_QUEUE);
        service.name_question = service.ask("RequestName", name)?;
        Ok(Some(service))
    }

    /// As [`Service::connect`], with the name only that the bus gives to all. It is in the reply to the
    /// question whose serial comes with the service.
    ///
    /// # Errors
    /// The system's error.
    pub fn connect_unnamed(socket: &Path, offer: Offer) -> io::Result<Option<(Self, u32)>> {
        let stream = match UnixStream::connect(socket) {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut service = Service {
            offer,
            stream,
            serial: 0,
            name_question: 0,
            called: BTreeSet::new(),
            received: Vec::new(),
            passing: 0,
        };
        service.authenticate()?;
        let hello = service.ask("Hello", Body::Empty)?;
        Ok(Some((service, hello)))
    }

    /// Authenticates by the socket's credentials (EXTERNAL).
    fn authenticate(&mut self) -> io::Result<()> {
        let uid = rustix::process::geteuid().as_raw().to_string();
        let uid: String = uid.bytes().map(|digit| format!("{digit:02x}")).collect();
        write!(self.stream, "\0AUTH EXTERNAL {uid}\r\n")?;
        let mut answer = String::new();
        // The server sends nothing more until it gets BEGIN.
        BufReader::new(&self.stream).read_line(&mut answer)?;
        match answer.starts_with("OK ") {
            true => self.stream.write_all(b"BEGIN\r\n"),
            false => Err(io::Error::other(answer.trim_end().to_owned())),
        }
    }

    /// Descriptor that is readable when there may be messages.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Returns all calls of the interface's methods, signals of the bus, and replies to [`Self::ask`] and
    /// [`Self::call`], without waiting. Other calls are answered here.
    ///
    /// # Errors
    /// The connection is lost, or the bus refuses the name ([`ErrorKind::PermissionDenied`]).
    pub fn messages(&mut self) -> io::Result<Vec<Message>> {
        let mut messages = Vec::new();
        for message in self.received()? {
            match message.kind {
                Kind::Call => messages.extend(self.ours(message)?),
                Kind::Signal if message.sender == BUS => messages.push(message),
                Kind::Signal => {}
                _ if self.called.remove(&message.reply_serial) => messages.push(message),
                // Messages of other senders are not replies to requests from here.
                _ if message.sender != BUS => {}
                _ if message.reply_serial == self.name_question => self.has_name(&message)?,
                _ => messages.push(message),
            }
        }
        Ok(messages)
    }

    fn has_name(&self, answer: &Message) -> io::Result<()> {
        match &answer.body {
            Body::Number(PRIMARY_OWNER) => Ok(()),
            Body::Text(refused) => Err(refusal(refused.clone())),
            _ => {
                let sentence = format!("the name {} belongs to another process", self.offer.name);
                Err(refusal(sentence))
            }
        }
    }

    fn ours(&mut self, call: Message) -> io::Result<Option<Message>> {
        match (call.interface.as_str(), call.member.as_str()) {
            (INTROSPECTABLE, "Introspect") => {
                let Offer { name, methods } = self.offer;
                let node = format!(
                    "<node>\n<interface name=\"{name}\">\n{methods}</interface>\n</node>\n"
                );
                self.answer(&call, Body::Text(node))?;
            }
            (PEER, "Ping") => self.answer(&call, Body::Empty)?,
            (interface, _) if interface.is_empty() || interface == self.offer.name => {
                return Ok(Some(call));
            }
            _ => self.unknown(&call)?,
        }
        Ok(None)
    }

    /// Sends a request to the bus, and returns the serial that its reply will name.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn ask(&mut self, member: &str, body: Body) -> io::Result<u32> {
        self.send(Message {
            wants_reply: true,
            path: "/org/freedesktop/DBus".to_owned(),
            interface: BUS.to_owned(),
            member: member.to_owned(),
            destination: BUS.to_owned(),
            body,
            ..Message::new(Kind::Call)
        })
    }

    /// Calls a method of another program, (its name, an object) and (an interface, a method), and returns
    /// the serial that its reply will name.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn call(
        &mut self,
        (destination, path): (&str, &str),
        (interface, member): (&str, &str),
        body: Body,
    ) -> io::Result<u32> {
        let serial = self.send(Message {
            wants_reply: true,
            path: path.to_owned(),
            interface: interface.to_owned(),
            member: member.to_owned(),
            destination: destination.to_owned(),
            body,
            ..Message::new(Kind::Call)
        })?;
        self.called.insert(serial);
        Ok(serial)
    }

    /// Sends the result of a call.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn answer(&mut self, call: &Message, body: Body) -> io::Result<()> {
        self.reply(call, Kind::Return, "", body)
    }

    /// Sends an error, with its name and a sentence, as the reply to a call.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn refuse(&mut self, call: &Message, error: &str, sentence: String) -> io::Result<()> {
        self.reply(call, Kind::Error, error, Body::Text(sentence))
    }

    /// Replies to a call of a method that does not exist.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn unknown(&mut self, call: &Message) -> io::Result<()> {
        let sentence = format!("there is no method {} with these arguments", call.member);
        self.refuse(call, "org.freedesktop.DBus.Error.UnknownMethod", sentence)
    }

    fn reply(&mut self, call: &Message, kind: Kind, error: &str, body: Body) -> io::Result<()> {
        if !call.wants_reply {
            return Ok(());
        }
        let reply = Message {
            error: error.to_owned(),
            reply_serial: call.serial,
            destination: call.sender.clone(),
            body,
            ..Message::new(kind)
        };
        self.send(reply).map(drop)
    }

    fn send(&mut self, mut message: Message) -> io::Result<u32> {
        self.serial = self.serial.checked_add(1).unwrap_or(1);
        message.serial = self.serial;
        self.stream.write_all(&message.encode())?;
        Ok(self.serial)
    }

    /// All complete messages that have arrived; invalid ones are left out.
    fn received(&mut self) -> io::Result<Vec<Message>> {
        let mut buffer = [0; 16 << 10];
        match rustix::net::recv(&self.stream, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(io::Error::other("it has ended")),
            Ok((_, length)) => self.received.extend(&buffer[..length]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut messages = Vec::new();
        while let Some(whole) = self.whole()? {
            messages.extend(Message::decode(&whole));
        }
        Ok(messages)
    }

    /// Bytes of the next message, if all of them have arrived.
    fn whole(&mut self) -> io::Result<Option<Vec<u8>>> {
        let here = self.received.len() as u64;
        let passed = self.passing.min(here);
        self.received.drain(..passed as usize);
        self.passing -= passed;
        match Message::length(&self.received) {
            Some(0) => Err(io::Error::other("what it says is no message")),
            Some(length) if length > MOST_BYTES => {
                self.passing = length;
                self.whole()
            }
            Some(length) if length <= self.received.len() as u64 => {
                Ok(Some(self.received.drain(..length as usize).collect()))
            }
            _ => Ok(None),
        }
    }
}

fn refusal(sentence: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, sentence)
}
