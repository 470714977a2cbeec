//! CSV: a directory with one file per table. The first line has the columns' names. An empty cell
//! is NULL.

use super::{Error, cannot_write};
use crate::store::Store;
use crate::tables::TABLES;
use rusqlite::types::ValueRef;
use std::io;
use std::path::Path;

/// Writes all tables into the directory `output`, which it creates.
pub fn write(store: &Store, output: &Path) -> Result<(), Error> {
    std::fs::create_dir(output).map_err(cannot_write(output))?;
    for table in TABLES {
        let path = output.join(format!("{}.csv", table.name));
        let mut file = csv::Writer::from_writer(super::create(&path)?);
        let names = table.columns.iter().map(|column| column.name);
        let failed = |error| cannot_write(&path)(cause(error));
        file.write_record(names).map_err(failed)?;
        let mut statement = store.select(table)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for place in 0..table.columns.len() {
                let cell = match row.get_ref(place)? {
                    ValueRef::Integer(number) => number.to_string().into_bytes(),
                    ValueRef::Text(text) => text.to_vec(),
                    _ => Vec::new(),
                };
                file.write_field(cell).map_err(failed)?;
            }
            file.write_record(None::<&[u8]>).map_err(failed)?;
        }
        file.flush().map_err(cannot_write(&path))?;
    }
    Ok(())
}

/// The system's error inside of an error of the crate `csv`.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
