//! Parquet: a directory with one file per table, so that DuckDB, Spark and pandas can query many
//! devices' recordings at once. The layout is written here (`parquet/file.rs`), since the licence
//! of the crate for it does not go with ours. Tests read the files with that crate.

mod file;
mod thrift;

use super::{Error, cannot_write, create};
use crate::store::Store;
use crate::tables::{TABLES, Table};
use file::Writer;
use rusqlite::types::{Value, ValueRef};
use std::io::{self, Write};
use std::path::Path;

/// Writes rows of a table that is in no recording: cells are in the order of its columns.
///
/// # Errors
/// What the system says of `output`.
pub fn write_table(
    output: impl Write,
    table: &'static Table,
    rows: impl Iterator<Item = Vec<Value>>,
) -> io::Result<()> {
    let mut writer = Writer::new(output, table)?;
    for row in rows {
        let cells: Vec<ValueRef> = row.iter().map(ValueRef::from).collect();
        writer.row(&cells)?;
    }
    writer.finish().map(drop)
}

/// Writes all tables into the directory `output`, which it creates.
pub(super) fn write(store: &Store, output: &Path) -> Result<(), Error> {
    std::fs::create_dir(output).map_err(cannot_write(output))?;
    for &table in TABLES {
        let path = output.join(format!("{}.parquet", table.name));
        let failed = cannot_write(&path);
        let mut writer = Writer::new(create(&path)?, table).map_err(&failed)?;
        let mut statement = store.select(table)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let cells = (0..table.columns.len()).map(|place| row.get_ref(place));
            let cells = cells.collect::<Result<Vec<ValueRef>, _>>()?;
            writer.row(&cells).map_err(&failed)?;
        }
        writer.finish().map_err(&failed)?;
    }
    Ok(())
}
