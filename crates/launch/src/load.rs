//! Reading a plan into the page cache of the files that its pages belong to.
//!
//! On a stock kernel, requests of different files merge when their bios meet in one
//! task's plug, or in the scheduler before the device takes them. One `io_uring_enter`
//! has one plug for all that it submits, so a batch of reads in the device's order
//! becomes as many requests as the plan has:
//!
//! * Pages are read through the page cache. The file is marked as read at random
//!   (`POSIX_FADV_RANDOM`), so the kernel reads exactly what is asked for
//!   (`force_page_cache_ra`).
//! * The data is not wanted here, only in the page cache, so such a read does not wait
//!   (`RWF_NOWAIT`): once the kernel has sent for the pages it ends with EAGAIN. It copies
//!   only what was there before, and nothing is left to be done when the pages come. Before
//!   Linux 6.12 it would send for nothing; there the reads wait, and copy.
//! * Padding is read past the page cache (O_DIRECT), from the file that it lies in or,
//!   where it is in none of the profile's, from the device.
//!
//! Nobody reads the buffer that all of them have in common.

mod buffer;
mod memory;
mod nowait;

pub(crate) use buffer::Map;

use crate::plan::{Part, Purpose, Request};
use crate::profile::PAGE_BYTES;
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// One read of a batch: what the kernel's readahead takes at once wherever readahead is
/// set lower than a request may be long. Neighbours become one request all the same.
const READ_BYTES: u64 = 128 << 10;

/// Reads that are submitted together, under one plug, at most; a request is not cut
/// between two batches if it has not more parts than that.
const BATCH: usize = 128;

/// A batch is submitted when it has this much, the first with its first request: the
/// device is not to wait while memory is found for more.
const BATCH_BYTES: u64 = 128 << 10;

/// Below so many entries io_uring has no plug (`io_submit_state_start`).
const PLUGGED: usize = 3;

/// Reads on the way at most: the device has the next batch while it works on one.
const IN_FLIGHT: usize = 2 * BATCH;

/// Why nothing, or not all, was loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no io_uring, or not for this user.
    #[error(
        "io_uring is not to be had here ({0}), so nothing is loaded: allow it with `sysctl kernel.io_uring_disabled=0`"
    )]
    NoRing(io::Error),
    /// A file could not be prepared, or memory not be had.
    #[error("cannot load: {0}")]
    System(#[from] io::Error),
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests of the plan that were sent.
    pub requests: usize,
    /// Bytes of the working set that were asked for.
    pub bytes: u64,
    /// Bytes of padding.
    pub padding_bytes: u64,
    /// Reads that the device or a file system failed; demand paging meets them again.
    pub failed: usize,
    /// Memory got short before the end.
    pub stopped: bool,
}

/// Where a plan's parts are read.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// The files by their number in the plan.
    pub files: Vec<&'a File>,
    /// The device that they are on, open with O_DIRECT.
    pub device: Option<&'a File>,
}

/// Reads `requests` in their order, and returns when all of them are on their way. An app that starts now waits for its first pages and not for the last.
///
/// # Errors
/// [`Error`]; what was read until then stays in memory.
pub fn send<'a>(requests: &'a [Request], source: Source<'a>) -> Result<Sent<'a>, Error> {
    let mut loader = Loader {
        ring: ring().map_err(Error::NoRing)?,
        scratch: Map::scratch(READ_BYTES as usize)?,
        source,
        direct: HashMap::new(),
        random: HashMap::new(),
        pages_flags: nowait::flags(),
        pushed: 0,
        batch_bytes: 0,
        in_flight: 0,
        outcome: Outcome::default(),
    };
    match loader.load(requests) {
        Ok(()) => Ok(Sent { loader, requests }),
        Err(error) => {
            // The kernel may still write into the buffers.
            loader.complete(0)?;
            Err(error)
        }
    }
}

/// Reads that are on their way.
pub struct Sent<'a> {
    loader: Loader<'a>,
    requests: &'a [Request],
}

impl Sent<'_> {
    /// Returns when all of it is in memory.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn finish(mut self) -> Result<Outcome, Error> {
        self.loader.complete(0)?;
        self.loader.await_last_pages(self.requests);
        Ok(self.outcome())
    }

    /// What was sent; failures are known in the end only.
    pub fn outcome(&self) -> Outcome {
        self.loader.outcome
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        // The kernel may still write into the buffers; they stay if nothing tells when
        // it is done.
        let _ = self.loader.complete(0);
    }
}

struct Loader<'a> {
    ring: IoUring,
    scratch: Map,
    source: Source<'a>,
    /// Files of the plan, open for reads past the page cache.
    direct: HashMap<usize, File>,
    /// Files whose readahead is off.
    random: HashMap<usize, RawFd>,
    /// How pages are read: `RWF_NOWAIT` if that sends for them.
    pages_flags: i32,
    /// Reads in the ring that the kernel has not seen.
    pushed: usize,
    batch_bytes: u64,
    in_flight: usize,
    outcome: Outcome,
}

