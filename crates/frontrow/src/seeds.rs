//! The seeds of a command line: `3`, or `1..5` with both ends.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Seeds from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    first: u64,
    last: u64,
}

impl Seeds {
    /// From 1 to `last`, which is at least 1.
    pub const fn up_to(last: u64) -> Seeds {
        Seeds { first: 1, last }
    }

    /// All of them, ascending.
    pub fn all(self) -> RangeInclusive<u64> {
        self.first..=self.last
    }

    /// Number of seeds.
    pub fn count(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Seeds { first, last }),
            _ => Err("give A..B, both included, such as 1..5, or one number".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_with_both_ends_or_one() {
        assert_eq!("1..5".parse(), Ok(Seeds { first: 1, last: 5 }));
        assert_eq!("7".parse(), Ok(Seeds { first: 7, last: 7 }));
        assert_eq!(Seeds { first: 3, last: 5 }.count(), 3);
        for text in ["", "..", "5..1", "a..b", "1..", "-1", "1..=3", "1-5"] {
            assert!(text.parse::<Seeds>().is_err(), "{text}");
        }
    }
}
