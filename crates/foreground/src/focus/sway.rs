//! sway, by its IPC (sway-ipc(7)): the tree has the process and the place of each window.

use crate::focus::area::Area;
use crate::focus::ipc::{self, Incoming, MOST_BYTES, pixels, text};
use crate::focus::{Error, Focus, News, Placed, Screen, Source, beside, lost, window};
use crate::whose::{Process, Window};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

const MAGIC: &[u8] = b"i3-ipc";

/// Magic, length and type.
const HEAD_BYTES: usize = MAGIC.len() + 8;

const SUBSCRIBE: u32 = 2;
const GET_TREE: u32 = 4;

/// Changes of a window that concern neither focus nor place.
const IDLE_CHANGES: [&str; 3] = ["title", "mark", "urgent"];

/// A session of sway.
#[derive(Debug)]
pub struct Sway {
    asking: UnixStream,
    events: Incoming,
}

impl Sway {
    /// Connects to the socket that SWAYSOCK names; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::NoCompositor`] or [`Error::Lost`].
    pub fn connect() -> Result<Option<Self>, Error> {
        match ipc::named("SWAYSOCK") {
            Some(path) => Self::connect_to(Path::new(&path)),
            None => Ok(None),
        }
    }

    /// As [`Sway::connect`], to the socket at `path`.
    ///
    /// # Errors
    /// As [`Sway::connect`].
    pub fn connect_to(path: &Path) -> Result<Option<Self>, Error> {
        let (Some(asking), Some(mut events)) = (ipc::connect(path)?, ipc::connect(path)?) else {
            return Ok(None);
        };
        ask(&mut events, SUBSCRIBE, r#"["window","workspace","output"]"#)?;
        Ok(Some(Sway {
            asking,
            events: Incoming::new(events),
        }))
    }
}

/// Sends a message and waits for its reply.
fn ask(stream: &mut UnixStream, kind: u32, body: &str) -> Result<Value, Error> {
    let mut message = MAGIC.to_vec();
    message.extend((body.len() as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(body.as_bytes());
    stream.write_all(&message).map_err(lost)?;
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head).map_err(lost)?;
    let mut body = vec![0; length(&head)?];
    stream.read_exact(&mut body).map_err(lost)?;
    serde_json::from_slice(&body).map_err(lost)
}

/// Length of the body after this head.
fn length(head: &[u8]) -> Result<usize, Error> {
    let length = head[MAGIC.len()..]
        .first_chunk()
        .map(|it| u32::from_ne_bytes(*it));
    match length {
        Some(length) if head.starts_with(MAGIC) && length as usize <= MOST_BYTES => {
            Ok(length as usize)
        }
        _ => Err(lost("what sway says is no message")),
    }
}

impl Source for Sway {
    fn name(&self) -> &'static str {
        "sway's IPC"
    }

    fn compositor(&self) -> Option<u32> {
        self.events.peer()
    }

    fn now(&mut self) -> Result<Screen, Error> {
        Ok(screen(&ask(&mut self.asking, GET_TREE, "")?))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.events.fd()
    }

    fn news(&mut self) -> Result<News, Error> {
        self.events.fill()?;
        let mut news = false;
        while let Some(length) = self.events.received.get(..HEAD_BYTES).map(length) {
            let end = HEAD_BYTES + length?;
            let Some(body) = self.events.received.get(HEAD_BYTES..end) else {
                break;
            };
            let event: Value = serde_json::from_slice(body).map_err(lost)?;
            news |= !IDLE_CHANGES.contains(&text(&event, "change"));
            self.events.received.drain(..end);
        }
        Ok(News::of_change(news))
    }
}

fn screen(tree: &Value) -> Screen {
    let (mut focused, mut windows) = (None, Vec::new());
    visit(tree, &mut focused, &mut windows);
    let Some(focused) = focused else {
        return Screen {
            focus: Focus::Nobody,
            beside: Vec::new(),
        };
    };
    Screen {
        beside: beside(&windows, &focused, area(tree)),
        focus: Focus::Window(focused),
    }
}

/// Adds visible windows, tiles before those that float above them.
fn visit(node: &Value, focused: &mut Option<Window>, windows: &mut Vec<Placed>) {
    let children = ["nodes", "floating_nodes"].map(|key| node[key].as_array());
    for child in children.into_iter().flatten().flatten() {
        visit(child, focused, windows);
    }
    let Some(pid) = ipc::pid(node) else {
        return;
    };
    // An X11 client of older versions says itself which process it is.
    let process = match text(node, "shell") {
        "xwayland" => Process::ClaimedPid(pid),
        _ => Process::Pid(pid),
    };
    let names = [
        text(node, "app_id"),
        text(node, "sandbox_app_id"),
        text(&node["window_properties"], "class"),
    ];
    let window = window(Some(process), names);
    if node["focused"] == true {
        *focused = Some(window.clone());
    }
    if node["visible"] == true {
        let area = area(node);
        windows.push(Placed { window, area });
    }
}

fn area(node: &Value) -> Area {
    let rect = &node["rect"];
    Area {
        x: pixels(&rect["x"]),
        y: pixels(&rect["y"]),
        width: pixels(&rect["width"]),
        height: pixels(&rect["height"]),
    }
}
