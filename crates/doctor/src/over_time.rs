//! Pressure over the observed time, in bounded memory.

use crate::observe::{Pressure, Span};
use std::time::Duration;

/// Length of the first spans. Where there would be more than [`MOST_SPANS`], pairs are joined, and
/// later spans are twice as long.
const SPAN: Duration = Duration::from_millis(250);
/// A picture on a phone has room for no more.
const MOST_SPANS: usize = 120;

/// A running record of pressure, from counters that only grow.
#[derive(Debug)]
pub(crate) struct OverTime {
    every: Duration,
    counted: Pressure,
    until_ns: u64,
    spans: Vec<Span>,
}

impl OverTime {
    pub fn begin(counted: Pressure) -> OverTime {
        OverTime {
            every: SPAN,
            counted,
            until_ns: 0,
            spans: Vec::new(),
        }
    }

    /// Whether a span is complete at this time since the start.
    pub fn is_due(&self, elapsed: Duration) -> bool {
        elapsed.as_nanos() as u64 >= self.until_ns + self.every.as_nanos() as u64
    }

    /// Ends a span at this time since the start.
    pub fn add(&mut self, elapsed: Duration, counted: Pressure) {
        let (from_ns, until_ns) = (self.until_ns, elapsed.as_nanos() as u64);
        if until_ns <= from_ns {
            return;
        }
        self.spans.push(Span {
            from_ns,
            until_ns,
            pressure: counted.since(self.counted),
        });
        self.counted = counted;
        self.until_ns = until_ns;
        if self.spans.len() > MOST_SPANS {
            self.every *= 2;
            self.spans = self.spans.chunks(2).map(joined).collect();
        }
    }

    pub fn end(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }
}

/// One span in place of neighbours, of which there is at least one.
fn joined(spans: &[Span]) -> Span {
    let (first, last) = (spans[0], spans[spans.len() - 1]);
    let sum = |of: fn(&Pressure) -> u64| spans.iter().map(|it| of(&it.pressure)).sum();
    Span {
        from_ns: first.from_ns,
        until_ns: last.until_ns,
        pressure: Pressure {
            io_ns: sum(|it| it.io_ns),
            memory_ns: sum(|it| it.memory_ns),
            cpu_ns: sum(|it| it.cpu_ns),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(io_ns: u64) -> Pressure {
        Pressure {
            io_ns,
            ..Default::default()
        }
    }

    #[test]
    fn a_day_needs_no_more_memory_than_a_minute_and_loses_nothing() {
        let mut over_time = OverTime::begin(io(5));
        for second in 1..=86_400 {
            let elapsed = Duration::from_secs(second);
            if over_time.is_due(elapsed) {
                over_time.add(elapsed, io(5 + second));
            }
        }
        over_time.add(Duration::from_millis(86_400_500), io(5 + 86_401));
        let spans = over_time.end();
        assert!((60..=MOST_SPANS).contains(&spans.len()), "{}", spans.len());
        let all: u64 = spans.iter().map(|it| it.pressure.io_ns).sum();
        assert_eq!(all, 86_401);
        assert_eq!(spans[0].from_ns, 0);
        assert_eq!(spans[spans.len() - 1].until_ns, 86_400_500_000_000);
        assert!(
            spans
                .windows(2)
                .all(|pair| pair[0].until_ns == pair[1].from_ns)
        );
    }
}
