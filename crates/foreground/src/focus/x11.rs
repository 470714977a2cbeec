//! X11. The window manager writes the active window on the root window (EWMH,
//! `_NET_ACTIVE_WINDOW`). The server knows the process of each window by its socket's credentials,
//! and not by the client's word (the X-Resource extension, 1.2). The visible parts of the other
//! windows follow from their order (`_NET_CLIENT_LIST_STACKING`) and their places.

use crate::focus::area::Area;
use crate::focus::gamescope::{self, Gamescope};
use crate::focus::{Error, Focus, News, Placed, Screen, Source, beside, lost, window};
use crate::whose::{Process, Window as AppsWindow};
use std::os::fd::{AsFd, BorrowedFd};
use x11rb::connection::Connection;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::Event as XEvent;
use x11rb::protocol::res::{self, ClientIdMask, ClientIdSpec};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, MapState, Window,
};
use x11rb::rust_connection::RustConnection;

/// Number of windows that are checked; those below so many others are hardly visible.
const MOST_WINDOWS: usize = 64;

/// Longest property that is read, in 32-bit words.
const MOST_WORDS: u32 = 4096;

/// A session on an X server.
#[derive(Debug)]
pub struct X11 {
    connection: RustConnection,
    root: Window,
    atoms: Atoms,
    /// Atoms of gamescope's properties, where it is the window manager.
    gamescope: Option<Gamescope>,
    manager: Option<u32>,
}

/// Atoms of properties and of their values.
#[derive(Clone, Copy, Debug)]
struct Atoms {
    active: u32,
    stacking: u32,
    kind: u32,
    /// Types of windows that are not an app's: the desktop and docks.
    furniture: [u32; 2],
    /// The app's name in the session's D-Bus, as GTK's windows tell it.
    gtk_app: u32,
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
        let named = |name: &str| atom(&connection, name).map_err(lost);
        let atoms = Atoms {
            active: named("_NET_ACTIVE_WINDOW")?,
            stacking: named("_NET_CLIENT_LIST_STACKING")?,
            kind: named("_NET_WM_WINDOW_TYPE")?,
            furniture: [
                named("_NET_WM_WINDOW_TYPE_DESKTOP")?,
                named("_NET_WM_WINDOW_TYPE_DOCK")?,
            ],
            gtk_app: named("_GTK_APPLICATION_ID")?,
        };
        let supported = named("_NET_SUPPORTED")?;
        let check = named("_NET_SUPPORTING_WM_CHECK")?;
        let gamescope = Gamescope::new(&connection).map_err(lost)?;
        let mask = EventMask::PROPERTY_CHANGE
            | EventMask::STRUCTURE_NOTIFY
            | EventMask::SUBSTRUCTURE_NOTIFY;
        let changes = ChangeWindowAttributesAux::new().event_mask(mask);
        connection
            .change_window_attributes(root, &changes)
            .map_err(lost)?
            .check()
            .map_err(lost)?;
        let version = match res::query_version(&connection, 1, 2) {
            Ok(cookie) => cookie.reply().map_err(lost)?,
            Err(ConnectionError::UnsupportedExtension) => return Err(Error::NoProcesses),
            Err(error) => return Err(lost(error)),
        };
        if (version.server_major, version.server_minor) < (1, 2) {
            return Err(Error::NoProcesses);
        }
        let mut x11 = X11 {
            connection,
            root,
            atoms,
            gamescope: None,
            manager: None,
        };
        if gamescope.is_there(&x11.connection, root).map_err(lost)? {
            x11.gamescope = Some(gamescope);
            return Ok(x11);
        }
        let supported = x11.words(root, supported, AtomEnum::ATOM.into());
        if !supported.map_err(lost)?.contains(&atoms.active) {
            return Err(Error::NoManager);
        }
        let check = x11.words(root, check, AtomEnum::WINDOW.into());
        if let Some(check) = check.map_err(lost)?.first() {
            x11.manager = there(x11.process_of(*check)).map_err(lost)?.flatten();
        }
        Ok(x11)
    }

    /// A property of a window as 32-bit words.
    fn words(&self, window: Window, property: u32, kind: u32) -> Result<Vec<u32>, ReplyError> {
        words(&self.connection, window, property, kind)
    }

    /// A property of a window as texts, which NUL ends or separates.
    fn texts(&self, window: Window, property: u32) -> Result<Vec<String>, ReplyError> {
        let any = AtomEnum::ANY;
        let request = self
            .connection
            .get_property(false, window, property, any, 0, MOST_WORDS)?;
        let reply = request.reply()?;
        let bytes: Vec<u8> = reply.value8().into_iter().flatten().collect();
        let texts = bytes.split(|byte| *byte == 0);
        Ok(texts
            .map(|it| String::from_utf8_lossy(it).into_owned())
            .collect())
    }

    fn screen(&self) -> Result<Screen, ReplyError> {
        let nobody = |focus| Screen {
            focus,
            beside: Vec::new(),
        };
        if let Some(gamescope) = &self.gamescope {
            return Ok(nobody(gamescope.focus(&self.connection, self.root)?));
        }
        let active = self.words(self.root, self.atoms.active, AtomEnum::WINDOW.into())?;
        let active = active.first().copied().filter(|it| *it != x11rb::NONE);
        let Some(active) = active else {
            return Ok(nobody(Focus::Nobody));
        };
        if there(self.is_furniture(active))? == Some(true) {
            return Ok(nobody(Focus::Desktop));
        }
        let Some(window) = there(self.window(active))? else {
            return Ok(nobody(Focus::Nobody));
        };
        let beside = match window.process {
            Some(_) => self.beside(&window)?,
            None => Vec::new(),
        };
        Ok(Screen {
            focus: Focus::Window(window),
            beside,
        })
    }

    /// Process and names of a window.
    fn window(&self, id: Window) -> Result<AppsWindow, ReplyError> {
        let process = self.process_of(id)?.map(Process::Pid);
        let application = self.texts(id, self.atoms.gtk_app)?;
        // The first of two is the program's name or the window's own: another app may be named so.
        let class = self.texts(id, AtomEnum::WM_CLASS.into())?;
        let names = application.iter().chain(class.get(1));
        Ok(window(process, names.map(String::as_str)))
    }

    fn is_furniture(&self, window: Window) -> Result<bool, ReplyError> {
        let kinds = self.words(window, self.atoms.kind, AtomEnum::ATOM.into())?;
        Ok(kinds.iter().any(|it| self.atoms.furniture.contains(it)))
    }

    /// Other processes with a visible window.
    fn beside(&self, focus: &AppsWindow) -> Result<Vec<super::Beside>, ReplyError> {
        let screen = self.whole()?;
        let mut windows = Vec::new();
        for id in self.stacking()? {
            // The window may have been closed meanwhile.
            let Some(Some(area)) = there(self.area(id))? else {
                continue;
            };
            if let Some(window) = there(self.window(id))?.filter(|it| it.process.is_some()) {
                windows.push(Placed { window, area });
            }
        }
        Ok(beside(&windows, focus, screen))
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
        let is_furniture = self.is_furniture(window)?;
        let (geometry, place) = (geometry.reply()?, place.reply()?);
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

    /// The server's word for the process of a window.
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
}

