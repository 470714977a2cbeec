//! What comes from others has a reason, a licence and one version.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const DOCS: &str = include_str!("../../../docs/develop/dependencies.md");

/// Licences of which one has to be offered.
const LICENCES: [&str; 12] = [
    "0BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "GPL-2.0-only",
    "LGPL-2.1-only",
    "LGPL-2.1-or-later",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Under Apache-2.0 alone, and so in no binary; docs/develop/dependencies.md says what each is for.
const APACHE_ONLY: [&str; 4] = ["borsh-derive", "parquet", "prost", "prost-derive"];

/// Where all of them come from, as Cargo.lock names it, with a digest of each.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// `cargo deny`'s configuration.
const DENY: &str = include_str!("../../../deny.toml");

/// Crates of which there are two versions.
const TWICE: [&str; 2] = ["getrandom", "syn"];

/// As cargo has resolved them, for this platform, without asking anybody.
fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Whether every part that is required, of those that are a choice one, is in the list.
fn is_compatible(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], "").replace('/', " OR ");
    expression.split(" AND ").all(|required| {
        let mut choices = required.split(" OR ").map(str::trim);
        choices.any(|choice| LICENCES.contains(&choice))
    })
}

#[test]
fn each_dependency_has_a_reason_a_licence_and_one_version() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let (own, others): (Vec<_>, Vec<_>) = packages.partition(|it| it["source"].is_null());
    for other in &others {
        assert_eq!(text(other, "source"), CRATES_IO, "{}", other["name"]);
    }

    let dependencies = own
        .iter()
        .flat_map(|it| it["dependencies"].as_array().unwrap());
    let named = dependencies
        .filter(|it| it["path"].is_null())
        .map(|it| text(it, "name"));
    let named: BTreeSet<_> = named.collect();
    let rows = DOCS.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.filter_map(|line| line.split_once(" | "));
    let rows: BTreeSet<_> = rows
        .map(|(name, _)| name)
        .filter(|it| *it != "crate")
        .collect();
    assert_eq!(
        named, rows,
        "docs/develop/dependencies.md has a row for each"
    );

    let refused: BTreeSet<_> = others
        .iter()
        .filter(|it| !is_compatible(text(it, "license")))
        .map(|it| text(it, "name"))
        .collect();
    assert_eq!(refused, BTreeSet::from(APACHE_ONLY), "licences");

    let mut versions: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for package in &others {
        let of_one = versions.entry(text(package, "name")).or_default();
        of_one.insert(text(package, "version"));
    }
    versions.retain(|_, versions| versions.len() > 1);
    let twice: Vec<_> = versions.into_keys().collect();
    assert_eq!(twice, TWICE, "one version is enough");
}

/// Names of all that is linked into the program, from its package on.
fn in_binary(metadata: &Value) -> BTreeSet<&str> {
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let nodes: BTreeMap<_, _> = nodes.iter().map(|it| (text(it, "id"), it)).collect();
    let packages = metadata["packages"].as_array().unwrap();
    let names: BTreeMap<_, _> = packages
        .iter()
        .map(|it| (text(it, "id"), text(it, "name")))
        .collect();
    let mut to_see: Vec<&str> = names
        .iter()
        .filter(|(_, name)| **name == "frontrow")
        .map(|(id, _)| *id)
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = to_see.pop() {
        if !seen.insert(id) {
            continue;
        }
        let dependencies = nodes[id]["deps"].as_array().unwrap().iter();
        let linked = dependencies.filter(|it| {
            let mut kinds = it["dep_kinds"].as_array().unwrap().iter();
            kinds.any(|kind| kind["kind"].is_null())
        });
        to_see.extend(linked.map(|it| text(it, "pkg")));
    }
    seen.into_iter().map(|id| names[id]).collect()
}

#[test]
fn nothing_that_does_not_go_with_our_licence_is_in_the_binary() {
    let metadata = metadata();
    let in_binary = in_binary(&metadata);
    assert!(in_binary.len() > 50, "{in_binary:?}");
    for name in APACHE_ONLY {
        assert!(!in_binary.contains(name), "{name}");
        assert!(
            DOCS.contains(name),
            "docs/develop/dependencies.md says nothing of {name}"
        );
    }
}

#[test]
fn cargo_deny_is_told_the_same() {
    let deny: toml::Value = toml::from_str(DENY).unwrap();
    let texts = |value: &toml::Value, key: Option<&str>| -> Vec<String> {
        let values = value.as_array().unwrap().iter();
        let values = values.map(|it| key.map_or(it, |key| &it[key]));
        values.map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    let licences = &deny["licenses"];
    assert_eq!(texts(&licences["allow"], None), LICENCES);
    // It leaves out what only tests take, and so needs no exception.
    assert!(licences.get("exceptions").is_none() && licences.get("include-dev").is_none());
    assert_eq!(texts(&deny["bans"]["skip"], Some("crate")), TWICE);
}

#[test]
fn a_licence_counts_when_one_of_its_choices_does() {
    for (expression, compatible) in [
        ("MIT OR Apache-2.0", true),
        ("Apache-2.0/MIT", true),
        ("Apache-2.0", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND Apache-2.0", false),
        ("", false),
    ] {
        assert_eq!(is_compatible(expression), compatible, "{expression}");
    }
}

/// Crates by their layers: none imports what is above it.
const ARCHITECTURE: &str = include_str!("../../../docs/develop/architecture.md");

/// Of our own: more would be rooms for which a stranger has to guess.
const LIBRARIES_AT_MOST: usize = 16;

/// The rows of the table under `| crates |`: of each the names in its first column.
fn layers() -> Vec<Vec<&'static str>> {
    let (_, table) = ARCHITECTURE.split_once("| crates |").unwrap();
    let rows = table.lines().skip(2).take_while(|it| it.starts_with("| "));
    let names = |row: &'static str| row[1..].split('|').next().unwrap().split('`');
    rows.map(|row| names(row).skip(1).step_by(2).collect())
        .collect()
}

#[test]
fn no_import_runs_upward() {
    let metadata = metadata();
    let layers = layers();
    let layer = |name: &str| layers.iter().position(|it| it.contains(&name));
    let packages = metadata["packages"].as_array().unwrap().iter();
    let own: Vec<_> = packages.filter(|it| it["source"].is_null()).collect();
    for package in &own {
        let imports = package["dependencies"].as_array().unwrap().iter();
        let imports = imports.filter(|it| !it["path"].is_null());
        for import in imports.map(|it| text(it, "name")) {
            let name = text(package, "name");
            let from = layer(name).unwrap_or_else(|| panic!("the table has no {name}"));
            assert!(layer(import) > Some(from), "{name} imports {import}");
        }
    }
    let is_library = |it: &&&Value| {
        let targets = it["targets"].as_array().unwrap().iter();
        targets
            .flat_map(|it| it["kind"].as_array().unwrap())
            .any(|it| it == "lib")
    };
    let libraries = own.iter().filter(is_library).count();
    assert!(libraries <= LIBRARIES_AT_MOST, "{libraries} libraries");
}

#[test]
fn what_users_machines_run_needs_nothing_of_the_labs() {
    let tree = |features: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--offline", "-p", "frontrow"])
            .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
            .args(features)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let names = text.lines().filter_map(|it| it.split(' ').next());
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (product, both) = (tree(&["--no-default-features"]), tree(&[]));
    assert!(product.contains("iopro") && product.contains("clap"));
    for name in ["lab", "powercut", "replay", "torture"] {
        assert!(both.contains(name), "{name}");
        assert!(!product.contains(name), "{name}");
    }
}
