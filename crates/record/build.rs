//! Puts the experiments into the library: their bars judge results that name them.

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let directory = root.join("../../experiments");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files: Vec<PathBuf> = fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|it| it == "toml"));
    files.sort();
    let mut code = String::from("static EXPERIMENTS: &[(&str, &str)] = &[\n");
    for file in &files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(code, "    ({name:?}, include_str!({file:?})),").map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("experiments.rs"), code)
}
