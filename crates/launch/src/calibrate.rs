//! Measurement of a device's read time by size (§IV), under a loader's conditions.
//!
//! The paper takes the median latency of single reads at random places. A loader keeps the device's
//! queue full, so the next command's protocol overlaps with the previous one's data. The cost of
//! one more request is measured under these conditions: the time of a batch of reads at random
//! places, divided by its requests.
//!
//! Beside large reads a small one may cost less. A device that takes commands while data cross its
//! link hides all of the read but its data. Batches that alternate large and small reads, compared
//! with batches of one size, tell how much.

use crate::latency::{Latency, SIZES, TABLE_BYTES};
use crate::load::{Error, Map};
use crate::profile::PAGE_BYTES;
use io_uring::{IoUring, opcode, types};
use rustix::time::ClockId;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

/// Number of requests in a batch.
const BATCH: usize = 16;

/// Size measured beyond the table, for the time of each further page.
const LARGE_BYTES: u64 = 512 << 10;

/// Smallest range to spread reads over; in a smaller one reads would adjoin.
pub const SPAN_BYTES: u64 = 2 * BATCH as u64 * LARGE_BYTES;

/// Measures the device of `file` by reads in its first `span_bytes` bytes.
///
/// The file must be open with O_DIRECT and contain data there: flash does not read pages that were
/// never written. The times are medians of `rounds` batches of each size. `random` gives 64-bit
/// numbers. `progress` is called with the number of sizes done and their total, and returns whether
/// to continue.
///
/// # Errors
/// [`Error`]; interrupted when `progress` says so.
pub fn calibrate(
    file: &File,
    span_bytes: u64,
    rounds: usize,
    mut random: impl FnMut() -> u64,
    mut progress: impl FnMut(usize, usize) -> bool,
) -> Result<Latency, Error> {
    let mut reader = BatchReader {
        ring: IoUring::new(BATCH as u32).map_err(Error::NoRing)?,
        buffer: Map::scratch(LARGE_BYTES as usize)?,
        file,
        span_bytes,
    };
    let gap_ns = reader.cpu_ns(rounds, &mut random)?;
    let mut ns = [0; SIZES];
    for (index, time) in ns.iter_mut().enumerate() {
        go_on(progress(index, SIZES + 1))?;
        let bytes = (index as u64 + 1) * PAGE_BYTES;
        *time = reader.median_ns([bytes; BATCH], rounds, &mut random)?;
    }
    go_on(progress(SIZES, SIZES + 1))?;
    let large_ns = reader.median_ns([LARGE_BYTES; BATCH], rounds, &mut random)?;
    let in_turns: [u64; BATCH] = std::array::from_fn(|index| [TABLE_BYTES, PAGE_BYTES][index % 2]);
    let mixed_ns = reader.median_ns(in_turns, rounds, &mut random)?;
    let pages = (LARGE_BYTES - TABLE_BYTES) / PAGE_BYTES;
    Ok(Latency {
        ns,
        page_ns: large_ns.saturating_sub(ns[SIZES - 1]) / pages,
        gap_ns,
        // The hidden time of two reads, all of which is the small one's.
        hidden_ns: (ns[0] + ns[SIZES - 1])
            .saturating_sub(2 * mixed_ns)
            .min(ns[0]),
    })
}

fn go_on(yes: bool) -> io::Result<()> {
    match yes {
        true => Ok(()),
        false => Err(io::ErrorKind::Interrupted.into()),
    }
}

/// Reads the file in batches and times them.
struct BatchReader<'a> {
    ring: IoUring,
    /// One buffer for all reads, whose data are not used.
    buffer: Map,
    file: &'a File,
    span_bytes: u64,
}

/// One read of a batch.
#[derive(Clone, Copy)]
struct Read {
    offset: u64,
    bytes: u64,
}

impl BatchReader<'_> {
    /// Median over batches of the mean time of one read, in nanoseconds.
    fn median_ns(
        &mut self,
        bytes: [u64; BATCH],
        rounds: usize,
        random: &mut impl FnMut() -> u64,
    ) -> io::Result<u64> {
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds.max(1) {
            times.push(self.batch_ns(&self.apart(bytes, random))?);
        }
        times.sort_unstable();
        Ok(times[times.len() / 2] / BATCH as u64)
    }

    /// CPU time of one small read, in nanoseconds.
    fn cpu_ns(&mut self, rounds: usize, random: &mut impl FnMut() -> u64) -> io::Result<u64> {
        let begun = thread_ns();
        for _ in 0..rounds.max(1) {
            let reads = self.apart([PAGE_BYTES; BATCH], random);
            self.batch_ns(&reads)?;
        }
        Ok((thread_ns() - begun) / (BATCH * rounds.max(1)) as u64)
    }

    /// Reads of these sizes at places that do not adjoin. Each is in a stretch of its own, in the
    /// device's order as in a plan.
    fn apart(&self, bytes: [u64; BATCH], random: &mut impl FnMut() -> u64) -> [Read; BATCH] {
        let stretch = self.span_bytes / BATCH as u64;
        std::array::from_fn(|index| {
            let room = stretch.saturating_sub(bytes[index] + PAGE_BYTES) / PAGE_BYTES;
            Read {
                offset: index as u64 * stretch + random() % room.max(1) * PAGE_BYTES,
                bytes: bytes[index],
            }
        })
    }

    fn batch_ns(&mut self, reads: &[Read; BATCH]) -> io::Result<u64> {
        for (index, &Read { offset, bytes }) in reads.iter().enumerate() {
            let file = types::Fd(self.file.as_raw_fd());
            let read = opcode::Read::new(file, self.buffer.pointer(), bytes as u32);
            let entry = read.offset(offset).build().user_data(index as u64);
            // SAFETY: the buffer is as large as the largest read, and this returns only
            // after the last completion.
            unsafe { self.ring.submission().push(&entry) }
                .map_err(|_| io::Error::other("the ring is smaller than a batch"))?;
        }
        let begun = Instant::now();
        let mut done = 0;
        let mut failed = None;
        while done < reads.len() {
            match self.ring.submit_and_wait(reads.len() - done) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    // Without the ring, the end of the reads is unknown, so the buffer must stay.
                    self.buffer.leak();
                    return Err(error);
                }
                _ => {}
            }
            for entry in self.ring.completion() {
                done += 1;
                if entry.result() < 0 {
                    failed = Some(io::Error::from_raw_os_error(-entry.result()));
                } else if (entry.result() as u64) < reads[entry.user_data() as usize].bytes {
                    failed = Some(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        let elapsed = begun.elapsed();
        failed.map_or(Ok(elapsed.as_nanos() as u64), Err)
    }
}

fn thread_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
