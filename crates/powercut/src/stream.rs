//! The command stream that a simflash device recorded (`kernel/simflash/stream.c`).

use replay::flash::{Config, OPERATION_COUNTERS, Range};
use std::collections::HashMap;

const MAGIC: &[u8] = b"FRSTREAM";
const VERSION: u32 = 4;

/// Size of a page, in bytes.
pub const PAGE_BYTES: usize = 4096;
const PART_BYTES: usize = 64;

/// Operations of `enum ftl_op`, and the two kinds of records that are not commands.
mod kind {
    pub const READ: u8 = 0;
    pub const WRITE: u8 = 1;
    pub const FLUSH: u8 = 2;
    pub const DISCARD: u8 = 3;
    pub const REMAP: u8 = 4;
    pub const SPREAD: u8 = 5;
    pub const ARM: u8 = 6;
    pub const CHECKPOINT: u8 = 10;
    pub const MARK: u8 = 0x80;
    pub const END: u8 = 0xff;
}

/// Most ranges of a Janus command.
const MOST_RANGES: u32 = 1024;

/// Reasons why a stream cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes do not begin with the magic number of a stream.
    #[error(
        "this is no command stream of a simflash device: read one from /sys/kernel/debug/simflash/simflash0/stream"
    )]
    NoStream,
    /// The stream is of another version of the module; holds that version.
    #[error(
        "the stream has version {0} and only version {VERSION} is known: record it with this version's module"
    )]
    Version(u32),
    /// The stream was changed or cut; holds the offset of the damage.
    #[error("the stream is damaged at byte {0}: copy or record it again")]
    Damaged(usize),
    /// The device's memory for the stream ran out during the recording.
    #[error("the device's memory for its stream ran out: record with a larger stream_mib")]
    Full,
    /// The stream has a record whose effect on a power cut is not known.
    #[error("the stream has {0}, which is not known how to judge after a power cut")]
    Unknown(&'static str),
}

/// Content of a page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Page {
    /// A word that the page repeats.
    Word(u64),
    /// The bytes of the page.
    Bytes(Box<[u8; PAGE_BYTES]>),
}

/// A command of the host, or a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A read: number of the first page, and number of pages.
    Read(u32, u32),
    /// A write of consecutive pages.
    Write {
        /// Number of the first page.
        lba: u32,
        /// Content of each page, as an index in [`Stream::pages`].
        pages: Vec<u32>,
        /// Stream of the write; 0 is none.
        stream: u8,
        /// The write ended only when the pages were in flash (FUA).
        fua: bool,
    },
    /// A flush: all writes that ended before are in flash.
    Flush,
    /// A discard: number of the first page, and number of pages.
    Discard(u32, u32),
    /// A command of `enum ftl_op` that only a device with a log has, with its ranges.
    Control(u32, Vec<Range>),
    /// Text that the host added to the stream.
    Mark(Vec<u8>),
}

/// A record of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of the device, in nanoseconds.
    pub now_ns: u64,
    /// The command or mark.
    pub what: What,
}

/// All commands of a device from its creation on.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Configuration of the device.
    pub config: Config,
    /// Records in the order in which the device got them.
    pub records: Vec<Record>,
    /// Distinct contents of pages; the first one is zeros.
    pub pages: Vec<Page>,
    /// End of the recording, in nanoseconds of the device's time.
    pub end_ns: u64,
    /// Counters of the device at the end of the recording.
    pub counters: [u64; OPERATION_COUNTERS],
    /// A defect that the campaign has to find: the device ends a FLUSH without doing it.
    #[cfg(test)]
    pub(crate) ignores_flush: bool,
}

impl Stream {
    /// Decodes a stream.
    ///
    /// # Errors
    /// [`Error`], for any bytes that are not exactly a stream.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        if !bytes.starts_with(MAGIC) {
            return Err(Error::NoStream);
        }
        let mut reader = Reader { bytes, at: 8 };
        let version = reader.u32()?;
        if version != VERSION {
            return Err(Error::Version(version));
        }
        checked(bytes)?;
        let config = reader.config()?;
        let mut stream = Stream {
            config,
            records: Vec::new(),
            pages: vec![Page::Word(0)],
            end_ns: 0,
            counters: [0; OPERATION_COUNTERS],
            #[cfg(test)]
            ignores_flush: false,
        };
        let mut known = HashMap::from([(Page::Word(0), 0)]);
        while !reader.record(&mut stream, &mut known)? {}
        Ok(stream)
    }

    /// Whether a content of [`Stream::pages`] cannot be metadata of a file system. Such a page
    /// repeats a word, and it is not a bitmap with all bits set.
    pub fn is_content(&self, number: u32) -> bool {
        matches!(self.pages[number as usize], Page::Word(word) if word != u64::MAX)
    }

    /// Writes content `number` of [`Stream::pages`] into `page`.
    pub fn fill(&self, number: u32, page: &mut [u8; PAGE_BYTES]) {
        match &self.pages[number as usize] {
            Page::Bytes(bytes) => *page = **bytes,
            Page::Word(word) => {
                for place in page.as_chunks_mut().0 {
                    *place = word.to_le_bytes();
                }
            }
        }
    }
}

