//! Readers of traces, one module a format.

mod biosnoop;
mod blkparse;
mod csv;
mod fio;
mod ftrace;
mod phone;
mod stages;
mod strace;

pub use csv::Columns;

use crate::account::{Account, Fate};
use crate::input::Input;
use crate::{Error, Kind, Operation, Recording, Trace};
use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;
use sys::PathError;

/// Largest length of a line, of any format.
const LINE_LIMIT_BYTES: usize = 64 << 10;

/// Largest number of operations, which take 2.4 GB of memory.
const OPERATIONS_LIMIT: usize = 60_000_000;

/// Size of a sector, whatever the device's own is (include/linux/blk_types.h).
const SECTOR_BYTES: u64 = 512;

/// Note on a trace without times.
const NO_TIMES: &str = "the trace has no times: it is played in order, as if all happened at once";

/// Formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines of `proces,device,rw_flag,sector,size,timestamp` (MobileBlockIOTraces).
    Phone,
    /// The text that blkparse prints by default.
    Blkparse,
    /// fio's `write_iolog`, version 2 or 3.
    Fio,
    /// The output of strace, best with `-f -ttt -T -y`.
    Strace,
    /// The output of biosnoop.
    Biosnoop,
    /// Tracepoints of the block layer as ftrace, trace-cmd, atrace and perf script print them.
    Ftrace,
    /// A table in text, whose columns [`Columns`] names.
    Csv,
}

/// What a caller knows of a trace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its format; found from the first lines where it is not given.
    pub format: Option<Format>,
    /// The columns of a table.
    pub columns: Option<Columns>,
    /// The device whose requests are meant, as the trace writes it; needed for a trace of several.
    pub device: Option<String>,
}

impl Format {
    /// All formats, in the order of their declaration.
    pub const ALL: [Format; 7] = [
        Format::Phone,
        Format::Blkparse,
        Format::Fio,
        Format::Strace,
        Format::Biosnoop,
        Format::Ftrace,
        Format::Csv,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Phone => "phone",
            Format::Blkparse => "blkparse",
            Format::Fio => "fio",
            Format::Strace => "strace",
            Format::Biosnoop => "biosnoop",
            Format::Ftrace => "ftrace",
            Format::Csv => "csv",
        }
    }

    /// The format called `name`; None if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The format of a trace with this first line.
    fn of_line(line: &str) -> Option<Self> {
        let tests: [(Format, FirstLine); 7] = [
            (Format::Phone, phone::is_header),
            (Format::Fio, |line| fio::version(line).is_some()),
            (Format::Blkparse, blkparse::is_event),
            (Format::Biosnoop, biosnoop::is_header),
            (Format::Ftrace, ftrace::is_line),
            (Format::Csv, |line| Columns::of_line(line).is_some()),
            (Format::Strace, strace::is_line),
        ];
        let fits = tests.into_iter().find(|(_, fits)| fits(line));
        fits.map(|(format, _)| format)
    }

    fn reader(self, options: &Options) -> Reader {
        let device = options.device.as_deref();
        let lines: Box<dyn Lines> = match self {
            Format::Phone => Box::<phone::Reader>::default(),
            Format::Blkparse => Box::new(blkparse::Reader::of(device)),
            Format::Fio => Box::<fio::Reader>::default(),
            Format::Biosnoop => Box::new(biosnoop::Reader::of(device)),
            Format::Ftrace => Box::new(ftrace::Reader::of(device)),
            Format::Csv => Box::new(csv::Reader::of(options.columns.clone(), device)),
            Format::Strace => return Reader::Calls(Box::default()),
        };
        Reader::Blocks(lines, Requests::default())
    }
}

/// Whether a line can be the first one of a format.
type FirstLine = fn(&str) -> bool;

/// Lines that tools print before a trace's first line.
fn is_preamble(line: &str) -> bool {
    blkparse::is_remark(line) || biosnoop::is_remark(line)
}

