//! Cgroups of the unified hierarchy.

use crate::policy::Usage;
use crate::{Error, android};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Mount point of cgroup v2 on systems without cgroup v1.
pub(crate) const MOUNT_POINT: &str = "/sys/fs/cgroup";

/// Longest path, in bytes. The scheduler's lists are read through one page, and users choose the
/// names.
const MOST_BYTES: usize = 1024;

/// Most background apps of one slice; a user may have thousands.
pub(crate) const MOST_OTHERS: usize = 64;

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

    /// The background apps for a foreground: `app-*` units in the same `app.slice` (systemd's names
    /// for desktop apps), or Android apps without a visible part. Services have other names and are
    /// never background, since the foreground may depend on them; nor are other units of the same
    /// app, which may be its helpers. At most [`MOST_OTHERS`] of one slice; the rest keep the role
    /// "other".
    ///
    /// # Errors
    /// [`Error::Gone`] if the directories cannot be read.
    pub fn other_apps(root: &Path, foreground: &[Cgroup]) -> Result<Vec<Self>, Error> {
        let mut others = android::unnoticed_apps(root, foreground);
        for cgroup in foreground {
            let Some((slice, _)) = cgroup.slice_and_unit() else {
                continue;
            };
            let directory = below(root, &format!("{MOUNT_POINT}{slice}"));
            let entries = fs::read_dir(directory).map_err(|_| Error::Gone(slice.to_owned()))?;
            let apps = entries.flatten().filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let is_app = name.starts_with("app-") && entry.file_type().ok()?.is_dir();
                is_app.then(|| Cgroup::named(format!("{slice}/{name}")))?
            });
            let is_other = |app: &Cgroup| foreground.iter().all(|it| it.app() != app.app());
            others.extend(apps.filter(is_other).take(MOST_OTHERS));
        }
        others.sort();
        others.dedup();
        Ok(others)
    }

    /// Units in a user's `app.slice` of the app with this id (the name of its `.desktop` file).
    pub fn units_of_app(root: &Path, user: u32, id: &str) -> Vec<Self> {
        let slice = format!("/user.slice/user-{user}.slice/user@{user}.service/app.slice");
        let entries = fs::read_dir(below(root, &format!("{MOUNT_POINT}{slice}")));
        let names = entries.into_iter().flatten().flatten();
        let mut units: Vec<_> = names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with("app-"))
            .filter_map(|name| Cgroup::named(format!("{slice}/{name}")))
            .filter(|unit| unescaped(unit.app()).eq_ignore_ascii_case(id))
            .collect();
        units.sort();
        units
    }

    /// The cgroup at `path`; None for a path that is not accepted from any source.
    pub(crate) fn named(path: String) -> Option<Self> {
        Cgroup::try_from(path).ok()
    }

    /// App id of a unit `app-LAUNCHER-APP-RANDOM.scope` or `app-LAUNCHER-APP@RANDOM.service`, each
    /// with or without the launcher; `-` in names is written `\x2d` (systemd's
    /// DESKTOP_ENVIRONMENTS.md).
    fn app(&self) -> &str {
        let (_, unit) = self.slice_and_unit().unwrap_or(("", &self.path));
        let (name, kind) = unit.rsplit_once('.').unwrap_or((unit, ""));
        let name = match (kind, name.matches('-').count()) {
            ("scope", 2..) => name.rsplit_once('-').map_or(name, |(name, _)| name),
            ("service", _) => name.split('@').next().unwrap_or(name),
            _ => name,
        };
        name.rsplit('-').next().unwrap_or(name)
    }

    /// The enclosing `app.slice` at any depth, and the name of the unit in it.
    fn slice_and_unit(&self) -> Option<(&str, &str)> {
        const SLICE: &str = "/app.slice";
        let end = self.path.find(&format!("{SLICE}/"))? + SLICE.len();
        let (slice, below) = self.path.split_at(end);
        Some((slice, below[1..].split('/').next().unwrap_or(below)))
    }

    /// Path as in the kernel's lists.
    pub fn path(&self) -> &str {
        &self.path
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

/// The line of the unified hierarchy, `0::/…` (cgroups(7)).
fn unified(proc_cgroup: &str) -> Option<&str> {
    proc_cgroup
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
}

/// Undoes systemd's escapes such as `\x2d` for `-`.
fn unescaped(name: &str) -> String {
    let mut parts = name.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                bytes.extend(&part.as_bytes()[2..]);
            }
            // Not an escape of systemd's.
            None => bytes.extend(format!("\\x{part}").as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_of_an_app_are_known_by_its_name() {
        for (unit, app) in [
            (
                "app-gnome-org.mozilla.firefox-4711.scope",
                "org.mozilla.firefox",
            ),
            (
                "app-flatpak-org.mozilla.firefox-4712.scope",
                "org.mozilla.firefox",
            ),
            (
                "app-org.mozilla.firefox@0815.service",
                "org.mozilla.firefox",
            ),
            ("app-kde\\x2dcalc-7.scope", "kde\\x2dcalc"),
            ("app-gnome-mail@autostart.service", "mail"),
            ("app-org.gnome.Terminal.slice", "org.gnome.Terminal"),
            ("app-game.scope", "game"),
        ] {
            let unit = Cgroup::named(format!("/app.slice/{unit}")).unwrap();
            assert_eq!(unit.app(), app);
        }
        let tab = "/u/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope";
        assert_eq!(
            Cgroup::named(tab.to_owned()).unwrap().app(),
            "org.gnome.Terminal"
        );
    }

    #[test]
    fn an_apps_units_are_found_by_its_id() {
        let root = tempfile::tempdir().unwrap();
        let slice = "/user.slice/user-7.slice/user@7.service/app.slice";
        for unit in [
            "app-sway-firefox\\x2desr-1.scope",
            "app-firefox\\x2desr@2.service",
            "app-firefox-3.scope",
            "firefox\\x2desr.service",
        ] {
            let directory = below(root.path(), &format!("{MOUNT_POINT}{slice}/{unit}"));
            fs::create_dir_all(directory).unwrap();
        }
        let units = |user, id| Cgroup::units_of_app(root.path(), user, id).len();
        assert_eq!(units(7, "firefox-esr"), 2);
        assert_eq!(units(7, "Firefox"), 1);
        assert_eq!(units(7, "foot"), 0);
        assert_eq!(units(8, "firefox-esr"), 0);
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
    fn names_are_as_before_systemd_escaped_them() {
        for (name, before) in [
            ("a\\x2db", "a-b"),
            ("plain", "plain"),
            ("\\xzz\\x2", "\\xzz\\x2"),
            ("\\xc3\\xa9t\\xc3\\xa9", "été"),
            ("\\x2dé", "-é"),
        ] {
            assert_eq!(unescaped(name), before);
        }
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
