//! The list of seeded defects.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// One change that makes the program wrong, and the test that has to see it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Defect {
    /// What is wrong, in a few words that begin with the crate or module.
    pub name: String,
    /// Path from the root of the repository.
    pub file: String,
    /// Text that is once in the file.
    pub was: String,
    /// Text in its place.
    pub is: String,
    /// Words of a command that fails with the defect. It is run in the root, without a shell.
    pub test: String,
    /// Words of a command that builds the test, if it is not cargo's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Seed by which the mutator drew it; None if a person chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A file of defects.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    pub defect: Vec<Defect>,
}

/// Reads the list at `path`.
pub fn read(path: &Path) -> Result<Vec<Defect>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    let list: List = toml::from_str(&text).map_err(|error| failed(&error))?;
    Ok(list.defect)
}

impl Defect {
    /// The file's `text` with the defect. Fails unless the text it replaces is there exactly once.
    pub fn applied_to(&self, text: &str) -> Result<String, String> {
        if self.was == self.is {
            return Err(format!("{}: it changes nothing", self.name));
        }
        match text.matches(self.was.as_str()).count() {
            1 => Ok(text.replacen(&self.was, &self.is, 1)),
            times => Err(format!(
                "{}: {} has its text {times} times, not once",
                self.name, self.file
            )),
        }
    }

    /// Words of a command that builds the test.
    pub fn build_words(&self) -> Result<Vec<String>, String> {
        if let Some(build) = &self.build {
            return Ok(words(build));
        }
        let mut build = words(&self.test);
        if !self.test.starts_with("cargo test ") {
            return Err(format!("{}: say what builds its test", self.name));
        }
        let options = build.iter().position(|it| it == "--");
        build.truncate(options.unwrap_or(build.len()));
        build.push("--no-run".to_owned());
        Ok(build)
    }
}

pub fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn defect(was: &str, is: &str, test: &str) -> Defect {
        Defect {
            name: "name".to_owned(),
            file: "file".to_owned(),
            was: was.to_owned(),
            is: is.to_owned(),
            test: test.to_owned(),
            build: None,
            seed: None,
        }
    }

    #[test]
    fn a_defect_is_put_in_where_its_text_is_once() {
        let text = "if a < b {\n} else if b < c {";
        let applied = |was, is| defect(was, is, "").applied_to(text);
        let wrong = "if a <= b {\n} else if b < c {";
        assert_eq!(applied("a < b", "a <= b").as_deref(), Ok(wrong));
        assert!(applied("if", "while").unwrap_err().contains("2 times"));
        assert!(applied("gone", "here").unwrap_err().contains("0 times"));
        assert!(applied("a < b", "a < b").is_err());
    }

    #[test]
    fn a_test_of_cargos_is_built_before_it_is_run() {
        let build = |test| defect("", "", test).build_words();
        let built = build("cargo test -p sys --lib -- random").unwrap();
        assert_eq!(built.join(" "), "cargo test -p sys --lib --no-run");
        assert!(build("make check").is_err());
    }

    /// Who changes a line that a defect is about, changes the defect with it.
    #[test]
    fn the_list_fits_the_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let list = read(&root.join(super::super::LIST)).unwrap();
        assert!(list.len() >= 30, "{} defects", list.len());
        let drawn = list.iter().filter(|it| it.seed.is_some()).count();
        assert!(2 * drawn >= list.len(), "{drawn} are drawn");
        let names: BTreeSet<&String> = list.iter().map(|it| &it.name).collect();
        assert_eq!(names.len(), list.len(), "each has a name of its own");
        let mut in_file = BTreeMap::new();
        let mut old = Vec::new();
        for defect in &list {
            let text = fs::read_to_string(root.join(&defect.file)).unwrap();
            old.extend(defect.applied_to(&text).err());
            defect.build_words().unwrap();
            *in_file.entry(&defect.file).or_insert(0) += 1;
        }
        assert!(old.is_empty(), "{old:#?}");
        assert!(in_file.values().all(|it| *it <= 2), "{in_file:?}");
    }
}
