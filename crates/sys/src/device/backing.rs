//! Loop devices: block devices whose content is a file, such as the image that a Snap is mounted
//! from.

use std::fs;
use std::path::{Path, PathBuf};

/// The driver's number (`LOOP_MAJOR` of linux/major.h).
pub const LOOP_MAJOR: u32 = 7;

/// The file that holds a loop device's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backing {
    /// Path of the file.
    pub file: PathBuf,
    /// Offset in the file of the device's first byte.
    pub offset_bytes: u64,
    /// The device reads past the file's page cache.
    pub direct: bool,
}

/// The file of the loop device with this number; None for other devices, and if the file was
/// deleted.
pub fn backing(root: &Path, (major, minor): (u32, u32)) -> Option<Backing> {
    of(&root.join(format!("sys/dev/block/{major}:{minor}")))
}

/// The files of all loop devices.
pub fn backings(root: &Path) -> Vec<Backing> {
    let entries = fs::read_dir(root.join("sys/block")).into_iter().flatten();
    let loops = entries
        .flatten()
        .filter(|it| it.file_name().to_string_lossy().starts_with("loop"));
    loops.filter_map(|it| of(&it.path())).collect()
}

fn of(device: &Path) -> Option<Backing> {
    let text = |name: &str| fs::read_to_string(device.join("loop").join(name)).ok();
    let file = text("backing_file")?;
    let file = file.trim_end_matches('\n');
    if file.ends_with(" (deleted)") {
        return None;
    }
    Some(Backing {
        file: PathBuf::from(file),
        offset_bytes: text("offset")?.trim().parse().ok()?,
        direct: text("dio")?.trim() == "1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_device_tells_its_file_and_others_have_none() {
        let root = tempfile::tempdir().unwrap();
        let mut number = 0;
        let mut device = |file: Option<&str>, dio: &str| {
            let at = root.path().join(format!("sys/block/loop{number}"));
            let by_number = root.path().join(format!("sys/dev/block/7:{number}"));
            fs::create_dir_all(by_number.parent().unwrap()).unwrap();
            fs::create_dir_all(at.join("loop")).unwrap();
            std::os::unix::fs::symlink(&at, by_number).unwrap();
            number += 1;
            if let Some(file) = file {
                fs::write(at.join("loop/backing_file"), format!("{file}\n")).unwrap();
                fs::write(at.join("loop/offset"), "944632\n").unwrap();
                fs::write(at.join("loop/dio"), format!("{dio}\n")).unwrap();
            }
        };
        device(Some("/var/lib/snapd/snaps/a b_1.snap"), "0");
        device(Some("/gone (deleted)"), "0");
        device(None, "0");
        device(Some("/past"), "1");
        let first = Backing {
            file: "/var/lib/snapd/snaps/a b_1.snap".into(),
            offset_bytes: 944_632,
            direct: false,
        };
        let found = |minor| backing(root.path(), (LOOP_MAJOR, minor));
        assert_eq!(found(0), Some(first.clone()));
        assert_eq!([found(1), found(2), found(9)], [None, None, None]);
        assert!(found(3).unwrap().direct);
        let mut all = backings(root.path());
        all.sort_by_key(|it| it.direct);
        assert_eq!((all.len(), &all[0]), (2, &first));
    }
}
