//! Readers of traces, one module a format.

mod blkparse;
mod fio;
mod phone;
mod strace;

use crate::{Error, Kind, Operation, Recording, Trace};
use flate2::bufread::MultiGzDecoder;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use sys::PathError;

/// Largest length of a line, of any format.
const LINE_LIMIT_BYTES: u64 = 64 << 10;

/// Largest number of operations, which take 2.4 GB of memory.
const OPERATIONS_LIMIT: usize = 60_000_000;

/// Size of a sector, whatever the device's own is (include/linux/blk_types.h).
const SECTOR_BYTES: u64 = 512;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines of `proces,device,rw_flag,sector,size,timestamp` (MobileBlockIOTraces).
    Phone,
    /// The text that blkparse prints by default.
    Blkparse,
    /// fio's `write_iolog`, version 2 or 3.
    Fio,
    /// The output of strace with `-f -ttt -T`; `-y` adds the names of files.
    Strace,
}

impl Format {
    /// All formats, in the order of their declaration.
    pub const ALL: [Format; 4] = [Format::Phone, Format::Blkparse, Format::Fio, Format::Strace];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Phone => "phone",
            Format::Blkparse => "blkparse",
            Format::Fio => "fio",
            Format::Strace => "strace",
        }
    }

    /// The format called `name`; None if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The format of a trace with this first line.
    fn of_line(line: &str) -> Option<Self> {
        if phone::is_header(line) {
            return Some(Format::Phone);
        }
        if fio::version(line).is_some() {
            return Some(Format::Fio);
        }
        if strace::is_line(line) {
            return Some(Format::Strace);
        }
        blkparse::is_event(line).then_some(Format::Blkparse)
    }

    fn reader(self) -> Reader {
        let lines: Box<dyn Lines> = match self {
            Format::Phone => Box::<phone::Reader>::default(),
            Format::Blkparse => Box::<blkparse::Reader>::default(),
            Format::Fio => Box::<fio::Reader>::default(),
            Format::Strace => return Reader::Calls(Box::default()),
        };
        Reader::Blocks(lines, Vec::new())
    }
}

/// The part of a trace that was read, by the kind of its format.
enum Reader {
    /// A block trace: requests of a device.
    Blocks(Box<dyn Lines>, Vec<Operation>),
    /// A trace of system calls.
    Calls(Box<strace::Reader>),
}

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), String> {
        match self {
            Reader::Blocks(lines, operations) => {
                operations.extend(lines.take(line)?);
                Ok(())
            }
            Reader::Calls(reader) => reader.take(line),
        }
    }

    fn count(&self) -> usize {
        match self {
            Reader::Blocks(_, operations) => operations.len(),
            Reader::Calls(reader) => reader.count(),
        }
    }

    fn finish(self) -> Recording {
        match self {
            Reader::Blocks(lines, operations) => {
                Recording::Blocks(Trace::new(operations).with_names(lines.names()))
            }
            Reader::Calls(reader) => Recording::Calls(reader.finish()),
        }
    }
}

/// The parser of a block format, which takes a trace line by line.
trait Lines {
    /// Parses a line; `None` if it has no operation.
    ///
    /// # Errors
    /// A sentence that says why the format does not allow the line.
    fn take(&mut self, line: &str) -> Result<Option<Operation>, String>;

