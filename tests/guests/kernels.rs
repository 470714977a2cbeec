//! Every series of kernels in Debian's archive: the scheduler's declarations are made from
//! the image, also where there are no headers any more, and compile. `make stress` runs
//! this: it fetches half a gigabyte, and a series that is new to the archive fails here
//! first.

use crate::harness::{lab, output, stderr, succeeds};
use lab::{Cache, Kernel, KernelImage};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The kernels with headers, and the last series that each is nearest to.
const NEAREST: [(&str, (u32, u32)); 4] = [
    ("6.1", (6, 1)),
    ("6.12", (6, 12)),
    ("7.2", (7, 2)),
    ("newest", (u32::MAX, 0)),
];

fn series(image: &KernelImage) -> (u32, u32) {
    let mut numbers = image.release.split('.').map(|it| it.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// What `frontrow sched abi` makes of the image, or its refusal.
fn header(image: &KernelImage) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["sched", "abi", "--btf"])
        .arg(&image.path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

/// The module's sources with `header`, compiled with the headers of `kernel`.
///
/// Two kernels' public types differ in size, so that layouts are not compared; and what one
/// exports another may not, so that nothing is linked with the kernel.
fn compiles(header: &str, kernel: &Kernel, out: &Path) -> Result<(), String> {
    for (name, content) in &module::sched::build::source().files {
        fs::write(out.join(name), content).unwrap();
    }
    let lines = header.lines();
    let text: Vec<_> = lines
        .filter(|it| !it.starts_with("static_assert"))
        .collect();
    fs::write(
        out.join(module::sched::build::HEADER),
        text.join("\n") + "\n",
    )
    .unwrap();
    let mut make = Command::new("make");
    make.arg("-C")
        .arg(fs::canonicalize(&kernel.tree.headers).unwrap())
        .arg(format!("M={}", out.display()))
        .args(["CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"])
        .env("KBUILD_MODPOST_WARN", "1")
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL");
    if let Some(tools) = &kernel.tree.tools {
        let path = std::env::var("PATH").unwrap();
        make.env("PATH", format!("{}:{path}", tools.display()));
    }
    let made = make.output().unwrap();
    match made.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
    }
}

/// The macros by which the header tells the module what this kernel has.
fn told(header: &str) -> impl Iterator<Item = &str> {
    let lines = header.lines();
    lines.filter_map(|it| it.strip_prefix("#define FRONTROW_ABI_")?.strip_suffix(" 1"))
}

#[test]
#[ignore = "half a gigabyte from the network: make stress-kernels"]
fn the_scheduler_compiles_for_every_series_in_debians_archive() {
    let cache = Cache::of_user().unwrap();
    let images = lab::kernel_images(&cache).unwrap();
    let mut failed = Vec::new();
    let mut met: Vec<String> = Vec::new();
    for image in &images {
        let nearest = NEAREST.iter().find(|(_, last)| series(image) <= *last);
        let kernel = Kernel::find(&cache, nearest.unwrap().0, None).unwrap();
        let out = tempfile::tempdir().unwrap();
        let header = match header(image) {
            Ok(header) => header,
            Err(refusal) => {
                failed.push(format!("{}: {refusal}", image.release));
                continue;
            }
        };
        met.extend(told(&header).map(str::to_owned));
        if let Err(said) = compiles(&header, &kernel, out.path()) {
            failed.push(format!(
                "{} with {}: {said}",
                image.release,
                kernel.release()
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Both ways of each that has two were compiled.
    for name in [
        "INIT_SCHED_EQ",
        "DEPTH_UPDATED_QUEUE",
        "INSERT_BLK_FLAGS",
        "WBT_GENDISK",
    ] {
        let with = met.iter().filter(|it| *it == name).count();
        assert!(
            with > 0 && with < images.len(),
            "{name}: {with} of {}",
            images.len()
        );
    }
}

/// The lab's other kernels; `make test` runs 6.1, 6.12 and the newest.
#[test]
#[ignore = "half a gigabyte from the network: make stress-kernels"]
fn the_scheduler_works_on_every_kernel_that_the_lab_has() {
    let smoke = ["run", "smoke", "--policy", "frontrow", "--seeds", "1"];
    for kernel in ["6.12-deb13", "7.2", "7.3"] {
        println!("on {kernel}");
        succeeds(lab(&smoke).args(["--kernel", kernel]));
    }
}

#[test]
#[ignore = "half a gigabyte from the network: make stress-kernels"]
fn a_real_time_kernel_is_refused_with_a_sentence() {
    let smoke = ["run", "smoke", "--policy", "frontrow", "--seeds", "1"];
    let output = output(lab(&smoke).args(["--kernel", "rt"]));
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(said.contains("PREEMPT_RT are not supported"), "{said}");
}
