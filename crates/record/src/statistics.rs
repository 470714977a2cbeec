//! Means over seeds and their confidence intervals.

use serde::Serialize;

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// `(degrees of freedom, quantile)` beyond the table, each valid up to the next.
const T_95_BEYOND: [(usize, f64); 4] = [(1000, 1.962), (120, 1.980), (60, 2.000), (40, 2.021)];

/// Mean, spread and the mean's 95 % interval of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Number of values, at least 1.
    pub count: usize,
    /// Arithmetic mean of the values.
    pub mean: f64,
    /// Sample standard deviation; 0 for one value.
    pub deviation: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// 95 % interval of the mean by Student's t; None for one value.
    pub interval: Option<Interval>,
}

/// A range that contains the true mean in 95 of 100 such experiments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end of the range.
    pub low: f64,
    /// Upper end of the range.
    pub high: f64,
}

impl Statistics {
    /// Statistics of the values; None without values.
    pub fn of(values: &[f64]) -> Option<Statistics> {
        if values.is_empty() {
            return None;
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = match count {
            1 => 0.0,
            _ => (squares / (count - 1) as f64).sqrt(),
        };
        Some(Statistics {
            count,
            mean,
            deviation,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            interval: interval(count, mean, deviation),
        })
    }

    /// Half the interval's width over the mean; None for one value or mean 0.
    pub fn relative_half_width(&self) -> Option<f64> {
        let interval = self.interval?;
        (self.mean != 0.0).then(|| (interval.high - interval.low) / 2.0 / self.mean.abs())
    }
}

fn interval(count: usize, mean: f64, deviation: f64) -> Option<Interval> {
    let half = t_95(count.checked_sub(1)?)? * deviation / (count as f64).sqrt();
    Some(Interval {
        low: mean - half,
        high: mean + half,
    })
}

/// Two-sided 95 % quantile of Student's t; None for 0 degrees of freedom. Between two entries it is
/// that of the fewer degrees, so it is never too small.
fn t_95(freedom: usize) -> Option<f64> {
    let index = freedom.checked_sub(1)?;
    if let Some(quantile) = T_95.get(index) {
        return Some(*quantile);
    }
    let beyond = T_95_BEYOND.iter().find(|(from, _)| freedom >= *from);
    Some(beyond.map_or(T_95[T_95.len() - 1], |(_, quantile)| *quantile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_statistics() {
        assert_eq!(Statistics::of(&[]), None);
    }

    #[test]
    fn one_value_has_no_interval() {
        let one = Statistics::of(&[7.0]).unwrap();
        assert_eq!(
            (one.mean, one.deviation, one.min, one.max),
            (7.0, 0.0, 7.0, 7.0)
        );
        assert_eq!(one.interval, None);
    }

    /// The values are 2, 4, 4, 5, 5. Their mean is 4, the sum of squares 4+0+0+1+1 = 6, the
    /// deviation sqrt(6/4) = 1.2247. The half width is 2.776 × 1.2247 / sqrt 5 = 1.5205.
    #[test]
    fn five_values_by_hand() {
        let five = Statistics::of(&[2.0, 4.0, 4.0, 5.0, 5.0]).unwrap();
        assert_eq!(five.mean, 4.0);
        assert!((five.deviation - 1.224_745).abs() < 1e-6);
        let interval = five.interval.unwrap();
        assert!((interval.low - 2.479_5).abs() < 1e-3, "{interval:?}");
        assert!((interval.high - 5.520_5).abs() < 1e-3, "{interval:?}");
    }

    #[test]
    fn quantiles_fall_towards_the_normal_distribution() {
        let quantiles: Vec<f64> = (1..2000).map(|freedom| t_95(freedom).unwrap()).collect();
        assert!(quantiles.windows(2).all(|pair| pair[0] >= pair[1]));
        assert_eq!(quantiles[0], 12.706);
        assert_eq!(quantiles[34], 2.042);
        assert!(*quantiles.last().unwrap() > 1.959);
    }
}
