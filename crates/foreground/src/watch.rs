//! inotify, with something of ours for each watch.

use crate::Error;
use rustix::fs::inotify::{self, CreateFlags, Reader};
use rustix::io::Errno;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

pub use rustix::fs::inotify::{ReadFlags, WatchFlags};

/// Watched files and directories, and what each is to us.
#[derive(Debug)]
pub struct Watch<T> {
    inotify: OwnedFd,
    known: HashMap<i32, T>,
}

/// What happened, in order.
#[derive(Debug)]
pub struct Events<T> {
    /// Some did not fit into the kernel's queue: everything may be different.
    pub lost: bool,
    /// Which watch, what, and the name in the directory.
    pub list: Vec<(T, ReadFlags, String)>,
}

impl<T: Clone + PartialEq> Watch<T> {
    pub fn new() -> Result<Self, Error> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
        Ok(Watch {
            inotify: inotify.map_err(|errno| failed(Path::new("cgroups"), errno))?,
            known: HashMap::new(),
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Whether `path` exists; then it is watched from now on.
    pub fn add(&mut self, path: &Path, flags: WatchFlags, what: T) -> Result<bool, Error> {
        match inotify::add_watch(&self.inotify, path, flags) {
            Ok(watch) => {
                self.known.insert(watch, what);
                Ok(true)
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NODEV) => Ok(false),
            Err(errno) => Err(failed(path, errno)),
        }
    }

    /// Ends those that `is_over` says.
    pub fn end(&mut self, is_over: impl Fn(&T) -> bool) {
        let inotify = &self.inotify;
        self.known.retain(|watch, what| {
            let over = is_over(what);
            if over {
                // The kernel may have ended it already.
                let _ = inotify::remove_watch(inotify, *watch);
            }
            !over
        });
    }

    /// All that has happened by now.
    pub fn events(&mut self) -> Result<Events<T>, Error> {
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut events = Events {
            lost: false,
            list: Vec::new(),
        };
        let mut ended = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(failed(Path::new("cgroups"), errno)),
            };
            events.lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if event.events().contains(ReadFlags::IGNORED) {
                ended.push(event.wd());
            } else if let Some(what) = self.known.get(&event.wd()) {
                let name = event
                    .file_name()
                    .map(|it| it.to_string_lossy().into_owned());
                let name = name.unwrap_or_default();
                events.list.push((what.clone(), event.events(), name));
            }
        }
        for watch in ended {
            self.known.remove(&watch);
        }
        Ok(events)
    }

    pub fn watches(&self, what: &T) -> bool {
        self.known.values().any(|it| it == what)
    }
}

fn failed(path: &Path, errno: Errno) -> Error {
    Error::Watch {
        path: path.to_owned(),
        source: errno.into(),
    }
}