/// The part of a trace that was read, by the kind of its format.
enum Reader {
    /// A block trace: requests of a device.
    Blocks(Box<dyn Lines>, Requests),
    /// A trace of system calls.
    Calls(Box<strace::Reader>),
}

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), String> {
        match self {
            Reader::Blocks(lines, requests) => lines.take(line, requests),
            Reader::Calls(reader) => reader.take(line),
        }
    }

    /// Number of operations that are held in memory.
    fn held(&self) -> usize {
        match self {
            Reader::Blocks(lines, requests) => lines.held() + requests.operations.len(),
            Reader::Calls(reader) => reader.count(),
        }
    }

    fn finish(self) -> Result<Recording, String> {
        match self {
            Reader::Blocks(mut lines, mut requests) => {
                lines.finish(&mut requests)?;
                let trace = Trace::new(requests.operations).with_names(lines.names());
                Ok(Recording::Blocks(trace.with_account(requests.account)))
            }
            Reader::Calls(reader) => Ok(Recording::Calls(reader.finish())),
        }
    }
}

/// The requests of a block trace, and the account of them.
#[derive(Default)]
struct Requests {
    operations: Vec<Operation>,
    account: Account,
}

impl Requests {
    fn play(&mut self, operation: Operation) {
        self.account.count(&Fate::Played, 1);
        self.operations.push(operation);
    }
}

/// The parser of a block format, which takes a trace line by line.
trait Lines {
    /// Parses a line. It counts each request of it, and adds those that are played.
    ///
    /// # Errors
    /// A sentence that says why the format does not allow the line.
    fn take(&mut self, line: &str, requests: &mut Requests) -> Result<(), String>;

    /// Number of operations that it holds back until the end.
    fn held(&self) -> usize {
        0
    }

    /// Adds what was held back, after the last line.
    ///
    /// # Errors
    /// A sentence that says what is not clear about the trace.
    fn finish(&mut self, _requests: &mut Requests) -> Result<(), String> {
        Ok(())
    }

    /// Names of the threads by number; empty if the format has none.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Reads a trace. It may be packed by gzip, xz or zstd.
///
/// # Errors
/// [`Error::Io`], [`Error::Format`], [`Error::Line`], [`Error::Trace`], [`Error::Empty`],
/// [`Error::TooLong`]. A damaged trace is an error and never a shorter trace.
pub fn read(input: Input, options: &Options) -> Result<Recording, Error> {
    let path = input.path().to_owned();
    let text = input.text().map_err(PathError::of("unpack", &path))?;
    read_lines(&path, text, options)
}

fn read_lines(path: &Path, input: impl BufRead, options: &Options) -> Result<Recording, Error> {
    let mut input = LineReader::new(input);
    let failed = PathError::of("read", path);
    let given = match &options.columns {
        Some(_) => Some(Format::Csv),
        None => options.format,
    };
    let mut reader: Option<(Format, Reader)> = given.map(|it| (it, it.reader(options)));
    while input.advance().map_err(&failed)? {
        let line = input.line().map_err(&failed)?;
        if line.is_empty() {
            continue;
        }
        let (format, reader) = match &mut reader {
            Some(known) => known,
            None if is_preamble(line) => continue,
            None => {
                let format = Format::of_line(line).ok_or_else(|| Error::Format(path.to_owned()))?;
                reader.insert((format, format.reader(options)))
            }
        };
        reader.take(line).map_err(|reason| Error::Line {
            path: path.to_owned(),
            line: input.number,
            format: format.name(),
            reason,
        })?;
        if reader.held() > OPERATIONS_LIMIT {
            return Err(Error::TooLong {
                path: path.to_owned(),
                limit: OPERATIONS_LIMIT,
            });
        }
    }
    let Some((_, reader)) = reader else {
        return Err(Error::Empty(path.to_owned()));
    };
    let recording = reader.finish().map_err(|reason| Error::Trace {
        path: path.to_owned(),
        reason,
    })?;
    match recording.account().read_events {
        0 => Err(Error::Empty(path.to_owned())),
        _ => Ok(recording),
    }
}

/// Lines of bounded length, each where the input's buffer has it. Only one that goes over the end
/// of that buffer is copied.
struct LineReader<R> {
    input: R,
    /// Bytes of the input's buffer that the current line has.
    taken: usize,
    /// A line that was copied; empty for one that is in the buffer.
    copied: Vec<u8>,
    number: u64,
}

impl<R: BufRead> LineReader<R> {
    fn new(input: R) -> Self {
        LineReader {
            input,
            taken: 0,
            copied: Vec::new(),
            number: 0,
        }
    }

