//! Where Frontrow writes down what it changes.
//!
//! Android has neither `/run` nor `/var`, and nobody can make them: its root is read-only. There
//! `/dev` is the tmpfs that is empty at each boot, and `/data/adb` is where root's modules live.

use std::path::{Path, PathBuf};

/// File of each Android system, and of no other.
const ANDROID: &str = "system/build.prop";

/// Directory that lasts until the machine goes down: `run`, or `dev` on Android.
pub fn until_reboot(root: &Path) -> PathBuf {
    root.join(if is_android(root) { "dev" } else { "run" })
}

/// Frontrow's directory that outlasts a reboot.
pub fn across_reboots(root: &Path) -> PathBuf {
    let directory = match is_android(root) {
        true => "data/adb/frontrow",
        false => "var/lib/frontrow",
    };
    root.join(directory)
}

pub(crate) fn is_android(root: &Path) -> bool {
    root.join(ANDROID).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn android_has_places_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(until_reboot(root), root.join("run"));
        assert_eq!(across_reboots(root), root.join("var/lib/frontrow"));
        fs::create_dir(root.join("system")).unwrap();
        fs::write(root.join(ANDROID), "ro.build.version.sdk=36\n").unwrap();
        assert_eq!(until_reboot(root), root.join("dev"));
        assert_eq!(across_reboots(root), root.join("data/adb/frontrow"));
    }
}
