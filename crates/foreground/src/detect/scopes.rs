//! The desktop's own word: apps run in cgroups of their own, and the compositor writes on
//! each when it lost the focus.
//!
//! systemd starts apps as `app-*` units of `app.slice`. GNOME's compositor sets the extended
//! attribute `user.xdg.inactive-since` on the cgroup of a window: -1 while it has the focus,
//! else the time since when it has not. inotify tells of both, in the directory above.

use super::Detector;
use crate::cgroup::below;
use crate::watch::{ReadFlags, Watch, WatchFlags};
use crate::{Cgroup, Error};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

const HIERARCHY: &str = "/sys/fs/cgroup";
const ATTRIBUTE: &str = "user.xdg.inactive-since";
const FOCUSED: &[u8] = b"-1";

/// Where `app.slice` is below the hierarchy's root.
const APP_SLICE: usize = 4;

/// All users' apps.
#[derive(Debug)]
pub struct Scopes {
    root: PathBuf,
    /// By path in the hierarchy, "" for its root.
    watch: Watch<String>,
    /// Cgroups that the attribute says to be in use.
    focused: BTreeSet<String>,
}

impl Scopes {
    /// Watches from now on.
    ///
    /// # Errors
    /// [`Error::Watch`].
    pub fn new(root: &Path) -> Result<Self, Error> {
        let mut scopes = Scopes {
            root: root.to_owned(),
            watch: Watch::new()?,
            focused: BTreeSet::new(),
        };
        scopes.visit("")?;
        Ok(scopes)
    }

    /// Looks at a cgroup, and watches it if apps can come to be in it. The watch is there
    /// before the directory is read, so that none is missed.
    fn visit(&mut self, path: &str) -> Result<(), Error> {
        self.read_attribute(path);
        let directory = below(&self.root, &format!("{HIERARCHY}{path}"));
        let flags =
            WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::ATTRIB | WatchFlags::ONLYDIR;
        if !may_hold_apps(path) || !self.watch.add(&directory, flags, path.to_owned())? {
            return Ok(());
        }
        // It may be gone by now, which is an event of its own.
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
            if let (true, Ok(name)) = (is_directory, entry.file_name().into_string()) {
                self.visit_child(path, &name)?;
            }
        }
        Ok(())
    }

    fn visit_child(&mut self, path: &str, name: &str) -> Result<(), Error> {
        match leads_to_apps(path, name) {
            true => self.visit(&format!("{path}/{name}")),
            false => Ok(()),
        }
    }

    fn read_attribute(&mut self, path: &str) {
        let directory = below(&self.root, &format!("{HIERARCHY}{path}"));
        let mut value = [0; 32];
        let length = rustix::fs::getxattr(&directory, ATTRIBUTE, &mut value);
        match length.is_ok_and(|length| &value[..length] == FOCUSED) {
            true => self.focused.insert(path.to_owned()),
            false => self.focused.remove(path),
        };
    }

    /// The kernel keeps the watches of removed cgroups.
    fn forget(&mut self, path: &str) {
        let below = format!("{path}/");
        let is_in = |it: &String| it == path || it.starts_with(&below);
        self.watch.end(is_in);
        self.focused.retain(|it| !is_in(it));
    }

    fn begin_anew(&mut self) -> Result<(), Error> {
        self.forget("");
        self.visit("")
    }
}

impl Detector for Scopes {
    fn name(&self) -> &'static str {
        "the desktop (user.xdg.inactive-since)"
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    fn look(&mut self) -> Result<bool, Error> {
        let events = self.watch.events()?;
        let any = events.lost || !events.list.is_empty();
        for (path, what, name) in events.list {
            if !what.contains(ReadFlags::ISDIR) || name.is_empty() {
                continue;
            }
            if what.contains(ReadFlags::DELETE) {
                self.forget(&format!("{path}/{name}"));
            } else {
                self.visit_child(&path, &name)?;
            }
        }
        if events.lost {
            self.begin_anew()?;
        }
        Ok(any)
    }

    fn front(&self) -> Vec<Cgroup> {
        let apps: BTreeSet<_> = self.focused.iter().map(|path| app(path)).collect();
        apps.into_iter().map(Cgroup::new).collect()
    }
}

/// How far `path` is below the hierarchy's root.
fn depth(path: &str) -> usize {
    path.matches('/').count()
}

/// Whether `name` in the cgroup `path` is an app, or on the way to one.
fn leads_to_apps(path: &str, name: &str) -> bool {
    let is = |prefix, suffix| name.starts_with(prefix) && name.ends_with(suffix);
    match depth(path) {
        0 => name == "user.slice",
        1 => is("user-", ".slice"),
        2 => is("user@", ".service"),
        3 => name == "app.slice",
        APP_SLICE => is("app-", ""),
        // What D-Bus starts, and terminals' tabs.
        _ => may_hold_apps(path),
    }
}

/// An app's own cgroups say nothing of it, but a slice is made of units.
fn may_hold_apps(path: &str) -> bool {
    depth(path) <= APP_SLICE || path.ends_with(".slice")
}

/// The unit of `app.slice` that a cgroup belongs to.
fn app(path: &str) -> String {
    let parts: Vec<_> = path.split('/').take(APP_SLICE + 2).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: &str = "/user.slice/user-1000.slice/user@1000.service/app.slice";

    #[test]
    fn only_what_leads_to_an_app_is_watched() {
        assert!(leads_to_apps("", "user.slice"));
        assert!(!leads_to_apps("", "system.slice"));
        assert!(leads_to_apps(
            "/user.slice/user-1000.slice",
            "user@1000.service"
        ));
        assert!(!leads_to_apps(
            "/user.slice/user-1000.slice",
            "session-3.scope"
        ));
        assert!(leads_to_apps(SLICE, "app-gnome-game-7.scope"));
        assert!(!leads_to_apps(SLICE, "dbus.service"));
        let tabs = format!("{SLICE}/app-org.gnome.Terminal.slice");
        assert!(leads_to_apps(&tabs, "vte-spawn-1.scope"));
        assert!(!leads_to_apps(&format!("{SLICE}/app-game-7.scope"), "tab"));
    }

    #[test]
    fn a_part_of_an_app_stands_for_all_of_it() {
        let tab = format!("{SLICE}/app-terminal.slice/vte-spawn-1.scope");
        assert_eq!(app(&tab), format!("{SLICE}/app-terminal.slice"));
        let whole = format!("{SLICE}/app-game-7.scope");
        assert_eq!(app(&whole), whole);
    }
}
