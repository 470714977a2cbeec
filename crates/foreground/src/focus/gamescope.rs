//! gamescope, the compositor of handhelds. It runs an X server for Steam and others for games, and is the
//! window manager of all. Before 3.16.25 no server has an active window, and later each has its own.
//! But on the first server's root window gamescope tells the one with the focus of all:
//!
//! | property | words |
//! |---|---|
//! | `GAMESCOPE_FOCUSED_WINDOW` | the window; absent without one |
//! | `GAMESCOPE_FOCUSED_APP` | Steam's number of its app |
//! | `GAMESCOPE_FOCUSABLE_WINDOWS` | window, app and process of each window on any server |
//! | `GAMESCOPE_FOCUS_DISPLAY` | name of its server |
//!
//! Numbers of windows repeat on several servers, but those of an app are on one.

use crate::focus::x11::{atom, words};
use crate::focus::{Focus, window};
use crate::whose::Process;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};
use x11rb::rust_connection::RustConnection;

pub(super) const NAME: &str = "gamescope (GAMESCOPE_FOCUSED_WINDOW)";

/// Steam's own number for its client.
const STEAM: u32 = 769;

/// Atoms of the properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gamescope {
    window: u32,
    app: u32,
    windows: u32,
    display: u32,
}

impl Gamescope {
    pub fn new(connection: &RustConnection) -> Result<Self, ReplyError> {
        Ok(Gamescope {
            window: atom(connection, "GAMESCOPE_FOCUSED_WINDOW")?,
            app: atom(connection, "GAMESCOPE_FOCUSED_APP")?,
            windows: atom(connection, "GAMESCOPE_FOCUSABLE_WINDOWS")?,
            display: atom(connection, "GAMESCOPE_FOCUS_DISPLAY")?,
        })
    }

    /// Whether it manages this server, by a property that it always sets.
    pub fn is_there(&self, connection: &RustConnection, root: u32) -> Result<bool, ReplyError> {
        let properties = connection.list_properties(root)?.reply()?.atoms;
        Ok(properties.contains(&self.windows) || properties.contains(&self.display))
    }

    pub fn tells_by(&self, atom: u32) -> bool {
        [self.window, self.app, self.windows, self.display].contains(&atom)
    }

    pub fn focus(&self, connection: &RustConnection, root: u32) -> Result<Focus, ReplyError> {
        let read = |property| words(connection, root, property, AtomEnum::CARDINAL.into());
        let Some(&focused) = read(self.window)?.first() else {
            return Ok(Focus::Nobody);
        };
        let app = read(self.app)?.first().copied();
        let windows = read(self.windows)?;
        let (triplets, _) = windows.as_chunks::<3>();
        let mut ours: Vec<_> = triplets.iter().filter(|it| it[0] == focused).collect();
        if ours.iter().any(|it| Some(it[1]) == app) {
            ours.retain(|it| Some(it[1]) == app);
        }
        let pid = match ours.as_slice() {
            [one, others @ ..] if others.iter().all(|it| it[2] == one[2]) => Some(one[2]),
            _ => None,
        };
        let app = app.or(ours.first().map(|it| it[1])).filter(|it| *it != 0);
        let name = match app {
            Some(STEAM) => "steam".to_owned(),
            Some(app) => format!("steam_app_{app}"),
            None => String::new(),
        };
        let process = pid.filter(|it| *it != 0).map(Process::Pid);
        Ok(Focus::Window(window(process, [name.as_str()])))
    }
}
