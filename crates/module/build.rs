//! Puts the module's sources into the program.

use std::path::Path;
use std::{env, fs, io};

const SOURCES: &str = "../../kernel/iosched";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={SOURCES}");
    let directory = fs::canonicalize(SOURCES)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    names.retain(|name| is_source(name));
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

/// What an earlier build in the same directory left is not.
fn is_source(name: &str) -> bool {
    let is_code = name.ends_with(".c") || name.ends_with(".h");
    name == "Kbuild" || (is_code && !name.ends_with(".mod.c") && name != "frontrow_abi.h")
}
