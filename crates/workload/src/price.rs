//! Cost of a foreground for the background.
//!
//! `completion` is the time in which the load writes its file once and makes it durable. M1 runs
//! beside it for a tenth of that time. `share` is the rate at which the load's data reach the
//! device while M1 runs for some seconds, over its rate alone.
//!
//! `third` and `undisturbed` are for FastTrack: the time of the load's work in the background of an
//! app. With `third` the app opens a cold album so often that this would take a third of the load's
//! time alone. With `undisturbed` it does nothing.
//!
//! An opening begins when the load has done its part of the work, or when the previous one has
//! ended. Both thus do the same work under each policy, and a faster foreground does not do more.
//!
//! Rates count pages that were written back (`nr_written`) and not those in the page cache: a load
//! without service still fills the cache for a while.

use crate::background::Background;
use crate::code::{Code, Start};
use crate::front::Front;
use crate::front::gallery::{GALLERY, Gallery, gallery};
use crate::load::Load;
use crate::meter::{Meter, go_on};
use crate::micro::{self, Recreate};
use crate::stage::{self, Foreground, POLL, RunContext, rate_mb_s, wait};
use crate::writeback::Counters;
use crate::{Error, Measurement, RunRequest, layout};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use sys::device::PAGE_BYTES;

/// One part in this many of the file is on the device when M1 begins. The time until then gives the
/// whole time.
const BEGIN_AT: u64 = 5;

/// Longer than any device needs for the file.
const FILE_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Kinds of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Price {
    Completion,
    Share,
    Third,
    Undisturbed,
}

pub(crate) const COMPLETION: Code = Code::new(Start::Price(Price::Completion), micro::M1.footprint)
    .beside(|it| it.completion_bytes);
pub(crate) const SHARE: Code = Code::new(Start::Price(Price::Share), micro::M1.footprint);
pub(crate) const THIRD: Code = Code::new(Start::Price(Price::Third), GALLERY.footprint);
pub(crate) const UNDISTURBED: Code = Code::new(Start::Price(Price::Undisturbed), GALLERY.footprint);

impl Price {
    /// Whether the cost can be measured for this load.
    pub(crate) fn is_for(self, load: Load) -> bool {
        self == Price::Share || load.pattern.has_an_end
    }
}

/// Measures `price` of the only one of `loads`.
pub(crate) fn perform(
    request: &mut RunRequest,
    context: &RunContext,
    loads: &[Load],
    price: Price,
) -> Result<Vec<Measurement>, Error> {
    let [load] = *loads else {
        return Ok(Vec::new());
    };
    context.create()?;
    layout::create(&context.directory, context.seed)?;
    let busy = Recreate::m1(context);
    match price {
        Price::Completion => completion(request, context, load, &busy),
        Price::Share => share(request, context, load, &busy),
        Price::Third => beside_openings(request, context, load, context.sizes.openings),
        Price::Undisturbed => beside_openings(request, context, load, 0),
    }
}

fn beside_openings(
    request: &mut RunRequest,
    context: &RunContext,
    load: Load,
    openings: u64,
) -> Result<Vec<Measurement>, Error> {
    let mut album = gallery(context);
    album.prepare()?;
    let prepared = load.prepare(request, context, 0)?;
    let work_bytes = load.file_bytes(&context.sizes)?;
    layout::settle(request.dir)?;
    stage::sleep_shift(context);

    let mut meter = Meter::new(request.stop);
    request.observer.before();
    let mut background = prepared.start_once()?;
    let outcome = open_by_progress(
        &mut album,
        &mut background,
        &mut meter,
        (openings, work_bytes),
    )
    .and_then(|opening| Ok((opening, await_completion(&mut background, request.stop)?)));
    request.observer.after();
    let (opening, completion) = outcome?;

    let mut figures = vec![
        Measurement::duration("background_completion_ms", completion),
        Measurement::duration("background_stall_ms", background.longest_stall()),
        Measurement::new(
            "opening_share",
            "1",
            opening.as_secs_f64() / completion.as_secs_f64(),
        ),
    ];
    figures.extend(meter.measurements());
    Ok(figures)
}

