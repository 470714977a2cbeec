//! Layout of a Parquet file.
//!
//! After the magic number come row groups. Each has one chunk a column, and each chunk has one
//! page. A page has a bit for each row that says whether it has a value, and then the values; gzip
//! packs it. A chunk has its smallest and largest value, by which readers leave out groups. At the end are the footer, its length, and the magic number again. The footer
//! describes the columns and tells where the chunks are.
//!
//! Numbers of fields and values of enumerations are those of `parquet.thrift` in the format's
//! definition (<https://github.com/apache/parquet-format>).

use super::thrift::{Struct, varint};
use crate::tables::{Column, Kind, Table};
use flate2::{Compression, write::GzEncoder};
use rusqlite::types::ValueRef;
use std::io::{self, Write};

#[cfg(test)]
mod tests;

const MAGIC: &[u8; 4] = b"PAR1";

/// A row group in memory is written when it has this many rows, or this many bytes of values.
const ROWS_PER_GROUP: u64 = 1 << 16;
const BYTES_PER_GROUP: usize = 16 << 20;

/// Values of the enumeration `Encoding`.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
/// Value of the enumeration `CompressionCodec`.
const GZIP: i32 = 2;
/// Value of the enumeration `PageType`.
const DATA_PAGE: i32 = 0;
/// Value of the enumeration `ConvertedType`.
const UTF8: i32 = 0;

/// Version of the format in the footer.
const VERSION: i32 = 2;

/// A file that is being written row by row.
pub struct Writer<W> {
    output: W,
    written: i64,
    table: &'static Table,
    chunks: Vec<Chunk>,
    /// Rows of the group in memory.
    rows: u64,
    rows_per_group: u64,
    /// Metadata of the groups that are written, for the footer.
    groups: Vec<Vec<u8>>,
    all_rows: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file for the rows of `table`.
    pub fn new(output: W, table: &'static Table) -> io::Result<Writer<W>> {
        let mut writer = Writer {
            output,
            written: 0,
            table,
            chunks: table.columns.iter().map(|_| Chunk::default()).collect(),
            rows: 0,
            rows_per_group: ROWS_PER_GROUP,
            groups: Vec::new(),
            all_rows: 0,
        };
        writer.put(MAGIC)?;
        Ok(writer)
    }

    /// Adds a row, whose cells are in the order of the table's columns.
    pub fn row(&mut self, cells: &[ValueRef]) -> io::Result<()> {
        for ((chunk, column), cell) in self.chunks.iter_mut().zip(self.table.columns).zip(cells) {
            chunk.push(column, *cell)?;
        }
        self.rows += 1;
        let bytes: usize = self.chunks.iter().map(|chunk| chunk.plain.len()).sum();
        if self.rows == self.rows_per_group || bytes >= BYTES_PER_GROUP {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> io::Result<()> {
        let (mut columns, mut bytes) = (Vec::new(), 0);
        for (index, column) in self.table.columns.iter().enumerate() {
            let mut chunk = std::mem::take(&mut self.chunks[index]);
            let range = chunk.range.take();
            let nulls = chunk.nulls;
            let at = self.written;
            let page = chunk.page(column);
            let header = self.put_page(&page)?;
            let (unpacked, packed) = (header + page.len() as i64, self.written - at);
            let statistics = statistics(nulls, range);
            let place = [self.rows as i64, unpacked, packed, at];
            columns.push(chunk_metadata(column, place, statistics));
            bytes += unpacked;
        }
        let group = Struct::default().structs(1, &columns).i64(2, bytes);
        self.groups.push(group.i64(3, self.rows as i64).end());
        self.all_rows += self.rows;
        self.rows = 0;
        Ok(())
    }

    /// Writes one page and returns the length of its header in bytes.
    fn put_page(&mut self, page: &[u8]) -> io::Result<i64> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(page)?;
        let packed = packer.finish()?;
        let encodings = Struct::default()
            .i32(1, self.rows as i32)
            .i32(2, PLAIN)
            .i32(3, RLE)
            .i32(4, RLE);
        let header = Struct::default()
            .i32(1, DATA_PAGE)
            .i32(2, length(page)?)
            .i32(3, length(&packed)?)
            .nested(5, encodings)
            .end();
        self.put(&header)?;
        self.put(&packed)?;
        Ok(header.len() as i64)
    }

    /// Writes the footer and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.end_group()?;
        }
        let footer = Struct::default()
            .i32(1, VERSION)
            .structs(2, &schema(self.table))
            .i64(3, self.all_rows as i64)
            .structs(4, &self.groups)
            .text(6, concat!("frontrow version ", env!("CARGO_PKG_VERSION")))
            .structs(7, &vec![order_of_type(); self.table.columns.len()])
            .end();
        self.put(&footer)?;
        self.put(&length(&footer)?.to_le_bytes())?;
        self.put(MAGIC)?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)?;
        self.written += bytes.len() as i64;
        Ok(())
    }
}

/// Cells of one column in one row group.
#[derive(Default)]
struct Chunk {
    /// One bit a row: whether it has a value.
    there: Bits,
    booleans: Bits,
    /// Values of the other kinds, in the encoding PLAIN.
    plain: Vec<u8>,
    nulls: i64,
    /// The smallest and the largest value.
    range: Option<Range>,
}

/// Longest text that is kept as the smallest or largest one.
const LONGEST_BOUND: usize = 64;

/// The smallest and the largest value of a column in a row group.
enum Range {
    Integers(i64, i64),
    Texts(Vec<u8>, Vec<u8>),
}

