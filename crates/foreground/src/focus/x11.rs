//! X11. The window manager writes the active window on the root window (EWMH,
//! `_NET_ACTIVE_WINDOW`). The server knows the process of each window by its socket's credentials,
//! and not by the client's word (the X-Resource extension, 1.2). The visible parts of the other
//! windows follow from their order (`_NET_CLIENT_LIST_STACKING`) and their places.

use crate::focus::area::{Area, seen};
use crate::focus::{Beside, Error, Event, Focus, Screen, Source};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use x11rb::connection::Connection;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::res::{self, ClientIdMask, ClientIdSpec};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, MapState, Window,
};
use x11rb::rust_connection::RustConnection;

/// Smallest visible part of the screen at which an app counts as visible, in per cent.
const LEAST_PERCENT: u64 = 5;

/// Number of windows that are checked; those below so many others are hardly visible.
const MOST_WINDOWS: usize = 64;

/// Pause after a window was moved, so that its place is not queried during the move.
const COMES_TO_REST: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// A session on an X server.
#[derive(Debug)]
pub struct X11 {
    connection: RustConnection,
    root: Window,
    atoms: Atoms,
}

/// Atoms of properties and of their values.
#[derive(Clone, Copy, Debug)]
struct Atoms {
    active: u32,
    stacking: u32,
    kind: u32,
    /// Types of windows that are not an app's: the desktop and docks.
    furniture: [u32; 2],
}

/// Kinds of changes in the events that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    Nothing,
    /// A window was moved, and may be moved further.
    Moving,
    /// The focus or the order of windows has changed.
    Order,
}

