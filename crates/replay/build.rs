//! Compiles the flash core from the same files as the kernel module's.

use std::path::Path;
use std::{env, fs};

fn main() {
    let core = Path::new("../../kernel/simflash/ftl");
    println!("cargo::rerun-if-changed={}", core.display());
    println!("cargo::rerun-if-changed=src/flash");
    let invariants = core.with_file_name("test").join("invariants.c");
    println!("cargo::rerun-if-changed={}", invariants.display());
    let entries = fs::read_dir(core)
        .unwrap_or_else(|error| panic!("{} has the flash core: {error}", core.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a directory that can be listed").path())
        .filter(|path| path.extension().is_some_and(|it| it == "c"))
        .collect();
    files.sort();
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    cc::Build::new()
        .files(files)
        .file("src/flash/layout.c")
        .file("src/flash/inspect.c")
        .file(invariants)
        .include(core)
        .std("c11")
        // An unoptimised core would be slower than the trace's time.
        .opt_level(2)
        // The binary is part of the guests' image, which must not depend on the build's place.
        .flag(format!("-ffile-prefix-map={manifest}=replay"))
        .flag("-Wno-sign-compare")
        .compile("ftl");
}