impl Loader<'_> {
    fn load(&mut self, requests: &[Request]) -> Result<(), Error> {
        let mut memory = memory::Watch::default();
        for request in requests {
            let reads: usize = request.parts.iter().map(reads_of).sum();
            if self.pushed > 0 && self.pushed + reads > BATCH {
                self.submit()?;
            }
            if memory.is_short(request.length_bytes())? {
                self.outcome.stopped = true;
                break;
            }
            for part in &request.parts {
                self.push_part(part)?;
            }
            self.outcome.requests += 1;
            self.batch_bytes += request.length_bytes();
            if self.batch_bytes >= BATCH_BYTES || self.outcome.requests == 1 {
                self.submit()?;
            }
        }
        self.submit()
    }

    fn push_part(&mut self, part: &Part) -> Result<(), Error> {
        match part.is_padding() {
            true => self.outcome.padding_bytes += part.length_bytes,
            false => self.outcome.bytes += part.length_bytes,
        }
        let mut done = 0;
        while done < part.length_bytes {
            let length = (part.length_bytes - done).min(READ_BYTES);
            let entry = self.entry(part, done, length as u32)?;
            self.push(&entry)?;
            done += length;
            if self.pushed == BATCH {
                self.submit()?;
            }
        }
        Ok(())
    }

    fn push(&mut self, entry: &squeue::Entry) -> Result<(), Error> {
        // SAFETY: the buffers live until the last completion was seen.
        unsafe { self.ring.submission().push(entry) }
            .map_err(|_| io::Error::other("the ring is smaller than a batch"))?;
        self.pushed += 1;
        Ok(())
    }

    fn entry(&mut self, part: &Part, done: u64, length: u32) -> io::Result<squeue::Entry> {
        let (file, offset, flags) = match part.purpose {
            Purpose::Pages(place) => {
                let file = self.without_readahead(place.file)?;
                (file, place.file_bytes, self.pages_flags)
            }
            Purpose::FilePadding(place) => (self.past_the_cache(place.file)?, place.file_bytes, 0),
            Purpose::DevicePadding => {
                let device = self.source.device.ok_or(io::ErrorKind::NotFound)?;
                (device.as_raw_fd(), part.device_bytes, 0)
            }
        };
        let read = opcode::Read::new(types::Fd(file), self.scratch.pointer(), length);
        Ok(read.offset(offset + done).rw_flags(flags).build())
    }

    fn without_readahead(&mut self, number: usize) -> io::Result<RawFd> {
        if let Some(file) = self.random.get(&number) {
            return Ok(*file);
        }
        let file = self.source.files[number].as_raw_fd();
        // SAFETY: an open descriptor.
        match unsafe { libc::posix_fadvise(file, 0, 0, libc::POSIX_FADV_RANDOM) } {
            0 => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
        self.random.insert(number, file);
        Ok(file)
    }

    fn past_the_cache(&mut self, number: usize) -> io::Result<RawFd> {
        if let Some(file) = self.direct.get(&number) {
            return Ok(file.as_raw_fd());
        }
        let again = format!("/proc/self/fd/{}", self.source.files[number].as_raw_fd());
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(again)?;
        let descriptor = file.as_raw_fd();
        self.direct.insert(number, file);
        Ok(descriptor)
    }

    /// Sends what was pushed, when at most a batch is still on the way.
    fn submit(&mut self) -> Result<(), Error> {
        self.complete(IN_FLIGHT - BATCH)?;
        self.batch_bytes = 0;
        // A single read needs none.
        if self.pushed > 1 {
            for _ in self.pushed..PLUGGED {
                self.push(&opcode::Nop::new().build())?;
            }
        }
        while self.pushed > 0 {
            match self.ring.submit() {
                Ok(count) => {
                    self.pushed -= count;
                    self.in_flight += count;
                }
                Err(error) if is_transient(&error) => self.complete(0)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until at most `most` reads are on the way.
    fn complete(&mut self, most: usize) -> Result<(), Error> {
        self.reap();
        while self.in_flight > most {
            match self.ring.submit_and_wait(1) {
                Err(error) if !is_transient(&error) => {
                    // Without the ring nothing tells when the buffers are free.
                    self.scratch.leak();
                    self.in_flight = 0;
                    return Err(error.into());
                }
                _ => {}
            }
            self.reap();
        }
        Ok(())
    }

    fn reap(&mut self) {
        for entry in self.ring.completion() {
            self.in_flight -= 1;
            // EAGAIN is how a read of pages ends that went well.
            if entry.result() < 0 && entry.result() != -libc::EAGAIN {
                self.outcome.failed += 1;
            }
        }
    }

    /// A read of pages ends before they come, and they may come in several requests.
    fn await_last_pages(&self, requests: &[Request]) {
        let parts = requests[..self.outcome.requests].iter();
        for part in parts.flat_map(|it| &it.parts) {
            if let Purpose::Pages(place) = part.purpose {
                let last = place.file_bytes + part.length_bytes.saturating_sub(PAGE_BYTES);
                // What cannot be read the app will be told.
                let _ = self.source.files[place.file].read_at(&mut [0], last);
            }
        }
    }
}

/// A read that is done is looked at when this thread next asks, not by interrupting it.
fn ring() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(IN_FLIGHT as u32)
        .build(BATCH as u32)
}

fn reads_of(part: &Part) -> usize {
    part.length_bytes.div_ceil(READ_BYTES) as usize
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}
