//! Reader of the ring buffers that the programs write (`bpf/ring.h`).

use crate::wire::RING_HEADER_BYTES;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// `SLACK_BYTES` of `bpf/ring.h`.
pub const SLACK_BYTES: usize = 8192;
/// Size of `struct position`: the cache lines of the head and the tail.
pub const POSITION_BYTES: usize = 128;
pub const TAIL_AT: usize = 64;

/// Sizes of the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of rings, one for each CPU.
    pub cpus: usize,
    /// Number of segments of a ring, a power of two.
    pub segments: usize,
    /// Size of a segment without its slack, a power of two.
    pub segment_bytes: usize,
}

impl Layout {
    /// Size of a whole ring without slack, in bytes.
    pub fn ring_bytes(&self) -> usize {
        self.segments * self.segment_bytes
    }

    fn segment_stride(&self) -> usize {
        self.segment_bytes + SLACK_BYTES
    }
}

/// The rings of all CPUs, mapped into memory.
#[derive(Debug)]
pub struct Rings {
    layout: Layout,
    positions: Mapping,
    segments: Mapping,
}

impl Rings {
    /// Maps the BPF maps `positions` and `segments`.
    pub fn new(
        layout: Layout,
        positions: BorrowedFd<'_>,
        segments: BorrowedFd<'_>,
    ) -> io::Result<Rings> {
        let all = layout.cpus * layout.segments * layout.segment_stride();
        Ok(Rings {
            layout,
            positions: Mapping::new(positions, layout.cpus * POSITION_BYTES)?,
            segments: Mapping::new(segments, all)?,
        })
    }

    /// Number of rings.
    pub fn count(&self) -> usize {
        self.layout.cpus
    }

    /// Used part of a CPU's ring, from 0 to 1.
    pub fn fill(&self, cpu: usize) -> f64 {
        let used = self.head(cpu).load(Ordering::Relaxed) - self.tail(cpu).load(Ordering::Relaxed);
        used as f64 / self.layout.ring_bytes() as f64
    }

    /// Whether a CPU's ring has no records, not even incomplete ones.
    pub fn is_empty(&self, cpu: usize) -> bool {
        self.head(cpu).load(Ordering::Acquire) == self.tail(cpu).load(Ordering::Relaxed)
    }

    /// Moves all complete records of a CPU's ring to `into`, each with its length before it. A
    /// record that is being written stays, with all after it.
    pub fn drain(&mut self, cpu: usize, into: &mut Vec<u8>) {
        let limit = self.head(cpu).load(Ordering::Acquire);
        let mut at = self.tail(cpu).load(Ordering::Relaxed);
        while at < limit {
            let end = self.end_of_stretch(cpu, at, limit);
            if end == at {
                break;
            }
            let memory = self.memory(cpu, at, (end - at) as usize);
            // SAFETY: the programs wrote all of it and write it again only when
            // the tail has moved on; nobody else reads or writes it.
            unsafe {
                into.extend_from_slice(std::slice::from_raw_parts(memory, (end - at) as usize));
                // A length of 0 marks a record that is not complete yet.
                ptr::write_bytes(memory, 0, (end - at) as usize);
            }
            at = end;
            self.tail(cpu).store(at, Ordering::Release);
        }
    }

    /// End of the complete records from `at` on. The last one is at most the record that crosses
    /// the end of the segment.
    fn end_of_stretch(&self, cpu: usize, at: u64, limit: u64) -> u64 {
        let segment_end = (at | (self.layout.segment_bytes as u64 - 1)) + 1;
        let limit = limit.min(segment_end);
        let memory = self.memory(cpu, at, RING_HEADER_BYTES);
        let mut end = at;
        while end < limit {
            // SAFETY: it begins in the same segment as `memory`, at a multiple of
            // eight, and the mapping lives as long as `self`.
            let length: &AtomicU64 = unsafe { &*memory.add((end - at) as usize).cast() };
            match length.load(Ordering::Acquire) {
                0 => break,
                length => {
                    end += (RING_HEADER_BYTES as u64 + length).next_multiple_of(8);
                }
            }
        }
        end
    }

    /// Memory of `bytes` bytes from a position on, which begin in one segment and may extend into
    /// its slack.
    fn memory(&self, cpu: usize, at: u64, bytes: usize) -> *mut u8 {
        let Layout {
            segments,
            segment_bytes,
            ..
        } = self.layout;
        let segment = (at as usize / segment_bytes) % segments;
        let offset = at as usize % segment_bytes;
        assert!(offset + bytes <= self.layout.segment_stride());
        let stride = self.layout.segment_stride();
        self.segments
            .at((cpu * segments + segment) * stride + offset)
    }