impl Source for X11 {
    fn name(&self) -> &'static str {
        match self.gamescope {
            Some(_) => gamescope::NAME,
            None => "X11 (_NET_ACTIVE_WINDOW)",
        }
    }

    fn compositor(&self) -> Option<u32> {
        self.manager
    }

    fn now(&mut self) -> Result<Screen, Error> {
        self.screen().map_err(lost)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.connection.stream().as_fd()
    }

    fn news(&mut self) -> Result<News, Error> {
        let mut news = News::Nothing;
        let order = [self.atoms.active, self.atoms.stacking];
        while let Some(event) = self.connection.poll_for_event().map_err(lost)? {
            let is_order = |atom| match &self.gamescope {
                Some(gamescope) => gamescope.tells_by(atom),
                None => order.contains(&atom),
            };
            news = news.max(match event {
                XEvent::PropertyNotify(it) if is_order(it.atom) => News::Screen,
                _ if self.gamescope.is_some() => News::Nothing,
                XEvent::ConfigureNotify(_) | XEvent::MapNotify(_) | XEvent::UnmapNotify(_) => {
                    News::Moving
                }
                _ => News::Nothing,
            });
        }
        Ok(news)
    }
}

pub(super) fn atom(connection: &RustConnection, name: &str) -> Result<u32, ReplyError> {
    Ok(connection
        .intern_atom(false, name.as_bytes())?
        .reply()?
        .atom)
}

/// A property of a window as 32-bit words.
pub(super) fn words(
    connection: &RustConnection,
    window: Window,
    property: u32,
    kind: u32,
) -> Result<Vec<u32>, ReplyError> {
    let request = connection.get_property(false, window, property, kind, 0, MOST_WORDS)?;
    Ok(request.reply()?.value32().into_iter().flatten().collect())
}

/// `None` if the window was closed meanwhile; the next event tells of that.
fn there<T>(reply: Result<T, ReplyError>) -> Result<Option<T>, ReplyError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
