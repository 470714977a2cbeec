//! Which mount holds a file (`/proc/self/mountinfo`, proc(5)).

use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// What one line says.
pub struct Mount {
    /// `MAJOR:MINOR`.
    pub number: String,
    /// Such as `ext4`.
    pub filesystem: String,
    /// Such as `/dev/sda1`.
    pub source: String,
}

/// The mount that `path`, which has no links in it, is on.
pub fn holding(root: &Path, path: &Path) -> Result<Option<Mount>, Error> {
    let table = root.join("proc/self/mountinfo");
    let text = fs::read_to_string(&table).map_err(|source| Error::Read {
        path: table,
        source,
    })?;
    // Of mounts on the same directory the last one hides the others.
    Ok(text
        .lines()
        .filter_map(parse)
        .filter(|(point, _)| path.starts_with(point))
        .max_by_key(|(point, _)| point.components().count())
        .map(|(_, mount)| mount))
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse(line: &str) -> Option<(PathBuf, Mount)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2);
    let mut filesystem = filesystem.split(' ');
    let number = mount.next()?.to_owned();
    let point = PathBuf::from(unescape(mount.nth(1)?));
    let mount = Mount {
        number,
        filesystem: filesystem.next()?.to_owned(),
        source: unescape(filesystem.next()?),
    };
    Some((point, mount))
}

/// The kernel writes these four characters in octal (`mangle_path` in fs/seq_file.c).
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
