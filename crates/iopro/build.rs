//! Compiles the BPF programs of the capture, with the kernel's types and without (`bpf/program.h`).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/bpf/iopro.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    for (name, definition) in [("TYPED", None), ("UNTYPED", Some("-DWITHOUT_TYPES"))] {
        let object = compile(&format!("{}.bpf.o", name.to_lowercase()), definition);
        println!("cargo::rustc-env=IOPRO_BPF_{name}={}", object.display());
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn compile(object: &str, definition: Option<&str>) -> PathBuf {
    let target = variable("TARGET");
    let Some(arch) = sys::arch::ALL.into_iter().find(|it| it.rust == target) else {
        panic!("iopro's programs do not know the system calls' registers of {target}");
    };
    let libbpf = variable("DEP_BPF_INCLUDE");
    let manifest = variable("CARGO_MANIFEST_DIR");
    let object = Path::new(&variable("OUT_DIR")).join(object);
    let status = Command::new("clang")
        .args([
            "-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3",
        ])
        .arg(format!("-D__TARGET_ARCH_{}", arch.kernel))
        .args(definition)
        .arg(format!("-I{libbpf}"))
        // Where Debian has the machine's own headers, and those of another machine.
        .arg(format!("-I/usr/include/{}", arch.gnu))
        .arg(format!("-I/usr/{}/include", arch.gnu))
        // The object is part of the guests' image, which is the same wherever it is built.
        .arg(format!("-ffile-prefix-map={libbpf}=libbpf"))
        .arg(format!("-ffile-prefix-map={manifest}=iopro"))
        .arg("-fdebug-compilation-dir=.")
        .args(["-c", SOURCE, "-o"])
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => object,
        Ok(status) => panic!("clang could not compile {SOURCE} ({status})"),
        Err(error) => {
            panic!("cannot run clang ({error}): install it (Debian: apt-get install clang)")
        }
    }
}
