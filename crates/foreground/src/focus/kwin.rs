//! KDE's compositor. KWin tells of windows to its own panel only, but runs scripts for whoever asks on the
//! session's D-Bus. The script here calls back on that bus; it is loaded at the start, tells the windows that
//! are there, and is unloaded at the end.

use crate::dbus::{Body, Kind, Message, Offer, Service};
use crate::focus::area::Area;
use crate::focus::ipc::{PATIENCE, pixels};
use crate::focus::{
    Awaited, Error, Focus, News, Placed, Screen, Source, Woken, beside, lost, sleep, window,
};
use crate::whose::{Process, Window};
use serde_json::Value;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::NamedTempFile;

const OFFER: Offer = Offer {
    name: "org.frontrow.Focus1",
    methods: r#"<method name="Screen"><arg name="json" type="s" direction="in"/></method>
"#,
};

const SCRIPT: &str = include_str!("kwin.js");
const KWIN: &str = "org.kde.KWin";
const SCRIPTING: &str = "org.kde.kwin.Scripting";

/// A connection to KWin through the session's D-Bus, and the script that KWin runs for it.
#[derive(Debug)]
pub struct KWin {
    service: Service,
    plugin: String,
    /// KWin reads it once; it is removed at the end.
    script: NamedTempFile,
    compositor: Option<u32>,
    screen: Screen,
    news: bool,
}

impl KWin {
    /// Has KWin run the script, on the bus that DBUS_SESSION_BUS_ADDRESS names. KWin knows the script by
    /// the name `plugin`, and ends an earlier one of that name.
    ///
    /// # Errors
    /// [`Error::NoBus`].
    pub fn connect(plugin: &str) -> Result<Self, Error> {
        let address = std::env::var("DBUS_SESSION_BUS_ADDRESS").unwrap_or_default();
        let path = socket(&address).ok_or_else(|| Error::NoBus("it names no socket".to_owned()))?;
        Self::connect_to(&path, plugin)
    }

    /// As [`KWin::connect`], on the bus at `socket`.
    ///
    /// # Errors
    /// As [`KWin::connect`].
    pub fn connect_to(socket: &Path, plugin: &str) -> Result<Self, Error> {
        Self::over(socket, plugin).map_err(|error| Error::NoBus(error.to_string()))
    }

    fn over(socket: &Path, plugin: &str) -> io::Result<Self> {
        let (service, hello) = Service::connect_unnamed(socket, OFFER)?
            .ok_or_else(|| io::Error::other("nobody is there"))?;
        let mut kwin = KWin {
            service,
            plugin: plugin.to_owned(),
            script: script_file()?,
            compositor: None,
            screen: Screen {
                focus: Focus::Nobody,
                beside: Vec::new(),
            },
            news: false,
        };
        let own_name = match kwin.answer(hello)?.body {
            Body::Text(name) => name,
            _ => return Err(io::Error::other("the bus gives no name")),
        };
        let rule = "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',\
                    arg0='org.kde.KWin'";
        kwin.service.ask("AddMatch", Body::Text(rule.to_owned()))?;
        let process = Body::Text(KWIN.to_owned());
        let process = kwin.service.ask("GetConnectionUnixProcessID", process)?;
        if let Body::Number(pid) = kwin.answer(process)?.body {
            kwin.compositor = Some(pid);
        }
        kwin.load(&own_name)?;
        Ok(kwin)
    }

    fn load(&mut self, own_name: &str) -> io::Result<()> {
        let text = format!("const TELL = \"{own_name}\";\n{SCRIPT}");
        self.script.write_all(text.as_bytes())?;
        self.script.flush()?;
        let plugin = self.plugin.clone();
        let unload = Body::Text(plugin.clone());
        let unload =
            self.service
                .call((KWIN, "/Scripting"), (SCRIPTING, "unloadScript"), unload)?;
        self.answer(unload)?;
        let path = self.script.path().to_string_lossy().into_owned();
        let load = Body::Texts(vec![path, plugin]);
        let load = self
            .service
            .call((KWIN, "/Scripting"), (SCRIPTING, "loadScript"), load)?;
        let Body::Number(script) = self.answer(load)?.body else {
            return Err(io::Error::other("KWin loads no script"));
        };
        // Plasma 6 has it there, and Plasma 5 at the other place.
        let mut refused = None;
        for object in [format!("/Scripting/Script{script}"), format!("/{script}")] {
            let run = ("org.kde.kwin.Script", "run");
            let run = self.service.call((KWIN, &object), run, Body::Empty)?;
            match self.answer(run) {
                Ok(_) => return Ok(()),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| io::Error::other("KWin runs no script")))
    }

