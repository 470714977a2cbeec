//! `frontrow fg follow`: a session tells frontrowd which app has the focus.

use super::{failure, stop_signal};
use crate::exit::{Exit, Failure};
use clap::Args;
use focus::{Event, Focus, Source, Wayland, X11};
use foreground::{Cgroup, Error, Order, Request};
use std::os::fd::AsFd;
use std::path::Path;

#[derive(Args)]
pub struct Options {
    /// The X server to ask [default: the Wayland compositor that WAYLAND_DISPLAY names, or else
    /// the X server that DISPLAY does]
    #[arg(long)]
    display: Option<String>,
}

/// Tells until the session ends or a signal comes.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let stop = stop_signal()?;
    let mut session = session(options.display.as_deref()).map_err(lost)?;
    let mut teller = Teller {
        root,
        front: Vec::new(),
    };
    let mut focus = session.now().map_err(lost)?;
    let ended = loop {
        teller.tell(focus)?;
        match session.wait(stop.as_fd()) {
            Ok(Event::Focus(next)) => focus = next,
            Ok(Event::Stop) => break Ok(()),
            Err(error) => break Err(lost(error)),
        }
    };
    let released = teller.put_in_front(Vec::new());
    ended.and(released)
}

fn session(display: Option<&str>) -> Result<Box<dyn Source>, focus::Error> {
    let is_wayland = display.is_none() && std::env::var_os("WAYLAND_DISPLAY").is_some();
    Ok(match is_wayland {
        true => Box::new(Wayland::connect()?),
        false => Box::new(X11::connect(display)?),
    })
}

/// What frontrowd was told last.
struct Teller<'a> {
    root: &'a Path,
    front: Vec<Cgroup>,
}

impl Teller<'_> {
    /// Where nobody has the focus, for the blink of an eye between two windows or for longer,
    /// who had it stays in front.
    fn tell(&mut self, focus: Focus) -> Result<(), Failure> {
        let front = match focus {
            Focus::Nobody => return Ok(()),
            Focus::Process(pid) => match Cgroup::resolve(self.root, &pid.to_string()) {
                Ok(front) => vec![front],
                // It has ended meanwhile, and another gets the focus.
                Err(Error::Unknown(_)) => return Ok(()),
                Err(error) => return Err(failure(error)),
            },
            Focus::App(id) => self.units_of(&id),
        };
        self.put_in_front(front)
    }

    fn units_of(&self, id: &str) -> Vec<Cgroup> {
        let user = rustix::process::getuid().as_raw();
        let units = Cgroup::units_of_app(self.root, user, id);
        if units.is_empty() {
            eprintln!(
                "{id} has no unit of its own below app.slice: have the desktop start apps by systemd"
            );
        }
        units
    }

    /// None for everything as it was.
    fn put_in_front(&mut self, front: Vec<Cgroup>) -> Result<(), Failure> {
        if self.front == front {
            return Ok(());
        }
        let request = match front.is_empty() {
            true => Request::Release,
            false => Request::Set(Order {
                front: front.clone(),
                behind: Vec::new(),
            }),
        };
        match foreground::ask(self.root, &request) {
            Ok(Some(_)) => self.front = front,
            Ok(None) => return Err(no_daemon()),
            // Another app may be put in front all the same.
            Err(Error::Daemon { sentence, .. }) => eprintln!("{sentence}"),
            Err(error) => return Err(failure(error)),
        }
        Ok(())
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
        focus::Error::NoServer(_) | focus::Error::NoCompositor(_) => Exit::Missing,
        focus::Error::NoManager | focus::Error::NoProcesses | focus::Error::NoWindows => {
            Exit::Unsupported
        }
        focus::Error::Lost(_) | focus::Error::Wait(_) => Exit::Internal,
    };
    Failure::new(exit, error)
}
