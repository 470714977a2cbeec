//! An X server with as much of the protocol as matters here.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use x11rb::protocol::res::{
    ClientIdMask, ClientIdSpec, ClientIdValue, QueryClientIdsReply, QueryVersionReply,
};
use x11rb::protocol::xproto::{
    GetInputFocusReply, GetPropertyReply, ImageOrder, InputFocus, InternAtomReply,
    QueryExtensionReply, Screen, Setup,
};
use x11rb::x11_utils::Serialize;

const ROOT: u32 = 100;
pub const SUPPORTED: u32 = 300;
pub const ACTIVE: u32 = 301;
const RESOURCE_MAJOR: u8 = 140;

const CHANGE_WINDOW_ATTRIBUTES: u8 = 2;
const INTERN_ATOM: u8 = 16;
const GET_PROPERTY: u8 = 20;
const GET_INPUT_FOCUS: u8 = 43;
const QUERY_EXTENSION: u8 = 98;
const PROPERTY_NOTIFY: u8 = 28;
const BAD_VALUE: u8 = 2;

/// What the window manager supports, and who has the focus at each look at it: window and
/// process. A window without a process has been closed. Between two looks it is said to change.
pub struct Play {
    pub supported: Vec<u32>,
    pub focused: Vec<(u32, Option<u32>)>,
}

fn setup() -> Vec<u8> {
    let screen = Screen {
        root: ROOT,
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
    // What follows the first eight bytes, in words.
    setup.length = (setup.serialize().len() / 4 - 2) as u16;
    setup.serialize()
}

/// A display's first port (x11rb's and everybody's).
const PORTS: u16 = 6000;

/// A place for a server, and how DISPLAY names it.
pub fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, format!("127.0.0.1:{}", port - PORTS))
}

/// Plays for one client, until that leaves.
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
            focused: play.focused.into_iter().peekable(),
            supported: play.supported,
        };
        while server.serve_one() {}
    })
}

struct Server {
    client: TcpStream,
    sequence: u16,
    focused: std::iter::Peekable<std::vec::IntoIter<(u32, Option<u32>)>>,
    supported: Vec<u32>,
}

impl Server {
    /// False when the client has left.
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
            (QUERY_EXTENSION, _) => self.reply(&extension(self.sequence, &body)),
            (INTERN_ATOM, _) => self.reply(&InternAtomReply {
                sequence: self.sequence,
                length: 0,
                atom: match &body[4..] {
                    name if name.starts_with(b"_NET_ACTIVE_WINDOW") => ACTIVE,
                    _ => SUPPORTED,
                },
            }),
            (GET_PROPERTY, _) => self.property(u32::from_le_bytes(body[4..8].try_into().unwrap())),
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
            (RESOURCE_MAJOR, 4) => self.processes(),
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

    fn property(&mut self, property: u32) {
        let words = match property {
            SUPPORTED => self.supported.clone(),
            _ => vec![self.focused.peek().map_or(0, |(window, _)| *window)],
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
    }

    fn processes(&mut self) {
        match self.focused.peek().copied() {
            Some((window, Some(process))) => self.reply(&QueryClientIdsReply {
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
        self.goes_on();
    }

    /// The next one gets the focus, and the client is told; the last one keeps it.
    fn goes_on(&mut self) {
        self.focused.next();
        if self.focused.peek().is_none() {
            return;
        }
        let mut event = vec![PROPERTY_NOTIFY, 0];
        event.extend(self.sequence.to_le_bytes());
        event.extend(ROOT.to_le_bytes());
        event.extend(ACTIVE.to_le_bytes());
        event.resize(32, 0);
        self.client.write_all(&event).unwrap();
    }
}

/// There is X-Resource and nothing else.
fn extension(sequence: u16, body: &[u8]) -> QueryExtensionReply {
    QueryExtensionReply {
        sequence,
        length: 0,
        present: body[4..].starts_with(b"X-Resource"),
        major_opcode: RESOURCE_MAJOR,
        first_event: 0,
        first_error: 0,
    }
}
