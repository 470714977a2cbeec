//! inotify, with a value of the caller for each watch.

use crate::Error;
use rustix::fs::inotify::{self, CreateFlags, Reader};
use rustix::io::Errno;
use std::collections::HashMap;
use std::hash::Hash;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

pub use rustix::fs::inotify::{ReadFlags, WatchFlags};

/// Watched files and directories, each with a value.
#[derive(Debug)]
pub struct Watch<T> {
    inotify: OwnedFd,
    known: HashMap<i32, T>,
    watches: HashMap<T, i32>,
}

/// Result of adding a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The watch was added.
    Watched,
    /// The path does not exist.
    Absent,
    /// The kernel refused: the path is too long, or there are no more watches. Users can cause
    /// both, so the caller goes on with other watches.
    Refused,
}

/// Events in order.
#[derive(Debug)]
pub struct Events<T> {
    /// The kernel's queue overflowed: any watch may have changed.
    pub lost: bool,
    /// Value of the watch, kind of event, and name in the directory.
    pub list: Vec<(T, ReadFlags, String)>,
}

impl<T: Clone + Eq + Hash> Watch<T> {
    pub fn new() -> Result<Self, Error> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
        Ok(Watch {
            inotify: inotify.map_err(|errno| failed(Path::new("cgroups"), errno))?,
            known: HashMap::new(),
            watches: HashMap::new(),
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Adds a watch for `path`, if possible.
    pub fn add(&mut self, path: &Path, flags: WatchFlags, what: T) -> Result<Added, Error> {
        match inotify::add_watch(&self.inotify, path, flags) {
            Ok(watch) => {
                self.forget(watch);
                self.known.insert(watch, what.clone());
                self.watches.insert(what, watch);
                Ok(Added::Watched)
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NODEV) => Ok(Added::Absent),
            Err(Errno::NAMETOOLONG | Errno::NOSPC | Errno::NOMEM | Errno::ACCESS) => {
                Ok(Added::Refused)
            }
            Err(errno) => Err(failed(path, errno)),
        }
    }

    /// Removes the watches for which `is_over` returns true.
    pub fn end(&mut self, is_over: impl Fn(&T) -> bool) {
        let (known, inotify) = (&mut self.known, &self.inotify);
        self.watches.retain(|what, watch| {
            let over = is_over(what);
            if over {
                known.remove(watch);
                // The kernel may have removed it already.
                let _ = inotify::remove_watch(inotify, *watch);
            }
            !over
        });
    }

    fn forget(&mut self, watch: i32) {
        if let Some(what) = self.known.remove(&watch) {
            // The path may have another watch by now.
            if self.watches.get(&what) == Some(&watch) {
                self.watches.remove(&what);
            }
        }
    }

    /// Events since the last call.
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
            self.forget(watch);
        }
        Ok(events)
    }

    /// Values of all watches.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.watches.keys()
    }

    pub fn watches(&self, what: &T) -> bool {
        self.watches.contains_key(what)
    }
}

fn failed(path: &Path, errno: Errno) -> Error {
    Error::Watch {
        path: path.to_owned(),
        source: errno.into(),
    }
}
