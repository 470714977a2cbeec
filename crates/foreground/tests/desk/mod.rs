//! A arbiter at work on a system of files, and what can happen to it.
// Each test file is a crate of its own and uses a part of it.
#![allow(dead_code)]

use crate::system::{APPS, System};
use foreground::{Arbiter, Cgroup, Order, Visible};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const NAMES: [&str; 5] = [
    "app-game-1.scope",
    "app-shop-2.scope",
    "app-mail-3.scope",
    "app-maps-4.scope",
    "app-chat-5.scope",
];

pub fn five_apps() -> System {
    let system = System::new();
    for name in NAMES {
        system.cgroup(name, "io memory");
    }
    system
}

pub fn cgroup(name: &str) -> Cgroup {
    serde_json::from_value(format!("/{APPS}/{name}").into()).unwrap()
}

/// Every file of the kernel's.
pub fn knobs(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut knobs = BTreeMap::new();
    let mut directories = vec![root.join("sys")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => {
                    let text = fs::read_to_string(&path).unwrap();
                    knobs.insert(path, text.trim().to_owned());
                }
            }
        }
    }
    knobs
}

/// What can happen to a daemon.
#[derive(Clone, Debug)]
pub enum Event {
    /// These apps have the focus.
    Focus(Vec<usize>),
    Command(usize),
    /// The first app is foreground, the second one visible with this percentage of the screen.
    Split(usize, usize, u8),
    Release,
    /// An app ends, or another one starts in a cgroup of the same name.
    End(usize),
    Start(usize),
    /// An app has this many MiB.
    Grow(usize, u64),
    /// So many seconds pass.
    Wait(u64),
    Kill,
}

pub struct Desk {
    pub system: System,
    pub arbiter: Arbiter,
    pub now: Instant,
}

pub const LIMIT: Option<Duration> = Some(Duration::from_secs(1000));

impl Desk {
    pub fn new() -> Self {
        let system = five_apps();
        let now = Instant::now();
        let arbiter = Arbiter::start(system.root(), LIMIT, now).unwrap();
        Desk {
            system,
            arbiter,
            now,
        }
    }

    pub fn directory(&self, name: &str) -> PathBuf {
        self.system
            .root()
            .join(format!("sys/fs/cgroup/{APPS}/{name}"))
    }

    pub fn focus(&mut self, names: &[&str]) {
        let foreground = names.iter().map(|name| cgroup(name)).collect();
        self.arbiter
            .set_focus(foreground, "a test", self.now)
            .unwrap();
    }

    fn command(&mut self, app: usize, visible: Vec<Visible>) {
        let order = Order {
            foreground: vec![cgroup(NAMES[app])],
            visible,
            background: Vec::new(),
        };
        let exists = self.directory(NAMES[app]).exists();
        let made = self.arbiter.command(order, self.now);
        assert_eq!(made.is_ok(), exists);
    }

    pub fn happens(&mut self, event: &Event) {
        match event {
            Event::Focus(apps) => {
                let names: Vec<_> = apps.iter().map(|&app| NAMES[app]).collect();
                self.focus(&names);
            }
            Event::Command(app) => self.command(*app, Vec::new()),
            Event::Split(app, seen, percent) => {
                let seen = Visible {
                    cgroup: cgroup(NAMES[*seen]),
                    percent: *percent,
                };
                self.command(*app, vec![seen]);
            }
            Event::Release => {
                self.arbiter.release("a test", self.now).unwrap();
            }
            Event::End(app) => {
                if self.directory(NAMES[*app]).exists() {
                    self.system.remove(NAMES[*app]);
                    self.arbiter.drop_empty(self.now).unwrap();
                }
            }
            Event::Start(app) => {
                if !self.directory(NAMES[*app]).exists() {
                    self.system.cgroup(NAMES[*app], "io memory");
                }
            }
            Event::Grow(app, mib) => {
                let stat = self.directory(NAMES[*app]).join("memory.stat");
                if stat.exists() {
                    fs::write(stat, format!("anon {}\n", mib << 20)).unwrap();
                    self.arbiter.limit_was_hit(self.now);
                }
            }
            Event::Wait(seconds) => {
                self.now += Duration::from_secs(*seconds);
                if self.arbiter.due().is_some_and(|due| due <= self.now) {
                    self.arbiter.tick(self.now).unwrap();
                }
            }
            Event::Kill => {
                // Its lock ends with it, before the next one asks for it.
                let next = System::new();
                let nobody = Arbiter::start(next.root(), None, self.now).unwrap();
                drop(std::mem::replace(&mut self.arbiter, nobody));
                self.arbiter = Arbiter::start(self.system.root(), LIMIT, self.now).unwrap();
            }
        }
    }

    /// Cgroups that have ended are made anew, as all had been.
    pub fn knobs_in_the_end(mut self) -> BTreeMap<PathBuf, String> {
        self.arbiter.end("the end", self.now).unwrap();
        for (app, name) in NAMES.iter().enumerate() {
            self.happens(&Event::Start(app));
            let stat = self.directory(name).join("memory.stat");
            fs::write(stat, "anon 8388608\nfile 4096\n").unwrap();
        }
        relative(self.system.root())
    }
}

/// Without the directory that they are in.
pub fn relative(root: &Path) -> BTreeMap<PathBuf, String> {
    let inside = |path: &Path| path.strip_prefix(root).unwrap().to_owned();
    let knobs = knobs(root).into_iter();
    knobs.map(|(path, text)| (inside(&path), text)).collect()
}
