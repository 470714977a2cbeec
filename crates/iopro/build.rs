//! Compiles the BPF programs of the capture.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let source = "src/bpf/iopro.bpf.c";
    println!("cargo::rerun-if-changed=src/bpf");

    let target = variable("TARGET");
    let Some(arch) = sys::arch::ALL.into_iter().find(|it| it.rust == target) else {
        panic!("iopro's programs do not know the system calls' registers of {target}");
    };
    let libbpf = variable("DEP_BPF_INCLUDE");
    let manifest = variable("CARGO_MANIFEST_DIR");
    let object = Path::new(&variable("OUT_DIR")).join("iopro.bpf.o");
    let status = Command::new("clang")
        .args([
            "-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3",
        ])
        .arg(format!("-D__TARGET_ARCH_{}", arch.kernel))
        .arg(format!("-I{libbpf}"))
        // Where Debian has the machine's own headers, and those of another machine.
        .arg(format!("-I/usr/include/{}", arch.gnu))
        .arg(format!("-I/usr/{}/include", arch.gnu))
        // The object is part of the guests' image, which is the same wherever it is built.
        .arg(format!("-ffile-prefix-map={libbpf}=libbpf"))
        .arg(format!("-ffile-prefix-map={manifest}=iopro"))
        .arg("-fdebug-compilation-dir=.")
        .args(["-c", source, "-o"])
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("clang could not compile {source} ({status})"),
        Err(error) => {
            panic!("cannot run clang ({error}): install it (Debian: apt-get install clang)")
        }
    }
    println!("cargo::rustc-env=IOPRO_BPF_OBJECT={}", object.display());
}
