//! `frontrow fg follow`: a session tells frontrowd which app has the focus.

use super::{ask, failure, stop_signal};
use crate::exit::{Exit, Failure};
use clap::Args;
use focus::{Event, Focus, Source, X11};
use foreground::{Cgroup, Error, Order, Request};
use std::os::fd::AsFd;
use std::path::Path;

#[derive(Args)]
pub struct Options {
    /// The X server [default: what DISPLAY names]
    #[arg(long)]
    display: Option<String>,
}

/// Tells until the session ends or a signal comes.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let stop = stop_signal()?;
    let mut session = X11::connect(options.display.as_deref()).map_err(lost)?;
    let mut teller = Teller { root, front: None };
    let mut focus = session.now().map_err(lost)?;
    let ended = loop {
        teller.tell(focus)?;
        match session.wait(stop.as_fd()) {
            Ok(Event::Focus(next)) => focus = next,
            Ok(Event::Stop) => break Ok(()),
            Err(error) => break Err(lost(error)),
        }
    };
    let released = teller.release();
    ended.and(released)
}

/// What frontrowd was told last.
struct Teller<'a> {
    root: &'a Path,
    front: Option<Cgroup>,
}

impl Teller<'_> {
    /// Where nobody has the focus, for the blink of an eye between two windows or for longer,
    /// who had it stays in front.
    fn tell(&mut self, focus: Focus) -> Result<(), Failure> {
        let Focus::Process(pid) = focus else {
            return Ok(());
        };
        let front = match Cgroup::resolve(self.root, &pid.to_string()) {
            Ok(front) => front,
            // It has ended meanwhile, and another gets the focus.
            Err(Error::Unknown(_)) => return Ok(()),
            Err(error) => return Err(failure(error)),
        };
        if self.front.as_ref() == Some(&front) {
            return Ok(());
        }
        let order = Order {
            front: vec![front.clone()],
            behind: Vec::new(),
        };
        match foreground::ask(self.root, &Request::Set(order)) {
            Ok(Some(_)) => self.front = Some(front),
            Ok(None) => return Err(no_daemon()),
            // Another app may be put in front all the same.
            Err(Error::Daemon { sentence, .. }) => eprintln!("{}: {sentence}", front.path()),
            Err(error) => return Err(failure(error)),
        }
        Ok(())
    }

    fn release(&self) -> Result<(), Failure> {
        match self.front {
            Some(_) => ask(self.root, Request::Release).map(drop),
            None => Ok(()),
        }
    }
}

fn no_daemon() -> Failure {
    Failure::new(
        Exit::Missing,
        "frontrowd does not run: start it with `sudo systemctl enable --now frontrowd`",
    )
}

fn lost(error: focus::Error) -> Failure {
    let exit = match error {
        focus::Error::NoServer(_) => Exit::Missing,
        focus::Error::NoManager | focus::Error::NoProcesses => Exit::Unsupported,
        focus::Error::Lost(_) | focus::Error::Wait(_) => Exit::Internal,
    };
    Failure::new(exit, error)
}
