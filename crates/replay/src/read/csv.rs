//! Reader of tables in text: a line a request, in columns that the caller names or that a public set
//! is known to have.

use super::stages::{Request, Stage, Stages};
use super::{Lines, Requests, SECTOR_BYTES, Threads, decimal, of_bytes};
use crate::Kind;

/// A column, by its name in the first line or by its number from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Column {
    Number(usize),
    Name(String),
}

/// How an operation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    /// `R`, `read`, `W`, `write`, `D`, `trim`, `F`, `flush` and so on, in any case.
    Plain,
    /// The command's first byte, in hexadecimal digits (SCSI Block Commands).
    Scsi,
}

/// Columns of a table of requests, with their units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    time: Option<(Column, u64)>,
    op: (Column, Words),
    offset: (Column, u64),
    size: (Column, u64),
    thread: Option<Column>,
    device: Option<Column>,
}

/// Public sets: name, columns, and where the set is described.
const PRESETS: [(&str, &str); 4] = [
    // https://iotta.snia.org/traces/388: times in Windows' units of 100 ns.
    (
        "msr",
        "time=1:filetime,op=4,offset=5:bytes,size=6:bytes,device=3",
    ),
    // "Trace File Format Specification", Storage Performance Council, 2002.
    (
        "spc",
        "time=5:s,op=4,offset=2:sectors,size=3:bytes,device=1",
    ),
    // https://github.com/alibaba/block-traces
    (
        "alibaba",
        "time=5:us,op=2,offset=3:bytes,size=4:bytes,device=1",
    ),
    // The set of USENIX ATC 2015, as text with a line of names.
    (
        "cloudphysics",
        "time=time:s,op=op:scsi,offset=lbn:sectors,size=size:bytes",
    ),
];

/// Lines of names that copies of these sets begin with, in small letters.
const HEADERS: [(&str, &str); 3] = [
    (
        "timestamp,hostname,disknumber,type,offset,size,responsetime",
        "msr",
    ),
    ("device_id,opcode,offset,length,timestamp", "alibaba"),
    ("version,time,op,size,lbn", "cloudphysics"),
];

impl Columns {
    /// Names of the presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// Columns by a preset's name, or as `time=NAME:UNIT,op=NAME,offset=NAME:UNIT,size=NAME:UNIT`. A
    /// name is that in the table's first line, or the column's number from 1.
    ///
    /// # Errors
    /// A sentence that says which part is missing or not known.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some((_, columns)) = PRESETS.iter().find(|(name, _)| *name == text) {
            return Columns::parse(columns);
        }
        if !text.contains('=') {
            let names: Vec<&str> = Columns::presets().collect();
            return Err(format!(
                "give {} or time=COLUMN:UNIT,op=COLUMN,offset=COLUMN:UNIT,size=COLUMN:UNIT",
                names.join(", ")
            ));
        }
        let (mut time, mut op, mut offset, mut size) = (None, None, None, None);
        let (mut thread, mut device) = (None, None);
        for part in text.split(',') {
            let (what, rest) = part
                .split_once('=')
                .ok_or("give each column as WHAT=COLUMN")?;
            let (column, unit) = match rest.rsplit_once(':') {
                Some((column, unit)) => (column, Some(unit)),
                None => (rest, None),
            };
            let column = column_of(column)?;
            match what {
                "time" => time = Some((column, unit_of_time(unit)?)),
                "op" => op = Some((column, words(unit)?)),
                "offset" => offset = Some((column, unit_of_size(unit)?)),
                "size" => size = Some((column, unit_of_size(unit)?)),
                "thread" => thread = Some(column),
                "device" => device = Some(column),
                other => {
                    return Err(format!(
                        "'{other}' is none of time, op, offset, size, thread and device"
                    ));
                }
            }
        }
        Ok(Columns {
            time,
            op: op.ok_or("name the column of the operation: op=COLUMN")?,
            offset: offset.ok_or("name the column of the offset: offset=COLUMN:UNIT")?,
            size: size.ok_or("name the column of the size: size=COLUMN:UNIT")?,
            thread,
            device,
        })
    }

    /// The preset that a line is of, if it can be of no other.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let are_numbers = |at: &[usize]| {
            at.iter()
                .all(|at| fields.get(*at).is_some_and(|it| decimal(it).is_some()))
        };
        let is = |at: usize, words: &[&str]| fields.get(at).is_some_and(|it| words.contains(it));
        let names = fields.join(",").to_ascii_lowercase();
        let header = HEADERS.iter().find(|(header, _)| *header == names);
        let name = if let Some((_, name)) = header {
            name
        } else if fields.len() == 7 && are_numbers(&[0, 2, 4, 5, 6]) && is(3, &["Read", "Write"]) {
            "msr"
        } else if fields.len() == 5 && are_numbers(&[0, 2, 3, 4]) && is(1, &["R", "W"]) {
            "alibaba"
        } else if fields.len() >= 5
            && are_numbers(&[0, 1, 2])
            && is(3, &["R", "W", "r", "w"])
            && super::seconds(fields[4]).is_some()
        {
            "spc"
        } else {
            return None;
        };
        Columns::parse(name).ok()
    }

    fn has_names(&self) -> bool {
        let named = |it: &Column| matches!(it, Column::Name(_));
        named(&self.op.0) || named(&self.offset.0) || named(&self.size.0)
    }
}

