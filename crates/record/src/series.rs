//! Series of values, for figures whose order or times matter.

use serde::{Deserialize, Serialize};

/// The values whose mean a figure is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Time between two values in ms; None if each value is of one operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ms: Option<f64>,
    /// Values in their order, in the figure's unit, rounded to a thousandth.
    pub values: Vec<f64>,
}

impl Series {
    /// A series with one value for each operation.
    pub fn of_operations(values: impl IntoIterator<Item = f64>) -> Series {
        Series {
            interval_ms: None,
            values: values.into_iter().map(thousandths).collect(),
        }
    }

    /// A series with one value for each interval of `interval_ms`.
    pub fn over_time(interval_ms: f64, values: impl IntoIterator<Item = f64>) -> Series {
        Series {
            interval_ms: Some(interval_ms),
            ..Series::of_operations(values)
        }
    }

    /// Mean of the values; 0 without values.
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }
}

/// Rounds to thousandths: more digits have no information and only take bytes.
fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_written_short_and_read_back() {
        let series = Series::over_time(10.0, [1.0 / 3.0, 2.0]);
        let text = serde_json::to_string(&series).unwrap();
        assert_eq!(text, r#"{"interval_ms":10.0,"values":[0.333,2.0]}"#);
        assert_eq!(serde_json::from_str::<Series>(&text).unwrap(), series);
        let operations = Series::of_operations([4.0]);
        assert_eq!(
            serde_json::to_string(&operations).unwrap(),
            r#"{"values":[4.0]}"#
        );
        assert_eq!(Series::default().mean(), 0.0);
    }
}
