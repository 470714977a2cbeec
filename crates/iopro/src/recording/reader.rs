//! Reader of recordings.

use super::{
    BLOCK_HEADER_BYTES, BLOCK_LIMIT_BYTES, BLOCK_MAGIC, BlockKind, Error, HEADER_LIMIT_BYTES,
    Header, MAGIC,
};
use crate::event::Event;
use crate::wire;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::path::Path;
use sys::PathError;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A program writes an event at most this long after the event's time, unless it was kept from
/// running.
const LATENESS_NS: u64 = 1_000_000;

/// Largest size of one round: more than all rings hold.
const ROUND_LIMIT_BYTES: usize = 256 << 20;

/// A recording whose header was read.
#[derive(Debug)]
pub struct Reader<R> {
    header: Header,
    input: R,
}

impl Reader<BufReader<File>> {
    /// Opens the recording at `path` and reads its header.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(PathError::of("access", path))?;
        Reader::of(file, path)
    }

    /// Reads the header of an open recording, which errors call `path`.
    pub fn of(file: File, path: &Path) -> Result<Self, Error> {
        Reader::new(BufReader::with_capacity(1 << 18, file), path)
    }
}

impl<R: Read> Reader<R> {
    /// Reads a recording from `input`, which errors call `path`.
    pub fn new(mut input: R, path: &Path) -> Result<Self, Error> {
        match header(&mut input) {
            Ok(Ok(header)) => Ok(Reader { header, input }),
            Ok(Err(Foreign::Other)) => Err(Error::NotARecording {
                path: path.to_owned(),
            }),
            Ok(Err(Foreign::Version(frontrow))) => Err(Error::Version {
                path: path.to_owned(),
                frontrow,
            }),
            Err(source) => Err(PathError::of("access", path)(source).into()),
        }
    }

    /// The header of the recording.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The events of the recording in the order of their times.
    pub fn events(self) -> Events<R> {
        Events {
            input: self.input,
            ring: Vec::new(),
            order: Vec::new(),
            next: 0,
            ready: 0,
            second: None,
            until_ns: None,
            ending: None,
            damaged_records: 0,
            read_bytes: 0,
        }
    }
}

/// Reasons why a file is not a recording that this program can read.
enum Foreign {
    Other,
    Version(String),
}

fn header(input: &mut impl Read) -> io::Result<Result<Header, Foreign>> {
    let mut begin = [0; 12];
    if !filled(input, &mut begin)? || begin[..7] != MAGIC[..7] {
        return Ok(Err(Foreign::Other));
    }
    if begin[7] != MAGIC[7] {
        let version = format!("format {}", char::from(begin[7]));
        return Ok(Err(Foreign::Version(version)));
    }
    let length = u32::from_le_bytes([begin[8], begin[9], begin[10], begin[11]]) as usize;
    let mut text = vec![0; length.min(HEADER_LIMIT_BYTES)];
    let mut checksum = [0; 8];
    if !filled(input, &mut text)? || !filled(input, &mut checksum)? {
        return Ok(Err(Foreign::Other));
    }
    if xxh3_64(&[&begin[8..], &text].concat()) != u64::from_le_bytes(checksum) {
        return Ok(Err(Foreign::Other));
    }
    Ok(serde_json::from_slice(&text).map_err(|_| {
        let fields: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        let version = fields["frontrow"].as_str().unwrap_or("unknown");
        Foreign::Version(version.to_owned())
    }))
}

/// Fills `buffer`; returns false if the input ends before.
fn filled(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The recorder ended it in order.
    Complete {
        /// End of the recording, in nanoseconds of CLOCK_MONOTONIC.
        end_ns: u64,
    },
    /// A kill or a full disk ended it; all events up to there were read.
    CutShort,
    /// A block's checksum is wrong; nothing after that block was read.
    Damaged,
}

/// The next item of a recording, for a program that reads it while it is made.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The next event in the order of time.
    Event(Event),
    /// All events before this moment were given, in nanoseconds of CLOCK_MONOTONIC. It advances
    /// even when there are no events.
    Until(u64),
}

/// The events of a recording in the order of time.
///
/// It holds one round of the recorder at a time. Its size is at most that of the kernel's buffers,
/// whatever the length of the recording.
#[derive(Debug)]
pub struct Events<R> {
    input: R,
    /// Records of all CPUs that were not given yet.
    ring: Vec<u8>,
    order: Vec<Place>,
    /// Index in `order` of the next record to give.
    next: usize,
    /// Index in `order` of the first record that may not be given yet.
    ready: usize,
    second: Option<Event>,
    /// All events before this time are given with this round.
    until_ns: Option<u64>,
    ending: Option<Ending>,
    damaged_records: u64,
    read_bytes: u64,
}

/// Place of a record in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    time_ns: u64,
    /// Position in the buffer; it keeps the order of records of one CPU with the same time.
    at: u32,
    length: u32,
    cpu: u16,
    /// Set for the earlier one of a record's two events, see [`wire::queued_ns`].
    queued: bool,
}

