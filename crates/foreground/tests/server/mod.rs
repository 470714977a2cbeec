//! An X server with the parts of the protocol that the tests need.

// Each test file is a crate of its own and uses only a part of this module.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use x11rb::protocol::res::{
    ClientIdMask, ClientIdSpec, ClientIdValue, QueryClientIdsReply, QueryVersionReply,
};
use x11rb::protocol::xproto::{
    GetGeometryReply, GetInputFocusReply, GetPropertyReply, GetWindowAttributesReply, ImageOrder,
    InputFocus, InternAtomReply, ListPropertiesReply, MapState, QueryExtensionReply, Screen, Setup,
    TranslateCoordinatesReply,
};
use x11rb::x11_utils::Serialize;

const ROOT: u32 = 100;
pub const SUPPORTED: u32 = 300;
pub const ACTIVE: u32 = 301;
const STACKING: u32 = 302;
const KIND: u32 = 303;
const DOCK: u32 = 304;
const OTHER: u32 = 305;
const CHECK: u32 = 306;
const GTK_APP: u32 = 307;
const GAMESCOPE_WINDOW: u32 = 308;
const GAMESCOPE_APP: u32 = 309;
const GAMESCOPE_WINDOWS: u32 = 310;
const GAMESCOPE_DISPLAY: u32 = 311;
/// A predefined atom.
const WM_CLASS: u32 = 67;
const RESOURCE_MAJOR: u8 = 140;
const WIDTH: u16 = 1000;
const HEIGHT: u16 = 800;

const CHANGE_WINDOW_ATTRIBUTES: u8 = 2;
const GET_WINDOW_ATTRIBUTES: u8 = 3;
const GET_GEOMETRY: u8 = 14;
const TRANSLATE_COORDINATES: u8 = 40;
const INTERN_ATOM: u8 = 16;
const GET_PROPERTY: u8 = 20;
const LIST_PROPERTIES: u8 = 21;
const GET_INPUT_FOCUS: u8 = 43;
const QUERY_EXTENSION: u8 = 98;
const CONFIGURE_NOTIFY: u8 = 22;
const PROPERTY_NOTIFY: u8 = 28;
const BAD_VALUE: u8 = 2;

/// What the window manager supports, and the focus at each query: window and process. A window
/// without a process is closed. A change is announced between two queries.
#[derive(Default)]
pub struct Play {
    pub supported: Vec<u32>,
    pub focused: Vec<(u32, Option<u32>)>,
    /// All windows from the lowest up; those with the focus may be among them.
    pub windows: Vec<Shown>,
    /// The new state of a window, once its process was queried.
    pub moved: Option<Shown>,
    /// The server has no X-Resource.
    pub old: bool,
    /// Window, app and triplets at each query, where gamescope is the window manager.
    pub gamescope: Vec<(Option<u32>, u32, Vec<u32>)>,
}

/// A window and its place.
#[derive(Clone, Default)]
pub struct Shown {
    pub window: u32,
    pub process: u32,
    pub x: i16,
    pub y: i16,
    pub width: u16,
    pub height: u16,
    pub hidden: bool,
    pub docked: bool,
    /// Instance and class, each ended by NUL.
    pub class: &'static str,
}

fn setup() -> Vec<u8> {
    let screen = Screen {
        root: ROOT,
        // The screen has become larger since the setup.
        width_in_pixels: WIDTH / 2,
        height_in_pixels: HEIGHT / 2,
        ..Screen::default()
    };
    let mut setup = Setup {
        status: 1,
        protocol_major_version: 11,
        resource_id_mask: 0x1f_ffff,
        maximum_request_length: u16::MAX,
        image_byte_order: ImageOrder::LSB_FIRST,
        roots: vec![screen],
        ..Setup::default()
    };
    // The field is the length after the first eight bytes, in words of four bytes.
    setup.length = (setup.serialize().len() / 4 - 2) as u16;
    setup.serialize()
}

/// TCP port of display 0.
const PORTS: u16 = 6000;

/// A listener for a server, and its name for DISPLAY.
pub fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, format!("127.0.0.1:{}", port - PORTS))
}

/// Serves one client until it disconnects.
pub fn serve(listener: TcpListener, play: Play) -> JoinHandle<()> {
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut hello = [0; 12];
        client.read_exact(&mut hello).unwrap();
        let padded = |at: usize| u16::from_le_bytes([hello[at], hello[at + 1]]).next_multiple_of(4);
        let mut authorization = vec![0; usize::from(padded(6) + padded(8))];
        client.read_exact(&mut authorization).unwrap();
        client.write_all(&setup()).unwrap();
        let mut server = Server {
            client,
            sequence: 0,
            focused: play.focused.into(),
            supported: play.supported,
            windows: play.windows,
            moved: play.moved,
            old: play.old,
            gamescope: play.gamescope.into(),
        };
        while server.serve_one() {}
    })
}

