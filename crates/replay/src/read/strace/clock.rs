//! The time of a call, from whatever strace prints of times.

use super::super::NO_TIMES;
use super::line::Time;

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Times of day go back so far only at midnight: lines of threads may be in disorder by less.
const MIDNIGHT_NS: u64 = DAY_NS / 2;

/// Nanoseconds since some instant before the trace, for each line.
#[derive(Debug, Default)]
pub(super) struct Clock {
    first: Option<Time>,
    /// For times of day: the midnights so far, and the last time.
    days_ns: u64,
    last_ns: u64,
}

impl Clock {
    /// The time of a line. All lines of a trace have the same kind of times.
    ///
    /// # Errors
    /// This line has another kind of time than the first.
    pub(super) fn at(&mut self, time: Time) -> Result<u64, String> {
        let first = *self.first.get_or_insert(time);
        if std::mem::discriminant(&first) != std::mem::discriminant(&time) {
            return Err(format!(
                "it has {}, and the trace began with {}",
                name(time),
                name(first)
            ));
        }
        match time {
            Time::Absolute(ns) => Ok(ns),
            Time::None => Ok(0),
            Time::Relative(ns) => {
                self.last_ns = self
                    .last_ns
                    .checked_add(ns)
                    .ok_or("its time is too large")?;
                Ok(self.last_ns)
            }
            Time::OfDay(ns) => {
                if ns.saturating_add(MIDNIGHT_NS) < self.last_ns {
                    self.days_ns += DAY_NS;
                }
                self.last_ns = ns;
                Ok(self.days_ns + ns)
            }
        }
    }

    /// Passes over a line that is no call: the next one's `-r` is since this.
    pub(super) fn pass(&mut self, time: Time) {
        if let Time::Relative(ns) = time {
            self.last_ns = self.last_ns.saturating_add(ns);
        }
    }

    /// A sentence on how times are understood, if they do not say all.
    pub(super) fn note(&self) -> Option<&'static str> {
        match self.first? {
            Time::Absolute(_) => None,
            Time::OfDay(_) => Some(
                "times of day are played from the first on: no date is needed, and a time that goes back by half a day is after midnight",
            ),
            Time::Relative(_) => Some("times are those since the line before (-r), added up"),
            Time::None => Some(NO_TIMES),
        }
    }
}

fn name(time: Time) -> &'static str {
    match time {
        Time::Absolute(_) => "a time since 1970 (-ttt)",
        Time::OfDay(_) => "a time of day (-t, -tt)",
        Time::Relative(_) => "a time since the line before (-r)",
        Time::None => "no time",
    }
}
