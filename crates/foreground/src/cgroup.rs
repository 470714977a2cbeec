//! Cgroups of the unified hierarchy.

use crate::policy::Usage;
use crate::unit::{self, Unit};
use crate::{Error, android};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Mount point of cgroup v2 on systems without cgroup v1.
pub(crate) const MOUNT_POINT: &str = "/sys/fs/cgroup";

/// Longest path, in bytes. The scheduler's lists are read through one page, and users choose the
/// names.
const MOST_BYTES: usize = 1024;

/// Most background apps of one slice; a user may have thousands.
pub(crate) const MOST_OTHERS: usize = 64;

/// Most cgroups of one `app.slice` that are listed, and how deep slices are nested: systemd makes one of
/// each part of a name.
const MOST_LISTED: usize = 1024;
pub(crate) const DEEPEST_SLICE: usize = 4;

/// A cgroup below the hierarchy's root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cgroup {
    /// Path as in `/proc/PID/cgroup`: `/user.slice/…/app.scope`.
    path: String,
}

impl Cgroup {
    /// The cgroup of `what`: a process id, or the path of a cgroup with or without the mount point.
    ///
    /// # Errors
    /// [`Error::NoHierarchy`], [`Error::Unknown`] or [`Error::Root`].
    pub fn resolve(root: &Path, what: &str) -> Result<Self, Error> {
        if !below(root, MOUNT_POINT).join("cgroup.controllers").exists() {
            return Err(Error::NoHierarchy);
        }
        let unknown = || Error::Unknown(what.to_owned());
        let path = match what.parse::<u32>() {
            Ok(pid) => {
                let file = below(root, &format!("/proc/{pid}/cgroup"));
                let text = fs::read_to_string(file).map_err(|_| unknown())?;
                unified(&text).ok_or(Error::NoHierarchy)?.to_owned()
            }
            Err(_) => what.strip_prefix(MOUNT_POINT).unwrap_or(what).to_owned(),
        };
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return Err(Error::Root(what.to_owned()));
        }
        let cgroup = Cgroup::try_from(path.to_owned()).map_err(|_| unknown())?;
        match cgroup.exists(root) {
            true => Ok(cgroup),
            false => Err(unknown()),
        }
    }

    /// The cgroup of a process, searched from the top of `slice` ("" for the root). With hidepid
    /// the daemon cannot read other users' processes, but it can read the processes of cgroups. The
    /// search of one slice also keeps a user from learning about processes of others.
    ///
    /// # Errors
    /// [`Error::Unknown`], also if it is not among the first `most` that are looked at.
    pub(crate) fn of_process(
        root: &Path,
        slice: &str,
        pid: u32,
        most: usize,
    ) -> Result<Self, Error> {
        let mut found = VecDeque::from([slice.to_owned()]);
        let mut looked_at = 0;
        while let Some(path) = found.pop_front().filter(|_| looked_at < most) {
            looked_at += 1;
            let directory = below(root, &format!("{MOUNT_POINT}{path}"));
            let processes = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            if processes.lines().any(|line| line.parse() == Ok(pid)) {
                return match path.is_empty() {
                    true => Err(Error::Root(pid.to_string())),
                    false => Cgroup::try_from(path),
                };
            }
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let directories = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
            let names = directories.filter_map(|it| it.file_name().into_string().ok());
            let room = most.saturating_sub(looked_at + found.len());
            found.extend(names.take(room).map(|name| format!("{path}/{name}")));
        }
        Err(Error::Unknown(pid.to_string()))
    }

    /// The background apps for a foreground: other apps' units in the same `app.slice`, or Android apps
    /// without a visible part. Services have other names and are never background, since the foreground
    /// may depend on them; nor are other units of the same app, which may be its helpers. At most
    /// [`MOST_OTHERS`] of one slice; the rest keep the role "other".
    ///
    /// # Errors
    /// [`Error::Gone`] if the directories cannot be read.
    pub fn other_apps(root: &Path, foreground: &[Cgroup]) -> Result<Vec<Self>, Error> {
        let mut others = android::unnoticed_apps(root, foreground);
        let foreground: Vec<_> = foreground
            .iter()
            .filter_map(|it| Unit::of(&it.path))
            .collect();
        for unit in &foreground {
            if !below(root, &format!("{MOUNT_POINT}{}", unit.slice)).is_dir() {
                return Err(Error::Gone(unit.slice.to_owned()));
            }
            let is_other = |app: &Cgroup| {
                let unit = Unit::of(&app.path).filter(Unit::may_be_background);
                unit.is_some_and(|unit| !foreground.iter().any(|it| it.is_of_the_app_of(&unit)))
            };
            let units = Self::units_in(root, unit.slice).into_iter();
            others.extend(units.filter(is_other).take(MOST_OTHERS));
        }
        others.sort();
        others.dedup();
        Ok(others)
    }

    /// The units of apps in an `app.slice`, also those in slices below it. A slice without such units is
    /// an app itself.
    pub(crate) fn units_in(root: &Path, slice: &str) -> Vec<Self> {
        let mut units = Vec::new();
        let mut left = MOST_LISTED;
        list_units(root, slice, 0, &mut left, &mut units);
        units.sort();
        units
    }

    /// The cgroup at `path`; None for a path that is not accepted from any source.
    pub(crate) fn named(path: String) -> Option<Self> {
        Cgroup::try_from(path).ok()
    }

    /// Path as in the kernel's lists.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Name of the app whose unit it is; `None` outside of an `app.slice`.
    pub fn app(&self) -> Option<String> {
        Unit::of(&self.path).map(|it| it.app())
    }

    /// Its processes, without those of cgroups below it.
    pub fn processes(&self, root: &Path) -> Vec<u32> {
        let text = fs::read_to_string(self.file(root, "cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|it| it.parse().ok()).collect()
    }

    /// The cgroup and its ancestors, outermost first.
    pub(crate) fn chain(&self) -> impl Iterator<Item = Cgroup> {
        let ends = self.path.match_indices('/').skip(1).map(|(end, _)| end);
        ends.chain([self.path.len()]).map(|end| Cgroup {
            path: self.path[..end].to_owned(),
        })
    }

    /// Path of one of its files on the running system.
    pub(crate) fn knob(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{MOUNT_POINT}{}/{name}", self.path))
    }

    /// The cgroup of a knob's path.
    pub(crate) fn of_knob(knob: &Path) -> Option<Self> {
        let path = knob.parent()?.to_str()?.strip_prefix(MOUNT_POINT)?;
        Cgroup::named(path.to_owned())
    }

    /// Path of one of its files below `root`.
    pub(crate) fn file(&self, root: &Path, name: &str) -> PathBuf {
        below(root, &self.knob(name).to_string_lossy())
    }

    pub(crate) fn exists(&self, root: &Path) -> bool {
        self.file(root, "cgroup.procs").exists()
    }

    /// Whether the cgroup or a descendant has a process; true if the kernel does not say.
    pub(crate) fn is_populated(&self, root: &Path) -> bool {
        match fs::read_to_string(self.file(root, "cgroup.events")) {
            Ok(events) => field(&events, "populated") != Some(0),
            Err(_) => self.exists(root),
        }
    }

    /// User that it is delegated to; root if none.
    pub(crate) fn owner(&self, root: &Path) -> Option<u32> {
        let directory = self.file(root, "cgroup.procs");
        Some(fs::metadata(directory).ok()?.uid())
    }

    pub(crate) fn usage(&self, root: &Path) -> Result<Usage, Error> {
        let read = |name: &str| {
            sys::knobs::read(&self.file(root, name)).map_err(|error| match error.io() {
                Some(source) if source.kind() == ErrorKind::NotFound => {
                    Error::Gone(self.path.clone())
                }
                _ => error.into(),
            })
        };
        let stat = read("memory.stat")?;
        let needed = ["anon", "shmem", "file_mapped", "kernel"];
        let current = read("memory.current")?;
        Ok(Usage {
            all_bytes: current.parse().unwrap_or(0),
            needed_bytes: needed.iter().filter_map(|name| field(&stat, name)).sum(),
        })
    }

    /// Part of the last ten seconds, in percent, in which all non-idle tasks waited for memory
    /// (`memory.pressure`, full); 0 if the kernel does not count it.
    pub(crate) fn memory_stall_percent(&self, root: &Path) -> f64 {
        let pressure = fs::read_to_string(self.file(root, "memory.pressure")).unwrap_or_default();
        let full = pressure.lines().find(|line| line.starts_with("full "));
        let average = full.and_then(|line| {
            let mut words = line.split(' ');
            words.find_map(|word| word.strip_prefix("avg10=")?.parse().ok())
        });
        average.unwrap_or(0.0)
    }

    /// Checks that the kernel has the memory and io controllers.
    pub(crate) fn require_controllers(root: &Path) -> Result<(), Error> {
        let list = below(root, MOUNT_POINT).join("cgroup.controllers");
        let list = fs::read_to_string(list).map_err(|_| Error::NoHierarchy)?;
        for controller in ["memory", "io"] {
            if !list.split_whitespace().any(|it| it == controller) {
                return Err(Error::Disabled(controller));
            }
        }
        Ok(())
    }

    /// Has `controller` passed on to it from its user's systemd, if that was given it. That systemd looks
    /// at what it has at its start only. In a session that was open before frontrowd was enabled it
    /// neither passes on the io controller nor turns it off. [`Cgroup::require`] tells what is missing
    /// afterwards.
    pub(crate) fn pass_on(&self, root: &Path, controller: &'static str) {
        let manager = self.path.find("/user@");
        let Some(manager) = manager.filter(|_| self.path.starts_with("/user.slice/")) else {
            return;
        };
        if self.require(root, controller).is_ok() {
            return;
        }
        let ends = self.path.match_indices('/').map(|(at, _)| at);
        for end in ends.filter(|at| *at > manager) {
            let path = self.path[..end].to_owned();
            let parent = Cgroup { path };
            let has_it = parent.require(root, controller).is_ok();
            let switch = parent.file(root, "cgroup.subtree_control");
            let switched = has_it.then(|| File::options().write(true).open(switch));
            let Some(Ok(mut switch)) = switched else {
                return;
            };
            // In one piece: the kernel takes each write for a whole list.
            let on = format!("+{controller}");
            if switch.write_all(on.as_bytes()).is_err() {
                return;
            }
        }
    }

    /// Checks that `controller` is enabled for it.
    pub(crate) fn require(&self, root: &Path, controller: &'static str) -> Result<(), Error> {
        let Ok(controllers) = fs::read_to_string(self.file(root, "cgroup.controllers")) else {
            return Err(Error::Gone(self.path.clone()));
        };
        if controllers.split_whitespace().any(|it| it == controller) {
            return Ok(());
        }
        let parent = self.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        Err(Error::NoController {
            controller,
            cgroup: self.path.clone(),
            switch: PathBuf::from(format!("{MOUNT_POINT}{parent}/cgroup.subtree_control")),
        })
    }
}

/// The number after `name` in a file of lines `name number`.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == name).then(|| value.parse().ok()).flatten()
    })
}

