//! Which waits promote the write that is waited for.

use crate::sched::{Dependency, Error};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The value of the scheduler's setting `boost`: dependencies, whose waits promote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boost(BTreeSet<Dependency>);

impl Boost {
    /// Every wait promotes, as it is when the scheduler starts.
    pub fn all() -> Self {
        Self(Dependency::ALL.into_iter().collect())
    }
}

/// `all`, `none`, or names separated by commas or spaces.
impl FromStr for Boost {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut boost = BTreeSet::new();
        for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
            match word {
                "none" => {}
                "all" => boost.extend(Dependency::ALL),
                name => {
                    let known = Dependency::ALL.into_iter().find(|it| it.name() == name);
                    boost.insert(known.ok_or_else(|| Error::UnknownBoost(name.to_owned()))?);
                }
            }
        }
        Ok(Self(boost))
    }
}

impl fmt::Display for Boost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("none");
        }
        if *self == Self::all() {
            return formatter.write_str("all");
        }
        let names: Vec<_> = self.0.iter().map(|it| it.name()).collect();
        formatter.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scheduler_shows_is_understood() {
        for (text, shown) in [
            ("all", "all"),
            ("none", "none"),
            ("meta data journal discard", "all"),
            ("data,meta", "meta,data"),
            ("discard", "discard"),
        ] {
            assert_eq!(text.parse::<Boost>().unwrap().to_string(), shown);
        }
        let error = "data,colour".parse::<Boost>().unwrap_err().to_string();
        assert!(error.contains("\"colour\""), "{error}");
    }
}
