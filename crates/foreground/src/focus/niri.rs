//! niri, by its socket: a stream of events that begins with the whole state (niri's wiki, "IPC"). It tells
//! no place of tiles, as columns scroll. So what is surely visible are the windows that are active on other
//! monitors, and those in the column of the one with the focus.

use crate::focus::ipc::{self, Incoming, text};
use crate::focus::{
    Awaited, Beside, Error, Focus, LEAST_PERCENT, News, Screen, Source, Woken, is_one_app, lost,
    sleep, window,
};
use crate::whose::{Process, Window};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A session of niri.
#[derive(Debug)]
pub struct Niri {
    socket: PathBuf,
    events: Incoming,
    windows: BTreeMap<u64, Value>,
    workspaces: BTreeMap<u64, Value>,
    /// Pixels of each monitor.
    monitors: BTreeMap<String, f64>,
}

impl Niri {
    /// Connects to the socket that NIRI_SOCKET names; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::NoCompositor`] or [`Error::Lost`].
    pub fn connect() -> Result<Option<Self>, Error> {
        match ipc::named("NIRI_SOCKET") {
            Some(path) => Self::connect_to(Path::new(&path)),
            None => Ok(None),
        }
    }

    /// As [`Niri::connect`], to the socket at `path`.
    ///
    /// # Errors
    /// As [`Niri::connect`].
    pub fn connect_to(path: &Path) -> Result<Option<Self>, Error> {
        let Some(stream) = ipc::connect(path)? else {
            return Ok(None);
        };
        (&stream).write_all(b"\"EventStream\"\n").map_err(lost)?;
        let mut niri = Niri {
            socket: path.to_owned(),
            events: Incoming::new(stream),
            windows: BTreeMap::new(),
            workspaces: BTreeMap::new(),
            monitors: BTreeMap::new(),
        };
        niri.begin()?;
        Ok(Some(niri))
    }

    /// Waits for the windows and workspaces that are there, which come first.
    fn begin(&mut self) -> Result<(), Error> {
        let until = Some(std::time::Instant::now() + ipc::PATIENCE);
        let (mut windows, mut workspaces) = (false, false);
        while !(windows && workspaces) {
            self.events.fill()?;
            while let Some(event) = self.event()? {
                windows |= event.get("WindowsChanged").is_some();
                workspaces |= event.get("WorkspacesChanged").is_some();
                self.take(&event)?;
            }
            let awaited = Awaited { fds: &[], until };
            if !(windows && workspaces)
                && sleep(self.events.fd(), &awaited, None)? == Woken::Awaited
            {
                return Err(lost("niri does not tell of windows"));
            }
        }
        Ok(())
    }

    fn event(&mut self) -> Result<Option<Value>, Error> {
        let line = self.events.line();
        line.map(|it| serde_json::from_slice(&it).map_err(lost))
            .transpose()
    }

