//! Hyprland, by its sockets: one is asked, the other tells events (Hyprland's wiki, "IPC").

use crate::focus::area::Area;
use crate::focus::ipc::{self, Incoming, pixels, text};
use crate::focus::{Error, Focus, News, Placed, Screen, Source, beside, lost, window};
use crate::whose::{Process, Window};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// Begins of the names of events that may change the screen.
const NEWS: [&str; 13] = [
    "activespecial",
    "activewindow",
    "changefloatingmode",
    "closewindow",
    "focusedmon",
    "fullscreen",
    "minimized",
    "monitor",
    "movewindow",
    "moveworkspace",
    "openwindow",
    "pin",
    "workspace",
];

/// A session of Hyprland.
#[derive(Debug)]
pub struct Hyprland {
    socket: PathBuf,
    events: Incoming,
}

impl Hyprland {
    /// Connects to the instance that HYPRLAND_INSTANCE_SIGNATURE names; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::NoCompositor`].
    pub fn connect() -> Result<Option<Self>, Error> {
        let instance = ipc::named("HYPRLAND_INSTANCE_SIGNATURE");
        match (ipc::named("XDG_RUNTIME_DIR"), instance) {
            (Some(runtime), Some(instance)) => {
                Self::connect_to(&Path::new(&runtime).join("hypr").join(instance))
            }
            _ => Ok(None),
        }
    }

    /// As [`Hyprland::connect`], to the sockets in this directory.
    ///
    /// # Errors
    /// As [`Hyprland::connect`].
    pub fn connect_to(directory: &Path) -> Result<Option<Self>, Error> {
        let events = ipc::connect(&directory.join(".socket2.sock"))?;
        Ok(events.map(|events| Hyprland {
            socket: directory.join(".socket.sock"),
            events: Incoming::new(events),
        }))
    }

    fn ask(&self, what: &str) -> Result<Value, Error> {
        let stream = ipc::connect(&self.socket)?;
        let mut stream = stream.ok_or_else(|| lost("Hyprland has ended"))?;
        stream.write_all(what.as_bytes()).map_err(lost)?;
        let mut reply = Vec::new();
        let most = ipc::MOST_BYTES as u64;
        stream.take(most).read_to_end(&mut reply).map_err(lost)?;
        serde_json::from_slice(&reply).map_err(lost)
    }
}

impl Source for Hyprland {
    fn name(&self) -> &'static str {
        "Hyprland's sockets"
    }

    fn compositor(&self) -> Option<u32> {
        self.events.peer()
    }

    fn now(&mut self) -> Result<Screen, Error> {
        let active = self.ask("j/activewindow")?;
        let clients = self.ask("j/clients")?;
        let monitors = self.ask("j/monitors")?;
        Ok(screen(&active, &clients, &monitors))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.events.fd()
    }

    fn news(&mut self) -> Result<News, Error> {
        self.events.fill()?;
        let mut news = false;
        while let Some(line) = self.events.line() {
            news |= NEWS.iter().any(|it| line.starts_with(it.as_bytes()));
        }
        Ok(News::of_change(news))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn screen(active: &Value, clients: &Value, monitors: &Value) -> Screen {
    if ipc::pid(active).is_none() && text(active, "class").is_empty() {
        return Screen {
            focus: Focus::Nobody,
            beside: Vec::new(),
        };
    }
    let focused = window_of(active);
    let workspaces: Vec<_> = list(monitors)
        .flat_map(|it| [&it["activeWorkspace"]["id"], &it["specialWorkspace"]["id"]])
        .filter_map(Value::as_i64)
        .filter(|it| *it != 0)
        .collect();
    let is_shown = |client: &&Value| {
        let workspace = client["workspace"]["id"].as_i64();
        let is_there = client["mapped"] != false && client["hidden"] != true;
        is_there
            && (client["pinned"] == true || workspace.is_some_and(|it| workspaces.contains(&it)))
    };
    let mut shown: Vec<_> = list(clients).filter(is_shown).collect();
    shown.sort_by_key(|client| {
        let is_full = client["fullscreen"] == true || client["fullscreen"].as_i64() > Some(0);
        let last_focus = client["focusHistoryID"].as_i64().unwrap_or(i64::MAX);
        (
            is_full,
            client["floating"] == true,
            std::cmp::Reverse(last_focus),
        )
    });
    let placed = shown.into_iter().map(|client| Placed {
        window: window_of(client),
        area: Area {
            x: pixels(&client["at"][0]),
            y: pixels(&client["at"][1]),
            width: pixels(&client["size"][0]),
            height: pixels(&client["size"][1]),
        },
    });
    let placed: Vec<_> = placed.collect();
    Screen {
        beside: beside(&placed, &focused, whole(monitors)),
        focus: Focus::Window(focused),
    }
}

fn window_of(client: &Value) -> Window {
    // An X11 client says itself which process it is.
    let process = ipc::pid(client).map(match client["xwayland"] == true {
        true => Process::ClaimedPid,
        false => Process::Pid,
    });
    window(
        process,
        [text(client, "class"), text(client, "initialClass")],
    )
}

/// The rectangle around all monitors.
fn whole(monitors: &Value) -> Area {
    let (mut left, mut top, mut right, mut bottom) = (i32::MAX, i32::MAX, i32::MIN, i32::MIN);
    for monitor in list(monitors) {
        let scale = monitor["scale"]
            .as_f64()
            .filter(|it| *it > 0.0)
            .unwrap_or(1.0);
        let size = |key: &str| (monitor[key].as_f64().unwrap_or_default() / scale).round() as i32;
        let (mut width, mut height) = (size("width"), size("height"));
        // Odd transforms turn the monitor by a quarter.
        if monitor["transform"].as_i64().is_some_and(|it| it % 2 == 1) {
            std::mem::swap(&mut width, &mut height);
        }
        let (x, y) = (pixels(&monitor["x"]), pixels(&monitor["y"]));
        left = left.min(x);
        top = top.min(y);
        right = right.max(x + width);
        bottom = bottom.max(y + height);
    }
    Area {
        x: left,
        y: top,
        width: right.saturating_sub(left).max(0),
        height: bottom.saturating_sub(top).max(0),
    }
}
