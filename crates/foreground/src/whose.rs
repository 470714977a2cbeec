//! The app that a window belongs to: its process's unit, or else the units with one of its names.

use crate::unit::{Unit, is_same_app, is_shell};
use crate::{Cgroup, Error, desktop_files};
use serde::Serialize;
use std::path::Path;

/// Properties of a window that tell whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Window {
    /// The process that owns it.
    #[serde(flatten)]
    pub process: Option<Process>,
    /// Names of its app: the app id, the class, the `.desktop` file.
    pub names: Vec<String>,
}

/// The id of a window's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    /// The kernel's word, by the credentials of the client's socket.
    Pid(u32),
    /// The client's word, which may be of another pid namespace.
    ClaimedPid(u32),
}

/// Finds the units of windows of one session.
#[derive(Clone, Debug)]
pub struct Finder<'a> {
    root: &'a Path,
    user: u32,
    /// Units of the compositor, which starts apps that nobody else has put into a unit.
    compositor: Vec<Cgroup>,
}

/// A window's units, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Units of the app; empty if it has none of its own.
    pub units: Vec<Cgroup>,
    /// The reason, as a phrase of a sentence.
    pub why: String,
}

/// Why a process has no unit that may be foreground.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NoUnit {
    /// It is known not to be in one.
    Elsewhere(String),
    /// It is not known which process it is.
    Unknown(String),
}

impl<'a> Finder<'a> {
    /// Finds units of this user. `compositor` is the process of the display server or window manager.
    pub fn new(root: &'a Path, user: u32, compositor: Option<u32>) -> Self {
        let mut finder = Finder {
            root,
            user,
            compositor: Vec::new(),
        };
        let unit = compositor.and_then(|pid| finder.unit_of_process(pid).ok());
        finder.compositor = unit.into_iter().collect();
        finder
    }

    /// The units of a window's app.
    pub fn find(&self, window: &Window) -> Found {
        let found = |units, why| Found { units, why };
        let shell = window.names.iter().find(|it| is_shell(it));
        if let Some(shell) = shell {
            return found(Vec::new(), format!("{shell} is the desktop itself"));
        }
        let by_name = || self.units_of_names(&window.names);
        let (pid, is_known) = match window.process {
            Some(Process::Pid(pid)) => (pid, true),
            Some(Process::ClaimedPid(pid)) => (pid, false),
            None => {
                let why =
                    || "the window's process is not told".to_owned() + &unnamed(&window.names);
                return by_name().unwrap_or_else(|| found(Vec::new(), why()));
            }
        };
        match (self.unit_of_process(pid), is_known) {
            (Ok(unit), true) => {
                let why = format!("process {pid} is in this unit");
                found(self.with_terminals_children(unit), why)
            }
            // A unit of its name is another process's, and maybe another app's.
            (Err(NoUnit::Elsewhere(reason)), true) => found(Vec::new(), reason),
            (Ok(unit), false) => match by_name() {
                Some(named) if !named.units.contains(&unit) => named,
                _ => {
                    let why = format!("the window says that it is process {pid}'s, of this unit");
                    found(self.with_terminals_children(unit), why)
                }
            },
            (Err(NoUnit::Elsewhere(reason) | NoUnit::Unknown(reason)), _) => match by_name() {
                Some(named) => found(named.units, format!("{}; {reason}", named.why)),
                None => found(Vec::new(), reason + &unnamed(&window.names)),
            },
        }
    }

    /// Path of the user's own slice of apps.
    fn slice(&self) -> String {
        let user = self.user;
        format!("/user.slice/user-{user}.slice/user@{user}.service/app.slice")
    }

    /// The unit of a process, if it may be foreground.
    fn unit_of_process(&self, pid: u32) -> Result<Cgroup, NoUnit> {
        let cgroup = match Cgroup::resolve(self.root, &pid.to_string()) {
            Ok(cgroup) => cgroup,
            Err(Error::Root(_)) => {
                let reason = format!("process {pid} is in the root cgroup");
                return Err(NoUnit::Elsewhere(reason));
            }
            Err(_) => {
                return Err(NoUnit::Unknown(format!(
                    "process {pid} does not exist here"
                )));
            }
        };
        let path = cgroup.path();
        if Unit::of(path).is_some_and(|it| it.is_an_x_server()) {
            return Err(NoUnit::Unknown(format!("process {pid} is an X server")));
        }
        let unit = Unit::of(path).filter(|it| it.slice == self.slice());
        let own = unit.and_then(|unit| Cgroup::named(unit.path.to_owned()));
        let is_an_app = unit.is_some_and(|it| it.may_be_foreground());
        own.filter(|it| is_an_app && !self.compositor.contains(it))
            .ok_or_else(|| {
                NoUnit::Elsewhere(format!(
                    "process {pid} is in {path}, which is no app's of this user"
                ))
            })
    }

    /// Programs in a terminal are what its user looks at.
    fn with_terminals_children(&self, unit: Cgroup) -> Vec<Cgroup> {
        let own = Unit::of(unit.path());
        let is_child = |path: &Cgroup| {
            let other = Unit::of(path.path()).filter(Unit::is_in_a_terminal);
            own.zip(other)
                .is_some_and(|(own, other)| other.is_of_the_app_of(&own))
        };
        let mut units = Cgroup::units_in(self.root, &self.slice());
        units.retain(is_child);
        units.push(unit);
        units.sort();
        units.dedup();
        units
    }

    /// Units with one of these names; `None` if there are none.
    fn units_of_names(&self, names: &[String]) -> Option<Found> {
        let all = Cgroup::units_in(self.root, &self.slice());
        let named = |is: &dyn Fn(&Unit<'_>) -> bool| {
            let mut units: Vec<_> = all
                .iter()
                .filter(|path| !self.compositor.contains(path))
                .filter_map(|path| Unit::of(path.path()))
                .filter(|unit| unit.may_be_foreground() && is(unit))
                .collect();
            if units.iter().any(|it| !it.is_autostarted()) {
                units.retain(|it| !it.is_autostarted());
            }
            let units = units.into_iter();
            let units: Vec<_> = units
                .filter_map(|it| Cgroup::named(it.path.to_owned()))
                .collect();
            (!units.is_empty()).then_some(units)
        };
        let found = |units, why| Some(Found { units, why });
        for name in names {
            if let Some(units) = named(&|unit| unit.is_named(name)) {
                return found(units, format!("the unit is named {name}, as the window is"));
            }
        }
        for name in names {
            for other in desktop_files::names_of(self.root, name) {
                if let Some(units) = named(&|unit| unit.is_named(&other)) {
                    let why =
                        format!("{name} is also {other} by its .desktop file, as the unit is");
                    return found(units, why);
                }
            }
        }
        for name in names {
            if let Some(units) = named(&|unit| is_same_app(name, &unit.app())) {
                return found(
                    units,
                    format!("the unit is named as {name} is, but for the domain"),
                );
            }
        }
        None
    }
}

fn unnamed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        _ => format!(", and no unit is named {}", names.join(" or ")),
    }
}

#[cfg(test)]
mod tests;
