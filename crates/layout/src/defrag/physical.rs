//! Physical defragmentation: janusdP (dissertation §4.4).
//!
//! Only the device knows the dies of a file's pages. A device that tells and spreads them changes
//! neither addresses nor data. The file may therefore be in use, be on any file system, or be one
//! that must not be moved.

use crate::defrag::remap::commands;
use crate::defrag::survey::open;
use crate::defrag::{Error, Filesystem, Pace, Refusal};
use serde::Serialize;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::PathError;
use sys::device::janus::{Janus, PAGE_BYTES, Range};
use sys::device::{Layout, State};

/// DoF_P from which a file is spread, in the dissertation and in the device.
pub const WORTH_SPREADING: f64 = 0.5;

/// Most files to spread, those that are read most often (dissertation §4.4).
pub const MOST_FILES: usize = 50;

/// Pages to spread between two checks of the rate and the stop flag. The device leaves a piece that
/// is spread well enough where it is.
const PIECE_PAGES: u32 = 1024;

/// Number of pages in one query of the device.
const ASKED_PAGES: u32 = 16_384;

/// Result of spreading a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of bytes that were programmed again.
    pub programmed_bytes: u64,
    /// DoF_P before, from 0 to 1.
    pub dof_p_before: f64,
    /// DoF_P after, from 0 to 1.
    pub dof_p_after: f64,
    /// Whether the whole file was checked; if not, the stop flag was set.
    pub complete: bool,
}

/// A device that spreads pages over its dies, with a file system on it.
#[derive(Debug)]
pub struct Physical {
    janus: Janus,
    /// Offset on the disk of the file system, in bytes.
    start_bytes: u64,
}

impl Physical {
    /// The device of the files below `path`. `None` if it cannot spread, or if the file system does
    /// not tell the places of files.
    ///
    /// # Errors
    /// [`Error::Io`], for instance without the right to read the device.
    pub fn of(path: &Path) -> Result<Option<Self>, Error> {
        let file = open(path).map_err(PathError::of("open", path))?;
        let (filesystem, _) = Filesystem::of(&file).map_err(PathError::of("look at", path))?;
        // btrfs has its own address space over all of its devices.
        if !matches!(
            filesystem,
            Filesystem::Ext4 | Filesystem::F2fs | Filesystem::Xfs
        ) {
            return Ok(None);
        }
        let found = commands(path, Janus::to_ask)?;
        Ok(found.map(|(janus, start_bytes)| Physical { janus, start_bytes }))
    }

    /// DoF_P of a file with this layout. For a large file it is the mean of its parts, weighted by
    /// their pages.
    ///
    /// # Errors
    /// The device's error.
    pub fn dof_p(&self, layout: &Layout) -> io::Result<f64> {
        let (mut sum, mut pages) = (0, 0);
        for part in parts(layout, self.start_bytes, ASKED_PAGES) {
            let part_pages: u64 = part.iter().map(|it| u64::from(it.pages)).sum();
            sum += u64::from(self.janus.dof_p_permille(&part)?) * part_pages;
            pages += part_pages;
        }
        Ok(sum as f64 / 1000.0 / pages.max(1) as f64)
    }

    /// Has the device spread the parts of the file `path` whose DoF_P is at least
    /// [`WORTH_SPREADING`], until `stop` becomes true.
    ///
    /// # Errors
    /// Why the file was not spread, or only in part; its data are complete.
    pub fn spread(
        &self,
        path: &Path,
        pace: &mut Pace,
        stop: &AtomicBool,
    ) -> Result<Spread, Refusal> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::StorageFull => Refusal::System(
                "the device has no free flash for it, or moves of its own to complete".to_owned(),
            ),
            _ => Refusal::of(&error),
        };
        let file = open(path).map_err(refused)?;
        let layout = Layout::of(&file, true).map_err(refused)?;
        let mut spread = Spread {
            programmed_bytes: 0,
            dof_p_before: self.dof_p(&layout).map_err(refused)?,
            dof_p_after: 0.0,
            complete: true,
        };
        for part in parts(&layout, self.start_bytes, PIECE_PAGES) {
            if stop.load(Ordering::Relaxed) {
                spread.complete = false;
                break;
            }
            let bytes = self.janus.spread(&part).map_err(refused)? * PAGE_BYTES;
            spread.programmed_bytes += bytes;
            pace.moved(bytes, stop);
        }
        spread.dof_p_after = self.dof_p(&layout).map_err(refused)?;
        Ok(spread)
    }
}

/// The pages with data in the file's order, at most `most_pages` in each part. Pages beyond 16 TB
/// are left out: no such device is that large.
fn parts(layout: &Layout, start_bytes: u64, most_pages: u32) -> Vec<Vec<Range>> {
    let mut parts: Vec<Vec<Range>> = Vec::new();
    let mut room = 0;
    for run in layout.runs().iter().filter(|it| it.state == State::Written) {
        let mut page = (start_bytes + run.physical_bytes) / PAGE_BYTES;
        let end = (start_bytes + run.physical_bytes + run.size_bytes).div_ceil(PAGE_BYTES);
        while page < end && end <= u64::from(u32::MAX) {
            if room == 0 {
                parts.push(Vec::new());
                room = most_pages;
            }
            let pages = room.min((end - page) as u32);
            if let Some(part) = parts.last_mut() {
                part.push(Range::at(page as u32, pages));
            }
            room -= pages;
            page += u64::from(pages);
        }
    }
    // A range has at least one page, and a command takes a limited number of ranges.
    let most = sys::device::janus::MOST_RANGES;
    parts
        .iter()
        .flat_map(|part| part.chunks(most).map(<[Range]>::to_vec))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sys::device::Extent;
    use sys::device::janus::MOST_RANGES;

    proptest! {
        #[test]
        fn each_page_is_named_once_in_the_files_order(
            sizes in prop::collection::vec((1u64..3000, 0u64..3), 0..40),
            start in 0u64..1000,
            most_pages in 1u32..5000,
        ) {
            let (mut logical, mut place) = (0, 7);
            let mut extents = Vec::new();
            let mut expected = Vec::new();
            for (pages, gap) in sizes {
                let written = gap != 2;
                extents.push(Extent {
                    logical_bytes: logical * PAGE_BYTES,
                    physical_bytes: place * PAGE_BYTES,
                    size_bytes: pages * PAGE_BYTES,
                    state: if written { State::Written } else { State::Unwritten },
                    shared: false,
                });
                if written {
                    expected.extend((place..place + pages).map(|it| it + start));
                }
                logical += pages;
                place += pages + gap;
            }
            let parts = parts(&Layout::new(extents), start * PAGE_BYTES, most_pages);
            let mut named = Vec::new();
            for part in &parts {
                let pages: u32 = part.iter().map(|it| it.pages).sum();
                prop_assert!(pages > 0 && pages <= most_pages && part.len() <= MOST_RANGES);
                for range in part {
                    named.extend((range.src..range.src + range.pages).map(u64::from));
                }
            }
            prop_assert_eq!(named, expected);
        }
    }
}
