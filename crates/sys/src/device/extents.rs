//! A file's extents on its device, from FIEMAP (Documentation/filesystems/fiemap.rst), and the
//! fragmentation that follows from them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Flags in `fe_flags` (include/uapi/linux/fiemap.h).
const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELALLOC: u32 = 0x4;
const ENCODED: u32 = 0x8;
const NOT_ALIGNED: u32 = 0x100;
const DATA_INLINE: u32 = 0x200;
const DATA_TAIL: u32 = 0x400;
const UNWRITTEN: u32 = 0x800;
const SHARED: u32 = 0x2000;

/// `FIEMAP_FLAG_SYNC`: the kernel writes the file's dirty pages first.
const FLAG_SYNC: u32 = 0x1;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;

/// Number of extents per call of FIEMAP.
const BATCH: usize = 256;

/// Longest data in one fragment. ext4 needs a second extent for more (`EXT_INIT_MAX_LEN` of 4 KB
/// blocks), and a block group hardly has more contiguous space.
const LONGEST_RUN_BYTES: u64 = 128 << 20;

/// State of an extent's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The data are on the device in plain form.
    Written,
    /// Space is allocated, but not written; reads give zeros without I/O.
    Unwritten,
    /// The data are only in memory, and space is not allocated yet (delayed allocation).
    Pending,
    /// The data are compressed, encrypted by the file system, or inside its metadata.
    Encoded,
}

/// A contiguous piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the file, in bytes.
    pub logical_bytes: u64,
    /// Offset on the device or partition of the file system, in bytes.
    pub physical_bytes: u64,
    /// Length in bytes.
    pub size_bytes: u64,
    /// State of the data.
    pub state: State,
    /// Other files share the extent (reflink, snapshot).
    pub shared: bool,
}

impl Extent {
    fn is_placed(&self) -> bool {
        matches!(self.state, State::Written | State::Unwritten)
    }

    /// Whether `next` adjoins the end of this extent, in the file and on the device.
    fn continues_in(&self, next: &Extent) -> bool {
        self.logical_bytes + self.size_bytes == next.logical_bytes
            && self.physical_bytes + self.size_bytes == next.physical_bytes
    }
}

/// The extents of a file, in the order of their offsets in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    extents: Vec<Extent>,
}

/// `struct fiemap_extent` of include/uapi/linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for a batch of extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

impl Layout {
    /// The current extents of `file`. With `sync` dirty data are written first, so that they have a
    /// place.
    ///
    /// # Errors
    /// The error of FIEMAP: `Unsupported` on a file system without it.
    pub fn of(file: &File, sync: bool) -> io::Result<Self> {
        let mut layout = Layout::default();
        let mut start = 0;
        loop {
            let batch = fetch(file, start, sync)?;
            let Some(last) = batch.last() else {
                return Ok(layout);
            };
            start = last.logical.saturating_add(last.length);
            let is_last = last.flags & LAST != 0;
            layout.extents.extend(batch.iter().map(extent));
            if is_last || start == 0 {
                return Ok(layout);
            }
        }
    }

    /// A layout with these extents, which must be in the order of their offsets.
    pub fn new(extents: Vec<Extent>) -> Self {
        Layout { extents }
    }

    /// The extents, in the order of their offsets in the file.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Extents whose blocks on the device are the file's data.
    pub fn written(&self) -> Vec<Extent> {
        let written = self.extents.iter().filter(|it| it.state == State::Written);
        written.copied().collect()
    }

    /// Extents that are placed on the device; those that adjoin in the file and on the device are
    /// joined.
    pub fn runs(&self) -> Vec<Extent> {
        let mut runs: Vec<Extent> = Vec::new();
        for extent in self.extents.iter().filter(|it| it.is_placed()) {
            match runs.last_mut() {
                Some(run) if run.state == extent.state && run.continues_in(extent) => {
                    run.size_bytes += extent.size_bytes;
                    run.shared |= extent.shared;
                }
                _ => runs.push(*extent),
            }
        }
        runs
    }

