//! The tables in formats of other tools, one file a format. SQLite, Parquet and
//! CSV hold the same tables; VCD and Perfetto show the load of the layers and
//! every I/O over time.

mod csv;
mod parquet;
mod perfetto;
mod perfetto_schema;
mod vcd;

pub use perfetto_schema::{DebugAnnotation, Trace, TracePacket, TrackDescriptor, TrackEvent};

use crate::store::{self, Store};
use std::fs::File;
use std::io::{self, BufWriter};
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
}

/// An export under way. It is beside its output, whose name it gets when it is whole: what ends
/// half-way leaves nothing that looks like a result.
#[derive(Debug)]
pub struct Export {
    format: Format,
    output: PathBuf,
    partial: PathBuf,
}

impl Export {
    /// Begins one to `output`, which must not be there yet.
    pub fn begin(format: Format, output: &Path) -> Result<Export, Error> {
        if output.exists() {
            return Err(Error::Exists {
                path: output.to_owned(),
            });
        }
        let mut partial = output.as_os_str().to_owned();
        partial.push(".partial");
        let export = Export {
            format,
            output: output.to_owned(),
            partial: partial.into(),
        };
        // Of one that was killed.
        export.clear().map_err(cannot_write(&export.partial))?;
        Ok(export)
    }

    /// The store to link a recording into: where it can be, the output itself.
    pub fn store(&self) -> Result<Store, Error> {
        Ok(match self.format {
            Format::Sqlite => Store::create(&self.partial)?,
            _ => Store::temporary()?,
        })
    }

    /// Writes what was linked.
    pub fn finish(self, store: Store) -> Result<(), Error> {
        let to = &self.partial;
        match self.format {
            Format::Sqlite => store.close()?,
            Format::Parquet => parquet::write(&store, to)?,
            Format::Csv => csv::write(&store, to)?,
            Format::Vcd => vcd::write(&store, to)?,
            Format::Perfetto => perfetto::write(&store, to)?,
        }
        std::fs::rename(to, &self.output).map_err(cannot_write(&self.output))
    }

    fn clear(&self) -> io::Result<()> {
        let removed = match self.partial.is_dir() {
            true => std::fs::remove_dir_all(&self.partial),
            false => std::fs::remove_file(&self.partial),
        };
        removed.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // What cannot be removed now is in nobody's way: the next export to this place does.
        let _ = self.clear();
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
        source: io::Error,
    },
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Error {
        Error::Store(source.into())
    }
}

/// The error of writing to `path`.
fn cannot_write(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Output {
        path: path.to_owned(),
        source,
    }
}

fn create(path: &Path) -> Result<BufWriter<File>, Error> {
    File::create_new(path)
        .map(BufWriter::new)
        .map_err(cannot_write(path))
}
