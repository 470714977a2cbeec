//! SQLite databases of scenario A and of the SQLite workloads.

use crate::Error;
use rusqlite::{Connection, ffi, params};
use std::path::{Path, PathBuf};

/// Kinds of journals that make a transaction atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    /// A write-ahead log.
    Wal,
    /// A rollback journal that is created and deleted with each transaction.
    Rollback,
}

/// A database with one table `entries(number, value, text)`. Every commit is durable
/// (`synchronous=FULL`).
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
}

/// Seeds SQLite's salts and nonces with `seed`, for the whole process. The same run then writes the
/// same bytes, and the first database does not wait for the kernel's entropy.
pub(crate) fn seed_library(seed: u64) {
    // 0 would stand for no seed.
    let seed = (seed as i32).wrapping_mul(2) | 1;
    // SAFETY: this operation takes an int and a database that may be null.
    unsafe {
        ffi::sqlite3_test_control(
            ffi::SQLITE_TESTCTRL_PRNG_SEED,
            seed,
            std::ptr::null_mut::<ffi::sqlite3>(),
        );
    }
}

impl Database {
    /// Opens the database, or creates it.
    pub(crate) fn open(path: &Path, journal: Journal) -> Result<Self, Error> {
        let connection = Connection::open(path).map_err(|source| failed(path, source))?;
        let database = Database {
            connection,
            path: path.to_owned(),
        };
        let mode = match journal {
            Journal::Wal => "WAL",
            Journal::Rollback => "DELETE",
        };
        database.batch(&format!(
            "PRAGMA journal_mode={mode}; PRAGMA synchronous=FULL;"
        ))?;
        Ok(database)
    }

    pub(crate) fn create_table(&mut self) -> Result<(), Error> {
        self.batch("CREATE TABLE entries(number INTEGER, value INTEGER, text VARCHAR(100))")
    }

    pub(crate) fn create_index(&mut self) -> Result<(), Error> {
        self.batch("CREATE INDEX by_number ON entries(number)")
    }

    pub(crate) fn drop_index(&mut self) -> Result<(), Error> {
        self.batch("DROP INDEX by_number")
    }

    pub(crate) fn drop_table(&mut self) -> Result<(), Error> {
        self.batch("DROP TABLE entries")
    }

    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        self.batch("BEGIN")
    }

    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        self.batch("COMMIT")
    }

    /// Inserts one row in a statement of its own.
    pub(crate) fn insert(&mut self, number: u64, value: u64) -> Result<(), Error> {
        let text = format!("the value of number {number} is {value} at first");
        self.execute(
            "INSERT INTO entries VALUES(?1, ?2, ?3)",
            params![number as i64, value as i64, text],
        )
    }

    /// Inserts the rows `first..first + count` in one transaction.
    pub(crate) fn insert_batch(&mut self, first: u64, count: u64) -> Result<(), Error> {
        self.begin()?;
        for number in first..first + count {
            self.insert(number, number * 7)?;
        }
        self.commit()
    }

    /// Selects rows by their indexed number.
    pub(crate) fn select_by_number(&mut self, number: u64) -> Result<u64, Error> {
        self.query(
            "SELECT count(*), avg(value) FROM entries WHERE number = ?1",
            params![number as i64],
        )
    }

    /// Counts rows whose value is in a range, which scans the table.
    pub(crate) fn select_by_value(&mut self, low: u64, high: u64) -> Result<u64, Error> {
        self.query(
            "SELECT count(*), avg(value) FROM entries WHERE value >= ?1 AND value < ?2",
            params![low as i64, high as i64],
        )
    }

    /// Counts rows whose text contains `part`, which scans the table and compares strings.
    pub(crate) fn select_by_text(&mut self, part: &str) -> Result<u64, Error> {
        self.query(
            "SELECT count(*), avg(value) FROM entries WHERE text LIKE ?1",
            params![format!("%{part}%")],
        )
    }

    /// Updates the rows with this number.
    pub(crate) fn update(&mut self, number: u64, value: u64) -> Result<(), Error> {
        self.execute(
            "UPDATE entries SET value = ?2 WHERE number = ?1",
            params![number as i64, value as i64],
        )
    }

    /// Updates the rows `first..first + count` in one transaction.
    pub(crate) fn update_range(&mut self, first: u64, count: u64) -> Result<(), Error> {
        self.begin()?;
        for number in first..first + count {
            self.update(number, number * 11)?;
        }
        self.commit()
    }

    /// Deletes the rows with this number.
    pub(crate) fn delete(&mut self, number: u64) -> Result<(), Error> {
        self.execute(
            "DELETE FROM entries WHERE number = ?1",
            params![number as i64],
        )
    }

    fn batch(&self, sql: &str) -> Result<(), Error> {
        self.connection
            .execute_batch(sql)
            .map_err(|source| failed(&self.path, source))
    }

    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), Error> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map(|_rows| ())
            .map_err(|source| failed(&self.path, source))
    }

    fn query(&self, sql: &str, values: impl rusqlite::Params) -> Result<u64, Error> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(values, |row| row.get::<_, i64>(0)))
            .map(|count| count as u64)
            .map_err(|source| failed(&self.path, source))
    }
}

fn failed(path: &Path, source: rusqlite::Error) -> Error {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => Error::NoSpace { path },
        _ => Error::Database { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_changed_and_deleted_under_both_journals() {
        for journal in [Journal::Wal, Journal::Rollback] {
            let directory = tempfile::tempdir().unwrap();
            let mut database = Database::open(&directory.path().join("db"), journal).unwrap();
            database.create_table().unwrap();
            database.insert_batch(0, 10).unwrap();
            assert_eq!(database.select_by_number(3).unwrap(), 1);
            assert_eq!(database.select_by_value(0, 14).unwrap(), 2);
            assert_eq!(database.select_by_text("number 9").unwrap(), 1);
            database.update(3, 1000).unwrap();
            assert_eq!(database.select_by_value(1000, 1001).unwrap(), 1);
            database.delete(3).unwrap();
            assert_eq!(database.select_by_number(3).unwrap(), 0);
        }
    }
}
