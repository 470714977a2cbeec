//! Mounts of files and devices (`/proc/self/mountinfo`, proc(5)).

use crate::device::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// A line of mountinfo.
#[derive(Clone, Debug)]
pub struct Mount {
    /// Device number as `MAJOR:MINOR`.
    pub number: String,
    /// The directory of the file system that is mounted, `/` for all of it.
    pub top: String,
    /// Type of the file system, such as `ext4`.
    pub filesystem: String,
    /// Source of the mount, such as `/dev/sda1`.
    pub source: String,
}

fn table(root: &Path) -> Result<String, Error> {
    let path = root.join("proc/self/mountinfo");
    fs::read_to_string(&path).map_err(|source| Error::Read { path, source })
}

/// The mount that holds `path`, which must have no symbolic links.
pub fn holding(root: &Path, path: &Path) -> Result<Option<Mount>, Error> {
    let text = table(root)?;
    // The last mount on a directory hides earlier ones on it.
    Ok(text
        .lines()
        .filter_map(parse)
        .filter(|(point, _)| path.starts_with(point))
        .max_by_key(|(point, _)| point.components().count())
        .map(|(_, mount)| mount))
}

/// Mount point and mount of all mounts, in the kernel's order.
///
/// # Errors
/// [`Error::Read`].
pub fn all_mounts(root: &Path) -> Result<Vec<(PathBuf, Mount)>, Error> {
    Ok(table(root)?.lines().filter_map(parse).collect())
}

/// Mount point of the first cgroup v2 hierarchy; None if none is mounted.
///
/// # Errors
/// [`Error::Read`].
pub fn cgroup_root(root: &Path) -> Result<Option<PathBuf>, Error> {
    let mounts = all_mounts(root)?.into_iter();
    let mut of_cgroups = mounts.filter(|(_, mount)| mount.filesystem == "cgroup2");
    Ok(of_cgroups.next().map(|(point, _)| point))
}

/// Absolute paths of the file at `path` in the file system on the block device `number`. There is
/// one for each mount that contains it; other mounts may hide it.
///
/// # Errors
/// [`Error::Read`].
pub fn shown_at(root: &Path, number: (u32, u32), path: &Path) -> Result<Vec<PathBuf>, Error> {
    let text = table(root)?;
    let number = format!("{}:{}", number.0, number.1);
    let shown = text.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(2);
        let same = fields.next()? == number;
        let (top, point) = (unescape(fields.next()?), unescape(fields.next()?));
        let below = path.strip_prefix(top).ok().filter(|_| same)?;
        Some(Path::new(&point).join(below))
    });
    Ok(shown.collect())
}

/// Whether the block device is mounted and its file system may write to it. A read-only mount does
/// not exclude a writable one.
pub fn is_mounted_for_writing(root: &Path, major: u32, minor: u32) -> Result<bool, Error> {
    let text = table(root)?;
    let number = format!("{major}:{minor}");
    let written = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let options = filesystem.split(' ').nth(2)?;
        let same = mount.split(' ').nth(2)? == number;
        Some(same && options.split(',').next()? == "rw")
    };
    Ok(text.lines().any(|line| written(line).unwrap_or(false)))
}

/// Parses `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse(line: &str) -> Option<(PathBuf, Mount)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2);
    let mut filesystem = filesystem.split(' ');
    let number = mount.next()?.to_owned();
    let top = unescape(mount.next()?);
    let point = PathBuf::from(unescape(mount.next()?));
    let mount = Mount {
        number,
        top,
        filesystem: filesystem.next()?.to_owned(),
        source: unescape(filesystem.next()?),
    };
    Some((point, mount))
}

/// Decodes the four characters that the kernel writes in octal (`mangle_path` in fs/seq_file.c).
fn unescape(text: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (code, character)| {
        text.replace(code, character)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_their_strange_names() {
        let line =
            "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let (point, mount) = parse(line).unwrap();
        assert_eq!(point, Path::new("/mnt 2"));
        assert_eq!((&*mount.number, &*mount.top), ("98:0", "/mnt1"));
        assert_eq!((&*mount.filesystem, &*mount.source), ("ext3", "/dev/root"));
        assert!(parse("nonsense").is_none());
        assert_eq!(unescape("a\\b\\04"), "a\\b\\04");
    }

    #[test]
    fn the_unified_hierarchy_is_found_among_the_old_ones() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let write = |text: &str| fs::write(root.path().join("proc/self/mountinfo"), text).unwrap();
        let text = "\
30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - tmpfs tmpfs rw\n\
31 30 0:27 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory\n\
32 30 0:28 / /sys/fs/cgroup/unified rw shared:11 - cgroup2 cgroup2 rw\n";
        write(text);
        let expected = Some(PathBuf::from("/sys/fs/cgroup/unified"));
        assert_eq!(cgroup_root(root.path()).unwrap(), expected);
        write(&text.replace("cgroup2", "cgroup"));
        assert_eq!(cgroup_root(root.path()).unwrap(), None);
    }

    #[test]
    fn a_file_system_is_written_if_any_mount_of_it_may_be() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let table = "36 35 98:0 / /mnt1 ro,noatime master:1 - ext4 /dev/root rw,errors=continue\n\
            37 35 98:1 / /mnt2 rw,noatime - ext4 /dev/other ro\n\
            38 35 98:10 / /mnt3 rw - ext4 /dev/third rw\nhello\n";
        fs::write(root.path().join("proc/self/mountinfo"), table).unwrap();
        let written = |minor| is_mounted_for_writing(root.path(), 98, minor).unwrap();
        assert!(
            written(0),
            "the mount is read-only, and the file system is not"
        );
        assert!(!written(1));
        assert!(written(10));
        assert!(!written(2), "not mounted");
    }

    #[test]
    fn a_file_is_shown_by_each_mount_of_what_it_is_in() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let table = "36 35 98:0 / / rw - ext4 /dev/root rw\n\
            37 35 98:0 /home/a /my\\040files rw - ext4 /dev/root rw\n\
            38 35 98:1 / /other rw - ext4 /dev/other rw\n";
        fs::write(root.path().join("proc/self/mountinfo"), table).unwrap();
        let shown = |path: &str| shown_at(root.path(), (98, 0), Path::new(path)).unwrap();
        let at = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(shown("/home/a/b"), at(&["/home/a/b", "/my files/b"]));
        assert_eq!(shown("/home/c"), at(&["/home/c"]));
    }
}
