//! The tables in formats of other tools, one file a format. SQLite, Parquet and
//! CSV hold the same tables; VCD and Perfetto show the load of the layers and
//! every I/O over time.

mod csv;
mod parquet;
mod perfetto;
mod perfetto_schema;
mod sqlite;
mod vcd;

pub use perfetto_schema::{DebugAnnotation, Trace, TracePacket, TrackDescriptor, TrackEvent};

use crate::store::{self, Store};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One database with all tables and indices.
    Sqlite,
    /// A directory with a file a table.
    Parquet,
    /// A directory with a file a table.
    Csv,
    /// Value change dump: a line a layer.
    Vcd,
    /// Perfetto's trace: tracks of layers and processes.
    Perfetto,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 5] = [
        Format::Sqlite,
        Format::Parquet,
        Format::Csv,
        Format::Vcd,
        Format::Perfetto,
    ];

    /// What a user calls it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Sqlite => "sqlite",
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::Vcd => "vcd",
            Format::Perfetto => "perfetto",
        }
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// What is put behind the recording's name for its export.
    pub fn suffix(self) -> &'static str {
        match self {
            Format::Sqlite => "sqlite",
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::Vcd => "vcd",
            Format::Perfetto => "perfetto-trace",
        }
    }

    /// The store to link a recording into: where it can be, the output itself.
    pub fn store(self, output: &Path) -> Result<Store, Error> {
        if output.exists() {
            return Err(Error::Exists {
                path: output.to_owned(),
            });
        }
        match self {
            Format::Sqlite => sqlite::store(output),
            _ => Ok(Store::temporary()?),
        }
    }

    /// Writes what was linked.
    pub fn write(self, store: Store, output: &Path) -> Result<(), Error> {
        match self {
            Format::Sqlite => sqlite::write(store, output),
            Format::Parquet => parquet::write(&store, output),
            Format::Csv => csv::write(&store, output),
            Format::Vcd => vcd::write(&store, output),
            Format::Perfetto => perfetto::write(&store, output),
        }
    }
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tables could not be written or asked.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The output is there already.
    #[error("{path} exists already: remove it, or give another name with --output")]
    Exists {
        /// It.
        path: PathBuf,
    },
    /// The output could not be written.
    #[error("cannot write {path}: {source}")]
    Output {
        /// It.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Error {
        Error::Store(source.into())
    }
}

/// The error of writing to `path`.
fn cannot_write<E>(path: &Path) -> impl Fn(E) -> Error
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    move |source| Error::Output {
        path: path.to_owned(),
        source: source.into(),
    }
}

fn create(path: &Path) -> Result<BufWriter<File>, Error> {
    File::create_new(path)
        .map(BufWriter::new)
        .map_err(cannot_write(path))
}