fn column_of(text: &str) -> Result<Column, String> {
    match text.parse() {
        Ok(0) => Err("columns are counted from 1".to_owned()),
        Ok(number) => Ok(Column::Number(number)),
        Err(_) if text.is_empty() => Err("a column has a name or a number".to_owned()),
        Err(_) => Ok(Column::Name(text.to_owned())),
    }
}

/// Nanoseconds of a unit of time.
fn unit_of_time(unit: Option<&str>) -> Result<u64, String> {
    Ok(match unit {
        Some("s") | None => 1_000_000_000,
        Some("ms") => 1_000_000,
        Some("us") => 1000,
        Some("ns") => 1,
        // Windows counts in 100 ns.
        Some("filetime") => 100,
        Some(other) => {
            return Err(format!(
                "'{other}' is no unit of time: give s, ms, us, ns or filetime"
            ));
        }
    })
}

/// Bytes of a unit of size: bytes, sectors, or a number of bytes.
fn unit_of_size(unit: Option<&str>) -> Result<u64, String> {
    match unit {
        Some("bytes") | None => Ok(1),
        Some("sectors") => Ok(SECTOR_BYTES),
        Some("kb") => Ok(1024),
        Some("pages") => Ok(4096),
        Some(number) => match decimal(number) {
            Some(bytes @ 1..=0x4000_0000) => Ok(bytes),
            _ => Err(format!(
                "'{number}' is no unit of size: give bytes, sectors, kb, pages or a number of bytes"
            )),
        },
    }
}

fn words(unit: Option<&str>) -> Result<Words, String> {
    match unit {
        None => Ok(Words::Plain),
        Some("scsi") => Ok(Words::Scsi),
        Some(other) => Err(format!(
            "'{other}' is no kind of operations: give scsi, or nothing"
        )),
    }
}

pub struct Reader {
    columns: Option<Columns>,
    separator: Option<char>,
    /// Known after the first line.
    places: Option<Places>,
    threads: Threads,
    stages: Stages,
    begin: Option<i128>,
}

/// Index of each column, with its unit.
#[derive(Clone, Copy)]
struct Places {
    time: Option<(usize, u64)>,
    op: (usize, Words),
    offset: (usize, u64),
    size: (usize, u64),
    thread: Option<usize>,
    device: Option<usize>,
}

impl Reader {
    pub fn of(columns: Option<Columns>, device: Option<&str>) -> Self {
        Reader {
            columns,
            separator: None,
            places: None,
            threads: Threads::default(),
            stages: Stages::of(device),
            begin: None,
        }
    }
}

fn split<'a>(line: &'a str, separator: Option<char>) -> Vec<&'a str> {
    let clean = |it: &'a str| it.trim().trim_matches('"');
    match separator {
        Some(separator) => line.split(separator).map(clean).collect(),
        None => line.split_ascii_whitespace().map(clean).collect(),
    }
}

impl Lines for Reader {
    fn take(&mut self, line: &str, _requests: &mut Requests) -> Result<(), String> {
        if let Some(places) = self.places {
            return self.request(places, line);
        }
        let columns = match self.columns.take() {
            Some(columns) => Some(columns),
            None => Columns::of_line(line),
        };
        let columns = columns.ok_or("its columns are not known: name them with --columns")?;
        self.separator = [',', ';', '\t'].into_iter().find(|it| line.contains(*it));
        let names = split(line, self.separator);
        let places = places(&columns, &names)?;
        self.places = Some(places);
        // A line of names has no number where the offset is.
        let offset = names.get(places.offset.0);
        match columns.has_names() || offset.is_some_and(|it| decimal(it).is_none()) {
            true => Ok(()),
            false => self.request(places, line),
        }
    }

    fn held(&self) -> usize {
        self.stages.held()
    }

    fn finish(&mut self, requests: &mut Requests) -> Result<(), String> {
        self.stages.finish(requests)?;
        if self.places.is_some_and(|it| it.time.is_none()) {
            requests.account.note(super::NO_TIMES);
        }
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        self.threads.names()
    }
}

