//! Measurement of read times: of a fragmented file, and of its size in one piece.
//!
//! Reads use O_DIRECT, a mebibyte at a time. They neither replace cached data nor profit from them.
//! The expected time comes from a table from request size to latency. It is measured on the same
//! file system, in the longest piece of any file.

use crate::defrag::survey::{Finding, open};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use sys::device::{Extent, Layout, PAGE_BYTES, Pages, State};

/// Size of one read. It is twice the largest request of most devices, so that a contiguous read
/// keeps the device busy as readahead would.
const CHUNK_BYTES: u64 = 1 << 20;

/// Most bytes to read of a file.
const MOST_BYTES: u64 = 128 << 20;

/// Repetitions for each size of the table, and for each file. The fastest counts: slower ones had
/// to wait for other I/O.
const TRIES: u64 = 7;
const FILE_TRIES: u32 = 2;

/// Most time that any disk takes from one piece of a file to the next, in nanoseconds: a seek over
/// all of it and a turn. A file that loses more has lost it to other I/O.
const PIECE_NS: u64 = 20_000_000;

/// How often such a file is measured; after that it has no figure.
const NOISY_TRIES: u32 = 3;

/// Read times of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReadTime {
    /// Measured time, in nanoseconds.
    pub as_it_lies_ns: u64,
    /// Expected time of a file of that size in one piece, in nanoseconds.
    pub should_take_ns: u64,
    /// Number of bytes that were read, from the begin of the file.
    pub bytes: u64,
}

impl ReadTime {
    /// Measured time over the expected time.
    pub fn factor(&self) -> f64 {
        self.as_it_lies_ns as f64 / self.should_take_ns.max(1) as f64
    }

    /// Whether so many pieces more than it need be can be why the file is slow.
    fn is_explained(&self, more_pieces: u64) -> bool {
        self.excess_ns() <= more_pieces.saturating_mul(PIECE_NS)
    }

    /// Time that a file in one piece would save, in nanoseconds.
    pub fn excess_ns(&self) -> u64 {
        self.as_it_lies_ns.saturating_sub(self.should_take_ns)
    }
}

/// A contiguous piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    path: PathBuf,
    extent: Extent,
}

impl Spot {
    /// The longest piece of a file that holds written data.
    pub(crate) fn longest(path: &Path, layout: &Layout) -> Option<Self> {
        let runs = layout.runs().into_iter();
        let longest = runs
            .filter(|it| it.state == State::Written)
            .max_by_key(|it| it.size_bytes)?;
        Some(Spot {
            path: path.to_owned(),
            extent: longest,
        })
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.extent.size_bytes
    }
}

/// Expected time of a contiguous read, for sizes from 4 KB to [`CHUNK_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Size in bytes and latency in nanoseconds; sizes ascend by powers of two.
    steps: Vec<(u64, u64)>,
}

impl Table {
    /// Measures in the longest piece of the survey; `None` if there is none, or if it cannot be
    /// read with O_DIRECT.
    pub(crate) fn measure(spot: &Spot) -> Option<Self> {
        let file = open_directly(&spot.path).ok()?;
        let mut buffer = Pages::zeroed(CHUNK_BYTES as usize);
        let mut steps = Vec::new();
        let mut size = PAGE_BYTES as u64;
        while size <= CHUNK_BYTES.min(spot.size_bytes()) {
            let places = spot.size_bytes() / size;
            let mut quickest = u64::MAX;
            for attempt in 0..TRIES {
                // The reads are spread over the piece, so that none finds data that another one has
                // fetched.
                let place = attempt * places / TRIES;
                let offset = spot.extent.logical_bytes + place * size;
                let took = timed_read(&file, &mut buffer, offset, size).ok()?;
                quickest = quickest.min(took);
            }
            steps.push((size, quickest));
            size *= 2;
        }
        (!steps.is_empty()).then_some(Table { steps })
    }

    /// A table of these sizes and latencies, with ascending sizes.
    #[cfg(test)]
    pub(crate) fn new(steps: Vec<(u64, u64)>) -> Self {
        Table { steps }
    }