    /// Parts of the file without holes: offset and length in bytes.
    pub fn segments(&self) -> Vec<(u64, u64)> {
        let mut segments: Vec<(u64, u64)> = Vec::new();
        for extent in self.extents.iter().filter(|it| it.is_placed()) {
            match segments.last_mut() {
                Some((start, size)) if *start + *size == extent.logical_bytes => {
                    *size += extent.size_bytes;
                }
                _ => segments.push((extent.logical_bytes, extent.size_bytes)),
            }
        }
        segments
    }

    /// Number of pieces of the file on the device.
    pub fn fragments(&self) -> u64 {
        let mut fragments = 0;
        let mut run = 0;
        let mut before: Option<&Extent> = None;
        for extent in self.extents.iter().filter(|it| it.is_placed()) {
            if before.is_some_and(|before| before.continues_in(extent)) {
                run += extent.size_bytes;
            } else {
                fragments += u64::div_ceil(run, LONGEST_RUN_BYTES);
                run = extent.size_bytes;
            }
            before = Some(extent);
        }
        fragments + u64::div_ceil(run, LONGEST_RUN_BYTES)
    }

    /// Smallest number of pieces that a file with the same holes could have.
    pub fn fewest_fragments(&self) -> u64 {
        let segments = self.segments().into_iter();
        segments
            .map(|(_, size)| size.div_ceil(LONGEST_RUN_BYTES))
            .sum()
    }

    /// DoF_L (dissertation §2.1): pieces over the fewest possible, at least 1. `None` for a file
    /// without data on the device.
    pub fn dof_l(&self) -> Option<f64> {
        let fewest = self.fewest_fragments();
        (fewest > 0).then(|| self.fragments() as f64 / fewest as f64)
    }

    /// Bytes that are placed on the device.
    pub fn placed_bytes(&self) -> u64 {
        let placed = self.extents.iter().filter(|it| it.is_placed());
        placed.map(|it| it.size_bytes).sum()
    }

    /// Whether any extent is shared with another file.
    pub fn is_shared(&self) -> bool {
        self.extents.iter().any(|it| it.shared)
    }

    /// Whether any data have no blocks of their own: they are compressed or in metadata.
    pub fn is_encoded(&self) -> bool {
        self.extents.iter().any(|it| it.state == State::Encoded)
    }
}

fn fetch(file: &File, start: u64, sync: bool) -> io::Result<Vec<RawExtent>> {
    let mut request = Request {
        start,
        length: u64::MAX - start,
        flags: if sync { FLAG_SYNC } else { 0 },
        mapped_extents: 0,
        extent_count: BATCH as u32,
        reserved: 0,
        extents: [RawExtent::default(); BATCH],
    };
    // SAFETY: the kernel reads the head and writes at most `extent_count` extents behind it.
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &mut request) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = (request.mapped_extents as usize).min(BATCH);
    Ok(request.extents[..mapped].to_vec())
}

