//! The tables as a SQLite database on disk. The linker fills them; reports and exports query them.
//! The memory for its cache does not grow with its size.

use crate::tables::{Kind, Of, Row, TABLES, Table};
use rusqlite::{Connection, ErrorCode, Statement, params_from_iter};
use std::env;
use std::path::{Path, PathBuf};
use sys::PathError;
use sys::output::Workplace;

/// Memory for the database's pages, in KiB.
const CACHE_KIB: i64 = 16 << 10;
/// Rows between two commits: a commit costs little and frees the log.
const ROWS_PER_TRANSACTION: u64 = 200_000;

/// Reasons why tables could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database reported an error.
    #[error("cannot write the tables{}: {source}", place(.path))]
    Database {
        /// Path of the database; None for a temporary one.
        path: Option<PathBuf>,
        /// Error of the database.
        source: rusqlite::Error,
    },
    /// The file system of the tables is full.
    #[error(
        "no space is left for the tables: make room beside the output if that is SQLite, and else \
         in /var/tmp, or name another directory in TMPDIR"
    )]
    DiskFull,
    /// A file cannot be written or read.
    #[error(transparent)]
    File(#[from] PathError),
}

/// Variables and directories by which SQLite finds a place for temporary files.
const ASKED: [&str; 2] = ["SQLITE_TMPDIR", "TMPDIR"];
const USUAL: [&str; 3] = ["/var/tmp", "/usr/tmp", "/tmp"];

/// Has all stores of this process keep their temporary files in a directory of their own, for as long as the
/// result lives. None where no directory can be made; whoever then needs such a file is told.
///
/// # Errors
/// [`Error`] of the database.
pub fn keep_temporary_files_apart() -> Result<Option<Workplace>, Error> {
    let asked = ASKED.into_iter().filter_map(env::var_os).map(PathBuf::from);
    let mut places = asked.chain(USUAL.map(PathBuf::from));
    let Some(work) = places.find_map(|it| Workplace::beside(&it.join("tables")).ok()) else {
        return Ok(None);
    };
    let set = format!(
        "PRAGMA temp_store_directory = '{}'",
        work.path("").display()
    );
    Connection::open_in_memory()?.execute_batch(&set)?;
    Ok(Some(work))
}

fn place(path: &Option<PathBuf>) -> String {
    match path {
        Some(path) => format!(" in {}", path.display()),
        None => " in the temporary directory".to_owned(),
    }
}

impl Error {
    /// Whether the file system was full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Error::DiskFull)
    }
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Error {
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Error::DiskFull,
            _ => Error::Database { path: None, source },
        }
    }
}

/// A database with all tables.
#[derive(Debug)]
pub struct Store {
    database: Connection,
    rows: u64,
    /// Whether it keeps only the rows of waits and those that they refer to.
    only_waits: bool,
}

impl Store {
    /// An empty database without a name, which is deleted when it is dropped.
    pub fn temporary() -> Result<Store, Error> {
        Store::over(Connection::open("")?)
    }

    /// As [`temporary`](Store::temporary), for those who ask only for waits. It has no rows of I/O,
    /// whose number grows with the rate of requests while nobody waits for them.
    pub fn only_waits() -> Result<Store, Error> {
        Ok(Store {
            only_waits: true,
            ..Store::temporary()?
        })
    }

    /// Whether it keeps only the rows of waits and those that they refer to.
    pub fn has_only_waits(&self) -> bool {
        self.only_waits
    }

    /// An empty database in `path`, which must not exist.
    pub fn create(path: &Path) -> Result<Store, Error> {
        let opened = Connection::open(path).map_err(Error::from);
        opened.and_then(Store::over).map_err(|error| match error {
            Error::Database { source, .. } => Error::Database {
                path: Some(path.to_owned()),
                source,
            },
            other => other,
        })
    }

