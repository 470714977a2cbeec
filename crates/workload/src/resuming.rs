//! The resume experiment: 16 apps run, their files' pages are evicted, and one after another gets the
//! focus again. The figure is the time until an app has read all that it needs.
//!
//! The app goes on at once and reads by demand; the loader is told of the focus a little later. A
//! resumed app may need fewer pages than its start did. So each is resumed twice: it reads all pages of
//! its profile, then a random half of its reads. Both are in another order than the start's.

use crate::Error;
use crate::app::{APPS, Access};
use crate::background::Background;
use crate::code::Code;
use crate::cold::drop_caches;
use crate::loading::{LOADING, Loading, read_all};
use crate::meter::Meter;
use crate::stage::{Foreground, RunContext};
use crate::{Measurement, RunRequest};
use record::policy::Loader;
use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};
use sys::device::Pages;
use sys::random::Random;

/// Time from a change of the focus until the loader begins: the CPU time that `frontrow fg follow` takes
/// for one under X11, which is the slowest (docs/use/frontrowd.md).
const TOLD_AFTER: Duration = Duration::from_micros(2400);

pub(crate) const RESUMING: Code = Code::app(
    |request, context| Box::new(Resuming::new(request, context)),
    LOADING.footprint,
);

/// Parts of its profile that an app needs when it is resumed.
#[derive(Clone, Copy)]
enum Needs {
    All,
    Half,
}

struct Resuming {
    apps: Loading,
    loader: Loader,
    random: Random,
    all_time: Duration,
    half_time: Duration,
}

impl Resuming {
    fn new(request: &RunRequest, context: &RunContext) -> Self {
        Resuming {
            apps: Loading::new(context, request.loader),
            loader: request.loader,
            random: context.random("resuming"),
            all_time: Duration::ZERO,
            half_time: Duration::ZERO,
        }
    }

    /// The app's reads in a new order.
    fn reads(&mut self, number: usize, needs: Needs) -> Vec<Access> {
        let mut reads = self.apps.app(number).app.accesses.clone();
        self.random.shuffle(&mut reads);
        match needs {
            Needs::All => {}
            Needs::Half => reads.truncate(reads.len().div_ceil(2)),
        }
        reads
    }

    /// Time until the app has read all, while the loader works beside it.
    fn resume(
        &self,
        number: usize,
        files: &[File],
        reads: &[Access],
        buffer: &mut [u8],
    ) -> Result<Duration, Error> {
        let app = self.apps.app(number);
        let begun = Instant::now();
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                read_all(app, files, reads, buffer)?;
                Ok(begun.elapsed())
            });
            if self.loader != Loader::Demand {
                thread::sleep(TOLD_AFTER);
                app.resume(self.loader, self.apps.latency())?;
            }
            reader
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Foreground for Resuming {
    fn prepare(&mut self) -> Result<(), Error> {
        self.apps.prepare()
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let mut buffer = Pages::zeroed(1 << 20);
        for number in 0..APPS {
            for needs in [Needs::All, Needs::Half] {
                meter.go_on()?;
                let between = Instant::now();
                let reads = self.reads(number, needs);
                let files = self.apps.app(number).open()?;
                drop_caches()?;
                meter.exclude(between.elapsed());
                let time = self.resume(number, &files, &reads, &mut buffer)?;
                match needs {
                    Needs::All => self.all_time += time,
                    Needs::Half => self.half_time += time,
                }
            }
        }
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        let apps = APPS as u32;
        vec![
            Measurement::duration("load_time_ms", self.all_time / apps),
            Measurement::duration("half_load_time_ms", self.half_time / apps),
        ]
    }
}
