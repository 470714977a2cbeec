//! The tables in formats of other tools, one file a format. SQLite, Parquet and
//! CSV hold the same tables; VCD and Perfetto show the load of the layers and
//! every I/O over time.

mod csv;
mod parquet;
mod perfetto;
mod perfetto_schema;
mod vcd;

use crate::store::{self, Store};
use output::Workplace;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
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

/// An export under way. It is in a directory beside its output, to which it is moved when it is
/// whole: what ends half-way leaves nothing that looks like a result. It names the files of all
/// users, so nobody else can read it.
#[derive(Debug)]
pub struct Export {
    format: Format,
    output: PathBuf,
    work: Workplace,
}

/// In the workplace.
const NAME: &str = "export";

impl Export {
    /// Begins one to `output`, which must not be there yet.
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

    /// The store to link a recording into: where it can be, the output itself.
    pub fn store(&self) -> Result<Store, Error> {
        Ok(match self.format {
            Format::Sqlite => {
                let created = Store::create(&self.work.path(NAME));
                created.map_err(|error| self.named(error.into()))?
            }
            _ => Store::temporary()?,
        })
    }

    /// Writes what was linked.
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
        fs::set_permissions(to, Permissions::from_mode(mode))
            .and_then(|()| self.work.publish(NAME, &self.output))
            .map_err(cannot_write(&self.output))
    }

    /// With the name of the output, and not of where it is until it is whole.
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