    fn over(database: Connection) -> Result<Store, Error> {
        // No program reads it before it is whole: it needs no journal and no waits for the disk.
        database.execute_batch(&format!(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
             PRAGMA cache_size = -{CACHE_KIB}; PRAGMA locking_mode = EXCLUSIVE;"
        ))?;
        database.set_prepared_statement_cache_capacity(64);
        for table in TABLES {
            database.execute_batch(&create(table))?;
        }
        database.execute_batch("BEGIN")?;
        Ok(Store {
            database,
            rows: 0,
            only_waits: false,
        })
    }

    /// Adds a row to its table.
    pub fn add<R: Row>(&mut self, row: &R) -> Result<(), Error> {
        if self.only_waits && R::TABLE.of == Of::Io {
            return Ok(());
        }
        let mut statement = self.database.prepare_cached(&insert(R::TABLE))?;
        statement.execute(params_from_iter(row.cells()))?;
        drop(statement);
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_PER_TRANSACTION) {
            self.database.execute_batch("COMMIT; BEGIN")?;
        }
        Ok(())
    }

    /// Makes the indices; call it once all rows are there.
    pub fn finish(&mut self) -> Result<(), Error> {
        for table in TABLES {
            for column in table.indices {
                let name = table.name;
                self.database.execute_batch(&format!(
                    "CREATE INDEX {name}_by_{column} ON {name} ({column})"
                ))?;
            }
        }
        self.database
            .execute_batch("COMMIT; PRAGMA optimize; BEGIN")?;
        Ok(())
    }

    /// A query of all rows of a table, in the order in which they were added.
    pub fn select(&self, table: &Table) -> Result<Statement<'_>, Error> {
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let query = format!(
            "SELECT {} FROM {} ORDER BY rowid",
            columns.join(", "),
            table.name
        );
        Ok(self.database.prepare(&query)?)
    }

    /// Commits the last rows and closes the database.
    pub fn close(self) -> Result<(), Error> {
        self.database.execute_batch("COMMIT")?;
        self.database
            .close()
            .map_err(|(_, source)| Error::from(source))
    }

    /// Connection to the database, for queries.
    pub fn database(&self) -> &Connection {
        &self.database
    }
}

/// The SQL statement that creates a table.
fn create(table: &Table) -> String {
    let columns = table.columns.iter().enumerate().map(|(place, column)| {
        let kind = match column.kind {
            Kind::Integer | Kind::Boolean => "INTEGER",
            Kind::Real => "REAL",
            Kind::Text => "TEXT",
        };
        let own_number = place == 0 && has_own_number(table);
        let rule = match column.nullable {
            _ if own_number => " PRIMARY KEY",
            true => "",
            false => " NOT NULL",
        };
        format!("{} {kind}{rule}", column.name)
    });
    let columns: Vec<String> = columns.collect();
    format!(
        "CREATE TABLE {} ({}) STRICT",
        table.name,
        columns.join(", ")
    )
}

/// Whether the first column is the primary key of the row.
pub(crate) fn has_own_number(table: &Table) -> bool {
    let first = table.columns[0].name;
    first
        .strip_suffix("_id")
        .is_some_and(|noun| table.name == format!("{noun}s"))
}

fn insert(table: &Table) -> String {
    let verb = match has_own_number(table) {
        true => "INSERT OR REPLACE",
        false => "INSERT",
    };
    let marks = vec!["?"; table.columns.len()].join(", ");
    format!("{verb} INTO {} VALUES ({marks})", table.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Segment;

    #[test]
    fn a_full_disk_is_told_from_other_errors() {
        let mut store = Store::temporary().unwrap();
        let smallest = "PRAGMA max_page_count = 1";
        store.database.query_row(smallest, [], |_| Ok(())).unwrap();
        let error = (0..).find_map(|_| store.add(&Segment::default()).err());
        assert!(error.unwrap().is_disk_full());
        assert!(!Error::from(rusqlite::Error::InvalidQuery).is_disk_full());
    }
}
