//! A name on a D-Bus, for programs that have a loop of their own and are called now and then.
//!
//! Written out, since it is little: the crates for it bring an executor of their own, or end the
//! process where a write is cut short.

mod message;

pub use message::{Body, Kind, Message};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The bus itself, as a sender and as whom to ask.
pub const BUS: &str = "org.freedesktop.DBus";

const INTROSPECTABLE: &str = "org.freedesktop.DBus.Introspectable";
const PEER: &str = "org.freedesktop.DBus.Peer";

/// Of the flags of `RequestName`: not to wait for it.
const DO_NOT_QUEUE: u32 = 4;
const PRIMARY_OWNER: u32 = 1;

/// No call that is understood is longer; the rest of a longer one is passed over.
const MOST_BYTES: u64 = 64 << 10;

/// The bus answers at once, unless it hangs; then it is done without.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a program offers.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Its name on the bus, which is its only interface's, too.
    pub name: &'static str,
    /// The methods, as introspection tells them (XML).
    pub methods: &'static str,
}

/// A connection that has a name, or is about to have it.
#[derive(Debug)]
pub struct Service {
    offer: Offer,
    stream: UnixStream,
    serial: u32,
    /// Whether the name may be had.
    name_question: u32,
    received: Vec<u8>,
    /// Bytes of a message that is too long, still to come.
    passing: u64,
}

impl Service {
    /// Asks the bus at `socket` for the name; `None` where there is no bus.
    ///
    /// # Errors
    /// What the system refuses; the bus's refusal comes with the messages.
    pub fn connect(socket: &Path, offer: Offer) -> io::Result<Option<Self>> {
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
            received: Vec::new(),
            passing: 0,
        };
        service.authenticate()?;
        service.ask("Hello", Body::Empty)?;
        let name = Body::Name(offer.name.to_owned(), DO_NOT_QUEUE);
        service.name_question = service.ask("RequestName", name)?;
        Ok(Some(service))
    }

    /// By the socket's credentials.
    fn authenticate(&mut self) -> io::Result<()> {
        let uid = rustix::process::geteuid().as_raw().to_string();
        let uid: String = uid.bytes().map(|digit| format!("{digit:02x}")).collect();
        write!(self.stream, "\0AUTH EXTERNAL {uid}\r\n")?;
        let mut answer = String::new();
        // It says nothing more until it is told to begin.
        BufReader::new(&self.stream).read_line(&mut answer)?;
        match answer.starts_with("OK ") {
            true => self.stream.write_all(b"BEGIN\r\n"),
            false => Err(io::Error::other(answer.trim_end().to_owned())),
        }
    }

    /// Readable when there may be messages.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Calls of the interface's methods, and the bus's answers to [`Self::ask`]: all that is there.
    /// What else is called is answered. It waits for nobody.
    ///
    /// # Errors
    /// The bus is gone, or refuses the name ([`ErrorKind::PermissionDenied`]).
    pub fn messages(&mut self) -> io::Result<Vec<Message>> {
        let mut messages = Vec::new();
        for message in self.received()? {
            match message.kind {
                Kind::Call => messages.extend(self.ours(message)?),
                Kind::Signal => {}
                // Of others there are no answers.
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
                let sentence = format!("{} is somebody else's", self.offer.name);
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

    /// Asks the bus, and gives the serial that its answer will name.
    ///
    /// # Errors
    /// The bus is gone.
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

    /// Answers a call.
    ///
    /// # Errors
    /// The bus is gone.
    pub fn answer(&mut self, call: &Message, body: Body) -> io::Result<()> {
        self.reply(call, Kind::Return, "", body)
    }

    /// Refuses a call, by an error's name and with a sentence.
    ///
    /// # Errors
    /// The bus is gone.
    pub fn refuse(&mut self, call: &Message, error: &str, sentence: String) -> io::Result<()> {
        self.reply(call, Kind::Error, error, Body::Text(sentence))
    }

    /// Refuses a call of a method that there is not.
    ///
    /// # Errors
    /// The bus is gone.
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

    /// All whole messages that are there; those that are not understood are left out.
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

    /// The next message's bytes, if all of them are there.
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