    /// Expected time of one read, in nanoseconds. Beyond the table it grows at the rate of its end.
    pub fn read_ns(&self, bytes: u64) -> u64 {
        let at = self.steps.partition_point(|(size, _)| *size < bytes);
        let (Some(last), Some(first)) = (self.steps.last(), self.steps.first()) else {
            return 0;
        };
        match (
            at.checked_sub(1).map(|it| self.steps[it]),
            self.steps.get(at),
        ) {
            (None, _) => first.1,
            (Some(_), None) => (last.1 as u128 * bytes as u128 / last.0 as u128) as u64,
            (Some((low, low_ns)), Some((high, high_ns))) => {
                let more_ns = high_ns.saturating_sub(low_ns) as u128;
                let share = (bytes - low) as u128;
                low_ns + (more_ns * share / (high - low) as u128) as u64
            }
        }
    }

    /// Expected time of these reads if each is contiguous, in nanoseconds.
    fn should_take_ns(&self, chunks: &[(u64, u64)]) -> u64 {
        chunks.iter().map(|(_, size)| self.read_ns(*size)).sum()
    }
}

/// Measures the read times of files.
pub struct Measure {
    table: Table,
    buffer: Pages,
}

impl Measure {
    /// `None` if the survey found no file that can be read with O_DIRECT.
    pub(crate) fn new(spot: Option<&Spot>) -> Option<Self> {
        Some(Measure {
            table: Table::measure(spot?)?,
            buffer: Pages::zeroed(CHUNK_BYTES as usize),
        })
    }

    /// Measures the read time of a file.
    ///
    /// # Errors
    /// The system's error, such as that of a file that cannot be read with O_DIRECT; `Interrupted`
    /// when `stop` becomes true.
    pub fn file(&mut self, path: &Path, stop: &AtomicBool) -> io::Result<ReadTime> {
        let layout = Layout::of(&open(path)?, false)?;
        let chunks = chunks(&layout);
        let file = open_directly(path)?;
        let mut quickest = u64::MAX;
        for _ in 0..FILE_TRIES {
            let begun = Instant::now();
            for (offset, size) in &chunks {
                if stop.load(Ordering::Relaxed) {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                file.read_at(&mut self.buffer[..*size as usize], *offset)?;
            }
            quickest = quickest.min(begun.elapsed().as_nanos() as u64);
        }
        Ok(ReadTime {
            as_it_lies_ns: quickest,
            should_take_ns: self.table.should_take_ns(&chunks),
            bytes: chunks.iter().map(|(_, size)| size).sum(),
        })
    }

    /// Read time of a file; None if it cannot be read, or if other I/O kept the device too busy.
    fn without_noise(&mut self, finding: &Finding, stop: &AtomicBool) -> Option<ReadTime> {
        let more_pieces = finding.fragments - finding.fewest_fragments;
        for _ in 0..NOISY_TRIES {
            let read = self.file(&finding.path, stop).ok()?;
            if read.is_explained(more_pieces) {
                return Some(read);
            }
        }
        None
    }

    /// Measures the files of `findings`, those with the largest possible loss first, until
    /// `budget_bytes` were read. A file that cannot be read gets no figure.
    pub(crate) fn findings(
        &mut self,
        findings: &mut [Finding],
        budget_bytes: u64,
        progress: &mut dyn FnMut(u64, u64),
        stop: &AtomicBool,
    ) -> Result<(), crate::defrag::Error> {
        let mut order: Vec<usize> = (0..findings.len()).collect();
        order.sort_by_key(|index| {
            let finding = &findings[*index];
            std::cmp::Reverse(finding.fragments - finding.fewest_fragments)
        });
        let total = order.len() as u64;
        let mut left_bytes = budget_bytes;
        for (done, index) in order.into_iter().enumerate() {
            progress(done as u64, total);
            let finding = &mut findings[index];
            let bytes = finding.size_bytes.min(MOST_BYTES);
            if bytes > left_bytes {
                continue;
            }
            left_bytes -= bytes;
            finding.read = self.without_noise(finding, stop);
            if stop.load(Ordering::Relaxed) {
                return Err(crate::defrag::Error::Interrupted);
            }
        }
        Ok(())
    }
}

/// Offsets and sizes of the reads of a file: its written parts, in chunks.
fn chunks(layout: &Layout) -> Vec<(u64, u64)> {
    let mut chunks = Vec::new();
    let mut left = MOST_BYTES;
    for (start, size) in Layout::new(layout.written()).segments() {
        let end = start + size.min(left);
        left -= end - start;
        let mut offset = start;
        while offset < end {
            let size = CHUNK_BYTES.min(end - offset);
            chunks.push((offset, size));
            offset += size;
        }
    }
    chunks
}

/// Opens a file for a measurement without a new access time, unless it is another user's. A new
/// time would write a block of metadata for nearly every file.
fn open_directly(path: &Path) -> io::Result<File> {
    let open = |more: libc::c_int| {
        let flags = libc::O_DIRECT | libc::O_NONBLOCK;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags | more);
        sys::walk::open_quietly(path, &options)
    };
    match open(libc::O_NOATIME) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => open(0),
        outcome => outcome,
    }
}

