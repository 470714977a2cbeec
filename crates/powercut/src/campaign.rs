//! Many power cuts of one stream, each with a recovery and a check.

use crate::Error;
use crate::files::{Files, Mark, Phase, unchanged};
use crate::filesystem::Image;
use crate::promise::{Moment, Promise};
use crate::stream::{Stream, What};
use crate::timeline::{Player, Step, Timeline};
use serde::Serialize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use sys::random::Random;

/// Choice of the cuts.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Number of cuts at random points of the whole stream. Each program and erase of the
    /// defragmentation is cut as well.
    pub random_points: u64,
    /// Seed of the random points, and of how operations in flight are torn at them.
    pub seed: u64,
    /// Number of threads.
    pub jobs: usize,
}

/// Results of all cuts.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Number of commands in the stream.
    pub commands: u64,
    /// Number of programs and erases in the stream.
    pub operations: u64,
    /// Number of programs and erases during the defragmentation, each of which was cut.
    pub defragmentation_operations: u64,
    /// Number of pages that the device remapped instead of programming them.
    pub elided_pages: u64,
    /// Number of cuts at random points.
    pub random_points: u64,
    /// Number of files that were read after cuts, over all cuts.
    pub files_read: u64,
    /// Longest recovery, in nanoseconds of the device's time.
    pub recovery_ns_max: u64,
    /// Most rows of flash that a recovery read.
    pub recovery_row_reads_max: u64,
}

/// A point at which the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    step: Step,
    /// Which of the operations that end in the step is cut, from 1; 0 cuts after the step.
    operation: u64,
    seed: u64,
}

/// Range of steps in which a set of files does not change.
struct Period {
    steps: Range<Step>,
    phase: Phase,
    files: Files,
}

/// Properties of a stream that are computed before the first cut.
struct Known<'a> {
    stream: &'a Stream,
    timeline: Timeline,
    promise: Promise,
    periods: Vec<Period>,
}

