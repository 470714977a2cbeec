//! Measurements that last until a stall, and tell of the time around it.

use serde::Serialize;
use std::time::Duration;

/// Interval at which pressure is looked at.
const STEP: Duration = Duration::from_millis(100);
/// Share of an interval in which some task has to be held up by I/O, so that a stall goes on.
const HELD_UP: f64 = 0.9;
/// Most time before a stall that the measurement tells of.
const BEFORE: Duration = Duration::from_secs(10);
/// A stall is told of at the latest this long after it was found, also if it goes on.
const AT_MOST: Duration = Duration::from_secs(10);

/// Reason for the end of a measurement that waited for a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// Smallest length of the stall in nanoseconds.
    pub asked_ns: u64,
    /// Length of the stall as far as it was awaited, in nanoseconds; None if there was none.
    pub stalled_ns: Option<u64>,
    /// Time for which the stall was awaited, in nanoseconds.
    pub awaited_ns: u64,
}

/// What a measurement has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Measure on: nothing has ended, and what was measured may still count.
    GoOn,
    /// Begin anew: there was no stall.
    BeginAnew,
    /// End: a stall is over.
    End,
}

/// A running wait for a stall. Its times are since the begin of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    asked: Duration,
    looked: Duration,
    io_ns: u64,
    /// Time held up in the stretch that may be a stall under way, parts of intervals at its edges included;
    /// while there is none, in the last interval.
    stretch: Duration,
    is_stretch: bool,
    /// Begin of the time that is told of.
    from: Duration,
    stalled: Option<Duration>,
}

impl Stall {
    /// Waits for a stall of this length; `io_ns` is the system's I/O pressure so far.
    pub fn of(asked: Duration, io_ns: u64) -> Stall {
        Stall {
            asked,
            looked: Duration::ZERO,
            io_ns,
            stretch: Duration::ZERO,
            is_stretch: false,
            from: Duration::ZERO,
            stalled: None,
        }
    }

    /// The stall may be under way: some task was held up for this time right before.
    pub fn begun_before(mut self, held_up: Duration) -> Stall {
        self.stretch = held_up;
        self
    }

    /// Looks at the I/O pressure, if that is due.
    pub fn turn(&mut self, elapsed: Duration, pressure_ns: impl FnOnce() -> u64) -> Next {
        let step = elapsed.saturating_sub(self.looked);
        if step < STEP {
            return Next::GoOn;
        }
        self.looked = elapsed;
        let io_ns = pressure_ns();
        let held_up_ns = io_ns.saturating_sub(std::mem::replace(&mut self.io_ns, io_ns));
        let goes_on = held_up_ns as f64 >= HELD_UP * step.as_nanos() as f64;
        let held_up = Duration::from_nanos(held_up_ns);
        // No stall begins or ends with an interval: what is before it and after it belongs to it.
        let is_part = self.is_stretch || goes_on;
        let length = if is_part {
            self.stretch + held_up
        } else {
            held_up
        };
        if is_part && length >= self.asked {
            self.stalled = Some(length);
        }
        self.stretch = if goes_on { length } else { held_up };
        self.is_stretch = goes_on;
        match self.stalled {
            Some(length) if !goes_on || length >= self.asked + AT_MOST => Next::End,
            Some(_) => Next::GoOn,
            None if !goes_on && elapsed - self.from >= BEFORE => {
                self.from = elapsed;
                Next::BeginAnew
            }
            None => Next::GoOn,
        }
    }

    /// The result after this time.
    pub fn end(&self, elapsed: Duration) -> Ended {
        Ended {
            asked_ns: self.asked.as_nanos() as u64,
            stalled_ns: self.stalled.map(|it| it.as_nanos() as u64),
            awaited_ns: elapsed.as_nanos() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Duration = Duration::from_millis(500);

    /// What comes of each tenth of a second, in which a task is held up for `held_up_ms(tenth)`.
    fn watch(tenths: u64, held_up_ms: impl Fn(u64) -> u64) -> (Vec<(u64, Next)>, Ended) {
        let mut stall = Stall::of(ASKED, 0);
        let (mut io_ns, mut told) = (0, Vec::new());
        for tenth in 1..=tenths {
            io_ns += held_up_ms(tenth) * 1_000_000;
            let elapsed = Duration::from_millis(100 * tenth);
            match stall.turn(elapsed, || io_ns) {
                Next::GoOn => {}
                next => told.push((tenth, next)),
            }
            if let Some((_, Next::End)) = told.last() {
                return (told, stall.end(elapsed));
            }
        }
        (told, stall.end(Duration::from_millis(100 * tenths)))
    }

    #[test]
    fn it_ends_when_a_stall_is_over() {
        let (told, ended) = watch(100, |it| if (30..37).contains(&it) { 100 } else { 20 });
        assert_eq!(told, [(37, Next::End)]);
        // With the fifths of an interval before it and after it.
        assert_eq!(ended.stalled_ns, Some(740_000_000));
        assert_eq!(ended.awaited_ns, 3_700_000_000);
    }

    #[test]
    fn shorter_ones_and_a_machine_that_is_slow_all_the_time_are_none() {
        let (told, ended) = watch(90, |it| if it % 5 == 0 { 20 } else { 100 });
        assert_eq!((told, ended.stalled_ns), (Vec::new(), None));
        let (_, ended) = watch(90, |_| 80);
        assert_eq!(ended.stalled_ns, None);
    }

    /// Stalls of 500 ms that begin anywhere in an interval.
    #[test]
    fn a_stall_of_the_asked_length_is_found_wherever_it_begins() {
        for before_ms in 0..100 {
            let (told, ended) = watch(20, |it| match it {
                5 => 100 - before_ms,
                6..10 => 100,
                10 => before_ms,
                _ => 0,
            });
            assert_eq!(ended.stalled_ns, Some(500_000_000), "{before_ms}");
            assert!(matches!(told[..], [(10 | 11, Next::End)]), "{told:?}");
        }
    }

    #[test]
    fn a_stall_that_began_before_the_watching_is_as_long_as_both_parts() {
        let mut stall = Stall::of(ASKED, 0).begun_before(Duration::from_millis(90));
        let turns = (1..=5).map(|tenth: u64| {
            let io_ns = (100_000_000 * tenth).min(410_000_000);
            stall.turn(Duration::from_millis(100 * tenth), || io_ns)
        });
        assert_eq!(turns.last(), Some(Next::End));
        assert_eq!(stall.end(ASKED).stalled_ns, Some(500_000_000));
    }

    #[test]
    fn one_that_does_not_end_is_told_of() {
        let (told, ended) = watch(200, |_| 100);
        assert_eq!(told, [(105, Next::End)]);
        assert_eq!(ended.stalled_ns, Some(10_500_000_000));
    }

    #[test]
    fn the_time_before_is_forgotten_but_not_within_a_stall() {
        let (told, _) = watch(400, |it| if (97..105).contains(&it) { 100 } else { 0 });
        assert_eq!(told, [(105, Next::End)]);
        let (told, _) = watch(210, |_| 0);
        assert_eq!(told, [(100, Next::BeginAnew), (200, Next::BeginAnew)]);
    }
}
