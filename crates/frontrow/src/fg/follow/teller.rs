//! Tells frontrowd, also one that is started later or anew.

use super::seen::{Focused, Seen};
use super::{Listener, is_readable};
use crate::exit::Failure;
use crate::fg::failure;
use foreground::{Kind, Order, Request};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time until a daemon that is not there is looked for again.
const LOOKS_APART: Duration = Duration::from_millis(250);

/// Time until an order that the daemon has refused is given again: its user may be back at the screen.
const ORDERS_APART: Duration = Duration::from_secs(1);

/// Most apps without a unit that are remembered, each being named once.
const MOST_NAMED: usize = 256;

/// The last report to frontrowd, and the one that is due.
pub struct Teller<'a> {
    root: &'a Path,
    wanted: Option<Order>,
    told: Option<Order>,
    /// Ends when the daemon does.
    daemon: Option<UnixStream>,
    again_at: Option<Instant>,
    /// The last sentence about the daemon.
    said: Option<String>,
    unknown: BTreeSet<String>,
}

impl<'a> Teller<'a> {
    pub fn new(root: &'a Path) -> Self {
        Teller {
            root,
            wanted: None,
            told: None,
            daemon: None,
            again_at: None,
            said: None,
            unknown: BTreeSet::new(),
        }
    }

    /// Gives the order that is wanted, unless the daemon has it.
    fn tell(&mut self) {
        self.again_at = None;
        if self.told == self.wanted {
            return;
        }
        let request = self.wanted.clone().map_or(Request::Release, Request::Set);
        match foreground::ask(self.root, &request) {
            Ok(Some(_)) => {
                self.told.clone_from(&self.wanted);
                self.said = None;
                self.attend();
            }
            // It has nobody in the foreground when it starts.
            Ok(None) if self.wanted.is_none() => self.told = None,
            Ok(None) => {
                self.say(
                    "frontrowd does not run: start it with `sudo systemctl enable --now frontrowd`; \
                     this waits for it"
                        .to_owned(),
                );
                self.again_at = Some(Instant::now() + LOOKS_APART);
            }
            Err(error) => {
                self.say(error.to_string());
                // It has gone meanwhile, and the app before it is not to stay the foreground.
                if error.kind() == Kind::Usage && self.told.is_some() {
                    let released = foreground::ask(self.root, &Request::Release);
                    self.told.take_if(|_| released.is_ok());
                }
                self.again_at = Some(Instant::now() + ORDERS_APART);
            }
        }
    }

    /// Keeps a connection to the daemon, whose end tells of the daemon's.
    fn attend(&mut self) {
        if self.daemon.is_none() {
            self.daemon = foreground::attend(self.root).ok().flatten();
        }
    }

    /// Once, until something else is to be said.
    fn say(&mut self, sentence: String) {
        if self.said.as_ref() != Some(&sentence) {
            eprintln!("{sentence}");
            self.said = Some(sentence);
        }
    }

    /// Names an app that cannot be served, once.
    fn name_unknown(&mut self, seen: &Seen) {
        let Focused::Window(taken) = &seen.focus else {
            return;
        };
        if !taken.found.units.is_empty() || self.unknown.len() >= MOST_NAMED {
            return;
        }
        let name = match taken.window.names.first() {
            Some(name) => name.clone(),
            None => "a window without a name".to_owned(),
        };
        let sentence = format!("no app is foreground with {name}: {}", taken.found.why);
        if self.unknown.insert(name) {
            eprintln!("{}", crate::print::plain(&sentence));
        }
    }
}

impl Listener for Teller<'_> {
    fn hear(&mut self, seen: Seen) -> Result<(), Failure> {
        self.name_unknown(&seen);
        if let Some(wanted) = seen.order() {
            self.wanted = wanted;
            self.tell();
        }
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.daemon.as_ref().map(AsFd::as_fd)
    }

    fn due(&self) -> Option<Instant> {
        self.again_at
    }

    fn go_on(&mut self) {
        if self
            .daemon
            .as_ref()
            .is_some_and(|it| is_readable(it.as_fd()))
        {
            self.daemon = None;
            self.told = None;
        }
        self.tell();
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.wanted = None;
        self.again_at = None;
        if self.told.take().is_none() {
            return Ok(());
        }
        foreground::ask(self.root, &Request::Release)
            .map(drop)
            .map_err(failure)
    }
}