    /// Waits for the reply to a question.
    fn answer(&mut self, question: u32) -> io::Result<Message> {
        let until = Some(Instant::now() + PATIENCE);
        loop {
            let mut answer = None;
            // The script may call in the same moment.
            for message in self.service.messages()? {
                match message.reply_serial == question {
                    true => answer = Some(message),
                    false => self.hear(message)?,
                }
            }
            if let Some(message) = answer {
                return match (message.kind, message.body) {
                    (Kind::Error, Body::Text(sentence)) => Err(io::Error::other(sentence)),
                    (Kind::Error, _) => Err(io::Error::other(message.error)),
                    (_, body) => Ok(Message { body, ..message }),
                };
            }
            let awaited = Awaited { fds: &[], until };
            match sleep(self.service.fd(), &awaited, None) {
                Ok(Woken::Session) => {}
                Ok(_) => return Err(io::Error::other("KWin does not answer")),
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        }
    }

    /// Takes a call of the script, or hears of KWin's end.
    fn hear(&mut self, message: Message) -> io::Result<()> {
        match (message.kind, message.member.as_str(), &message.body) {
            (Kind::Call, "Screen", Body::Text(text)) => {
                if let Ok(told) = serde_json::from_str(text) {
                    self.screen = screen(&told);
                    self.news = true;
                }
                self.service.answer(&message, Body::Empty)
            }
            (Kind::Call, ..) => self.service.unknown(&message),
            (Kind::Signal, "NameOwnerChanged", Body::Texts(names)) => match names.as_slice() {
                [name, old, _] if name == KWIN && !old.is_empty() => {
                    Err(io::Error::other("KWin has ended"))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

impl Drop for KWin {
    fn drop(&mut self) {
        // KWin may have ended, and its scripts with it.
        let plugin = Body::Text(self.plugin.clone());
        let _ = self
            .service
            .call((KWIN, "/Scripting"), (SCRIPTING, "unloadScript"), plugin);
    }
}

impl Source for KWin {
    fn name(&self) -> &'static str {
        "KWin (a script)"
    }

    fn compositor(&self) -> Option<u32> {
        self.compositor
    }

    fn now(&mut self) -> Result<Screen, Error> {
        self.news = false;
        Ok(self.screen.clone())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.service.fd()
    }

    fn news(&mut self) -> Result<News, Error> {
        // First the news that came before whatever else has.
        if !self.news {
            for message in self.service.messages().map_err(lost)? {
                self.hear(message).map_err(lost)?;
            }
        }
        Ok(News::of_change(self.news))
    }
}

/// A private file that KWin, as a process of the same user, can read.
fn script_file() -> io::Result<NamedTempFile> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|it| !it.is_empty());
    let directory = runtime.map_or_else(std::env::temp_dir, PathBuf::from);
    let mut file = tempfile::Builder::new();
    file.prefix("frontrow-follow-")
        .suffix(".js")
        .tempfile_in(directory)
}

fn screen(told: &Value) -> Screen {
    let focus = match &told["focus"] {
        Value::Null => Focus::Nobody,
        window if window["furniture"] == true => Focus::Desktop,
        window => Focus::Window(window_of(window)),
    };
    let Focus::Window(focused) = &focus else {
        return Screen {
            focus,
            beside: Vec::new(),
        };
    };
    let area = |told: &Value| Area {
        x: pixels(&told["x"]),
        y: pixels(&told["y"]),
        width: pixels(&told["width"]),
        height: pixels(&told["height"]),
    };
    let windows = told["windows"].as_array().into_iter().flatten();
    let windows = windows.filter(|it| it["furniture"] != true);
    let placed: Vec<_> = windows
        .map(|told| Placed {
            window: window_of(told),
            area: area(told),
        })
        .collect();
    Screen {
        beside: beside(&placed, focused, area(told)),
        focus,
    }
}

fn window_of(told: &Value) -> Window {
    let process = crate::focus::ipc::pid(told).map(match told["claimed"] == false {
        true => Process::Pid,
        false => Process::ClaimedPid,
    });
    let names = told["names"].as_array().into_iter().flatten();
    window(process, names.filter_map(Value::as_str))
}

/// The first path in an address such as `unix:path=/run/user/1000/bus,guid=…;…`.
fn socket(address: &str) -> Option<PathBuf> {
    let mut unix = address.split(';').filter_map(|it| it.strip_prefix("unix:"));
    let path = unix.find_map(|it| it.split(',').find_map(|it| it.strip_prefix("path=")));
    path.map(PathBuf::from)
}

#[cfg(test)]
mod tests;