    fn head(&self, cpu: usize) -> &AtomicU64 {
        // SAFETY: as above, for the positions.
        unsafe { &*self.positions.at(cpu * POSITION_BYTES).cast() }
    }

    fn tail(&self, cpu: usize) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { &*self.positions.at(cpu * POSITION_BYTES + TAIL_AT).cast() }
    }
}

/// Memory that is shared with the kernel, until it is dropped.
#[derive(Debug)]
struct Mapping {
    address: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is not bound to the thread that mapped it.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(map: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: no address is asked for, so nothing that exists is replaced.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping {
            address: address.cast(),
            bytes,
        })
    }

    fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.bytes);
        // SAFETY: it is in the mapping.
        unsafe { self.address.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody has a reference.
        unsafe { libc::munmap(self.address.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    const LAYOUT: Layout = Layout {
        cpus: 2,
        segments: 2,
        segment_bytes: 4096,
    };

    /// Rings in files instead of in the kernel; the tests write them as a program does.
    fn rings() -> Rings {
        let file = |bytes: usize| {
            let file: File = tempfile::tempfile().unwrap();
            file.set_len(bytes as u64).unwrap();
            file
        };
        let positions = file(LAYOUT.cpus * POSITION_BYTES);
        let segments = file(LAYOUT.cpus * LAYOUT.segments * LAYOUT.segment_stride());
        Rings::new(LAYOUT, positions.as_fd(), segments.as_fd()).unwrap()
    }

    /// As `reserve()` of `bpf/ring.h`.
    fn reserve(rings: &Rings, cpu: usize, length: usize) -> u64 {
        let taken = (RING_HEADER_BYTES + length).next_multiple_of(8) as u64;
        rings.head(cpu).fetch_add(taken, Ordering::Relaxed)
    }

    fn submit(rings: &Rings, cpu: usize, at: u64, record: &[u8]) {
        let memory = rings.memory(cpu, at, RING_HEADER_BYTES + record.len());
        // SAFETY: the room was reserved.
        unsafe {
            ptr::copy_nonoverlapping(record.as_ptr(), memory.add(RING_HEADER_BYTES), record.len());
        }
        // SAFETY: positions are multiples of eight.
        let length: &AtomicU64 = unsafe { &*memory.cast() };
        length.store(record.len() as u64, Ordering::Release);
    }

    fn write(rings: &Rings, cpu: usize, record: &[u8]) {
        let at = reserve(rings, cpu, record.len());
        submit(rings, cpu, at, record);
    }

    fn drained(rings: &mut Rings, cpu: usize) -> Vec<Vec<u8>> {
        let mut bytes = Vec::new();
        rings.drain(cpu, &mut bytes);
        crate::wire::records(&bytes).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn records_of_any_length_come_out_as_they_went_in_lap_after_lap() {
        let mut rings = rings();
        for lap in 0..200u32 {
            let length = 1 + (lap as usize * 37) % 500;
            let records: Vec<Vec<u8>> = (0..7).map(|it| vec![lap as u8 + it + 1; length]).collect();
            for record in &records {
                write(&rings, 1, record);
            }
            assert_eq!(drained(&mut rings, 1), records, "{lap}");
            assert_eq!(rings.fill(1), 0.0);
        }
        assert_eq!(drained(&mut rings, 0), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_record_may_go_on_behind_the_end_of_its_segment() {
        let mut rings = rings();
        write(&rings, 0, &[1; 4000]);
        write(&rings, 0, &[2; 4000]);
        write(&rings, 0, &[3; 100]);
        let expected = vec![vec![1; 4000], vec![2; 4000], vec![3; 100]];
        assert_eq!(drained(&mut rings, 0), expected);
    }

    #[test]
    fn what_is_not_whole_waits_with_all_behind_it() {
        let mut rings = rings();
        write(&rings, 0, &[1; 16]);
        let outer = reserve(&rings, 0, 16);
        // This record is of an interrupt in the middle of the outer one.
        write(&rings, 0, &[3; 16]);
        assert_eq!(drained(&mut rings, 0), [vec![1; 16]]);
        assert_eq!(drained(&mut rings, 0), Vec::<Vec<u8>>::new());
        submit(&rings, 0, outer, &[2; 16]);
        assert_eq!(drained(&mut rings, 0), [vec![2; 16], vec![3; 16]]);
    }

    #[test]
    fn what_a_former_lap_left_is_never_taken_for_a_record() {
        let mut rings = rings();
        for _ in 0..50 {
            // Every word of the record looks like a length.
            write(&rings, 0, &[8; 200]);
            drained(&mut rings, 0);
        }
        for _ in 0..60 {
            reserve(&rings, 0, 120);
            assert_eq!(drained(&mut rings, 0), Vec::<Vec<u8>>::new());
        }
    }
}
