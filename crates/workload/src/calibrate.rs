//! Throughput of the device by request size, as in the dissertation's figures 18 and 41. It uses
//! direct I/O with one request at a time of 4 KB to 512 KB, and of 1 MB, which the kernel splits in
//! two.
//!
//! `calibrate-seq-read` … `calibrate-rand-write` give `4k_read_mb_s` … `1024k_read_mb_s`. On
//! simflash they also give `4k_busy_dies` …: the mean number of busy dies while any was busy.

use crate::background::Background;
use crate::code::{Code, Start};
use crate::device::{self, Place};
use crate::direct::{Direction, Job, Order, Target, perform};
use crate::meter::Meter;
use crate::simflash;
use crate::sizes::Sizes;
use crate::stage::Foreground;
use crate::{Error, Measurement};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SIZES_KIB: [u64; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Requests of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    order: Order,
    direction: Direction,
}

/// The code of a workload with such requests.
pub(crate) const fn code(order: Order, direction: Direction) -> Code {
    Code::new(Start::Sweep(Plan { order, direction }), device::footprint)
}

/// Bytes that a run of all sizes writes at most, and the disk space that it needs.
pub(crate) fn bytes(sizes: &Sizes) -> u64 {
    SIZES_KIB.len() as u64 * sizes.calibration_bytes
}

/// One of the calibration workloads.
pub(crate) struct Sweep<'a> {
    plan: Plan,
    place: Place,
    seed: u64,
    sizes: Sizes,
    stop: &'a AtomicBool,
    target: Option<Target>,
    figures: Vec<Measurement>,
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(
        plan: Plan,
        place: Place,
        seed: u64,
        sizes: &Sizes,
        stop: &'a AtomicBool,
    ) -> Self {
        Sweep {
            plan,
            place,
            seed,
            sizes: sizes.clone(),
            stop,
            target: None,
            figures: Vec::new(),
        }
    }

    fn one_size(&self, target: &Target, size_kib: u64) -> Result<Vec<Measurement>, Error> {
        let simflash = simflash::Statistics::of(target.handle());
        let Plan { order, direction } = self.plan;
        let job = Job::of_size(size_kib, order, direction, &self.sizes);
        let outcome = perform(target, &job, self.seed, self.stop)?;

        let name = match self.plan.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        let rate = outcome.rate_mb_s();
        let mut figures = vec![Measurement::new(
            format!("{size_kib}k_{name}_mb_s"),
            "MB/s",
            rate,
        )];
        let busy = simflash.and_then(|before| before.busy_dies_since(target.handle()));
        figures.extend(
            busy.map(|dies| Measurement::new(format!("{size_kib}k_busy_dies"), "dies", dies)),
        );
        Ok(figures)
    }
}

impl Foreground for Sweep<'_> {
    fn prepare(&mut self) -> Result<(), Error> {
        let span_bytes = self.sizes.direct_span_bytes;
        self.target = Some(self.place.filled(span_bytes, self.seed, self.stop)?);
        Ok(())
    }

    fn measure(&mut self, _: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let Some(target) = self.target.take() else {
            return Ok(());
        };
        for size_kib in SIZES_KIB {
            let figures = self.one_size(&target, size_kib)?;
            self.figures.extend(figures);
            target.settle()?;
        }
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        self.figures.clone()
    }
}
