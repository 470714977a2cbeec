//! `org.frontrow.Foreground1` on the system's D-Bus: for desktops that would rather call a method
//! than run a command. The bus says whose a call is (`GetConnectionUnixUser`), and no answer is
//! waited for: a call rests until that one has come.

use crate::error::Kind;
use dbus::{Body, Message, Offer, Service};
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

/// Calls that wait for the bus to say whose they are: of one connection, and of all. One user has
/// some 256 connections at most (`max_connections_per_user`), and so never all of these.
const MOST_CALLS_OF_ONE: usize = 2;
const MOST_CALLS: usize = 1024;

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// To have this process's app in front.
    SetForeground(u32),
    /// To have everything as it was.
    Release,
    /// To know.
    Status,
}

/// Somebody who has called a method.
#[derive(Debug)]
pub(crate) struct Caller {
    /// By the bus's word.
    pub uid: u32,
    call: Message,
}

/// A call, and the serial of the question whose it is.
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
    /// `None` where there is no bus.
    ///
    /// # Errors
    /// What the system refuses.
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

    /// What has been called, and by whom.
    ///
    /// # Errors
    /// The bus is gone, or refuses the name.
    pub fn calls(&mut self) -> io::Result<Vec<(Caller, Method)>> {
        let mut calls = Vec::new();
        for message in self.service.messages()? {
            match message.kind {
                dbus::Kind::Call => self.hear(message)?,
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

    /// The call that the bus has said the caller of; one who has left needs no answer.
    fn known(&mut self, answer: &Message) -> Option<(Caller, Method)> {
        let mut waiting = self.waiting.iter();
        let at = waiting.position(|it| it.question == answer.reply_serial)?;
        let Waiting { call, method, .. } = self.waiting.remove(at);
        match answer.body {
            Body::Number(uid) if answer.kind == dbus::Kind::Return => {
                Some((Caller { uid, call }, method))
            }
            _ => None,
        }
    }

    /// Says that it is done, and what was asked for.
    ///
    /// # Errors
    /// The bus is gone.
    pub fn done(&mut self, caller: &Caller, text: Option<String>) -> io::Result<()> {
        let body = text.map_or(Body::Empty, Body::Text);
        self.service.answer(&caller.call, body)
    }

    /// Says why it is not done.
    ///
    /// # Errors
    /// The bus is gone.
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
