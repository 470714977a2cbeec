//! Names in experiments and on command lines: the error for one that no table has.

/// Largest part of a name's letters that may differ from the name that is suggested.
const MISSPELT: f64 = 0.4;

/// A name that is in no table, with the nearest one and all that there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not {kind}: {}{choices}", self.suggestion())]
pub struct Unknown {
    name: String,
    kind: &'static str,
    nearest: Option<String>,
    choices: String,
}

impl Unknown {
    /// The error for `name`, which is not `kind` (such as `a workload`), with all `known` names.
    pub fn new<'a>(
        name: &str,
        kind: &'static str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let far = |other: &str| 1.0 - strsim::normalized_damerau_levenshtein(name, other);
        let nearest = known.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
        Unknown {
            name: name.to_owned(),
            kind,
            nearest: nearest
                .filter(|it| far(it) <= MISSPELT)
                .map(|it| (*it).to_owned()),
            choices: known.join(", "),
        }
    }

    /// The same error with more words after the names.
    pub fn with(mut self, words: &str) -> Self {
        self.choices.push_str(words);
        self
    }

    fn suggestion(&self) -> String {
        match &self.nearest {
            Some(nearest) => format!("did you mean '{nearest}'? Choose from "),
            None => "choose from ".to_owned(),
        }
    }
}

/// A type with a `name` that [`std::str::FromStr`] reads: it is shown and serialized as its name.
macro_rules! written_as_its_name {
    ($type:ident) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(&self.name)
            }
        }

        impl From<$type> for String {
            fn from(it: $type) -> Self {
                it.name
            }
        }

        impl TryFrom<String> for $type {
            type Error = $crate::Unknown;

            fn try_from(name: String) -> Result<Self, Self::Error> {
                name.parse()
            }
        }
    };
}
pub(crate) use written_as_its_name;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_told_the_nearest() {
        let error = |name| Unknown::new(name, "a load", ["writer", "rewrite"]).to_string();
        assert_eq!(
            error("wirter"),
            "'wirter' is not a load: did you mean 'writer'? Choose from writer, rewrite"
        );
        assert_eq!(
            error("video"),
            "'video' is not a load: choose from writer, rewrite"
        );
    }
}
