//! CSV: a directory with one file per table. The first line has the columns' names. An empty cell
//! is NULL. Texts that a spreadsheet would take for a formula have an apostrophe before them.

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
                    ValueRef::Text(text) => as_text(text),
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

/// A name as a cell. A spreadsheet takes what begins with one of these letters for a formula.
fn as_text(name: &[u8]) -> Vec<u8> {
    match name.first() {
        Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r') => [b"'", name].concat(),
        _ => name.to_vec(),
    }
}

/// The system's error inside of an error of the crate `csv`.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_a_formula() {
        for (name, cell) in [
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("-bash", "'-bash"),
            ("@x", "'@x"),
            ("bash", "bash"),
            ("", ""),
        ] {
            assert_eq!(as_text(name.as_bytes()), cell.as_bytes());
        }
    }
}