fn extent(raw: &RawExtent) -> Extent {
    const NOWHERE: u32 = ENCODED | NOT_ALIGNED | DATA_INLINE | DATA_TAIL;
    let state = match raw.flags {
        flags if flags & DELALLOC != 0 => State::Pending,
        flags if flags & (NOWHERE | UNKNOWN) != 0 => State::Encoded,
        flags if flags & UNWRITTEN != 0 => State::Unwritten,
        _ => State::Written,
    };
    Extent {
        logical_bytes: raw.logical,
        physical_bytes: raw.physical,
        size_bytes: raw.length,
        state,
        shared: raw.flags & SHARED != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(logical_bytes: u64, physical_bytes: u64, size_bytes: u64) -> Extent {
        Extent {
            logical_bytes,
            physical_bytes,
            size_bytes,
            state: State::Written,
            shared: false,
        }
    }

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    #[test]
    fn the_dissertations_example_has_four_pieces() {
        let pieces = [11, 13, 15, 17].iter().enumerate();
        let layout = Layout::new(
            pieces
                .map(|(place, lba)| at(place as u64 * 4 * KIB, lba * 4 * KIB, 4 * KIB))
                .collect(),
        );
        assert_eq!(layout.dof_l(), Some(4.0));
        assert_eq!(layout.runs().len(), 4);
    }

    #[test]
    fn what_goes_on_is_one_piece_however_many_extents_it_has() {
        let layout = Layout::new(vec![at(0, MIB, MIB), at(MIB, 2 * MIB, MIB)]);
        assert_eq!(layout.dof_l(), Some(1.0));
        assert_eq!(layout.runs(), [at(0, MIB, 2 * MIB)]);
    }

    #[test]
    fn a_hole_and_a_big_file_are_no_fragmentation() {
        let layout = Layout::new(vec![at(0, MIB, MIB), at(3 * MIB, 9 * MIB, MIB)]);
        assert_eq!((layout.fragments(), layout.dof_l()), (2, Some(1.0)));
        let big = Layout::new(vec![at(0, 0, 1000 * MIB)]);
        assert_eq!((big.fragments(), big.dof_l()), (8, Some(1.0)));
    }

    #[test]
    fn preallocated_room_continues_what_is_written() {
        let mut tail = at(MIB, 2 * MIB, MIB);
        tail.state = State::Unwritten;
        let layout = Layout::new(vec![at(0, MIB, MIB), tail]);
        assert_eq!(layout.dof_l(), Some(1.0));
        assert_eq!(layout.runs().len(), 2);
    }

    #[test]
    fn what_has_no_place_does_not_count() {
        let raw = |flags| RawExtent {
            length: 4096,
            flags,
            ..RawExtent::default()
        };
        for (flags, state) in [
            (UNKNOWN | DELALLOC, State::Pending),
            (DATA_INLINE | NOT_ALIGNED, State::Encoded),
            (ENCODED | LAST, State::Encoded),
            (UNWRITTEN, State::Unwritten),
            (LAST, State::Written),
        ] {
            assert_eq!(extent(&raw(flags)).state, state);
        }
        let layout = Layout::new(vec![extent(&raw(DELALLOC)), extent(&raw(DATA_INLINE))]);
        assert_eq!(layout.dof_l(), None);
        assert_eq!(layout.placed_bytes(), 0);
        assert!(layout.is_encoded());
    }

    #[test]
    fn a_file_of_this_machine_is_somewhere() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![1; 70_000]).unwrap();
        match Layout::of(&File::open(&path).unwrap(), true) {
            Ok(layout) => assert!(layout.placed_bytes() >= 70_000 || layout.is_encoded()),
            // A file system without FIEMAP returns this error.
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP)),
        }
        let device = File::open("/dev/null").unwrap();
        assert!(Layout::of(&device, false).is_err());
    }

    proptest! {
        #[test]
        fn no_layout_has_fewer_pieces_than_the_fewest(
            extents in prop::collection::vec((0u64..3, 0u64..1 << 20, 1u64..1 << 18), 1..40)
        ) {
            let mut offset = 0;
            let extents: Vec<_> = extents
                .into_iter()
                .map(|(hole, physical, size)| {
                    let extent = at(offset + hole * 4096, physical * 4096, size * 4096);
                    offset = extent.logical_bytes + extent.size_bytes;
                    extent
                })
                .collect();
            let layout = Layout::new(extents);
            prop_assert!(layout.dof_l().unwrap() >= 1.0);
            let runs: u64 = layout.runs().iter().map(|it| it.size_bytes).sum();
            prop_assert_eq!(runs, layout.placed_bytes());
            let segments: u64 = layout.segments().iter().map(|(_, size)| size).sum();
            prop_assert_eq!(segments, layout.placed_bytes());
        }
    }
}
