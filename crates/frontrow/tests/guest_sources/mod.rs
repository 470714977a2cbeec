//! Digests of the sources that the demo's figures depend on, by part of the tree: the guests'
//! program with all that it links, the modules, the experiment, and the machine that runs them.
//!
//! They need no release build, and are the same with any toolchain. Comments and tests are left out.
//! Code that only the host's programs call is not: with it the compiler divides a crate otherwise,
//! and so has other bytes for the guest.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Files and directories besides the crates, by part.
const OTHERS: [(&str, &[&str]); 5] = [
    ("kernel/iosched", &["kernel/iosched"]),
    ("kernel/simflash", &["kernel/simflash"]),
    (
        "experiments",
        &["experiments/qasio.toml", "experiments/devices/emmc.toml"],
    ),
    (
        "machine",
        &[
            "crates/lab/src/cpio.rs",
            "crates/lab/src/image.rs",
            "crates/lab/src/modules.rs",
            "crates/lab/src/past.rs",
            "crates/lab/src/qemu.rs",
            "crates/lab/src/run.rs",
        ],
    ),
    (
        "pid 1",
        &[
            "crates/frontrow/src/bin/frontrow-guest.rs",
            ".cargo/config.toml",
        ],
    ),
];

/// A line for each part: its name, and the digest of its sources.
pub fn digests() -> String {
    let mut parts: BTreeMap<String, Digest> = BTreeMap::new();
    for (part, paths) in OTHERS {
        let digest = parts.entry(part.to_owned()).or_default();
        paths.iter().for_each(|path| digest.add_tree(path));
    }
    let manifest = fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    let manifest: toml::Value = toml::from_str(&manifest).unwrap();
    let profile = manifest["profile"]["release"].to_string();
    parts.entry("profile".to_owned()).or_default().add(&profile);
    add_crates(&mut parts);
    let mut lines = String::new();
    for (part, Digest(digest)) in parts {
        writeln!(lines, "{part} {digest:016x}").unwrap();
    }
    lines
}

/// The crates that the guests' program links: our own by their sources, others by version.
fn add_crates(parts: &mut BTreeMap<String, Digest>) {
    let metadata = metadata();
    let by_id = |list: &Value| -> BTreeMap<String, Value> {
        let list = list.as_array().unwrap().iter();
        list.map(|it| (text(it, "id"), it.clone())).collect()
    };
    let packages = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let is_guest = |it: &&Value| it["name"] == "guest" && it["source"].is_null();
    let mut to_add = vec![text(packages.values().find(is_guest).unwrap(), "id")];
    let mut linked = BTreeSet::new();
    while let Some(id) = to_add.pop() {
        let needed = nodes[&id]["deps"].as_array().unwrap().iter();
        if linked.insert(id) {
            let needed = needed.filter(|it| has_use(it["dep_kinds"].as_array().unwrap()));
            to_add.extend(needed.map(|it| text(it, "pkg")));
        }
    }
    for package in linked.iter().map(|id| &packages[id]) {
        let (name, version) = (text(package, "name"), text(package, "version"));
        if !package["source"].is_null() {
            let others = parts.entry("dependencies".to_owned()).or_default();
            others.add(&format!("{name} {version}"));
            continue;
        }
        let manifest = text(package, "manifest_path");
        let directory = Path::new(&manifest).parent().unwrap().file_name().unwrap();
        let directory = format!("crates/{}", directory.to_str().unwrap());
        let digest = parts.entry(directory.clone()).or_default();
        digest.add_tree(&format!("{directory}/src"));
        digest.add_tree(&format!("{directory}/build.rs"));
        for it in package["dependencies"].as_array().unwrap() {
            if it["kind"] != "dev" {
                digest.add(&format!("{} {} {}", it["name"], it["req"], it["features"]));
            }
        }
    }
}

/// Whether a dependency is for more than tests.
fn has_use(kinds: &[Value]) -> bool {
    kinds.iter().any(|it| it["kind"] != "dev")
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap().to_owned()
}

/// FNV-1a: nobody is kept out by it.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, text: &str) {
        // No text has a zero, so the next one begins there.
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// Adds the file, or all files below the directory, by path; nothing if there is none.
    fn add_tree(&mut self, path: &str) {
        let place = Path::new(ROOT).join(path);
        if place.is_dir() {
            let entries = fs::read_dir(place).unwrap();
            let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
            let names: BTreeSet<String> = names.collect();
            for name in names {
                self.add_tree(&format!("{path}/{name}"));
            }
        } else if place.is_file() && is_source(path) {
            self.add(path);
            self.add(&without_comments(path, &fs::read_to_string(place).unwrap()));
        }
    }
}

/// Whether the file goes into what the guest runs: no test, and nothing that a build left there.
fn is_source(path: &str) -> bool {
    let is_test = path.contains("/test/") || path.contains("/tests/") || path.ends_with("tests.rs");
    let kinds = [".rs", ".c", ".h", ".toml", "Kbuild"];
    let is_made = path.ends_with(".mod.c") || path.ends_with("frontrow_abi.h");
    kinds.iter().any(|end| path.ends_with(end)) && !is_test && !is_made
}

/// Lines of code; of Rust without the tests at the end of a file.
pub fn without_comments(path: &str, text: &str) -> String {
    let comment = match path.rsplit('.').next() {
        Some("rs") => "//",
        Some("toml") => "#",
        _ => return text.to_owned(),
    };
    let code = match text.split_once("\n#[cfg(test)]\nmod tests {\n") {
        Some((code, tests)) if is_to_the_end(tests) => code,
        _ => text,
    };
    let lines = code.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(comment));
    lines.collect::<Vec<_>>().join("\n")
}

fn is_to_the_end(module: &str) -> bool {
    let inside = |line: &str| line.is_empty() || line.starts_with(' ') || line == "}";
    module.lines().all(inside)
}
