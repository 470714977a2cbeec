//! Focus from cgroup attributes that a desktop's compositor sets.
//!
//! systemd starts apps as `app-*` units of `app.slice`. GNOME's compositor sets the extended
//! attribute `user.xdg.inactive-since` on the cgroup of a window: -1 while it has the focus,
//! otherwise the time since when it does not. inotify reports both, in the directory above.
//!
//! Users can make cgroups below their own with any name, depth and number, and set the attribute.
//! So the watches and foreground apps of each user are limited, and the log names what exceeds the
//! limit.

use super::Detector;
use crate::cgroup::{DEEPEST_SLICE, below};
use crate::unit::{self, Unit};
use crate::watch::{Added, ReadFlags, Watch, WatchFlags};
use crate::{Cgroup, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

const HIERARCHY: &str = "/sys/fs/cgroup";
const ATTRIBUTE: &str = "user.xdg.inactive-since";
const FOCUSED: &[u8] = b"-1";

/// Depth of `app.slice` below the hierarchy's root.
const APP_SLICE: usize = 4;

/// Most nested slices: systemd makes one of each part of a name.
const DEEPEST: usize = APP_SLICE + DEEPEST_SLICE;

/// Limits for each user: watched directories, cgroups of a directory that are checked when it is
/// found, remembered cgroups with the attribute, and foreground apps. A desktop has about three
/// slices, and one window with the focus, or two during a change.
const MOST_WATCHES: usize = 64;
const MOST_CHILDREN: usize = 1024;
const MOST_FOCUSED: usize = 64;
const MOST_FOREGROUND: usize = 2;

/// Detector for the apps of all users.
#[derive(Debug)]
pub struct Scopes {
    root: PathBuf,
    /// Watches by path in the hierarchy; "" is the root.
    watch: Watch<String>,
    /// Cgroups that have the focus according to the attribute.
    focused: BTreeSet<String>,
    /// Number of watches of each user, by the name of the user's slice.
    watched: BTreeMap<String, usize>,
    /// Users with cgroups that exceed a limit.
    left_out: BTreeSet<String>,
    log: Vec<String>,
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
            watched: BTreeMap::new(),
            left_out: BTreeSet::new(),
            log: Vec::new(),
        };
        scopes.visit("")?;
        Ok(scopes)
    }

    /// Checks a cgroup, and watches it if apps may appear in it. The watch comes before the
    /// directory is read, so that no app is missed.
    fn visit(&mut self, path: &str) -> Result<(), Error> {
        self.read_attribute(path);
        if !may_hold_apps(path) || !self.watch(path)? {
            return Ok(());
        }
        let directory = below(&self.root, &format!("{HIERARCHY}{path}"));
        // It may have been removed, which is another event.
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let most = if user(path).is_some() {
            MOST_CHILDREN
        } else {
            usize::MAX
        };
        for entry in entries.take(most) {
            let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
            if let (true, Ok(name)) = (is_directory, entry.file_name().into_string()) {
                self.visit_child(path, &name)?;
            }
        }
        Ok(())
    }

    /// Adds a watch for the directory; returns whether that was possible.
    fn watch(&mut self, path: &str) -> Result<bool, Error> {
        let of_user = user(path).map(|user| self.watched.get(user).copied().unwrap_or(0));
        let is_known = self.watch.watches(&path.to_owned());
        let is_too_much = of_user.is_some_and(|it| it >= MOST_WATCHES) || depth(path) > DEEPEST;
        if is_too_much && !is_known {
            self.leave_out(path);
            return Ok(false);
        }
        let directory = below(&self.root, &format!("{HIERARCHY}{path}"));
        let flags =
            WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::ATTRIB | WatchFlags::ONLYDIR;
        let added = self.watch.add(&directory, flags, path.to_owned())?;
        match added {
            Added::Watched if !is_known => self.count(path),
            Added::Refused => self.leave_out(path),
            _ => {}
        }
        Ok(added == Added::Watched)
    }

    fn count(&mut self, path: &str) {
        if let Some(user) = user(path) {
            *self.watched.entry(user.to_owned()).or_default() += 1;
        }
    }

    /// Logged once for each user, so that users cannot fill the log.
    fn leave_out(&mut self, path: &str) {
        let whose = user(path).unwrap_or("the system").to_owned();
        if self.left_out.insert(whose) {
            let shown: String = path.chars().take(200).collect();
            self.log.push(format!(
                "apps in {:?} are ignored: it is too deep, or one of too many slices",
                shown
            ));
        }
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
        if !length.is_ok_and(|length| &value[..length] == FOCUSED) {
            self.focused.remove(path);
            return;
        }
        let of_user = self.focused.iter().filter(|it| user(it) == user(path));
        match of_user.count() < MOST_FOCUSED {
            true => drop(self.focused.insert(path.to_owned())),
            false => self.leave_out(path),
        }
    }

    /// The kernel keeps the watches of removed cgroups.
    fn forget(&mut self, path: &str) {
        let below = format!("{path}/");
        let is_in = |it: &String| it == path || it.starts_with(&below);
        if may_hold_apps(path) {
            self.watch.end(is_in);
            self.watched.clear();
            let watched: Vec<_> = self.watch.all().cloned().collect();
            watched.iter().for_each(|path| self.count(path));
        }
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
            } else if what.contains(ReadFlags::CREATE) {
                self.visit_child(&path, &name)?;
            } else if leads_to_apps(&path, &name) {
                self.read_attribute(&format!("{path}/{name}"));
            }
        }
        if events.lost {
            self.begin_anew()?;
        }
        Ok(any)
    }

    fn foreground(&self) -> Vec<Cgroup> {
        // A part of an app stands for all of it.
        let units = self.focused.iter().filter_map(|path| Unit::of(path));
        let units = units.filter(Unit::may_be_foreground);
        let apps: BTreeSet<_> = units.map(|it| it.path.to_owned()).collect();
        let mut of_users = BTreeMap::new();
        let apps = apps.into_iter().filter_map(Cgroup::named);
        let is_foreground = |app: &Cgroup| {
            let of_user = of_users.entry(user(app.path()).map(str::to_owned));
            let count: &mut usize = of_user.or_default();
            *count += 1;
            *count <= MOST_FOREGROUND
        };
        apps.filter(is_foreground).collect()
    }

    fn is_the_users_word(&self) -> bool {
        true
    }

    fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

