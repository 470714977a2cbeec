//! Cgroups of Android.
//!
//! The activity manager moves processes between the groups of a cpuset hierarchy (cgroup v1, at
//! `/dev/cpuset`), by their visibility. Controllers of cgroup v2 use another hierarchy, with a
//! cgroup for each app (by its user id) and in it one for each process: `/uid_10123/pid_4711`
//! (libprocessgroup).

use crate::Cgroup;
use crate::cgroup::{MOST_OTHERS, MOUNT_POINT, below};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Directory of the cpuset groups.
pub(crate) const GROUPS: &str = "/dev/cpuset";

/// Group of the apps on the screen.
pub(crate) const TOP_APP: &str = "top-app";

/// Groups of apps that are not on the screen, but are noticed by the user or needed by an app on
/// the screen: the activity manager moves apps here that the top app has bound.
const NOTICED: [&str; 2] = ["foreground", "foreground_window"];

/// Range of user ids of each Android user, and the first one of an app (`AID_USER_OFFSET`,
/// `AID_APP_START` in android_filesystem_config.h).
const USER_OFFSET: u32 = 100_000;
const FIRST_APP: u32 = 10_000;

/// Path of a file of a group.
pub(crate) fn file(root: &Path, group: &str, name: &str) -> PathBuf {
    below(root, &format!("{GROUPS}/{group}/{name}"))
}

/// Apps that have a process in `group`.
pub(crate) fn apps_in(root: &Path, group: &str) -> BTreeSet<Cgroup> {
    let processes = fs::read_to_string(file(root, group, "cgroup.procs")).unwrap_or_default();
    let cgroups = processes
        .lines()
        .filter_map(|pid| Cgroup::resolve(root, pid).ok());
    cgroups.filter_map(|it| app(&it)).collect()
}

/// All other apps that the user does not notice; empty unless `front` are Android apps.
pub(crate) fn unnoticed_apps(root: &Path, seen: &[Cgroup]) -> Vec<Cgroup> {
    let parents: BTreeSet<_> = seen
        .iter()
        .filter_map(app)
        .filter_map(|app| Some(app.path().rsplit_once('/')?.0.to_owned()))
        .collect();
    if parents.is_empty() {
        return Vec::new();
    }
    let groups = NOTICED.iter().chain([&TOP_APP]);
    let mut noticed: BTreeSet<_> = groups.flat_map(|group| apps_in(root, group)).collect();
    noticed.extend(seen.iter().filter_map(app));
    let names = |parent: &String| {
        let directory = below(root, &format!("{MOUNT_POINT}{parent}"));
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| format!("{parent}/{}", entry.file_name().display()));
        paths.collect::<Vec<_>>()
    };
    let all = parents.iter().flat_map(names).filter_map(Cgroup::named);
    all.filter(|it| app(it).as_ref() == Some(it) && !noticed.contains(it))
        .take(MOST_OTHERS)
        .collect()
}

/// The app's cgroup for a cgroup of one of its processes.
fn app(cgroup: &Cgroup) -> Option<Cgroup> {
    let parts: Vec<_> = cgroup.path().split('/').collect();
    let at = parts.iter().position(|part| is_app(part))?;
    Cgroup::named(parts[..=at].join("/"))
}

fn is_app(name: &str) -> bool {
    let uid = name.strip_prefix("uid_").and_then(|uid| uid.parse().ok());
    uid.is_some_and(|uid: u32| uid % USER_OFFSET >= FIRST_APP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_stands_for_its_app_and_the_system_for_none() {
        let whose = |path: &str| app(&Cgroup::named(path.to_owned()).unwrap()).map(String::from);
        for (path, expected) in [
            ("/uid_10123/pid_4711", Some("/uid_10123")),
            ("/uid_10123", Some("/uid_10123")),
            ("/apps/uid_1010123/pid_1", Some("/apps/uid_1010123")),
            // system_server of the first and of a second user.
            ("/uid_1000/pid_900", None),
            ("/uid_101000/pid_900", None),
            ("/uid_x/pid_900", None),
            ("/init.scope", None),
        ] {
            assert_eq!(whose(path).as_deref(), expected, "{path}");
        }
    }
}
