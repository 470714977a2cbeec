//! Parquet: a directory with a file a table, compressed with Snappy, so that
//! DuckDB, Spark and pandas can ask many devices' recordings at once.

use super::{Error, cannot_write};
use crate::store::Store;
use crate::tables::{Column, Kind, TABLES, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use rusqlite::types::ValueRef;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// So many rows are in memory at a time.
const ROWS_PER_GROUP: usize = 1 << 16;

/// A column's values of one row group.
struct Values {
    /// For each row, whether there is a value.
    there: Vec<i16>,
    integers: Vec<i64>,
    booleans: Vec<bool>,
    texts: Vec<ByteArray>,
}

impl Values {
    fn new() -> Values {
        Values {
            there: Vec::new(),
            integers: Vec::new(),
            booleans: Vec::new(),
            texts: Vec::new(),
        }
    }

    fn push(&mut self, kind: Kind, value: ValueRef) {
        self.there.push(i16::from(!matches!(value, ValueRef::Null)));
        match (kind, value) {
            (Kind::Boolean, ValueRef::Integer(number)) => self.booleans.push(number != 0),
            (_, ValueRef::Integer(number)) => self.integers.push(number),
            (_, ValueRef::Text(text)) => self.texts.push(text.to_vec().into()),
            _ => {}
        }
    }
}

/// Writes all tables into the directory `output`.
pub fn write(store: &Store, output: &Path) -> Result<(), Error> {
    std::fs::create_dir(output).map_err(cannot_write(output))?;
    for table in TABLES {
        let path = output.join(format!("{}.parquet", table.name));
        let file = File::create_new(&path).map_err(cannot_write(&path))?;
        let failed = |error| cannot_write(&path)(cause(error));
        let schema = schema(table).map_err(failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
            .map_err(failed)?;
        let mut statement = store.select(table)?;
        let mut rows = statement.query([])?;
        loop {
            let mut columns: Vec<Values> = table.columns.iter().map(|_| Values::new()).collect();
            let mut count = 0;
            while count < ROWS_PER_GROUP
                && let Some(row) = rows.next()?
            {
                for (place, column) in table.columns.iter().enumerate() {
                    columns[place].push(column.kind, row.get_ref(place)?);
                }
                count += 1;
            }
            if count == 0 {
                break;
            }
            group(&mut writer, table, &columns).map_err(failed)?;
        }
        writer.close().map_err(failed)?;
    }
    Ok(())
}

fn schema(table: &Table) -> Result<Type, ParquetError> {
    let columns = table
        .columns
        .iter()
        .map(|column| field(column).map(Arc::new));
    Type::group_type_builder(table.name)
        .with_fields(columns.collect::<Result<_, _>>()?)
        .build()
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Integer => (Physical::INT64, None),
        Kind::Boolean => (Physical::BOOLEAN, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = match column.nullable {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

fn group(
    writer: &mut SerializedFileWriter<File>,
    table: &Table,
    columns: &[Values],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (column, values) in table.columns.iter().zip(columns) {
        write_column(&mut group, column, values)?;
    }
    group.close()?;
    Ok(())
}

fn write_column(
    group: &mut SerializedRowGroupWriter<File>,
    column: &Column,
    values: &Values,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General(format!("no column {}", column.name)));
    };
    let there = column.nullable.then_some(values.there.as_slice());
    match column.kind {
        Kind::Integer => {
            writer
                .typed::<Int64Type>()
                .write_batch(&values.integers, there, None)?;
        }
        Kind::Boolean => {
            writer
                .typed::<BoolType>()
                .write_batch(&values.booleans, there, None)?;
        }
        Kind::Text => {
            writer
                .typed::<ByteArrayType>()
                .write_batch(&values.texts, there, None)?;
        }
    }
    writer.close()
}

/// What the system said, of what the crate says.
fn cause(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}
