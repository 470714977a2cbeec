//! Reading a recording for `report`, `export` and `defrag`: linking it, with progress.

use crate::exit::{Exit, Failure};
use crate::print::plain;
use indicatif::{ProgressBar, ProgressStyle};
use iopro::link::{self, Foreground};
use iopro::recording::{self, Reader};
use iopro::report;
use iopro::store::{self, Store};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use sys::PathError;

/// Size of the buffer that a recording is read through.
const BUFFER_BYTES: usize = 256 << 10;

/// Arguments of `report` and `export`.
#[derive(clap::Args)]
pub struct Source {
    /// Recording to read
    #[arg(value_name = "FILE", default_value = "frontrow.iopro")]
    pub recording: PathBuf,
    /// Report the waits of a process (by number or name) or a cgroup (by path) [default: the
    /// recorded one]
    #[arg(long, value_name = "PID|NAME|CGROUP")]
    pub fg: Option<String>,
}

impl Source {
    /// Opens the recording, of which nothing is read yet.
    pub fn open(&self) -> Result<File, Failure> {
        open(&self.recording)
    }

    /// Links the open recording into `store`.
    pub fn link(&self, file: File, store: Store) -> Result<Store, Failure> {
        let foreground = self.fg.as_deref().map(Foreground::named);
        let store = link((file, &self.recording), foreground, store)?;
        if let Some(named) = &self.fg {
            self.check(named, &store)?;
        }
        Ok(store)
    }

    /// Refuses a foreground that the recording does not have: its report would be of nobody.
    fn check(&self, named: &str, store: &Store) -> Result<(), Failure> {
        if report::has_foreground(store).map_err(|error| failed(&error))? {
            return Ok(());
        }
        let known = report::processes(store).map_err(|error| failed(&error))?;
        let known: Vec<String> = known.iter().map(|it| plain(it)).collect();
        Err(Failure::new(
            Exit::Usage,
            format_args!(
                "{} has no process or cgroup {}: name another with --fg, such as {}",
                self.recording.display(),
                plain(named),
                known.join(", ")
            ),
        ))
    }
}

/// Opens a recording, of which nothing is read yet.
pub fn open(recording: &Path) -> Result<File, Failure> {
    let opened = File::open(recording).map_err(PathError::of("access", recording));
    opened.map_err(|error| unreadable(error.into()))
}

/// Links the bytes of a recording, which errors call `path`, into `store`.
pub fn link_bytes(bytes: impl Read, path: &Path, store: Store) -> Result<Store, Failure> {
    let buffered = BufReader::with_capacity(BUFFER_BYTES, bytes);
    let reader = Reader::new(buffered, path).map_err(unreadable)?;
    let linked = link::link(reader, path, None, store, &mut |_| {});
    linked.map_err(|error| failed(&error))
}

/// Links an open recording, whose path this is, into `store`, for the recorded process unless another is
/// named.
pub fn link(
    (file, path): (File, &Path),
    foreground: Option<Foreground>,
    store: Store,
) -> Result<Store, Failure> {
    let bar = progress(&file);
    let reader = Reader::of(file, path).map_err(unreadable)?;
    let linked = link::link(reader, path, foreground, store, &mut |bytes| {
        bar.set_position(bytes);
    });
    bar.finish_and_clear();
    linked.map_err(|error| failed(&error))
}

fn progress(recording: &File) -> ProgressBar {
    let bytes = recording.metadata().map_or(0, |data| data.len());
    let bar = ProgressBar::new(bytes);
    bar.set_style(
        ProgressStyle::with_template("linking {bar:30} {bytes} of {total_bytes}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

/// Error of opening the recording.
pub fn unreadable(error: recording::Error) -> Failure {
    let exit = match &error {
        recording::Error::File(PathError { source, .. }) => source.into(),
        _ => Exit::Usage,
    };
    Failure::new(exit, error)
}

/// Error of writing or reading the tables.
pub fn failed(error: &store::Error) -> Failure {
    let exit = match error.is_disk_full() {
        true => Exit::DiskFull,
        false => Exit::Internal,
    };
    Failure::new(exit, error)
}
