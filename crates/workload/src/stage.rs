//! A run of one foreground beside one background: prepare, wait until the background is steady,
//! measure, end the background.

use crate::background::Background;
use crate::load::Load;
use crate::meter::{Meter, go_on};
use crate::sizes::Sizes;
use crate::throttle::Throttle;
use crate::writeback::Counters;
use crate::{Error, Measurement, RunRequest, layout, simflash};
use std::borrow::{Borrow, BorrowMut};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use sys::device::PAGE_BYTES;
use sys::random::Random;

/// Interval at which a condition is polled.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// Time over which a background is checked to be steady.
const WINDOW: Duration = Duration::from_millis(100);

/// Warm-up of a load that is steady from its first steps.
const STEADY_WARM_UP: Duration = Duration::from_millis(500);

/// Parameters of a foreground.
pub(crate) struct RunContext {
    /// Directory for the foreground alone.
    pub(crate) directory: PathBuf,
    pub(crate) seed: u64,
    pub(crate) sizes: Sizes,
}

impl RunContext {
    /// Makes the directory.
    pub(crate) fn create(&self) -> Result<(), Error> {
        std::fs::create_dir(&self.directory)
            .map_err(|source| Error::io("make", &self.directory, source))
    }

    /// A generator of the seed for one purpose.
    pub(crate) fn random(&self, purpose: &str) -> Random {
        Random::for_purpose(self.seed, purpose)
    }
}

