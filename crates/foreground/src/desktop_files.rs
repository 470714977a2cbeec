//! Names of an app by its `.desktop` file (Desktop Entry Specification): windows, sandboxes and units
//! may each call it by another one.

use crate::cgroup::below;
use std::fs;
use std::path::{Path, PathBuf};

/// Where flatpak and snapd put the files of apps for all users, if the session does not name it.
const SANDBOXED: [&str; 2] = [
    "/var/lib/flatpak/exports/share/applications",
    "/var/lib/snapd/desktop/applications",
];

/// Programs that run others: their names are no app's.
const RUNNERS: [&str; 9] = [
    "bash", "env", "flatpak", "java", "perl", "python3", "sh", "snap", "wine",
];

/// The names in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// Name of the file.
    id: String,
    /// `StartupWMClass`: the windows' name.
    window: Option<String>,
    /// `X-Flatpak`: the id of the sandbox.
    flatpak: Option<String>,
    /// `X-SnapInstanceName`: the package.
    snap: Option<String>,
    /// Program of `Exec`, unless it runs others.
    program: Option<String>,
}

impl Entry {
    fn parse(id: &str, text: &str) -> Self {
        let mut entry = Entry {
            id: id.to_owned(),
            ..Entry::default()
        };
        let group = text.lines().skip_while(|it| it.trim() != "[Desktop Entry]");
        for line in group.skip(1).take_while(|it| !it.starts_with('[')) {
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let value = Some(value.trim()).filter(|it| !it.is_empty());
            let value = value.map(str::to_owned);
            match key.trim() {
                "StartupWMClass" => entry.window = value,
                "X-Flatpak" => entry.flatpak = value,
                "X-SnapInstanceName" => entry.snap = value,
                "Exec" => entry.program = value.as_deref().and_then(program),
                _ => {}
            }
        }
        entry
    }

    fn is_of_windows(&self, name: &str) -> bool {
        let names = [Some(&self.id), self.window.as_ref()];
        let mut names = names.into_iter().flatten();
        names.any(|it| it.eq_ignore_ascii_case(name))
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        let program = self.program.as_deref().map(file_name);
        let others = [&self.window, &self.flatpak, &self.snap];
        let others = others.into_iter().flatten().map(String::as_str);
        let names = [self.id.as_str()].into_iter().chain(others).chain(program);
        names.map(str::to_owned)
    }
}

/// All names of the app whose windows have this name, without that one.
pub(crate) fn names_of(root: &Path, name: &str) -> Vec<String> {
    let entries = all(root);
    let theirs: Vec<_> = entries.iter().filter(|it| it.is_of_windows(name)).collect();
    // Chrome has two files for one program, and calls its unit by the other.
    let is_same_program = |entry: &&Entry| {
        let program = entry.program.as_ref();
        program.is_some() && theirs.iter().any(|it| it.program.as_ref() == program)
    };
    let twins = entries.iter().filter(is_same_program);
    let mut names: Vec<_> = theirs
        .iter()
        .copied()
        .chain(twins)
        .flat_map(Entry::names)
        .collect();
    names.sort();
    names.dedup();
    names.retain(|it| !it.eq_ignore_ascii_case(name));
    names
}

fn all(root: &Path) -> Vec<Entry> {
    let mut entries = Vec::new();
    for directory in directories() {
        let files = fs::read_dir(below(root, &directory.to_string_lossy()));
        for file in files.into_iter().flatten().flatten() {
            let path = file.path();
            let is_entry = path.extension().is_some_and(|it| it == "desktop");
            let id = path
                .file_stem()
                .and_then(|it| it.to_str())
                .filter(|_| is_entry);
            // A link may lead nowhere.
            if let (Some(id), Ok(text)) = (id, fs::read_to_string(&path)) {
                entries.push(Entry::parse(id, &text));
            }
        }
    }
    entries
}

/// Directories of `.desktop` files (XDG Base Directory Specification).
fn directories() -> Vec<PathBuf> {
    let named = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    let home = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")? + "/.local/share"));
    // A service of the session's may not have the variable.
    let shared = named("XDG_DATA_DIRS").unwrap_or_default() + ":/usr/local/share:/usr/share";
    let own_flatpaks = home.iter().map(|it| format!("{it}/flatpak/exports/share"));
    let shared = shared.split(':').filter(|it| !it.is_empty());
    let shared = shared.map(str::to_owned);
    let mut directories: Vec<_> = home
        .iter()
        .cloned()
        .chain(own_flatpaks)
        .chain(shared)
        .map(|it| PathBuf::from(it).join("applications"))
        .chain(SANDBOXED.map(PathBuf::from))
        .collect();
    directories.sort();
    directories.dedup();
    directories
}

/// The program of `Exec`, after the variables that `env` sets.
fn program(exec: &str) -> Option<String> {
    let mut words = exec.split_whitespace().map(|it| it.trim_matches('"'));
    let first = words.next()?;
    let program = match file_name(first) {
        "env" => words.find(|it| !it.contains('=') && !it.starts_with('-'))?,
        _ => first,
    };
    (!RUNNERS.contains(&file_name(program))).then(|| program.to_owned())
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_names_of_its_app() {
        let text = "[Desktop Entry]\nName=Web\nExec=env BAMF=x /snap/bin/firefox %u\n\
                    StartupWMClass=Firefox\nX-SnapInstanceName=firefox\nX-Flatpak=\n\
                    [Desktop Action new]\nExec=/usr/bin/other\nStartupWMClass=no\n";
        let entry = Entry::parse("firefox_firefox", text);
        let names: Vec<_> = entry.names().collect();
        assert_eq!(names, ["firefox_firefox", "Firefox", "firefox", "firefox"]);
        assert!(entry.is_of_windows("FIREFOX") && entry.is_of_windows("firefox_firefox"));
        assert!(!entry.is_of_windows("no"));
    }

    #[test]
    fn a_program_that_runs_others_names_no_app() {
        assert_eq!(
            program("/usr/bin/foot -d").as_deref(),
            Some("/usr/bin/foot")
        );
        assert_eq!(program("\"/opt/a/b\" %U").as_deref(), Some("/opt/a/b"));
        for runs in [
            "flatpak run x.y",
            "/bin/sh -c x",
            "env A=b python3 x",
            "env A=b",
            "",
        ] {
            assert_eq!(program(runs), None, "{runs}");
        }
    }
}
