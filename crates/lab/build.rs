//! Puts experiments, device profiles and the flash module's sources into the binary, so
//! that it also works where there is no checkout, and the compiler's version,
//! which results name.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

const DIRECTORIES: [&str; 2] = ["experiments", "kernel/simflash"];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let mut code = String::from("static EMBEDDED: &[(&str, &[u8])] = &[\n");
    for directory in DIRECTORIES {
        println!("cargo::rerun-if-changed={}", root.join(directory).display());
        list(&root, directory, &mut code)?;
    }
    code.push_str("];\n");
    println!("cargo::rustc-env=FRONTROW_RUSTC={}", rustc_version()?);
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("embedded.rs"), code)
}

fn rustc_version() -> io::Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn list(root: &Path, directory: &str, code: &mut String) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(root.join(directory))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let path = format!("{directory}/{name}");
        let file = root.join(&path);
        if file.is_dir() {
            list(root, &path, code)?;
        } else if is_embedded(&name) {
            writeln!(code, "    ({path:?}, include_bytes!({file:?})),")
                .map_err(io::Error::other)?;
        }
    }
    Ok(())
}

/// What a build or an editor left there is not a source.
fn is_embedded(name: &str) -> bool {
    let is_source = [".c", ".h", ".toml"]
        .iter()
        .any(|ending| name.ends_with(ending));
    name == "Kbuild" || (is_source && !name.ends_with(".mod.c"))
}
