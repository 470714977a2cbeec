//! Size of a run, between a smoke test and the papers' own sizes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Size of a run. Workloads have two columns of sizes: one for `demo`, and one for `full` (the
/// paper's own). A factor multiplies the full column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Scale {
    /// Sizes with which the whole demo takes minutes.
    Demo,
    /// The paper's own sizes.
    Full,
    /// A part of the full sizes, in (0, 1].
    Factor(f64),
}

impl Scale {
    /// The size to use, given that of the demo and that of the paper; at least 1.
    pub fn pick(self, demo: u64, full: u64) -> u64 {
        match self {
            Scale::Demo => demo,
            Scale::Full => full,
            Scale::Factor(part) => ((full as f64 * part).round() as u64).max(1),
        }
    }
}

/// Text that is not a scale; holds the text.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not a scale: give demo, full or a part of full such as 0.1")]
pub struct NotAScale(String);

impl FromStr for Scale {
    type Err = NotAScale;

    fn from_str(text: &str) -> Result<Self, NotAScale> {
        match text {
            "demo" => Ok(Scale::Demo),
            "full" => Ok(Scale::Full),
            number => match number.parse::<f64>() {
                Ok(part) if part > 0.0 && part <= 1.0 => Ok(Scale::Factor(part)),
                _ => Err(NotAScale(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scale::Demo => out.write_str("demo"),
            Scale::Full => out.write_str("full"),
            Scale::Factor(part) => write!(out, "{part}"),
        }
    }
}

impl From<Scale> for String {
    fn from(scale: Scale) -> Self {
        scale.to_string()
    }
}

impl TryFrom<String> for Scale {
    type Error = NotAScale;

    fn try_from(text: String) -> Result<Self, NotAScale> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for text in ["demo", "full", "0.25", "1"] {
            assert_eq!(text.parse::<Scale>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_choices() {
        for text in ["", "0", "-1", "2", "NaN", "large"] {
            let error = text.parse::<Scale>().unwrap_err().to_string();
            assert!(error.contains("demo, full"), "{error}");
        }
    }

    #[test]
    fn a_factor_never_gives_nothing() {
        assert_eq!(Scale::Factor(0.001).pick(50, 200), 1);
        assert_eq!(Scale::Factor(0.5).pick(50, 200), 100);
    }
}
