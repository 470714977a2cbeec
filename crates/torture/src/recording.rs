//! A recording of what a trial does, and the tables that it becomes.

use crate::{Failure, Outcome};
use iopro::capture::{Background, Request, Summary, What};
use iopro::link;
use iopro::recording::Reader;
use iopro::store::Store;
use std::fs;
use std::path::PathBuf;

/// Not on the device that is recorded.
const PATH: &str = "/tmp/trial.iopro";

/// Everything that happens while it is there.
pub(crate) struct Recording(Background);

/// What a recording came to.
pub(crate) struct Recorded {
    /// What was lost, and how long it is.
    pub(crate) summary: Summary,
    /// Its tables.
    pub(crate) store: Store,
}

impl Recording {
    /// Begins; whatever is done from here on is in it.
    pub(crate) fn start() -> Outcome<Recording> {
        let request = Request {
            output: PathBuf::from(PATH),
            what: What::System(None),
        };
        Background::start(request).map(Recording).map_err(failed)
    }

    /// Ends and links it.
    pub(crate) fn finish(self) -> Outcome<Recorded> {
        let summary = self.0.finish().map_err(failed)?;
        let path = PathBuf::from(PATH);
        let reader = Reader::open(&path).map_err(failed)?;
        let store = Store::temporary().map_err(failed)?;
        let store = link::link(reader, &path, None, store, &mut |_| {}).map_err(failed)?;
        fs::remove_file(&path).map_err(Failure::io("remove", &path))?;
        Ok(Recorded { summary, store })
    }
}

pub(crate) fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("iopro: {error}"))
}