/// A workload that runs beside a background.
pub(crate) trait Foreground {
    /// Makes what the measured part needs, unmeasured.
    fn prepare(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Runs the measured part.
    fn measure(
        &mut self,
        meter: &mut Meter,
        background: Option<&mut Background>,
    ) -> Result<(), Error>;

    /// Figures besides the latencies of operations.
    fn figures(&self, _elapsed: Duration) -> Vec<Measurement> {
        Vec::new()
    }
}

/// Runs `foreground` beside `loads` in the context's directory.
pub(crate) fn perform(
    request: &mut RunRequest,
    context: &RunContext,
    loads: &[Load],
    foreground: &mut dyn Foreground,
) -> Result<Vec<Measurement>, Error> {
    layout::create(&context.directory, context.seed)?;
    foreground.prepare()?;
    let mut backgrounds = start(request, context, loads)?;
    sleep_shift(context);
    let throttle = request.tracefs.map(Throttle::start).transpose()?;
    let mut figures = measure(request, &mut backgrounds, foreground)?;
    if let Some(throttle) = throttle {
        figures.push(Measurement::duration("throttled_ms", throttle.finish()?));
    }
    Ok(figures)
}

/// Sleeps for a time that depends on the seed. It shifts the foreground's start against the periods
/// of the background and the kernel.
pub(crate) fn sleep_shift(context: &RunContext) {
    let shift_ms = context.random("shift").below(500);
    std::thread::sleep(Duration::from_millis(shift_ms));
}

/// Runs the measured part and collects its figures.
pub(crate) fn measure(
    request: &mut RunRequest,
    backgrounds: &mut [Background],
    foreground: &mut dyn Foreground,
) -> Result<Vec<Measurement>, Error> {
    let mut meter = Meter::new(request.stop);
    request.observer.before();
    let begun = Instant::now();
    let written_before = written_bytes(backgrounds);
    backgrounds.iter().for_each(Background::forget_stalls);
    let outcome = foreground.measure(&mut meter, backgrounds.first_mut());
    let whole = begun.elapsed();
    let written = written_bytes(backgrounds) - written_before;
    let stall = backgrounds.iter().map(Background::longest_stall).max();
    request.observer.after();
    outcome?;

    let elapsed = whole.saturating_sub(meter.outside_time());
    let mut figures = vec![Measurement::duration("total_ms", elapsed)];
    figures.extend(foreground.figures(elapsed));
    figures.extend(meter.measurements());
    check(backgrounds)?;
    if let Some(stall) = stall {
        let rate = rate_mb_s(written, whole);
        figures.push(Measurement::new("background_mb_s", "MB/s", rate));
        figures.push(Measurement::duration("background_stall_ms", stall));
    }
    Ok(figures)
}

fn written_bytes(backgrounds: &[impl Borrow<Background>]) -> u64 {
    let each = backgrounds.iter().map(Borrow::borrow);
    each.map(Background::written_bytes).sum()
}

fn check(backgrounds: &mut [impl BorrowMut<Background>]) -> Result<(), Error> {
    let mut each = backgrounds.iter_mut().map(BorrowMut::borrow_mut);
    each.try_for_each(Background::check)
}

/// Starts the loads, if any, and waits until they are steady. Everything that was prepared is
/// synced before.
pub(crate) fn start(
    request: &RunRequest,
    context: &RunContext,
    loads: &[Load],
) -> Result<Vec<Background>, Error> {
    let mut prepared = Vec::with_capacity(loads.len());
    for (number, load) in loads.iter().enumerate() {
        prepared.push(load.prepare(request, context, number)?);
    }
    layout::settle(request.dir)?;
    simflash::rest(request.dir, request.stop)?;
    let before = Counters::read()?;
    let mut backgrounds = Vec::with_capacity(loads.len());
    for prepared in prepared {
        backgrounds.push(prepared.start()?);
    }
    let unsteady = loads.iter().zip(&mut backgrounds);
    let unsteady = unsteady.filter(|(load, _)| !load.pattern.is_steady);
    let mut unsteady: Vec<_> = unsteady.map(|(_, background)| background).collect();
    if !unsteady.is_empty() {
        await_writeback(&mut unsteady, &before, &context.sizes, request.stop)?;
        await_throttled(&mut unsteady, &context.sizes, request.stop)?;
    } else if !loads.is_empty() {
        std::thread::sleep(STEADY_WARM_UP);
    }
    Ok(backgrounds)
}

/// Waits until the kernel writes back what the loads have dirtied.
fn await_writeback(
    backgrounds: &mut [&mut Background],
    before: &Counters,
    sizes: &Sizes,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let needed_pages = sizes.warm_up_bytes / PAGE_BYTES as u64;
    let running = wait(sizes.warm_up_limit, stop, || {
        check(backgrounds)?;
        let now = Counters::read()?;
        let written = now.written_pages - before.written_pages;
        Ok(now.writeback_pages > 0 && written >= needed_pages)
    })?;
    match running || sizes.warm_up_limit.is_zero() {
        true => Ok(()),
        false => Err(Error::NoWriteback {
            waited_s: sizes.warm_up_limit.as_secs(),
        }),
    }
}

/// Waits until the kernel throttles the loads, which then dirty pages no faster than the device
/// takes them. That one is throttled says nothing of the others: a load that writes single pages is
/// slow by itself, while another still fills the memory. A device as fast as memory never gets
/// there, so the wait is bounded, and its end is not an error.
fn await_throttled(
    backgrounds: &mut [&mut Background],
    sizes: &Sizes,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let begun = Instant::now();
    let mut steady_windows = 0;
    while steady_windows < 2 && begun.elapsed() < sizes.steady_limit {
        let (counters, taken) = (Counters::read()?, written_bytes(backgrounds));
        std::thread::sleep(WINDOW);
        go_on(stop)?;
        check(backgrounds)?;
        let taken = written_bytes(backgrounds) - taken;
        let written_pages = Counters::read()?.written_pages - counters.written_pages;
        let written = written_pages * PAGE_BYTES as u64;
        let steady = written > 0 && taken <= written + written / 2;
        steady_windows = if steady { steady_windows + 1 } else { 0 };
    }
    Ok(())
}

/// Polls `condition` until it is true; false if `limit` passes first.
pub(crate) fn wait(
    limit: Duration,
    stop: &AtomicBool,
    mut condition: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let begun = Instant::now();
    while !condition()? {
        if begun.elapsed() >= limit {
            return Ok(false);
        }
        go_on(stop)?;
        std::thread::sleep(POLL);
    }
    Ok(true)
}

/// Bytes over time in the unit of the result contract, 10^6 bytes per second.
pub(crate) fn rate_mb_s(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64().max(1e-9)
}