struct Server {
    client: TcpStream,
    sequence: u16,
    focused: VecDeque<(u32, Option<u32>)>,
    supported: Vec<u32>,
    windows: Vec<Shown>,
    moved: Option<Shown>,
    old: bool,
    gamescope: VecDeque<(Option<u32>, u32, Vec<u32>)>,
}

impl Server {
    /// Serves one request; false when the client has disconnected.
    fn serve_one(&mut self) -> bool {
        let mut head = [0; 4];
        if self.client.read_exact(&mut head).is_err() {
            return false;
        }
        let words = u16::from_le_bytes([head[2], head[3]]);
        let mut body = vec![0; usize::from(words) * 4 - 4];
        self.client.read_exact(&mut body).unwrap();
        self.sequence += 1;
        match (head[0], head[1]) {
            (CHANGE_WINDOW_ATTRIBUTES, _) => {}
            (QUERY_EXTENSION, _) => self.reply(&extension(self.sequence, &body, self.old)),
            (INTERN_ATOM, _) => self.reply(&InternAtomReply {
                sequence: self.sequence,
                length: 0,
                atom: match &body[4..] {
                    name if name.starts_with(b"_NET_ACTIVE_WINDOW") => ACTIVE,
                    name if name.starts_with(b"_NET_SUPPORTED") => SUPPORTED,
                    name if name.starts_with(b"_NET_SUPPORTING_WM_CHECK") => CHECK,
                    name if name.starts_with(b"_GTK_APPLICATION_ID") => GTK_APP,
                    name if name.starts_with(b"GAMESCOPE_FOCUSED_WINDOW") => GAMESCOPE_WINDOW,
                    name if name.starts_with(b"GAMESCOPE_FOCUSED_APP") => GAMESCOPE_APP,
                    name if name.starts_with(b"GAMESCOPE_FOCUSABLE_WINDOWS") => GAMESCOPE_WINDOWS,
                    name if name.starts_with(b"GAMESCOPE_FOCUS_DISPLAY") => GAMESCOPE_DISPLAY,
                    name if name.starts_with(b"_NET_CLIENT_LIST_STACKING") => STACKING,
                    name if name.starts_with(b"_NET_WM_WINDOW_TYPE_DOCK") => DOCK,
                    name if name.starts_with(b"_NET_WM_WINDOW_TYPE_DESKTOP") => OTHER,
                    name if name.starts_with(b"_NET_WM_WINDOW_TYPE") => KIND,
                    name => panic!("the client asked for {name:?}"),
                },
            }),
            (LIST_PROPERTIES, _) => {
                let atoms = match self.gamescope.is_empty() {
                    true => vec![SUPPORTED],
                    false => vec![SUPPORTED, GAMESCOPE_WINDOWS],
                };
                self.reply(&ListPropertiesReply {
                    sequence: self.sequence,
                    length: atoms.len() as u32,
                    atoms,
                });
            }
            (GET_PROPERTY, _) if word(&body, 1) == WM_CLASS => self.class(word(&body, 0)),
            (GET_PROPERTY, _) => self.property(word(&body, 0), word(&body, 1)),
            (GET_WINDOW_ATTRIBUTES, _) => self.attributes(word(&body, 0)),
            (GET_GEOMETRY, _) => self.geometry(word(&body, 0)),
            (TRANSLATE_COORDINATES, _) => self.place(word(&body, 0)),
            (GET_INPUT_FOCUS, _) => self.reply(&GetInputFocusReply {
                revert_to: InputFocus::NONE,
                sequence: self.sequence,
                length: 0,
                focus: 0,
            }),
            (RESOURCE_MAJOR, 0) => self.reply(&QueryVersionReply {
                sequence: self.sequence,
                length: 0,
                server_major: 1,
                server_minor: 2,
            }),
            (RESOURCE_MAJOR, 4) => self.processes(word(&body, 1)),
            other => panic!("the client asked for {other:?}"),
        }
        true
    }

    fn reply<R: Serialize>(&mut self, reply: &R)
    where
        R::Bytes: AsRef<[u8]>,
    {
        let mut bytes = reply.serialize().as_ref().to_vec();
        bytes.resize(bytes.len().max(32).next_multiple_of(4), 0);
        self.client.write_all(&bytes).unwrap();
    }

    fn shown(&self, window: u32) -> Shown {
        let mut shown = self.windows.iter();
        shown
            .find(|it| it.window == window)
            .cloned()
            .unwrap_or_default()
    }

    fn class(&mut self, window: u32) {
        let value = self.shown(window).class.as_bytes().to_vec();
        self.reply(&GetPropertyReply {
            format: 8,
            sequence: self.sequence,
            length: value.len().div_ceil(4) as u32,
            type_: 31,
            bytes_after: 0,
            value_len: value.len() as u32,
            value,
        });
    }

    /// A property of gamescope's. The next state comes when the last one of this one is read.
    fn gamescope(&mut self, property: u32) -> Vec<u32> {
        let (window, app, windows) = self.gamescope.front().cloned().unwrap_or_default();
        let is_last = property == GAMESCOPE_WINDOWS || window.is_none();
        if is_last && self.gamescope.len() > 1 {
            self.gamescope.pop_front();
        }
        match property {
            GAMESCOPE_WINDOW => window.into_iter().collect(),
            GAMESCOPE_APP => vec![app],
            _ => windows,
        }
    }

