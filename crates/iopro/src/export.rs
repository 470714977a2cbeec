//! Export of the tables to formats of other tools, one source file a format. SQLite, Parquet and
//! CSV hold the same tables. VCD and Perfetto show the load of the layers over time, Perfetto every
//! I/O as well.

mod csv;
pub mod parquet;
mod perfetto;
mod perfetto_schema;
mod vcd;

use crate::store::{self, Store};
use std::fs::{File, Permissions};
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use sys::output::Workplace;

/// Formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One database with all tables and indices.
    Sqlite,
    /// A directory with one Parquet file per table.
    Parquet,
    /// A directory with one CSV file per table.
    Csv,
    /// Value change dump: one line per layer.
    Vcd,
    /// Perfetto's trace: tracks of layers and processes.
    Perfetto,
}

impl Format {
    /// All formats, in the order of their declaration.
    pub const ALL: [Format; 5] = [
        Format::Sqlite,
        Format::Parquet,
        Format::Csv,
        Format::Vcd,
        Format::Perfetto,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Sqlite => "sqlite",
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::Vcd => "vcd",
            Format::Perfetto => "perfetto",
        }
    }

    /// The format with this name; None if no format has it.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// File name suffix of the export, without a dot.
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

/// An export in progress.
///
/// It is written in a directory beside its output and moved there when it is whole, so an
/// interrupted export leaves no partial output. It names the files of all users, so no other user
/// can read it.
#[derive(Debug)]
pub struct Export {
    format: Format,
    output: PathBuf,
    work: Workplace,
}

/// File name in the directory beside the output.
const NAME: &str = "export";

impl Export {
    /// Begins an export to `output`, which must not exist.
    pub fn begin(format: Format, output: &Path) -> Result<Export, Error> {
        if output.symlink_metadata().is_ok() {
            return Err(Error::Exists {
                path: output.to_owned(),
            });
        }
        Ok(Export {
            format,
            output: output.to_owned(),
            work: Workplace::beside(output).map_err(cannot_write(output))?,
        })
    }

    /// The directory that it is written in.
    pub fn work(&self) -> &Workplace {
        &self.work
    }

    /// The store to link a recording into. For SQLite it is the output itself.
    pub fn store(&self) -> Result<Store, Error> {
        Ok(match self.format {
            Format::Sqlite => {
                let created = Store::create(&self.work.path(NAME));
                created.map_err(|error| self.named(error.into()))?
            }
            _ => Store::temporary()?,
        })
    }

    /// Writes the linked tables and moves the result to the output.
    pub fn finish(self, store: Store) -> Result<(), Error> {
        let to = &self.work.path(NAME);
        let written = match self.format {
            Format::Sqlite => store.close().map_err(Error::from),
            Format::Parquet => parquet::write(&store, to),
            Format::Csv => csv::write(&store, to),
            Format::Vcd => vcd::write(&store, to),
            Format::Perfetto => perfetto::write(&store, to),
        };
        written.map_err(|error| self.named(error))?;
        let mode = if to.is_dir() { 0o700 } else { 0o600 };
        // By its descriptor: a confined process changes no mode by a path.
        File::open(to)
            .and_then(|made| made.set_permissions(Permissions::from_mode(mode)))
            .and_then(|()| self.work.publish(NAME))
            .map_err(cannot_write(&self.output))
    }

    /// Replaces the temporary path in an error by that of the output.
    fn named(&self, error: Error) -> Error {
        let path = self.output.clone();
        match error {
            Error::Store(store::Error::Database { source, .. }) => {
                let path = Some(path);
                store::Error::Database { path, source }.into()
            }
            Error::Output { source, .. } => Error::Output { path, source },
            other => other,
        }
    }
}

/// Reasons why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tables could not be written or read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The output exists already.
    #[error("{path} exists already: remove it, or give another name with --output")]
    Exists {
        /// Path of the output.
        path: PathBuf,
    },
    /// The output could not be written.
    #[error("cannot write {path}: {source}")]
    Output {
        /// Path of the output.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Error {
        Error::Store(source.into())
    }
}

/// Makes an [`Error::Output`] for `path` from the system's error.
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