/// Whether a path is safe: it must not lead out of the hierarchy, nor contain characters that a
/// list of the kernel, a value in brackets or a terminal would interpret. Users choose the names
/// and root writes them. systemd escapes such characters in its own names.
impl TryFrom<String> for Cgroup {
    type Error = Error;

    fn try_from(path: String) -> Result<Self, Error> {
        let mut parts = path.split('/');
        let is_absolute = parts.next() == Some("");
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'[' | b']');
        let is_name = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_plain);
        let is_short = path.len() <= MOST_BYTES;
        match is_absolute && is_short && path.len() > 1 && parts.all(is_name) {
            true => Ok(Cgroup { path }),
            false => Err(Error::Unknown(path)),
        }
    }
}

impl From<Cgroup> for String {
    fn from(cgroup: Cgroup) -> String {
        cgroup.path
    }
}

/// Path below `root` for `path` of the running system.
pub(crate) fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Adds the apps' units below `path`, which is an `app.slice` or a slice in one.
fn list_units(root: &Path, path: &str, depth: usize, left: &mut usize, units: &mut Vec<Cgroup>) {
    let entries = fs::read_dir(below(root, &format!("{MOUNT_POINT}{path}")));
    for entry in entries.into_iter().flatten().flatten() {
        let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
        let Some(name) = entry
            .file_name()
            .into_string()
            .ok()
            .filter(|_| is_directory)
        else {
            continue;
        };
        if *left == 0 {
            return;
        }
        *left -= 1;
        let inner = format!("{path}/{name}");
        let before = units.len();
        if name.ends_with(".slice") && depth < DEEPEST_SLICE {
            list_units(root, &inner, depth + 1, left, units);
        }
        if unit::is_app(&name) && units.len() == before {
            units.extend(Cgroup::named(inner));
        }
    }
}