    /// Follows an event; whether it may change the screen.
    fn take(&mut self, event: &Value) -> Result<bool, Error> {
        let Some((name, told)) = event.as_object().and_then(|it| it.iter().next()) else {
            return Ok(false);
        };
        match name.as_str() {
            "WindowsChanged" => self.windows = by_id(&told["windows"]),
            "WindowOpenedOrChanged" => {
                let (mut one, mut window) = (BTreeMap::new(), told["window"].clone());
                if let Some(id) = window["id"].as_u64() {
                    if window["is_focused"] == true {
                        self.focus(None);
                    }
                    one.insert(id, window.take());
                }
                self.windows.append(&mut one);
            }
            "WindowClosed" => drop(told["id"].as_u64().map(|id| self.windows.remove(&id))),
            "WindowFocusChanged" => self.focus(told["id"].as_u64()),
            "WindowLayoutsChanged" => self.lay_out(&told["changes"]),
            "WorkspacesChanged" => {
                self.workspaces = by_id(&told["workspaces"]);
                self.monitors = monitors(&self.socket)?;
            }
            "WorkspaceActivated" => self.activate(told),
            "WorkspaceActiveWindowChanged" => {
                let id = told["workspace_id"].as_u64();
                if let Some(workspace) = id.and_then(|id| self.workspaces.get_mut(&id)) {
                    workspace["active_window_id"] = told["active_window_id"].clone();
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn focus(&mut self, focused: Option<u64>) {
        for (id, window) in &mut self.windows {
            window["is_focused"] = Value::Bool(Some(*id) == focused);
        }
    }

    fn lay_out(&mut self, changes: &Value) {
        for change in changes.as_array().into_iter().flatten() {
            let id = change[0].as_u64();
            if let Some(window) = id.and_then(|id| self.windows.get_mut(&id)) {
                window["layout"] = change[1].clone();
            }
        }
    }

    fn activate(&mut self, told: &Value) {
        let active = told["id"].as_u64();
        let output = active
            .and_then(|id| self.workspaces.get(&id))
            .map(|it| it["output"].clone());
        for (id, workspace) in &mut self.workspaces {
            let is_it = Some(*id) == active;
            if is_it || Some(&workspace["output"]) == output.as_ref() {
                workspace["is_active"] = Value::Bool(is_it);
            }
            if told["focused"] == true {
                workspace["is_focused"] = Value::Bool(is_it);
            }
        }
    }

    fn screen(&self) -> Screen {
        let focused = self
            .windows
            .iter()
            .find(|(_, window)| window["is_focused"] == true);
        let Some((focused_id, focused)) = focused else {
            return Screen {
                focus: Focus::Nobody,
                beside: Vec::new(),
            };
        };
        let focus = window_of(focused);
        let all: f64 = self.monitors.values().sum();
        let mut beside: Vec<Beside> = Vec::new();
        for (id, other) in &self.windows {
            let window = window_of(other);
            let percent = 100.0 * self.pixels(other) / all.max(1.0);
            let is_seen = id != focused_id && !is_one_app(&window, &focus);
            if !is_seen || !self.is_visible(*id, other, focused) || percent < LEAST_PERCENT as f64 {
                continue;
            }
            let percent = percent.min(100.0) as u8;
            match beside.iter_mut().find(|it| is_one_app(&it.window, &window)) {
                Some(known) => known.percent = (known.percent + percent).min(100),
                None => beside.push(Beside { window, percent }),
            }
        }
        Screen {
            focus: Focus::Window(focus),
            beside,
        }
    }

    fn is_visible(&self, id: u64, window: &Value, focused: &Value) -> bool {
        if window["workspace_id"] == focused["workspace_id"] {
            let column = |window: &Value| window["layout"]["pos_in_scrolling_layout"][0].as_u64();
            return column(window).is_some() && column(window) == column(focused);
        }
        self.workspace_of(window).is_some_and(|it| {
            it["is_active"] == true && it["active_window_id"].as_u64() == Some(id)
        })
    }

    /// Size of its tile, or of its monitor where niri is too old to tell.
    fn pixels(&self, window: &Value) -> f64 {
        let size = &window["layout"]["tile_size"];
        match (size[0].as_f64(), size[1].as_f64()) {
            (Some(width), Some(height)) => width * height,
            _ => {
                let output = self.workspace_of(window).map(|it| text(it, "output"));
                let pixels = output.and_then(|it| self.monitors.get(it));
                pixels.copied().unwrap_or_default()
            }
        }
    }

    fn workspace_of(&self, window: &Value) -> Option<&Value> {
        self.workspaces.get(&window["workspace_id"].as_u64()?)
    }
}

impl Source for Niri {
    fn name(&self) -> &'static str {
        "niri's socket"
    }

    fn compositor(&self) -> Option<u32> {
        self.events.peer()
    }

    fn now(&mut self) -> Result<Screen, Error> {
        Ok(self.screen())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.events.fd()
    }

    fn news(&mut self) -> Result<News, Error> {
        self.events.fill()?;
        let mut news = false;
        while let Some(event) = self.event()? {
            news |= self.take(&event)?;
        }
        Ok(News::of_change(news))
    }
}

fn by_id(list: &Value) -> BTreeMap<u64, Value> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|it| Some((it["id"].as_u64()?, it.clone())))
        .collect()
}

fn window_of(window_told: &Value) -> Window {
    let process = ipc::pid(window_told).map(Process::Pid);
    window(process, [text(window_told, "app_id")])
}

/// Asks for the size of each monitor.
fn monitors(socket: &Path) -> Result<BTreeMap<String, f64>, Error> {
    let stream: Option<UnixStream> = ipc::connect(socket)?;
    let mut stream = stream.ok_or_else(|| lost("niri has ended"))?;
    stream.write_all(b"\"Outputs\"\n").map_err(lost)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(lost)?;
    let reply: Value = serde_json::from_str(&line).map_err(lost)?;
    let outputs = reply["Ok"]["Outputs"].as_object().into_iter().flatten();
    let sizes = outputs.filter_map(|(name, output)| {
        // A monitor that is off has no place.
        let (width, height) = (&output["logical"]["width"], &output["logical"]["height"]);
        Some((name.clone(), width.as_f64()? * height.as_f64()?))
    });
    Ok(sizes.collect())
}
