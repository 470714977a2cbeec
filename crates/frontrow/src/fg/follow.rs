//! `frontrow fg follow`: a session tells frontrowd which app has the focus.

use super::{failure, stop_signal};
use crate::exit::{Exit, Failure};
use clap::Args;
use foreground::focus::{Calls, Event, Focus, Screen, Source, Wayland, X11};
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

/// Reports the focus until the session ends or a signal arrives.
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

fn session(display: Option<&str>) -> Result<Box<dyn Source>, foreground::focus::Error> {
    let is_wayland = display.is_none() && std::env::var_os("WAYLAND_DISPLAY").is_some();
    if !is_wayland {
        return Ok(Box::new(X11::connect(display)?));
    }
    match Wayland::connect() {
        Ok(session) => Ok(Box::new(session)),
        Err(foreground::focus::Error::NoWindows) if is_kde() => Ok(Box::new(Calls::connect()?)),
        Err(error) => Err(error),
    }
}

/// KDE's compositor reports windows only to its own panel, but runs the installed script.
fn is_kde() -> bool {
    let desktops = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
    desktops.split(':').any(|it| it == "KDE")
}

/// The last report to frontrowd.
struct Teller<'a> {
    root: &'a Path,
    told: Option<Order>,
}

impl Teller<'_> {
    /// Without a focused app, for example between two windows, the last one stays the foreground.
    fn tell(&mut self, screen: Screen) -> Result<(), Failure> {
        let foreground = match screen.focus {
            Focus::Nobody => return Ok(()),
            Focus::Process(pid) => match Cgroup::resolve(self.root, &pid.to_string()) {
                Ok(foreground) => vec![foreground],
                // It has ended meanwhile, and another gets the focus.
                Err(Error::Unknown(_)) => return Ok(()),
                Err(error) => return Err(failure(error)),
            },
            Focus::App(id) => self.units_of(&id),
        };
        if foreground.is_empty() {
            return self.put_in_front(None);
        }
        let mut visible: Vec<Visible> = Vec::new();
        for beside in screen.beside {
            for cgroup in self.cgroups_of(&beside.whose) {
                match visible.iter_mut().find(|it| it.cgroup == cgroup) {
                    _ if foreground.contains(&cgroup) => {}
                    Some(known) => known.percent = (known.percent + beside.percent).min(100),
                    None => visible.push(Visible {
                        cgroup,
                        percent: beside.percent,
                    }),
                }
            }
        }
        self.put_in_front(Some(Order {
            foreground,
            visible,
            background: Vec::new(),
        }))
    }

    /// A visible app without the focus; None if it has no cgroup of its own.
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

    /// None to undo all changes.
    fn put_in_front(&mut self, order: Option<Order>) -> Result<(), Failure> {
        if self.told == order {
            return Ok(());
        }
        let request = order.clone().map_or(Request::Release, Request::Set);
        match foreground::ask(self.root, &request) {
            Ok(Some(_)) => self.told = order,
            Ok(None) => return Err(no_daemon()),
            // Later changes of the focus may succeed.
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

fn lost(error: foreground::focus::Error) -> Failure {
    let exit = match error {
        foreground::focus::Error::NoServer(_)
        | foreground::focus::Error::NoCompositor(_)
        | foreground::focus::Error::NoBus(_) => Exit::Missing,
        foreground::focus::Error::NoManager
        | foreground::focus::Error::NoProcesses
        | foreground::focus::Error::NoWindows => Exit::Unsupported,
        foreground::focus::Error::Lost(_) | foreground::focus::Error::Wait(_) => Exit::Internal,
    };
    Failure::new(exit, error)
}
