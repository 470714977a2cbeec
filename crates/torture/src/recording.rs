//! A recording of what a trial does, and the tables that it becomes.

use crate::stand::{read, write};
use crate::{Failure, Outcome};
use iopro::capture::{Background, Request, Summary, What};
use iopro::link;
use iopro::recording::Reader;
use iopro::store::Store;
use std::fs;
use std::path::{Path, PathBuf};

/// How long a task may run before another has its turn.
///
/// On a preemptible kernel a tick that ends a task's turn in one of iopro's programs has the
/// kernel skip that program for all others until the task runs again (bpf/program.h). A
/// guest that takes a nanosecond for an instruction spends so much time in them that it is
/// more than the rare case it is elsewhere; with long turns it is rare here.
const SLICE: &str = "/sys/kernel/debug/sched/base_slice_ns";
const LONG_SLICE_NS: &str = "100000000";

/// Not on the device that is recorded.
const PATH: &str = "/tmp/trial.iopro";

/// Everything that happens while it is there.
pub(crate) struct Recording {
    running: Background,
    /// Where the kernel has the setting (6.6 and newer).
    usual_slice_ns: Option<String>,
}

/// What a recording came to.
pub(crate) struct Recorded {
    summary: Summary,
    events: u64,
    /// Its tables.
    pub(crate) store: Store,
}

impl Recording {
    /// Begins; whatever is done from here on is in it.
    pub(crate) fn start() -> Outcome<Recording> {
        let mut usual_slice_ns = None;
        if Path::new(SLICE).exists() {
            usual_slice_ns = Some(read(SLICE)?);
            write(SLICE, LONG_SLICE_NS)?;
        }
        let request = Request {
            output: PathBuf::from(PATH),
            what: What::System(None),
        };
        Ok(Recording {
            running: Background::start(request).map_err(failed)?,
            usual_slice_ns,
        })
    }

    /// Ends and links it.
    pub(crate) fn finish(self) -> Outcome<Recorded> {
        let summary = self.running.finish().map_err(failed)?;
        if let Some(slice_ns) = self.usual_slice_ns {
            write(SLICE, slice_ns.trim())?;
        }
        let path = PathBuf::from(PATH);
        let reader = Reader::open(&path).map_err(failed)?;
        let events = reader.events().count() as u64;
        let reader = Reader::open(&path).map_err(failed)?;
        let store = Store::temporary().map_err(failed)?;
        let store = link::link(reader, &path, None, store, &mut |_| {}).map_err(failed)?;
        fs::remove_file(&path).map_err(Failure::io("remove", &path))?;
        Ok(Recorded {
            summary,
            events,
            store,
        })
    }
}

impl Recorded {
    /// The rings lost nothing, and the kernel no more than may be.
    pub(crate) fn is_whole(&self) -> Outcome<()> {
        self.summary.check_lost(self.events).map_err(failed)
    }
}

pub(crate) fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("iopro: {error}"))
}
