//! A recording of a trial's work, and its tables.

use crate::test_bed::{read, write};
use crate::{Failure, Outcome};
use iopro::capture::{Background, Request, Summary, What};
use iopro::event::LostKind;
use iopro::link;
use iopro::recording::Reader;
use iopro::store::Store;
use std::fs;
use std::path::{Path, PathBuf};

/// Time slice of tasks in the kernel's scheduler, in nanoseconds.
///
/// A tick may end a task's slice inside of one of iopro's programs. A preemptible kernel then skips
/// that program for all tasks until the first runs again (bpf/program.h). A guest spends a
/// nanosecond on each instruction, and so much time in the programs that this would not be rare.
/// Long slices make it rare.
const SLICE: &str = "/sys/kernel/debug/sched/base_slice_ns";
const LONG_SLICE_NS: &str = "100000000";

/// Path of the recording, which is not on the recorded device.
const PATH: &str = "/tmp/trial.iopro";

/// A recording in progress.
pub(crate) struct Recording {
    running: Background,
    /// The kernel's own slice, where it has the setting (6.6 and newer).
    usual_slice_ns: Option<String>,
}

/// A finished recording.
pub(crate) struct Recorded {
    summary: Summary,
    events: u64,
    /// Tables of the recording.
    pub(crate) store: Store,
}

impl Recording {
    /// Starts a recording; everything from here on is in it.
    pub(crate) fn start() -> Outcome<Recording> {
        Recording::start_with(None)
    }

    /// The same on a kernel that shows no types and lets no functions be traced.
    pub(crate) fn start_without_types() -> Outcome<Recording> {
        let path = Path::new("/sys/kernel/btf/vmlinux");
        let btf = fs::read(path).map_err(Failure::io("read", path))?;
        Recording::start_with(Some(btf))
    }

    fn start_with(btf: Option<Vec<u8>>) -> Outcome<Recording> {
        let mut usual_slice_ns = None;
        if Path::new(SLICE).exists() {
            usual_slice_ns = Some(read(SLICE)?);
            write(SLICE, LONG_SLICE_NS)?;
        }
        let request = Request {
            output: PathBuf::from(PATH),
            what: What::System(None),
            btf,
        };
        Ok(Recording {
            running: Background::start(request).map_err(failed)?,
            usual_slice_ns,
        })
    }

    /// Ends the recording and links it.
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
    /// Checks that the rings lost nothing, and the kernel no more than is allowed.
    pub(crate) fn is_whole(&self) -> Outcome<()> {
        self.summary.check_lost(self.events).map_err(failed)
    }

    /// Number of events that a preemptible kernel left out ([`LostKind::Missed`]).
    pub(crate) fn missed_events(&self) -> u64 {
        let lost = self.summary.lost.iter();
        let missed = lost.filter(|it| it.kind == LostKind::Missed);
        missed.map(|it| it.count).sum()
    }
}

pub(crate) fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("iopro: {error}"))
}
