//! Workloads on the bare device: unloaded throughput as measured by fio, and the CPU cost of a
//! request.
//!
//! `seq-read-1` … `rand-write-32` give `read_mb_s` or `write_mb_s`, with sequential 128 KB requests
//! or random 4 KB requests, 1 or 32 at a time.
//!
//! `overhead-read-1` … `overhead-write-32` give `instructions_per_io`. Under the lab's clock an
//! instruction takes one nanosecond. With a device that answers at once, the time of a request is
//! its number of instructions.

use crate::background::Background;
use crate::calibrate;
use crate::code::{Code, Start};
use crate::direct::{Direction, Job, Order, Outcome, Target, perform};
use crate::footprint::Footprint;
use crate::meter::Meter;
use crate::sizes::Sizes;
use crate::stage::Foreground;
use crate::{Error, Measurement, RunRequest};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Kinds of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Throughput,
    Overhead,
}

/// Requests of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    purpose: Purpose,
    order: Order,
    direction: Direction,
    depth: usize,
}

/// Sequential 128 KB requests.
pub(crate) const fn sequential(direction: Direction, depth: usize) -> Code {
    code(Purpose::Throughput, Order::Sequential, direction, depth)
}

/// Random 4 KB requests.
pub(crate) const fn random(direction: Direction, depth: usize) -> Code {
    code(Purpose::Throughput, Order::Random, direction, depth)
}

/// Random 4 KB requests, whose instructions count.
pub(crate) const fn overhead(direction: Direction, depth: usize) -> Code {
    code(Purpose::Overhead, Order::Random, direction, depth)
}

const fn code(purpose: Purpose, order: Order, direction: Direction, depth: usize) -> Code {
    let plan = Plan {
        purpose,
        order,
        direction,
        depth,
    };
    Code::new(Start::Requests(plan), footprint)
}

pub(crate) fn footprint(sizes: &Sizes) -> Footprint {
    let requests = sizes.sequential_requests * (128 << 10);
    let written = requests.max(calibrate::bytes(sizes));
    Footprint::of(sizes.direct_span_bytes, written)
}

impl Plan {
    fn job(self, sizes: &Sizes) -> Job {
        let (request_bytes, requests) = match (self.purpose, self.order) {
            (Purpose::Overhead, _) => (4 << 10, sizes.overhead_requests),
            (Purpose::Throughput, Order::Random) => (4 << 10, sizes.random_requests),
            (Purpose::Throughput, Order::Sequential) => (128 << 10, sizes.sequential_requests),
        };
        Job {
            direction: self.direction,
            order: self.order,
            request_bytes,
            depth: self.depth,
            requests,
            span_bytes: sizes.direct_span_bytes,
        }
    }
}

/// Target of the requests.
pub(crate) enum Place {
    /// A whole block device, which is overwritten from its begin.
    Device(PathBuf),
    /// A file that is made for the run.
    File(PathBuf),
}

impl Place {
    /// The run's device, or a file in its directory.
    pub(crate) fn of(request: &RunRequest) -> Self {
        match request.device {
            Some(device) => Place::Device(device.to_owned()),
            None => Place::File(request.dir.join("direct")),
        }
    }

    /// Opens it and fills its first `bytes`.
    pub(crate) fn filled(&self, bytes: u64, seed: u64, stop: &AtomicBool) -> Result<Target, Error> {
        let target = match self {
            Place::Device(path) => Target::device(path),
            Place::File(path) => Target::file(path),
        }?;
        target.fill(bytes, seed, stop)?;
        Ok(target)
    }
}

/// One of the workloads on the bare device.
pub(crate) struct Requests<'a> {
    plan: Plan,
    job: Job,
    place: Place,
    seed: u64,
    stop: &'a AtomicBool,
    target: Option<Target>,
    outcome: Option<Outcome>,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(
        plan: Plan,
        place: Place,
        seed: u64,
        sizes: &Sizes,
        stop: &'a AtomicBool,
    ) -> Self {
        Requests {
            plan,
            job: plan.job(sizes),
            place,
            seed,
            stop,
            target: None,
            outcome: None,
        }
    }
}

impl Foreground for Requests<'_> {
    fn prepare(&mut self) -> Result<(), Error> {
        let span_bytes = self.job.span_bytes;
        self.target = Some(self.place.filled(span_bytes, self.seed, self.stop)?);
        Ok(())
    }

    fn measure(&mut self, _: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        if let Some(target) = &self.target {
            self.outcome = Some(perform(target, &self.job, self.seed, self.stop)?);
        }
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        let figure = |outcome: Outcome| match (self.plan.purpose, self.plan.direction) {
            (Purpose::Overhead, _) => {
                let each = outcome.elapsed.as_nanos() as f64 / self.job.requests as f64;
                Measurement::new("instructions_per_io", "instructions", each)
            }
            (Purpose::Throughput, Direction::Read) => {
                Measurement::new("read_mb_s", "MB/s", outcome.rate_mb_s())
            }
            (Purpose::Throughput, Direction::Write) => {
                Measurement::new("write_mb_s", "MB/s", outcome.rate_mb_s())
            }
        };
        self.outcome.map(figure).into_iter().collect()
    }
}