/// Cuts the power of the device that recorded `stream` as `request` says. `cut` is called with the
/// number of cuts made and their total.
///
/// # Errors
/// [`Error::Cut`] for the first cut with a loss.
pub fn cut(
    stream: &Stream,
    request: Request,
    cut: &(dyn Fn(u64, u64) + Sync),
    stop: &AtomicBool,
) -> Result<Outcome, Error> {
    let timeline = Timeline::of(stream)?;
    let known = Known {
        promise: Promise::of(stream, &timeline),
        periods: periods(stream, &timeline)?,
        timeline,
        stream,
    };
    let mut points = every_operation(&known);
    let defragmentation_operations = points.len() as u64;
    points.extend(random(&known, request));
    points.sort_unstable();
    let tally = Tally::default();
    let total = points.len() as u64;
    let share = points.len().div_ceil(request.jobs.max(1)).max(1);
    thread::scope(|scope| {
        let works: Vec<_> = points
            .chunks(share)
            .map(|points| {
                let work = || {
                    let ended = known.cut_at(points, &tally, &|done| cut(done, total), stop);
                    // One failure ends all threads.
                    tally.over.fetch_or(ended.is_err(), Ordering::Relaxed);
                    ended
                };
                scope.spawn(work)
            })
            .collect();
        let ended: Vec<_> = works.into_iter().map(|it| it.join()).collect();
        ended
            .into_iter()
            .try_for_each(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let commands = stream.records.iter();
    let commands = commands.filter(|it| !matches!(it.what, What::Mark(_)));
    Ok(Outcome {
        commands: commands.count() as u64,
        operations: known.timeline.operations_before(known.timeline.steps),
        defragmentation_operations,
        elided_pages: stream.counters[10],
        random_points: request.random_points,
        files_read: tally.files.into_inner(),
        recovery_ns_max: tally.recovery_ns.into_inner(),
        recovery_row_reads_max: tally.row_reads.into_inner(),
    })
}

#[derive(Default)]
struct Tally {
    cuts: AtomicU64,
    files: AtomicU64,
    recovery_ns: AtomicU64,
    row_reads: AtomicU64,
    over: AtomicBool,
}

impl Point {
    /// What the device was sent and had acknowledged by then: a step whose operation is cut does not end.
    fn moment(self) -> Moment {
        Moment {
            sent: self.step,
            acknowledged: self.step + u32::from(self.operation == 0),
        }
    }
}

impl Known<'_> {
    /// Makes the cuts at `points`, which must be in ascending order.
    fn cut_at(
        &self,
        points: &[Point],
        tally: &Tally,
        done: &dyn Fn(u64),
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let mut player = Player::new(self.stream)?;
        let mut image = Image::new().map_err(Error::Memory)?;
        for point in points {
            if stop.load(Ordering::Relaxed) || tally.over.load(Ordering::Relaxed) {
                return Ok(());
            }
            while player.step() < point.step {
                player.go_on()?;
            }
            let saved = player.save();
            self.one_cut(&mut player, *point, &mut image, tally)
                .map_err(|what| Error::Cut {
                    step: point.step,
                    operation: point.operation,
                    seed: point.seed,
                    what: Box::new(what),
                })?;
            player.restore(&saved);
            done(tally.cuts.fetch_add(1, Ordering::Relaxed) + 1);
        }
        Ok(())
    }

    fn one_cut(
        &self,
        player: &mut Player,
        point: Point,
        image: &mut Image,
        tally: &Tally,
    ) -> Result<(), Error> {
        if point.operation > 0 {
            player.flash().cut_power(point.operation, point.seed);
        }
        player.go_on()?;
        if point.operation == 0 {
            player.flash().cut_power(0, point.seed);
        }
        let now_ns = player.now_ns();
        let flash = player.flash();
        if !flash.is_off() {
            return Err(Error::Diverged("the operation to be cut did not come"));
        }
        if !flash.power_on(now_ns) {
            return Err(Error::Memory(std::io::ErrorKind::OutOfMemory.into()));
        }
        if let Some(sentence) = flash.broken_invariant() {
            return Err(Error::Invariant(sentence));
        }
        let (recovery_ns, row_reads) = flash.last_mount();
        tally.recovery_ns.fetch_max(recovery_ns, Ordering::Relaxed);
        tally.row_reads.fetch_max(row_reads, Ordering::Relaxed);
        let words = flash.all_words();
        if let Some(lba) = self.promise.broken(point.moment(), &words) {
            return Err(Error::Page(lba));
        }
        image.fill(self.stream, &words).map_err(Error::Memory)?;
        image.check()?;
        let period = self
            .periods
            .iter()
            .find(|it| it.steps.contains(&point.step));
        if let Some(period) = period {
            image.holds(&period.files)?;
            let files = period.files.len() as u64;
            tally.files.fetch_add(files, Ordering::Relaxed);
        }
        Ok(())
    }

    fn steps(&self) -> Range<Step> {
        let first = self.periods.first().map_or(0, |it| it.steps.start);
        first..self.timeline.steps
    }
}

/// Divides the stream at its marks.
fn periods(stream: &Stream, timeline: &Timeline) -> Result<Vec<Period>, Error> {
    let mut marks = Vec::new();
    for (record, step) in stream.records.iter().zip(&timeline.submitted) {
        if let What::Mark(bytes) = &record.what {
            let mark: Mark = serde_json::from_slice(bytes).map_err(Error::Mark)?;
            marks.push((*step, mark));
        }
    }
    if marks.len() < 2 {
        return Err(Error::NoMarks);
    }
    let pairs = marks.windows(2).map(|pair| Period {
        steps: pair[0].0..pair[1].0,
        phase: pair[0].1.begins,
        files: unchanged(&pair[0].1.files, &pair[1].1.files),
    });
    let mut periods: Vec<Period> = pairs.collect();
    let (step, last) = &marks[marks.len() - 1];
    periods.push(Period {
        steps: *step..timeline.steps,
        phase: last.begins,
        files: last.files.clone(),
    });
    Ok(periods)
}

fn every_operation(known: &Known) -> Vec<Point> {
    let mut points = Vec::new();
    for period in &known.periods {
        if period.phase != Phase::Defragmentation {
            continue;
        }
        let busy = &known.timeline.busy;
        for busy in busy.iter().filter(|it| period.steps.contains(&it.step)) {
            points.extend((1..=busy.count).map(|operation| Point {
                step: busy.step,
                operation,
                seed: busy.before + operation,
            }));
        }
    }
    points
}

/// Random points: half of them at an operation, half between two steps.
fn random(known: &Known, request: Request) -> Vec<Point> {
    let steps = known.steps();
    let operations =
        known.timeline.operations_before(steps.start)..known.timeline.operations_before(steps.end);
    let mut random = Random::new(request.seed);
    let mut points = Vec::new();
    for number in 0..request.random_points {
        let seed = random.next_u64();
        if number % 2 == 0 && !operations.is_empty() {
            let operation =
                operations.start + random.next_u64() % (operations.end - operations.start);
            points.extend(known.timeline.step_of(operation).map(|busy| Point {
                step: busy.step,
                operation: operation - busy.before + 1,
                seed,
            }));
        } else if !steps.is_empty() {
            points.push(Point {
                step: steps.start
                    + (random.next_u64() % u64::from(steps.end - steps.start)) as Step,
                operation: 0,
                seed,
            });
        }
    }
    points
}

#[cfg(test)]
mod tests;