impl Range {
    fn of_integers(so_far: Option<Range>, number: i64) -> Range {
        match so_far {
            Some(Range::Integers(least, most)) => {
                Range::Integers(least.min(number), most.max(number))
            }
            _ => Range::Integers(number, number),
        }
    }

    /// Texts are ordered by their bytes.
    fn of_texts(so_far: Option<Range>, text: &[u8]) -> Range {
        match so_far {
            Some(Range::Texts(least, most)) if text < least.as_slice() => {
                Range::Texts(text.to_owned(), most)
            }
            Some(Range::Texts(least, most)) if text > most.as_slice() => {
                Range::Texts(least, text.to_owned())
            }
            Some(range) => range,
            None => Range::Texts(text.to_owned(), text.to_owned()),
        }
    }
}

impl Chunk {
    fn push(&mut self, column: &Column, cell: ValueRef) -> io::Result<()> {
        match (column.kind, cell) {
            (_, ValueRef::Null) if column.nullable => {}
            (Kind::Boolean, ValueRef::Integer(number)) => self.booleans.push(number != 0),
            (Kind::Integer, ValueRef::Integer(number)) => {
                self.plain.extend_from_slice(&number.to_le_bytes());
                self.range = Some(Range::of_integers(self.range.take(), number));
            }
            (Kind::Real, ValueRef::Real(number)) => {
                self.plain.extend_from_slice(&number.to_le_bytes());
            }
            (Kind::Text, ValueRef::Text(text)) => {
                self.plain.extend_from_slice(&length(text)?.to_le_bytes());
                self.plain.extend_from_slice(text);
                self.range = Some(Range::of_texts(self.range.take(), text));
            }
            _ => {
                let what = format!("{} cannot hold {}", column.name, cell.data_type());
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        let is_null = matches!(cell, ValueRef::Null);
        self.nulls += i64::from(is_null);
        self.there.push(!is_null);
        Ok(())
    }

    fn page(self, column: &Column) -> Vec<u8> {
        let mut page = Vec::new();
        if column.nullable {
            let run = self.there.run();
            page.extend((run.len() as u32).to_le_bytes());
            page.extend(run);
        }
        page.extend(self.booleans.bytes);
        page.extend(self.plain);
        page
    }
}

/// Bits, the first one in the lowest bit of a byte.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.bytes[self.count / 8] |= u8::from(bit) << (self.count % 8);
        self.count += 1;
    }

    /// Levels of one bit in the encoding RLE: one bit-packed run. It repeats nothing, since gzip
    /// packs it anyway. Its header counts groups of eight bits.
    fn run(&self) -> Vec<u8> {
        let mut run = Vec::new();
        varint(&mut run, (self.bytes.len() as u64) << 1 | 1);
        run.extend_from_slice(&self.bytes);
        run
    }
}

/// The elements of the schema: the root, then the columns from left to right.
fn schema(table: &Table) -> Vec<Vec<u8>> {
    let columns = table.columns.len() as i32;
    let root = Struct::default().text(4, table.name).i32(5, columns).end();
    let mut elements = vec![root];
    elements.extend(table.columns.iter().map(|column| {
        let element = Struct::default()
            .i32(1, physical_type(column.kind))
            // Value of the enumeration `FieldRepetitionType`: 0 is required, 1 is optional.
            .i32(3, column.nullable.into())
            .text(4, column.name);
        match column.kind {
            // Old readers know the converted type, new ones the logical type. That is a union; its
            // first field is an empty struct and stands for strings.
            Kind::Text => {
                let string = Struct::default().nested(1, Struct::default());
                element.i32(6, UTF8).nested(10, string)
            }
            Kind::Integer | Kind::Real | Kind::Boolean => element,
        }
        .end()
    }));
    elements
}

/// Value of the enumeration `Type`.
fn physical_type(kind: Kind) -> i32 {
    match kind {
        Kind::Boolean => 0,
        Kind::Integer => 2,
        Kind::Real => 5,
        Kind::Text => 6,
    }
}

/// Metadata in the footer of a chunk: its number of rows, the bytes of its page with the header before and after it
/// is packed, and its offset.
fn chunk_metadata(column: &Column, place: [i64; 4], statistics: Struct) -> Vec<u8> {
    let [rows, unpacked, packed, at] = place;
    let metadata = Struct::default()
        .i32(1, physical_type(column.kind))
        .i32s(2, &[PLAIN, RLE])
        .text_list(3, column.name)
        .i32(4, GZIP)
        .i64(5, rows)
        .i64(6, unpacked)
        .i64(7, packed)
        .i64(9, at)
        .nested(12, statistics);
    Struct::default().i64(2, 0).nested(3, metadata).end()
}

/// The struct `Statistics`. Truth values and real numbers have no bounds in it: two values need none, and NaN
/// has no order.
fn statistics(nulls: i64, range: Option<Range>) -> Struct {
    let statistics = Struct::default().i64(3, nulls);
    match range {
        Some(Range::Integers(least, most)) => statistics
            .bytes(5, &most.to_le_bytes())
            .bytes(6, &least.to_le_bytes()),
        Some(Range::Texts(least, most)) if least.len().max(most.len()) <= LONGEST_BOUND => {
            statistics.bytes(5, &most).bytes(6, &least)
        }
        _ => statistics,
    }
}

/// A column's `ColumnOrder`: that of its type, without which readers ignore bounds.
fn order_of_type() -> Vec<u8> {
    Struct::default().nested(1, Struct::default()).end()
}

/// Length as the format stores it; an error if it exceeds `i32`.
fn length(bytes: &[u8]) -> io::Result<i32> {
    i32::try_from(bytes.len()).map_err(io::Error::other)
}
