//! Scales from values to positions on a chart, and their ticks.

/// Largest ratio of the scale's ends; no measurement has a larger one.
const WIDEST: f64 = 1e15;

/// A logarithmic scale.
#[derive(Clone, Copy, Debug)]
pub struct LogAxis {
    low: f64,
    high: f64,
    start: f64,
    length: f64,
}

impl LogAxis {
    /// A scale from `low` to `high`, both finite and above 0, over `length` from `start` on. Values
    /// too far below `high` are cut off.
    pub fn new((low, high): (f64, f64), start: f64, length: f64) -> LogAxis {
        let low = low.max(high / WIDEST);
        LogAxis {
            low,
            high: high.max(low * 1.01),
            start,
            length,
        }
    }

    /// Position of a value; a value outside of the scale is put at its end.
    pub fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = (value / self.low).ln() / (self.high / self.low).ln();
        self.start + part * self.length
    }

    /// Ticks at 1, 2 and 5 times powers of ten, or only at powers of ten where the former would be
    /// closer than `room`.
    pub fn ticks(&self, room: f64) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = match self.length / decades {
            decade if decade * 0.3 >= room => &[1.0, 2.0, 5.0],
            decade if decade * 0.5 >= room => &[1.0, 3.0],
            _ => &[1.0],
        };
        let sparse = (room / (self.length / decades)).ceil().max(1.0) as i32;
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        (first..=last)
            .filter(|power| power.rem_euclid(sparse) == 0)
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .filter(|tick| *tick >= self.low * 0.999 && *tick <= self.high * 1.001)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_middle() {
        let axis = LogAxis::new((1.0, 100.0), 10.0, 200.0);
        assert_eq!(axis.place(1.0), 10.0);
        assert_eq!(axis.place(10.0), 110.0);
        assert_eq!(axis.place(1e9), 210.0);
    }

    #[test]
    fn ticks_keep_their_distance() {
        for (low, high) in [(1.0, 3.0), (1.0, 50.0), (1e-6, 12.0), (3e3, 4e9)] {
            let axis = LogAxis::new((low, high), 0.0, 400.0);
            let places: Vec<f64> = axis
                .ticks(40.0)
                .iter()
                .map(|tick| axis.place(*tick))
                .collect();
            assert!(!places.is_empty(), "{low} to {high}");
            assert!(
                places.windows(2).all(|pair| pair[1] - pair[0] >= 39.0),
                "{places:?}"
            );
        }
    }
}
