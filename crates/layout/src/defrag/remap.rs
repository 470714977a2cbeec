//! Moving without copying: the device answers ext4's copy with a remap (janusdL, online).
//!
//! `EXT4_IOC_MOVE_EXT` writes each page of a file to its new place, and changes the file's extents
//! in the same transaction. Before a range is moved, the device is told the old and the new places
//! of its data. A write to the new place with the data of the old one then is an entry in the
//! device's log, and not a program.
//!
//! All other writes are programmed as usual. Nothing has to be undone or locked: journal, flushes
//! and recovery are those of any write.

use crate::defrag::Error;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use sys::PathError;
use sys::device::janus::{Janus, MOST_RANGES, PAGE_BYTES, Range};
use sys::device::{Device, Extent, Layout, State};

/// A device that can remap, with a file system on it.
#[derive(Debug)]
pub struct Remap {
    janus: Janus,
    /// Offset on the disk of the file system, in bytes.
    start_bytes: u64,
}

impl Remap {
    /// The device of the files below `path`; `None` if it cannot remap.
    ///
    /// # Errors
    /// [`Error::Io`], for instance without the right to command the device.
    pub fn of(path: &Path) -> Result<Option<Self>, Error> {
        let found = commands(path, Janus::of)?;
        Ok(found.map(|(janus, start_bytes)| Remap { janus, start_bytes }))
    }

    /// Number of pages that the device remapped instead of programming them, since the counters'
    /// reset.
    ///
    /// # Errors
    /// The device's error.
    pub fn elided_pages(&self) -> io::Result<u64> {
        self.janus.elided_pages()
    }

    /// Arms the move of a range of a file from the layout `from` to the layout `to`.
    pub(crate) fn arm(
        &self,
        from: &Layout,
        to: &Layout,
        offset: u64,
        bytes: u64,
    ) -> io::Result<()> {
        let ranges = ranges(from, to, self.start_bytes, offset, offset + bytes);
        for some in ranges.chunks(MOST_RANGES) {
            self.janus.arm(some)?;
        }
        Ok(())
    }

    /// Disarms the range, whether it was moved or not.
    pub(crate) fn disarm(&self) -> io::Result<()> {
        self.janus.disarm()
    }
}

/// The commands that `of` opens for the device below `path`, and the offset of the file system on
/// it in bytes. `None` also if that offset is not at a page boundary.
pub(crate) fn commands(
    path: &Path,
    of: impl Fn(&Device) -> io::Result<Option<Janus>>,
) -> Result<Option<(Janus, u64)>, Error> {
    let Ok(device) = Device::resolve(Path::new("/"), &path.to_string_lossy()) else {
        return Ok(None);
    };
    let Some(janus) = of(&device).map_err(PathError::of("command the device of", path))? else {
        return Ok(None);
    };
    let number = fs::metadata(path)
        .map_err(PathError::of("look at", path))?
        .dev();
    let start = Device::partition_start_bytes(Path::new("/"), number);
    let start_bytes = start.map_err(|error| Error::Device {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let aligned = start_bytes.is_multiple_of(PAGE_BYTES);
    Ok(aligned.then_some((janus, start_bytes)))
}

/// Old and new places of the written pages between two offsets of a file.
fn ranges(from: &Layout, to: &Layout, start_bytes: u64, offset: u64, end: u64) -> Vec<Range> {
    let mut ranges = Vec::new();
    let places = to.runs();
    for run in from.runs().iter().filter(|it| it.state == State::Written) {
        for place in &places {
            let first = run.logical_bytes.max(place.logical_bytes).max(offset);
            let last = logical_end(run).min(logical_end(place)).min(end);
            if first >= last {
                continue;
            }
            let page = |it: &Extent| {
                let physical = start_bytes + it.physical_bytes + (first - it.logical_bytes);
                u32::try_from(physical / PAGE_BYTES).ok()
            };
            // No such device is larger than 16 TB; a page that is not armed is copied.
            if let (Some(src), Some(dst)) = (page(run), page(place)) {
                let pages = (last - first).div_ceil(PAGE_BYTES) as u32;
                ranges.push(Range::new(src, dst, pages));
            }
        }
    }
    ranges
}

fn logical_end(extent: &Extent) -> u64 {
    extent.logical_bytes + extent.size_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(logical: u64, physical: u64, pages: u64) -> Extent {
        Extent {
            logical_bytes: logical * PAGE_BYTES,
            physical_bytes: physical * PAGE_BYTES,
            size_bytes: pages * PAGE_BYTES,
            state: State::Written,
            shared: false,
        }
    }

    #[test]
    fn the_dissertations_example() {
        let pieces = [(0, 11), (1, 13), (2, 15), (3, 17)];
        let from = Layout::new(pieces.map(|(page, lba)| at(page, lba, 1)).to_vec());
        let to = Layout::new(vec![at(0, 19, 4)]);
        let armed = ranges(&from, &to, 0, 0, 4 * PAGE_BYTES);
        let expected = [(11, 19), (13, 20), (15, 21), (17, 22)];
        assert_eq!(armed, expected.map(|(src, dst)| Range::new(src, dst, 1)));
    }

    #[test]
    fn a_partition_begins_somewhere_and_what_is_not_written_has_no_data() {
        let mut unwritten = at(4, 30, 4);
        unwritten.state = State::Unwritten;
        let from = Layout::new(vec![at(0, 10, 4), unwritten]);
        let to = Layout::new(vec![at(0, 50, 8)]);
        let armed = ranges(&from, &to, 256 * PAGE_BYTES, PAGE_BYTES, 8 * PAGE_BYTES);
        assert_eq!(armed, [Range::new(267, 307, 3)]);
    }

    proptest! {
        #[test]
        fn each_page_of_the_stretch_is_named_once_and_rightly(
            from in prop::collection::vec(1u64..9, 1..12),
            to in prop::collection::vec(1u64..20, 1..6),
            offset in 0u64..20,
            pages in 1u64..30,
        ) {
            // Pieces are a thousand pages apart, so that none adjoins another.
            let pieces = |sizes: &[u64], place: u64| {
                let mut logical = 0;
                let mut extents = Vec::new();
                for (number, size) in sizes.iter().enumerate() {
                    extents.push(at(logical, place + number as u64 * 1000, *size));
                    logical += size;
                }
                (Layout::new(extents), logical)
            };
            let (from, from_pages) = pieces(&from, 0);
            let (to, to_pages) = pieces(&to, 100_000);
            let end = (offset + pages).min(from_pages).min(to_pages);
            let armed = ranges(&from, &to, 0, offset * PAGE_BYTES, (offset + pages) * PAGE_BYTES);
            let place = |layout: &Layout, page: u64| {
                let run = layout.runs().into_iter().find(|it| {
                    (it.logical_bytes..logical_end(it)).contains(&(page * PAGE_BYTES))
                });
                let run = run.unwrap();
                ((run.physical_bytes + page * PAGE_BYTES - run.logical_bytes) / PAGE_BYTES) as u32
            };
            let named: Vec<(u32, u32)> = armed
                .iter()
                .flat_map(|it| (0..it.pages).map(|page| (it.src + page, it.dst + page)))
                .collect();
            let expected: Vec<(u32, u32)> = (offset..end)
                .map(|page| (place(&from, page), place(&to, page)))
                .collect();
            prop_assert_eq!(named, expected);
        }
    }
}