    /// Goes to the next line; false at the end.
    fn advance(&mut self) -> std::io::Result<bool> {
        self.input.consume(std::mem::take(&mut self.taken));
        self.copied.clear();
        self.number += 1;
        loop {
            let buffer = self.input.fill_buf()?;
            let end = memchr::memchr(b'\n', buffer);
            let length = end.map_or(buffer.len(), |end| end + 1);
            if self.copied.len() + length > LINE_LIMIT_BYTES {
                let number = self.number;
                return Err(invalid(format!("line {number} is longer than any trace's")));
            }
            if self.copied.is_empty() && end.is_some() {
                self.taken = length;
                return Ok(true);
            }
            self.copied.extend_from_slice(&buffer[..length]);
            self.input.consume(length);
            if end.is_some() || length == 0 {
                return Ok(!self.copied.is_empty());
            }
        }
    }

    /// The current line without its end and without blanks around it.
    fn line(&mut self) -> std::io::Result<&str> {
        let number = self.number;
        let bytes = match self.taken {
            0 => &self.copied,
            taken => &self.input.fill_buf()?[..taken],
        };
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| invalid(format!("line {number} is not text")))?;
        Ok(text.trim_ascii())
    }
}

fn invalid(text: String) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, text)
}

/// Numbers threads in the order in which they appear.
#[derive(Default)]
struct Threads {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
    /// The last thread, which is often the next one, too.
    last: (String, u32),
}

impl Threads {
    /// Number of the thread with this key, which is called `name` when it is first met.
    fn number(&mut self, key: &str, name: &str) -> u32 {
        self.number_of(key, || name)
    }

    /// As [`Threads::number`], with a name that is only looked for where it is needed.
    fn number_of<'a>(&mut self, key: &str, name: impl FnOnce() -> &'a str) -> u32 {
        if self.last.0 == key && !self.names.is_empty() {
            return self.last.1;
        }
        let next = self.names.len() as u32;
        let number = match self.numbers.get(key) {
            Some(number) => *number,
            None => {
                self.numbers.insert(key.to_owned(), next);
                self.names.push(name().to_owned());
                next
            }
        };
        self.last.0.clear();
        self.last.0.push_str(key);
        self.last.1 = number;
        number
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }
}

/// The value of decimal digits.
fn decimal(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > 20 {
        return None;
    }
    let mut value: u64 = 0;
    for byte in bytes {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        // Nineteen digits cannot overflow.
        value = match bytes.len() < 20 {
            true => value * 10 + digit,
            false => value.checked_mul(10)?.checked_add(digit)?,
        };
    }
    Some(value)
}

/// `1.25` s → 1,250,000,000 ns, exactly; digits below the nanosecond are dropped.
fn seconds(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let digit = |at: usize| {
        let digit = bytes.get(at)?.wrapping_sub(b'0');
        (digit <= 9).then_some(u64::from(digit))
    };
    let (mut whole, mut at) = (digit(0)?, 1);
    while let Some(digit) = digit(at) {
        whole = whole.checked_mul(10)?.checked_add(digit)?;
        at += 1;
    }
    let mut part_ns = 0;
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        let mut unit_ns = 100_000_000;
        while let Some(digit) = digit(at) {
            part_ns += digit * unit_ns;
            unit_ns /= 10;
            at += 1;
        }
    }
    let whole_ns = whole.checked_mul(1_000_000_000)?;
    let all_ns = whole_ns.checked_add(part_ns)?;
    (at == bytes.len()).then_some(all_ns)
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
mod fuzz;
#[cfg(test)]
mod tests;
