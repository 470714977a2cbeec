//! What an app gets of the storage by the size of its requests, alone or beside loads, as StoreBench
//! measured it on phones ("002", 2.3.1 and 2.4.2).
//!
//! `storage-seq-read` … `storage-rand-write` read or write a file directly, one request at a time,
//! and give the rate and the latencies of each size: `4k_read_mb_s`, `4k_read_mean_ms` ….
//! `storage-pieces` reads in sequence a file that is in pieces.

use crate::background::Background;
use crate::code::Code;
use crate::direct::{Direction, Job, Order, Target, perform_timed};
use crate::footprint::Footprint;
use crate::layout::settle;
use crate::meter::Meter;
use crate::pieces::{in_pieces, piece_bytes};
use crate::sizes::Sizes;
use crate::stage::{Foreground, RunContext};
use crate::{Error, Measurement};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::device::PAGE_BYTES;
use sys::random::Random;

/// Sizes of requests in KiB, and the operations with them.
const SIZES: [(u64, &str, &str); 5] = [
    (4, "4k_read", "4k_write"),
    (16, "16k_read", "16k_write"),
    (64, "64k_read", "64k_write"),
    (256, "256k_read", "256k_write"),
    (1024, "1024k_read", "1024k_write"),
];

/// Requests of a workload.
#[derive(Clone, Copy)]
struct Plan {
    order: Order,
    direction: Direction,
    is_in_pieces: bool,
}

const IN_SEQUENCE: Plan = Plan {
    order: Order::Sequential,
    direction: Direction::Read,
    is_in_pieces: false,
};
const AT_RANDOM: Plan = Plan {
    order: Order::Random,
    ..IN_SEQUENCE
};

pub(crate) const SEQ_READ: Code = Code::app(|_, it| boxed(it, IN_SEQUENCE), footprint);
pub(crate) const RAND_READ: Code = Code::app(|_, it| boxed(it, AT_RANDOM), footprint);
pub(crate) const SEQ_WRITE: Code = Code::app(|_, it| boxed(it, IN_SEQUENCE.writing()), footprint);
pub(crate) const RAND_WRITE: Code = Code::app(|_, it| boxed(it, AT_RANDOM.writing()), footprint);
pub(crate) const PIECES: Code = Code::app(
    |_, it| {
        let plan = Plan {
            is_in_pieces: true,
            ..IN_SEQUENCE
        };
        boxed(it, plan)
    },
    footprint,
);

fn footprint(sizes: &Sizes) -> Footprint {
    let written = SIZES.len() as u64 * sizes.calibration_bytes;
    Footprint::of(sizes.direct_span_bytes, written)
}

fn boxed(context: &RunContext, plan: Plan) -> Box<dyn Foreground> {
    Box::new(Storage {
        path: context.directory.join("storage"),
        plan,
        seed: context.seed,
        sizes: context.sizes.clone(),
        target: None,
        rates: Vec::new(),
    })
}

impl Plan {
    const fn writing(self) -> Plan {
        Plan {
            direction: Direction::Write,
            ..self
        }
    }
}

struct Storage {
    path: PathBuf,
    plan: Plan,
    seed: u64,
    sizes: Sizes,
    target: Option<Target>,
    rates: Vec<Measurement>,
}

impl Storage {
    fn come_apart(&self, target: &Target) -> Result<(), Error> {
        let pages = self.sizes.direct_span_bytes / PAGE_BYTES as u64;
        let pieces = piece_bytes(pages, &mut Random::for_purpose(self.seed, "pieces"));
        in_pieces(target.handle(), &pieces).map_err(|source| match source.raw_os_error() {
            Some(libc::EOPNOTSUPP) => Error::Interface {
                path: self.path.clone(),
                reason: "its file system cannot lay out a file in pieces; choose a directory on ext4 or xfs"
                    .to_owned(),
            },
            _ => Error::io("lay out", &self.path, source),
        })
    }
}

impl Foreground for Storage {
    fn prepare(&mut self) -> Result<(), Error> {
        let target = Target::file(&self.path)?;
        if self.plan.is_in_pieces {
            self.come_apart(&target)?;
        }
        let go = AtomicBool::new(false);
        target.fill(self.sizes.direct_span_bytes, self.seed, &go)?;
        self.target = Some(target);
        settle(self.path.parent().unwrap_or(&self.path))
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let Some(target) = self.target.take() else {
            return Ok(());
        };
        for (size_kib, read, write) in SIZES {
            let operation = match self.plan.direction {
                Direction::Read => read,
                Direction::Write => write,
            };
            let Plan {
                order, direction, ..
            } = self.plan;
            let job = Job::of_size(size_kib, order, direction, &self.sizes);
            let outcome = perform_timed(&target, &job, self.seed, operation, meter)?;
            let metric = format!("{operation}_mb_s");
            let rate = Measurement::new(metric, "MB/s", outcome.rate_mb_s());
            self.rates.push(rate);
        }
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        self.rates.clone()
    }
}