impl Place {
    fn range(&self) -> Range<usize> {
        let at = self.at as usize;
        at..at + self.length as usize
    }
}

impl<R: Read> Events<R> {
    /// How the recording ended; None until all events were given.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Number of invalid records so far; 0 unless a program other than the recorder wrote the file.
    pub fn damaged_records(&self) -> u64 {
        self.damaged_records
    }

    /// Bytes of the file that were read, for progress.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The next event or moment; None at the end.
    ///
    /// # Errors
    /// The input cannot be read; the events end there.
    pub fn step(&mut self) -> Option<io::Result<Step>> {
        if let Some(second) = self.second.take() {
            return Some(Ok(Step::Event(second)));
        }
        while self.next < self.ready {
            let place = self.order[self.next];
            self.next += 1;
            let record = &self.ring[place.range()];
            let decoded = match place.queued {
                true => wire::decode_queued(record, place.cpu.into()).map(|event| (event, None)),
                false => wire::decode(record, place.cpu.into()),
            };
            match decoded {
                Some((event, second)) => {
                    self.second = second;
                    return Some(Ok(Step::Event(event)));
                }
                None => self.damaged_records += 1,
            }
        }
        if let Some(until_ns) = self.until_ns.take() {
            return Some(Ok(Step::Until(until_ns)));
        }
        if self.ending.is_some() {
            return None;
        }
        match self.next_round() {
            Ok(()) => self.step(),
            Err(error) => {
                self.ending = Some(Ending::CutShort);
                Some(Err(error))
            }
        }
    }

    fn next_round(&mut self) -> io::Result<()> {
        self.drop_given();
        let until_ns = loop {
            match self.block()? {
                Ok(Block::Data) => {}
                Ok(Block::Round { begin_ns }) => {
                    let until_ns = begin_ns.saturating_sub(LATENESS_NS);
                    self.until_ns = Some(until_ns);
                    break until_ns;
                }
                Err(ending) => {
                    self.ending = Some(ending);
                    if let Ending::Complete { end_ns } = ending {
                        self.until_ns = Some(end_ns);
                    }
                    break u64::MAX;
                }
            }
        };
        self.order.sort_unstable();
        self.ready = self.order.partition_point(|it| it.time_ns < until_ns);
        Ok(())
    }

    /// Drops the records that were given from the buffer.
    fn drop_given(&mut self) {
        let mut kept = Vec::new();
        self.order.drain(..self.next);
        for place in &mut self.order {
            let range = place.range();
            place.at = kept.len() as u32;
            kept.extend_from_slice(&self.ring[range]);
        }
        self.ring = kept;
        (self.next, self.ready) = (0, 0);
    }

    fn block(&mut self) -> io::Result<Result<Block, Ending>> {
        let mut header = [0; BLOCK_HEADER_BYTES];
        if !filled(&mut self.input, &mut header)? {
            return Ok(Err(Ending::CutShort));
        }
        let number = |range: Range<usize>| {
            header[range]
                .iter()
                .rev()
                .fold(0u64, |sum, &byte| sum << 8 | u64::from(byte))
        };
        let length = number(8..12) as usize;
        let kind = BlockKind::from_wire(number(4..6) as u16);
        let (Some(kind), true) = (
            kind,
            number(0..4) == u64::from(BLOCK_MAGIC) && length <= BLOCK_LIMIT_BYTES,
        ) else {
            return Ok(Err(Ending::Damaged));
        };
        let start = self.ring.len();
        if start + length > ROUND_LIMIT_BYTES {
            return Ok(Err(Ending::Damaged));
        }
        let read = (&mut self.input)
            .take(length as u64)
            .read_to_end(&mut self.ring)?;
        if read < length {
            self.ring.truncate(start);
            return Ok(Err(Ending::CutShort));
        }
        let mut checksum = Xxh3::new();
        checksum.update(&header[..24]);
        checksum.update(&self.ring[start..]);
        if checksum.digest() != number(24..32) {
            self.ring.truncate(start);
            return Ok(Err(Ending::Damaged));
        }
        self.read_bytes += (BLOCK_HEADER_BYTES + length) as u64;
        let time_ns = number(16..24);
        Ok(match kind {
            BlockKind::Data => {
                self.index(start, number(6..8) as u16);
                Ok(Block::Data)
            }
            BlockKind::Round => Ok(Block::Round { begin_ns: time_ns }),
            BlockKind::End => Err(Ending::Complete { end_ns: time_ns }),
        })
    }

    /// Adds the records in the buffer from `start` on to the order.
    fn index(&mut self, start: usize, cpu: u16) {
        let base = self.ring.as_ptr() as usize;
        for record in wire::records(&self.ring[start..]) {
            let Some(time_ns) = wire::time_ns(record) else {
                self.damaged_records += 1;
                continue;
            };
            let place = Place {
                time_ns,
                at: (record.as_ptr() as usize - base) as u32,
                length: record.len() as u32,
                cpu,
                queued: false,
            };
            if let Some(queued_ns) = wire::queued_ns(record) {
                self.order.push(Place {
                    time_ns: queued_ns,
                    queued: true,
                    ..place
                });
            }
            self.order.push(place);
        }
    }
}

