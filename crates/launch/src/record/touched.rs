//! Touched pages by file, collected while the app runs.

use super::need::Need;
use crate::identity::Identity;
use crate::profile::{Metadata, PAGE_BYTES, Pages, ProfiledFile, ranges};
use crate::working_set::open_quietly;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bit 63 of an entry of `/proc/PID/pagemap`: the page is present. Most other fields are only for
/// root.
const PRESENT: u64 = 1 << 63;

/// The pages touched so far.
#[derive(Default)]
pub struct Touched {
    pub(super) files: HashMap<PathBuf, BTreeSet<u64>>,
    pub(super) need: Need,
    /// Pages of the file systems' metadata, by `st_dev`.
    metadata: BTreeMap<u64, BTreeSet<u64>>,
}

impl Touched {
    /// Adds touched pages of the file at `path`, which is absolute and without symbolic links.
    pub fn pages(&mut self, path: PathBuf, pages: Range<u64>) {
        self.need.pages(path.clone(), &pages);
        self.files.entry(path).or_default().extend(pages);
    }

    /// Adds metadata pages of the device with this number (`st_dev`), which were read into its page
    /// cache.
    pub fn metadata(&mut self, device: u64, pages: Range<u64>) {
        self.metadata.entry(device).or_default().extend(pages);
    }

    /// Adds `bytes` of the file that process `id` has open as `descriptor`. They are those before
    /// its position, or from `offset`.
    pub fn read(&mut self, id: i32, descriptor: u64, bytes: u64, offset: Option<u64>) {
        let link = PathBuf::from(format!("/proc/{id}/fd/{descriptor}"));
        let Some(path) = regular(&link) else {
            return;
        };
        let begin = offset.or_else(|| position(id, descriptor)?.checked_sub(bytes));
        if let (Some(begin), 1..) = (begin, bytes) {
            let pages = begin / PAGE_BYTES..(begin + bytes).div_ceil(PAGE_BYTES);
            self.pages(path, pages);
        }
    }

    /// Notes that process `id` maps the file that it has open as `descriptor`.
    pub fn maps(&mut self, id: i32, descriptor: u64) {
        if let Some(path) = regular(&PathBuf::from(format!("/proc/{id}/fd/{descriptor}"))) {
            self.need.file(path);
        }
    }

    /// Notes the files that the kernel mapped in an exec of process `id`.
    pub fn execs(&mut self, id: i32) {
        let maps = fs::read_to_string(format!("/proc/{id}/maps")).unwrap_or_default();
        for mapping in maps.lines().filter_map(mapping) {
            self.need.file(PathBuf::from(mapping.path));
        }
    }

    /// Adds the present pages of files that process `id` has mapped, in `range` of its addresses or
    /// everywhere.
    pub fn mapped(&mut self, id: i32, range: Option<(u64, u64)>) {
        // A process that has ended meanwhile has no mappings.
        let Ok(maps) = fs::read_to_string(format!("/proc/{id}/maps")) else {
            return;
        };
        let Ok(pagemap) = File::open(format!("/proc/{id}/pagemap")) else {
            return;
        };
        let (from, to) = range.unwrap_or((0, u64::MAX));
        for mapping in maps.lines().filter_map(mapping) {
            let (from, to) = (mapping.begin.max(from), mapping.end.min(to));
            if from < to {
                self.add(&mapping, from, to, &pagemap);
            }
        }
    }

    fn add(&mut self, mapping: &Mapping, from: u64, to: u64, pagemap: &File) {
        let mut entries = vec![0; ((to - from) / PAGE_BYTES * 8) as usize];
        if pagemap
            .read_exact_at(&mut entries, from / PAGE_BYTES * 8)
            .is_err()
        {
            return;
        }
        let first = (mapping.offset + (from - mapping.begin)) / PAGE_BYTES;
        let present = |entry: &[u8]| {
            let bytes = entry.try_into().unwrap_or_default();
            u64::from_le_bytes(bytes) & PRESENT != 0
        };
        let pages = (first..)
            .zip(entries.chunks_exact(8))
            .filter(|(_, entry)| present(entry));
        let mut pages = pages.map(|(page, _)| page).peekable();
        if pages.peek().is_some() {
            let path = PathBuf::from(mapping.path);
            self.need.file(path.clone());
            self.files.entry(path).or_default().extend(pages);
        }
    }