/// The line of the unified hierarchy, `0::/…` (cgroups(7)).
fn unified(proc_cgroup: &str) -> Option<&str> {
    proc_cgroup
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session that was open before: PID 1 has given its systemd the controller, which does not know.
    #[test]
    fn a_controller_is_passed_on_as_far_down_as_the_users_systemd_has_it() {
        let root = tempfile::tempdir().unwrap();
        let above = "/user.slice/user-7.slice";
        let user = format!("{above}/user@7.service");
        let slice = format!("{user}/app.slice");
        let app = Cgroup::named(format!("{slice}/app-x-1.scope")).unwrap();
        let file = |cgroup: &str, name: &str| {
            below(root.path(), MOUNT_POINT).join(format!("{}/{name}", &cgroup[1..]))
        };
        for cgroup in [above, &user, &slice, app.path()] {
            fs::create_dir_all(file(cgroup, "")).unwrap();
            fs::write(file(cgroup, "cgroup.controllers"), "memory pids\n").unwrap();
            fs::write(file(cgroup, "cgroup.subtree_control"), "").unwrap();
        }
        let written = |cgroup: &str| {
            let switch = file(cgroup, "cgroup.subtree_control");
            fs::read_to_string(switch).unwrap()
        };
        app.pass_on(root.path(), "io");
        assert_eq!(written(&user), "", "PID 1 has not given it");
        for cgroup in [above, &user] {
            fs::write(file(cgroup, "cgroup.controllers"), "memory io pids\n").unwrap();
        }
        app.pass_on(root.path(), "io");
        assert_eq!(written(&user), "+io");
        assert_eq!(written(above), "", "that is PID 1's");
        assert_eq!(written(&slice), "", "it has not got it");
        fs::write(file(&slice, "cgroup.controllers"), "memory io pids\n").unwrap();
        app.pass_on(root.path(), "io");
        assert_eq!(written(&slice), "+io");
        let other = Cgroup::named("/machine.slice/user@7.service/app.slice".to_owned()).unwrap();
        fs::create_dir_all(file(other.path(), "")).unwrap();
        fs::write(file(other.path(), "cgroup.controllers"), "memory\n").unwrap();
        other.pass_on(root.path(), "io");
        assert!(!file("/machine.slice/user@7.service", "cgroup.subtree_control").exists());
    }

    #[test]
    fn other_apps_are_those_in_slices_too_but_no_helpers() {
        const UUID: &str = "7a3bcd12-0d1e-4b0c-8f9a-0123456789ab";
        let root = tempfile::tempdir().unwrap();
        let slice = "/user.slice/user-7.slice/user@7.service/app.slice";
        let snap = format!("snap.mail.mail-{UUID}.scope");
        for unit in [
            "app-graphical.slice/app-sway-foot-1.scope/inner",
            "app-graphical.slice/app-sway-game-2.scope",
            "app-graphical.slice/waybar.service",
            "app-org.gnome.Terminal.slice/vte-spawn-1.scope",
            "app-chat@autostart.service",
            "app-org.kde.plasmashell@autostart.service",
            "app-flatpak-org.real.Game-9.scope",
            "dbus.service",
            &snap,
        ] {
            let directory = below(root.path(), &format!("{MOUNT_POINT}{slice}/{unit}"));
            fs::create_dir_all(directory).unwrap();
        }
        let others_of = |unit: &str| {
            let foreground = [Cgroup::named(format!("{slice}/{unit}")).unwrap()];
            let others = Cgroup::other_apps(root.path(), &foreground).unwrap();
            let names = others
                .iter()
                .map(|it| it.path[slice.len() + 1..].to_owned());
            names.collect::<Vec<_>>()
        };
        let terminal = "app-org.gnome.Terminal.slice";
        let (foot, game) = (
            "app-graphical.slice/app-sway-foot-1.scope",
            "app-graphical.slice/app-sway-game-2.scope",
        );
        let flatpak = "app-flatpak-org.real.Game-9.scope";
        assert_eq!(others_of(foot), [flatpak, game, terminal, &snap]);
        // One of its own units is in a sandbox.
        assert_eq!(others_of(game), [foot, terminal, &snap]);
        assert_eq!(others_of(&snap), [flatpak, foot, game, terminal]);
        let missing = [Cgroup::named("/a/app.slice/app-x-1.scope".to_owned()).unwrap()];
        assert!(matches!(
            Cgroup::other_apps(root.path(), &missing),
            Err(Error::Gone(_))
        ));
    }

    #[test]
    fn a_process_is_found_by_who_may_know_of_it() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, processes: &str| {
            let directory = below(root.path(), &format!("{MOUNT_POINT}{path}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("cgroup.procs"), processes).unwrap();
        };
        put("", "1\n");
        put("/user.slice/user-7.slice/a.slice/b.scope", "41\n42\n");
        put("/user.slice/user-8.slice/c.scope", "43\n");
        let of = |slice, pid| Cgroup::of_process(root.path(), slice, pid, 64);
        let own = "/user.slice/user-7.slice";
        assert_eq!(
            of(own, 42).unwrap().path(),
            format!("{own}/a.slice/b.scope")
        );
        assert!(matches!(of(own, 43), Err(Error::Unknown(_))));
        assert_eq!(
            of("", 43).unwrap().path(),
            "/user.slice/user-8.slice/c.scope"
        );
        assert!(matches!(of("", 1), Err(Error::Root(_))));
        // A user may have very many.
        for number in 0..100 {
            put(&format!("{own}/many-{number}"), "");
        }
        put(&format!("{own}/many-5/deep"), "44\n");
        assert!(of(own, 44).is_err());
        assert!(Cgroup::of_process(root.path(), own, 44, 1000).is_ok());
    }

    #[test]
    fn no_message_leads_out_of_the_hierarchy() {
        let read = |path: &str| serde_json::from_value::<Cgroup>(path.into());
        assert_eq!(read("/a/b.scope").unwrap().path(), "/a/b.scope");
        for path in [
            "",
            "/",
            "a",
            "/a/../../etc",
            "/..",
            "/a//b",
            "/a/",
            "/./a",
            "/a\n/b",
        ] {
            assert!(read(path).is_err(), "{path:?}");
        }
    }
}
