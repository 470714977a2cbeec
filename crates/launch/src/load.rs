//! Loading of a plan into the page cache of the pages' files.
//!
//! On a stock kernel, requests of different files merge if their bios meet in one task's plug, or
//! in the scheduler. One `io_uring_enter` has one plug for all that it submits. A batch of reads in
//! the device's order thus becomes the plan's requests:
//!
//! * Pages are read through the page cache. The file is marked as read at random
//!   (`POSIX_FADV_RANDOM`), so the kernel reads exactly the requested pages
//!   (`force_page_cache_ra`).
//! * The data are needed only in the page cache, so such a read does not wait (`RWF_NOWAIT`). It
//!   ends with EAGAIN once the kernel has sent the requests, and copies only pages that were there
//!   before. Nothing is left to do when the pages come. A kernel before Linux 6.12 would send
//!   nothing; there the reads wait, and copy.
//! * Padding is read with O_DIRECT, from the file that contains it. Padding that no file of the
//!   profile contains is read from the device.
//!
//! All reads have one buffer in common, whose content is not used.

mod buffer;
mod memory;
mod nowait;

pub(crate) use buffer::Map;
pub(crate) use memory::Watch;

use crate::plan::{Part, Purpose, Request};
use crate::profile::PAGE_BYTES;
use crate::residency;
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// Size of one read. It is what the kernel's readahead takes at once, where readahead is set lower
/// than the largest request. Neighbouring reads still become one request.
const READ_BYTES: u64 = 128 << 10;

/// Most reads that are submitted together under one plug. A request with more parts than this is
/// cut into several batches.
const BATCH: usize = 128;

/// Size at which a batch is submitted; the first one goes with its first request. The device must
/// not wait while memory is allocated for more.
const BATCH_BYTES: u64 = 128 << 10;

/// Fewest entries for which io_uring has a plug (`io_submit_state_start`).
const PLUGGED: usize = 3;

/// Most reads in flight: the device has the next batch while it works on one.
const IN_FLIGHT: usize = 2 * BATCH;

/// Reasons why nothing, or not all, was loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no io_uring, or forbids it to this user.
    #[error(
        "io_uring is not to be had here ({0}), so nothing is loaded: allow it with `sysctl kernel.io_uring_disabled=0`"
    )]
    NoRing(io::Error),
    /// A file could not be prepared, or memory could not be allocated.
    #[error("cannot load: {0}")]
    System(#[from] io::Error),
}

/// Result of loading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of the plan's requests that were sent.
    pub requests: usize,
    /// Bytes of the working set that were requested.
    pub bytes: u64,
    /// Bytes of padding that were requested.
    pub padding_bytes: u64,
    /// Number of reads that the device or a file system failed. Demand paging reads these again.
    pub failed: usize,
    /// Loading stopped because memory got short.
    pub stopped: bool,
}

/// The files and the device that a plan's parts are read from.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// Files by their index in the plan.
    pub files: Vec<&'a File>,
    /// The device of the files, open with O_DIRECT.
    pub device: Option<&'a File>,
}

/// Reads `requests` in their order, and returns when all of them are in flight. An app that starts
/// now waits for its first pages and not for the last.
///
/// # Errors
/// [`Error`]; pages that were read before stay in memory.
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

/// Reads in flight.
pub struct Sent<'a> {
    loader: Loader<'a>,
    requests: &'a [Request],
}

impl Sent<'_> {
    /// Waits until all pages are in memory.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn finish(mut self) -> Result<Outcome, Error> {
        self.loader.complete(0)?;
        self.loader.await_last_pages(self.requests);
        Ok(self.outcome())
    }

    /// What was sent; failures are known only at the end.
    pub fn outcome(&self) -> Outcome {
        self.loader.outcome
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        // The kernel may still write into the buffers; they are kept if the ring cannot tell when
        // it is done.
        let _ = self.loader.complete(0);
    }
}

struct Loader<'a> {
    ring: IoUring,
    scratch: Map,
    source: Source<'a>,
    /// Files of the plan, open with O_DIRECT.
    direct: HashMap<usize, File>,
    /// Files whose readahead is switched off.
    random: HashMap<usize, RawFd>,
    /// Flags for reads of pages: `RWF_NOWAIT` if the kernel reads ahead for it.
    pages_flags: i32,
    /// Number of reads in the ring that are not submitted yet.
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
        residency::stop_readahead(self.source.files[number])?;
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

    /// Submits the pushed reads, once at most a batch is still in flight.
    fn submit(&mut self) -> Result<(), Error> {
        self.complete(IN_FLIGHT - BATCH)?;
        self.batch_bytes = 0;
        // A single read needs no plug.
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

    /// Waits until at most `most` reads are in flight.
    fn complete(&mut self, most: usize) -> Result<(), Error> {
        self.reap();
        while self.in_flight > most {
            match self.ring.submit_and_wait(1) {
                Err(error) if !is_transient(&error) => {
                    // Without the ring, the end of the reads is unknown, so the buffer must stay.
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
            // EAGAIN is the regular result of a read with `RWF_NOWAIT`.
            if entry.result() < 0 && entry.result() != -libc::EAGAIN {
                self.outcome.failed += 1;
            }
        }
    }

    /// Waits for the pages themselves: their reads end earlier, and they may come in several
    /// requests.
    fn await_last_pages(&self, requests: &[Request]) {
        let parts = requests[..self.outcome.requests].iter();
        for part in parts.flat_map(|it| &it.parts) {
            if let Purpose::Pages(place) = part.purpose {
                let last = place.file_bytes + part.length_bytes.saturating_sub(PAGE_BYTES);
                // A page that cannot be read is an error for the app.
                let _ = self.source.files[place.file].read_at(&mut [0], last);
            }
        }
    }
}

/// A ring whose completions are processed when this thread asks, without an interrupt.
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