/// Opens the album a number of times, each time when the background has done that part of its work.
/// Returns the time of the openings.
fn open_by_progress(
    album: &mut Front<Gallery>,
    background: &mut Background,
    meter: &mut Meter,
    (openings, work_bytes): (u64, u64),
) -> Result<Duration, Error> {
    let mut opening = Duration::ZERO;
    for number in 1..=openings {
        let due_bytes = work_bytes / (openings + 1) * number;
        album.forget()?;
        wait(FILE_LIMIT, meter.stop(), || {
            background.check()?;
            Ok(background.written_bytes() >= due_bytes || background.completion().is_some())
        })?;
        let begun = Instant::now();
        album.open(meter)?;
        opening += begun.elapsed();
    }
    Ok(opening)
}

fn completion(
    request: &mut RunRequest,
    context: &RunContext,
    load: Load,
    busy: &Recreate,
) -> Result<Vec<Measurement>, Error> {
    let sizes = &context.sizes;
    let prepared = load.prepare(request, context, 0)?;
    let needed_pages = load.file_bytes(sizes)? / PAGE_BYTES as u64 / BEGIN_AT;
    layout::settle(request.dir)?;
    stage::sleep_shift(context);

    let mut meter = Meter::new(request.stop);
    request.observer.before();
    let (begun, before) = (Instant::now(), Counters::read()?);
    let mut background = prepared.start_once()?;
    let outcome = wait(FILE_LIMIT, request.stop, || {
        background.check()?;
        let written_pages = Counters::read()?.written_pages - before.written_pages;
        Ok(written_pages >= needed_pages || background.completion().is_some())
    })
    .and_then(|_| keep_busy(busy, &mut meter, begun.elapsed() * BEGIN_AT as u32 / 10))
    .and_then(|()| await_completion(&mut background, request.stop));
    request.observer.after();

    let mut figures = vec![Measurement::duration("background_completion_ms", outcome?)];
    figures.extend(meter.measurements());
    Ok(figures)
}

fn await_completion(background: &mut Background, stop: &AtomicBool) -> Result<Duration, Error> {
    loop {
        if let Some(time) = background.completion() {
            return Ok(time);
        }
        background.check()?;
        go_on(stop)?;
        std::thread::sleep(POLL);
    }
}

fn share(
    request: &mut RunRequest,
    context: &RunContext,
    load: Load,
    busy: &Recreate,
) -> Result<Vec<Measurement>, Error> {
    let Some(mut background) = stage::start(request, context, &[load])?.pop() else {
        return Ok(Vec::new());
    };
    stage::sleep_shift(context);
    let before_alone = Counters::read()?;
    let begun_alone = Instant::now();
    std::thread::sleep(context.sizes.alone);
    go_on(request.stop)?;
    let alone_pages = Counters::read()?.written_pages - before_alone.written_pages;
    let alone_mb_s = rate_mb_s(alone_pages * PAGE_BYTES as u64, begun_alone.elapsed());

    let mut meter = Meter::new(request.stop);
    request.observer.before();
    let before = Counters::read()?;
    let begun = Instant::now();
    let outcome = keep_busy(busy, &mut meter, context.sizes.busy);
    let elapsed = begun.elapsed();
    request.observer.after();
    outcome?;
    background.check()?;
    // Each iteration of M1 writes back one page of its own.
    let all_pages = Counters::read()?.written_pages - before.written_pages;
    let beside_pages = all_pages.saturating_sub(meter.count("fsync"));
    let beside_mb_s = rate_mb_s(beside_pages * PAGE_BYTES as u64, elapsed);

    let mut figures = vec![
        Measurement::new("background_share", "1", beside_mb_s / alone_mb_s.max(1e-9)),
        Measurement::new("background_mb_s", "MB/s", beside_mb_s),
        Measurement::new("background_alone_mb_s", "MB/s", alone_mb_s),
    ];
    figures.extend(meter.measurements());
    Ok(figures)
}

/// Runs M1 repeatedly for `time`.
fn keep_busy(busy: &Recreate, meter: &mut Meter, time: Duration) -> Result<(), Error> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        busy.once(meter)?;
    }
    Ok(())
}