    /// The files as they are now, in the order in which they were needed, and the metadata. Files
    /// that are gone or not on a block device are left out, as are pages beyond a file's end.
    pub fn now(mut self) -> (Vec<ProfiledFile>, Vec<Metadata>) {
        let order = self.need.order().into_iter();
        let mut files: Vec<ProfiledFile> = order
            .filter_map(|path| {
                let pages = self.files.remove(&path).unwrap_or_default();
                now(&path, |end| ranges(pages.range(..end).copied()))
                    .ok()
                    .flatten()
            })
            .collect();
        self.need.divide(&mut files);
        self.metadata
            .retain(|device, _| files.iter().any(|it| it.identity.device == *device));
        let metadata = self.metadata.into_iter().map(|(device, touched)| Metadata {
            device,
            pages: ranges(touched.into_iter()),
        });
        (files, metadata.collect())
    }
}

/// The file as it is now. `before` gives its pages before its end. None if it has none, or is not
/// on a block device.
pub(super) fn now(
    path: &Path,
    before: impl FnOnce(u64) -> Vec<Pages>,
) -> io::Result<Option<ProfiledFile>> {
    let identity = Identity::of(&open_quietly(path)?)?;
    let pages = before(identity.size_bytes.div_ceil(PAGE_BYTES));
    // Major number 0 is for anonymous devices: tmpfs, proc, overlayfs, network file systems.
    let on_disk = libc::major(identity.device) != 0;
    Ok((on_disk && !pages.is_empty()).then_some(ProfiledFile {
        path: path.to_owned(),
        identity,
        pages,
        late: Default::default(),
    }))
}

/// Target of a link of `/proc`, if it is a regular file.
fn regular(link: &Path) -> Option<PathBuf> {
    if !fs::metadata(link).ok()?.is_file() {
        return None;
    }
    fs::read_link(link).ok().filter(|it| it.is_absolute())
}

/// The file position from `/proc/PID/fdinfo/FD`.
fn position(id: i32, descriptor: u64) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{id}/fdinfo/{descriptor}")).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("pos:")?.trim().parse().ok())
}

/// A mapping of a file in a process.
struct Mapping<'a> {
    begin: u64,
    end: u64,
    /// Offset in the file of `begin`.
    offset: u64,
    path: &'a str,
}

/// Parses a line such as `7f0e-7f1e r-xp 00001000 fd:01 1234    /usr/lib/x.so`. A deleted file, or
/// one with a newline in its name, has no usable path.
fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (begin, end) = fields.next()?.split_once('-')?;
    let offset = fields.nth(1)?;
    let path = fields.nth(2)?.trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    (path.starts_with('/') && !path.ends_with(" (deleted)")).then_some(Mapping {
        begin: number(begin)?,
        end: number(end)?,
        offset: number(offset)?,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_files_are_read_and_others_are_not() {
        let line = "7f1000-7f4000 r-xp 00002000 fd:01 1234                  /usr/lib/a b.so";
        let found = mapping(line).unwrap();
        assert_eq!((found.begin, found.end), (0x7f_1000, 0x7f_4000));
        assert_eq!((found.offset, found.path), (0x2000, "/usr/lib/a b.so"));
        for other in [
            "7f1000-7f4000 rw-p 00000000 00:00 0 ",
            "7f1000-7f4000 rw-p 00000000 00:00 0                          [heap]",
            "7f1000-7f4000 r--p 00000000 fd:01 9                          /tmp/x (deleted)",
            "",
        ] {
            assert!(mapping(other).is_none(), "{other}");
        }
    }

    #[test]
    fn what_this_process_touched_is_found() {
        let mut touched = Touched::default();
        touched.mapped(std::process::id() as i32, None);
        let exe = fs::read_link("/proc/self/exe").unwrap();
        assert!(
            touched.files.contains_key(&exe),
            "{:?}",
            touched.files.keys()
        );
    }
}
