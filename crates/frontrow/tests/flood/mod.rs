//! A user who calls the daemon by D-Bus without end: on as many connections as the bus lets one
//! user have, and with more calls than anybody needs.

use crate::running::NOBODY;
use crate::system::System;
use rustix::thread::set_thread_uid;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A bus lets a user have 256 unless it is told otherwise. Who asks for more keeps the bus itself
/// from taking others' connections, for as long as its own configuration says.
const MOST_CONNECTIONS: usize = 250;

/// More than the daemon lets wait on one connection.
const AT_ONCE: u32 = 4;

/// Two thousand calls a second, a hundred times a user's due. Very many more, and the bus itself
/// has time for nobody.
const PAUSE: Duration = Duration::from_millis(2);

const BUS: &str = "org.freedesktop.DBus";
const OURS: &str = "org.frontrow.Foreground1";

/// What came of it.
#[derive(Debug, Default)]
pub struct Flooded {
    pub connections: usize,
    pub calls: u64,
    /// By the daemon: more than two calls at once on a connection, or than a user has.
    pub refused: usize,
}

/// Until `stop`; `connected` becomes true before the first call. Only root can be somebody else.
pub fn flood(system: &System, connected: &AtomicBool, stop: &AtomicBool) -> Flooded {
    set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).unwrap();
    let socket = system.root().join("run/dbus/system_bus_socket");
    let mut flooded = Flooded::default();
    let mut streams = Vec::new();
    while streams.len() < MOST_CONNECTIONS {
        match UnixStream::connect(&socket).and_then(authenticate) {
            Ok(stream) => streams.push(stream),
            Err(_) => break,
        }
    }
    flooded.connections = streams.len();
    connected.store(true, Ordering::Relaxed);
    let calls: Vec<u8> = (2..2 + AT_ONCE)
        .flat_map(|serial| call(serial, OURS, "Status"))
        .collect();
    while !stop.load(Ordering::Relaxed) {
        for stream in &mut streams {
            // What is written in part only makes the bus end the connection.
            if stream
                .write(&calls)
                .is_ok_and(|length| length == calls.len())
            {
                flooded.calls += u64::from(AT_ONCE);
            }
            flooded.refused += refusals(stream);
            thread::sleep(PAUSE);
        }
    }
    flooded
}

fn authenticate(mut stream: UnixStream) -> std::io::Result<UnixStream> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let uid: String = NOBODY
        .to_string()
        .bytes()
        .map(|it| format!("{it:02x}"))
        .collect();
    write!(stream, "\0AUTH EXTERNAL {uid}\r\n")?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer)?;
    if !answer.starts_with("OK ") {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    stream.write_all(b"BEGIN\r\n")?;
    stream.write_all(&call(1, BUS, "Hello"))?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn refusals(stream: &mut UnixStream) -> usize {
    let mut received = vec![0; 64 << 10];
    let Ok(length) = stream.read(&mut received) else {
        return 0;
    };
    let text = String::from_utf8_lossy(&received[..length]);
    text.matches("too many calls at once").count() + text.matches("too many requests").count()
}

/// A call without arguments, as it travels (D-Bus Specification, "Message Protocol").
fn call(serial: u32, name: &str, member: &str) -> Vec<u8> {
    let path = format!("/{}", name.replace('.', "/"));
    let mut fields = Vec::new();
    for (code, kind, text) in [
        (1, b'o', path.as_str()),
        (2, b's', name),
        (3, b's', member),
        (6, b's', name),
    ] {
        fields.resize(fields.len().next_multiple_of(8), 0);
        fields.extend([code, 1, kind, 0]);
        fields.extend((text.len() as u32).to_le_bytes());
        fields.extend(text.bytes());
        fields.push(0);
    }
    let mut message = vec![b'l', 1, 0, 1];
    for number in [0, serial, fields.len() as u32] {
        message.extend(number.to_le_bytes());
    }
    message.extend(fields);
    message.resize(message.len().next_multiple_of(8), 0);
    message
}