fn places(columns: &Columns, names: &[&str]) -> Result<Places, String> {
    let place = |column: &Column| match column {
        Column::Number(number) => Ok(number - 1),
        Column::Name(name) => names.iter().position(|it| it == name).ok_or_else(|| {
            format!(
                "the first line has no column {name}, but {}",
                names.join(", ")
            )
        }),
    };
    let any = |column: &Option<Column>| column.as_ref().map(place).transpose();
    Ok(Places {
        time: match &columns.time {
            Some((column, unit_ns)) => Some((place(column)?, *unit_ns)),
            None => None,
        },
        op: (place(&columns.op.0)?, columns.op.1),
        offset: (place(&columns.offset.0)?, columns.offset.1),
        size: (place(&columns.size.0)?, columns.size.1),
        thread: any(&columns.thread)?,
        device: any(&columns.device)?,
    })
}

impl Reader {
    fn request(&mut self, places: Places, line: &str) -> Result<(), String> {
        let fields = split(line, self.separator);
        let field = |at: usize| {
            let count = fields.len();
            let field = fields.get(at).copied();
            field.ok_or_else(|| format!("it has {count} fields, and not {}", at + 1))
        };
        let bytes = |(at, unit): (usize, u64)| {
            let text = field(at)?;
            let number = decimal(text).ok_or_else(|| format!("'{text}' is no number"))?;
            number
                .checked_mul(unit)
                .ok_or_else(|| "it ends beyond any device".to_owned())
        };
        let time_ns = match places.time {
            Some((at, unit_ns)) => time_ns(&mut self.begin, field(at)?, unit_ns)?,
            None => 0,
        };
        let thread = places.thread.map_or(Ok(""), field)?;
        let lane = self.threads.number(thread, thread);
        let (offset, size) = (bytes(places.offset)?, bytes(places.size)?);
        let device = places.device.map_or(Ok(""), field)?;
        let request = match operation(field(places.op.0)?, places.op.1)? {
            Some(Kind::Flush) => Request::Played(of_bytes(time_ns, Kind::Flush, 0, 0, lane)?),
            Some(_) if size == 0 => Request::LeftOut("requests that move nothing", false),
            Some(kind) => Request::Played(of_bytes(time_ns, kind, offset, size, lane)?),
            None => Request::LeftOut("commands that are no read, write, discard or flush", false),
        };
        self.stages.take(device, Stage::Issued, request)
    }
}

/// Nanoseconds since the first line's time, which may be after this one.
fn time_ns(begin: &mut Option<i128>, text: &str, unit_ns: u64) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no time");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole = decimal(whole).ok_or_else(wrong)?;
    let part: f64 = match part {
        "" => 0.0,
        digits if digits.bytes().all(|it| it.is_ascii_digit()) => {
            format!("0.{digits}").parse().map_err(|_| wrong())?
        }
        _ => return Err(wrong()),
    };
    let ns = i128::from(whole) * i128::from(unit_ns) + (part * unit_ns as f64).round() as i128;
    let since = ns - *begin.get_or_insert(ns);
    // Lines that are a little out of order come before the first.
    u64::try_from(since + i128::from(EARLY_NS)).map_err(|_| wrong())
}

/// How much earlier than the first line others may be: as long as any trace.
const EARLY_NS: u64 = 1 << 61;

/// Kind of operation; None for a command that moves no data.
fn operation(text: &str, words: Words) -> Result<Option<Kind>, String> {
    let is = |words: &[&str]| words.iter().any(|it| text.eq_ignore_ascii_case(it));
    let unknown = || Err(format!("'{text}' is no operation that is known"));
    Ok(Some(match words {
        Words::Plain if is(&["r", "read", "rs", "ra", "rd"]) => Kind::Read,
        Words::Plain if is(&["w", "write", "ws", "wr"]) => Kind::Write,
        Words::Plain if is(&["d", "discard", "trim", "unmap", "t"]) => Kind::Discard,
        Words::Plain if is(&["f", "flush", "fsync", "sync", "fdatasync"]) => Kind::Flush,
        Words::Plain => return unknown(),
        Words::Scsi => {
            let code = u8::from_str_radix(text.trim_start_matches("0x"), 16);
            match code {
                Ok(0x08 | 0x28 | 0x88 | 0xa8) => Kind::Read,
                Ok(0x0a | 0x2a | 0x8a | 0xaa) => Kind::Write,
                Ok(0x42) => Kind::Discard,
                Ok(0x35 | 0x91) => Kind::Flush,
                Ok(_) => return Ok(None),
                Err(_) => return unknown(),
            }
        }
    }))
}
