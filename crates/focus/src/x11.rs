//! X11: the window manager writes the active window on the root window (EWMH,
//! `_NET_ACTIVE_WINDOW`), and the server knows each window's process (the X-Resource
//! extension, 1.2), by the socket's credentials and not by what a client says of itself.

use crate::{Error, Event, Focus, Source};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::res::{self, ClientIdMask, ClientIdSpec};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, Window,
};
use x11rb::rust_connection::RustConnection;

/// The session on an X server.
#[derive(Debug)]
pub struct X11 {
    connection: RustConnection,
    root: Window,
    active: u32,
}

impl X11 {
    /// Connects to `display`, by default to what DISPLAY names, and hears of changes from
    /// then on.
    ///
    /// # Errors
    /// [`Error::NoServer`] or [`Error::NoManager`].
    pub fn connect(display: Option<&str>) -> Result<Self, Error> {
        let no_server = |error: &dyn std::fmt::Display| Error::NoServer(error.to_string());
        let (connection, screen) =
            RustConnection::connect(display).map_err(|error| no_server(&error))?;
        let root = connection.setup().roots[screen].root;
        let named = |name: &str| -> Result<u32, ReplyError> {
            Ok(connection
                .intern_atom(false, name.as_bytes())?
                .reply()?
                .atom)
        };
        let active = named("_NET_ACTIVE_WINDOW").map_err(lost)?;
        let supported = named("_NET_SUPPORTED").map_err(lost)?;
        let changes = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        connection
            .change_window_attributes(root, &changes)
            .map_err(|error| lost(error.into()))?
            .check()
            .map_err(lost)?;
        let version = res::query_version(&connection, 1, 2).map_err(|error| lost(error.into()));
        let version = version.and_then(|cookie| cookie.reply().map_err(lost));
        if version.is_ok_and(|it| (it.server_major, it.server_minor) < (1, 2)) {
            return Err(Error::NoProcesses);
        }
        let x11 = X11 {
            connection,
            root,
            active,
        };
        match x11.words(supported, AtomEnum::ATOM.into()).map_err(lost)? {
            atoms if atoms.contains(&active) => Ok(x11),
            _ => Err(Error::NoManager),
        }
    }

    /// The root window's property, as 32-bit words.
    fn words(&self, property: u32, kind: u32) -> Result<Vec<u32>, ReplyError> {
        const MOST: u32 = 4096;
        let request = self
            .connection
            .get_property(false, self.root, property, kind, 0, MOST)?;
        let reply = request.reply()?;
        Ok(reply.value32().into_iter().flatten().collect())
    }

    fn focus(&self) -> Result<Focus, ReplyError> {
        let window = self.words(self.active, AtomEnum::WINDOW.into())?;
        let Some(&window) = window.first().filter(|&&window| window != x11rb::NONE) else {
            return Ok(Focus::Nobody);
        };
        match self.process_of(window) {
            Ok(pid) => Ok(pid.map_or(Focus::Nobody, Focus::Process)),
            // It was closed meanwhile; the next change tells who follows.
            Err(ReplyError::X11Error(_)) => Ok(Focus::Nobody),
            Err(error) => Err(error),
        }
    }

    fn process_of(&self, window: Window) -> Result<Option<u32>, ReplyError> {
        let spec = ClientIdSpec {
            client: window,
            mask: ClientIdMask::LOCAL_CLIENT_PID,
        };
        let reply = res::query_client_ids(&self.connection, &[spec])?.reply()?;
        let known = |id: &&res::ClientIdValue| id.spec.mask == ClientIdMask::LOCAL_CLIENT_PID;
        let id = reply.ids.iter().find(known);
        Ok(id.and_then(|id| id.value.first().copied()))
    }

    /// Whether an event that is here already says that the focus may have changed.
    fn has_news(&self) -> Result<bool, Error> {
        let mut news = false;
        let failed = |error: x11rb::errors::ConnectionError| lost(error.into());
        while let Some(event) = self.connection.poll_for_event().map_err(failed)? {
            news |= matches!(event, XEvent::PropertyNotify(it) if it.atom == self.active);
        }
        Ok(news)
    }
}

impl Source for X11 {
    fn now(&mut self) -> Result<Focus, Error> {
        self.focus().map_err(lost)
    }

    fn wait(&mut self, stop: BorrowedFd<'_>) -> Result<Event, Error> {
        loop {
            // An event may have come with an earlier reply, and the socket have nothing more.
            if self.has_news()? {
                return self.now().map(Event::Focus);
            }
            let stream = self.connection.stream();
            let mut fds =
                [stop, stream.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut fds, None) {
                Ok(_) if !fds[0].revents().is_empty() => return Ok(Event::Stop),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

fn lost(error: ReplyError) -> Error {
    Error::Lost(error.to_string())
}
