//! Puts the module's sources into the program.

use std::path::Path;
use std::{env, fs, io};

const SOURCES: &str = "../../kernel/iosched";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={SOURCES}");
    let directory = fs::canonicalize(SOURCES)?;
    let mut names = Vec::new();
    list(&directory, "", &mut names)?;
    names.sort();
    let files: String = names
        .iter()
        .map(|name| format!("({name:?}, include_bytes!({:?})),\n", directory.join(name)))
        .collect();
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(
        Path::new(&out).join("iosched.rs"),
        format!("const FILES: &[(&str, &[u8])] = &[\n{files}];\n"),
    )
}

/// Adds the sources below `directory`, but for its host tests, by path.
fn list(directory: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() && name != "test" {
            list(&entry.path(), &format!("{prefix}{name}/"), names)?;
        } else if is_source(&name) {
            names.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

/// What an earlier build in the same directory left is not.
fn is_source(name: &str) -> bool {
    let is_code = name.ends_with(".c") || name.ends_with(".h");
    name == "Kbuild" || (is_code && !name.ends_with(".mod.c") && name != "frontrow_abi.h")
}
