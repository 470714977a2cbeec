//! The command stream that a simflash device wrote down (`kernel/simflash/stream.c`).

use replay::flash::{Config, OPERATION_COUNTERS, Range};
use std::collections::HashMap;

const MAGIC: &[u8] = b"FRSTREAM";
const VERSION: u32 = 3;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
const PART_BYTES: usize = 64;

/// `enum ftl_op`, and the two records that are no commands.
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

/// Largest range that a Janus command may have in all.
const MOST_RANGES: u32 = 1024;

/// Why a stream cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is something else.
    #[error(
        "this is no command stream of a simflash device: read one from /sys/kernel/debug/simflash/simflash0/stream"
    )]
    NoStream,
    /// Of a module of another version.
    #[error(
        "the stream has version {0} and only version {VERSION} is known: record it with this version's module"
    )]
    Version(u32),
    /// It was changed or cut on its way.
    #[error("the stream is damaged at byte {0}: copy or record it again")]
    Damaged(usize),
    /// The device's memory for it ran out.
    #[error("the device's memory for its stream ran out: record with a larger stream_mib")]
    Full,
    /// What the replay does not know how to judge.
    #[error("the stream has {0}, which is not known how to judge after a power cut")]
    Unknown(&'static str),
}

/// What a page holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Page {
    /// This word, repeated.
    Word(u64),
    /// These bytes.
    Bytes(Box<[u8; PAGE_BYTES]>),
}

/// What was done to the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Pages from the first number on, so many.
    Read(u32, u32),
    /// What is written, by numbers of [`Stream::pages`], from `lba` on.
    Write {
        /// First page.
        lba: u32,
        /// What each page gets.
        pages: Vec<u32>,
        /// It ended when they were in flash.
        fua: bool,
    },
    /// All that was written before is in flash.
    Flush,
    /// Pages from the first number on, so many.
    Discard(u32, u32),
    /// A command of `enum ftl_op` that only a device with a log has.
    Control(u32, Vec<Range>),
    /// What the host wrote beside it.
    Mark(Vec<u8>),
}

/// One thing that was done, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The device's time.
    pub now_ns: u64,
    /// What.
    pub what: What,
}

/// All that a device was told from its first command on.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The device.
    pub config: Config,
    /// In the order in which it was told.
    pub records: Vec<Record>,
    /// Each content once; the first is zeros.
    pub pages: Vec<Page>,
    /// When the recording ended.
    pub end_ns: u64,
    /// What the device had counted then.
    pub counters: [u64; OPERATION_COUNTERS],
}

impl Stream {
    /// The stream in `bytes`.
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
        };
        let mut known = HashMap::from([(Page::Word(0), 0)]);
        while !reader.record(&mut stream, &mut known)? {}
        Ok(stream)
    }

    /// Whether page `number` of [`Stream::pages`] can be no file system's own: it repeats a
    /// word, and not that of a bitmap whose bits are all set.
    pub fn is_content(&self, number: u32) -> bool {
        matches!(self.pages[number as usize], Page::Word(word) if word != u64::MAX)
    }

    /// What page `number` of [`Stream::pages`] holds.
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

/// The last four bytes are the CRC-32 of all before them.
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

    /// Whether it was the last.
    fn record(
        &mut self,
        stream: &mut Stream,
        known: &mut HashMap<Page, u32>,
    ) -> Result<bool, Error> {
        let at = self.at;
        let kind = self.u8()?;
        let flags = self.u8()?;
        self.take::<2>()?;
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
            // The core refuses what overlaps or is outside; here only sums must not overflow.
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
