use super::*;
use crate::focus::Beside;
use crate::focus::Event;
use serde_json::json;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};

#[test]
fn a_bus_is_where_its_address_says() {
    for (address, path) in [
        ("unix:path=/run/user/1000/bus", Some("/run/user/1000/bus")),
        ("unix:path=/run/bus,guid=7", Some("/run/bus")),
        ("tcp:host=x,port=1;unix:guid=7,path=/b", Some("/b")),
        ("unix:abstract=/tmp/dbus-x", None),
        ("", None),
    ] {
        assert_eq!(socket(address).as_deref(), path.map(Path::new), "{address}");
    }
}

#[test]
fn the_desktop_is_no_window_and_what_it_covers_is_not_seen() {
    let told = |pid: u32, x: i32, width: i32| {
        json!({"pid": pid, "claimed": false, "names": ["", "a", "A"], "furniture": false,
               "x": x, "y": 0, "width": width, "height": 100})
    };
    let mut desktop = told(1, 0, 200);
    desktop["furniture"] = json!(true);
    let windows = json!([desktop, told(2, 0, 100), told(3, 50, 150)]);
    let all = |focus: &Value| {
        screen(&json!({"focus": focus, "windows": windows, "width": 200, "height": 100}))
    };
    let focused = all(&told(3, 50, 150));
    let other = window(Some(Process::Pid(2)), ["a"]);
    assert_eq!(
        focused.focus,
        Focus::Window(window(Some(Process::Pid(3)), ["a"]))
    );
    let beside: Vec<_> = focused
        .beside
        .iter()
        .map(|it| (&it.window, it.percent))
        .collect();
    assert_eq!(beside, [(&other, 25)]);
    assert_eq!(all(&desktop).focus, Focus::Desktop);
    assert_eq!(all(&Value::Null).focus, Focus::Nobody);
}

const SCREEN_SERIAL: u32 = 2;

/// A bus with KWin on it, of Plasma 6 or 5. It runs the script by telling one window, and ends.
struct Bus {
    stream: UnixStream,
    six: bool,
    asked: Vec<String>,
    script: String,
}

impl Bus {
    fn serve(mut self) -> Self {
        let mut lines = BufReader::new(self.stream.try_clone().unwrap());
        let mut auth = String::new();
        lines.read_line(&mut auth).unwrap();
        self.stream.write_all(b"OK 1234\r\n").unwrap();
        auth.clear();
        lines.read_line(&mut auth).unwrap();
        assert_eq!(auth, "BEGIN\r\n");
        let mut bytes: VecDeque<u8> = lines.buffer().to_vec().into();
        loop {
            while let Some(message) = next_message(&mut bytes) {
                if self.answer(&message) {
                    return self;
                }
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return self,
                Ok(length) => bytes.extend(&buffer[..length]),
            }
        }
    }

    fn send(&mut self, message: &Message) {
        self.stream.write_all(&message.encode()).unwrap();
    }

    /// Whether the session is over with it.
    fn answer(&mut self, asked: &Message) -> bool {
        if (asked.kind, asked.reply_serial) == (Kind::Return, SCREEN_SERIAL) {
            let names = [KWIN, ":1.2", ""].map(str::to_owned).to_vec();
            self.send(&Message {
                serial: 3,
                path: "/org/freedesktop/DBus".to_owned(),
                interface: crate::dbus::BUS.to_owned(),
                member: "NameOwnerChanged".to_owned(),
                sender: crate::dbus::BUS.to_owned(),
                body: Body::Texts(names),
                ..Message::new(Kind::Signal)
            });
            return false;
        }
        self.asked.push(asked.member.clone());
        let (kind, body) = match (asked.member.as_str(), asked.path.as_str(), &asked.body) {
            ("Hello", ..) => (Kind::Return, Body::Text(":1.7".to_owned())),
            ("GetConnectionUnixProcessID", ..) => (Kind::Return, Body::Number(4711)),
            ("loadScript", "/Scripting", Body::Texts(texts)) => {
                assert_eq!(texts[1], "frontrow-test");
                self.script = std::fs::read_to_string(&texts[0]).unwrap();
                (Kind::Return, Body::Number(3))
            }
            ("run", "/Scripting/Script3", _) if self.six => (Kind::Return, Body::Empty),
            ("run", "/3", _) if !self.six => (Kind::Return, Body::Empty),
            ("run", ..) => (Kind::Error, Body::Text("no such object".to_owned())),
            _ => (Kind::Return, Body::Empty),
        };
        // Nobody waits for the answer to the last call.
        if asked.member == "unloadScript" && self.asked.iter().any(|it| it == "run") {
            return true;
        }
        let runs = asked.member == "run" && kind == Kind::Return;
        let sender = if asked.destination == crate::dbus::BUS {
            crate::dbus::BUS
        } else {
            ":1.2"
        };
        self.send(&Message {
            serial: 1,
            reply_serial: asked.serial,
            sender: sender.to_owned(),
            body,
            ..Message::new(kind)
        });
        if runs {
            let window = json!({"pid": 9, "claimed": true, "names": ["org.game"], "x": 0, "y": 0,
                                "width": 100, "height": 100});
            let text = json!({"focus": window, "windows": [window], "width": 100, "height": 100});
            self.send(&Message {
                wants_reply: true,
                serial: SCREEN_SERIAL,
                path: "/org/frontrow/Focus1".to_owned(),
                interface: OFFER.name.to_owned(),
                member: "Screen".to_owned(),
                sender: ":1.2".to_owned(),
                body: Body::Text(text.to_string()),
                ..Message::new(Kind::Call)
            });
        }
        false
    }
}

fn next_message(bytes: &mut VecDeque<u8>) -> Option<Message> {
    let length = Message::length(bytes.make_contiguous())? as usize;
    if bytes.len() < length {
        return None;
    }
    let message: Vec<u8> = bytes.drain(..length).collect();
    Message::decode(&message)
}

fn bus(path: &Path, six: bool) -> JoinHandle<Bus> {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let bus = Bus {
            stream,
            six,
            asked: Vec::new(),
            script: String::new(),
        };
        bus.serve()
    })
}

#[test]
fn kwin_loads_the_script_and_the_window_that_has_the_focus_already_is_told() {
    for six in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bus");
        let bus = bus(&path, six);
        let mut kwin = KWin::connect_to(&path, "frontrow-test").unwrap();
        assert_eq!(kwin.compositor(), Some(4711));
        let game = window(Some(Process::ClaimedPid(9)), ["org.game"]);
        let screen = Screen {
            focus: Focus::Window(game),
            beside: Vec::<Beside>::new(),
        };
        assert_eq!(
            kwin.wait(&Awaited::default()).unwrap(),
            Event::Screen(screen)
        );
        let ended = kwin.wait(&Awaited::default()).unwrap_err();
        assert!(matches!(ended, Error::Lost(_)), "{ended}");
        drop(kwin);
        let bus = bus.join().unwrap();
        assert!(
            bus.script.starts_with("const TELL = \":1.7\";"),
            "{}",
            bus.script
        );
        let scripts: Vec<_> = bus
            .asked
            .iter()
            .filter(|it| it.contains("Script"))
            .collect();
        assert_eq!(scripts, ["unloadScript", "loadScript", "unloadScript"]);
    }
}

#[test]
fn a_bus_without_kwin_is_named() {
    let error = KWin::connect_to(Path::new("/nowhere/bus"), "frontrow-test").unwrap_err();
    assert!(matches!(error, Error::NoBus(_)), "{error}");
    assert!(error.to_string().contains("DBUS_SESSION_BUS_ADDRESS"));
}
