//! Schedulers of others: a built module, or a directory of sources.

use crate::{Error, modules};
use module::kmod::Source;
use std::fs;
use std::path::Path;

/// The sources in `dir`. Of a single C file without a `Kbuild` a module with its name is built.
pub(crate) fn source(dir: &Path) -> Result<Source, Error> {
    let dir = &fs::canonicalize(dir).map_err(Error::file(dir))?;
    let source = Source::read(dir)?;
    if source.files.contains_key("Kbuild") {
        return Ok(source);
    }
    let makefile = dir.join("Makefile");
    if makefile.is_file() {
        let text = fs::read(&makefile).map_err(Error::file(&makefile))?;
        return Ok(source.with("Kbuild", text));
    }
    let mut codes = source.files.keys().filter_map(|it| it.strip_suffix(".c"));
    match (codes.next().map(str::to_owned), codes.next()) {
        (Some(only), None) => Ok(source.with("Kbuild", format!("obj-m := {only}.o\n"))),
        _ => Err(Error::Usage(format!(
            "{} has no Kbuild and not just one C file: write `obj-m := NAME.o` and `NAME-y := …` \
             with all object files into {}",
            dir.display(),
            dir.join("Kbuild").display()
        ))),
    }
}

/// The name and content of a built module, which must be for the kernel `release`.
pub(crate) fn module(path: &Path, release: &str) -> Result<(String, Vec<u8>), Error> {
    let content = fs::read(path).map_err(Error::file(path))?;
    let built_for = modules::information(&content, "vermagic=");
    match built_for.first().and_then(|it| it.split(' ').next()) {
        Some(built_for) if built_for == release => Ok((stem(path), content)),
        Some(built_for) => Err(Error::Usage(format!(
            "{} was built for kernel {built_for}, and the guest has {release}: give the directory \
             of its sources, or the kernel with --kernel",
            path.display()
        ))),
        None => Err(Error::Usage(format!(
            "{} is no kernel module: give a .ko file that is not compressed, or a directory of sources",
            path.display()
        ))),
    }
}

/// A file's name without its ending.
pub(crate) fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbuild(files: &[&str]) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        for name in files {
            fs::write(dir.path().join(name), format!("# {name}\n")).unwrap();
        }
        let source = source(dir.path()).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(source.files["Kbuild"].clone()).unwrap())
    }

    #[test]
    fn one_c_file_needs_no_kbuild_and_several_do() {
        assert_eq!(kbuild(&["adios.c", "blk.h"]).unwrap(), "obj-m := adios.o\n");
        assert_eq!(kbuild(&["a.c", "b.c", "Kbuild"]).unwrap(), "# Kbuild\n");
        assert_eq!(kbuild(&["a.c", "b.c", "Makefile"]).unwrap(), "# Makefile\n");
        for files in [&["a.c", "b.c"][..], &["README"]] {
            let error = kbuild(files).unwrap_err();
            assert!(error.contains("obj-m := NAME.o"), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_module_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.ko");
        fs::write(&path, "hello").unwrap();
        let error = module(&path, "6.12").unwrap_err().to_string();
        assert!(error.contains("no kernel module"), "{error}");
    }
}