/// User of a path, by the name of the user's slice.
fn user(path: &str) -> Option<&str> {
    path.split('/').nth(2)
}

/// Depth of `path` below the hierarchy's root.
fn depth(path: &str) -> usize {
    path.matches('/').count()
}

/// Whether `name` in the cgroup `path` is an app or a slice that may contain apps.
fn leads_to_apps(path: &str, name: &str) -> bool {
    let is = |prefix, suffix| name.starts_with(prefix) && name.ends_with(suffix);
    match depth(path) {
        0 => name == "user.slice",
        1 => is("user-", ".slice"),
        2 => is("user@", ".service"),
        3 => name == "app.slice",
        APP_SLICE => unit::is_app(name) || name.ends_with(".slice"),
        // Slices of D-Bus services and of terminals' tabs.
        _ => may_hold_apps(path),
    }
}

/// Cgroups below an app do not count; those below a slice are units.
fn may_hold_apps(path: &str) -> bool {
    depth(path) <= APP_SLICE || path.ends_with(".slice")
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::fd::OwnedFd;

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

    /// A hierarchy of files, of which one user has as much as they like.
    struct Hierarchy(tempfile::TempDir);

    impl Hierarchy {
        fn new() -> Self {
            let root = tempfile::tempdir_in("/dev/shm");
            let root = root.unwrap_or_else(|_| tempfile::tempdir().unwrap());
            let hierarchy = Hierarchy(root);
            hierarchy.make(SLICE);
            hierarchy
        }

        fn directory(&self, path: &str) -> PathBuf {
            below(self.0.path(), &format!("{HIERARCHY}{path}"))
        }

        fn make(&self, path: &str) {
            fs::create_dir_all(self.directory(path)).unwrap();
        }

        /// False where the file system of this machine's temporary files has no such attributes.
        fn focus(&self, path: &str) -> bool {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(self.directory(path), ATTRIBUTE, FOCUSED, flags).is_ok()
        }
    }

    /// Deeper than a path may be long: made from where one is, not by its path.
    #[test]
    fn slices_deeper_than_any_path_are_left_out_and_named() {
        let hierarchy = Hierarchy::new();
        let mut scopes = Scopes::new(hierarchy.0.path()).unwrap();
        let name = format!("app-{}.slice", "x".repeat(240));
        let open = |directory: &OwnedFd, name: &str| {
            let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY;
            rustix::fs::openat(directory, name, flags, rustix::fs::Mode::empty()).unwrap()
        };
        let mut at: OwnedFd = fs::File::open(hierarchy.directory(SLICE)).unwrap().into();
        for _ in 0..20 {
            rustix::fs::mkdirat(&at, &*name, rustix::fs::Mode::RWXU).unwrap();
            at = open(&at, &name);
        }
        for mut scopes in [
            scopes_after(&mut scopes),
            Scopes::new(hierarchy.0.path()).unwrap(),
        ] {
            let log = scopes.log();
            assert_eq!(log.len(), 1, "{log:?}");
            assert!(log[0].contains("are ignored"), "{log:?}");
            assert!(scopes.watched["user-1000.slice"] < 10);
        }
        // The others are seen as before.
        hierarchy.make(&format!("{SLICE}/app-game-7.scope"));
        assert!(Scopes::new(hierarchy.0.path()).unwrap().look().is_ok());
    }

    /// The same, after it has looked.
    fn scopes_after(scopes: &mut Scopes) -> Scopes {
        scopes.look().unwrap();
        let new = Scopes::new(&scopes.root).unwrap();
        std::mem::replace(scopes, new)
    }

    #[test]
    fn one_user_has_so_many_watches_and_another_has_theirs() {
        let hierarchy = Hierarchy::new();
        for number in 0..10 * MOST_WATCHES {
            hierarchy.make(&format!("{SLICE}/app-{number}.slice"));
        }
        let other = SLICE.replace("1000", "1001");
        hierarchy.make(&other);
        let mut scopes = Scopes::new(hierarchy.0.path()).unwrap();
        assert_eq!(scopes.watched["user-1000.slice"], MOST_WATCHES);
        assert!(scopes.watch.watches(&other));
        // Their end makes room.
        for number in 0..10 * MOST_WATCHES {
            fs::remove_dir(hierarchy.directory(&format!("{SLICE}/app-{number}.slice"))).unwrap();
        }
        scopes.look().unwrap();
        assert!(scopes.watched["user-1000.slice"] < 5);
    }

    #[test]
    fn one_user_cannot_fill_the_front() {
        let hierarchy = Hierarchy::new();
        let other = SLICE.replace("1000", "1001");
        let theirs = format!("{other}/app-game-1.scope");
        hierarchy.make(&theirs);
        assert!(
            hierarchy.focus(&theirs),
            "extended attributes of users in /dev/shm need Linux 6.6; elsewhere set TMPDIR to a \
             directory that has them"
        );
        for number in 0..2 * MOST_FOCUSED {
            let path = format!("{SLICE}/app-{number}-1.scope");
            hierarchy.make(&path);
            hierarchy.focus(&path);
        }
        let scopes = Scopes::new(hierarchy.0.path()).unwrap();
        let foreground = scopes.foreground();
        assert_eq!(foreground.len(), MOST_FOREGROUND + 1);
        assert_eq!(foreground.last().map(Cgroup::path), Some(theirs.as_str()));
        assert!(scopes.focused.len() <= MOST_FOCUSED + 1);
    }

    #[test]
    fn snaps_and_apps_in_slices_are_apps_and_the_desktop_is_none() {
        let hierarchy = Hierarchy::new();
        let snap = "snap.firefox.firefox-7a3bcd12-0d1e-4b0c-8f9a-0123456789ab.scope";
        let foot = "app-graphical.slice/app-sway-foot-1.scope";
        let tab = "app-org.gnome.Terminal.slice/vte-spawn-1.scope";
        let shell = "app-org.kde.plasmashell@autostart.service";
        for (focused, wanted) in [
            (snap, Some(snap)),
            (foot, Some(foot)),
            (tab, Some("app-org.gnome.Terminal.slice")),
            (shell, None),
        ] {
            let path = format!("{SLICE}/{focused}");
            hierarchy.make(&path);
            assert!(hierarchy.focus(&path));
            let foreground = Scopes::new(hierarchy.0.path()).unwrap().foreground();
            let names = foreground.iter().map(|it| &it.path()[SLICE.len() + 1..]);
            assert_eq!(
                names.collect::<Vec<_>>(),
                Vec::from_iter(wanted),
                "{focused}"
            );
            fs::remove_dir(hierarchy.directory(&path)).unwrap();
        }
    }

    #[test]
    fn a_name_that_root_would_take_for_another_is_never_in_foreground() {
        let hierarchy = Hierarchy::new();
        for name in ["app-x [", "app-\u{1b}[2J", "app-[y]"] {
            let path = format!("{SLICE}/{name}");
            hierarchy.make(&path);
            hierarchy.focus(&path);
        }
        assert!(
            Scopes::new(hierarchy.0.path())
                .unwrap()
                .foreground()
                .is_empty()
        );
    }
}
