//! Code of each line of the tables [`record::workloads`] and [`record::loads`].

use crate::background::Pattern;
use crate::calibrate;
use crate::device;
use crate::direct::{Direction, Order};
use crate::footprint::Footprint;
use crate::package::Package;
use crate::price::{self, Price};
use crate::programs::{self, App, Program};
use crate::sizes::Sizes;
use crate::stage::{Foreground, RunContext};
use crate::{RunRequest, aged, camera, front, install, launch, load, loading, micro};
use crate::{phone, pieces, resuming, split_view, sqlite, storage, transactions, unpack};
use record::Workload;
use record::load::Process;

/// How a workload starts, and the disk space that it uses.
pub(crate) struct Code {
    pub(crate) start: Start,
    /// Use of the disk by the foreground alone.
    pub(crate) footprint: fn(&Sizes) -> Footprint,
    /// Size of a load's sequential file beside the workload.
    pub(crate) writer_bytes: fn(&Sizes) -> u64,
    /// Whether its figures include the time that a commit of the journal may take.
    pub(crate) allows_commit: bool,
    /// Whether a recording tells in which layer its calls spend their time.
    pub(crate) tells_layers: bool,
}

/// Kinds of workloads.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// A foreground in its own directory, beside any load.
    App(fn(&RunRequest, &RunContext) -> Box<dyn Foreground>),
    /// The same for a program of Debian's.
    Program(App),
    /// Requests to the bare device.
    Requests(device::Plan),
    /// Requests of all sizes to the bare device.
    Sweep(calibrate::Plan),
    /// The cost of a foreground for one load.
    Price(Price),
    /// A trace, which only the lab plays.
    Trace,
}

impl Code {
    const TRACE: Code = Code::new(Start::Trace, |_| Footprint::of(0, 0));

    pub(crate) const fn new(start: Start, footprint: fn(&Sizes) -> Footprint) -> Self {
        Code {
            start,
            footprint,
            writer_bytes: |sizes| sizes.writer_bytes,
            allows_commit: false,
            tells_layers: false,
        }
    }

    /// A foreground in its own directory.
    pub(crate) const fn app(
        start: fn(&RunRequest, &RunContext) -> Box<dyn Foreground>,
        footprint: fn(&Sizes) -> Footprint,
    ) -> Self {
        Code::new(Start::App(start), footprint)
    }

    /// The same code, whose fsync is compared with what its commit takes.
    pub(crate) const fn allowing_commit(mut self) -> Self {
        self.allows_commit = true;
        self
    }

    /// The same code, recorded as a whole under the load `recorded`.
    pub(crate) const fn telling_layers(mut self) -> Self {
        self.tells_layers = true;
        self
    }

    /// The same code beside a sequential file of this size.
    pub(crate) const fn beside(mut self, writer_bytes: fn(&Sizes) -> u64) -> Self {
        self.writer_bytes = writer_bytes;
        self
    }

    /// The same code beside the file of the paper's scenarios and benchmarks: 4 GB and not 8 GB.
    pub(crate) const fn scenario(self) -> Self {
        self.beside(|sizes| sizes.scenario_writer_bytes)
    }

    /// The code of a workload.
    pub(crate) fn of(workload: &Workload) -> &'static Code {
        let found = CODE.iter().find(|(name, _)| *name == workload.name);
        found.map_or(&Code::TRACE, |(_, code)| code)
    }
}

/// What a background process does.
pub(crate) fn pattern(process: Process) -> &'static Pattern {
    let found = PATTERNS.iter().find(|(name, _)| *name == process.kind.name);
    found.map_or(&load::WRITER, |(_, pattern)| pattern)
}

macro_rules! codes {
    ($($name:literal: $code:expr, $workload:expr;)*) => {
        static CODE: &[(&str, Code)] = &[$(($name, $code)),*];
    };
}

macro_rules! patterns {
    ($($name:literal: $pattern:expr, $title:literal, $words:literal;)*) => {
        static PATTERNS: &[(&str, Pattern)] = &[$(($name, $pattern)),*];
    };
}

record::workloads!(codes);
record::loads!(patterns);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_has_its_own_code() {
        let names = record::workload::WORKLOADS.iter().map(|it| it.name);
        assert!(names.eq(CODE.iter().map(|(name, _)| *name)));
        let names = record::load::KINDS.iter().map(|it| it.name);
        assert!(names.eq(PATTERNS.iter().map(|(name, _)| *name)));
    }
}
