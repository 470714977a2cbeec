//! `frontrow fg follow`: a session tells frontrowd which app has the focus.

use super::{failure, stop_signal};
use crate::exit::{Exit, Failure};
use clap::Args;
use focus::{Calls, Event, Focus, Screen, Source, Wayland, X11};
use foreground::{Cgroup, Error, Order, Request, Visible};
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
    let mut teller = Teller { root, told: None };
    let mut screen = session.now().map_err(lost)?;
    let ended = loop {
        teller.tell(screen)?;
        match session.wait(stop.as_fd()) {
            Ok(Event::Screen(next)) => screen = next,
            Ok(Event::Stop) => break Ok(()),
            Err(error) => break Err(lost(error)),
        }
    };
    let released = teller.put_in_front(None);
    ended.and(released)
}

fn session(display: Option<&str>) -> Result<Box<dyn Source>, focus::Error> {
    let is_wayland = display.is_none() && std::env::var_os("WAYLAND_DISPLAY").is_some();
    if !is_wayland {
        return Ok(Box::new(X11::connect(display)?));
    }
    match Wayland::connect() {
        Ok(session) => Ok(Box::new(session)),
        Err(focus::Error::NoWindows) if is_kde() => Ok(Box::new(Calls::connect()?)),
        Err(error) => Err(error),
    }
}

/// Its compositor tells only its own panel, but runs the script that is installed with this.
fn is_kde() -> bool {
    let desktops = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
    desktops.split(':').any(|it| it == "KDE")
}

/// What frontrowd was told last.
struct Teller<'a> {
    root: &'a Path,
    told: Option<Order>,
}

impl Teller<'_> {
    /// Where nobody has the focus, for the blink of an eye between two windows or for longer,
    /// who had it stays in front.
    fn tell(&mut self, screen: Screen) -> Result<(), Failure> {
        let front = match screen.focus {
            Focus::Nobody => return Ok(()),
            Focus::Process(pid) => match Cgroup::resolve(self.root, &pid.to_string()) {
                Ok(front) => vec![front],
                // It has ended meanwhile, and another gets the focus.
                Err(Error::Unknown(_)) => return Ok(()),
                Err(error) => return Err(failure(error)),
            },
            Focus::App(id) => self.units_of(&id),
        };
        if front.is_empty() {
            return self.put_in_front(None);
        }
        let mut visible: Vec<Visible> = Vec::new();
        for beside in screen.beside {
            for cgroup in self.cgroups_of(&beside.whose) {
                match visible.iter_mut().find(|it| it.cgroup == cgroup) {
                    _ if front.contains(&cgroup) => {}
                    Some(known) => known.percent = (known.percent + beside.percent).min(100),
                    None => visible.push(Visible {
                        cgroup,
                        percent: beside.percent,
                    }),
                }
            }
        }
        self.put_in_front(Some(Order {
            front,
            visible,
            behind: Vec::new(),
        }))
    }

    /// Of somebody who has not the focus; who has no cgroup to tell him by is left out.
    fn cgroups_of(&self, whose: &Focus) -> Vec<Cgroup> {
        match whose {
            Focus::Nobody => Vec::new(),
            Focus::Process(pid) => {
                let cgroup = Cgroup::resolve(self.root, &pid.to_string());
                cgroup.into_iter().collect()
            }
            Focus::App(id) => self.units_of(id),
        }
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
    fn put_in_front(&mut self, order: Option<Order>) -> Result<(), Failure> {
        if self.told == order {
            return Ok(());
        }
        let request = order.clone().map_or(Request::Release, Request::Set);
        match foreground::ask(self.root, &request) {
            Ok(Some(_)) => self.told = order,
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
        focus::Error::NoServer(_) | focus::Error::NoCompositor(_) | focus::Error::NoBus(_) => {
            Exit::Missing
        }
        focus::Error::NoManager | focus::Error::NoProcesses | focus::Error::NoWindows => {
            Exit::Unsupported
        }
        focus::Error::Lost(_) | focus::Error::Wait(_) => Exit::Internal,
    };
    Failure::new(exit, error)
}