    fn attributes(&mut self, window: u32) {
        let map_state = match self.shown(window).hidden {
            true => MapState::UNVIEWABLE,
            false => MapState::VIEWABLE,
        };
        self.reply(&GetWindowAttributesReply {
            sequence: self.sequence,
            length: 3,
            map_state,
            ..GetWindowAttributesReply::default()
        });
    }

    fn geometry(&mut self, window: u32) {
        let (width, height) = match window {
            ROOT => (WIDTH, HEIGHT),
            _ => {
                let shown = self.shown(window);
                (shown.width, shown.height)
            }
        };
        self.reply(&GetGeometryReply {
            sequence: self.sequence,
            width,
            height,
            ..GetGeometryReply::default()
        });
    }

    fn place(&mut self, window: u32) {
        let Shown { x, y, .. } = self.shown(window);
        self.reply(&TranslateCoordinatesReply {
            sequence: self.sequence,
            dst_x: x,
            dst_y: y,
            ..TranslateCoordinatesReply::default()
        });
    }

    fn property(&mut self, window: u32, property: u32) {
        let words = match property {
            SUPPORTED => self.supported.clone(),
            STACKING => {
                let placed = self.windows.iter().filter(|it| it.width > 0);
                placed.map(|it| it.window).collect()
            }
            KIND if self.shown(window).docked => vec![DOCK],
            KIND | CHECK | GTK_APP => Vec::new(),
            GAMESCOPE_WINDOW..=GAMESCOPE_DISPLAY => self.gamescope(property),
            _ => vec![self.focused.front().map_or(0, |(window, _)| *window)],
        };
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.reply(&GetPropertyReply {
            format: 32,
            sequence: self.sequence,
            length: words.len() as u32,
            type_: 33,
            bytes_after: 0,
            value_len: words.len() as u32,
            value,
        });
        let is_none = words == [0];
        if property == ACTIVE && is_none {
            self.goes_on();
        }
        let is_last = property == GAMESCOPE_WINDOWS || words.is_empty();
        if (GAMESCOPE_WINDOW..=GAMESCOPE_WINDOWS).contains(&property) && is_last {
            self.notify(PROPERTY_NOTIFY, GAMESCOPE_WINDOW);
        }
        // A panel's process is never asked for.
        let is_active = self.focused.front().is_some_and(|(it, _)| *it == window);
        if property == KIND && is_active && self.shown(window).docked {
            self.goes_on();
        }
    }

    fn processes(&mut self, window: u32) {
        let focused = self.focused.front().copied();
        let is_focused = focused.is_some_and(|(it, _)| it == window);
        let known = match focused {
            Some((_, process)) if is_focused => process,
            _ => Some(self.shown(window).process),
        };
        match known {
            Some(process) => self.reply(&QueryClientIdsReply {
                sequence: self.sequence,
                length: 4,
                ids: vec![ClientIdValue {
                    spec: ClientIdSpec {
                        client: window,
                        mask: ClientIdMask::LOCAL_CLIENT_PID,
                    },
                    value: vec![process],
                }],
            }),
            _ => {
                let mut error = vec![0, BAD_VALUE];
                error.extend(self.sequence.to_le_bytes());
                error.resize(32, 0);
                self.client.write_all(&error).unwrap();
            }
        }
        match is_focused {
            true => self.goes_on(),
            false => self.moves(window),
        }
    }

    /// Moves the focus to the next window and notifies the client; the last one keeps it.
    fn goes_on(&mut self) {
        if self.focused.len() > 1 {
            self.focused.pop_front();
            self.notify(PROPERTY_NOTIFY, ACTIVE);
        }
    }

    fn moves(&mut self, window: u32) {
        if let Some(moved) = self.moved.take_if(|it| it.window == window) {
            let mut windows = self.windows.iter_mut();
            *windows.find(|it| it.window == window).unwrap() = moved;
            self.notify(CONFIGURE_NOTIFY, 1);
        }
    }

    fn notify(&mut self, kind: u8, what: u32) {
        let mut event = vec![kind, 0];
        event.extend(self.sequence.to_le_bytes());
        event.extend(ROOT.to_le_bytes());
        event.extend(what.to_le_bytes());
        event.resize(32, 0);
        self.client.write_all(&event).unwrap();
    }
}

/// The `index`th 32-bit word of a request's body.
fn word(body: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(body[4 * index..][..4].try_into().unwrap())
}

/// The server has X-Resource unless it is old, and no other extension.
fn extension(sequence: u16, body: &[u8], old: bool) -> QueryExtensionReply {
    QueryExtensionReply {
        sequence,
        length: 0,
        present: !old && body[4..].starts_with(b"X-Resource"),
        major_opcode: RESOURCE_MAJOR,
        first_event: 0,
        first_error: 0,
    }
}
