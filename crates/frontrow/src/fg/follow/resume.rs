//! Loads the evicted pages of an app that gets the focus again.

use super::Listener;
use super::seen::{Focused, Seen};
use crate::exit::{Exit, Failure};
use crate::launch::resume::{in_words, load, profile_of};
use foreground::Cgroup;
use launch::profile::Store;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

/// Most processes of an app whose command lines are looked at.
const MOST_PROCESSES: usize = 64;

/// Passes on what is seen, and has each app loaded that gets the focus.
pub struct Resumer<'a> {
    /// None where frontrowd sees the focus by itself.
    inner: Option<Box<dyn Listener + 'a>>,
    focused: Vec<Cgroup>,
    load: Sender<Vec<Cgroup>>,
}

impl<'a> Resumer<'a> {
    pub fn new(root: &Path, inner: Option<Box<dyn Listener + 'a>>) -> Result<Self, Failure> {
        let store = Store::of_user()?;
        let (load, wanted) = channel();
        let root = root.to_owned();
        // Loading takes longer than the focus may wait to be told.
        thread::Builder::new()
            .name("resume".to_owned())
            .spawn(move || serve(&root, &store, &wanted))
            .map_err(|error| Failure::new(Exit::Internal, error))?;
        Ok(Resumer {
            inner,
            focused: Vec::new(),
            load,
        })
    }
}

/// Loads the app that got the focus last, as long as there is a session.
fn serve(root: &Path, store: &Store, wanted: &Receiver<Vec<Cgroup>>) {
    while let Ok(mut units) = wanted.recv() {
        // The focus may have moved on while the last app was loaded.
        while let Ok(later) = wanted.try_recv() {
            units = later;
        }
        let names: Vec<String> = units.iter().filter_map(Cgroup::app).collect();
        let commands = units.iter().flat_map(|it| it.processes(root));
        let commands: Vec<_> = commands
            .take(MOST_PROCESSES)
            .map(|pid| command_line(root, pid))
            .collect();
        let Some(name) = profile_of(store, &names, &commands) else {
            continue;
        };
        let said = match load(store, &name) {
            Ok(resumed) => in_words(&name, &resumed),
            Err(failure) => failure.sentence,
        };
        eprintln!("{}", crate::print::plain(&said));
    }
}

/// The words of a process's command line; none if it has ended.
fn command_line(root: &Path, pid: u32) -> Vec<String> {
    let path: PathBuf = root.join(format!("proc/{pid}/cmdline"));
    let bytes = fs::read(path).unwrap_or_default();
    let words = bytes.split(|it| *it == 0).filter(|it| !it.is_empty());
    words
        .map(|it| String::from_utf8_lossy(it).into_owned())
        .collect()
}

impl Listener for Resumer<'_> {
    fn hear(&mut self, seen: Seen) -> Result<(), Failure> {
        if let Focused::Window(taken) = &seen.focus
            && taken.found.units != self.focused
        {
            self.focused.clone_from(&taken.found.units);
            if !self.focused.is_empty() {
                // The thread ends only after this sender.
                let _ = self.load.send(self.focused.clone());
            }
        }
        self.inner.as_mut().map_or(Ok(()), |it| it.hear(seen))
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.as_ref().and_then(|it| it.fd())
    }

    fn due(&self) -> Option<Instant> {
        self.inner.as_ref().and_then(|it| it.due())
    }

    fn go_on(&mut self) {
        if let Some(inner) = &mut self.inner {
            inner.go_on();
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.inner.as_mut().map_or(Ok(()), |it| it.end())
    }
}