fn timed_read(file: &File, buffer: &mut Pages, offset: u64, size: u64) -> io::Result<u64> {
    let begun = Instant::now();
    file.read_at(&mut buffer[..size as usize], offset)?;
    Ok(begun.elapsed().as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table() -> Table {
        Table::new(vec![(4096, 100), (8192, 120), (16384, 200)])
    }

    #[test]
    fn what_pieces_cannot_have_cost_is_other_io() {
        let read = ReadTime {
            as_it_lies_ns: 764_000_000,
            should_take_ns: 147_000_000,
            bytes: 64 << 20,
        };
        assert!(!read.is_explained(3));
        assert!(read.is_explained(40));
        let quick = ReadTime {
            as_it_lies_ns: 140_000_000,
            ..read
        };
        assert!(quick.is_explained(0));
    }

    #[test]
    fn between_measured_sizes_it_is_a_line_and_beyond_them_a_rate() {
        assert_eq!(table().read_ns(512), 100);
        assert_eq!(table().read_ns(4096), 100);
        assert_eq!(table().read_ns(6144), 110);
        assert_eq!(table().read_ns(16384), 200);
        assert_eq!(table().read_ns(32768), 400);
    }

    #[test]
    fn a_file_is_read_in_chunks_without_its_holes() {
        let extent = |logical_bytes, size_bytes, state| Extent {
            logical_bytes,
            physical_bytes: logical_bytes * 3,
            size_bytes,
            state,
            shared: false,
        };
        let layout = Layout::new(vec![
            extent(0, 4096, State::Written),
            extent(4096, 4096, State::Written),
            extent(8192, 4096, State::Unwritten),
            extent(1 << 20, (1 << 20) + 4096, State::Written),
        ]);
        let expected = [(0, 8192), (1 << 20, 1 << 20), (2 << 20, 4096)];
        assert_eq!(chunks(&layout), expected);
    }

    #[test]
    fn a_file_on_disk_is_measured() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![1; 300_000]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        let Ok(layout) = Layout::of(&file, true) else {
            // The file system has no FIEMAP.
            return;
        };
        let spot = Spot::longest(&path, &layout);
        // Without direct I/O there is no figure.
        if let Some(mut measure) = Measure::new(spot.as_ref()) {
            let read = measure.file(&path, &AtomicBool::new(false)).unwrap();
            assert!(read.bytes >= 300_000);
            assert!(read.as_it_lies_ns > 0 && read.should_take_ns > 0);
        }
    }

    proptest! {
        #[test]
        fn more_bytes_never_take_less(one in 1u64..1 << 20, other in 1u64..1 << 20) {
            let (less, more) = (one.min(other), one.max(other));
            prop_assert!(table().read_ns(less) <= table().read_ns(more));
        }
    }
}
