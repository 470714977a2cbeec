//! `org.frontrow.Foreground1` on the system's D-Bus, for desktops that prefer a method call to a
//! command. The daemon asks the bus for the caller's user (`GetConnectionUnixUser`) without
//! blocking: the call is queued until the answer arrives.

use crate::dbus::{Body, Message, Offer, Service};
use crate::error::Kind;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

const SOCKET: &str = "run/dbus/system_bus_socket";

const OFFER: Offer = Offer {
    name: "org.frontrow.Foreground1",
    methods: r#"<method name="SetForeground"><arg name="pid" type="u" direction="in"/></method>
<method name="Release"/>
<method name="Status"><arg name="json" type="s" direction="out"/></method>
"#,
};

/// Most queued calls, of one connection and of all. A user has at most 256 connections
/// (`max_connections_per_user`), so cannot fill the queue.
const MOST_CALLS_OF_ONE: usize = 2;
const MOST_CALLS: usize = 1024;

/// Method calls of the D-Bus interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Make this process's app the foreground.
    SetForeground(u32),
    /// Undo all changes.
    Release,
    /// Report the status.
    Status,
}

/// A caller and its connection.
#[derive(Debug)]
pub(crate) struct Caller {
    /// User id, as the bus reports it.
    pub uid: u32,
    call: Message,
}

/// A queued call, and the serial number of the query for its user.
#[derive(Debug)]
struct Waiting {
    question: u32,
    call: Message,
    method: Method,
}

/// The daemon's end of a connection to the bus.
#[derive(Debug)]
pub(crate) struct Bus {
    service: Service,
    waiting: Vec<Waiting>,
}

impl Bus {
    /// Connects to the bus; None if there is none.
    ///
    /// # Errors
    /// An error of the system.
    pub fn connect(root: &Path) -> io::Result<Option<Self>> {
        let service = Service::connect(&root.join(SOCKET), OFFER)?;
        Ok(service.map(|service| Bus {
            service,
            waiting: Vec::new(),
        }))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.service.fd()
    }

    /// Calls whose users are known.
    ///
    /// # Errors
    /// The connection was lost, or the bus refuses the name.
    pub fn calls(&mut self) -> io::Result<Vec<(Caller, Method)>> {
        let mut calls = Vec::new();
        for message in self.service.messages()? {
            match message.kind {
                crate::dbus::Kind::Call => self.hear(message)?,
                // The bus greets.
                crate::dbus::Kind::Signal => {}
                _ => calls.extend(self.known(&message)),
            }
        }
        Ok(calls)
    }

    fn hear(&mut self, call: Message) -> io::Result<()> {
        let method = match (call.member.as_str(), &call.body) {
            ("SetForeground", Body::Number(pid)) => Method::SetForeground(*pid),
            ("Release", Body::Empty) => Method::Release,
            ("Status", Body::Empty) => Method::Status,
            _ => return self.service.unknown(&call),
        };
        let of_one = self
            .waiting
            .iter()
            .filter(|it| it.call.sender == call.sender);
        if of_one.count() >= MOST_CALLS_OF_ONE || self.waiting.len() >= MOST_CALLS {
            let sentence = "too many calls at once".to_owned();
            let error = "org.freedesktop.DBus.Error.LimitsExceeded";
            return self.service.refuse(&call, error, sentence);
        }
        let sender = Body::Text(call.sender.clone());
        let question = self.service.ask("GetConnectionUnixUser", sender)?;
        self.waiting.push(Waiting {
            question,
            call: call.to_be_answered(),
            method,
        });
        Ok(())
    }

    /// The call whose user the bus has reported. A caller that has disconnected needs no answer.
    fn known(&mut self, answer: &Message) -> Option<(Caller, Method)> {
        let mut waiting = self.waiting.iter();
        let at = waiting.position(|it| it.question == answer.reply_serial)?;
        let Waiting { call, method, .. } = self.waiting.remove(at);
        match answer.body {
            Body::Number(uid) if answer.kind == crate::dbus::Kind::Return => {
                Some((Caller { uid, call }, method))
            }
            _ => None,
        }
    }

    /// Answers a call with its result.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn done(&mut self, caller: &Caller, text: Option<String>) -> io::Result<()> {
        let body = text.map_or(Body::Empty, Body::Text);
        self.service.answer(&caller.call, body)
    }

    /// Answers a call with an error.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn failed(&mut self, caller: &Caller, kind: Kind, sentence: String) -> io::Result<()> {
        let name = match kind {
            Kind::Permission => "org.freedesktop.DBus.Error.AccessDenied",
            Kind::Usage => "org.freedesktop.DBus.Error.InvalidArgs",
            Kind::Unsupported => "org.freedesktop.DBus.Error.NotSupported",
            Kind::Refused | Kind::Internal => "org.freedesktop.DBus.Error.Failed",
        };
        self.service.refuse(&caller.call, name, sentence)
    }
}
