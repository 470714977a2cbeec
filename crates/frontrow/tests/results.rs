//! Pages of results: each is what the program makes of the result that is kept beside it. README's
//! demo is, too, and `make readme` makes it again.

use liblzma::read::XzDecoder;
use liblzma::write::XzEncoder;
use record::{ResultFile, Summary, markdown, picture, table};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results");

/// The result of `make demo` that README shows, its page, and the digests of its guests' sources.
const DEMO: &str = "docs/results/kept/demo-emmc-6.12.json.xz";
const DEMO_PAGE: &str = "docs/results/demo-emmc-6.12.md";
const DEMO_SOURCES: &str = "docs/results/kept/demo-emmc-6.12.sources";
const PICTURE: &str = "docs/fsync.svg";
const README: &str = "README.md";

/// The block of README with the demo's figures.
const BLOCK_BEGINS: &str = "```text\nm1: ";
const BLOCK_ENDS: &str = "```\n";

/// Guests of the demo: six policies with five seeds.
const DEMO_GUESTS: usize = 30;

/// Pages by hand, and pages that were made before results were kept: nobody adds to the second.
const BY_HAND: [&str; 10] = [
    "README",
    "devices",
    "device-model",
    "drivers",
    "foreground",
    "iopro",
    "missed",
    "missed-qasio",
    "newest",
    "screen",
];
const NOT_KEPT: [&str; 22] = [
    "ablation-emmc-6.12",
    "calibrate-emmc-6.12",
    "calibrate-ufs-6.12",
    "fasttrack-apps-emmc-6.12",
    "fasttrack-background-emmc-6.12",
    "fasttrack-janusd-emmc-6.12",
    "fasttrack-ufs-6.12",
    "janusd-emmc-6.12",
    "janusd-emmc-serial-6.12",
    "janusd-ufs-6.12",
    "launch-emmc-6.12",
    "launch-emmc-6.12-schedulers",
    "launch-ufs-6.12",
    "programs-emmc-6.12",
    "programs-ufs-6.12",
    "qasio-emmc-6.1",
    "qasio-emmc-6.12",
    "qasio-emmc-6.12-full",
    "qasio-ufs-6.12",
    "qasio-ufs-6.12-scenarios",
    "throughput-emmc-6.12",
    "throughput-ufs-6.12",
];

/// Names without `end` of the files in `directory` that have it.
fn names(directory: &Path, end: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| Some(name.strip_suffix(end)?.to_owned()))
        .collect()
}

#[test]
fn each_page_is_what_is_made_of_its_result_today() {
    let results = Path::new(RESULTS);
    let kept = names(&results.join("kept"), ".json.xz");
    assert!(!kept.is_empty());
    for name in &kept {
        let output = Command::new(env!("CARGO_BIN_EXE_frontrow-lab"))
            .arg("show")
            .arg(results.join("kept").join(format!("{name}.json.xz")))
            .arg("--markdown")
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        let page = fs::read_to_string(results.join(format!("{name}.md"))).unwrap();
        let made = String::from_utf8(output.stdout).unwrap();
        assert!(
            page == made,
            "docs/results/{name}.md is not what `frontrow-lab show docs/results/kept/{name}.json.xz --markdown` prints"
        );
    }
    let known = kept
        .iter()
        .map(String::as_str)
        .chain(BY_HAND)
        .chain(NOT_KEPT);
    let pages = names(results, ".md");
    assert_eq!(
        pages.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        known.collect::<BTreeSet<_>>()
    );
}

fn in_tree(path: &str) -> PathBuf {
    Path::new(ROOT).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(in_tree(path)).unwrap()
}

fn kept_demo() -> ResultFile {
    let packed = fs::read(in_tree(DEMO)).unwrap();
    let mut text = Vec::new();
    XzDecoder::new(&*packed).read_to_end(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// README with the demo's figures in its block, as `make demo` prints them below the heading.
fn readme_with(readme: &str, demo: &ResultFile) -> String {
    let overview = table::overview::render(demo, table::Options::default()).unwrap();
    let (_heading, figures) = overview.split_once("\n\n").unwrap();
    let begin = readme.find(BLOCK_BEGINS).unwrap() + "```text\n".len();
    let end = begin + readme[begin..].find(BLOCK_ENDS).unwrap();
    format!("{}{figures}{}", &readme[..begin], &readme[end..])
}

#[test]
fn readme_shows_the_kept_demo() {
    let (demo, readme) = (kept_demo(), read(README));
    assert!(
        readme == readme_with(&readme, &demo) && Some(read(PICTURE)) == picture_of(&demo),
        "README or {PICTURE} does not show {DEMO}: run `make readme`"
    );
}

fn picture_of(demo: &ResultFile) -> Option<String> {
    picture::render(&Summary::of(demo))
}

/// A change of what runs in the guests moves figures: README is made again before it is merged.
#[test]
fn what_runs_in_guests_is_what_ran_in_those_of_the_kept_demo() {
    let (now, kept) = (crate::guest_sources::digests(), read(DEMO_SOURCES));
    let changed: Vec<&str> = now
        .lines()
        .filter(|line| !kept.lines().any(|it| it == *line))
        .filter_map(|line| Some(line.rsplit_once(' ')?.0))
        .collect();
    assert!(
        now == kept,
        "since README's demo these parts of its guests changed: {}. Commit, run `make readme` (10 minutes), and commit what it wrote",
        changed.join(", ")
    );
}

#[test]
fn comments_and_tests_are_no_part_of_what_runs() {
    let code = "fn one() {\n    two();\n}";
    let file =
        format!("//! Doc.\n\n{code}\n\n#[cfg(test)]\nmod tests {{\n    fn three() {{}}\n}}\n");
    let kept = crate::guest_sources::without_comments("a.rs", &file);
    assert_eq!(kept, "fn one() {\ntwo();\n}");
    let between = file + "fn after() {}\n";
    let kept = crate::guest_sources::without_comments("a.rs", &between);
    assert!(kept.contains("three") && kept.ends_with("fn after() {}"));
    let kept = crate::guest_sources::without_comments("a.c", "#define A 1\n");
    assert_eq!(kept, "#define A 1\n");
}

/// The step of `make readme` after the demo has run: keeps the result in `FRONTROW_DEMO`, and writes
/// whatever shows its figures.
#[test]
#[ignore = "writes into docs/ and README: `make readme` runs it"]
fn keep_the_demo() {
    let directory = PathBuf::from(env::var_os("FRONTROW_DEMO").unwrap());
    let text = fs::read(directory.join("result.json")).unwrap();
    let demo: ResultFile = serde_json::from_slice(&text).unwrap();
    let guests: BTreeSet<_> = demo.rows.iter().map(|it| (&it.policy, it.seed)).collect();
    assert_eq!(guests.len(), DEMO_GUESTS, "this is not the demo's result");
    let commit = &demo.inputs.items["commit"];
    assert!(!commit.ends_with('+'), "{commit} is not all of what ran");
    let mut packer = XzEncoder::new(Vec::new(), 9 | liblzma::stream::PRESET_EXTREME);
    packer.write_all(&text).unwrap();
    fs::write(in_tree(DEMO), packer.finish().unwrap()).unwrap();
    for (path, text) in [
        (DEMO_PAGE, markdown::render(&demo)),
        (DEMO_SOURCES, crate::guest_sources::digests()),
        (PICTURE, picture_of(&demo).unwrap()),
        (README, readme_with(&read(README), &demo)),
    ] {
        fs::write(in_tree(path), text).unwrap();
    }
}