/// A block after which the recording goes on.
enum Block {
    Data,
    Round { begin_ns: u64 },
}

impl<R: Read> Iterator for Events<R> {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.step()? {
                Ok(Step::Event(event)) => return Some(Ok(event)),
                Ok(Step::Until(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Lost, LostKind, What};
    use crate::recording::{Target, Writer};

    fn sample_header() -> Header {
        Header {
            frontrow: "0.1.0".to_owned(),
            kernel: "6.12".to_owned(),
            machine: "x86_64".to_owned(),
            page_bytes: 4096,
            cpus: 2,
            begin_ns: 1,
            realtime_offset_ns: -5,
            target: Target::System,
            disks: Vec::new(),
            mounts: Vec::new(),
            missing: Vec::new(),
            tells_taken: true,
        }
    }

    /// Encodes a record at time `ms`, recognisable by its count.
    fn record(ms: u64) -> Vec<u8> {
        let lost = Lost {
            kind: LostKind::Block,
            count: ms,
        };
        wire::lost(ms * 1_000_000, lost)
    }

    fn records(times_ms: &[u64]) -> Vec<u8> {
        times_ms.iter().flat_map(|&ms| record(ms)).collect()
    }

    /// A recording of two CPUs in two rounds; CPU 1 is emptied a little after CPU 0.
    fn sample() -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, &sample_header()).unwrap();
        writer.data(0, &[&records(&[10, 30, 50])]).unwrap();
        writer
            .data(1, &[&records(&[20]), &records(&[40, 62])])
            .unwrap();
        writer.round(60_000_000).unwrap();
        writer.data(0, &[&records(&[61, 80])]).unwrap();
        writer.round(90_000_000).unwrap();
        writer.end(100_000_000).unwrap();
        file
    }

    fn read(file: &[u8]) -> (Vec<u64>, Option<Ending>) {
        let mut events = Reader::new(file, Path::new("x")).unwrap().events();
        let mut times = Vec::new();
        for event in &mut events {
            let event = event.unwrap();
            match event.what {
                What::Lost(lost) => times.push(lost.count),
                other => panic!("{other:?}"),
            }
            assert_eq!(times.last().map(|ms| ms * 1_000_000), Some(event.time_ns));
        }
        assert_eq!(events.damaged_records(), 0);
        (times, events.ending())
    }

    #[test]
    fn events_of_all_cpus_come_in_order_of_time_across_rounds() {
        let (times, ending) = read(&sample());
        assert_eq!(times, [10, 20, 30, 40, 50, 61, 62, 80]);
        assert_eq!(
            ending,
            Some(Ending::Complete {
                end_ns: 100_000_000
            })
        );
    }

    #[test]
    fn the_header_comes_back() {
        let file = sample();
        let reader = Reader::new(&file[..], Path::new("x")).unwrap();
        assert_eq!(*reader.header(), sample_header());
    }

    #[test]
    fn a_recording_cut_anywhere_is_good_up_to_its_last_whole_block() {
        let file = sample();
        let whole = read(&file).0;
        let header = Reader::new(&file[..], Path::new("x")).is_ok();
        assert!(header);
        let mut longest = 0;
        for length in 0..file.len() {
            let Ok(reader) = Reader::new(&file[..length], Path::new("x")) else {
                continue;
            };
            let mut events = reader.events();
            let count = (&mut events).map(Result::unwrap).count();
            assert_eq!(events.ending(), Some(Ending::CutShort), "{length}");
            assert!(count >= longest && count <= whole.len());
            longest = count;
        }
        assert_eq!(longest, whole.len());
    }

    #[test]
    fn a_changed_byte_ends_it_and_invents_nothing() {
        let file = sample();
        let whole = read(&file).0;
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            let Ok(reader) = Reader::new(&damaged[..], Path::new("x")) else {
                continue;
            };
            let mut events = reader.events();
            let counts: Vec<_> = (&mut events)
                .map(|event| match event.unwrap().what {
                    What::Lost(lost) => lost.count,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert!(counts.iter().all(|it| whole.contains(it)), "{at}");
            assert!(
                matches!(events.ending(), Some(Ending::Damaged | Ending::CutShort)),
                "{at}"
            );
        }
    }

    #[test]
    fn other_files_and_other_versions_are_told_apart() {
        let error = |bytes: &[u8]| {
            let opened = Reader::new(bytes, Path::new("x"));
            opened.err().map(|it| it.to_string()).unwrap_or_default()
        };
        assert!(error(b"").contains("not a recording"));
        assert!(error(b"SQLite format 3\0, more").contains("not a recording"));
        let mut newer = sample();
        newer[7] += 1;
        assert!(error(&newer).contains("another version"));
    }
}