/// Checks that the last four bytes are the CRC-32 of all before them.
fn checked(bytes: &[u8]) -> Result<(), Error> {
    let damaged = Error::Damaged(bytes.len());
    let Some((body, crc)) = bytes.split_last_chunk() else {
        return Err(damaged);
    };
    match crc32fast::hash(body) == u32::from_le_bytes(*crc) {
        true => Ok(()),
        false => Err(damaged),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let rest = &self.bytes[self.at..];
        let chunk = *rest.first_chunk().ok_or(Error::Damaged(self.at))?;
        self.at += N;
        Ok(chunk)
    }

    fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.take::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn config(&mut self) -> Result<Config, Error> {
        let at = self.at;
        let mut numbers = Vec::new();
        for _ in 0..self.u32()? {
            numbers.push(self.u64()?);
        }
        let config = Config::of_numbers(&numbers).ok_or(Error::Damaged(at))?;
        if config.is_foreground_aware() {
            return Err(Error::Unknown("a device that serves the foreground first"));
        }
        if !config.power_loss() {
            return Err(Error::Unknown(
                "a device without power_loss=1, whose flash forgets",
            ));
        }
        Ok(config)
    }

    /// Decodes a record; returns whether it was the last one.
    fn record(
        &mut self,
        stream: &mut Stream,
        known: &mut HashMap<Page, u32>,
    ) -> Result<bool, Error> {
        let at = self.at;
        let kind = self.u8()?;
        let flags = self.u8()?;
        let of = u16::from_le_bytes(self.take()?);
        let lba = self.u32()?;
        let count = self.u32()?;
        let now_ns = self.u64()?;
        let last_ns = stream.records.last().map_or(0, |it| it.now_ns);
        if now_ns < last_ns {
            return Err(Error::Damaged(at));
        }
        let capacity = stream.config.capacity_pages();
        let inside = lba.checked_add(count).is_some_and(|end| end <= capacity);
        let moves = inside && (1..=stream.config.command_pages()).contains(&count);
        let what = match kind {
            kind::READ if moves => What::Read(lba, count),
            kind::WRITE if moves => What::Write {
                lba,
                pages: self.pages(count, &mut stream.pages, known)?,
                stream: u8::try_from(of).map_err(|_| Error::Damaged(at))?,
                fua: flags & 1 != 0,
            },
            kind::FLUSH => What::Flush,
            kind::DISCARD if inside && count > 0 => What::Discard(lba, count),
            kind::REMAP => return Err(Error::Unknown("moves that wait for a commit")),
            kind::SPREAD..=kind::CHECKPOINT if count <= MOST_RANGES => {
                let needs = kind <= kind::ARM;
                What::Control(
                    u32::from(kind),
                    self.ranges(if needs { count } else { 0 }, capacity)?,
                )
            }
            kind::MARK => What::Mark(self.mark(count)?),
            kind::END => {
                return self.end(stream, (flags, count, now_ns)).map(|()| true);
            }
            _ => return Err(Error::Damaged(at)),
        };
        stream.records.push(Record { now_ns, what });
        Ok(false)
    }

    fn pages(
        &mut self,
        count: u32,
        pages: &mut Vec<Page>,
        known: &mut HashMap<Page, u32>,
    ) -> Result<Vec<u32>, Error> {
        let mut numbers = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let page = self.page()?;
            let number = *known.entry(page).or_insert_with_key(|page| {
                pages.push(page.clone());
                pages.len() as u32 - 1
            });
            numbers.push(number);
        }
        Ok(numbers)
    }

    fn page(&mut self) -> Result<Page, Error> {
        let at = self.at;
        match self.u8()? {
            0 => Ok(Page::Word(self.u64()?)),
            1 => {
                let parts = self.u64()?;
                let mut bytes = Box::new([0; PAGE_BYTES]);
                for (index, part) in bytes.chunks_exact_mut(PART_BYTES).enumerate() {
                    if parts >> index & 1 == 1 {
                        part.copy_from_slice(&self.take::<PART_BYTES>()?);
                    }
                }
                Ok(Page::Bytes(bytes))
            }
            _ => Err(Error::Damaged(at)),
        }
    }

    fn ranges(&mut self, count: u32, capacity: u32) -> Result<Vec<Range>, Error> {
        let mut ranges = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let at = self.at;
            let (src, dst, pages) = (self.u32()?, self.u32()?, self.u32()?);
            // The core refuses overlapping or outside ranges; only sums must not overflow here.
            if pages > capacity {
                return Err(Error::Damaged(at));
            }
            ranges.push(Range { src, dst, pages });
        }
        let pages: u64 = ranges.iter().map(|it| u64::from(it.pages)).sum();
        match u32::try_from(pages) {
            Ok(_) => Ok(ranges),
            Err(_) => Err(Error::Damaged(self.at)),
        }
    }

    fn mark(&mut self, bytes: u32) -> Result<Vec<u8>, Error> {
        let rest = &self.bytes[self.at..];
        let mark = rest
            .get(..bytes as usize)
            .ok_or(Error::Damaged(self.at))?
            .to_vec();
        self.at += mark.len();
        Ok(mark)
    }

    fn end(
        &mut self,
        stream: &mut Stream,
        (flags, count, now_ns): (u8, u32, u64),
    ) -> Result<(), Error> {
        if flags & 1 != 0 {
            return Err(Error::Full);
        }
        if count != OPERATION_COUNTERS as u32 {
            return Err(Error::Damaged(self.at));
        }
        for counter in &mut stream.counters {
            *counter = self.u64()?;
        }
        stream.end_ns = now_ns;
        self.u32()?;
        match self.at == self.bytes.len() {
            true => Ok(()),
            false => Err(Error::Damaged(self.at)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
