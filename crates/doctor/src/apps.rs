//! Apps and services: cgroups of their own, and the pressure (PSI) that the kernel counts for them.
//! Every user may read it.

use crate::watch::some_ns;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the unified hierarchy is mounted.
const CGROUPS: &str = "sys/fs/cgroup";
/// Levels of the tree that are looked at; systemd's apps are on the sixth.
const DEPTH: usize = 8;
/// Begins of the names of units that hold various programs.
const SHARED: [&str; 3] = ["session-", "user@", "init.scope"];

/// Name of the app or service, if the last component of this path is the cgroup of one.
pub(crate) fn app(path: &str) -> Option<&str> {
    let name = path.trim_end().rsplit('/').next()?;
    let is_unit = name.ends_with(".service") || name.ends_with(".scope");
    let is_shared = SHARED.iter().any(|it| name.starts_with(it));
    (is_unit && !is_shared).then_some(name)
}

/// Time in which some task of each app was held up by I/O, in nanoseconds since the app's start.
pub(crate) fn held_up(root: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    add(&root.join(CGROUPS), DEPTH, &mut found);
    found
}

fn add(cgroup: &Path, depth: usize, found: &mut BTreeMap<String, u64>) {
    let path = cgroup.to_string_lossy();
    if let Some(name) = app(&path) {
        let text = fs::read_to_string(cgroup.join("io.pressure")).unwrap_or_default();
        *found.entry(name.to_owned()).or_default() += some_ns(&text);
        return;
    }
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            add(&entry.path(), depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_are_found_where_systemd_puts_them() {
        let root = tempfile::tempdir().unwrap();
        let apps = "user.slice/user-1000.slice/user@1000.service/app.slice";
        for (path, us) in [
            ("system.slice/cron.service", 7),
            ("user.slice/user-1000.slice/session-2.scope", 9),
            ("user.slice/user-1000.slice/user@1000.service", 9),
            (&format!("{apps}/app-firefox-1.scope"), 5),
            (&format!("{apps}/app-firefox-1.scope/inner.service"), 9),
            (&format!("{apps}/late.service"), 0),
        ] {
            let cgroup = root.path().join(CGROUPS).join(path);
            fs::create_dir_all(&cgroup).unwrap();
            let text = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n");
            fs::write(cgroup.join("io.pressure"), text).unwrap();
        }
        let found = held_up(root.path());
        let expected = [
            ("app-firefox-1.scope", 5000),
            ("cron.service", 7000),
            ("late.service", 0),
        ];
        assert_eq!(
            found,
            expected.map(|(name, ns)| (name.to_owned(), ns)).into()
        );
    }
}
