//! Pages of results: each is what the program makes of the result that is kept beside it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results");

/// Pages by hand, and pages that were made before results were kept: nobody adds to the second.
const BY_HAND: [&str; 9] = [
    "README",
    "devices",
    "device-model",
    "drivers",
    "foreground",
    "iopro",
    "missed",
    "missed-qasio",
    "newest",
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
