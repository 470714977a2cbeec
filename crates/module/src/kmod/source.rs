//! A module's source files, from a directory or from memory.

use crate::kmod::Error;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A module's sources: what kbuild needs, by path relative to its directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The directory's name, for people.
    pub name: String,
    /// Path → content.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Source {
    /// The files of `dir` that kbuild needs: `Kbuild`, C and header files. What
    /// an earlier build left there is passed over, and so are host tests, in `test`.
    pub fn read(dir: &Path) -> Result<Source, Error> {
        let name = dir
            .file_name()
            .map(|it| it.to_string_lossy().into_owned())
            .unwrap_or_default();
        let mut source = Source {
            name,
            files: BTreeMap::new(),
        };
        source.read_into("", dir)?;
        Ok(source)
    }

    /// With `path` in it, as a generated header gets there.
    pub fn with(mut self, path: &str, content: impl Into<Vec<u8>>) -> Source {
        self.files.insert(path.to_owned(), content.into());
        self
    }

    /// Whether kbuild needs the file called `name`.
    pub fn is_wanted(name: &str) -> bool {
        let is_code = name.ends_with(".c") || name.ends_with(".h");
        name == "Kbuild" || (is_code && !name.ends_with(".mod.c"))
    }

    fn read_into(&mut self, prefix: &str, dir: &Path) -> Result<(), Error> {
        for entry in fs::read_dir(dir).map_err(Error::file(dir))? {
            let entry = entry.map_err(Error::file(dir))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path();
            if path.is_dir() && name != "test" {
                self.read_into(&format!("{prefix}{name}/"), &path)?;
            } else if Source::is_wanted(&name) {
                let content = fs::read(&path).map_err(Error::file(&path))?;
                self.files.insert(format!("{prefix}{name}"), content);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_kbuild_needs_is_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ftl")).unwrap();
        fs::create_dir(dir.path().join("test")).unwrap();
        for name in [
            "Kbuild",
            "m.c",
            "m.h",
            "m.o",
            "m.mod.c",
            "README",
            "ftl/map.c",
            "test/map.c",
        ] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let source = Source::read(dir.path()).unwrap();
        let names: Vec<_> = source.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["Kbuild", "ftl/map.c", "m.c", "m.h"]);
    }
}