    /// Names of the threads by number; empty if the format has none.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Reads a trace in `format`, or in the format that its first line fits. It may be compressed by
/// gzip.
///
/// # Errors
/// [`Error::Io`], [`Error::Format`], [`Error::Line`], [`Error::Empty`], [`Error::TooLong`]. A
/// damaged trace is an error and never a shorter trace.
pub fn read(path: &Path, format: Option<Format>) -> Result<Recording, Error> {
    let failed = PathError::of("read", path);
    let mut file = BufReader::new(File::open(path).map_err(&failed)?);
    let is_gzip = file.fill_buf().map_err(&failed)?.starts_with(&GZIP_MAGIC);
    match is_gzip {
        true => read_lines(path, BufReader::new(MultiGzDecoder::new(file)), format),
        false => read_lines(path, file, format),
    }
}

fn read_lines(
    path: &Path,
    input: impl BufRead,
    format: Option<Format>,
) -> Result<Recording, Error> {
    let mut input = LineReader::new(input);
    let failed = PathError::of("read", path);
    let mut reader: Option<(Format, Reader)> = format.map(|it| (it, it.reader()));
    while let Some(line) = input.next().map_err(&failed)? {
        if line.is_empty() {
            continue;
        }
        let (format, reader) = match &mut reader {
            Some(known) => known,
            None => {
                let format = Format::of_line(line).ok_or_else(|| Error::Format(path.to_owned()))?;
                reader.insert((format, format.reader()))
            }
        };
        reader.take(line).map_err(|reason| Error::Line {
            path: path.to_owned(),
            line: input.number,
            format: format.name(),
            reason,
        })?;
        if reader.count() > OPERATIONS_LIMIT {
            return Err(Error::TooLong {
                path: path.to_owned(),
                limit: OPERATIONS_LIMIT,
            });
        }
    }
    match reader {
        Some((_, reader)) if reader.count() > 0 => Ok(reader.finish()),
        _ => Err(Error::Empty(path.to_owned())),
    }
}

/// Lines of bounded length.
struct LineReader<R> {
    input: R,
    bytes: Vec<u8>,
    number: u64,
}

impl<R: BufRead> LineReader<R> {
    fn new(input: R) -> Self {
        LineReader {
            input,
            bytes: Vec::new(),
            number: 0,
        }
    }

    /// The next line without its end and without blanks around it.
    fn next(&mut self) -> std::io::Result<Option<&str>> {
        let invalid = |text: String| std::io::Error::new(std::io::ErrorKind::InvalidData, text);
        self.bytes.clear();
        self.number += 1;
        let mut limited = self.input.by_ref().take(LINE_LIMIT_BYTES);
        let length = limited.read_until(b'\n', &mut self.bytes)?;
        if length == 0 {
            return Ok(None);
        }
        if length as u64 == LINE_LIMIT_BYTES {
            let number = self.number;
            return Err(invalid(format!("line {number} is longer than any trace's")));
        }
        let text = std::str::from_utf8(&self.bytes)
            .map_err(|_| invalid(format!("line {} is not text", self.number)))?;
        Ok(Some(text.trim()))
    }
}

/// Numbers threads in the order in which they appear.
#[derive(Default)]
struct Threads(HashMap<String, u32>);

impl Threads {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.0.get(name) {
            return *number;
        }
        let number = self.0.len() as u32;
        self.0.insert(name.to_owned(), number);
        number
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<(&String, &u32)> = self.0.iter().collect();
        names.sort_by_key(|(_, number)| **number);
        names.into_iter().map(|(name, _)| name.clone()).collect()
    }
}

/// `1.25` s → 1,250,000,000 ns, exactly; digits below the nanosecond are dropped.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(part) {
        return None;
    }
    let part = &part[..part.len().min(9)];
    let part_ns: u64 = format!("{part:0<9}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(part_ns)
}

/// An operation of sectors.
fn of_sectors(
    time_ns: u64,
    kind: Kind,
    sector: u64,
    sectors: u64,
    lane: u32,
) -> Result<Operation, String> {
    let bytes = |sectors: u64| sectors.checked_mul(SECTOR_BYTES);
    let (Some(offset_bytes), Some(size_bytes)) = (bytes(sector), bytes(sectors)) else {
        return Err("its sectors are beyond any device".to_owned());
    };
    of_bytes(time_ns, kind, offset_bytes, size_bytes, lane)
}

/// The largest offset that a Linux file or device can have.
const END_LIMIT_BYTES: u64 = i64::MAX as u64;

fn of_bytes(
    time_ns: u64,
    kind: Kind,
    offset_bytes: u64,
    size_bytes: u64,
    lane: u32,
) -> Result<Operation, String> {
    let end = offset_bytes.checked_add(size_bytes);
    if end.is_none_or(|end| end > END_LIMIT_BYTES) {
        return Err("it ends beyond any device".to_owned());
    }
    if size_bytes == 0 && kind != Kind::Flush {
        return Err("it has no size".to_owned());
    }
    Ok(Operation {
        time_ns,
        kind,
        offset_bytes,
        size_bytes,
        lane,
    })
}

#[cfg(test)]
mod tests;