impl X11 {
    /// Connects to `display`, or to the one in DISPLAY, and subscribes to changes.
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
        let atoms = Atoms {
            active: named("_NET_ACTIVE_WINDOW").map_err(lost)?,
            stacking: named("_NET_CLIENT_LIST_STACKING").map_err(lost)?,
            kind: named("_NET_WM_WINDOW_TYPE").map_err(lost)?,
            furniture: [
                named("_NET_WM_WINDOW_TYPE_DESKTOP").map_err(lost)?,
                named("_NET_WM_WINDOW_TYPE_DOCK").map_err(lost)?,
            ],
        };
        let supported = named("_NET_SUPPORTED").map_err(lost)?;
        let mask = EventMask::PROPERTY_CHANGE
            | EventMask::STRUCTURE_NOTIFY
            | EventMask::SUBSTRUCTURE_NOTIFY;
        let changes = ChangeWindowAttributesAux::new().event_mask(mask);
        connection
            .change_window_attributes(root, &changes)
            .map_err(|error| lost(error.into()))?
            .check()
            .map_err(lost)?;
        let version = match res::query_version(&connection, 1, 2) {
            Ok(cookie) => cookie.reply().map_err(lost)?,
            Err(ConnectionError::UnsupportedExtension) => return Err(Error::NoProcesses),
            Err(error) => return Err(lost(error.into())),
        };
        if (version.server_major, version.server_minor) < (1, 2) {
            return Err(Error::NoProcesses);
        }
        let x11 = X11 {
            connection,
            root,
            atoms,
        };
        let supported = x11.words(root, supported, AtomEnum::ATOM.into());
        match supported.map_err(lost)? {
            known if known.contains(&atoms.active) => Ok(x11),
            _ => Err(Error::NoManager),
        }
    }

    /// A property of a window as 32-bit words.
    fn words(&self, window: Window, property: u32, kind: u32) -> Result<Vec<u32>, ReplyError> {
        const MOST: u32 = 4096;
        let request = self
            .connection
            .get_property(false, window, property, kind, 0, MOST)?;
        let reply = request.reply()?;
        Ok(reply.value32().into_iter().flatten().collect())
    }

    fn screen(&self) -> Result<Screen, ReplyError> {
        let window = self.words(self.root, self.atoms.active, AtomEnum::WINDOW.into())?;
        let window = window.first().copied().unwrap_or(x11rb::NONE);
        let process = match window {
            x11rb::NONE => None,
            window => there(self.process_of(window))?.flatten(),
        };
        let Some(process) = process else {
            return Ok(Screen {
                focus: Focus::Nobody,
                beside: Vec::new(),
            });
        };
        Ok(Screen {
            focus: Focus::Process(process),
            beside: self.beside(window, process)?,
        })
    }

    /// Other processes with a visible window.
    fn beside(&self, active: Window, process: u32) -> Result<Vec<Beside>, ReplyError> {
        let screen = self.whole()?;
        let mut windows = Vec::new();
        for window in self.stacking()? {
            // The window may have been closed meanwhile.
            if let Some(Some(area)) = there(self.area(window))? {
                windows.push((window, area));
            }
        }
        let areas: Vec<_> = windows.iter().map(|(_, area)| *area).collect();
        let mut pixels = BTreeMap::new();
        for ((window, _), seen) in windows.iter().zip(seen(&areas, screen)) {
            if *window == active || seen == 0 {
                continue;
            }
            if let Some(Some(other)) = there(self.process_of(*window))? {
                *pixels.entry(other).or_insert(0) += seen;
            }
        }
        pixels.remove(&process);
        let all = u64::from(screen.width.unsigned_abs()) * u64::from(screen.height.unsigned_abs());
        let beside = pixels.into_iter().map(|(process, pixels)| Beside {
            whose: Focus::Process(process),
            percent: (100 * pixels / all.max(1)).min(100) as u8,
        });
        Ok(beside
            .filter(|it| u64::from(it.percent) >= LEAST_PERCENT)
            .collect())
    }

    /// Current size of the screen. The connection's setup has its size at that time only (RandR).
    fn whole(&self) -> Result<Area, ReplyError> {
        let geometry = self.connection.get_geometry(self.root)?.reply()?;
        Ok(Area {
            x: 0,
            y: 0,
            width: geometry.width.into(),
            height: geometry.height.into(),
        })
    }

    /// The highest windows, ordered from the lowest up.
    fn stacking(&self) -> Result<Vec<Window>, ReplyError> {
        let mut all = self.words(self.root, self.atoms.stacking, AtomEnum::WINDOW.into())?;
        all.drain(..all.len().saturating_sub(MOST_WINDOWS));
        Ok(all)
    }

    /// Place of a window; None if it is hidden, or not an app's.
    fn area(&self, window: Window) -> Result<Option<Area>, ReplyError> {
        let attributes = self.connection.get_window_attributes(window)?;
        let geometry = self.connection.get_geometry(window)?;
        let place = self
            .connection
            .translate_coordinates(window, self.root, 0, 0)?;
        let kinds = self.words(window, self.atoms.kind, AtomEnum::ATOM.into())?;
        let (geometry, place) = (geometry.reply()?, place.reply()?);
        let is_furniture = kinds.iter().any(|it| self.atoms.furniture.contains(it));
        if attributes.reply()?.map_state != MapState::VIEWABLE || is_furniture {
            return Ok(None);
        }
        Ok(Some(Area {
            x: place.dst_x.into(),
            y: place.dst_y.into(),
            width: geometry.width.into(),
            height: geometry.height.into(),
        }))
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

    /// Reads the events that have arrived.
    fn news(&self) -> Result<News, Error> {
        let mut news = News::Nothing;
        let failed = |error: ConnectionError| lost(error.into());
        let order = [self.atoms.active, self.atoms.stacking];
        while let Some(event) = self.connection.poll_for_event().map_err(failed)? {
            news = news.max(match event {
                XEvent::PropertyNotify(it) if order.contains(&it.atom) => News::Order,
                XEvent::ConfigureNotify(_) | XEvent::MapNotify(_) | XEvent::UnmapNotify(_) => {
                    News::Moving
                }
                _ => News::Nothing,
            });
        }
        Ok(news)
    }
}

impl Source for X11 {
    fn now(&mut self) -> Result<Screen, Error> {
        self.screen().map_err(lost)
    }

    fn wait(&mut self, stop: BorrowedFd<'_>) -> Result<Event, Error> {
        let mut moving = false;
        loop {
            // An event may have arrived with an earlier reply, so that the socket is not readable.
            match self.news()? {
                News::Order => return self.now().map(Event::Screen),
                News::Moving => moving = true,
                News::Nothing => {}
            }
            let stream = self.connection.stream();
            let mut fds =
                [stop, stream.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut fds, moving.then_some(&COMES_TO_REST)) {
                Ok(0) => return self.now().map(Event::Screen),
                Ok(_) if !fds[0].revents().is_empty() => return Ok(Event::Stop),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// `None` if the window was closed meanwhile; the next event tells of that.
fn there<T>(reply: Result<T, ReplyError>) -> Result<Option<T>, ReplyError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn lost(error: ReplyError) -> Error {
    Error::Lost(error.to_string())
}
